//! The records that describe an object, from its description and back.

use std::collections::BTreeMap;

use h5live_model::{
    DatasetSpec, Dataspace, FillValue, FilterSpecs, GroupSpec, Layout, MapSpec, ObjectId, ObjectKind, ObjectKindSpec,
    ObjectSpec, Shape,
};

use super::encode::{
    DatasetCreationProperties, DatatypeCreationProperties, FileCreationProperties, GroupCreationProperties,
    MapCreationProperties, ObjectCreationProperties, PropertyClass, decode_dataspace, decode_datatype,
    decode_properties, encode_dataspace, encode_datatype, encode_properties,
};
use super::extras::ExtraProperties;
use super::fields::MetadataField;
use super::value::decode_oid;
use super::{RecordFormatError, Result, large_contiguous_chunk_dims, oid};

/// The chunks (`[rank]`, elements) into which a large contiguous dataset is cut; `None` for every other dataset.
pub fn chunk_dims_if_large_contiguous(dataset: &DatasetSpec) -> Option<Vec<u64>> {
    match dataset.layout {
        Layout::Contiguous => large_contiguous_chunk_dims(dataset.dataspace.dims(), dataset.datatype.size()),
        _ => None,
    }
}

/// The records of an object under the dkey `/Internal Metadata`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetadataRecords(BTreeMap<MetadataField, Vec<u8>>);

impl MetadataRecords {
    /// The value of a record.
    pub fn get(&self, field: MetadataField) -> Option<&[u8]> {
        self.0.get(&field).map(Vec::as_slice)
    }

    /// Adds a record.
    pub fn insert(&mut self, field: MetadataField, value: impl Into<Vec<u8>>) {
        self.0.insert(field, value.into());
    }

    /// All records.
    pub fn iter(&self) -> impl Iterator<Item = (MetadataField, &[u8])> {
        self.0.iter().map(|(field, value)| (*field, value.as_slice()))
    }

    fn require(&self, field: MetadataField) -> Result<&[u8]> {
        self.get(field).ok_or(RecordFormatError::MissingRecord { record: field.akey_text() })
    }

    /// The records that describe a new object: what it was created with. Those that change by themselves (the number of
    /// links, times, a comment) are not among them.
    ///
    /// # Errors
    /// [`RecordFormatError::Encode`] if something does not fit its field.
    pub fn of_object(spec: &ObjectSpec) -> Result<Self> {
        let mut records = MetadataRecords::default();
        let (times, attributes) = (spec.track_times, spec.attribute_storage);
        let object =
            ObjectCreationProperties { attribute_storage: attributes, track_times: times, filters: FilterSpecs::new() };
        let mut extras =
            ExtraProperties { large_attributes: spec.expects_large_attributes, ..ExtraProperties::default() };
        let properties = match &spec.body {
            ObjectKindSpec::Group(group) => encode_properties(&group_creation(object, group))?,
            ObjectKindSpec::Dataset(dataset) => {
                extras.copy_from_dataset_spec(dataset);
                records.insert_dataset(dataset)?;
                let object = ObjectCreationProperties { filters: dataset.filters.clone(), ..object };
                let DatasetSpec { layout, fill, datatype, dataspace, .. } = &**dataset;
                let cut = chunk_dims_if_large_contiguous(dataset).map(Layout::Chunked);
                extras.was_contiguous = cut.is_some();
                let layout = cut.as_ref().unwrap_or(layout);
                encode_properties(&DatasetCreationProperties::new(object, layout, fill, datatype, dataspace))?
            }
            ObjectKindSpec::Datatype(datatype) => {
                records.insert(MetadataField::Datatype, encode_datatype(datatype)?);
                encode_properties(&DatatypeCreationProperties(object))?
            }
            ObjectKindSpec::Map(map) => {
                records.insert(MetadataField::KeyDatatype, encode_datatype(&map.key_type)?);
                records.insert(MetadataField::ValueDatatype, encode_datatype(&map.value_type)?);
                encode_properties(&MapCreationProperties(object))?
            }
        };
        records.insert(MetadataField::CreationProperties, properties);
        if extras != ExtraProperties::default() {
            records.insert(MetadataField::ExtraProperties, extras.encode()?);
        }
        Ok(records)
    }

    /// As [`MetadataRecords::of_object`], of a root group: its properties are those of the container.
    ///
    /// # Errors
    /// As [`MetadataRecords::of_object`]; [`RecordFormatError::InvalidValue`] if it is not a group.
    pub fn of_root(spec: &ObjectSpec) -> Result<Self> {
        let mut records = Self::of_object(spec)?;
        let ObjectKindSpec::Group(group) = &spec.body else {
            return Err(RecordFormatError::InvalidValue { record: "Root Group OID", rule: "the root is a group" });
        };
        let object = ObjectCreationProperties {
            attribute_storage: spec.attribute_storage,
            track_times: spec.track_times,
            filters: FilterSpecs::new(),
        };
        let properties = FileCreationProperties { root: group_creation(object, group) };
        records.insert(MetadataField::CreationProperties, encode_properties(&properties)?);
        Ok(records)
    }

