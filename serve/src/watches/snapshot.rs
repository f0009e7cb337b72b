//! What a file has below a path, as far as clients are told when it changes.

use std::collections::BTreeMap;
use std::hash::Hasher;

use h5live::model::{Layout, ObjectId};
use h5live::{Error, File, Object, WalkItem};
use twox_hash::XxHash3_64;

/// What a file has below a path.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub objects: BTreeMap<String, ObjectState>,
    pub ids: Vec<ObjectId>,
    /// Whether there are more objects than are looked at.
    pub is_cut: bool,
    /// Whether there are virtual datasets, whose sources nothing watches.
    pub has_virtual: bool,
    /// What the writer has published, if the file says it.
    pub publication: Option<u64>,
}

/// What is seen of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectState {
    pub kind: &'static str,
    /// The extent of a dataset.
    pub shape: Option<Vec<u64>>,
    /// A hash of the attributes.
    pub attributes: u64,
}

impl Snapshot {
    /// Looks at everything below a path, at `max_objects` objects at most.
    ///
    /// # Errors
    /// If the path is not there or cannot be read. What else cannot be read is left out.
    pub fn take(file: &File, path: &str, max_objects: usize) -> Result<Self, Error> {
        // Before everything else: what was published then is all there.
        let publication = file.publication_count().ok();
        let mut snapshot = Snapshot { publication, ..Snapshot::default() };
        match file.object(path)? {
            Object::Group(group) => {
                for item in group.walk() {
                    if snapshot.ids.len() >= max_objects {
                        snapshot.is_cut = true;
                        break;
                    }
                    match item {
                        Ok(WalkItem::Object(object)) => snapshot.add(&object),
                        Ok(WalkItem::AlreadyVisited { path, .. } | WalkItem::UnfollowedLink { path, .. }) => {
                            let link = ObjectState { kind: "link", shape: None, attributes: 0 };
                            snapshot.objects.insert(path, link);
                        }
                        _ => {}
                    }
                }
            }
            object => snapshot.add(&object),
        }
        Ok(snapshot)
    }

    fn add(&mut self, object: &Object) {
        let kind = match object {
            Object::Group(_) => "group",
            Object::Dataset(_) => "dataset",
            Object::Datatype(_) => "datatype",
            _ => "other",
        };
        let shape = match object {
            Object::Dataset(dataset) => {
                // The extent of a virtual dataset follows from its sources, which nothing else takes up.
                if dataset.spec().is_ok_and(|spec| matches!(spec.layout, Layout::Virtual(_))) {
                    self.has_virtual = true;
                    let _ = dataset.refresh();
                }
                dataset.shape().ok()
            }
            _ => None,
        };
        let mut hash = XxHash3_64::new();
        let _ = object.file().store().for_each_attribute(object.id(), &mut |attribute| {
            // In no particular order, so that their hashes are added up.
            let mut one = XxHash3_64::new();
            one.write(attribute.name.as_bytes());
            attribute.dataspace.dims().iter().for_each(|dim| one.write_u64(*dim));
            one.write(&attribute.value);
            hash.write_u64(one.finish());
            true
        });
        self.ids.push(object.id());
        self.objects.insert(object.path().to_owned(), ObjectState { kind, shape, attributes: hash.finish() });
    }
}
