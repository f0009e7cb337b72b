//! References to regions, and those of HDF5 1.12: variable-length elements of bytes.
//!
//! HSDS and h5pyd have a form for regions (h5json 2.0, `RegionReference.tobytes`): the identity of a dataset, and a selection
//! of one slice for each dimension, or of points. What it lacks is shown as what comes nearest, and the exact selection
//! stands after it, where they do not look. They have no form for references of HDF5 1.12: these are bytes to them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use h5live_format::{
    LibVer, ReferenceBlob, ReferencedPart, StoredSelection, Widths, decode_prefix_with, decode_with, encode,
};
use h5live_model::{Block, Hyperslab, ObjectId, ReferenceKind, Referent, ReferentPart, Selection};

use serde_json::{Value, json};

use super::error::{LayoutError, Result};
use super::extras::EXTRAS;
use super::id::DomainId;
use super::json::set_member;
use super::shown_selection::{Bytes, SelectionKind, ShownDim, ShownSelection, lists};

const REGION_MAGIC: &[u8; 4] = b"HRRF";
const REGION_VERSION: u8 = 1;
/// What the identity of a dataset begins with. JSON has it without.
const DATASET_PREFIX: &str = "d-";
/// After it, nobody but h5live looks.
const REGION_END: u8 = 0xff;
/// What stands before an exact selection, and before a reference of HDF5 1.12.
const EXACT_MAGIC: &[u8; 4] = b"H5LR";
/// Most points as which other selections are shown: more would take longer to read than the box around them.
const MAX_SHOWN_POINTS: u64 = 1 << 20;
const BAD: LayoutError = LayoutError::ValueIsNot("a reference");

/// The stored bytes of a reference of a kind that is no object reference. `dims` are those of the dataset, if it leads to a
/// region.
///
/// # Errors
/// [`LayoutError::Unsupported`], [`LayoutError::Encode`]; [`LayoutError::ValueIsNot`] if such references do not lead to such things.
pub fn variable_length_reference_bytes(
    domain: DomainId,
    kind: ReferenceKind,
    to: &Referent,
    dims: &[u64],
) -> Result<Vec<u8>> {
    match (kind, &to.part, &to.file) {
        (ReferenceKind::Region1, ReferentPart::Region(selection), None) => {
            region_to_bytes(&domain.object_id_text(to.object), selection, dims)
        }
        (ReferenceKind::Object1 | ReferenceKind::Region1, ..) => {
            Err(LayoutError::ValueIsNot("a reference of its kind"))
        }
        (_, part, file) => {
            let (number, part) = match part {
                ReferentPart::Whole => (2, ReferencedPart::Object),
                ReferentPart::Region(selection) => (3, ReferencedPart::Region(exact(selection, dims))),
                ReferentPart::Attribute(name) => (4, ReferencedPart::Attribute(name.clone())),
            };
            let token = match file {
                None => domain.object_id_text(to.object).into_bytes(),
                Some(_) => to.object.0.to_le_bytes().to_vec(),
            };
            let blob = encode(&ReferenceBlob { token, file: file.clone(), part }, Widths::default())?;
            Ok([EXACT_MAGIC.as_slice(), &[number, u8::from(file.is_some())], &blob].concat())
        }
    }
}

/// What a reference leads to that has these stored bytes.
///
/// # Errors
/// [`LayoutError::ValueIsNot`], [`LayoutError::InvalidId`], [`LayoutError::Decode`], [`LayoutError::Unsupported`].
pub fn varlen_reference_from_bytes(domain: DomainId, kind: ReferenceKind, bytes: &[u8]) -> Result<Referent> {
    if kind == ReferenceKind::Region1 {
        return region_from_bytes(domain, bytes);
    }
    let rest = bytes.strip_prefix(EXACT_MAGIC.as_slice()).ok_or(BAD)?;
    let (kind, is_external, blob) = match rest {
        [2, external, blob @ ..] => (ReferenceKind::Object2, *external != 0, blob),
        [3, external, blob @ ..] => (ReferenceKind::Region2, *external != 0, blob),
        [4, external, blob @ ..] => (ReferenceKind::Attribute, *external != 0, blob),
        _ => return Err(BAD),
    };
    let blob = decode_with(ReferenceBlob::blank(kind, is_external), blob, Widths::default())?;
    let object = match is_external {
        true => ObjectId(u128::from_le_bytes(blob.token.as_slice().try_into().map_err(|_| BAD)?)),
        false => domain.parse_own_object_id(std::str::from_utf8(&blob.token).map_err(|_| BAD)?)?,
    };
    let part = match blob.part {
        ReferencedPart::Object => ReferentPart::Whole,
        ReferencedPart::Region(selection) => ReferentPart::Region(selection.selection),
        ReferencedPart::Attribute(name) => ReferentPart::Attribute(name),
    };
    Ok(Referent { file: blob.file, object, part })
}

