//! What cannot be stored here is refused before anything is written.

use crate::shared;

use h5live_hsds::HsdsStore;
use h5live_hsds::engine::MemoryEngine;
use h5live_model::{
    DatasetSpec, Error, LinkTarget, Mode, Name, NewObject, ObjectScope, ObjectSpec, PublishLevel, Store,
};

use self::shared::request;

#[test]
fn a_name_that_is_no_text_is_refused_and_leaves_no_object() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "run")).unwrap();
    let (writer, root) = (store.writer().unwrap(), store.session().root);
    let group = writer.create(&NewObject::linked(root, &"group".into(), &ObjectSpec::group())).unwrap();
    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let before = engine.keys();
    let bad = Name::from(&[0xff, b'x'][..]);
    for spec in [ObjectSpec::group(), DatasetSpec::default().into()] {
        let refused = writer.create(&NewObject::linked(root, &bad, &spec));
        assert!(matches!(refused, Err(Error::Unsupported(_) | Error::Invalid(_))), "{refused:?}");
    }
    for target in [LinkTarget::Hard(group), LinkTarget::Soft("/x".into())] {
        assert!(matches!(writer.add_link(root, &bad, &target), Err(Error::Unsupported(_))));
    }
    assert!(writer.rename_link((root, &"group".into()), (root, &bad)).is_err());
    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    assert_eq!(engine.keys(), before);
    assert!(store.link(root, &"group".into()).unwrap().is_some());
    store.close().unwrap();
}
