//! References to regions, and those of HDF5 1.12: variable-length elements of bytes.
//!
//! HSDS and h5pyd have a form for regions (h5json 2.0, `RegionReference.tobytes`): the identity of a dataset, and a selection
//! of one slice for each dimension, or of points. What it lacks is shown as what comes nearest, and the exact selection
//! stands after it, where they do not look. They have no form for references of HDF5 1.12: these are bytes to them.

use h5live_format::{
    LibVer, ReferenceBlob, ReferencePart, StoredSelection, Widths, decode_prefix_with, decode_with, encode,
};
use h5live_model::{Block, Hyperslab, ObjectId, ReferenceKind, Referent, ReferentPart, Selection};

use super::error::{LayoutError, Result};
use super::id::DomainId;

const REGION_MAGIC: &[u8; 4] = b"HRRF";
const REGION_VERSION: u8 = 1;
/// After it, nobody but h5live looks.
const REGION_END: u8 = 0xff;
const SELECTION_MAGIC: &[u8; 4] = b"HSEL";
const SELECTION_VERSION: u8 = 1;
/// The class of selections that there is.
const SIMPLE_SELECTION: u8 = 0;
const POINTS: u8 = 1;
const HYPERSLABS: u8 = 2;
const ALL: u8 = 3;
const SLICE: u8 = 0;
const LIST: u8 = 1;
const INDEX: u8 = 2;
/// What stands before an exact selection, and before a reference of HDF5 1.12.
const EXACT_MAGIC: &[u8; 4] = b"H5LR";
/// Most points as which other selections are shown: more would take longer to read than the box around them.
const MAX_SHOWN_POINTS: u64 = 1 << 20;
/// Most dimensions.
const MAX_RANK: usize = 32;

const BAD: LayoutError = LayoutError::Value("a reference");