fn exact(selection: &Selection, dims: &[u64]) -> StoredSelection {
    StoredSelection::new(LibVer::V112, dims.len(), selection.clone())
}

fn region_to_bytes(id: &str, selection: &Selection, dims: &[u64]) -> Result<Vec<u8>> {
    let shown = shown_selection(selection, dims)?;
    let is_exact = shown.selection().is_ok_and(|again| again == *selection);
    let mut exact_part = Vec::new();
    if !is_exact {
        exact_part.extend(EXACT_MAGIC);
        exact_part.extend(encode(&exact(selection, dims), Widths::default())?);
        // What ends with zeros is cut by programs that pad with them.
        exact_part.push(REGION_END);
    }
    RegionBytes { id, shown: &shown.encode()?, exact_part: &exact_part }.encode()
}

fn region_from_bytes(domain: DomainId, bytes: &[u8]) -> Result<Referent> {
    let RegionBytes { id, shown, exact_part } = RegionBytes::decode(bytes)?;
    let object = domain.parse_own_object_id(id)?;
    let selection = match exact_part.strip_prefix(EXACT_MAGIC.as_slice()) {
        Some(exact) => decode_prefix_with(StoredSelection::default(), exact, Widths::default())?.0.selection,
        None if shown.is_empty() => Selection::All,
        None => ShownSelection::decode(shown)?.selection()?,
    };
    Ok(Referent { file: None, object, part: ReferentPart::Region(selection) })
}

/// The parts of a stored reference to a region.
struct RegionBytes<'a> {
    /// The identity of the dataset.
    id: &'a str,
    /// The bytes of the selection as HSDS has it; none if there is none.
    shown: &'a [u8],
    /// What stands after the reference as HSDS has it.
    exact_part: &'a [u8],
}

impl<'a> RegionBytes<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self> {
        let mut from = Bytes(bytes.strip_prefix(REGION_MAGIC.as_slice()).ok_or(BAD)?);
        if from.uint(1)? != u64::from(REGION_VERSION) {
            return Err(BAD);
        }
        let id = from.uint(2)?;
        let id = std::str::from_utf8(from.take(id)?).map_err(|_| BAD)?;
        let shown = from.uint(4)?;
        let shown = from.take(shown)?;
        let exact_part = from.0.strip_prefix([REGION_END].as_slice()).unwrap_or_default();
        Ok(RegionBytes { id, shown, exact_part })
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = REGION_MAGIC.to_vec();
        bytes.push(REGION_VERSION);
        bytes.extend(u16::try_from(self.id.len()).map_err(|_| BAD)?.to_le_bytes());
        bytes.extend(self.id.as_bytes());
        bytes.extend(u32::try_from(self.shown.len()).map_err(|_| BAD)?.to_le_bytes());
        bytes.extend(self.shown);
        bytes.push(REGION_END);
        bytes.extend(self.exact_part);
        Ok(bytes)
    }
}

/// The JSON of a stored reference to a region, as h5json has it in attributes (`RegionReference.to_json`); `None` if it has no
/// such form.
pub(super) fn region_to_json(stored: &[u8]) -> Option<Value> {
    if stored.is_empty() {
        return Some(Value::Null);
    }
    let RegionBytes { id, shown, exact_part } = RegionBytes::decode(stored).ok()?;
    let mut json = json!({"id": id.strip_prefix(DATASET_PREFIX)?});
    if !shown.is_empty() {
        set_member(&mut json, "selection_dict", ShownSelection::decode(shown).ok()?.to_json());
    }
    if !exact_part.is_empty() {
        set_member(&mut json, EXTRAS, json!(BASE64.encode(exact_part)));
    }
    Some(json)
}

