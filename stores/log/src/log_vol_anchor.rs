//! Anchors of Log VOL: datasets with a null dataspace, whose attributes say what the dataset is like.
//!
//! Log VOL keeps a number and two extents. What this program adds begins with an underscore, too, so Log VOL passes over
//! it ([`crate::names::STORAGE`] and the filters).

use h5live_model::{AllocationTime, AttributeData, DatasetSpec, Dataspace, Layout, ObjectId, Shape, Store, UNLIMITED};

use crate::anchor::{AnchorDataset, i64_attribute, read_storage_attributes, refuse_anchor_without_id};
use crate::error::Result;
use crate::log_vol_root_attribute::{
    i32_list_attribute, invalid_attribute_error, list_dataspace, read_int_list_attribute,
};

/// Attributes of anchors: number, extent, largest extent.
const ID: &str = "_ID";
const DIMS: &str = "_dims";
const MAX_DIMS: &str = "_mdims";

/// The anchor at `at`; `None` if the object is none.
///
/// # Errors
/// If its attributes contradict each other; errors of the store beneath.
pub fn read_anchored_dataset(store: &dyn Store, at: ObjectId) -> Result<Option<AnchorDataset>> {
    let Some(id) = read_int_list_attribute(store, at, ID)? else {
        return refuse_anchor_without_id(store, at, &[DIMS, MAX_DIMS], ID);
    };
    let id = match id[..] {
        [id] if id >= 0 => id.cast_unsigned(),
        _ => return Err(invalid_attribute_error(ID)),
    };
    let list = |name| read_int_list_attribute(store, at, name)?.ok_or_else(|| invalid_attribute_error(name));
    let dims: Vec<u64> = list(DIMS)?.into_iter().map(i64::cast_unsigned).collect();
    let max: Vec<u64> = list(MAX_DIMS)?.into_iter().map(i64::cast_unsigned).collect();
    let mut spec = DatasetSpec::clone(&*store.dataset(at)?.spec()?);
    if !read_storage_attributes(store, at, (&dims, &max), &mut spec)? {
        read_shape(&dims, &max, &mut spec)?;
    }
    spec.check()?;
    Ok(Some(AnchorDataset { number: id, spec }))
}

/// Takes up the extent and the largest extent of a dataset of which no more is known.
fn read_shape(dims: &[u64], max: &[u64], spec: &mut DatasetSpec) -> Result<()> {
    spec.filters.clear();
    if dims == max {
        spec.dataspace = if dims.is_empty() { Dataspace::Scalar } else { Dataspace::Simple(Shape::fixed(dims)) };
        spec.layout = Layout::Contiguous;
        return Ok(());
    }
    spec.dataspace = Dataspace::Simple(Shape::with_max(dims, max).ok_or_else(|| invalid_attribute_error(MAX_DIMS))?);
    // The program keeps no shape of chunks.
    let side = |(dim, max): (&u64, &u64)| if *max == UNLIMITED { 1 } else { (*dim).max(1) };
    spec.layout = Layout::Chunked(dims.iter().zip(max).map(side).collect());
    Ok(())
}

/// The dataset that the file gets.
pub fn placeholder_spec(anchor: &AnchorDataset) -> DatasetSpec {
    let mut fill = anchor.spec.fill.clone();
    fill.allocation = AllocationTime::Late;
    DatasetSpec {
        datatype: anchor.spec.datatype.clone(),
        committed_datatype: anchor.spec.committed_datatype,
        dataspace: Dataspace::Null,
        layout: Layout::Contiguous,
        fill,
        ..DatasetSpec::default()
    }
}

fn long_list(name: &str, values: &[u64]) -> AttributeData {
    let values: Vec<i64> = values.iter().map(|value| value.cast_signed()).collect();
    i64_attribute(name, &values, list_dataspace(values.len()))
}

/// The attributes that the anchor gets. Its number fits four bytes.
pub fn anchor_attributes(anchor: &AnchorDataset) -> Vec<AttributeData> {
    let mut attributes = vec![
        dims_attribute(anchor.spec.dataspace.dims()),
        long_list(MAX_DIMS, anchor.spec.dataspace.max_dims()),
        i32_list_attribute(ID, &[i32::try_from(anchor.number).unwrap_or(i32::MAX)]),
    ];
    attributes.extend(anchor.storage_attributes());
    attributes
}

/// The attribute with the dimensions of a dataset.
pub fn dims_attribute(dims: &[u64]) -> AttributeData {
    long_list(DIMS, dims)
}
