use h5live_model::{Hyperslab, Selection, UNLIMITED, VirtualSource};
use smallvec::smallvec;

use crate::{Dataset, ErrorKind, File};

fn piece(file: &str, dataset: &str, source: Selection, target: Selection) -> VirtualSource {
    VirtualSource { file: file.into(), dataset: dataset.into(), source, target }
}

fn make(file: &File, at: &str, dims: &[u64], max: &[u64], sources: Vec<VirtualSource>) -> Dataset {
    file.new_dataset::<i32>().shape(dims).max_shape(max).fill(-1).virtual_sources(sources).create(at).unwrap()
}

#[test]
fn pieces_are_put_together() {
    let file = File::in_memory();
    for i in 0..3 {
        file.new_dataset::<i16>()
            .create_with_data(&format!("part{i}"), &[i * 10, i * 10 + 1, i * 10 + 2, i * 10 + 3])
            .unwrap();
    }
    let row = |i: u64| piece(".", &format!("/part{i}"), Selection::All, Selection::block(&[i, 0], &[1, 4]));
    let missing = piece("nowhere.h5", "/x", Selection::All, Selection::block(&[3, 0], &[1, 4]));
    let data = make(&file, "whole", &[4, 4], &[4, 4], vec![row(0), row(2), missing]);
    assert_eq!(data.read::<i32>().unwrap(), [0, 1, 2, 3, -1, -1, -1, -1, 20, 21, 22, 23, -1, -1, -1, -1]);
    assert_eq!(data.read_slice::<i32>((.., 1..3)).unwrap(), [1, 2, -1, -1, 21, 22, -1, -1]);
    let points = Selection::Points(vec![smallvec![2, 3], smallvec![0, 0], smallvec![1, 1]]);
    assert_eq!(data.read_slice::<i32>(&points).unwrap(), [23, 0, -1]);
    let every_other = Hyperslab { start: smallvec![0], stride: smallvec![2], count: smallvec![2], block: smallvec![1] };
    let interleaved = vec![
        piece(".", "/part1", Selection::Hyperslab(every_other.clone()), Selection::block(&[0], &[2])),
        piece(
            ".",
            "/part2",
            Selection::block(&[1], &[2]),
            Selection::Hyperslab(Hyperslab { start: smallvec![1], ..every_other }),
        ),
    ];
    let data = make(&file, "interleaved", &[4], &[4], interleaved);
    assert_eq!(data.read::<i32>().unwrap(), [10, 21, -1, 22], "the later piece counts");
    assert!(data.write(&[0; 4]).is_err());
}

#[test]
fn sources_are_looked_for_in_the_folder_that_is_set() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("parts")).unwrap();
    let source = File::options().create().open(folder.path().join("parts/source.h5")).unwrap();
    source.new_dataset::<i32>().create_with_data("x", &[1, 2]).unwrap();
    source.close().unwrap();
    let file = File::options().create().open(folder.path().join("whole.h5")).unwrap();
    let data = make(&file, "whole", &[2], &[2], vec![piece("source.h5", "/x", Selection::All, Selection::All)]);
    assert_eq!(data.read::<i32>().unwrap(), [-1, -1]);
    data.set_source_folder(folder.path().join("parts").to_str().unwrap());
    assert_eq!(data.read::<i32>().unwrap(), [1, 2]);
    data.set_source_folder("");
    assert_eq!(data.read::<i32>().unwrap(), [-1, -1]);
}

#[test]
fn a_virtual_dataset_grows_with_its_source() {
    let file = File::in_memory();
    let source = file.new_dataset::<i32>().unlimited_rows(&[2]).create("source").unwrap();
    source.append(&[1, 2, 3, 4]).unwrap();
    let all = Selection::Hyperslab(Hyperslab {
        start: smallvec![0, 0],
        stride: smallvec![1, 1],
        count: smallvec![1, 1],
        block: smallvec![UNLIMITED, 2],
    });
    let data = make(&file, "grown", &[0, 2], &[UNLIMITED, 2], vec![piece(".", "/source", all.clone(), all)]);
    assert_eq!(data.read::<i32>().unwrap(), [1, 2, 3, 4]);
    source.append(&[5, 6]).unwrap();
    assert!(data.refresh().unwrap());
    assert_eq!(data.shape().unwrap(), [3, 2]);
    assert_eq!(data.read_slice::<i32>(1..).unwrap(), [3, 4, 5, 6]);
}

#[test]
fn numbered_sources_are_found_until_one_is_missing() {
    let file = File::in_memory();
    for i in 0..3 {
        file.new_dataset::<i32>().create_with_data(&format!("run {i}%"), &[i, i + 100]).unwrap();
    }
    let blocks =
        Hyperslab { start: smallvec![1], stride: smallvec![3], count: smallvec![UNLIMITED], block: smallvec![2] };
    let source = piece(".", "/run %b%%", Selection::All, Selection::Hyperslab(blocks));
    let data = make(&file, "runs", &[0], &[UNLIMITED], vec![source]);
    assert_eq!(data.shape().unwrap(), [9]);
    assert_eq!(data.read::<i32>().unwrap(), [-1, 0, 100, -1, 1, 101, -1, 2, 102]);
    assert_eq!(data.read_slice::<i32>(5..8).unwrap(), [101, -1, 2]);
}

