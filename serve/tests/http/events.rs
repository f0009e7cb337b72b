//! Events.

use h5live::File;
use serde_json::json;

use crate::client::{Events, Served, make, shape_in};

#[test]
fn what_an_event_announces_can_be_read() {
    let served = Served::new();
    let file = File::create(served.file("a.h5")).unwrap();
    let rows = file.new_dataset::<u32>().unlimited_rows(&[]).create("group/rows").unwrap();
    file.start_swmr().unwrap();
    let mut events = Events::of(&served, "file=a.h5", None);
    let first = events.next().unwrap();
    assert_eq!((&first["is_whole"], &first["writer"]["state"]), (&json!(true), &json!("writing")));
    assert_eq!(shape_in(&first, "/group/rows"), Some(vec![0]));
    for n in 0..10u32 {
        rows.append(&[n]).unwrap();
        rows.flush().unwrap();
        let message = events.wait_for(|message| shape_in(message, "/group/rows") == Some(vec![u64::from(n) + 1]));
        assert_eq!(message["is_whole"], false);
        assert_eq!(served.json("/meta?file=a.h5&path=/group/rows")["shape"], json!([n + 1]));
        assert_eq!(served.json(&format!("/data?file=a.h5&path=/group/rows&selection={n}")), json!(n));
    }
    file.create_group("new/deeper").unwrap();
    file.set_attribute("state", "running").unwrap();
    file.flush().unwrap();
    let is_there = |message: &serde_json::Value, path: &str, key: &str| {
        let objects = message["objects"].as_array().unwrap();
        objects.iter().any(|object| object["path"] == path && object[key] == true)
    };
    let (mut has_group, mut has_attribute) = (false, false);
    events.wait_for(|message| {
        has_group |= is_there(message, "/new/deeper", "is_new");
        has_attribute |= is_there(message, "/", "attributes_changed");
        has_group && has_attribute
    });
    file.unlink("new").unwrap();
    file.flush().unwrap();
    events.wait_for(|message| message["removed"].as_array().unwrap().contains(&json!("/new/deeper")));
    file.close().unwrap();
    let last = events.wait_for(|message| message["writer"]["state"] == "closed");
    assert_eq!(last["writer_changed"], true);
}

#[test]
fn a_client_that_comes_back_is_told_what_it_has_missed() {
    let served = Served::new();
    let file = File::create(served.file("a.h5")).unwrap();
    let rows = file.new_dataset::<u32>().unlimited_rows(&[]).create("rows").unwrap();
    file.new_dataset::<u32>().unlimited_rows(&[]).create("other").unwrap();
    file.start_swmr().unwrap();
    // One that stays, so that the watch does.
    let mut stays = Events::of(&served, "file=a.h5", None);
    let mut first = Events::of(&served, "file=a.h5", None);
    first.next().unwrap();
    let id = first.last_id.clone();
    drop(first);
    for n in 0..5 {
        rows.append(&[n]).unwrap();
        rows.flush().unwrap();
    }
    stays.wait_for(|message| shape_in(message, "/rows") == Some(vec![5]));
    let mut again = Events::of(&served, "file=a.h5", Some(&id));
    let missed = again.wait_for(|message| shape_in(message, "/rows") == Some(vec![5]));
    assert_eq!((&missed["is_whole"], shape_in(&missed, "/other")), (&json!(false), None));
    let other_server = Events::of(&served, "file=a.h5", Some("0-7")).next().unwrap();
    assert_eq!((&other_server["is_whole"], shape_in(&other_server, "/other")), (&json!(true), Some(vec![0])));
}

#[test]
fn files_at_rest_are_watched_without_keeping_writers_out() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| file.new_dataset::<u8>().shape(&[2]).create("data").map(drop));
    let mut events = Events::of(&served, "file=a.h5", None);
    assert_eq!(events.next().unwrap()["writer"]["state"], "closed");
    let writer = loop {
        match File::options().write().open(served.file("a.h5")) {
            Err(error) if error.is_in_use() => std::thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    writer.new_dataset::<u8>().create("new").unwrap();
    writer.close().unwrap();
    events.wait_for(|message| shape_in(message, "/new") == Some(vec![]));
    make(&served.file("other.h5"), |file| file.new_dataset::<u8>().shape(&[7]).create("data").map(drop));
    std::fs::rename(served.file("other.h5"), served.file("a.h5")).unwrap();
    events.wait_for(|message| shape_in(message, "/data") == Some(vec![7]));
    std::fs::remove_file(served.file("a.h5")).unwrap();
    events.wait_for(|message| message["writer"]["state"] == "gone");
}

#[test]
fn values_that_are_overwritten_are_an_event() {
    let served = Served::new();
    let file = File::create(served.file("a.h5")).unwrap();
    let data = file.new_dataset::<u32>().shape(&[100]).create("data").unwrap();
    data.write(&[1; 100]).unwrap();
    file.start_swmr().unwrap();
    let mut events = Events::of(&served, "file=a.h5", None);
    events.next().unwrap();
    data.write_slice(5..6, &[7]).unwrap();
    file.flush().unwrap();
    // Which object it was does not show.
    events.next().unwrap();
    assert_eq!(served.json("/data?file=a.h5&path=/data&selection=5"), json!(7));
}

#[test]
fn events_end_with_the_server() {
    let mut served = Served::new();
    make(&served.file("a.h5"), |_| Ok(()));
    let mut events = Events::of(&served, "file=a.h5&path=/", None);
    events.next().unwrap();
    let other = Served::new();
    std::mem::replace(&mut served.server, other.server).stop();
    assert!(events.next().is_none());
}
