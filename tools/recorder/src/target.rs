//! The dataset into which rows are recorded: how a new one is made, and what an existing one must be.

use std::fmt;

use h5live::{Dataset, ErrorKind, File};
use h5live_format::messages::DatatypeMessage;
use h5live_format::{LibVer, Widths, encoded_len};

use h5live::model::{CharacterSet, CompoundMember, CompoundType, Datatype, Error as StoreError, VlenAndReferenceSizes};
use h5live_text::times::{TIME_UNITS, is_time_column, units_attribute_name};

use super::error::{DatasetProblem, Error, Result};
use super::input::VALUE_COLUMN_NAME;
use super::row::RowType;

/// A chunk of small rows has about this many bytes.
const CHUNK_BYTES: u64 = 64 << 10;

/// Most bytes of the description of a datatype in a file.
const MAX_MESSAGE_BYTES: usize = u16::MAX as usize;

/// How a new dataset is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordLayout {
    /// Rows of a chunk (`--chunk`); as many as suit their size if it is not said.
    pub chunk_rows: Option<u64>,
    /// The level of deflate, from 1 (fast) to 9 (small), with shuffle before it (`--deflate`).
    pub deflate: Option<u32>,
}

/// A setting that says how a new dataset is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutSetting {
    /// [`RecordLayout::chunk_rows`].
    ChunkRows,
    /// [`RecordLayout::deflate`].
    Deflate,
    /// [`RecordOptions::fixed_text_bytes`](super::options::RecordOptions::fixed_text_bytes).
    FixedTextBytes,
}

impl fmt::Display for LayoutSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LayoutSetting::ChunkRows => "--chunk",
            LayoutSetting::Deflate => "--deflate",
            LayoutSetting::FixedTextBytes => "--str-width",
        })
    }
}

/// A dataset that is open for appending.
#[derive(Debug)]
pub struct RecordTarget {
    /// The dataset.
    pub dataset: Dataset,
    /// The paths that were not there before: of groups, the outer ones first, and of the dataset.
    pub created_paths: Vec<String>,
}

/// Opens a dataset for appending, and makes it if it is not there.
///
/// # Errors
/// [`Error::File`], and [`Error::Dataset`] if there is one of another type or shape, or the rows have too many columns.
pub fn open_or_create(
    file: &File,
    path: &str,
    datatype: &Datatype,
    row_dims: &[u64],
    time_columns: &[String],
    layout: RecordLayout,
) -> Result<RecordTarget> {
    // Others that have joined a log may make the dataset, or a group on the way to it, at the same time.
    let mut most_missing = usize::MAX;
    loop {
        match file.dataset(path) {
            Err(error) if error.is_not_found_in_file() => {}
            found => {
                return Ok(RecordTarget { dataset: check(found?, datatype, row_dims)?, created_paths: Vec::new() });
            }
        }
        let made = missing_paths(file, path)?;
        match create(file, path, datatype, row_dims, layout) {
            Ok(dataset) => {
                for column in time_columns {
                    let units = Datatype::fixed_string(TIME_UNITS.len() as u32, CharacterSet::Ascii);
                    dataset
                        .new_attribute(&units_attribute_name(column))
                        .datatype(units)
                        .write_raw(TIME_UNITS.as_bytes())?;
                }
                file.flush()?;
                return Ok(RecordTarget { dataset, created_paths: made });
            }
            // Each time, less is missing: what stays in the way, such as a link that leads nowhere, is an error.
            Err(Error::File(error)) if is_there(&error) && made.len() < most_missing => {
                most_missing = made.len();
                file.refresh()?;
            }
            Err(error) => {
                return Err(too_many_columns(path, datatype).map_or(error, Error::Dataset));
            }
        }
    }
}

/// Whether a name has been taken.
fn is_there(error: &h5live::Error) -> bool {
    matches!(error.kind(), ErrorKind::Store(StoreError::Exists(_)))
}

/// The groups on the way to a dataset that are not there, and the dataset.
fn missing_paths(file: &File, path: &str) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let names: Vec<_> = path.split('/').filter(|name| !name.is_empty()).collect();
    for depth in 1..=names.len() {
        let path = format!("/{}", names[..depth].join("/"));
        match file.group(&path) {
            _ if depth == names.len() => missing.push(path),
            Err(error) if error.is_not_found_in_file() => missing.push(path),
            found => drop(found?),
        }
    }
    Ok(missing)
}

/// That rows have more columns than the datatype of a dataset may have, if so.
fn too_many_columns(path: &str, datatype: &Datatype) -> Option<DatasetProblem> {
    let Datatype::Compound(compound) = datatype else { return None };
    let fits = |columns: usize| {
        let members = compound.members[..columns].to_vec();
        let datatype = Datatype::Compound(CompoundType { size: compound.size, members });
        let message = DatatypeMessage::new(LibVer::default(), datatype);
        encoded_len(&message, Widths::default()).is_ok_and(|bytes| bytes <= MAX_MESSAGE_BYTES)
    };
    let (mut few, mut many) = (0, compound.members.len() + 1);
    while few + 1 < many {
        let middle = few + (many - few) / 2;
        *(if fits(middle) { &mut few } else { &mut many }) = middle;
    }
    let number = compound.members.len();
    (few < number).then(|| DatasetProblem::TooManyInputColumns { path: path.to_owned(), number, max_columns: few })
}

/// The type of a dataset, with texts as large as in an HDF5 file.
fn plain_type(dataset: &Dataset) -> Result<Datatype> {
    Ok(dataset.datatype()?.with_vlen_and_reference_sizes(
        dataset.file().session().vlen_and_reference_sizes,
        VlenAndReferenceSizes::default(),
    ))
}

