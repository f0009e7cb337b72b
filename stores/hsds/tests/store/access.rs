//! What users may do.

use crate::shared;

use h5live_hsds::engine::{MemoryEngine, ObjectEngine, ObjectPut};
use h5live_hsds::layout::{AccessRights, AclRight, DomainDocument};
use h5live_hsds::{HsdsOpenRequest, HsdsStore};
use h5live_model::{
    AttributeData, ByteOrder, ChunkCoord, DatasetSpec, Dataspace, Datatype, Error, LinkTarget, Mode, NewObject,
    ObjectSpec, Result, Shape, Sign, Store, StoreErrorKind,
};

use self::shared::request;

const DOMAIN_KEY: &str = "run/.domain.json";

fn open(engine: MemoryEngine, mode: Mode, user: &str) -> Result<HsdsStore> {
    HsdsStore::open(engine, &HsdsOpenRequest { acl_user: Some(user.to_owned()), ..request(mode, "run") })
}

fn byte() -> Datatype {
    Datatype::integer(1, ByteOrder::Little, Sign::Unsigned)
}

fn attribute(name: &str) -> AttributeData {
    AttributeData {
        name: name.into(),
        datatype: byte(),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: vec![1],
        creation_order: None,
    }
}

/// A domain with a dataset, in which everybody has these rights.
fn domain_with(rights: &[AclRight]) -> MemoryEngine {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "run")).unwrap();
    let dataspace = Dataspace::Simple(Shape::fixed(&[2]));
    let spec: ObjectSpec = DatasetSpec { datatype: byte(), dataspace, ..DatasetSpec::default() }.into();
    let writer = store.writer().unwrap();
    writer.create(&NewObject::linked(store.session().root, &"data".into(), &spec)).unwrap();
    writer.set_attribute(store.session().root, &attribute("old")).unwrap();
    store.close().unwrap();
    let bytes = engine.get(DOMAIN_KEY).unwrap().unwrap().bytes;
    let mut document = DomainDocument::parse(&bytes).unwrap();
    document.set_access("default", Some(AccessRights::of_rights(rights))).unwrap();
    engine.put_many(vec![ObjectPut { key: DOMAIN_KEY.to_owned(), bytes: document.to_bytes() }]).unwrap();
    engine
}

fn refused(done: Result<()>) -> Option<String> {
    match done {
        Ok(()) => None,
        Err(error @ Error::Store(_)) => {
            assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::PermissionDenied));
            Some(error.to_string())
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// What needs a right, and the right.
fn attempt(store: &HsdsStore, right: AclRight) -> Result<()> {
    let (writer, root) = (store.writer()?, store.session().root);
    match right {
        AclRight::Create => writer.set_attribute(root, &attribute("new")),
        AclRight::Update => {
            let Some(link) = store.link(root, &"data".into())? else { panic!("it is there") };
            let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
            store.dataset(id)?.write_whole_chunk(&ChunkCoord::new(&[0]), 0, &[1, 2])
        }
        AclRight::Delete => writer.remove_attribute(root, &"old".into()),
        _ => store.attribute_names(root).map(drop),
    }
}

#[test]
fn each_operation_needs_its_right_and_an_error_names_it() {
    const TRIED: [AclRight; 3] = [AclRight::Create, AclRight::Update, AclRight::Delete];
    for given in TRIED {
        let engine = domain_with(&[AclRight::Read, given]);
        for right in TRIED {
            let store = open(engine.reopen_writer(), Mode::Write, "somebody").unwrap();
            let error = refused(attempt(&store, right));
            assert_eq!(error.is_none(), right == given, "{right:?} with {given:?}: {error:?}");
            if let Some(error) = error {
                let named = format!("the user somebody does not have the right {} for /run", right.name());
                assert_eq!(error, named);
            }
            let owner = open(engine.reopen_writer(), Mode::Write, "test_user1").unwrap();
            assert_eq!(refused(attempt(&owner, right)), None, "the owner may do everything");
        }
    }
}

#[test]
fn who_may_not_read_cannot_open_a_domain_and_without_a_user_everything_is_allowed() {
    let engine = domain_with(&[AclRight::Create, AclRight::Update, AclRight::Delete]);
    let error = refused(open(engine.reader(), Mode::Read, "somebody").map(drop)).unwrap();
    assert!(error.contains("the right read"), "{error}");
    HsdsStore::open(engine.reader(), &request(Mode::Read, "run")).unwrap();
}
