//! The layout of a dataset's property list.

use h5live_format::{Fault, Record, Result as WireResult, Wire};
use h5live_model::{Dataspace, Layout, MAX_RANK, Selection, Shape, UNLIMITED, VirtualSource};

use super::dataspace::EncodedDataspace;

const COMPACT: u8 = 0;
const CONTIGUOUS: u8 = 1;
const CHUNKED: u8 = 2;
const VIRTUAL: u8 = 3;
/// Stands before the version of layouts that state one.
const STATES_VERSION: u8 = 0xff;

/// Fewest bytes of a mapping: two names, and two dataspaces.
const MIN_MAPPING_BYTES: usize = 2 + 2 * 27;

/// A layout. External files are another property; their layout is contiguous here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EncodedLayout {
    pub layout: Layout,
    /// The shape of the dataset, for the mappings of virtual datasets. It is not encoded for other ones.
    pub space: Dataspace,
}

impl EncodedLayout {
    fn number(&self) -> u8 {
        match self.layout {
            Layout::Compact => COMPACT,
            Layout::Contiguous | Layout::External(_) => CONTIGUOUS,
            Layout::Chunked(_) => CHUNKED,
            Layout::Virtual(_) => VIRTUAL,
        }
    }

    /// 1 if a chunk has a dimension of more than 32 bits.
    fn version(&self) -> u8 {
        match &self.layout {
            Layout::Chunked(dims) => u8::from(dims.iter().any(|dim| *dim > u32::MAX.into())),
            _ => 0,
        }
    }
}

impl Record for EncodedLayout {
    const NAME: &'static str = "layout property";

    fn wire(&mut self, w: &mut impl Wire) -> WireResult<()> {
        let mut version = self.version();
        let first = w.derived_u8("layout", if version == 0 { self.number() } else { STATES_VERSION })?;
        let number = if first == STATES_VERSION {
            w.version(0..=1, &mut version)?;
            w.derived_u8("layout", self.number())?
        } else {
            version = 0;
            first
        };
        if w.is_decoding() {
            self.layout = match number {
                COMPACT => Layout::Compact,
                CONTIGUOUS => Layout::Contiguous,
                CHUNKED => Layout::Chunked(Vec::new()),
                VIRTUAL => Layout::Virtual(Vec::new()),
                found => {
                    let rule = "0 (compact), 1 (contiguous), 2 (chunked) or 3 (virtual)";
                    return Err(w.fault("layout", Fault::InvalidValue { found: found.into(), rule }));
                }
            };
        }
        match &mut self.layout {
            Layout::Chunked(dims) => wire_chunk_dims(w, version, dims),
            Layout::Virtual(sources) => wire_sources(w, sources, &mut self.space),
            _ => Ok(()),
        }
    }
}

fn wire_chunk_dims(w: &mut impl Wire, version: u8, dims: &mut Vec<u64>) -> WireResult<()> {
    let rank = usize::from(w.derived_u8("rank", u8::try_from(dims.len()).unwrap_or(u8::MAX))?);
    w.require("rank", rank <= MAX_RANK, rank as u64, "at most 32 dimensions")?;
    if w.is_decoding() {
        dims.resize(rank, 0);
    }
    let width = if version == 0 { h5live_format::Width::FOUR } else { h5live_format::Width::EIGHT };
    dims.iter_mut().try_for_each(|dim| w.uint("chunk dimension", width, dim))
}

fn wire_sources(w: &mut impl Wire, sources: &mut Vec<VirtualSource>, space: &mut Dataspace) -> WireResult<()> {
    let mut count = sources.len() as u64;
    w.u64("mappings", &mut count)?;
    let count = w.bounded_count("mappings", count, MIN_MAPPING_BYTES)?;
    if w.is_decoding() {
        sources.resize_with(count, VirtualSource::default);
    }
    for source in sources {
        w.nul_terminated_name("source file", &mut source.file)?;
        w.nul_terminated_name("source dataset", &mut source.dataset)?;
        let (mut from, mut to) = if w.is_decoding() {
            Default::default()
        } else {
            let target = target_space(&source.target, space);
            let from = bounds(&source.source).or_else(|| bounds(&source.target)).unwrap_or_else(|| space.clone());
            (EncodedDataspace::new(&from, &source.source), EncodedDataspace::new(&target, &source.target))
        };
        w.record(&mut from)?;
        w.record(&mut to)?;
        if w.is_decoding() {
            *space = to.dataspace();
        }
        (source.source, source.target) = (from.into_selection(), to.into_selection());
    }
    Ok(())
}

/// The shape of the dataset, if the selection is one of it.
fn target_space(target: &Selection, space: &Dataspace) -> Dataspace {
    let fits = target.rank().is_none_or(|rank| rank == space.rank());
    bounds(target).filter(|_| !fits).unwrap_or_else(|| space.clone())
}

/// The smallest dataspace that has the selected elements; `None` if the selection has no rank. The description of a
/// virtual dataset does not know the shapes of its sources, but the library encodes selections with shapes.
fn bounds(selection: &Selection) -> Option<Dataspace> {
    let rank = selection.rank()?;
    let (mut dims, mut max) = (vec![0u64; rank], vec![0u64; rank]);
    let mut cover = |axis: usize, end: Option<u64>, start: u64| {
        let (Some(dim), Some(max)) = (dims.get_mut(axis), max.get_mut(axis)) else { return };
        *dim = (*dim).max(end.unwrap_or(start));
        *max = (*max).max(end.unwrap_or(UNLIMITED));
    };
    match selection {
        Selection::All | Selection::None => {}
        Selection::Hyperslab(slab) => {
            let axes = slab.start.iter().zip(&slab.stride).zip(slab.count.iter().zip(&slab.block));
            for (axis, ((start, stride), (count, block))) in axes.enumerate() {
                let limited = *count != UNLIMITED && *block != UNLIMITED;
                let last = count.saturating_sub(1).saturating_mul(*stride).saturating_add(*start);
                cover(axis, limited.then(|| last.saturating_add(*block)), *start);
            }
        }
        Selection::Blocks(blocks) => {
            for block in blocks {
                let ends = block.start.iter().zip(&block.count).map(|(start, count)| start.saturating_add(*count));
                ends.enumerate().for_each(|(axis, end)| cover(axis, Some(end), 0));
            }
        }
        Selection::Points(points) => {
            for point in points {
                point.iter().enumerate().for_each(|(axis, at)| cover(axis, Some(at.saturating_add(1)), 0));
            }
        }
    }
    Shape::with_max(&dims, &max).map(Dataspace::Simple)
}
