//! Anchors: the datasets of the file that stand for those whose elements are in the log.
//!
//! An anchor is a scalar of the dataset's datatype. Its attributes say what the dataset is like.

use h5live_model::{
    AllocationTime, AttributeData, ByteOrder, DatasetSpec, Dataspace, Datatype, Error, FillTime, FilterSpec, Layout,
    Name, ObjectId, Shape, Sign, Store, UNLIMITED,
};

use crate::error::{LogError, Result};
use crate::names;

/// The largest element that a scalar in an object header may be (bytes; format specification 4.0, IV.A.2.i).
const MAX_COMPACT_BYTES: u32 = 60_000;
/// The numbers of [`names::STORAGE`] before the sides of a chunk.
const STORAGE_FIELDS: usize = 4;
/// Numbers of a filter before its parameters.
const FILTER_FIELDS: usize = 3;
/// What errors call it.
const OF_ANCHOR: &str = "an anchor dataset";

/// The description of an anchor, as the file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct AnchorDataset {
    /// The number of the dataset.
    pub number: u64,
    /// The dataset that it stands for, with the extent of [`names::SHAPE`].
    pub spec: DatasetSpec,
}

/// Whether the elements of such a dataset go into the log. Others are kept by the store beneath.
pub fn is_logged(spec: &DatasetSpec) -> bool {
    let has_elements = spec.dataspace != Dataspace::Null;
    has_elements && matches!(spec.layout, Layout::Compact | Layout::Contiguous | Layout::Chunked(_))
}

/// An attribute of integers of eight bytes.
pub fn i64_attribute(name: &str, values: &[i64], dataspace: Dataspace) -> AttributeData {
    AttributeData {
        name: Name::from(name),
        datatype: Datatype::integer(8, ByteOrder::Little, Sign::Signed),
        committed_datatype: None,
        dataspace,
        value: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        creation_order: None,
    }
}

/// An attribute of one integer of eight bytes.
pub fn i64_scalar_attribute(name: &str, value: i64) -> AttributeData {
    i64_attribute(name, &[value], Dataspace::Scalar)
}

/// An attribute of a list of integers of eight bytes.
pub fn i64_list_attribute(name: &str, values: &[i64]) -> AttributeData {
    i64_attribute(name, values, Dataspace::Simple(Shape::fixed(&[values.len() as u64])))
}

/// The integers of an attribute; `None` if there is no such attribute.
pub fn read_i64_list_attribute(
    store: &dyn Store,
    id: ObjectId,
    name: &'static str,
    owner: &'static str,
) -> Result<Option<Vec<i64>>> {
    let Some(found) = store.attribute(id, &Name::from(name))? else { return Ok(None) };
    let is_integer = found.datatype == Datatype::integer(8, ByteOrder::Little, Sign::Signed);
    if !is_integer || found.value.len() % 8 != 0 {
        return Err(LogError::InvalidAttribute { attribute: name, of: owner }.into());
    }
    Ok(Some(found.value.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()))
}

/// The integer of an attribute; `None` if there is no such attribute.
pub fn read_i64_attribute(
    store: &dyn Store,
    id: ObjectId,
    name: &'static str,
    owner: &'static str,
) -> Result<Option<i64>> {
    match read_i64_list_attribute(store, id, name, owner)?.as_deref() {
        None => Ok(None),
        Some([value]) => Ok(Some(*value)),
        Some(_) => Err(LogError::InvalidAttribute { attribute: name, of: owner }.into()),
    }
}

fn numbers(values: &[u64]) -> Vec<i64> {
    values.iter().map(|value| value.cast_signed()).collect()
}

/// The attribute with the dimensions of a dataset.
pub fn dims_attribute(dims: &[u64]) -> AttributeData {
    i64_list_attribute(names::SHAPE, &numbers(dims))
}

