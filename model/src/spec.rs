//! Descriptions of objects. A store creates an object from a description, and returns the description of an existing
//! one.

use crate::{ChunkCoord, ChunkGrid, Dataspace, Datatype, Error, MapSpec, Name, ObjectId, Result, Selection};

/// Little memory (bytes).
const SMALL_FILL_BYTES: usize = 1 << 10;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A group of links.
    Group,
    /// An array of elements.
    Dataset,
    /// A committed datatype.
    Datatype,
    /// A map of keys to values.
    Map,
}

/// One step of a filter pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FilterSpec {
    /// The registered number of the filter.
    pub id: u16,
    /// Whether a chunk on which the filter fails is stored without it.
    pub optional: bool,
    /// The name, as the file has it.
    pub name: Option<Name>,
    /// The filter's parameters ("client data").
    pub params: Vec<u32>,
}

/// The filters of a dataset, in the order in which they are applied on writing.
pub type FilterSpecs = Vec<FilterSpec>;

/// When storage is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AllocationTime {
    /// When the dataset is created.
    Early,
    /// When it is first written.
    Late,
    /// Chunk by chunk, when each is first written.
    #[default]
    Incremental,
}

/// When fill values are written into newly allocated storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FillTime {
    /// On allocation.
    Allocation,
    /// Never.
    Never,
    /// On allocation, if the user set a fill value.
    #[default]
    IfSet,
}

/// The value of elements that were never written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum FillValue {
    /// Zero bytes.
    #[default]
    Default,
    /// Nothing in particular.
    Undefined,
    /// The bytes of an element in the file's datatype.
    Value(Vec<u8>),
}

/// The fill value with its times.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Fill {
    /// When storage is allocated.
    pub allocation: AllocationTime,
    /// When the value is written.
    pub time: FillTime,
    /// The value.
    pub value: FillValue,
}

/// How the elements of a dataset are laid out, as far as the data model knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Inside the object's own description.
    Compact,
    /// One run of bytes.
    #[default]
    Contiguous,
    /// In chunks of these dimensions (`[rank]`, elements).
    Chunked(Vec<u64>),
    /// In raw files beside the store, one after the other.
    External(Vec<ExternalPiece>),
    /// In other datasets, piece by piece; where pieces overlap, the later one counts.
    Virtual(Vec<VirtualSource>),
}

/// A piece of a raw file that holds elements of a dataset (format specification 4.0, IV.A.2.h).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ExternalPiece {
    /// The name of the file, as the dataset names it.
    pub name: Name,
    /// Where the piece begins in the file (bytes).
    pub offset: u64,
    /// Bytes of the piece. [`UNLIMITED`](crate::UNLIMITED) takes all bytes that follow; only the last piece may have
    /// it.
    pub size: u64,
}

/// A piece of a virtual dataset (format specification 4.0, III.J "Virtual Dataset").
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VirtualSource {
    /// The file that holds the source; `.` for the file of the virtual dataset itself.
    pub file: Name,
    /// The path of the source dataset; `%b` in it or in the file's name stands for the number of a block.
    pub dataset: Name,
    /// The elements of the source.
    pub source: Selection,
    /// The elements of the virtual dataset that they stand for.
    pub target: Selection,
}

/// The description of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DatasetSpec {
    /// The type of an element.
    pub datatype: Datatype,
    /// The committed datatype of the same store that is the type, if it is one.
    pub committed_datatype: Option<ObjectId>,
    /// The shape.
    pub dataspace: Dataspace,
    /// The layout.
    pub layout: Layout,
    /// The filters.
    pub filters: FilterSpecs,
    /// The value of elements that were never written.
    pub fill: Fill,
    /// Whether chunks that reach over the extent are stored without filters.
    pub unfiltered_partial_chunks: bool,
}

impl DatasetSpec {
    /// The grid of the chunks: one chunk of the size of the extent if the layout is not chunked. `None` if there
    /// are no elements, or the layout is of another rank than the shape.
    pub fn grid_or_single_chunk(&self) -> Option<ChunkGrid> {
        ChunkGrid::new(self.chunk_dims_or_extent()?)
    }

    /// The dimensions of a chunk, as those of [`DatasetSpec::grid_or_single_chunk`] (`[rank]`, elements): none is zero.
    pub fn chunk_dims_or_extent(&self) -> Option<&[u64]> {
        let dims = match &self.layout {
            Layout::Chunked(dims) => (dims.len() == self.dataspace.rank()).then_some(&dims[..])?,
            _ if matches!(self.dataspace, Dataspace::Null) => return None,
            _ => self.dataspace.dims(),
        };
        (!dims.contains(&0)).then_some(dims)
    }

    /// The bytes of a decoded chunk, or `None` if there is no grid or they do not fit 64 bits.
    pub fn chunk_bytes_or_total(&self) -> Option<u64> {
        let size = u64::from(self.datatype.size());
        self.chunk_dims_or_extent()?.iter().try_fold(size, |n, dim| n.checked_mul(*dim))
    }

