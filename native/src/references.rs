//! The targets of references that are stored in elements.

use h5live_format::messages::DataspaceMessage;
use h5live_format::{
    Addr, GlobalHeapId, LibVer, OldRegionReferenceBlob, Record, ReferenceBlob, ReferenceElement, ReferenceValue,
    ReferencedPart, StoredSelection, decode_prefix, decode_prefix_with, decode_with, encode,
};
use h5live_model::{self as model, Dataspace, ObjectId, ReferenceKind, Referent, ReferentPart, Selection};

use crate::session::NativeSession;
use crate::{Error, Result};

fn uint_of_token(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl NativeSession {
    /// The target of a stored reference; `None` if it is null.
    ///
    /// # Errors
    /// If the reference or its data in the heap is damaged.
    pub fn decode_reference(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        match kind {
            ReferenceKind::Object1 => Ok(self.object_of_token(element).map(|object| object_referent(None, object))),
            ReferenceKind::Region1 => {
                let (place, _) =
                    decode_prefix::<GlobalHeapId>(element, self.cache.widths()).map_err(damaged_reference_error)?;
                if !place.is_defined() {
                    return Ok(None);
                }
                let region: OldRegionReferenceBlob = self.read_blob_record(place, OldRegionReferenceBlob::default())?;
                let object = ObjectId(region.dataset.get().unwrap_or(u64::MAX).into());
                let part = ReferentPart::Region(region.selection.selection);
                Ok(Some(Referent { file: None, object, part }))
            }
            _ => self.referent_of_reference2(element),
        }
    }

    fn referent_of_reference2(&self, element: &[u8]) -> Result<Option<Referent>> {
        let blank = ReferenceElement::blank(u32::try_from(element.len()).unwrap_or(u32::MAX));
        let element = decode_with(blank, element, self.cache.widths()).map_err(damaged_reference_error)?;
        match element.value {
            ReferenceValue::Null => Ok(None),
            ReferenceValue::LocalObject(token) => {
                Ok(self.object_of_token(&token).map(|object| object_referent(None, object)))
            }
            ReferenceValue::Blob { kind, external, place, .. } => {
                let blob = self.read_blob_record(place, ReferenceBlob::blank(kind, external))?;
                let Some(object) = self.object_of_token(&blob.token) else { return Ok(None) };
                let part = match blob.part {
                    ReferencedPart::Object => ReferentPart::Whole,
                    ReferencedPart::Region(selection) => ReferentPart::Region(selection.selection),
                    ReferencedPart::Attribute(name) => ReferentPart::Attribute(name),
                };
                Ok(Some(Referent { file: blob.file, object, part }))
            }
        }
    }

    /// The stored form, of `size` bytes, of a reference; the null reference if `referent` is `None`.
    ///
    /// # Errors
    /// If a reference of the kind cannot refer to that; if there is no space in the heap.
    pub fn encode_reference(&self, kind: ReferenceKind, size: u32, referent: Option<&Referent>) -> Result<Vec<u8>> {
        let widths = self.cache.widths();
        self.cache.check_memory_allocation(Addr::UNDEFINED, size.into())?;
        let Some(referent) = referent else { return Ok(vec![0; size as usize]) };
        let addr = self.header_addr_of(referent.object)?;
        let bytes = match (kind, &referent.part, &referent.file) {
            (ReferenceKind::Object1, ReferentPart::Whole, None) => self.token_of(addr),
            (ReferenceKind::Region1, ReferentPart::Region(selection), None) => {
                let selection = self.load_selection(addr, LibVer::V18.min(self.profile), selection)?;
                let place = self
                    .global_heap
                    .write_object(&encode(&OldRegionReferenceBlob { dataset: addr, selection }, widths)?)?;
                encode(&place, widths)?
            }
            (ReferenceKind::Object1 | ReferenceKind::Region1, ..) => {
                let text = "a reference of this kind refers to an object or to elements of a dataset of its own file";
                return Err(Error::Model(model::Error::Invalid(text.into())));
            }
            (_, ReferentPart::Whole, None) => {
                encode(&ReferenceElement { size, value: ReferenceValue::LocalObject(self.token_of(addr)) }, widths)?
            }
            (_, part, file) => {
                let (kind, part) = match part {
                    ReferentPart::Whole => (ReferenceKind::Object2, ReferencedPart::Object),
                    ReferentPart::Region(selection) => {
                        let selection = self.load_selection(addr, LibVer::V112.max(self.profile), selection)?;
                        (ReferenceKind::Region2, ReferencedPart::Region(selection))
                    }
                    ReferentPart::Attribute(name) => {
                        (ReferenceKind::Attribute, ReferencedPart::Attribute(name.clone()))
                    }
                };
                let blob = ReferenceBlob { token: self.token_of(addr), file: file.clone(), part };
                let blob = encode(&blob, widths)?;
                let length = u32::try_from(blob.len()).unwrap_or(u32::MAX);
                let place = self.global_heap.write_object(&blob)?;
                let value = ReferenceValue::Blob { kind, external: file.is_some(), length, place };
                encode(&ReferenceElement { size, value }, widths)?
            }
        };
        let mut bytes = bytes;
        if bytes.len() > size as usize {
            let text = format!("a reference of {} bytes does not fit an element of {size}", bytes.len());
            return Err(Error::Model(model::Error::Invalid(text)));
        }
        bytes.resize(size as usize, 0);
        Ok(bytes)
    }

    fn token_of(&self, addr: Addr) -> Vec<u8> {
        let bytes = addr.get().unwrap_or(u64::MAX).to_le_bytes();
        bytes.get(..self.cache.widths().offset.bytes()).unwrap_or(&bytes).to_vec()
    }

    /// A selection of elements of the dataset at `addr`. A scalar may stand for a dataset whose elements another store
    /// keeps.
    fn load_selection(&self, addr: Addr, profile: LibVer, selection: &Selection) -> Result<StoredSelection> {
        let header = self.load_header(addr)?;
        let space =
            self.require_message::<DataspaceMessage>(&header, "a region is of a dataset, which has a dataspace")?;
        let rank = match space.dataspace {
            Dataspace::Scalar => selection.rank().unwrap_or(0),
            space => space.rank(),
        };
        Ok(StoredSelection::new(profile, rank, selection.clone()))
    }

    /// The object with a token, which is the address of its header.
    fn object_of_token(&self, token: &[u8]) -> Option<ObjectId> {
        let addr = uint_of_token(token);
        (addr != 0 && addr != self.cache.widths().offset.max_value()).then(|| ObjectId(addr.into()))
    }

    fn read_blob_record<R: Record>(&self, place: GlobalHeapId, blank: R) -> Result<R> {
        let bytes = self.global_heap.read_object(place)?;
        let decoded = decode_prefix_with(blank, &bytes, self.cache.widths());
        decoded
            .map(|(record, _)| record)
            .map_err(|source| Error::Cache(h5live_cache::Error::Decode { at: place.collection, source }))
    }
}

fn object_referent(file: Option<h5live_model::Name>, object: ObjectId) -> Referent {
    Referent { file, object, part: ReferentPart::Whole }
}

fn damaged_reference_error(source: h5live_format::DecodeError) -> Error {
    Error::DamagedMessage { header: Addr::UNDEFINED, source }
}
