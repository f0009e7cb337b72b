//! Selections as h5json 2.0 has them (`Selection`): one slice for each dimension, or points.

use serde_json::{Value, json};

use h5live_model::{Hyperslab, Selection};

use super::error::{LayoutError, Result};

const MAGIC: &[u8; 4] = b"HSEL";
const VERSION: u64 = 1;
/// The class of selections that there is: its number, and its name.
const SIMPLE: u64 = 0;
const SIMPLE_NAME: &str = "SimpleSelection";
/// How a dimension is stored.
const SLICE: u8 = 0;
const LIST: u8 = 1;
const INDEX: u8 = 2;
/// Most dimensions.
const MAX_RANK: usize = 32;

const BAD: LayoutError = LayoutError::ValueIsNot("a reference");
const FIELDS: LayoutError = LayoutError::Unsupported("a reference to fields of a compound");
const MIXED: LayoutError = LayoutError::Unsupported("a reference to a product of lists of elements");

/// What a selection selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SelectionKind {
    /// One list of coordinates for each dimension, all of the same length.
    Points = 1,
    /// One slice for each dimension.
    Hyperslabs = 2,
    /// Everything, without dimensions.
    All = 3,
}

/// One dimension of a selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShownDim {
    Slice { start: u64, stop: u64, step: u64 },
    List(Vec<u64>),
}

/// A selection as h5json has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownSelection {
    pub(super) kind: SelectionKind,
    /// The shape of the dataset.
    pub(super) shape: Vec<u64>,
    pub(super) dims: Vec<ShownDim>,
}

/// Bytes that are left.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let len = usize::try_from(len).map_err(|_| BAD)?;
        let (taken, rest) = self.0.split_at_checked(len).ok_or(BAD)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn uint(&mut self, len: u64) -> Result<u64> {
        Ok(little_endian(self.take(len)?))
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn kind_of(number: u64) -> Result<SelectionKind> {
    let kinds = [SelectionKind::Points, SelectionKind::Hyperslabs, SelectionKind::All];
    kinds.into_iter().find(|kind| *kind as u64 == number).ok_or(BAD)
}

impl ShownSelection {
    /// The bytes of `Selection.tobytes`.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let (code, width) = match self.shape.iter().copied().max().unwrap_or_default() {
            0..=0xffff => (0, 2),
            0x1_0000..=0xffff_ffff => (1, 4),
            _ => (2, 8),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend([VERSION as u8, SIMPLE as u8, self.kind as u8, code]);
        bytes.extend(u16::try_from(self.shape.len()).map_err(|_| BAD)?.to_le_bytes());
        let put = |bytes: &mut Vec<u8>, number: u64| bytes.extend(number.to_le_bytes().iter().take(width));
        self.shape.iter().for_each(|dim| put(&mut bytes, *dim));
        // No fields of compounds.
        bytes.push(0);
        for dim in &self.dims {
            match dim {
                ShownDim::Slice { start, stop, step } => {
                    bytes.push(SLICE);
                    [start, stop, step].into_iter().for_each(|number| put(&mut bytes, *number));
                }
                ShownDim::List(list) => {
                    bytes.push(LIST);
                    bytes.extend(u32::try_from(list.len()).map_err(|_| BAD)?.to_le_bytes());
                    list.iter().for_each(|number| put(&mut bytes, *number));
                }
            }
        }
        Ok(bytes)
    }

    /// The selection that the bytes of `Selection.tobytes` are.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut from = Bytes(bytes.strip_prefix(MAGIC.as_slice()).ok_or(BAD)?);
        let head = [from.uint(1)?, from.uint(1)?];
        let (kind, code, rank) = (kind_of(from.uint(1)?)?, from.uint(1)?, from.uint(2)?);
        if head != [VERSION, SIMPLE] || code > 2 || rank > MAX_RANK as u64 {
            return Err(BAD);
        }
        let width = 2 << code;
        let shape = (0..rank).map(|_| from.uint(width)).collect::<Result<Vec<_>>>()?;
        if from.uint(1)? != 0 {
            return Err(FIELDS);
        }
        let dims = match kind {
            SelectionKind::All => Vec::new(),
            _ => (0..rank).map(|_| decode_dim(&mut from, width)).collect::<Result<_>>()?,
        };
        Ok(ShownSelection { kind, shape, dims })
    }

    /// The JSON of `Selection.to_dict`.
    pub(super) fn to_json(&self) -> Value {
        let dim = |dim: &ShownDim| match dim {
            ShownDim::Slice { start, stop, step } => {
                json!({"type": "slice", "start": start, "stop": stop, "step": step})
            }
            ShownDim::List(list) => json!({"type": "list", "values": list}),
        };
        let (kind, slices) = (self.kind as u64, self.dims.iter().map(dim).collect::<Vec<_>>());
        match self.kind {
            SelectionKind::All => json!({"class": SIMPLE_NAME, "shape": self.shape, "select_type": kind}),
            _ => json!({"class": SIMPLE_NAME, "shape": self.shape, "select_type": kind, "slices": slices}),
        }
    }

    /// The selection that a JSON of `Selection.to_dict` is.
    pub(super) fn from_json(json: &Value) -> Result<Self> {
        if json.get("class").is_some_and(|class| class.as_str() != Some(SIMPLE_NAME)) {
            return Err(BAD);
        }
        if json.get("fields").is_some_and(|fields| !fields.is_null()) {
            return Err(FIELDS);
        }
        let kind = kind_of(json.get("select_type").and_then(Value::as_u64).ok_or(BAD)?)?;
        let shape = numbers(json.get("shape"))?;
        let dims = match kind {
            SelectionKind::All => Vec::new(),
            _ => json
                .get("slices")
                .and_then(Value::as_array)
                .ok_or(BAD)?
                .iter()
                .map(dim_from_json)
                .collect::<Result<_>>()?,
        };
        let is_sound = shape.len() <= MAX_RANK && (kind == SelectionKind::All || dims.len() == shape.len());
        is_sound.then_some(ShownSelection { kind, shape, dims }).ok_or(BAD)
    }

    /// The selection that `select_type` and `selection` of HDF5/JSON are: points, or boxes with their last elements. They do
    /// not say the shape of the dataset.
    pub(super) fn from_region_json(json: &Value) -> Result<Self> {
        let list = json.get("selection").and_then(Value::as_array).filter(|list| !list.is_empty()).ok_or(BAD)?;
        match (json.get("select_type").and_then(Value::as_str), list.as_slice()) {
            (Some("H5S_SEL_POINTS"), points) => {
                of_points(points.iter().map(|point| numbers(Some(point))).collect::<Result<_>>()?)
            }
            (Some("H5S_SEL_HYPERSLABS"), [corners]) => {
                let (start, last) = (numbers(corners.get(0))?, numbers(corners.get(1))?);
                if start.len() != last.len() || start.len() > MAX_RANK {
                    return Err(BAD);
                }
                let shape: Vec<u64> = last.iter().map(|last| last.saturating_add(1)).collect();
                let dim = |(start, stop): (&u64, &u64)| ShownDim::Slice { start: *start, stop: *stop, step: 1 };
                let dims = start.iter().zip(&shape).map(dim).collect();
                Ok(ShownSelection { kind: SelectionKind::Hyperslabs, shape, dims })
            }
            (Some("H5S_SEL_HYPERSLABS"), _) => Err(LayoutError::Unsupported("a reference to several boxes")),
            _ => Err(BAD),
        }
    }

    /// The selection.
    pub(super) fn selection(&self) -> Result<Selection> {
        match self.kind {
            SelectionKind::All => Ok(Selection::All),
            SelectionKind::Points => {
                let list = |dim: &ShownDim| match dim {
                    ShownDim::List(list) => Ok(list.clone()),
                    ShownDim::Slice { .. } => Err(MIXED),
                };
                let lists: Vec<Vec<u64>> = self.dims.iter().map(list).collect::<Result<_>>()?;
                let count = lists.first().map_or(0, Vec::len);
                if lists.iter().any(|list| list.len() != count) {
                    return Err(BAD);
                }
                let point = |at: usize| lists.iter().filter_map(|list| list.get(at).copied()).collect();
                Ok(if count == 0 { Selection::None } else { Selection::Points((0..count).map(point).collect()) })
            }
            SelectionKind::Hyperslabs => {
                let mut slab = Hyperslab::block(&[], &[]);
                for dim in &self.dims {
                    let ShownDim::Slice { start, stop, step } = dim else { return Err(MIXED) };
                    let (step, length) = ((*step).max(1), stop.saturating_sub(*start));
                    let (stride, count, block) =
                        if step == 1 { (1, 1, length) } else { (step, length.div_ceil(step), 1) };
                    slab.start.push(*start);
                    slab.stride.push(stride);
                    slab.count.push(count);
                    slab.block.push(block);
                }
                Ok(Selection::Hyperslab(slab))
            }
        }
    }
}

