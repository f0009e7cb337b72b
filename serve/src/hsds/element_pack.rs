//! Elements as HSDS sends them: without gaps, what has no fixed length in its place behind its number of bytes, and
//! references to objects as identities.

use std::ops::Range;

use h5live::model::{Datatype, ReferenceKind, VarLenKind, VarLenType};
use h5live::{File, Reference};

use super::hdf5_json_type::{Hdf5JsonType, REFERENCE_BYTES};
use super::object_ids::ObjectIds;
use crate::fault::Fault;

/// Sequences that are taken from the heap of the file at once.
const MAX_ELEMENTS_AT_ONCE: usize = 4096;

/// Makes what HSDS sends of what a file has.
pub(super) struct ElementPacker<'a> {
    pub file: &'a File,
    pub ids: &'a ObjectIds,
    /// Most bytes of all.
    pub max_bytes: u64,
}

/// The bytes of elements, one after the other.
#[derive(Debug, Default)]
pub(super) struct PackedElements {
    pub bytes: Vec<u8>,
}

impl ElementPacker<'_> {
    /// The elements of a type that the file has as these bytes. `fields` are the members of a compound that are asked for.
    ///
    /// # Errors
    /// If there is something in them that HSDS has no form for, or that cannot be read.
    pub fn encode_for_hsds(&self, datatype: &Datatype, raw: Vec<u8>) -> Result<PackedElements, Fault> {
        let size = (datatype.size() as usize).max(1);
        if is_verbatim(datatype) {
            return Ok(PackedElements { bytes: raw });
        }
        if Hdf5JsonType::of(datatype).has_unserved_reference() {
            return Err(super::faults::not_implemented(
                "References to regions and those of HDF5 1.12 are not served over HSDS's API",
            ));
        }
        let mut packed = PackedElements::default();
        if let Datatype::VarLen(t) = datatype {
            let elements: Vec<_> = raw.chunks_exact(size).collect();
            self.pack_sequences(t, &elements, &mut packed.bytes)?;
            return Ok(packed);
        }
        for element in raw.chunks_exact(size) {
            self.pack_element(datatype, element, &mut packed.bytes)?;
        }
        Ok(packed)
    }

    fn pack_element(&self, datatype: &Datatype, element: &[u8], into: &mut Vec<u8>) -> Result<(), Fault> {
        match datatype {
            Datatype::Compound(t) => {
                for member in &t.members {
                    let at = member.offset as usize;
                    self.pack_element(&member.datatype, part(element, at, member.datatype.size())?, into)?;
                }
            }
            Datatype::Array(t) if !is_verbatim(&t.base) => {
                let size = (t.base.size() as usize).max(1);
                for inner in element.chunks_exact(size) {
                    self.pack_element(&t.base, inner, into)?;
                }
            }
            Datatype::VarLen(t) => self.pack_sequences(t, &[element], into)?,
            Datatype::Reference(t) if t.kind == ReferenceKind::Object1 => self.pack_reference(element, into)?,
            Datatype::Reference(_) => {
                return Err(super::faults::not_implemented("This kind of reference is not served"));
            }
            _ => into.extend_from_slice(element),
        }
        self.check(into)
    }

    fn pack_sequences(&self, t: &VarLenType, elements: &[&[u8]], into: &mut Vec<u8>) -> Result<(), Fault> {
        for part in elements.chunks(MAX_ELEMENTS_AT_ONCE) {
            self.pack_some_sequences(t, part, into)?;
        }
        Ok(())
    }

    fn pack_some_sequences(&self, t: &VarLenType, elements: &[&[u8]], into: &mut Vec<u8>) -> Result<(), Fault> {
        let is_text = matches!(t.kind, VarLenKind::String { .. });
        let (mut stored, mut ranges) = (Vec::new(), vec![0..0; elements.len()]);
        let (mut all, max_bytes) = (0u64, self.max_bytes);
        let mut each = |number: usize, bytes: &[u8]| {
            let end = bytes.iter().position(|byte| is_text && *byte == 0).unwrap_or(bytes.len());
            let begin = stored.len();
            all = all.saturating_add(end as u64);
            if all > max_bytes {
                return;
            }
            stored.extend_from_slice(&bytes[..end]);
            if let Some(range) = ranges.get_mut(number) {
                *range = begin..stored.len();
            }
        };
        self.file.store().read_blobs(elements, &mut each).map_err(|error| Fault::of_store(&error))?;
        if all > max_bytes {
            return Err(Fault::answer_too_large(all, max_bytes));
        }
        for range in ranges {
            self.pack_sequence(t, is_text, stored.get(range).unwrap_or_default(), into)?;
        }
        Ok(())
    }

    fn pack_sequence(&self, t: &VarLenType, is_text: bool, stored: &[u8], into: &mut Vec<u8>) -> Result<(), Fault> {
        let begin = into.len();
        into.extend_from_slice(&[0; 4]);
        if is_text || is_verbatim(&t.base) {
            into.extend_from_slice(stored);
        } else {
            for inner in stored.chunks_exact((t.base.size() as usize).max(1)) {
                self.pack_element(&t.base, inner, into)?;
            }
        }
        let length = i32::try_from(into.len() - begin - 4);
        let length = length.map_err(|_| Fault::answer_too_large(into.len() as u64, self.max_bytes))?;
        if let Some(head) = into.get_mut(begin..begin + 4) {
            head.copy_from_slice(&length.to_le_bytes());
        }
        self.check(into)
    }

    /// The collection and the identity of the object to which a reference leads; nothing for one that leads nowhere.
    fn pack_reference(&self, element: &[u8], into: &mut Vec<u8>) -> Result<(), Fault> {
        let reference = Reference::new(ReferenceKind::Object1, element);
        let text = match self.file.dereference(&reference)? {
            Some(object) => self.ids.reference_to(&object).unwrap_or_default(),
            None => String::new(),
        };
        let begin = into.len();
        into.extend_from_slice(text.as_bytes());
        into.resize(begin + REFERENCE_BYTES, 0);
        Ok(())
    }

    fn check(&self, into: &[u8]) -> Result<(), Fault> {
        match into.len() as u64 {
            bytes if bytes > self.max_bytes => Err(Fault::answer_too_large(bytes, self.max_bytes)),
            _ => Ok(()),
        }
    }
}

/// Whether HSDS sends elements as the file has them.
pub(super) fn is_verbatim(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::VarLen(_) | Datatype::Reference(_) => false,
        Datatype::Array(t) => is_verbatim(&t.base),
        Datatype::Compound(t) => {
            let mut at = 0;
            t.members.iter().all(|member| {
                let is_next = member.offset == at && is_verbatim(&member.datatype);
                at = member.offset.saturating_add(member.datatype.size());
                is_next
            }) && at == t.size
        }
        _ => true,
    }
}

fn part(bytes: &[u8], at: usize, size: u32) -> Result<&[u8], Fault> {
    let range: Range<usize> = at..at.saturating_add(size as usize);
    bytes.get(range).ok_or_else(|| super::faults::bad_request("A member lies outside of its compound"))
}