/// The stored reference to a region that a JSON is.
///
/// # Errors
/// [`LayoutError::ValueIsNot`], [`LayoutError::Unsupported`].
pub(super) fn region_from_json(json: &Value) -> Result<Vec<u8>> {
    if json.is_null() {
        return Ok(Vec::new());
    }
    let id = json.get("id").and_then(Value::as_str).ok_or(BAD)?;
    let shown = match (json.get("selection_dict"), json.get("select_type")) {
        (Some(dict), _) => ShownSelection::from_json(dict)?.encode()?,
        (None, Some(_)) => ShownSelection::from_region_json(json)?.encode()?,
        (None, None) => Vec::new(),
    };
    let exact_part = match json.get(EXTRAS) {
        Some(text) => BASE64.decode(text.as_str().ok_or(BAD)?).map_err(|_| BAD)?,
        None => Vec::new(),
    };
    RegionBytes { id: &format!("{DATASET_PREFIX}{id}"), shown: &shown, exact_part: &exact_part }.encode()
}

/// The selection, or what comes nearest, in the form of HSDS.
fn shown_selection(selection: &Selection, dims: &[u64]) -> Result<ShownSelection> {
    let (kind, shown) = match selection {
        Selection::All => (SelectionKind::All, Vec::new()),
        Selection::None => (SelectionKind::Points, dims.iter().map(|_| ShownDim::List(Vec::new())).collect()),
        Selection::Points(points) => {
            (SelectionKind::Points, lists(points.iter().map(|point| point.to_vec()), dims.len()))
        }
        Selection::Hyperslab(slab) => slices(slab, dims)
            .map_or_else(|| shown_points(selection, dims), |dims| Ok((SelectionKind::Hyperslabs, dims)))?,
        Selection::Blocks(blocks) => match blocks.as_slice() {
            [Block { start, count }] => {
                let slab = Hyperslab::block(start, count);
                (SelectionKind::Hyperslabs, slices(&slab, dims).unwrap_or_default())
            }
            _ => shown_points(selection, dims)?,
        },
    };
    Ok(ShownSelection { kind, shape: dims.to_vec(), dims: shown })
}

/// A hyperslab as slices, if it is one. Slices end behind their last step, as those of h5json, if the extent does not end
/// before.
fn slices(slab: &Hyperslab, extent: &[u64]) -> Option<Vec<ShownDim>> {
    let dims = slab.start.iter().zip(&slab.stride).zip(&slab.count).zip(&slab.block).zip(extent);
    dims.map(|((((start, stride), count), block), extent)| {
        let (length, step) = match (count, block) {
            (1, block) => (*block, 1),
            (count, 1) if *count > 0 => (count.checked_sub(1)?.checked_mul(*stride)?.checked_add(1)?, *stride),
            _ => return None,
        };
        let behind = count.checked_mul(*stride)?.checked_add(*start)?;
        let stop = if step > 1 && behind <= *extent { behind } else { start.checked_add(length)? };
        Some(ShownDim::Slice { start: *start, stop, step })
    })
    .collect()
}

/// A selection of several boxes as points; if these are too many, as the box around all.
fn shown_points(selection: &Selection, dims: &[u64]) -> Result<(SelectionKind, Vec<ShownDim>)> {
    let stored = match selection {
        Selection::Hyperslab(slab) if blocks_of(slab).is_some_and(|blocks| blocks <= MAX_SHOWN_POINTS) => {
            StoredSelection::new(LibVer::V18, dims.len(), selection.clone()).selection
        }
        _ => selection.clone(),
    };
    let boxes = match &stored {
        Selection::Blocks(blocks) => blocks.as_slice(),
        Selection::Hyperslab(slab) => {
            return Ok((SelectionKind::Hyperslabs, box_around(&[(&slab.start, &ends_of(slab))])));
        }
        _ => return Err(BAD),
    };
    let size = |block: &Block| block.count.iter().try_fold(1u64, |n, count| n.checked_mul(*count));
    let all = boxes.iter().try_fold(0u64, |n, block| n.checked_add(size(block)?));
    if all.is_none_or(|all| all > MAX_SHOWN_POINTS) {
        let ends: Vec<Vec<u64>> =
            boxes.iter().map(|block| ends_of(&Hyperslab::block(&block.start, &block.count))).collect();
        let boxes: Vec<(&[u64], &[u64])> =
            boxes.iter().zip(&ends).map(|(block, end)| (&*block.start, end.as_slice())).collect();
        return Ok((SelectionKind::Hyperslabs, box_around(&boxes)));
    }
    let points =
        boxes.iter().flat_map(|block| (0..size(block).unwrap_or_default()).map(|number| point_of(block, number)));
    Ok((SelectionKind::Points, lists(points, dims.len())))
}

