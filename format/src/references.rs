//! Elements that lead elsewhere: variable-length data, and references (format specification 4.0, VIII.B and C).

use h5live_model::{Name, ReferenceKind};

use crate::{
    Addr, DecodeError, EncodeError, Encoder, Fault, GlobalHeapId, Record, Result, StoredSelection, Width, Widths, Wire,
    encoded_len,
};

/// An element of variable-length data: how much there is, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VarLenElement {
    /// Elements of the base type; bytes of a string.
    pub length: u32,
    /// Their place.
    pub place: GlobalHeapId,
}

impl VarLenElement {
    /// The bytes of elements, one behind the other.
    ///
    /// # Errors
    /// As [`crate::encode`].
    pub fn encode_all(
        elements: impl ExactSizeIterator<Item = VarLenElement>,
        widths: Widths,
    ) -> std::result::Result<Vec<u8>, EncodeError> {
        let each = widths.offset.bytes().saturating_add(8);
        let mut encoder = Encoder::new(Self::NAME, widths).with_capacity(elements.len().saturating_mul(each));
        for mut element in elements {
            let wrong = |e: DecodeError| EncodeError { record: e.record, field: e.field, value: 0, limit: 0 };
            element.wire(&mut encoder).map_err(wrong)?;
        }
        encoder.finish()
    }
}

impl Record for VarLenElement {
    const NAME: &'static str = "variable-length element";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.u32("length", &mut self.length)?;
        w.record(&mut self.place)
    }
}

/// The data of a region reference of HDF5 1.10 and before, in the global heap.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct OldRegionReferenceBlob {
    /// The object header of the dataset.
    pub dataset: Addr,
    /// Which of its elements.
    pub selection: StoredSelection,
}

impl Record for OldRegionReferenceBlob {
    const NAME: &'static str = "region reference";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("dataset", &mut self.dataset)?;
        w.record(&mut self.selection)
    }
}

/// An element of a reference type of HDF5 1.12 and later.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReferenceElement {
    /// Bytes of an element. Context for decoding.
    pub size: u32,
    /// Its contents.
    pub value: ReferenceValue,
}

/// The contents of an element of a reference type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum ReferenceValue {
    /// Nothing.
    #[default]
    Null,
    /// An object of the same file, as its token: in a file, the address of its header in the file's width.
    LocalObject(Vec<u8>),
    /// The way to a [`ReferenceBlob`].
    Blob {
        /// The kind of its target.
        kind: ReferenceKind,
        /// Whether it is in another file.
        external: bool,
        /// Bytes of the blob.
        length: u32,
        /// Where the blob is.
        place: GlobalHeapId,
    },
}

const EXTERNAL: u8 = 0x01;

fn number(kind: ReferenceKind) -> u8 {
    match kind {
        ReferenceKind::Object1 => 0,
        ReferenceKind::Region1 => 1,
        ReferenceKind::Object2 => 2,
        ReferenceKind::Region2 => 3,
        ReferenceKind::Attribute => 4,
    }
}

impl ReferenceElement {
    /// An element of `size` bytes: context for decoding.
    pub fn blank(size: u32) -> Self {
        ReferenceElement { size, value: ReferenceValue::Null }
    }

    fn head(&self) -> (u8, u8) {
        match &self.value {
            ReferenceValue::Null => (0, 0),
            ReferenceValue::LocalObject(_) => (number(ReferenceKind::Object2), 0),
            ReferenceValue::Blob { kind, external, .. } => (number(*kind), if *external { EXTERNAL } else { 0 }),
        }
    }