    fn insert_dataset(&mut self, dataset: &DatasetSpec) -> Result<()> {
        self.insert(MetadataField::Datatype, encode_datatype(&dataset.datatype)?);
        self.insert(MetadataField::Dataspace, encode_dataspace(&dataset.dataspace)?);
        if let FillValue::Value(bytes) = &dataset.fill.value {
            self.insert(MetadataField::FillValue, bytes.as_slice());
        }
        if let Some(committed) = dataset.committed_datatype {
            self.insert(MetadataField::CommittedDatatype, oid::token(committed));
        }
        Ok(())
    }

    /// The records that an object is described by, without those that change by themselves.
    #[must_use]
    pub fn without_object_info(mut self) -> Self {
        for field in [MetadataField::RefCount, MetadataField::Times, MetadataField::Comment] {
            self.0.remove(&field);
        }
        self
    }

    /// The description of an object of this kind.
    ///
    /// # Errors
    /// [`RecordFormatError::MissingRecord`], [`RecordFormatError::Decode`], [`RecordFormatError::InvalidValue`].
    pub fn decode_object_spec(&self, kind: ObjectKind) -> Result<ObjectSpec> {
        let properties = self.require(MetadataField::CreationProperties)?;
        let extras =
            self.get(MetadataField::ExtraProperties).map_or(Ok(ExtraProperties::default()), ExtraProperties::decode)?;
        let (body, object) = match kind {
            ObjectKind::Group => {
                let group = decode_group(properties)?;
                (ObjectKindSpec::Group(GroupSpec { link_storage: group.link_storage }), group.object)
            }
            ObjectKind::Dataset => {
                let properties: DatasetCreationProperties = decode_properties(properties)?;
                (ObjectKindSpec::Dataset(Box::new(self.dataset(&properties, &extras)?)), properties.object)
            }
            ObjectKind::Datatype => {
                let DatatypeCreationProperties(object) = decode_properties(properties)?;
                (ObjectKindSpec::Datatype(decode_datatype(self.require(MetadataField::Datatype)?)?), object)
            }
            ObjectKind::Map => {
                let MapCreationProperties(object) = decode_properties(properties)?;
                let key = decode_datatype(self.require(MetadataField::KeyDatatype)?)?;
                let value = decode_datatype(self.require(MetadataField::ValueDatatype)?)?;
                (ObjectKindSpec::Map(Box::new(MapSpec { key_type: key, value_type: value })), object)
            }
        };
        let large_attributes = extras.large_attributes;
        Ok(ObjectSpec {
            body,
            attribute_storage: object.attribute_storage,
            track_times: object.track_times,
            expects_large_attributes: large_attributes,
        })
    }

    fn dataset(&self, properties: &DatasetCreationProperties, extras: &ExtraProperties) -> Result<DatasetSpec> {
        let mut fill = properties.fill();
        if let Some(bytes) = self.get(MetadataField::FillValue) {
            fill.value = FillValue::Value(bytes.to_vec());
        }
        let mut filters = properties.object.filters.clone();
        extras.restore_filter_names(&mut filters)?;
        let layout = if extras.was_contiguous { Layout::Contiguous } else { properties.layout() };
        Ok(DatasetSpec {
            datatype: decode_datatype(self.require(MetadataField::Datatype)?)?,
            committed_datatype: self.committed(MetadataField::CommittedDatatype)?,
            dataspace: self.dataspace()?,
            layout,
            filters,
            fill,
            unfiltered_partial_chunks: extras.unfiltered_partial_chunks,
        })
    }

    /// The shape of a dataset, without the rest of its description.
    ///
    /// # Errors
    /// As [`MetadataRecords::decode_object_spec`].
    pub fn dataspace(&self) -> Result<Dataspace> {
        let space = decode_dataspace(self.require(MetadataField::Dataspace)?)?;
        let extras =
            self.get(MetadataField::ExtraProperties).map_or(Ok(ExtraProperties::default()), ExtraProperties::decode)?;
        match &space {
            Dataspace::Simple(shape) if extras.states_max && !shape.states_max_dims() => {
                Ok(Shape::with_max(shape.dims(), shape.max_dims()).map_or(space.clone(), Dataspace::Simple))
            }
            _ => Ok(space),
        }
    }

    fn committed(&self, field: MetadataField) -> Result<Option<ObjectId>> {
        self.get(field).map(|token| decode_oid(field.akey_text(), token)).transpose()
    }
}

impl FromIterator<(MetadataField, Vec<u8>)> for MetadataRecords {
    fn from_iter<I: IntoIterator<Item = (MetadataField, Vec<u8>)>>(records: I) -> Self {
        MetadataRecords(records.into_iter().collect())
    }
}

impl IntoIterator for MetadataRecords {
    type Item = (MetadataField, Vec<u8>);
    type IntoIter = std::collections::btree_map::IntoIter<MetadataField, Vec<u8>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

fn group_creation(object: ObjectCreationProperties, group: &GroupSpec) -> GroupCreationProperties {
    GroupCreationProperties { object, link_storage: group.link_storage, ..GroupCreationProperties::default() }
}

/// The properties of a group, or of a container, which are those of its root group.
fn decode_group(properties: &[u8]) -> Result<GroupCreationProperties> {
    if properties.get(1) == Some(&FileCreationProperties::CLASS) {
        return Ok(decode_properties::<FileCreationProperties>(properties)?.root);
    }
    decode_properties(properties)
}