/// The shape of a row (elements), if it is more than one element.
///
/// # Errors
/// [`Error::File`].
pub fn row_dims(dataset: &Dataset) -> Result<Option<Vec<u64>>> {
    let shape = dataset.shape()?;
    Ok(shape.get(1..).filter(|row| !row.is_empty()).map(<[u64]>::to_vec))
}

/// How deep the lists of a row are, with those of elements that are arrays; 0 if a row is one element.
///
/// # Errors
/// [`Error::File`].
pub fn row_nesting_depth(dataset: &Dataset) -> Result<usize> {
    let Some(row) = row_dims(dataset)? else { return Ok(0) };
    let inner = match dataset.datatype()? {
        Datatype::Array(array) => array.dims.len(),
        _ => 0,
    };
    Ok(row.len() + inner)
}

/// The columns of a dataset for rows without names; `None` if it has no columns that can be recorded.
///
/// # Errors
/// [`Error::File`].
pub fn row_type_for_unnamed(dataset: &Dataset) -> Result<Option<RowType>> {
    if let Some(row_dims) = row_dims(dataset)? {
        return Ok(RowType::of_array_rows(&plain_type(dataset)?, &row_dims, &[VALUE_COLUMN_NAME.to_owned()]));
    }
    let Some(table) = RowType::for_unnamed(&plain_type(dataset)?) else { return Ok(None) };
    Ok(Some(table.with_times(|column| is_time_column(dataset, column))))
}

/// The columns of a dataset for rows with these names; `None` if it has others.
///
/// # Errors
/// [`Error::File`].
pub fn row_type_for_names(dataset: &Dataset, names: &[String]) -> Result<Option<RowType>> {
    if let Some(row_dims) = row_dims(dataset)? {
        return Ok(RowType::of_array_rows(&plain_type(dataset)?, &row_dims, names));
    }
    let Some(table) = RowType::for_names(&plain_type(dataset)?, names) else { return Ok(None) };
    Ok(Some(table.with_times(|column| is_time_column(dataset, column))))
}

fn create(file: &File, path: &str, datatype: &Datatype, row: &[u64], storage: RecordLayout) -> Result<Dataset> {
    let row_bytes = row.iter().product::<u64>().saturating_mul(u64::from(datatype.size()));
    let chunk_rows = storage.chunk_rows.unwrap_or((CHUNK_BYTES / row_bytes.max(1)).clamp(1, 4096));
    let chunk: Vec<_> = std::iter::once(chunk_rows).chain(row.iter().copied()).collect();
    let mut builder = file.root().new_dataset_with_type(datatype.clone()).unlimited_rows(row).chunk_shape(&chunk);
    if let Some(level) = storage.deflate {
        builder = builder.shuffle().deflate(level);
    }
    Ok(builder.create(path)?)
}

fn check(dataset: Dataset, datatype: &Datatype, row: &[u64]) -> Result<Dataset> {
    let spec = dataset.spec()?;
    let text = |datatype: &Datatype, row: &[u64]| format!("rows {row:?} of {}", datatype);
    // By what they say: the padding of unused bits, of which there are none, may differ.
    let found = match spec.dataspace.dims() {
        [] => format!("no rows, but one value of {}", spec.datatype),
        [_, found @ ..] => text(&spec.datatype, found),
    };
    // As elements of this store have it.
    let datatype = &datatype.with_vlen_and_reference_sizes(
        VlenAndReferenceSizes::default(),
        dataset.file().session().vlen_and_reference_sizes,
    );
    let given = text(datatype, row);
    if found == given {
        return Ok(dataset);
    }
    let path = dataset.path().to_owned();
    let problem = other_columns(&path, &spec.datatype, datatype);
    let problem = problem.unwrap_or(DatasetProblem::RowTypeMismatch { path, found, given });
    Err(problem.into())
}

/// What is different in the columns of the dataset at `path` and of the input, if both have some.
fn other_columns(path: &str, found: &Datatype, given: &Datatype) -> Option<DatasetProblem> {
    let (Datatype::Compound(found), Datatype::Compound(given)) = (found, given) else { return None };
    let names = |compound: &CompoundType| compound.members.iter().map(|member| member.name.to_string()).collect();
    let of_name = |given: &CompoundMember| member_type(found, &given.name.to_string());
    let missing: Vec<_> = given.members.iter().filter(|member| of_name(member).is_none()).collect();
    if !missing.is_empty() {
        let missing = missing.iter().map(|member| member.name.to_string()).collect();
        return Some(DatasetProblem::NoSuchColumns { path: path.to_owned(), missing, columns: names(found) });
    }
    let pairs = given.members.iter().filter_map(|given| Some((of_name(given)?, given)));
    let texts = pairs.map(|(found, given)| (given, found.to_string(), given.datatype.to_string()));
    let (member, found, given) = texts.into_iter().find(|(_, found, given)| found != given)?;
    Some(DatasetProblem::ColumnTypeMismatch {
        column: format!("{:?} of {path}", member.name.to_string()),
        found,
        given,
    })
}

/// The type of a member, or of one of its members, as `place.x`.
fn member_type<'a>(of: &'a CompoundType, name: &str) -> Option<&'a Datatype> {
    let inside = |member: &'a CompoundMember| {
        let rest = name.strip_prefix(&member.name.to_string())?;
        match &member.datatype {
            datatype if rest.is_empty() => Some(datatype),
            Datatype::Compound(inner) => member_type(inner, rest.strip_prefix('.')?),
            _ => None,
        }
    };
    of.members.iter().find_map(inside)
}
