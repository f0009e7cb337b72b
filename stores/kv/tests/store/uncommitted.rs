//! How much a session takes before it is to be flushed.

use crate::shared;

use h5live_kv::engine::{LongKeyEngine, MemoryEngine};
use h5live_kv::{KvOpenRequest, KvStore};
use h5live_model::{
    AttributeData, Dataspace, Datatype, DurabilitySupport, Error, Mode, ObjectScope, PublishLevel, Store,
    StoreErrorKind, StoreWriter,
};

use self::shared::request;

const MOST: u64 = 64 << 10;

fn attribute(number: u32) -> AttributeData {
    AttributeData {
        name: format!("{number}").into(),
        datatype: Datatype::integer(1, Default::default(), Default::default()),
        dataspace: Dataspace::Simple(h5live_model::Shape::fixed(&[1024])),
        committed_datatype: None,
        value: vec![1; 1024],
        creation_order: None,
    }
}

/// Sets attributes until one is refused; the number of those that were taken.
fn fill(store: &KvStore, first: u32) -> u32 {
    let root = store.session().root;
    for number in first..first + 1000 {
        match store.set_attribute(root, &attribute(number)) {
            Ok(()) => {}
            Err(Error::Store(error)) => {
                assert!(matches!(error.kind, StoreErrorKind::StorageFull), "{error}");
                assert!(error.to_string().contains("max_uncommitted"), "{error}");
                return number - first;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("all were taken");
}

#[test]
fn a_session_refuses_changes_beyond_its_bound_and_goes_on_after_a_commit() {
    let engine = MemoryEngine::new();
    let asked = KvOpenRequest { max_uncommitted_bytes: MOST, ..request(Mode::CreateNew, DurabilitySupport::Always, 1) };
    let store = KvStore::open(LongKeyEngine::new(engine.clone()), &asked).unwrap();
    let root = store.session().root;
    let first = fill(&store, 0);
    assert!((40..=64).contains(&first), "{first} attributes of 1 KiB were taken");
    assert_eq!(store.attribute_names(root).unwrap().len() as u32, first, "what was refused is not there in part");
    let more = fill(&store, first);
    assert!((1..=9).contains(&more), "an eighth more is taken after a refusal: {more} attributes");
    store.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let second = fill(&store, first + more);
    assert!(second.abs_diff(first) <= 2, "{first} before a commit, {second} after it");
    store.close().unwrap();
    let asked = request(Mode::Read, DurabilitySupport::Always, 2);
    let reader = KvStore::open(LongKeyEngine::new(engine.reader()), &asked).unwrap();
    assert_eq!(reader.attribute_names(root).unwrap().len() as u32, first + more + second);
}
