//! Objects as the facade sees them, from their documents; and variable-length elements from their tokens.

use std::sync::Arc;

use h5live_model::{
    AttributeData, ChunkGrid, DatasetSpec, Error as ModelError, FillValue, Name, ObjectId, ObjectInfo, Result,
};

use crate::chunk_codec::ChunkCodec;
use crate::engine::ObjectEngine;
use crate::error::damaged_object_error;
use crate::holders::{HolderElements, VarLenElementLocation, VarLenHolder};
use crate::layout::{
    AttributeContent, ElementCodec, EntryQuery, LayoutError, LinksOrAttributes, ObjectDocument, StoredTokenNumbers,
    VarLenContent, VarLenToken,
};
use crate::session::HsdsSession;

/// An error in the middle of storing elements.
#[derive(Debug)]
pub struct PackError(pub ModelError);

impl From<LayoutError> for PackError {
    fn from(error: LayoutError) -> Self {
        PackError(ModelError::Invalid(error.to_string()))
    }
}

impl HsdsSession {
    /// How the chunks of a dataset are stored.
    pub fn chunk_codec(&self, document: &ObjectDocument, spec: &DatasetSpec) -> ChunkCodec {
        let codec = ElementCodec::new(&spec.datatype);
        let encoding = document.chunk_encoding(codec.stored_element_size());
        let elements = spec
            .grid_or_single_chunk()
            .as_ref()
            .and_then(ChunkGrid::chunk_element_count)
            .and_then(|n| usize::try_from(n).ok());
        ChunkCodec {
            element_codec: codec,
            encoding,
            chunk_element_count: elements.unwrap_or_default(),
            filter_engine: self.filter_engine.clone(),
            max_allocation: self.max_allocation,
        }
    }

    /// What a dataset is, with its fill value.
    ///
    /// # Errors
    /// [`ModelError::Store`].
    pub fn dataset_spec(&self, document: &ObjectDocument) -> Result<DatasetSpec> {
        let key = self.domain.document_key(document.id());
        let record = document.stored_dataset_spec().map_err(damaged_object_error(&key))?;
        let mut spec = record.spec;
        if let (Some(stored), FillValue::Default) = (record.stored_fill, &spec.fill.value) {
            let codec = ElementCodec::new(&spec.datatype);
            let (holder, version) =
                self.varlen_tokens.register_holder_elements(VarLenHolder::Fill(document.id()), &stored);
            let mut element = self.max_allocation.zeroed(codec.model_element_size() as u64)?;
            codec.unpack(&stored, 1, holder, version, &mut element).map_err(damaged_object_error(&key))?;
            spec.fill.value = FillValue::Value(element);
        }
        Ok(spec)
    }

    /// The attribute of an object. Its shard was read.
    ///
    /// # Errors
    /// [`ModelError::Store`].
    pub fn attribute(&self, document: &ObjectDocument, name: &Name) -> Result<Option<AttributeData>> {
        let key = self.domain.document_key(document.id());
        let Some(record) = document.attribute(name).map_err(damaged_object_error(&key))? else { return Ok(None) };
        let codec = ElementCodec::new(&record.datatype.datatype);
        let wrong = LayoutError::ValueIsNot("of the shape that is stated");
        let Some(count) = record.dataspace.element_count().and_then(|count| usize::try_from(count).ok()) else {
            return Err(damaged_object_error(&key)(wrong));
        };
        // A variable-length element takes 4 bytes at least.
        if count > 0 && codec.has_variable_parts() && count > record.stored_elements.len() / 4 {
            return Err(damaged_object_error(&key)(wrong));
        }
        let mut value = self.max_allocation.zeroed(count as u64 * codec.model_element_size() as u64)?;
        let (holder, version) = match codec.has_variable_parts() {
            true => self.varlen_tokens.register_holder_elements(
                VarLenHolder::Attribute(document.id(), name.clone()),
                &record.stored_elements,
            ),
            false => (0, 0),
        };
        codec
            .unpack(&record.stored_elements, count, holder, version, &mut value)
            .map_err(damaged_object_error(&key))?;
        let AttributeContent { datatype: used, dataspace, creation_order: order, .. } = record;
        let (datatype, committed) = (used.datatype, used.committed_datatype);
        Ok(Some(AttributeData {
            name: name.clone(),
            datatype,
            committed_datatype: committed,
            dataspace,
            value,
            creation_order: order,
        }))
    }

