//! The search of the page: `/api/search`.

use h5live::File;
use serde_json::{Value as Json, json};

use crate::client::{Served, make};

/// A folder with files, of which one is written.
fn served() -> (Served, File) {
    let served = Served::new();
    std::fs::create_dir_all(served.file("runs/old")).unwrap();
    make(&served.file("runs/old/beam.h5"), |file| {
        file.set_attribute("operator", "Ann Müller")?;
        file.new_dataset::<f64>().shape(&[3]).create("Detector/counts")?.set_attribute("gain", &[2.5, 7.25])
    });
    std::fs::write(served.file("runs/broken.h5"), b"\x89HDF\r\n\x1a\nbeam").unwrap();
    let live = File::create(served.file("live.h5")).unwrap();
    live.start_swmr().unwrap();
    live.set_attribute("state", "beam is on").unwrap();
    live.flush().unwrap();
    (served, live)
}

fn hits(served: &Served, query: &str) -> Json {
    let found = served.json(&format!("/api/search?{query}"));
    assert_eq!(found["is_cut"], false, "{found}");
    found["hits"].clone()
}

#[test]
fn names_and_attributes_are_found_in_all_files_below_a_folder() {
    let (served, _live) = served();
    let found = served.json("/api/search?text=BEAM");
    let expected = json!([
        { "file": "runs/old/beam.h5", "kind": "file" },
        { "file": "live.h5", "path": "/", "kind": "group", "attribute": "state", "value": "beam is on" },
    ]);
    assert_eq!((&found["hits"], &found["unread"]), (&expected, &json!(1)));
    let counts = "/Detector/counts";
    assert_eq!(
        hits(&served, "text=gain&folder=runs"),
        json!([{ "file": "runs/old/beam.h5", "path": counts, "kind": "dataset", "attribute": "gain", "value": "[2.5,7.25]" }])
    );
    assert_eq!(hits(&served, "text=m%C3%BCller&file=runs/old/beam.h5")[0]["attribute"], "operator");
    assert_eq!(hits(&served, "text=7.25")[0]["path"], counts);
    assert_eq!(
        hits(&served, "text=detect"),
        json!([{ "file": "runs/old/beam.h5", "path": "/Detector", "kind": "group" }])
    );
    assert_eq!(hits(&served, "text=nothing+is+so"), json!([]));
}

#[test]
fn a_search_says_what_it_cannot_do_and_keeps_no_writer_out() {
    let (served, _live) = served();
    served.refused("/api/search", 422, "text");
    served.refused("/api/search?text=+", 422, "empty");
    served.refused("/api/search?text=x&folder=none", 404, "not found");
    served.refused("/api/search?text=x&file=../secret.h5", 404, "not found");
    hits(&served, "text=operator");
    // At once, and not only when sessions that nobody uses are closed.
    File::options().write().open(served.file("runs/old/beam.h5")).unwrap().close().unwrap();
}

#[test]
fn a_search_with_too_many_hits_is_cut() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| (0..300).try_for_each(|n| file.create_group(&format!("same_{n}")).map(drop)));
    let found = served.json("/api/search?text=same");
    assert_eq!((found["hits"].as_array().unwrap().len(), &found["is_cut"]), (200, &json!(true)));
}
