//! The records that describe an object, from its description and back.

use std::collections::BTreeMap;

use h5live_model::{
    DatasetSpec, Dataspace, FillValue, FilterSpecs, GroupSpec, Layout, MapSpec, ObjectBody, ObjectId, ObjectKind,
    ObjectSpec, Shape,
};

use super::encode::{
    DatasetCreation, DatatypeCreation, FileCreation, GroupCreation, MapCreation, ObjectCreation, PropertyClass,
    decode_dataspace, decode_datatype, decode_properties, encode_dataspace, encode_datatype, encode_properties,
};
use super::extras::Extras;
use super::fields::MetadataField;
use super::value::decode_oid;
use super::{LayoutError, Result, auto_chunk_dims, oid};

/// The chunks (`[rank]`, elements) into which a large contiguous dataset is cut; `None` for every other dataset.
pub fn automatic_chunks(dataset: &DatasetSpec) -> Option<Vec<u64>> {
    match dataset.layout {
        Layout::Contiguous => auto_chunk_dims(dataset.dataspace.dims(), dataset.datatype.size()),
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
        self.get(field).ok_or(LayoutError::Missing { record: field.name() })
    }

    /// The records that describe a new object: what it was created with. Those that change by themselves (the number of
    /// links, times, a comment) are not among them.
    ///
    /// # Errors
    /// [`LayoutError::Encode`] if something does not fit its field.
    pub fn of_object(spec: &ObjectSpec) -> Result<Self> {
        let mut records = MetadataRecords::default();
        let (times, attributes) = (spec.times, spec.attributes);
        let object = ObjectCreation { attributes, times, filters: FilterSpecs::new() };
        let mut extras = Extras { large_attributes: spec.large_attributes, ..Extras::default() };
        let properties = match &spec.body {
            ObjectBody::Group(group) => encode_properties(&group_creation(object, group))?,
            ObjectBody::Dataset(dataset) => {
                extras.set_from_dataset(dataset);
                records.insert_dataset(dataset)?;
                let object = ObjectCreation { filters: dataset.filters.clone(), ..object };
                let DatasetSpec { layout, fill, datatype, dataspace, .. } = &**dataset;
                let cut = automatic_chunks(dataset).map(Layout::Chunked);
                extras.was_contiguous = cut.is_some();
                let layout = cut.as_ref().unwrap_or(layout);
                encode_properties(&DatasetCreation::new(object, layout, fill, datatype, dataspace))?
            }
            ObjectBody::Datatype(datatype) => {
                records.insert(MetadataField::Datatype, encode_datatype(datatype)?);
                encode_properties(&DatatypeCreation(object))?
            }
            ObjectBody::Map(map) => {
                records.insert(MetadataField::KeyDatatype, encode_datatype(&map.key)?);
                records.insert(MetadataField::ValueDatatype, encode_datatype(&map.value)?);
                encode_properties(&MapCreation(object))?
            }
        };
        records.insert(MetadataField::CreationProperties, properties);
        if extras != Extras::default() {
            records.insert(MetadataField::Extras, extras.encode()?);
        }
        Ok(records)
    }

    /// As [`MetadataRecords::of_object`], of a root group: its properties are those of the container.
    ///
    /// # Errors
    /// As [`MetadataRecords::of_object`]; [`LayoutError::Value`] if it is not a group.
    pub fn of_root(spec: &ObjectSpec) -> Result<Self> {
        let mut records = Self::of_object(spec)?;
        let ObjectBody::Group(group) = &spec.body else {
            return Err(LayoutError::Value { record: "Root Group OID", rule: "the root is a group" });
        };
        let object = ObjectCreation { attributes: spec.attributes, times: spec.times, filters: FilterSpecs::new() };
        let properties = FileCreation { root: group_creation(object, group) };
        records.insert(MetadataField::CreationProperties, encode_properties(&properties)?);
        Ok(records)
    }

    fn insert_dataset(&mut self, dataset: &DatasetSpec) -> Result<()> {
        self.insert(MetadataField::Datatype, encode_datatype(&dataset.datatype)?);
        self.insert(MetadataField::Dataspace, encode_dataspace(&dataset.dataspace)?);
        if let FillValue::Value(bytes) = &dataset.fill.value {
            self.insert(MetadataField::FillValue, bytes.as_slice());
        }
        if let Some(committed) = dataset.committed {
            self.insert(MetadataField::CommittedDatatype, oid::token(committed));
        }
        Ok(())
    }

    /// The description of an object of this kind.
    ///
    /// # Errors
    /// [`LayoutError::Missing`], [`LayoutError::Decode`], [`LayoutError::Value`].
    pub fn object(&self, kind: ObjectKind) -> Result<ObjectSpec> {
        let properties = self.require(MetadataField::CreationProperties)?;
        let extras = self.get(MetadataField::Extras).map_or(Ok(Extras::default()), Extras::decode)?;
        let (body, object) = match kind {
            ObjectKind::Group => {
                let group = decode_group(properties)?;
                (ObjectBody::Group(GroupSpec { links: group.links }), group.object)
            }
            ObjectKind::Dataset => {
                let properties: DatasetCreation = decode_properties(properties)?;
                (ObjectBody::Dataset(Box::new(self.dataset(&properties, &extras)?)), properties.object)
            }
            ObjectKind::Datatype => {
                let DatatypeCreation(object) = decode_properties(properties)?;
                (ObjectBody::Datatype(decode_datatype(self.require(MetadataField::Datatype)?)?), object)
            }
            ObjectKind::Map => {
                let MapCreation(object) = decode_properties(properties)?;
                let key = decode_datatype(self.require(MetadataField::KeyDatatype)?)?;
                let value = decode_datatype(self.require(MetadataField::ValueDatatype)?)?;
                (ObjectBody::Map(Box::new(MapSpec { key, value })), object)
            }
        };
        let large_attributes = extras.large_attributes;
        Ok(ObjectSpec { body, attributes: object.attributes, times: object.times, large_attributes })
    }

    fn dataset(&self, properties: &DatasetCreation, extras: &Extras) -> Result<DatasetSpec> {
        let mut fill = properties.fill();
        if let Some(bytes) = self.get(MetadataField::FillValue) {
            fill.value = FillValue::Value(bytes.to_vec());
        }
        let mut filters = properties.object.filters.clone();
        extras.name_filters(&mut filters)?;
        let layout = if extras.was_contiguous { Layout::Contiguous } else { properties.layout() };
        Ok(DatasetSpec {
            datatype: decode_datatype(self.require(MetadataField::Datatype)?)?,
            committed: self.committed(MetadataField::CommittedDatatype)?,
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
    /// As [`MetadataRecords::object`].
    pub fn dataspace(&self) -> Result<Dataspace> {
        let space = decode_dataspace(self.require(MetadataField::Dataspace)?)?;
        let extras = self.get(MetadataField::Extras).map_or(Ok(Extras::default()), Extras::decode)?;
        match &space {
            Dataspace::Simple(shape) if extras.states_max && !shape.has_max() => {
                Ok(Shape::with_max(shape.dims(), shape.max()).map_or(space.clone(), Dataspace::Simple))
            }
            _ => Ok(space),
        }
    }

    fn committed(&self, field: MetadataField) -> Result<Option<ObjectId>> {
        self.get(field).map(|token| decode_oid(field.name(), token)).transpose()
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

fn group_creation(object: ObjectCreation, group: &GroupSpec) -> GroupCreation {
    GroupCreation { object, links: group.links, ..GroupCreation::default() }
}

/// The properties of a group, or of a container, which are those of its root group.
fn decode_group(properties: &[u8]) -> Result<GroupCreation> {
    if properties.get(1) == Some(&FileCreation::CLASS) {
        return Ok(decode_properties::<FileCreation>(properties)?.root);
    }
    decode_properties(properties)
}