impl AnchorDataset {
    /// The dataset that the file gets.
    pub fn placeholder_spec(&self) -> DatasetSpec {
        let is_small = self.spec.datatype.size() <= MAX_COMPACT_BYTES;
        let mut fill = self.spec.fill.clone();
        fill.allocation = if is_small { AllocationTime::Early } else { AllocationTime::Late };
        DatasetSpec {
            datatype: self.spec.datatype.clone(),
            committed_datatype: self.spec.committed_datatype,
            dataspace: Dataspace::Scalar,
            layout: if is_small { Layout::Compact } else { Layout::Contiguous },
            fill,
            ..DatasetSpec::default()
        }
    }

    /// The attributes that the anchor gets.
    pub fn anchor_attributes(&self) -> Vec<AttributeData> {
        let dataspace = &self.spec.dataspace;
        let mut attributes = vec![
            i64_scalar_attribute(names::DATASET_NUMBER, self.number.cast_signed()),
            dims_attribute(dataspace.dims()),
            i64_list_attribute(names::MAX_SHAPE, &numbers(dataspace.max_dims())),
        ];
        attributes.extend(self.storage_attributes());
        attributes
    }

    /// Those that say what the dataset would be without the log.
    pub fn storage_attributes(&self) -> Vec<AttributeData> {
        let DatasetSpec { dataspace, layout, fill, filters, unfiltered_partial_chunks, .. } = &self.spec;
        let (class, sides) = match layout {
            Layout::Compact => (0, &[][..]),
            Layout::Chunked(sides) => (2, &sides[..]),
            _ => (1, &[][..]),
        };
        let (is_scalar, allocation, time) = (
            i64::from(*dataspace == Dataspace::Scalar),
            match fill.allocation {
                AllocationTime::Early => 1,
                AllocationTime::Late => 2,
                AllocationTime::Incremental => 3,
            },
            match fill.time {
                FillTime::Allocation => 0,
                FillTime::Never => 1,
                FillTime::IfSet => 2,
            },
        );
        let mut storage = vec![class, allocation, time, is_scalar | i64::from(*unfiltered_partial_chunks) << 1];
        storage.extend(numbers(sides));
        let mut attributes = vec![i64_list_attribute(names::STORAGE, &storage)];
        if !filters.is_empty() {
            let mut flat = Vec::new();
            for filter in filters {
                flat.extend([filter.id.into(), filter.optional.into(), filter.params.len() as i64]);
                flat.extend(filter.params.iter().map(|param| i64::from(*param)));
            }
            attributes.push(i64_list_attribute(names::FILTERS, &flat));
        }
        attributes.extend(filter_names(filters));
        attributes
    }

    /// The anchor at `id`, and what it says; `None` if the object is no anchor.
    ///
    /// # Errors
    /// If its attributes contradict each other; errors of the store beneath.
    pub fn read(store: &dyn Store, object: ObjectId) -> Result<Option<AnchorDataset>> {
        let Some(id) = read_i64_attribute(store, object, names::DATASET_NUMBER, OF_ANCHOR)? else {
            return refuse_anchor_without_id(
                store,
                object,
                &[names::SHAPE, names::MAX_SHAPE, names::STORAGE],
                names::DATASET_NUMBER,
            );
        };
        let list = |name| -> Result<Vec<u64>> {
            let found = read_i64_list_attribute(store, object, name, OF_ANCHOR)?.ok_or_else(|| missing(name))?;
            Ok(found.into_iter().map(i64::cast_unsigned).collect())
        };
        let (dims, max) = (list(names::SHAPE)?, list(names::MAX_SHAPE)?);
        let mut spec = DatasetSpec::clone(&*store.dataset(object)?.spec()?);
        if !read_storage_attributes(store, object, (&dims, &max), &mut spec)? {
            return Err(missing(names::STORAGE));
        }
        spec.check()?;
        Ok(Some(AnchorDataset { number: id.cast_unsigned(), spec }))
    }
}

/// What an object is that lacks the attribute `id_attribute` of anchors: no anchor, if it has none of the `other_attributes` either.
///
/// # Errors
/// If it has one; errors of the store.
pub fn refuse_anchor_without_id(
    store: &dyn Store,
    object: ObjectId,
    other_attributes: &[&str],
    id_attribute: &'static str,
) -> Result<Option<AnchorDataset>> {
    for name in other_attributes {
        if store.attribute(object, &Name::from(*name))?.is_some() {
            return Err(missing(id_attribute));
        }
    }
    Ok(None)
}