/// The stored bytes of a reference of a kind that is no object reference. `dims` are those of the dataset, if it leads to a
/// region.
///
/// # Errors
/// [`LayoutError::Unfit`], [`LayoutError::Encode`]; [`LayoutError::Value`] if such references do not lead to such things.
pub fn reference_to_bytes(domain: DomainId, kind: ReferenceKind, to: &Referent, dims: &[u64]) -> Result<Vec<u8>> {
    match (kind, &to.part, &to.file) {
        (ReferenceKind::Region1, ReferentPart::Region(selection), None) => {
            region_to_bytes(&domain.text(to.object), selection, dims)
        }
        (ReferenceKind::Object1 | ReferenceKind::Region1, ..) => Err(LayoutError::Value("a reference of its kind")),
        (_, part, file) => {
            let (number, part) = match part {
                ReferentPart::Whole => (2, ReferencePart::Object),
                ReferentPart::Region(selection) => (3, ReferencePart::Region(exact(selection, dims))),
                ReferentPart::Attribute(name) => (4, ReferencePart::Attribute(name.clone())),
            };
            let token = match file {
                None => domain.text(to.object).into_bytes(),
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
/// [`LayoutError::Value`], [`LayoutError::Id`], [`LayoutError::Datatype`], [`LayoutError::Unfit`].
pub fn reference_from_bytes(domain: DomainId, kind: ReferenceKind, bytes: &[u8]) -> Result<Referent> {
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
        false => domain.parse_own(std::str::from_utf8(&blob.token).map_err(|_| BAD)?)?,
    };
    let part = match blob.part {
        ReferencePart::Object => ReferentPart::Whole,
        ReferencePart::Region(selection) => ReferentPart::Region(selection.selection),
        ReferencePart::Attribute(name) => ReferentPart::Attribute(name),
    };
    Ok(Referent { file: blob.file, object, part })
}

fn exact(selection: &Selection, dims: &[u64]) -> StoredSelection {
    StoredSelection::new(LibVer::V112, dims.len(), selection.clone())
}

fn region_to_bytes(id: &str, selection: &Selection, dims: &[u64]) -> Result<Vec<u8>> {
    let shown = shown_selection(selection, dims)?;
    let is_exact = selection_from_bytes(&shown).is_ok_and(|again| again == *selection);
    let mut bytes = REGION_MAGIC.to_vec();
    bytes.push(REGION_VERSION);
    bytes.extend(u16::try_from(id.len()).map_err(|_| BAD)?.to_le_bytes());
    bytes.extend(id.as_bytes());
    bytes.extend(u32::try_from(shown.len()).map_err(|_| BAD)?.to_le_bytes());
    bytes.extend(shown);
    bytes.push(REGION_END);
    if !is_exact {
        bytes.extend(EXACT_MAGIC);
        bytes.extend(encode(&exact(selection, dims), Widths::default())?);
        // What ends with zeros is cut by programs that pad with them.
        bytes.push(REGION_END);
    }
    Ok(bytes)
}

fn region_from_bytes(domain: DomainId, bytes: &[u8]) -> Result<Referent> {
    let mut from = Bytes(bytes.strip_prefix(REGION_MAGIC.as_slice()).ok_or(BAD)?);
    if from.uint(1)? != u64::from(REGION_VERSION) {
        return Err(BAD);
    }
    let id = from.uint(2)?;
    let id = std::str::from_utf8(from.take(id)?).map_err(|_| BAD)?;
    let object = domain.parse_own(id)?;
    let shown = from.uint(4)?;
    let shown = from.take(shown)?;
    let exact = from.0.strip_prefix([REGION_END].as_slice()).and_then(|rest| rest.strip_prefix(EXACT_MAGIC.as_slice()));
    let selection = match exact {
        Some(exact) => decode_prefix_with(StoredSelection::default(), exact, Widths::default())?.0.selection,
        None if shown.is_empty() => Selection::All,
        None => selection_from_bytes(shown)?,
    };
    Ok(Referent { file: None, object, part: ReferentPart::Region(selection) })
}

/// Bytes that are left.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let len = usize::try_from(len).map_err(|_| BAD)?;
        let (taken, rest) = self.0.split_at_checked(len).ok_or(BAD)?;
        self.0 = rest;
        Ok(taken)
    }

    fn uint(&mut self, len: u64) -> Result<u64> {
        Ok(self.take(len)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// One dimension of a selection as HSDS has it.
enum ShownDim {
    Slice { start: u64, stop: u64, step: u64 },
    List(Vec<u64>),
}

/// The selection, or what comes nearest, in the form of HSDS.
fn shown_selection(selection: &Selection, dims: &[u64]) -> Result<Vec<u8>> {
    let (kind, shown) = match selection {
        Selection::All => (ALL, Vec::new()),
        Selection::None => (POINTS, dims.iter().map(|_| ShownDim::List(Vec::new())).collect()),
        Selection::Points(points) => (POINTS, lists(points.iter().map(|point| point.to_vec()), dims.len())),
        Selection::Hyperslab(slab) => {
            slices(slab, dims).map_or_else(|| shown_points(selection, dims), |dims| Ok((HYPERSLABS, dims)))?
        }
        Selection::Blocks(blocks) => match blocks.as_slice() {
            [Block { start, count }] => {
                let slab = Hyperslab::block(start, count);
                (HYPERSLABS, slices(&slab, dims).unwrap_or_default())
            }
            _ => shown_points(selection, dims)?,
        },
    };
    let largest = dims.iter().copied().max().unwrap_or_default();
    let (code, width) = match largest {
        0..=0xffff => (0, 2),
        0x1_0000..=0xffff_ffff => (1, 4),
        _ => (2, 8),
    };
    let mut bytes = SELECTION_MAGIC.to_vec();
    bytes.extend([SELECTION_VERSION, SIMPLE_SELECTION, kind, code]);
    bytes.extend(u16::try_from(dims.len()).map_err(|_| BAD)?.to_le_bytes());
    let put = |bytes: &mut Vec<u8>, number: u64| bytes.extend(number.to_le_bytes().iter().take(width));
    dims.iter().for_each(|dim| put(&mut bytes, *dim));
    // No fields of compounds.
    bytes.push(0);
    for dim in shown {
        match dim {
            ShownDim::Slice { start, stop, step } => {
                bytes.push(SLICE);
                [start, stop, step].into_iter().for_each(|number| put(&mut bytes, number));
            }
            ShownDim::List(list) => {
                bytes.push(LIST);
                bytes.extend(u32::try_from(list.len()).map_err(|_| BAD)?.to_le_bytes());
                list.into_iter().for_each(|number| put(&mut bytes, number));
            }
        }
    }
    Ok(bytes)
}

fn lists(points: impl Iterator<Item = Vec<u64>>, rank: usize) -> Vec<ShownDim> {
    let mut lists = vec![Vec::new(); rank];
    for point in points {
        lists.iter_mut().zip(point).for_each(|(list, at)| list.push(at));
    }
    lists.into_iter().map(ShownDim::List).collect()
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
fn shown_points(selection: &Selection, dims: &[u64]) -> Result<(u8, Vec<ShownDim>)> {
    let stored = match selection {
        Selection::Hyperslab(slab) if blocks_of(slab).is_some_and(|blocks| blocks <= MAX_SHOWN_POINTS) => {
            StoredSelection::new(LibVer::V18, dims.len(), selection.clone()).selection
        }
        _ => selection.clone(),
    };
    let boxes = match &stored {
        Selection::Blocks(blocks) => blocks.as_slice(),
        Selection::Hyperslab(slab) => return Ok((HYPERSLABS, box_around(&[(&slab.start, &ends_of(slab))]))),
        _ => return Err(BAD),
    };
    let size = |block: &Block| block.count.iter().try_fold(1u64, |n, count| n.checked_mul(*count));
    let all = boxes.iter().try_fold(0u64, |n, block| n.checked_add(size(block)?));
    if all.is_none_or(|all| all > MAX_SHOWN_POINTS) {
        let ends: Vec<Vec<u64>> =
            boxes.iter().map(|block| ends_of(&Hyperslab::block(&block.start, &block.count))).collect();
        let boxes: Vec<(&[u64], &[u64])> =
            boxes.iter().zip(&ends).map(|(block, end)| (&*block.start, end.as_slice())).collect();
        return Ok((HYPERSLABS, box_around(&boxes)));
    }
    let points =
        boxes.iter().flat_map(|block| (0..size(block).unwrap_or_default()).map(|number| point_of(block, number)));
    Ok((POINTS, lists(points, dims.len())))
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

/// The selection that is in the form of HSDS.
fn selection_from_bytes(bytes: &[u8]) -> Result<Selection> {
    let mut from = Bytes(bytes.strip_prefix(SELECTION_MAGIC.as_slice()).ok_or(BAD)?);
    let head = [from.uint(1)?, from.uint(1)?];
    let (kind, code, rank) = (from.uint(1)?, from.uint(1)?, from.uint(2)?);
    let rank = usize::try_from(rank).ok().filter(|rank| *rank <= MAX_RANK).ok_or(BAD)?;
    let width = match (head, code) {
        ([version, class], 0..=2)
            if version == u64::from(SELECTION_VERSION) && class == u64::from(SIMPLE_SELECTION) =>
        {
            2 << code
        }
        _ => return Err(BAD),
    };
    from.take(width * rank as u64)?;
    if from.uint(1)? != 0 {
        return Err(LayoutError::Unfit("a reference to fields of a compound"));
    }
    if kind == u64::from(ALL) {
        return Ok(Selection::All);
    }
    let mut dims = Vec::new();
    for _ in 0..rank {
        dims.push(match from.uint(1)? as u8 {
            SLICE => ShownDim::Slice { start: from.uint(width)?, stop: from.uint(width)?, step: from.uint(width)? },
            LIST => {
                let count = from.uint(4)?;
                let list = from.take(count.checked_mul(width).ok_or(BAD)?)?;
                let number =
                    |bytes: &[u8]| bytes.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
                ShownDim::List(list.chunks_exact(width as usize).map(number).collect())
            }
            INDEX => {
                let start = from.uint(width)?;
                ShownDim::Slice { start, stop: start.saturating_add(1), step: 1 }
            }
            _ => return Err(BAD),
        });
    }
    selection_of(kind, &dims)
}

fn selection_of(kind: u64, dims: &[ShownDim]) -> Result<Selection> {
    const MIXED: LayoutError = LayoutError::Unfit("a reference to a product of lists of elements");
    if kind == u64::from(POINTS) {
        let list = |dim: &ShownDim| match dim {
            ShownDim::List(list) => Ok(list.clone()),
            ShownDim::Slice { .. } => Err(MIXED),
        };
        let lists: Vec<Vec<u64>> = dims.iter().map(list).collect::<Result<_>>()?;
        let count = lists.first().map_or(0, Vec::len);
        if lists.iter().any(|list| list.len() != count) {
            return Err(BAD);
        }
        let point = |at: usize| lists.iter().filter_map(|list| list.get(at).copied()).collect();
        return Ok(if count == 0 { Selection::None } else { Selection::Points((0..count).map(point).collect()) });
    }
    let mut slab = Hyperslab::block(&[], &[]);
    for dim in dims {
        let ShownDim::Slice { start, stop, step } = dim else { return Err(MIXED) };
        let (step, length) = ((*step).max(1), stop.saturating_sub(*start));
        let (stride, count, block) = if step == 1 { (1, 1, length) } else { (step, length.div_ceil(step), 1) };
        slab.start.push(*start);
        slab.stride.push(stride);
        slab.count.push(count);
        slab.block.push(block);
    }
    Ok(Selection::Hyperslab(slab))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOMAIN: DomainId = DomainId(0xb03b_24ef_69f2_44b6);

    fn region(selection: &Selection, dims: &[u64]) -> Vec<u8> {
        let part = ReferentPart::Region(selection.clone());
        let to =
            Referent { file: None, object: super::super::id::object_id(h5live_model::ObjectKind::Dataset, 7), part };
        let bytes = reference_to_bytes(DOMAIN, ReferenceKind::Region1, &to, dims).unwrap();
        assert_eq!(reference_from_bytes(DOMAIN, ReferenceKind::Region1, &bytes).unwrap(), to, "{selection:?}");
        for end in 0..bytes.len().min(60) {
            assert!(reference_from_bytes(DOMAIN, ReferenceKind::Region1, &bytes[..end]).is_err(), "{end}");
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
        let shown = selection_from_bytes(&shown_selection(&many, &[1 << 23]).unwrap()).unwrap();
        assert_eq!(shown, Selection::block(&[0], &[(1 << 22) + 1]), "the box around them");
        let slab = |count| Hyperslab {
            start: [3].as_slice().into(),
            stride: [4].as_slice().into(),
            count: [count].as_slice().into(),
            block: [2].as_slice().into(),
        };
        let shown = selection_from_bytes(&shown_selection(&Selection::Hyperslab(slab(1 << 30)), &[1 << 33]).unwrap());
        assert_eq!(shown.unwrap(), Selection::block(&[3], &[((1 << 30) - 1) * 4 + 2]));
        region(&Selection::Hyperslab(slab(1 << 30)), &[1 << 33]);
        region(&many, &[1 << 23]);
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
                let bytes = reference_to_bytes(DOMAIN, ReferenceKind::Object2, &to, &[5]).unwrap();
                assert_eq!(reference_from_bytes(DOMAIN, ReferenceKind::Object2, &bytes).unwrap(), to);
            }
        }
        let whole = Referent { file: None, object, part: ReferentPart::Whole };
        assert!(reference_to_bytes(DOMAIN, ReferenceKind::Region1, &whole, &[]).is_err());
    }
}