    /// What is known of an object beside.
    ///
    /// # Errors
    /// [`ModelError::NoObject`], [`ModelError::Store`].
    pub fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        let document = self.document(id)?;
        self.ensure_references_counted()?;
        let state = self.state();
        let links = state.reference_counts.as_ref().and_then(|uses| uses.get(&id)).copied().unwrap_or_default();
        let links = if id == self.domain.root() { links.max(1) } else { links };
        Ok(ObjectInfo {
            hard_link_count: links,
            times: document.times(),
            comment: document.comment(),
            attribute_storage: document.attribute_storage(),
        })
    }

    /// Elements as they are stored, and the tokens among them.
    ///
    /// # Errors
    /// [`ModelError::Invalid`], [`ModelError::Moved`], [`ModelError::Store`].
    pub fn pack(&self, codec: &ElementCodec, elements: &[u8]) -> Result<(Vec<u8>, StoredTokenNumbers)> {
        let (mut out, mut tokens) = (Vec::with_capacity(elements.len()), StoredTokenNumbers::default());
        let mut content = |token: VarLenToken| self.token_content(token).map_err(PackError);
        codec.pack(elements, &mut content, &mut tokens, &mut out).map_err(|error| error.0)?;
        Ok((out, tokens))
    }

    fn token_content(&self, token: VarLenToken) -> Result<VarLenContent> {
        match self.varlen_tokens.find(token)? {
            VarLenElementLocation::Unstored(bytes) => Ok(VarLenContent::ModelElements(bytes)),
            VarLenElementLocation::Stored { holder, token, cached_elements: held } => {
                let held = self.held_elements(&holder, token, held)?;
                let bytes = held
                    .element_table
                    .stored_bytes(token.element_number, &held.stored_elements)
                    .ok_or(ModelError::Moved)?;
                Ok(VarLenContent::StoredBytes(bytes.to_vec()))
            }
        }
    }

    /// The base elements of a variable-length element, as they cross the seam.
    ///
    /// # Errors
    /// [`ModelError::Moved`], [`ModelError::Store`].
    pub fn with_varlen_bytes(&self, token: VarLenToken, f: &mut dyn FnMut(&[u8])) -> Result<()> {
        match self.varlen_tokens.find(token)? {
            VarLenElementLocation::Unstored(bytes) => f(&bytes),
            VarLenElementLocation::Stored { holder, token, cached_elements: held } => {
                let held = self.held_elements(&holder, token, held)?;
                match held.element_table.stored_bytes_if_verbatim(token.element_number, &held.stored_elements) {
                    Some(bytes) => f(bytes),
                    None => {
                        let elements = held.element_table.unpack_base_elements(token, &held.stored_elements);
                        f(&elements.map_err(damaged_object_error(&self.holder_key(&holder)?))?);
                    }
                }
            }
        }
        Ok(())
    }

    fn holder_key(&self, holder: &VarLenHolder) -> Result<String> {
        Ok(match holder {
            VarLenHolder::Chunk(id, coord) => {
                self.domain.chunk_key(*id, coord, self.document(*id)?.chunk_partition_count())
            }
            VarLenHolder::Attribute(id, _) | VarLenHolder::Fill(id) => self.domain.document_key(*id),
        })
    }

    /// The stored elements of a holder, read again if they are not known any more.
    fn held_elements(
        &self,
        holder: &VarLenHolder,
        token: VarLenToken,
        held: Option<HolderElements>,
    ) -> Result<HolderElements> {
        if let Some(held) = held {
            return Ok(held);
        }
        let (key, seen) = (self.holder_key(holder)?, self.varlen_tokens.version(holder));
        let (stored, codec, count): (Arc<[u8]>, ElementCodec, usize) = match holder {
            VarLenHolder::Chunk(id, _) => {
                let document = self.document(*id)?;
                let spec = document.stored_dataset_spec().map_err(damaged_object_error(&key))?.spec;
                let form = self.chunk_codec(&document, &spec);
                let found = self.engine.get(&key)?.ok_or(ModelError::Moved)?;
                (form.decompress(&key, &found.bytes)?, form.element_codec, form.chunk_element_count)
            }
            VarLenHolder::Attribute(id, name) => {
                let document = self.document_with_entries(*id, EntryQuery::One(LinksOrAttributes::Attributes, name))?;
                let record = document.attribute(name).map_err(damaged_object_error(&key))?.ok_or(ModelError::Moved)?;
                let count = record.dataspace.element_count().and_then(|count| usize::try_from(count).ok());
                (record.stored_elements.into(), ElementCodec::new(&record.datatype.datatype), count.unwrap_or_default())
            }
            VarLenHolder::Fill(id) => {
                let record = self.document(*id)?.stored_dataset_spec().map_err(damaged_object_error(&key))?;
                let stored = record.stored_fill.ok_or(ModelError::Moved)?;
                (stored.into(), ElementCodec::new(&record.spec.datatype), 1)
            }
        };
        let entered = match holder {
            VarLenHolder::Chunk(..) => {
                self.varlen_tokens.register_holder_elements_if_current(holder.clone(), seen, &stored)
            }
            VarLenHolder::Attribute(..) | VarLenHolder::Fill(_) => {
                Some(self.varlen_tokens.register_holder_elements(holder.clone(), &stored))
            }
        };
        if entered.is_none_or(|(_, version)| version != token.holder_version) {
            return Err(ModelError::Moved);
        }
        let nodes = Arc::new(codec.varlen_element_table(&stored, count).map_err(damaged_object_error(&key))?);
        let held = HolderElements { stored_elements: stored, element_table: nodes };
        self.varlen_tokens.cache_elements_if_current(holder, token.holder_version, held.clone());
        Ok(held)
    }
}
