//! References that are variable-length elements: to regions, and those of HDF5 1.12.

use h5live_model::{Error as ModelError, ObjectKind, ReferenceKind, ReferenceType, Referent, ReferentPart, Result};

use crate::error::{damaged_object_error, invalid_or_unsupported_error};
use crate::layout::{
    MODEL_VLEN_AND_REFERENCE_SIZES, VarLenToken, variable_length_reference_bytes, varlen_reference_from_bytes,
};
use crate::session::HsdsSession;

impl HsdsSession {
    /// What the reference of a token leads to.
    ///
    /// # Errors
    /// [`ModelError::Invalid`], [`ModelError::Moved`], [`ModelError::Store`].
    pub fn referent(&self, kind: ReferenceKind, token: VarLenToken) -> Result<Option<Referent>> {
        if !token.has_bytes() {
            return Ok(None);
        }
        let mut found = None;
        self.with_varlen_bytes(token, &mut |bytes| {
            found = Some(varlen_reference_from_bytes(self.domain, kind, bytes).map_err(invalid_or_unsupported_error))
        })?;
        found.transpose()
    }

    /// The element, a token, of a reference of this type.
    ///
    /// # Errors
    /// [`ModelError::NoObject`], [`ModelError::Invalid`], [`ModelError::Unsupported`].
    pub fn encode_varlen_reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        if form.size != MODEL_VLEN_AND_REFERENCE_SIZES.reference_size(form.kind) {
            return Err(ModelError::Invalid("such elements have another size".to_owned()));
        }
        let document = to.file.is_none().then(|| self.document(to.object)).transpose()?;
        let dims = match (&to.part, document) {
            (ReferentPart::Region(_), Some(document)) if document.kind() != ObjectKind::Dataset => {
                return Err(ModelError::Invalid("only a dataset has regions".to_owned()));
            }
            (ReferentPart::Region(_), Some(document)) => {
                let key = self.domain.document_key(to.object);
                document.stored_dataset_spec().map_err(damaged_object_error(&key))?.spec.dataspace.dims().to_vec()
            }
            (ReferentPart::Region(selection), None) => vec![0; selection.rank().unwrap_or_default()],
            _ => Vec::new(),
        };
        let bytes =
            variable_length_reference_bytes(self.domain, form.kind, to, &dims).map_err(invalid_or_unsupported_error)?;
        let count = u32::try_from(bytes.len()).map_err(|_| ModelError::Unsupported("a reference of 4 GiB"))?;
        Ok(self.varlen_tokens.put_unstored(&[(&bytes, count)]).iter().flat_map(|token| token.encode()).collect())
    }
}