/// Points as one list of coordinates for each dimension.
pub(super) fn lists(points: impl Iterator<Item = Vec<u64>>, rank: usize) -> Vec<ShownDim> {
    let mut lists = vec![Vec::new(); rank];
    for point in points {
        lists.iter_mut().zip(point).for_each(|(list, at)| list.push(at));
    }
    lists.into_iter().map(ShownDim::List).collect()
}

fn of_points(points: Vec<Vec<u64>>) -> Result<ShownSelection> {
    let rank = points.first().map_or(0, Vec::len);
    if rank > MAX_RANK || points.iter().any(|point| point.len() != rank) {
        return Err(BAD);
    }
    let extent =
        |dim: usize| points.iter().filter_map(|point| point.get(dim)).max().map_or(0, |last| last.saturating_add(1));
    let shape = (0..rank).map(extent).collect();
    Ok(ShownSelection { kind: SelectionKind::Points, shape, dims: lists(points.into_iter(), rank) })
}

fn decode_dim(from: &mut Bytes<'_>, width: u64) -> Result<ShownDim> {
    Ok(match from.uint(1)? as u8 {
        SLICE => ShownDim::Slice { start: from.uint(width)?, stop: from.uint(width)?, step: from.uint(width)? },
        LIST => {
            let count = from.uint(4)?;
            let list = from.take(count.checked_mul(width).ok_or(BAD)?)?;
            ShownDim::List(list.chunks_exact(width as usize).map(little_endian).collect())
        }
        INDEX => one_element(from.uint(width)?),
        _ => return Err(BAD),
    })
}

fn one_element(at: u64) -> ShownDim {
    ShownDim::Slice { start: at, stop: at.saturating_add(1), step: 1 }
}

fn dim_from_json(json: &Value) -> Result<ShownDim> {
    let number = |member: &str| json.get(member).and_then(Value::as_u64).ok_or(BAD);
    match json.get("type").and_then(Value::as_str) {
        Some("slice") => Ok(ShownDim::Slice { start: number("start")?, stop: number("stop")?, step: number("step")? }),
        Some("list") => numbers(json.get("values")).map(ShownDim::List),
        Some("int") => number("value").map(one_element),
        _ => Err(BAD),
    }
}

fn numbers(json: Option<&Value>) -> Result<Vec<u64>> {
    let list = json.and_then(Value::as_array).ok_or(BAD)?;
    list.iter().map(|number| number.as_u64().ok_or(BAD)).collect()
}
