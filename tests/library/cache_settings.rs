//! Sizes of caches, attempts of readers, and sizes of B-tree nodes, as users set them.

use std::path::Path;

use h5live::{Dataset, File, LibVer, Options, Result, UNLIMITED};

/// Bytes of metadata that the sessions of the broad scenario keep.
const SMALL_CACHE: usize = 256 << 10;

/// Groups of the broad scenario.
const GROUPS: u64 = 300;

fn small() -> Options {
    File::options().metadata_cache_bytes(SMALL_CACHE).chunk_cache_bytes(64 << 10)
}

/// What dataset `number` of the broad scenario holds in its first `rows` rows.
fn rows(number: u64, rows: u64) -> Vec<u64> {
    (0..rows * 4).map(|element| number * 1_000_000 + element).collect()
}

/// Dimensions, largest dimensions and dimensions of chunks: one for each chunk index.
const SHAPES: [(&[u64], &[u64], &[u64]); 4] = [
    (&[0, 4], &[UNLIMITED, 4], &[3, 4]),
    (&[0, 4], &[UNLIMITED, UNLIMITED], &[3, 2]),
    (&[0, 4], &[600, 4], &[3, 4]),
    (&[0, 4], &[600, 4], &[600, 4]),
];

fn make(file: &File, number: u64) -> Result<Dataset> {
    let group = file.create_group(&format!("groups/group {number}"))?;
    group.set_attribute("text", &format!("text of {number}"))?;
    let (dims, max, chunk) = SHAPES[number as usize % SHAPES.len()];
    let mut builder = group.new_dataset::<u64>().shape(dims).max_shape(max).chunk_shape(chunk);
    if number.is_multiple_of(3) {
        builder = builder.deflate(1);
    }
    let data = builder.create("data")?;
    for attribute in 0..number % 12 {
        data.set_attribute(&format!("attribute {attribute}"), &(number + attribute))?;
    }
    Ok(data)
}

/// Writes everything that the scenario has, and follows some of it.
fn write(path: &Path, libver: LibVer) -> Result<()> {
    let file = small().create().libver(libver).open(path)?;
    let all = (0..GROUPS).map(|number| make(&file, number)).collect::<Result<Vec<_>>>()?;
    let texts = file.new_dataset::<String>().unlimited_rows(&[]).create("texts")?;
    let is_live = libver >= LibVer::V110;
    if is_live {
        file.start_swmr()?;
    }
    let reader = if is_live { Some(small().swmr_read().open(path)?) } else { None };
    for round in 1..=20 {
        for (number, data) in (0..).zip(&all) {
            data.append(&rows(number, round * 10)[(round as usize - 1) * 40..])?;
        }
        texts.append(&[format!("text {round}")])?;
        file.flush()?;
        if let Some(reader) = &reader {
            let number = round * 7 % GROUPS;
            let data = reader.dataset(&format!("groups/group {number}/data"))?;
            data.refresh()?;
            assert_eq!(data.read::<u64>()?, rows(number, round * 10), "{libver:?}: {number} in round {round}");
        }
    }
    drop(reader);
    file.close()
}

/// Changes what is there, and compares everything.
fn change(path: &Path, libver: LibVer) -> Result<()> {
    let file = small().write().open(path)?;
    for number in (0..GROUPS).step_by(2) {
        file.group("groups")?.unlink(&format!("group {number}"))?;
    }
    for number in 0..500 {
        file.create_group(&format!("more/{number}"))?;
    }
    file.close()?;
    let file = small().open(path)?;
    for number in (1..GROUPS).step_by(2) {
        let data = file.dataset(&format!("groups/group {number}/data"))?;
        assert_eq!(data.read::<u64>()?, rows(number, 200), "{libver:?}: {number}");
        assert_eq!(data.attributes()?.len() as u64, number % 12);
    }
    assert_eq!(file.dataset("texts")?.read::<String>()?.len(), 20);
    assert_eq!(file.group("more")?.links()?.len(), 500);
    Ok(())
}