fn missing(attribute: &'static str) -> Error {
    LogError::MissingPart(format!("attribute {attribute:?} of {OF_ANCHOR}")).into()
}

/// Takes up what the attributes of an anchor say the dataset would be without the log. `shape` are its extent and its
/// largest extent. Says whether there are such attributes.
///
/// # Errors
/// If they contradict each other; errors of the store beneath.
pub fn read_storage_attributes(
    store: &dyn Store,
    object: ObjectId,
    shape: (&[u64], &[u64]),
    spec: &mut DatasetSpec,
) -> Result<bool> {
    let misfit = |attribute| LogError::InvalidAttribute { attribute, of: OF_ANCHOR };
    let Some(storage) = read_i64_list_attribute(store, object, names::STORAGE, OF_ANCHOR)? else { return Ok(false) };
    let Some(([class, allocation, time, flags], sides)) = storage.split_first_chunk::<STORAGE_FIELDS>() else {
        return Err(misfit(names::STORAGE).into());
    };
    let (dims, max) = shape;
    spec.dataspace = match (flags & 1 == 1, dims == max) {
        (true, _) => Dataspace::Scalar,
        (false, true) => Dataspace::Simple(Shape::fixed(dims)),
        (false, false) => Dataspace::Simple(Shape::with_max(dims, max).ok_or_else(|| misfit(names::MAX_SHAPE))?),
    };
    spec.layout = match class {
        0 => Layout::Compact,
        1 => Layout::Contiguous,
        _ => Layout::Chunked(sides.iter().map(|side| side.cast_unsigned()).collect()),
    };
    spec.fill.allocation = match allocation {
        1 => AllocationTime::Early,
        2 => AllocationTime::Late,
        _ => AllocationTime::Incremental,
    };
    spec.fill.time = match time {
        0 => FillTime::Allocation,
        1 => FillTime::Never,
        _ => FillTime::IfSet,
    };
    spec.unfiltered_partial_chunks = flags & 2 == 2;
    let flat = read_i64_list_attribute(store, object, names::FILTERS, OF_ANCHOR)?.unwrap_or_default();
    let names = store.attribute(object, &Name::from(names::FILTER_NAMES))?;
    spec.filters = filters(&flat, names.map(|names| names.value)).ok_or_else(|| misfit(names::FILTERS))?;
    Ok(true)
}

/// The names of filters, each with a NUL behind it; none if no filter has a name.
fn filter_names(filters: &[FilterSpec]) -> Option<AttributeData> {
    let name = |filter: &FilterSpec| filter.name.as_ref().map_or(&[][..], |name| name.as_bytes()).to_vec();
    filters.iter().any(|filter| filter.name.is_some()).then(|| {
        let value: Vec<u8> = filters.iter().flat_map(|filter| [name(filter), vec![0]].concat()).collect();
        AttributeData {
            name: Name::from(names::FILTER_NAMES),
            datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
            committed_datatype: None,
            dataspace: Dataspace::Simple(Shape::fixed(&[value.len() as u64])),
            value,
            creation_order: None,
        }
    })
}

fn filters(mut flat: &[i64], names: Option<Vec<u8>>) -> Option<Vec<FilterSpec>> {
    let names = names.unwrap_or_default();
    let mut names = names.split(|byte| *byte == 0);
    let mut filters = Vec::new();
    while let Some(([id, optional, params], rest)) = flat.split_first_chunk::<FILTER_FIELDS>() {
        let (params, rest) = rest.split_at_checked(usize::try_from(*params).ok()?)?;
        flat = rest;
        filters.push(FilterSpec {
            id: u16::try_from(*id).ok()?,
            optional: *optional != 0,
            name: names.next().filter(|name| !name.is_empty()).map(Name::from),
            params: params.iter().map(|param| u32::try_from(*param).ok()).collect::<Option<_>>()?,
        });
    }
    flat.is_empty().then_some(filters)
}

/// The largest extent of a dataset along each dimension is [`UNLIMITED`], which is stored as -1.
const _: () = assert!(UNLIMITED.cast_signed() == -1);