/// The blocks of a hyperslab; `None` for too many.
fn blocks_of(slab: &Hyperslab) -> Option<u64> {
    slab.count.iter().try_fold(1u64, |n, count| n.checked_mul(*count))
}

/// One past the last element of a hyperslab, for each dimension.
fn ends_of(slab: &Hyperslab) -> Vec<u64> {
    let dims = slab.start.iter().zip(&slab.stride).zip(&slab.count).zip(&slab.block);
    let end = |(((start, stride), count), block): (((&u64, &u64), &u64), &u64)| {
        let steps = count.saturating_sub(1).saturating_mul(*stride);
        start.saturating_add(steps).saturating_add(*block)
    };
    dims.map(end).collect()
}

/// The box around boxes, each given by its start and its end.
fn box_around(boxes: &[(&[u64], &[u64])]) -> Vec<ShownDim> {
    let rank = boxes.first().map_or(0, |(start, _)| start.len());
    let dim = |at: usize| {
        let start = boxes.iter().filter_map(|(start, _)| start.get(at)).min().copied().unwrap_or_default();
        let stop = boxes.iter().filter_map(|(_, end)| end.get(at)).max().copied().unwrap_or_default();
        ShownDim::Slice { start, stop, step: 1 }
    };
    (0..rank).map(dim).collect()
}