    /// Bytes of all elements; `None` if they are more than 2^64.
    fn element_bytes(&self) -> Option<u64> {
        self.dataspace.element_count()?.checked_mul(self.datatype.size().into())
    }

    /// Refuses a description that contradicts itself. Every store calls it before it makes a dataset.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<()> {
        // A chunk may be larger than the dataset can become: libhdf5 makes such datasets if they have no elements yet.
        let invalid = |what: &str| Err(Error::Invalid(what.to_owned()));
        self.dataspace.check()?;
        match (&self.layout, &self.dataspace) {
            (Layout::Chunked(_), Dataspace::Null | Dataspace::Scalar) => {
                return invalid("only a dataset with dimensions can be chunked");
            }
            (Layout::Chunked(_), _) if self.grid_or_single_chunk().is_none() => {
                return invalid("chunks must have the rank of the dataset, and no dimension of zero");
            }
            (Layout::Chunked(_), _) => {}
            _ if !self.filters.is_empty() => return invalid("filters need chunks"),
            (Layout::Virtual(_) | Layout::External(_), _) => {}
            (_, Dataspace::Simple(shape)) if shape.max_dims() != shape.dims() => {
                return invalid("a dataset that can grow must be chunked");
            }
            _ if self.element_bytes().is_none() => {
                return invalid("the elements of a dataset without chunks have more than 2^64 bytes");
            }
            _ => {}
        }
        if let Layout::External(files) = &self.layout {
            let room = files.iter().try_fold(0u64, |n, file| n.checked_add(file.size)).unwrap_or(u64::MAX);
            let bytes = self.dataspace.element_count().and_then(|n| n.checked_mul(self.datatype.size().into()));
            if bytes.is_none_or(|bytes| bytes > room) {
                return invalid("the external files have no room for all elements");
            }
        }
        match &self.fill.value {
            FillValue::Value(bytes) if bytes.len() as u64 != u64::from(self.datatype.size()) => {
                invalid("the fill value is not of the size of an element")
            }
            _ if self.datatype.size() == 0 => invalid("elements have no bytes"),
            _ => Ok(()),
        }
    }

    /// The bytes of the decoded chunk at `coord`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no chunk can be there: the coordinate is of another rank, or outside of the maximum.
    pub fn chunk_bytes_at(&self, coord: &ChunkCoord) -> Result<u64> {
        let outside = || Error::Invalid(format!("no chunk of this dataset is at {:?}", coord.scaled()));
        let grid = self.grid_or_single_chunk().ok_or_else(outside)?;
        let inside = match &self.layout {
            Layout::Chunked(_) => {
                let counts = grid.chunk_counts(self.dataspace.max_dims());
                coord.rank() == counts.len() && coord.scaled().iter().zip(&counts).all(|(at, n)| at < n)
            }
            _ => *coord == ChunkCoord::origin(self.dataspace.rank()),
        };
        self.chunk_bytes_or_total().filter(|_| inside).ok_or_else(outside)
    }

    /// The bytes of an element that nobody wrote (`[datatype.size()]`).
    pub fn fill_value_or_zeros(&self) -> Vec<u8> {
        let size = self.datatype.size() as usize;
        match &self.fill {
            Fill { time: FillTime::Never, .. } => vec![0; size],
            Fill { value: FillValue::Value(bytes), .. } if bytes.len() == size => bytes.clone(),
            _ => vec![0; size],
        }
    }

    /// The bytes of an element that nobody wrote; `None` if they are zeros.
    pub fn nonzero_fill_value(&self) -> Option<&[u8]> {
        match &self.fill {
            Fill { time: FillTime::Never, .. } => None,
            Fill { value: FillValue::Value(bytes), .. } if bytes.len() == self.datatype.size() as usize => {
                Some(bytes.as_slice()).filter(|bytes| bytes.iter().any(|byte| *byte != 0))
            }
            _ => None,
        }
    }

    /// Makes `into` what elements hold that nobody wrote, from `pattern_offset` on (bytes from the start of an element).
    pub fn fill_into(&self, pattern_offset: u64, into: &mut [u8]) {
        let Some(pattern) = self.nonzero_fill_value() else { return into.fill(0) };
        let skipped = (pattern_offset % pattern.len() as u64) as usize;
        let (first, rest) = into.split_at_mut((pattern.len() - skipped).min(into.len()));
        first.copy_from_slice(&pattern[skipped..skipped + first.len()]);
        rest.chunks_mut(pattern.len()).for_each(|element| element.copy_from_slice(&pattern[..element.len()]));
    }

    /// Fill values, `bytes` bytes of them; the last element may be cut off. Empty if elements have no bytes. The caller
    /// bounds `bytes`.
    pub fn repeated_fill_value(&self, bytes: usize) -> Vec<u8> {
        let bytes = if self.datatype.size() == 0 { 0 } else { bytes };
        if matches!(self.fill.value, FillValue::Default) && bytes <= SMALL_FILL_BYTES {
            // Memory that comes as zeros takes longer where it is little. The compiler would ask for it if it knew the
            // value.
            return std::iter::repeat_n(std::hint::black_box(0), bytes).collect();
        }
        let Some(element) = self.nonzero_fill_value() else { return vec![0; bytes] };
        let mut filled = Vec::with_capacity(bytes);
        filled.extend(element.iter().take(bytes));
        while filled.len() < bytes {
            filled.extend_from_within(..filled.len().min(bytes - filled.len()));
        }
        filled
    }
}

