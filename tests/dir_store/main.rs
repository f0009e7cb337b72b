//! What it takes to write a store: a directory of plain files (`store.rs`) passes the conformance suite, and the facade
//! works on it.

mod store;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live::model::conformance::{self, StoreFixture};
use h5live::model::{Mode, Store};
use h5live::{File, UNLIMITED};

use self::store::DirStore;

struct Directories {
    folder: tempfile::TempDir,
    made: AtomicU64,
}

impl Directories {
    fn new() -> Self {
        Directories { folder: tempfile::tempdir().unwrap(), made: AtomicU64::new(0) }
    }
}

impl StoreFixture for Directories {
    type Store = DirStore;

    fn create(&self) -> DirStore {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        DirStore::open(&self.folder.path().join(format!("{number}.dir")), Mode::Create).unwrap()
    }

    fn reopen(&self, closed: DirStore) -> DirStore {
        closed.close().unwrap();
        let number = self.made.load(Ordering::Relaxed) - 1;
        DirStore::open(&self.folder.path().join(format!("{number}.dir")), Mode::Write).unwrap()
    }

    fn open_reader(&self, _: &DirStore) -> Option<DirStore> {
        None
    }
}

conformance::suite!(Directories::new());

fn open(path: &Path, mode: Mode) -> File {
    File::with_store(Arc::new(DirStore::open(path, mode).unwrap()), "run.dir", File::options()).unwrap()
}

#[test]
fn the_facade_works_on_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.dir");
    let file = open(&path, Mode::Create);
    let data = file.new_dataset::<u32>().unlimited_rows(&[3]).chunk_shape(&[4, 3]).create("group/data").unwrap();
    let small = file.new_dataset::<f64>().shape(&[100]).max_shape(&[UNLIMITED]).chunk_shape(&[10]).deflate(4);
    let small = small.create_with_data("small", &[0.5; 100]).unwrap();
    for row in 0..10 {
        data.append(&[row, row + 1, row + 2]).unwrap();
    }
    data.write_slice(0..1, &[7u32, 8, 9]).unwrap();
    small.resize(&[25]).unwrap();
    data.new_attribute("unit").write(&[1u8]).unwrap();
    file.close().unwrap();

    let file = open(&path, Mode::Read);
    let data = file.dataset("group/data").unwrap();
    assert_eq!(data.read_slice::<u32>(0..2).unwrap(), [7, 8, 9, 1, 2, 3]);
    assert_eq!(data.shape().unwrap(), [10, 3]);
    assert_eq!(data.attribute("unit").unwrap().read::<u8>().unwrap(), [1]);
    assert_eq!(file.dataset("small").unwrap().read::<f64>().unwrap(), [0.5; 25]);
    assert!(data.append(&[1u32, 2, 3]).unwrap_err().to_string().contains("read"));
}
