//! How datasets are made, as JSON ("Dataset creation properties").

use h5live_model::{AllocationTime, DatasetSpec, Dataspace, Datatype, Fill, FillTime, FillValue, Layout, VarLenKind};
use serde_json::{Value, json};

use super::attribute::{DatatypeAndCommittedId, get_type, nearest_schema_type, put_type};
use super::dataspace::{dims_from_json, get_shape, put_shape};
use super::elements::{ElementCodec, StoredTokenNumbers, VarLenContent};
use super::error::{LayoutError, Result};
use super::extras::{h5live_member, set_h5live_member};
use super::filters::{
    exact_filters_from_json, exact_filters_to_json, hsds_filters_from_json, shown_hsds_filters_to_json,
};
use super::id::DomainId;
use super::json::{Members, set_member};
use super::value::{broadcast_to_members, elements_from_json, elements_to_json};

/// What is noted of a fill value that is zeros.
const ZEROS: &str = "zeros";
/// Most bytes of such a fill value.
const MAX_ZEROS: usize = 64 << 10;
const CREATION: &str = "creationProperties";
const ALLOCATION_TIMES: [(AllocationTime, &str); 3] = [
    (AllocationTime::Early, "H5D_ALLOC_TIME_EARLY"),
    (AllocationTime::Late, "H5D_ALLOC_TIME_LATE"),
    (AllocationTime::Incremental, "H5D_ALLOC_TIME_INCR"),
];
const FILL_TIMES: [(FillTime, &str); 3] = [
    (FillTime::Allocation, "H5D_FILL_TIME_ALLOC"),
    (FillTime::Never, "H5D_FILL_TIME_NEVER"),
    (FillTime::IfSet, "H5D_FILL_TIME_IFSET"),
];

/// A dataset, and its fill value as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDatasetSpec {
    /// The dataset. If elements have variable-length parts, its fill value is not filled in.
    pub spec: DatasetSpec,
    /// The fill value as it is stored, if the dataset has one.
    pub stored_fill: Option<Vec<u8>>,
    /// The class of the layout, if chunks lie in a native file.
    pub linked_chunk_layout_class: Option<String>,
}