#[test]
fn everything_works_with_a_small_metadata_cache() {
    let folder = tempfile::tempdir().unwrap();
    for libver in [LibVer::Earliest, LibVer::V18, LibVer::V110, LibVer::V200] {
        let path = folder.path().join(format!("{libver:?}.h5"));
        write(&path, libver).unwrap_or_else(|error| panic!("{libver:?}: {error}"));
        change(&path, libver).unwrap_or_else(|error| panic!("{libver:?}: {error}"));
        h5live_checker::file::check_path(&path).unwrap().expect_clean();
    }
}

#[test]
fn a_small_metadata_cache_reads_again_what_it_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.h5");
    let file = File::create(&path).unwrap();
    (0..3000).for_each(|number| drop(file.create_group(&format!("{number}")).unwrap()));
    file.close().unwrap();
    let misses = |options: Options| {
        let file = options.open(&path).unwrap();
        for _ in 0..3 {
            (0..3000).for_each(|number| drop(file.group(&format!("{number}")).unwrap().attributes().unwrap()));
        }
        file.stats().misses
    };
    let (large, small) = (misses(File::options()), misses(small()));
    assert!(small > 2 * large, "{large} structures were read with the default, and {small} with little memory");
    let by_name = misses(File::options().setting("metadata_cache", "256KiB"));
    assert!(by_name > 2 * large, "{large} structures were read with the default, and {by_name} with little memory");
}

#[test]
fn an_object_store_works_with_little_memory_and_reads_again_what_it_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let at = |query: &str| format!("hsds:{}{query}", folder.path().join("run").display());
    let file = File::create(at("?metadata_cache=1KiB")).unwrap();
    for number in 0..200u64 {
        let group = file.create_group(&format!("group {number}")).unwrap();
        let texts = group.new_dataset::<String>().unlimited_rows(&[]).chunk_shape(&[8]).create("texts").unwrap();
        texts.append(&(0..30).map(|row| format!("text {row} of {number}")).collect::<Vec<_>>()).unwrap();
        group.set_attribute("text", &format!("attribute of {number}")).unwrap();
        file.flush().unwrap();
    }
    // What was written long ago is written again in part: the other texts of the chunk are read for that.
    for number in (0..200).step_by(7) {
        let texts = file.dataset(&format!("group {number}/texts")).unwrap();
        texts.write_slice(3..4, &["another"]).unwrap();
        texts.append(&["one more"]).unwrap();
    }
    file.close().unwrap();
    for query in ["?metadata_cache=1KiB", "?memory=64KiB", ""] {
        let file = File::open(at(query)).unwrap();
        for number in (0..200).rev() {
            let texts = file.dataset(&format!("group {number}/texts")).unwrap();
            let changed = number % 7 == 0;
            for row in [29, 3, 3, 4] {
                let expected =
                    if row == 3 && changed { "another".to_owned() } else { format!("text {row} of {number}") };
                assert_eq!(texts.read_slice::<String>(row..row + 1).unwrap(), [expected], "{query}");
            }
            assert_eq!(texts.size().unwrap(), 30 + u64::from(changed));
            let attribute: String =
                file.group(&format!("group {number}")).unwrap().attribute("text").unwrap().read_scalar().unwrap();
            assert_eq!(attribute, format!("attribute of {number}"));
        }
    }
}