    fn set_head(&mut self, w: &impl Wire, kind: u8, flags: u8) -> Result<()> {
        let kind = match (kind, flags & EXTERNAL != 0) {
            (0, _) => {
                self.value = ReferenceValue::Null;
                return Ok(());
            }
            (2, false) => {
                self.value = ReferenceValue::LocalObject(Vec::new());
                return Ok(());
            }
            (2, true) => ReferenceKind::Object2,
            (3, _) => ReferenceKind::Region2,
            (4, _) => ReferenceKind::Attribute,
            (found, _) => {
                let rule = "a reference type is 0 (none), 2 (object), 3 (region) or 4 (attribute)";
                return Err(w.fault("reference type", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        let external = flags & EXTERNAL != 0;
        self.value = ReferenceValue::Blob { kind, external, length: 0, place: GlobalHeapId::default() };
        Ok(())
    }
}

impl Record for ReferenceElement {
    const NAME: &'static str = "reference";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let start = w.position();
        let (kind, flags) = self.head();
        let kind = w.derived_u8("reference type", kind)?;
        let flags = w.derived_u8("flags", flags)?;
        w.require("flags", flags & !EXTERNAL == 0, flags.into(), "only the flag 1 exists")?;
        if w.is_decoding() {
            self.set_head(w, kind, flags)?;
        }
        match &mut self.value {
            ReferenceValue::Null => {}
            ReferenceValue::LocalObject(token) => self::token(w, token)?,
            ReferenceValue::Blob { length, place, .. } => {
                w.u32("length", length)?;
                w.record(place)?;
            }
        }
        let used = w.position().saturating_sub(start);
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        let fault = Fault::TooLarge { found: used as u64, limit: self.size.into() };
        match size.checked_sub(used).ok_or_else(|| w.fault("size", fault))? {
            0 => Ok(()),
            rest => {
                let rest = w.bounded_count("size", rest as u64, 1)?;
                w.reserved(rest)
            }
        }
    }
}

/// The token of an object, after its length.
fn token(w: &mut impl Wire, token: &mut Vec<u8>) -> Result<()> {
    let len = u8::try_from(token.len());
    let fault = Fault::TooLarge { found: token.len() as u64, limit: u8::MAX.into() };
    let len = w.derived_u8("token size", len.map_err(|_| w.fault("token size", fault))?)?;
    w.bytes("token", len.into(), token)
}

/// A name, after its length.
fn string(w: &mut impl Wire, field: &'static str, name: &mut Name) -> Result<()> {
    let len = crate::messages::count_u16(w, field, name.as_bytes().len())?;
    let len = w.derived_u16(field, len)?;
    w.name(field, len.into(), name)
}

/// The data of a reference of HDF5 1.12 and later, in the global heap.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ReferenceBlob {
    /// The token of the object: in a file, the address of its header in the file's width.
    pub token: Vec<u8>,
    /// The other file, if it is in one. Whether it is, is context for decoding.
    pub file: Option<Name>,
    /// The part of the object. Decoding gets its kind as context.
    pub part: ReferencedPart,
}

/// The part of an object to which a reference leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum ReferencedPart {
    /// All of it.
    #[default]
    Object,
    /// Elements of the dataset.
    Region(StoredSelection),
    /// The attribute of this name.
    Attribute(Name),
}

impl ReferenceBlob {
    /// A blob of this kind: context for decoding.
    pub fn blank(kind: ReferenceKind, external: bool) -> Self {
        let part = match kind {
            ReferenceKind::Object1 | ReferenceKind::Object2 => ReferencedPart::Object,
            ReferenceKind::Region1 | ReferenceKind::Region2 => ReferencedPart::Region(StoredSelection::default()),
            ReferenceKind::Attribute => ReferencedPart::Attribute(Name::default()),
        };
        ReferenceBlob { token: Vec::new(), file: external.then(Name::default), part }
    }
}

impl Record for ReferenceBlob {
    const NAME: &'static str = "reference blob";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        token(w, &mut self.token)?;
        if let Some(file) = &mut self.file {
            string(w, "file", file)?;
        }
        match &mut self.part {
            ReferencedPart::Object => Ok(()),
            ReferencedPart::Region(selection) => {
                let len = if w.is_decoding() { 0 } else { encoded_len(selection, w.widths()).unwrap_or_default() };
                let len = w.derived_uint("selection length", Width::FOUR, len as u64)?;
                let rank = w.derived_uint("rank", Width::FOUR, selection.rank as u64)?;
                let start = w.position();
                w.record(selection)?;
                let used = w.position().saturating_sub(start) as u64;
                w.require("selection length", used == len, len, "that of the selection")?;
                if selection.rank == 0 {
                    w.require("rank", rank <= 32, rank, "at most 32 dimensions")?;
                    selection.rank = usize::try_from(rank).unwrap_or(usize::MAX);
                }
                w.require("rank", selection.rank as u64 == rank, rank, "that of the selection")
            }
            ReferencedPart::Attribute(name) => string(w, "attribute", name),
        }
    }
}

