//! What a store does not claim: it refuses that, and changes nothing.

use std::collections::BTreeSet;

use super::store_fixture::{StoreFixture, link_names, make, name, u16le, unlimited_spec};
use crate::{
    Error, LinkTarget, MapSpec, Name, NewObject, ObjectId, ObjectInfoChange, ObjectSpec, ReferenceKind, ReferenceType,
    Referent, ReferentPart, Result, Selection, Store, StoreFeatures,
};

/// Whether a store claims features. Says so if it does not.
pub(super) fn has_claimed_features(store: &impl Store, features: StoreFeatures) -> bool {
    let missing = features.without(store.session().capabilities.features);
    if missing != StoreFeatures::NONE {
        println!("skipped: {} does not claim {missing:?}", store.session().connector);
    }
    missing == StoreFeatures::NONE
}

/// Features that are not claimed are refused as not supported.
pub fn test_unclaimed_features(lab: &impl StoreFixture) {
    let store = lab.create();
    let root = store.session().root;
    let data = make(&store, "data", unlimited_spec(&[4], &[2])).id();
    let features = store.session().capabilities.features;
    for (feature, text) in StoreFeatures::NAMED.iter().filter(|(feature, _)| !features.has(*feature)) {
        if let Some(refused) = attempt_feature(&store, *feature, root, data) {
            assert!(matches!(refused, Err(Error::Unsupported(_))), "{text}: {refused:?}");
        }
        assert_eq!(link_names(&store, root), BTreeSet::from([name("data")]), "{text}");
        assert_eq!(store.attribute_names(root).unwrap(), Vec::<Name>::new(), "{text}");
        assert_eq!(store.dataset(data).unwrap().spec().unwrap().dataspace.dims(), [4], "{text}");
    }
}

/// Tries what a feature is about; `None` if the seam has no call for it.
fn attempt_feature(store: &impl Store, feature: StoreFeatures, root: ObjectId, data: ObjectId) -> Option<Result<()>> {
    let writer = store.writer().unwrap();
    let refer = |kind, part| {
        let form = ReferenceType { kind, size: store.session().vlen_and_reference_sizes.reference_size(kind) };
        store.encode_reference(&form, &Referent { file: None, object: data, part }).map(drop)
    };
    Some(match feature {
        StoreFeatures::HARD_LINKS => writer.add_link(root, &name("again"), &LinkTarget::Hard(data)),
        StoreFeatures::SOFT_LINKS => writer.add_link(root, &name("soft"), &LinkTarget::Soft(name("/data"))),
        StoreFeatures::EXTERNAL_LINKS => {
            let target = LinkTarget::External { file: name("other"), path: name("/data") };
            writer.add_link(root, &name("external"), &target)
        }
        StoreFeatures::RENAME => writer.rename_link((root, &name("data")), (root, &name("other"))),
        StoreFeatures::UNLINKED => writer.create(&NewObject::unlinked(&ObjectSpec::group())).map(drop),
        StoreFeatures::COMMENTS => writer.set_info(root, &ObjectInfoChange::Comment(Some(&name("text")))),
        StoreFeatures::COMMITTED_TYPES => {
            writer.create(&NewObject::linked(root, &name("type"), &u16le().into())).map(drop)
        }
        StoreFeatures::VARIABLE_LENGTH => writer.put_blob(&[1, 2, 3], 3).map(drop),
        StoreFeatures::OBJECT_REFERENCES => refer(ReferenceKind::Object1, ReferentPart::Whole),
        StoreFeatures::REGION_REFERENCES => refer(ReferenceKind::Region1, ReferentPart::Region(Selection::All)),
        StoreFeatures::STANDARD_REFERENCES => refer(ReferenceKind::Object2, ReferentPart::Whole),
        StoreFeatures::MAPS => {
            assert!(store.maps().is_none());
            let spec = MapSpec { key_type: u16le(), value_type: u16le() };
            writer.create(&NewObject::linked(root, &name("map"), &spec.into())).map(drop)
        }
        StoreFeatures::SHRINK => store.dataset(data).unwrap().set_extent(&[2]),
        _ => return None,
    })
}