/// Whether the order in which entries are created is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum CreationOrder {
    /// No.
    #[default]
    Untracked,
    /// Each entry knows its position.
    Tracked,
    /// Entries are also found by their position.
    Indexed,
}

/// How the links of a group or the attributes of an object are kept.
///
/// Stores without compact and dense storage keep to the creation order alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkOrAttributeStorageSpec {
    /// The order of creation.
    pub order: CreationOrder,
    /// Most entries in the object's own description: with more, all of them move to dense storage.
    pub max_compact: u16,
    /// Fewest entries in dense storage: with fewer, they move back.
    pub min_dense: u16,
}

impl Default for LinkOrAttributeStorageSpec {
    /// No creation order, and libhdf5's numbers of entries.
    fn default() -> Self {
        LinkOrAttributeStorageSpec { order: CreationOrder::Untracked, max_compact: 8, min_dense: 6 }
    }
}

/// The description of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GroupSpec {
    /// How its links are kept.
    pub link_storage: LinkOrAttributeStorageSpec,
}

/// An object to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectSpec {
    /// The kind of the object, with its description.
    pub body: ObjectKindSpec,
    /// How its attributes are kept.
    pub attribute_storage: LinkOrAttributeStorageSpec,
    /// Whether it is kept when it was touched.
    pub track_times: bool,
    /// Whether it is to have attributes of more than 64 KiB, for which the oldest formats have no room.
    pub expects_large_attributes: bool,
}

/// The kind of an object that is to be created, with its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectKindSpec {
    /// A group without links.
    Group(GroupSpec),
    /// A dataset without elements.
    Dataset(Box<DatasetSpec>),
    /// A committed datatype.
    Datatype(Datatype),
    /// A map without pairs.
    Map(Box<MapSpec>),
}

impl From<ObjectKindSpec> for ObjectSpec {
    fn from(body: ObjectKindSpec) -> Self {
        ObjectSpec {
            body,
            attribute_storage: LinkOrAttributeStorageSpec::default(),
            track_times: false,
            expects_large_attributes: false,
        }
    }
}

impl From<GroupSpec> for ObjectSpec {
    fn from(group: GroupSpec) -> Self {
        ObjectKindSpec::Group(group).into()
    }
}

impl From<DatasetSpec> for ObjectSpec {
    fn from(dataset: DatasetSpec) -> Self {
        ObjectKindSpec::Dataset(Box::new(dataset)).into()
    }
}

impl From<Datatype> for ObjectSpec {
    fn from(datatype: Datatype) -> Self {
        ObjectKindSpec::Datatype(datatype).into()
    }
}

impl From<MapSpec> for ObjectSpec {
    fn from(map: MapSpec) -> Self {
        ObjectKindSpec::Map(Box::new(map)).into()
    }
}

impl ObjectSpec {
    /// A group with nothing out of the ordinary.
    pub fn group() -> Self {
        GroupSpec::default().into()
    }

    /// The description of a group.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if it is not one.
    pub fn into_group(self) -> Result<GroupSpec> {
        match self.body {
            ObjectKindSpec::Group(group) => Ok(group),
            _ => Err(Error::WrongKind { expected: "group" }),
        }
    }

    /// The type that a committed datatype holds.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if it is not one.
    pub fn into_datatype(self) -> Result<Datatype> {
        match self.body {
            ObjectKindSpec::Datatype(datatype) => Ok(datatype),
            _ => Err(Error::WrongKind { expected: "committed datatype" }),
        }
    }

    /// The description of a map.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if it is not one.
    pub fn into_map(self) -> Result<MapSpec> {
        match self.body {
            ObjectKindSpec::Map(map) => Ok(*map),
            _ => Err(Error::WrongKind { expected: "map" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_nobody_wrote_repeat_the_fill_value() {
        let datatype = Datatype::integer(4, Default::default(), Default::default());
        let mut spec = DatasetSpec { datatype, ..DatasetSpec::default() };
        assert_eq!(spec.repeated_fill_value(9), [0; 9]);
        spec.fill.value = FillValue::Value(vec![1, 2, 3, 4]);
        assert_eq!(spec.repeated_fill_value(0), []);
        assert_eq!(spec.repeated_fill_value(3), [1, 2, 3]);
        assert_eq!(spec.repeated_fill_value(13), [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1]);
        let mut part = [9; 9];
        spec.fill_into(6, &mut part);
        assert_eq!(part, [3, 4, 1, 2, 3, 4, 1, 2, 3]);
        spec.fill_into(3, &mut part[..1]);
        assert_eq!(part[0], 4);
        spec.fill.time = FillTime::Never;
        spec.fill_into(1, &mut part);
        assert_eq!((spec.nonzero_fill_value(), part), (None, [0; 9]));
    }
}
