//! References that are stored in elements: what they refer to.

use h5live_format::{
    Addr, GlobalHeapId, OldRegion, Record, ReferenceBlob, ReferenceElement, ReferencePart, ReferenceValue,
    decode_prefix, decode_prefix_with, decode_with,
};
use h5live_model::{ObjectId, ReferenceKind, Referent, ReferentPart};

use crate::session::Session;
use crate::{Error, Result};

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Session {
    /// What a stored reference refers to; `None` if it is null.
    ///
    /// # Errors
    /// If the reference or what the heap holds for it is damaged.
    pub fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        match kind {
            ReferenceKind::Object1 => Ok(self.token(element).map(|object| whole(None, object))),
            ReferenceKind::Region1 => {
                let (place, _) = decode_prefix::<GlobalHeapId>(element, self.cache.widths()).map_err(damaged)?;
                if !place.is_defined() {
                    return Ok(None);
                }
                let region: OldRegion = self.in_blob(place, OldRegion::default())?;
                let object = ObjectId(region.dataset.get().unwrap_or(u64::MAX).into());
                let part = ReferentPart::Region(region.selection.selection);
                Ok(Some(Referent { file: None, object, part }))
            }
            _ => self.new_referent(element),
        }
    }

    fn new_referent(&self, element: &[u8]) -> Result<Option<Referent>> {
        let blank = ReferenceElement::blank(u32::try_from(element.len()).unwrap_or(u32::MAX));
        let element = decode_with(blank, element, self.cache.widths()).map_err(damaged)?;
        match element.value {
            ReferenceValue::Null => Ok(None),
            ReferenceValue::Object(token) => Ok(self.token(&token).map(|object| whole(None, object))),
            ReferenceValue::Blob { kind, external, place, .. } => {
                let blob = self.in_blob(place, ReferenceBlob::blank(kind, external))?;
                let Some(object) = self.token(&blob.token) else { return Ok(None) };
                let part = match blob.part {
                    ReferencePart::Object => ReferentPart::Whole,
                    ReferencePart::Region(selection) => ReferentPart::Region(selection.selection),
                    ReferencePart::Attribute(name) => ReferentPart::Attribute(name),
                };
                Ok(Some(Referent { file: blob.file, object, part }))
            }
        }
    }

    /// The object with a token, which is the address of its header.
    fn token(&self, token: &[u8]) -> Option<ObjectId> {
        let addr = number(token);
        (addr != 0 && addr != self.cache.widths().offset.max()).then(|| ObjectId(addr.into()))
    }

    fn in_blob<R: Record>(&self, place: GlobalHeapId, blank: R) -> Result<R> {
        let bytes = self.heap_object(place)?;
        let decoded = decode_prefix_with(blank, &bytes, self.cache.widths());
        decoded
            .map(|(record, _)| record)
            .map_err(|source| Error::Cache(h5live_cache::Error::Decode { at: place.collection, source }))
    }
}

fn whole(file: Option<h5live_model::Name>, object: ObjectId) -> Referent {
    Referent { file, object, part: ReferentPart::Whole }
}

fn damaged(source: h5live_format::DecodeError) -> Error {
    Error::Message { header: Addr::UNDEFINED, source }
}
