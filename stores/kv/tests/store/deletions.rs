//! What a deleted object led to is deleted with it.

use crate::shared;

use h5live_kv::engine::{LongKeyEngine, MemoryEngine};
use h5live_kv::layout::oid;
use h5live_kv::{KvStore, check_container};
use h5live_model::{
    AllocationLimit, DatasetSpec, Dataspace, Datatype, DurabilitySupport, Fill, FillValue, Mode, NewObject, NoFilters,
    ObjectKindSpec, ObjectScope, ObjectSpec, PublishLevel, Shape, Store, StoreCheckOptions, VarLenKind, VarLenType,
};

use self::shared::request;

#[test]
fn the_data_of_a_fill_value_goes_with_its_dataset() {
    let engine = MemoryEngine::new();
    let request = request(Mode::CreateNew, DurabilitySupport::Always, 5);
    let store = KvStore::open(LongKeyEngine::new(engine.clone()), &request).unwrap();
    let writer = store.writer().unwrap();
    let fill = writer.put_blob(&[1, 2], 2).unwrap();
    let base = Box::new(Datatype::integer(1, Default::default(), Default::default()));
    let dataset = DatasetSpec {
        datatype: Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: 20, base }),
        dataspace: Dataspace::Simple(Shape::fixed(&[3])),
        fill: Fill { value: FillValue::Value(fill), ..Fill::default() },
        ..DatasetSpec::default()
    };
    let spec = ObjectSpec { body: ObjectKindSpec::Dataset(Box::new(dataset)), ..ObjectSpec::group() };
    writer.create(&NewObject::linked(oid::ROOT, &"a".into(), &spec)).unwrap();
    let check = || {
        writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        let engine = LongKeyEngine::new(engine.clone());
        let report =
            check_container(&engine, StoreCheckOptions::default(), &NoFilters, AllocationLimit::default()).unwrap();
        assert!(report.has_no_findings(), "{:?}", report.findings);
        (report.object_count, report.leak_count, report.raw_bytes)
    };
    assert_eq!(check(), (2, 0, 2));
    writer.remove_link(oid::ROOT, &"a".into()).unwrap();
    assert_eq!(check(), (1, 0, 0));
}