#[test]
fn the_chunk_cache_is_set_by_url_in_every_store() {
    let folder = tempfile::tempdir().unwrap();
    for store in ["native", "kv", "hsds", "log"] {
        let at = |query: &str| format!("{store}:{}/{store}{query}", folder.path().display());
        let file = File::create(at("?chunk_cache=1MiB")).unwrap();
        let data = file.new_dataset::<u8>().shape(&[1000]).chunk_shape(&[1000]).deflate(1).create("data").unwrap();
        data.write(&[7; 1000]).unwrap();
        file.close().unwrap();
        let hits = |query: &str| {
            let file = File::open(at(query)).unwrap();
            let data = file.dataset("data").unwrap();
            (0..10).for_each(|at| assert_eq!(data.read_slice::<u8>(at..at + 1).unwrap(), [7]));
            file.stats().chunk_hits
        };
        let (with, without) = (hits(""), hits("?chunk_cache=0"));
        // Object stores and logs bring such pieces together by themselves.
        let has_cache = ["native", "kv"].contains(&store);
        assert_eq!((with, without), (if has_cache { 9 } else { 0 }, 0), "{store}");
        let refused = File::open(at("?chunk_cache=much")).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("the option \"chunk_cache\" of the store \"{store}\" is BYTES")),
            "{refused}"
        );
    }
}

#[test]
fn sizes_of_nodes_are_those_that_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for libver in [LibVer::Earliest, LibVer::V18, LibVer::V110] {
        let path = folder.path().join(format!("{libver:?}.h5"));
        let file = File::options().create().libver(libver).group_btree_k(3, 2).chunk_btree_k(5).open(&path).unwrap();
        let max = [UNLIMITED, UNLIMITED];
        let data =
            file.new_dataset::<u64>().shape(&[10, 10]).max_shape(&max).chunk_shape(&[1, 1]).create("data").unwrap();
        data.write(&(0..100).collect::<Vec<u64>>()).unwrap();
        (0..200).for_each(|number| drop(file.create_group(&format!("group {number}")).unwrap()));
        file.close().unwrap();
        let file = File::options().write().open(&path).unwrap();
        (0..200).step_by(3).for_each(|number| file.root().unlink(&format!("group {number}")).unwrap());
        assert_eq!(file.dataset("data").unwrap().read::<u64>().unwrap(), (0..100).collect::<Vec<_>>());
        file.close().unwrap();
        h5live_checker::file::check_path(&path).unwrap().expect_clean();
        if let Some(python) = h5live_test_support::python() {
            let program = "
    print(len(f), int(f['data'][:].sum()))
";
            let said = crate::written_files_h5py::seen(&python, program, &path);
            assert_eq!(said.trim(), "134 4950", "{libver:?}");
        }
    }
}

#[test]
fn sizes_of_nodes_that_libhdf5_does_not_take_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refused.h5");
    for options in [
        File::options().group_btree_k(0, 4),
        File::options().group_btree_k(16, 32_768),
        File::options().chunk_btree_k(0),
        File::options().chunk_btree_k(70_000),
    ] {
        let refused = options.create_new().open(&path).unwrap_err().to_string();
        assert!(refused.contains("is 1 to 32767, and not "), "{refused}");
        assert!(!path.exists(), "nothing is left");
    }
}

#[test]
fn a_structure_that_stays_torn_is_read_as_often_as_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("torn.h5");
    let file = File::create(&path).unwrap();
    file.new_dataset::<u8>().shape(&[3]).create("data").unwrap();
    file.start_swmr().unwrap();
    file.flush().unwrap();
    let header = h5live_format::Superblock::decode(&std::fs::read(&path).unwrap()).unwrap().root.header();
    let reader = |attempts: u32| File::options().swmr_read().read_attempts(attempts).open(&path);
    let readers = [1, 3].map(|attempts| (attempts, reader(attempts).unwrap()));
    // One byte of the root group's header is other than its checksum says, as long as the writer would take to write it.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[header.get().unwrap() as usize + 7] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    for (attempts, reader) in readers {
        let error = reader.root().refresh().and_then(|()| reader.dataset("data").map(drop)).unwrap_err();
        let retries = reader.stats().retries;
        assert_eq!(retries, u64::from(attempts) - 1, "{error}");
    }
    std::mem::forget(file);
}