/// An element of a box, by its number in row-major order.
fn point_of(block: &Block, number: u64) -> Vec<u64> {
    let mut rest = number;
    let dims = block.start.iter().zip(&block.count).rev();
    let mut point: Vec<u64> = dims
        .map(|(start, count)| {
            let at = start.saturating_add(rest % count.max(&1));
            rest /= count.max(&1);
            at
        })
        .collect();
    point.reverse();
    point
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOMAIN: DomainId = DomainId(0xb03b_24ef_69f2_44b6);

    fn region(selection: &Selection, dims: &[u64]) -> Vec<u8> {
        let part = ReferentPart::Region(selection.clone());
        let to =
            Referent { file: None, object: super::super::id::object_id(h5live_model::ObjectKind::Dataset, 7), part };
        let bytes = variable_length_reference_bytes(DOMAIN, ReferenceKind::Region1, &to, dims).unwrap();
        assert_eq!(varlen_reference_from_bytes(DOMAIN, ReferenceKind::Region1, &bytes).unwrap(), to, "{selection:?}");
        assert_eq!(region_from_json(&region_to_json(&bytes).unwrap()).unwrap(), bytes, "{selection:?}");
        for end in 0..bytes.len().min(60) {
            assert!(varlen_reference_from_bytes(DOMAIN, ReferenceKind::Region1, &bytes[..end]).is_err(), "{end}");
        }
        bytes
    }

    #[test]
    fn regions_come_back_and_simple_ones_are_as_h5json_has_them() {
        // What h5json 2.0.1 makes of a region [2:5, 1:8:3] of a dataset of 10 x 20 elements.
        let slab = Hyperslab {
            start: [2, 1].as_slice().into(),
            stride: [1, 3].as_slice().into(),
            count: [1, 3].as_slice().into(),
            block: [3, 1].as_slice().into(),
        };
        let bytes = region(&Selection::Hyperslab(slab), &[10, 20]);
        let id = b"d-b03b24ef-69f244b6-0000-000000-000007";
        let selection =
            b"HSEL\x01\x00\x02\x00\x02\x00\x0a\x00\x14\x00\x00\x00\x02\x00\x05\x00\x01\x00\x00\x01\x00\x0a\x00\x03\x00";
        let head = b"HRRF\x01\x26\x00".as_slice();
        let length = (selection.len() as u32).to_le_bytes();
        assert_eq!(bytes, [head, id, &length, selection, b"\xff"].concat());
        region(&Selection::All, &[3]);
        region(&Selection::Points(vec![[1, 70_000].as_slice().into(), [0, 5].as_slice().into()]), &[2, 80_000]);
    }

    #[test]
    fn selections_that_h5json_lacks_stand_after_what_it_reads() {
        let block = |start: &[u64], count: &[u64]| Block { start: start.into(), count: count.into() };
        let one = region(&Selection::Blocks(vec![block(&[1, 1], &[2, 2])]), &[4, 4]);
        let two = region(&Selection::Blocks(vec![block(&[0, 0], &[1, 2]), block(&[3, 3], &[1, 1])]), &[4, 4]);
        let wide = Hyperslab {
            start: [0].as_slice().into(),
            stride: [4].as_slice().into(),
            count: [2].as_slice().into(),
            block: [2].as_slice().into(),
        };
        let wide = region(&Selection::Hyperslab(wide), &[1 << 33]);
        region(&Selection::None, &[4, 4]);
        for bytes in [one, two, wide] {
            assert!(bytes.windows(5).any(|part| part == b"\xffH5LR"), "{bytes:?}");
        }
        let many = Selection::Blocks(vec![block(&[0], &[1 << 21]), block(&[1 << 22], &[1])]);
        let shown = shown_selection(&many, &[1 << 23]).unwrap().selection().unwrap();
        assert_eq!(shown, Selection::block(&[0], &[(1 << 22) + 1]), "the box around them");
        let slab = |count| Hyperslab {
            start: [3].as_slice().into(),
            stride: [4].as_slice().into(),
            count: [count].as_slice().into(),
            block: [2].as_slice().into(),
        };
        let shown = shown_selection(&Selection::Hyperslab(slab(1 << 30)), &[1 << 33]).unwrap().selection();
        assert_eq!(shown.unwrap(), Selection::block(&[3], &[((1 << 30) - 1) * 4 + 2]));
        region(&Selection::Hyperslab(slab(1 << 30)), &[1 << 33]);
        region(&many, &[1 << 23]);
    }

    #[test]
    fn regions_that_h5pyd_puts_into_attributes_are_read() {
        // What h5json 2.0.1 makes of [0:2, 3:6], of [2:5, 1:8:3], and of two points.
        let id = "b03b24ef-69f244b6-0000-000000-000007";
        let boxed = json!({"id": id, "select_type": "H5S_SEL_HYPERSLABS", "selection": [[[0, 3], [1, 5]]]});
        let slices = json!([{"type": "slice", "start": 2, "stop": 5, "step": 1},
            {"type": "slice", "start": 1, "stop": 8, "step": 3}]);
        let stepped = json!({"class": "SimpleSelection", "shape": [10, 20], "select_type": 2, "slices": slices});
        let stepped = json!({"id": id, "selection_dict": stepped});
        let points = json!({"id": id, "select_type": "H5S_SEL_POINTS", "selection": [[0, 1], [3, 5]]});
        let selected = |json: &Value| {
            let bytes = region_from_json(json).unwrap();
            match varlen_reference_from_bytes(DOMAIN, ReferenceKind::Region1, &bytes).unwrap().part {
                ReferentPart::Region(selection) => selection,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(selected(&boxed), Selection::block(&[0, 3], &[2, 3]));
        assert_eq!(selected(&points), Selection::Points(vec![[0, 1].as_slice().into(), [3, 5].as_slice().into()]));
        assert!(
            matches!(selected(&stepped), Selection::Hyperslab(slab) if slab.stride[..] == [1, 3] && slab.count[..] == [1, 3])
        );
        assert_eq!(selected(&json!({"id": id})), Selection::All);
        assert!(region_from_json(&Value::Null).unwrap().is_empty() && region_to_json(&[]).unwrap().is_null());
        let odd = [json!(3), json!({}), json!({"id": id, "selection_dict": {}}), json!({"id": id, "select_type": "x"})];
        odd.iter().for_each(|json| assert!(region_from_json(json).is_err(), "{json}"));
    }

    #[test]
    fn references_of_hdf5_1_12_come_back() {
        let object = super::super::id::object_id(h5live_model::ObjectKind::Group, 9);
        let parts = [
            ReferentPart::Whole,
            ReferentPart::Attribute("units".into()),
            ReferentPart::Region(Selection::block(&[1], &[2])),
        ];
        for part in parts {
            for (file, object) in [(None, object), (Some("other.h5".into()), ObjectId(800))] {
                let to = Referent { file, object, part: part.clone() };
                let bytes = variable_length_reference_bytes(DOMAIN, ReferenceKind::Object2, &to, &[5]).unwrap();
                assert_eq!(varlen_reference_from_bytes(DOMAIN, ReferenceKind::Object2, &bytes).unwrap(), to);
            }
        }
        let whole = Referent { file: None, object, part: ReferentPart::Whole };
        assert!(variable_length_reference_bytes(DOMAIN, ReferenceKind::Region1, &whole, &[]).is_err());
    }
}
