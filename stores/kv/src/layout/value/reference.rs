//! Elements that are references.
//!
//! References of HDF5 1.12 and later are as libhdf5 has them with the connector. An old reference to an object is the
//! object's token. The connector has no old references to regions: these are ours, and look as variable-length elements.

use h5live_format::{
    LibVer, Record, ReferenceBlob, ReferencedPart, Result as WireResult, StoredSelection, Widths, Wire, decode,
    decode_with, encode,
};
use h5live_model::{Name, ObjectId, ReferenceKind, Referent, ReferentPart};

use crate::layout::encode::STORED_VLEN_AND_REFERENCE_SIZES;
use crate::layout::record_key::BlobId;
use crate::layout::value::VarLenBlobRef;
use crate::layout::{RecordFormatError, Result, oid};

/// The bit of a reference to another file.
const EXTERNAL: u8 = 0x01;
/// The numbers of the kinds of references (`H5R_type_t`).
const OBJECT: u8 = 2;
const REGION: u8 = 3;
const ATTRIBUTE: u8 = 4;

/// The bounds of versions under which selections are encoded: regular hyperslabs stay regular.
const SELECTION_PROFILE: LibVer = LibVer::V112;

fn invalid(rule: &'static str) -> RecordFormatError {
    RecordFormatError::InvalidValue { record: "reference", rule }
}

/// The stored form of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EncodedReference {
    /// The element has all of it.
    InElement(Vec<u8>),
    /// The element leads to a blob.
    InBlob {
        /// What the element begins with, before the length of the blob and its UUID.
        head: Vec<u8>,
        /// The bytes of the blob.
        blob: Vec<u8>,
    },
}

impl EncodedReference {
    /// The null reference of a kind.
    pub fn null(kind: ReferenceKind) -> Self {
        EncodedReference::InElement(vec![0; STORED_VLEN_AND_REFERENCE_SIZES.reference_size(kind) as usize])
    }

    /// A reference of a kind. `rank` is that of the dataset, if it refers to a region.
    ///
    /// # Errors
    /// [`RecordFormatError::InvalidValue`] if such references do not refer to that, [`RecordFormatError::Encode`].
    pub fn new(kind: ReferenceKind, to: &Referent, rank: usize) -> Result<Self> {
        let token = oid::token(to.object);
        match (kind, &to.part, &to.file) {
            (ReferenceKind::Object1, ReferentPart::Whole, None) => Ok(EncodedReference::InElement(token.to_vec())),
            (ReferenceKind::Region1, ReferentPart::Region(selection), None) => {
                let selection = StoredSelection::new(SELECTION_PROFILE, rank, selection.clone());
                let blob = encode(&RegionBlob { token, selection }, Widths::default())?;
                Ok(EncodedReference::InBlob { head: Vec::new(), blob })
            }
            (ReferenceKind::Object1 | ReferenceKind::Region1, ..) => {
                Err(invalid("one of this kind refers to an object or to elements of a dataset of its own store"))
            }
            (_, ReferentPart::Whole, None) => {
                let mut element = [&[OBJECT, 0, oid::TOKEN_BYTES as u8][..], &token].concat();
                element.resize(STORED_VLEN_AND_REFERENCE_SIZES.standard_reference as usize, 0);
                Ok(EncodedReference::InElement(element))
            }
            (_, part, file) => {
                let (number, part) = match part {
                    ReferentPart::Whole => (OBJECT, ReferencedPart::Object),
                    ReferentPart::Region(selection) => {
                        let selection = StoredSelection::new(SELECTION_PROFILE, rank, selection.clone());
                        (REGION, ReferencedPart::Region(selection))
                    }
                    ReferentPart::Attribute(name) => (ATTRIBUTE, ReferencedPart::Attribute(name.clone())),
                };
                let head = vec![number, if file.is_some() { EXTERNAL } else { 0 }];
                let blob = ReferenceBlob { token: token.to_vec(), file: file.clone(), part };
                Ok(EncodedReference::InBlob { head, blob: encode(&blob, Widths::default())? })
            }
        }
    }

    /// The bytes to store under a UUID.
    pub fn blob(&self) -> Option<&[u8]> {
        match self {
            EncodedReference::InElement(_) => None,
            EncodedReference::InBlob { blob, .. } => Some(blob),
        }
    }

