//! What a store does not claim: it refuses that, and changes nothing.

use std::collections::BTreeSet;

use super::lab::{Lab, link_names, make, name, u16le, unlimited_spec};
use crate::{
    Error, Features, InfoChange, LinkTarget, MapSpec, Name, NewObject, ObjectId, ObjectSpec, ReferenceKind,
    ReferenceType, Referent, ReferentPart, Result, Selection, Store,
};

/// Whether a store claims features. Says so if it does not.
pub(super) fn has_claimed_features(store: &impl Store, features: Features) -> bool {
    let missing = features.without(store.session().capabilities.features);
    if missing != Features::NONE {
        println!("skipped: {} does not claim {missing:?}", store.session().connector);
    }
    missing == Features::NONE
}

/// Features that are not claimed are refused as not supported.
pub fn unclaimed_features(lab: &impl Lab) {
    let store = lab.create();
    let root = store.session().root;
    let data = make(&store, "data", unlimited_spec(&[4], &[2])).id();
    let features = store.session().capabilities.features;
    for (feature, text) in Features::NAMED.iter().filter(|(feature, _)| !features.has(*feature)) {
        if let Some(refused) = attempt_feature(&store, *feature, root, data) {
            assert!(matches!(refused, Err(Error::Unsupported(_))), "{text}: {refused:?}");
        }
        assert_eq!(link_names(&store, root), BTreeSet::from([name("data")]), "{text}");
        assert_eq!(store.attribute_names(root).unwrap(), Vec::<Name>::new(), "{text}");
        assert_eq!(store.dataset(data).unwrap().spec().unwrap().dataspace.dims(), [4], "{text}");
    }
}

/// Tries what a feature is about; `None` if the seam has no call for it.
fn attempt_feature(store: &impl Store, feature: Features, root: ObjectId, data: ObjectId) -> Option<Result<()>> {
    let writer = store.writer().unwrap();
    let refer = |kind, part| {
        let form = ReferenceType { kind, size: store.session().element_sizes.reference(kind) };
        store.encode_reference(&form, &Referent { file: None, object: data, part }).map(drop)
    };
    Some(match feature {
        Features::HARD_LINKS => writer.add_link(root, &name("again"), &LinkTarget::Hard(data)),
        Features::SOFT_LINKS => writer.add_link(root, &name("soft"), &LinkTarget::Soft(name("/data"))),
        Features::EXTERNAL_LINKS => {
            let target = LinkTarget::External { file: name("other"), path: name("/data") };
            writer.add_link(root, &name("external"), &target)
        }
        Features::RENAME => writer.rename_link((root, &name("data")), (root, &name("other"))),
        Features::UNLINKED => writer.create(&NewObject::unlinked(&ObjectSpec::group())).map(drop),
        Features::COMMENTS => writer.set_info(root, &InfoChange::Comment(Some(&name("text")))),
        Features::COMMITTED_TYPES => writer.create(&NewObject::linked(root, &name("type"), &u16le().into())).map(drop),
        Features::VARIABLE_LENGTH => writer.put_blob(&[1, 2, 3], 3).map(drop),
        Features::OBJECT_REFERENCES => refer(ReferenceKind::Object1, ReferentPart::Whole),
        Features::REGION_REFERENCES => refer(ReferenceKind::Region1, ReferentPart::Region(Selection::All)),
        Features::STANDARD_REFERENCES => refer(ReferenceKind::Object2, ReferentPart::Whole),
        Features::MAPS => {
            assert!(store.maps().is_none());
            let spec = MapSpec { key: u16le(), value: u16le() };
            writer.create(&NewObject::linked(root, &name("map"), &spec.into())).map(drop)
        }
        Features::SHRINK => store.dataset(data).unwrap().set_extent(&[2]),
        _ => return None,
    })
}
