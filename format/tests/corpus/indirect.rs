//! What lies in global heaps: variable-length data, references, mappings of virtual datasets.

use h5live_format::messages::*;
use h5live_format::*;
use h5live_model::{Datatype, ReferenceKind};

use crate::walk::Walk;

impl Walk<'_> {
    /// The global heap objects that an attribute leads to.
    pub fn attribute(&mut self, attribute: &AttributeMessage) {
        if let Shareable::Inline(datatype) = &attribute.datatype {
            self.elements(&datatype.datatype, &attribute.data);
        }
    }

    /// The global heap objects that elements lead to.
    pub fn elements(&mut self, datatype: &Datatype, data: &[u8]) {
        let size = datatype.size().max(1) as usize;
        for element in data.chunks_exact(size) {
            match datatype {
                Datatype::VarLen(_) => {
                    if let Some(element) = self.compare(VarLenElement::default(), 0, element) {
                        self.heap_object(element.place);
                    }
                }
                Datatype::Reference(t) => match t.kind {
                    ReferenceKind::Object1 => {}
                    ReferenceKind::Region1 => {
                        let place = self.compare(GlobalHeapId::default(), 0, element);
                        if let Some(object) = place.and_then(|place| self.heap_object(place)) {
                            self.compare(OldRegionReferenceBlob::default(), 0, &object);
                        }
                    }
                    _ => self.reference(t.size, element),
                },
                Datatype::Array(t) => self.elements(&t.base, element),
                Datatype::Compound(t) => {
                    for member in &t.members {
                        let start = member.offset as usize;
                        let end = start + member.datatype.size() as usize;
                        self.elements(&member.datatype, element.get(start..end).unwrap_or_default());
                    }
                }
                _ => return,
            }
        }
    }

    fn reference(&mut self, size: u32, element: &[u8]) {
        let Some(element) = self.compare(ReferenceElement::blank(size), 0, element) else { return };
        if let ReferenceValue::Blob { kind, external, length, place } = element.value
            && let Some(object) = self.heap_object(place)
        {
            self.agree(object.len() == length as usize, "length of a reference");
            self.compare(ReferenceBlob::blank(kind, external), 0, &object);
        }
    }

    /// An object of a global heap.
    pub fn heap_object(&mut self, place: GlobalHeapId) -> Option<Vec<u8>> {
        let collection = place.is_defined().then_some(place.collection)?;
        if self.first_visit(collection) {
            let heap = self.compare_at(GlobalHeapCollection::default(), collection)?;
            self.collections.insert(collection, heap);
        }
        self.collections.get(&collection)?.object_bytes(place.index).map(<[u8]>::to_vec)
    }
}