    /// The element. `blob_id` is the UUID of the blob, if there is one.
    ///
    /// # Errors
    /// [`RecordFormatError::InvalidValue`] if the blob has more than 4 GiB.
    pub fn encode_element(&self, blob_id: BlobId) -> Result<Vec<u8>> {
        match self {
            EncodedReference::InElement(element) => Ok(element.clone()),
            EncodedReference::InBlob { head, blob } => {
                let length = u32::try_from(blob.len()).map_err(|_| invalid("its blob has less than 4 GiB"))?;
                Ok([&head[..], &VarLenBlobRef { element_count: length, blob: blob_id }.encode()].concat())
            }
        }
    }
}

/// A reference as its element has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodedReference {
    /// It refers to nothing.
    Null,
    /// All of it is in the element.
    InElement(Referent),
    /// The rest is in a blob.
    InBlob {
        /// The kind of the target.
        kind: ReferenceKind,
        /// Whether it is in another file.
        external: bool,
        /// The blob, with its length.
        blob: VarLenBlobRef,
    },
}

impl DecodedReference {
    /// The reference of an element of a kind.
    ///
    /// # Errors
    /// [`RecordFormatError::InvalidValue`].
    pub fn decode(kind: ReferenceKind, element: &[u8]) -> Result<Self> {
        if element.len() != STORED_VLEN_AND_REFERENCE_SIZES.reference_size(kind) as usize {
            return Err(invalid("its element has the size of its kind"));
        }
        if element.iter().all(|byte| *byte == 0) {
            return Ok(DecodedReference::Null);
        }
        match (kind, element) {
            (ReferenceKind::Object1, token) => Ok(DecodedReference::InElement(whole(token_of(token)?))),
            (ReferenceKind::Region1, blob) => {
                let blob = VarLenBlobRef::decode(blob)?;
                Ok(DecodedReference::InBlob { kind, external: false, blob })
            }
            (_, [0, ..]) => Ok(DecodedReference::Null),
            (_, [OBJECT, 0, 16, rest @ ..]) => {
                let token = rest.get(..oid::TOKEN_BYTES).unwrap_or_default();
                Ok(DecodedReference::InElement(whole(token_of(token)?)))
            }
            (_, [number, flags @ (0 | EXTERNAL), blob @ ..]) => {
                let kind = match *number {
                    OBJECT => ReferenceKind::Object2,
                    REGION => ReferenceKind::Region2,
                    ATTRIBUTE => ReferenceKind::Attribute,
                    _ => return Err(invalid("its kind is 2 (object), 3 (region) or 4 (attribute)")),
                };
                Ok(DecodedReference::InBlob { kind, external: *flags != 0, blob: VarLenBlobRef::decode(blob)? })
            }
            _ => Err(invalid("only the flag 1 exists")),
        }
    }

    /// The target of a reference whose blob has these bytes.
    ///
    /// # Errors
    /// [`RecordFormatError::Decode`], [`RecordFormatError::InvalidValue`].
    pub fn decode_blob(kind: ReferenceKind, external: bool, bytes: &[u8]) -> Result<Referent> {
        if kind == ReferenceKind::Region1 {
            let RegionBlob { token, selection } = decode(bytes, Widths::default())?;
            let part = ReferentPart::Region(selection.selection);
            return Ok(Referent { file: None, object: oid::from_token(token), part });
        }
        let blob: ReferenceBlob = decode_with(ReferenceBlob::blank(kind, external), bytes, Widths::default())?;
        let part = match blob.part {
            ReferencedPart::Object => ReferentPart::Whole,
            ReferencedPart::Region(selection) => ReferentPart::Region(selection.selection),
            ReferencedPart::Attribute(name) => ReferentPart::Attribute(name),
        };
        Ok(Referent { file: blob.file, object: token_of(&blob.token)?, part })
    }
}

fn token_of(bytes: &[u8]) -> Result<ObjectId> {
    bytes.try_into().map(oid::from_token).map_err(|_| invalid("a token has 16 bytes"))
}

fn whole(object: ObjectId) -> Referent {
    Referent { file: None::<Name>, object, part: ReferentPart::Whole }
}

/// The data of an old reference to a region: the token of the dataset, and its elements. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct RegionBlob {
    token: [u8; oid::TOKEN_BYTES],
    selection: StoredSelection,
}

impl Record for RegionBlob {
    const NAME: &'static str = "region reference";

    fn wire(&mut self, w: &mut impl Wire) -> WireResult<()> {
        w.byte_array("token", &mut self.token)?;
        w.record(&mut self.selection)
    }
}