#[test]
fn a_virtual_dataset_of_itself_is_an_error() {
    let file = File::in_memory();
    let data = make(&file, "self", &[2], &[2], vec![piece(".", "/self", Selection::All, Selection::All)]);
    let error = data.read::<i32>().unwrap_err();
    let mut kind = error.kind();
    while let ErrorKind::OtherFile(inner) = kind {
        kind = inner.kind();
    }
    assert!(matches!(kind, ErrorKind::TooManyVirtualLayers), "{error}");
}

#[test]
fn links_and_pieces_lead_to_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let other = File::create(at("other.h5")).unwrap();
    other.new_dataset::<i32>().create_with_data("a/data", &[1, 2, 3]).unwrap();
    other.root().link_external("back", "first.h5", "/here").unwrap();
    other.close().unwrap();
    let first = File::create(at("first.h5")).unwrap();
    first.create_group("here").unwrap();
    first.root().link_external("there", "other.h5", "/a").unwrap();
    first.root().link_external("gone", "missing.h5", "/").unwrap();
    assert_eq!(first.dataset("there/data").unwrap().read::<i32>().unwrap(), [1, 2, 3]);
    first.close().unwrap();

    let first = File::open(at("first.h5")).unwrap();
    let data = first.dataset("there/data").unwrap();
    assert_eq!(data.read::<i32>().unwrap(), [1, 2, 3]);
    assert!(data.file().name().ends_with("other.h5"));
    let round = data.file().group("/back").unwrap();
    assert!(round.file().name().ends_with("first.h5"));
    assert!(matches!(first.group("gone").unwrap_err().kind(), ErrorKind::MissingLinkedFile(_)));

    let memory = File::in_memory();
    let path = at("other.h5");
    let sources = vec![piece(path.to_str().unwrap(), "/a/data", Selection::All, Selection::block(&[1], &[3]))];
    let data = make(&memory, "pieces", &[5], &[5], sources);
    assert!(memory.is_live().is_ok());
    assert_eq!(data.read::<i64>().unwrap(), [-1, 1, 2, 3, -1]);
}

#[test]
fn states_of_sources_are_shown_in_the_words_of_ls() {
    use crate::SourceState::{AtRest, InExclusiveUse, Live, Missing, Unreadable};
    let shown = [AtRest, Live, InExclusiveUse, Missing, Unreadable].map(|state| state.to_string());
    assert_eq!(shown, ["closed", "being written", "in use", "missing", "unreadable"]);
}

#[test]
fn sources_that_are_not_there_are_told_of_or_refused() {
    use std::sync::{Arc, Mutex};

    use crate::{MissingSourcePolicy, Options};

    let met = Arc::new(Mutex::new(Vec::new()));
    let heard = met.clone();
    let options = Options::default().on_missing_source(move |source| heard.lock().unwrap().push(source.to_string()));
    let file = options.clone().create().open("mem:").unwrap();
    file.new_dataset::<i32>().create_with_data("here", &[1, 2]).unwrap();
    let here = piece(".", "/here", Selection::All, Selection::block(&[0], &[2]));
    let gone = piece("gone.h5", "/x", Selection::All, Selection::block(&[4], &[2]));
    let data = make(&file, "whole", &[8], &[8], vec![here, gone]);
    assert_eq!(data.read_slice::<i32>(..4).unwrap(), [1, 2, -1, -1]);
    let around = Selection::Points(vec![smallvec![0], smallvec![7]]);
    assert_eq!(data.read_slice::<i32>(&around).unwrap(), [1, -1]);
    assert_eq!(*met.lock().unwrap(), [""; 0], "no element of it was asked for");
    assert_eq!(data.read_slice::<i32>(5..7).unwrap(), [-1, -1]);
    let expected = r#"mem:: /whole: the source "/x" in "gone.h5" is not there: its elements are fill values"#;
    assert_eq!(*met.lock().unwrap(), [expected]);

    let strict = Options::default().missing_sources(MissingSourcePolicy::Error).create().open("mem:").unwrap();
    let gone = piece("gone.h5", "/x", Selection::All, Selection::block(&[4], &[2]));
    let data = make(&strict, "whole", &[8], &[8], vec![gone]);
    assert_eq!(data.read_slice::<i32>(..4).unwrap(), [-1; 4]);
    let error = data.read_slice::<i32>(..5).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::MissingSource { .. }), "{error}");
}

#[test]
fn a_source_whose_elements_are_not_those_that_are_mapped_is_an_error() {
    let file = File::in_memory();
    file.new_dataset::<i32>().create_with_data("line", &[1, 2, 3, 4, 5]).unwrap();
    let plane = |path: &str| piece(".", path, Selection::block(&[0, 0], &[2, 3]), Selection::block(&[0], &[6]));
    let data = make(&file, "of_rank_2", &[6], &[6], vec![plane("/line")]);
    assert!(data.read::<i32>().unwrap_err().to_string().contains("/line: "), "the source is of rank 1");
    // Only five of the six are there, and which of the plane they are is not known.
    let square = piece(".", "/line", Selection::block(&[0], &[6]), Selection::block(&[0, 0], &[2, 3]));
    let data = make(&file, "square", &[2, 3], &[2, 3], vec![square]);
    assert!(data.read::<i32>().unwrap_err().to_string().contains("another number of elements"));
    // A line that is too short is one as far as it goes, also if it is told in single elements.
    let singles = Hyperslab { block: smallvec![1], count: smallvec![8], ..Hyperslab::block(&[1], &[1]) };
    let line = piece(".", "/line", Selection::Hyperslab(singles), Selection::block(&[0], &[8]));
    assert_eq!(make(&file, "short", &[8], &[8], vec![line]).read::<i32>().unwrap(), [2, 3, 4, 5, -1, -1, -1, -1]);
}