#[cfg(test)]
mod tests {
    use h5live_model::Selection;

    use super::*;
    use crate::{LibVer, Widths, decode, decode_with, encode};

    #[test]
    fn elements_come_back_from_bytes() {
        let place = GlobalHeapId { collection: Addr::new(4096), index: 3 };
        let blob = |kind, external| ReferenceValue::Blob { kind, external, length: 55, place };
        for value in [
            ReferenceValue::Null,
            ReferenceValue::LocalObject(vec![1, 2, 3, 4, 5, 6, 7, 8]),
            blob(ReferenceKind::Object2, true),
            blob(ReferenceKind::Region2, false),
            blob(ReferenceKind::Attribute, true),
        ] {
            let element = ReferenceElement { size: 18, value };
            let bytes = encode(&element, Widths::default()).unwrap();
            assert_eq!(bytes.len(), 18);
            assert_eq!(decode_with(ReferenceElement::blank(18), &bytes, Widths::default()).unwrap(), element);
            assert!(encode(&ReferenceElement { size: 1, ..element }, Widths::default()).is_err());
        }
        let element = VarLenElement { length: 5, place };
        let bytes = encode(&element, Widths::default()).unwrap();
        assert_eq!(decode::<VarLenElement>(&bytes, Widths::default()).unwrap(), element);
        let twice = VarLenElement::encode_all([element, element].into_iter(), Widths::default()).unwrap();
        assert_eq!(twice, bytes.repeat(2));
        let far = VarLenElement { place: GlobalHeapId { collection: Addr::new(1 << 40), index: 1 }, ..element };
        let narrow = Widths { offset: Width::FOUR, length: Width::FOUR };
        assert!(VarLenElement::encode_all([far].into_iter(), narrow).is_err());
    }

    #[test]
    fn blobs_come_back_from_bytes() {
        let all = StoredSelection { rank: 2, ..Default::default() };
        let block = StoredSelection::new(LibVer::V112, 2, Selection::block(&[1, 2], &[3, 4]));
        for file in [None, Some(Name::from("other.h5"))] {
            for (kind, part) in [
                (ReferenceKind::Object2, ReferencedPart::Object),
                (ReferenceKind::Region2, ReferencedPart::Region(all.clone())),
                (ReferenceKind::Region2, ReferencedPart::Region(block.clone())),
                (ReferenceKind::Attribute, ReferencedPart::Attribute("units".into())),
            ] {
                let blob = ReferenceBlob { token: vec![7; 8], file: file.clone(), part };
                let bytes = encode(&blob, Widths::default()).unwrap();
                let blank = ReferenceBlob::blank(kind, file.is_some());
                assert_eq!(decode_with(blank, &bytes, Widths::default()).unwrap(), blob);
            }
        }
    }

    #[test]
    fn old_regions_come_back_from_bytes() {
        let selection = StoredSelection::new(LibVer::V18, 1, Selection::block(&[1], &[3]));
        let region = OldRegionReferenceBlob { dataset: Addr::new(800), selection };
        let bytes = encode(&region, Widths::default()).unwrap();
        assert_eq!(decode::<OldRegionReferenceBlob>(&bytes, Widths::default()).unwrap(), region);
    }
}
