//! Waiting in each store for what is not there yet: the store, a group, a dataset, an attribute, a map. The writer closes the store each
//! time, or goes on writing it.

use std::time::Duration;

use h5live::{AwaitedChange, File, FileWaiter};

const STORES: [&str; 4] = ["", "log:", "kv:", "hsds:"];
/// No wait of these ends by its time, unless something is wrong.
const LONG: Duration = Duration::from_secs(60);

/// Something that is waited for: its name, how it is made, and how it is found.
type Step = (&'static str, fn(&File) -> h5live::Result<()>, fn(&File) -> h5live::Result<()>);

const STEPS: [Step; 6] = [
    ("group", |file| file.create_group("g").map(drop), |file| file.group("g").map(drop)),
    (
        "dataset",
        |file| file.new_dataset::<u8>().unlimited_rows(&[]).create("g/d").map(drop),
        |file| file.dataset("g/d").map(drop),
    ),
    (
        "attribute of a group",
        |file| file.group("g")?.set_attribute("a", &1u8),
        |file| file.group("g")?.attribute("a").map(drop),
    ),
    (
        "attribute of a dataset",
        |file| file.dataset("g/d")?.set_attribute("a", &1u8),
        |file| file.dataset("g/d")?.attribute("a").map(drop),
    ),
    (
        "dataset in new groups",
        |file| file.new_dataset::<u8>().unlimited_rows(&[]).create("x/y/d").map(drop),
        |file| file.dataset("x/y/d").map(drop),
    ),
    ("map", |file| file.new_map::<String, u64>().create("m").map(drop), |file| file.map::<String, u64>("m").map(drop)),
];

fn wait_for_each(location: &str, is_live: bool) {
    let mut waiter = FileWaiter::new(File::options(), location).unwrap().follow_if_in_use();
    assert!(waiter.wait_for(Duration::ZERO, |_| Ok(())).unwrap().is_none(), "{location}");
    assert_eq!(waiter.awaited_change(), AwaitedChange::FileCreated, "{location}");
    let make_file = || {
        let file = File::create(location).unwrap();
        if is_live {
            file.start_swmr().unwrap();
            return Some(file);
        }
        file.close().unwrap();
        None
    };
    let writer = std::thread::scope(|threads| {
        let making = threads.spawn(make_file);
        assert!(waiter.wait_for(LONG, |_| Ok(())).unwrap().is_some(), "{location}: the file");
        making.join().unwrap()
    });
    let has_maps = !["hsds:", "log:"].iter().any(|store| location.starts_with(store));
    for (what, make, find) in STEPS.into_iter().filter(|(what, ..)| *what != "map" || has_maps) {
        println!("{location} {is_live}: {what}");
        assert!(waiter.wait_for(Duration::ZERO, find).unwrap().is_none(), "{location}: {what} is not there yet");
        std::thread::scope(|threads| {
            threads.spawn(|| match &writer {
                Some(file) => make(file).and_then(|()| file.flush()).unwrap(),
                None => {
                    let file = File::options().write().wait(LONG).open(location).unwrap();
                    make(&file).and_then(|()| file.close()).unwrap();
                }
            });
            assert!(waiter.wait_for(LONG, find).unwrap().is_some(), "{location}: {what}");
        });
    }
}

#[test]
fn what_is_made_later_is_found_in_every_store() {
    for store in STORES {
        for is_live in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            wait_for_each(&format!("{store}{}", folder.path().join("run").display()), is_live);
        }
    }
}