/// Puts what a dataset is into its object. `stored_fill` is its fill value as it is stored.
///
/// # Errors
/// [`LayoutError::Unsupported`] for a layout that the schema lacks, [`LayoutError::Encode`].
pub fn put_dataset(
    members: &mut Members,
    domain: DomainId,
    spec: &DatasetSpec,
    stored_fill: Option<&[u8]>,
) -> Result<()> {
    let layout = match &spec.layout {
        Layout::Chunked(dims) => json!({"class": "H5D_CHUNKED", "dims": dims}),
        Layout::Contiguous => json!({"class": "H5D_CONTIGUOUS"}),
        Layout::Compact => json!({"class": "H5D_COMPACT"}),
        Layout::External(_) => return Err(LayoutError::Unsupported("a dataset in raw files")),
        Layout::Virtual(_) => return Err(LayoutError::Unsupported("a virtual dataset")),
    };
    put_type(
        members,
        domain,
        &DatatypeAndCommittedId { datatype: spec.datatype.clone(), committed_datatype: spec.committed_datatype },
    )?;
    put_shape(members, &spec.dataspace);
    let mut creation = json!({"layout": layout});
    let name_of = |names: &[(AllocationTime, &'static str)]| {
        names.iter().find(|(time, _)| *time == spec.fill.allocation).map(|(_, name)| *name)
    };
    set_member(&mut creation, "allocTime", json!(name_of(&ALLOCATION_TIMES)));
    let fill_time = FILL_TIMES.iter().find(|(time, _)| *time == spec.fill.time).map(|(_, name)| *name);
    set_member(&mut creation, "fillTime", json!(fill_time));
    let zeros = stored_zeros(&spec.datatype);
    if let Some(stored) = stored_fill.filter(|stored| zeros.as_deref() != Some(*stored)) {
        let (value, encoding) = elements_to_json(&nearest_schema_type(&spec.datatype)?, &[], stored);
        set_member(&mut creation, "fillValue", value);
        if let Some(encoding) = encoding {
            set_member(&mut creation, "fillValue_encoding", json!(encoding));
        }
    }
    if !spec.filters.is_empty() {
        let shown = shown_hsds_filters_to_json(&spec.filters);
        if hsds_filters_from_json(Some(&shown), spec.datatype.size())? != spec.filters {
            set_h5live_member(members, "filters", exact_filters_to_json(&spec.filters));
        }
        set_member(&mut creation, "filters", shown);
    }
    members.insert(CREATION.to_owned(), creation);
    if spec.fill.value == FillValue::Undefined {
        set_h5live_member(members, "fill", "undefined".into());
    } else if stored_fill.is_some() && stored_fill == zeros.as_deref() {
        set_h5live_member(members, "fill", ZEROS.into());
    }
    if spec.unfiltered_partial_chunks {
        set_h5live_member(members, "unfiltered_edges", true.into());
    }
    Ok(())
}

/// The dataset that an object describes.
///
/// # Errors
/// [`LayoutError`].
pub fn get_dataset(members: &Members, domain: DomainId) -> Result<StoredDatasetSpec> {
    let used = get_type(members, domain)?;
    let dataspace = get_shape(members)?;
    let empty = json!({});
    let creation = members.get(CREATION).unwrap_or(&empty);
    let (layout, reference_layout) = layout(members, creation, &dataspace)?;
    let noted_fill = h5live_member(members, "fill").and_then(Value::as_str);
    let stored_fill = match creation.get("fillValue") {
        None | Some(Value::Null) => stored_zeros(&used.datatype).filter(|_| noted_fill == Some(ZEROS)),
        Some(value) => {
            let encoding = creation.get("fillValue_encoding").and_then(Value::as_str);
            let shown = nearest_schema_type(&used.datatype)?;
            Some(elements_from_json(&shown, &[], &broadcast_to_members(&shown, value), encoding)?)
        }
    };
    let filters = match h5live_member(members, "filters") {
        Some(exact) => exact_filters_from_json(exact)?,
        None => hsds_filters_from_json(creation.get("filters"), used.datatype.size())?,
    };
    let codec = ElementCodec::new(&used.datatype);
    let value = match &stored_fill {
        _ if noted_fill == Some("undefined") => FillValue::Undefined,
        Some(stored) if !codec.has_variable_parts() => {
            let mut element = vec![0; codec.model_element_size()];
            codec.unpack(stored, 1, 0, 0, &mut element)?;
            FillValue::Value(element)
        }
        _ => FillValue::Default,
    };
    let named = |member: &str| creation.get(member).and_then(Value::as_str);
    let allocation = ALLOCATION_TIMES.iter().find(|(_, name)| named("allocTime") == Some(*name));
    let time = FILL_TIMES.iter().find(|(_, name)| named("fillTime") == Some(*name));
    let fill = Fill {
        allocation: allocation.map(|(time, _)| *time).unwrap_or_default(),
        time: time.map(|(time, _)| *time).unwrap_or_default(),
        value,
    };
    let unfiltered_partial_chunks =
        h5live_member(members, "unfiltered_edges").and_then(Value::as_bool).unwrap_or(false);
    let DatatypeAndCommittedId { datatype, committed_datatype: committed } = used;
    let spec = DatasetSpec {
        datatype,
        committed_datatype: committed,
        dataspace,
        layout,
        filters,
        fill,
        unfiltered_partial_chunks,
    };
    Ok(StoredDatasetSpec { spec, stored_fill, linked_chunk_layout_class: reference_layout })
}

/// The stored fill value that is zeros and empty sequences, if the type is one of which HSDS takes no such fill value: it
/// asks whether it is true. It uses the same without a fill value.
fn stored_zeros(datatype: &Datatype) -> Option<Vec<u8>> {
    let is_refused = match datatype {
        Datatype::VarLen(t) => t.kind == VarLenKind::Sequence,
        other => matches!(other, Datatype::Compound(_) | Datatype::Array(_)),
    };
    let codec = ElementCodec::new(datatype);
    if !is_refused || codec.model_element_size() > MAX_ZEROS {
        return None;
    }
    let mut stored = Vec::new();
    let mut nothing = |_| Ok::<_, LayoutError>(VarLenContent::StoredBytes(Vec::new()));
    codec
        .pack(&vec![0; codec.model_element_size()], &mut nothing, &mut StoredTokenNumbers::default(), &mut stored)
        .ok()?;
    Some(stored)
}

/// The layout, and its class if chunks lie in a native file. A layout beside the creation properties counts, if these do
/// not say where chunks lie.
fn layout(members: &Members, creation: &Value, dataspace: &Dataspace) -> Result<(Layout, Option<String>)> {
    const BAD: LayoutError = LayoutError::MissingOrInvalidMember { member: "layout", expected: "a layout" };
    let class = |layout: &Value| layout.get("class").and_then(Value::as_str).map(str::to_owned);
    let asked = creation.get("layout").filter(|layout| layout.is_object());
    let is_reference = asked.and_then(class).is_some_and(|class| class.contains("_REF"));
    let own = members.get("layout").filter(|layout| layout.is_object());
    let Some(layout) = (if is_reference { asked } else { own.or(asked) }) else {
        return Ok((Layout::Contiguous, None));
    };
    // Where nothing is stored, the service says no class.
    if dataspace == &Dataspace::Null {
        return Ok((Layout::Contiguous, None));
    }
    let class = class(layout).ok_or(BAD)?;
    let reference = is_reference.then(|| class.clone());
    let chunked = || {
        let found = dims_from_json(layout.get("dims").and_then(Value::as_array).ok_or(BAD)?)?;
        let fits = found.len() == dataspace.rank() && !found.contains(&0);
        if fits { Ok(Layout::Chunked(found)) } else { Err(BAD) }
    };
    let layout = match (class.as_str(), dataspace) {
        ("H5D_COMPACT", _) => Layout::Compact,
        (_, Dataspace::Scalar) => Layout::Contiguous,
        ("H5D_CONTIGUOUS" | "H5D_CONTIGUOUS_REF", _) => Layout::Contiguous,
        (class, _) if class.starts_with("H5D_CHUNKED") => chunked()?,
        _ => return Err(BAD),
    };
    Ok((layout, reference))
}

#[cfg(test)]
mod tests {
    use h5live_model::{ArrayType, ByteOrder, Sign, VarLenType};

    use super::*;

    const DOMAIN: DomainId = DomainId(7);

    fn spec_of(datatype: Datatype) -> DatasetSpec {
        DatasetSpec {
            datatype,
            committed_datatype: None,
            dataspace: Dataspace::Scalar,
            layout: Layout::Contiguous,
            filters: Vec::new(),
            fill: Fill::default(),
            unfiltered_partial_chunks: false,
        }
    }

    fn again(spec: &DatasetSpec, stored: &[u8]) -> (Members, StoredDatasetSpec) {
        let mut members = Members::new();
        put_dataset(&mut members, DOMAIN, spec, Some(stored)).unwrap();
        let record = get_dataset(&members, DOMAIN).unwrap();
        (members, record)
    }

    #[test]
    fn fill_values_of_zeros_that_the_service_does_not_take_are_noted() {
        let i16 = Datatype::integer(2, ByteOrder::Big, Sign::Signed);
        let array = Datatype::Array(ArrayType { dims: vec![3], base: Box::new(i16.clone()) });
        let kind = VarLenKind::Sequence;
        let sequence = Datatype::VarLen(VarLenType { kind, size: 16, base: Box::new(i16.clone()) });
        for (datatype, zeros, other) in
            [(array, vec![0; 6], vec![0, 1, 0, 2, 0, 3]), (sequence, vec![0; 4], vec![2, 0, 0, 0, 0, 9])]
        {
            let mut spec = spec_of(datatype);
            spec.fill.value = FillValue::Value(vec![0; spec.datatype.size() as usize]);
            let (members, record) = again(&spec, &zeros);
            assert!(members[CREATION].get("fillValue").is_none());
            assert_eq!(record.stored_fill, Some(zeros));
            let (members, record) = again(&spec, &other);
            assert!(members[CREATION].get("fillValue").is_some());
            assert_eq!(record.stored_fill, Some(other));
        }
        let spec = spec_of(i16);
        let (members, record) = again(&spec, &[0, 0]);
        assert_eq!((members[CREATION]["fillValue"].clone(), record.stored_fill), (json!(0), Some(vec![0, 0])));
    }

    #[test]
    fn what_the_service_leaves_out_or_says_in_short_is_taken() {
        let read = |json: Value| get_dataset(json.as_object().unwrap(), DOMAIN);
        let null =
            json!({"type": "H5T_IEEE_F32LE", "shape": {"class": "H5S_NULL"}, "creationProperties": {"layout": {}}});
        assert_eq!(read(null).unwrap().spec.layout, Layout::Contiguous);
        let fields = json!([{"name": "x", "type": "H5T_STD_I16LE"}, {"name": "y", "type": "H5T_STD_U8LE"}]);
        let creation = json!({"fillValue": 3, "layout": {"class": "H5D_CHUNKED", "dims": [2]}});
        let record = read(json!({"type": {"class": "H5T_COMPOUND", "fields": fields},
            "shape": {"class": "H5S_SIMPLE", "dims": [9]}, "creationProperties": creation}));
        assert_eq!(record.unwrap().stored_fill, Some(vec![3, 0, 3]));
    }
}
