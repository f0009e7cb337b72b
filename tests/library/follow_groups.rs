//! Following what comes into groups, by readers that were there before.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use h5live::model::memory::MemoryStore;
use h5live::{ErrorKind, File, GroupFollower, Object, WalkItem};

/// A live file, and a reader of it.
fn live(folder: &Path, prepare: impl FnOnce(&File)) -> (File, File) {
    let path = folder.join("run.h5");
    let writer = File::create(&path).unwrap();
    prepare(&writer);
    writer.start_swmr().unwrap();
    (writer, File::options().swmr_read().open(&path).unwrap())
}

fn paths(arrivals: GroupFollower) -> Vec<String> {
    arrivals.map(|visit| visit.unwrap().path().to_owned()).collect()
}

fn next(arrivals: &mut GroupFollower) -> String {
    arrivals.next().unwrap().unwrap().path().to_owned()
}

#[test]
fn new_links_of_a_group_come_one_by_one_also_when_there_are_many() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = live(folder.path(), |file| drop(file.create_group("runs/0").unwrap()));
    thread::scope(|scope| {
        let (runs, mut arrivals) = (writer.group("runs").unwrap(), reader.group("runs").unwrap().follow());
        assert_eq!(next(&mut arrivals), "/runs/0");
        scope.spawn(move || {
            // More than a group keeps in its header.
            for n in 1..60 {
                let data = runs.new_dataset::<u64>().unlimited_rows(&[]).create(&n.to_string()).unwrap();
                data.append(&[n]).unwrap();
                if n % 3 > 0 {
                    writer.flush().unwrap();
                }
            }
            writer.close().unwrap();
        });
        let mut seen = Vec::new();
        for visit in arrivals {
            let WalkItem::Object(Object::Dataset(data)) = visit.unwrap() else { panic!("a dataset") };
            let n: u64 = data.path().trim_start_matches("/runs/").parse().unwrap();
            assert_eq!(data.read::<u64>().unwrap(), [n], "it is complete when its link is there");
            seen.push(n);
        }
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(1..60), "each of them once: {seen:?}");
    });
}

#[test]
fn a_file_is_followed_into_its_groups() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = live(folder.path(), |file| drop(file.create_group("a/b").unwrap()));
    let mut arrivals = reader.follow();
    assert_eq!([next(&mut arrivals), next(&mut arrivals)], ["/a", "/a/b"]);
    writer.create_group("a/b/c/d").unwrap();
    writer.root().link_soft("newest", "/a/b/c").unwrap();
    writer.flush().unwrap();
    let mut found = [next(&mut arrivals), next(&mut arrivals), next(&mut arrivals)];
    found.sort();
    assert_eq!(found, ["/a/b/c", "/a/b/c/d", "/newest"]);
    writer.new_dataset::<u8>().create("a/b/c/d/e").unwrap();
    writer.close().unwrap();
    assert_eq!(paths(arrivals), ["/a/b/c/d/e"]);
}

#[test]
fn it_ends_when_the_time_is_over_and_can_begin_with_what_comes() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = live(folder.path(), |file| drop(file.create_group("a/b").unwrap()));
    assert_eq!(paths(reader.root().follow().timeout(Duration::ZERO)), ["/a"]);
    assert_eq!(paths(reader.follow().max_depth(1).timeout(Duration::ZERO)), ["/a"]);
    assert!(paths(reader.follow().skip_existing().unwrap().timeout(Duration::ZERO)).is_empty());
    let mut arrivals = reader.follow().skip_existing().unwrap();
    writer.create_group("a/c").unwrap();
    writer.flush().unwrap();
    assert_eq!(next(&mut arrivals), "/a/c");
}

#[test]
fn what_was_removed_and_comes_again_is_new() {
    let store = MemoryStore::new();
    let writer = File::with_store(Arc::new(store.clone()), "run.h5", File::options()).unwrap();
    let reader = File::with_store(Arc::new(store.open_reader()), "run.h5", File::options()).unwrap();
    let a = writer.create_group("a/inner").unwrap().id();
    let mut arrivals = reader.follow();
    assert_eq!([next(&mut arrivals), next(&mut arrivals)], ["/a", "/a/inner"]);
    writer.root().link_hard("other", a).unwrap();
    writer.flush().unwrap();
    let Some(Ok(WalkItem::AlreadyVisited { path, .. })) = arrivals.next() else { panic!("it was met before") };
    assert_eq!(path, "/other");
    writer.root().unlink("a").unwrap();
    writer.root().unlink("other").unwrap();
    writer.create_group("a/again").unwrap();
    writer.close().unwrap();
    assert_eq!(paths(arrivals), ["/a", "/a/again"]);
}

#[test]
fn rings_end_and_too_many_groups_are_an_error() {
    let file = File::in_memory();
    let inner = file.create_group("a/b").unwrap();
    inner.link_hard("ring", file.root().id()).unwrap();
    assert_eq!(paths(file.follow()), ["/a", "/a/b", "/a/b/ring"]);
    let mut arrivals = file.follow().max_groups(2);
    assert_eq!(next(&mut arrivals), "/a");
    assert!(matches!(arrivals.next().unwrap().unwrap_err().kind(), ErrorKind::TooManyFollowedGroups(2)));
    assert!(arrivals.next().is_none());
}
