use std::sync::Arc;

use h5live_format::{Addr, EncodeError, Widths};

use crate::{Cache, EdgeKind, Entry, Error, Kind, MemoryStorage, Owner, Scope, Settings, Step, Superblock};

#[derive(Debug)]
struct Block(Vec<u8>);

impl Entry for Block {
    fn image(&self, _: Widths) -> Result<Vec<u8>, EncodeError> {
        Ok(self.0.clone())
    }

    fn weight(&self) -> usize {
        self.0.len()
    }
}

#[derive(Debug)]
struct Announcer;

impl Superblock for Announcer {
    fn announce(&self, end: u64) -> Result<(Addr, Vec<u8>), EncodeError> {
        Ok((Addr::new(0), end.to_le_bytes().to_vec()))
    }
}

fn cache(storage: &MemoryStorage) -> Cache {
    Cache::writing(Arc::new(storage.clone()), Settings::default(), 8, Arc::new(Announcer))
}

const OWNER: Owner = Owner::new(Addr::new(8));

fn add(cache: &Cache, owner: Owner, bytes: &[u8]) -> crate::Handle<Block> {
    let at = cache.space().alloc(bytes.len() as u64, Kind::Metadata).unwrap();
    cache.insert(at, owner, Block(bytes.to_vec()))
}

#[test]
fn children_are_written_before_parents_and_raw_data_first() {
    let storage = MemoryStorage::new();
    let cache = cache(&storage);
    let parent = add(&cache, OWNER, b"parent");
    let child = add(&cache, OWNER, b"child");
    let chunk = cache.space().alloc(3, Kind::Raw).unwrap();
    let proxy = cache.write_raw(OWNER, chunk, 0, b"raw".to_vec());
    cache.depend(&parent, &child, EdgeKind::ObjectHeaderIndex).unwrap();
    cache.depend(&child, &proxy, EdgeKind::ExtensibleArrayChunk).unwrap();
    assert!(cache.depend(&child, &parent, EdgeKind::Link).is_err());
    let plan = cache.plan(Scope::All).unwrap();
    let [Step::Extend(len), Step::Raw(_), Step::Superblock { end, .. }, first, last] = plan.steps() else {
        panic!("{plan:?}")
    };
    assert!(len == end && *end > cache.space().end());
    assert!(matches!(first, Step::Entry { id, .. } if *id == child.id()));
    assert!(matches!(last, Step::Entry { id, .. } if *id == parent.id()));
    plan.write().unwrap();
    let mut read = [0; 3];
    cache.read_raw(chunk, 0, &mut read).unwrap();
    assert_eq!(&read, b"raw");
    assert!(cache.plan(Scope::All).unwrap().steps().is_empty());
    cache.finish(true).unwrap();
    assert_eq!(storage.to_vec().len() as u64, cache.space().end());
}

#[test]
fn an_address_has_one_type() {
    #[derive(Debug)]
    struct Other;

    impl Entry for Other {
        fn image(&self, _: Widths) -> Result<Vec<u8>, EncodeError> {
            Ok(Vec::new())
        }

        fn weight(&self) -> usize {
            0
        }
    }

    let cache = cache(&MemoryStorage::new());
    let block = add(&cache, OWNER, b"block");
    let wrong = cache.load(block.addr(), OWNER, || Ok::<_, Error>(Other));
    assert!(matches!(wrong, Err(Error::WrongType { .. })));
}
