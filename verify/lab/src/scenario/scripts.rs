//! The writers and readers of the scenarios that are not cells of the matrix.

use std::path::PathBuf;

use h5live::model::{Hyperslab, Selection, VirtualSource};
use h5live::{Attribute, ByteOrder, Dataset, Datatype, File, H5Type, Location, Object, UNLIMITED};

use crate::stress::rule::mix;
use h5live::model::Sign;
use h5live_cli::error::Result;
use h5live_cli::live::location;
use h5live_cli::open;

/// A scenario: how a file comes to be, what a step of its writer is, and what a reader may see.
pub trait ScenarioScript {
    /// Fills the new store, which is to be at a location, before anybody reads.
    ///
    /// # Errors
    /// [`h5live_cli::error::Error::File`].
    fn make(&self, file: &File, location: &Location) -> Result<()>;

    /// Opens the files for writing.
    ///
    /// # Errors
    /// [`h5live_cli::error::Error::File`].
    fn begin(&self, location: &Location) -> Result<Vec<File>> {
        Ok(vec![File::options().swmr_write().open(location)?])
    }

    /// Makes step `number` and flushes.
    ///
    /// # Errors
    /// [`h5live_cli::error::Error::File`].
    fn step(&self, files: &[File], number: u64) -> Result<()>;

    /// Checks everything new in a file. Returns the number of complete steps, or the fault.
    ///
    /// # Errors
    /// [`h5live_cli::error::Error::File`].
    fn look(&self, file: &File, turn: u64) -> Result<Result<u64, String>>;
}

/// Rows of a dataset that are read again though they were right before.
const REREAD_ROWS: u64 = 16;

fn value(stream: u64, row: u64) -> u64 {
    mix(row ^ stream << 40) | 1
}

fn values(stream: u64, first: u64, count: u64) -> Vec<u64> {
    (first..first + count).map(|row| value(stream, row)).collect()
}

/// Refreshes a dataset, and compares its newest rows and some others; how many there are.
fn rows(dataset: &Dataset, stream: u64, turn: u64) -> Result<Result<u64, String>> {
    dataset.refresh()?;
    let count = dataset.shape()?.first().copied().unwrap_or(0);
    let somewhere = mix(turn ^ stream) % count.max(1);
    for first in [count.saturating_sub(REREAD_ROWS), somewhere] {
        let end = count.min(first + REREAD_ROWS);
        let found: Vec<u64> = dataset.read_slice(first..end)?;
        if found != values(stream, first, end - first) {
            return Ok(Err(format!("{}: rows {first} to {end} are not those that were written", dataset.path())));
        }
    }
    Ok(Ok(count))
}

/// Many datasets on several levels; each step appends to one of them (generator, writer, reader).
pub struct NestedDatasets;

const LEVELS: u64 = 3;
const STREAMS: u64 = 5;
const ROWS: u64 = 3;

fn stream_path(stream: u64) -> String {
    format!("level-{}/stream-{}", stream / STREAMS, stream % STREAMS)
}

impl ScenarioScript for NestedDatasets {
    fn make(&self, file: &File, _: &Location) -> Result<()> {
        for stream in 0..LEVELS * STREAMS {
            let chunk = 1 + stream % 4 * 5;
            file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[chunk]).create(&stream_path(stream))?;
        }
        Ok(())
    }

    fn step(&self, files: &[File], number: u64) -> Result<()> {
        let stream = mix(number) % (LEVELS * STREAMS);
        for file in files {
            let dataset = file.dataset(&stream_path(stream))?;
            let first = dataset.shape()?.first().copied().unwrap_or(0);
            dataset.append(&values(stream, first, ROWS))?;
            dataset.flush()?;
        }
        Ok(())
    }

    fn look(&self, file: &File, turn: u64) -> Result<Result<u64, String>> {
        let mut all = 0;
        for stream in 0..LEVELS * STREAMS {
            match rows(&file.dataset(&stream_path(stream))?, stream, turn)? {
                Ok(count) => all += count,
                wrong => return Ok(wrong),
            }
        }
        Ok(Ok(all / ROWS))
    }
}

/// An existing file is opened and changed. Only then others may follow, with all handles open.
pub struct StartWrite;

const INITIAL_ROWS: u64 = 100;

impl ScenarioScript for StartWrite {
    fn make(&self, file: &File, _: &Location) -> Result<()> {
        let data = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[7]).create("group/data")?;
        Ok(data.append(&values(0, 0, INITIAL_ROWS))?)
    }

    fn begin(&self, location: &Location) -> Result<Vec<File>> {
        let file = File::options().write().open(location)?;
        let data = file.dataset("group/data")?;
        data.append(&values(0, INITIAL_ROWS, INITIAL_ROWS))?;
        data.set_attribute("rows before", &(2 * INITIAL_ROWS))?;
        file.start_swmr()?;
        data.append(&values(0, 2 * INITIAL_ROWS, 1))?;
        Ok(vec![file])
    }

    fn step(&self, files: &[File], _: u64) -> Result<()> {
        for file in files {
            let data = file.dataset("group/data")?;
            let first = data.shape()?.first().copied().unwrap_or(0);
            data.append(&values(0, first, 1))?;
            data.flush()?;
        }
        Ok(())
    }

    fn look(&self, file: &File, turn: u64) -> Result<Result<u64, String>> {
        let data = file.dataset("group/data")?;
        let before: u64 = data.attribute("rows before")?.read_scalar()?;
        if before != 2 * INITIAL_ROWS {
            return Ok(Err(format!("{before} rows are said to have been there before")));
        }
        Ok(rows(&data, 0, turn)?.map(|count| count - 2 * INITIAL_ROWS - 1))
    }
}

/// Several datasets that are appended to by turns and flushed together.
pub struct SeveralDatasets;

const DATASETS: u64 = 6;

impl ScenarioScript for SeveralDatasets {
    fn make(&self, file: &File, _: &Location) -> Result<()> {
        for n in 0..DATASETS {
            let mut builder = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[1 + n * 3]);
            if n % 2 == 1 {
                builder = builder.shuffle().deflate(1);
            }
            builder.create(&format!("data-{n}"))?;
        }
        Ok(())
    }

    fn step(&self, files: &[File], number: u64) -> Result<()> {
        for file in files {
            for n in 0..DATASETS {
                file.dataset(&format!("data-{n}"))?.append(&values(n, number, 1))?;
            }
            file.flush()?;
        }
        Ok(())
    }

    fn look(&self, file: &File, turn: u64) -> Result<Result<u64, String>> {
        let mut min_steps = u64::MAX;
        for n in 0..DATASETS {
            match rows(&file.dataset(&format!("data-{n}"))?, n, turn)? {
                Ok(count) => min_steps = min_steps.min(count),
                wrong => return Ok(wrong),
            }
        }
        Ok(Ok(min_steps))
    }
}

/// A virtual dataset with sources in other files, which are written live.
pub struct VirtualDataset;

const SOURCES: u64 = 3;

fn source_path(location: &Location, n: u64) -> Result<PathBuf> {
    let path = location::require_new_native_file_path(location, "a virtual dataset with sources in other files")?;
    Ok(path.with_extension(format!("source-{n}.h5")))
}

impl ScenarioScript for VirtualDataset {
    fn make(&self, file: &File, location: &Location) -> Result<()> {
        let slab = |start: &[u64], block: &[u64]| {
            let mut slab = Hyperslab::block(start, block);
            slab.block.first_mut().into_iter().for_each(|block| *block = UNLIMITED);
            Selection::Hyperslab(slab)
        };
        let mut sources = Vec::new();
        for n in 0..SOURCES {
            let source = source_path(location, n)?;
            let file = File::create(&source)?;
            file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[4]).create("data")?;
            file.close()?;
            let name = source.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let (file, dataset) = (name.as_str().into(), "/data".into());
            sources.push(VirtualSource { file, dataset, source: slab(&[0], &[1]), target: slab(&[0, n], &[1, 1]) });
        }
        let whole = file.new_dataset::<u64>().shape(&[0, SOURCES]).max_shape(&[UNLIMITED, SOURCES]);
        whole.virtual_sources(sources).create("whole")?;
        Ok(())
    }

    fn begin(&self, location: &Location) -> Result<Vec<File>> {
        (0..SOURCES).map(|n| Ok(File::options().swmr_write().open(source_path(location, n)?)?)).collect()
    }

    fn step(&self, files: &[File], number: u64) -> Result<()> {
        for (n, file) in (0..).zip(files) {
            let data = file.dataset("data")?;
            data.append(&values(n, number, 1))?;
            data.flush()?;
        }
        Ok(())
    }

    fn look(&self, file: &File, _: u64) -> Result<Result<u64, String>> {
        let whole = file.dataset("whole")?;
        whole.refresh()?;
        let shape = whole.shape()?;
        let rows = shape.first().copied().unwrap_or(0);
        let first = rows.saturating_sub(REREAD_ROWS);
        let found: Vec<u64> = whole.read_slice((first..rows, ..))?;
        let mut all = first;
        for (row, found) in (first..).zip(found.chunks(SOURCES as usize)) {
            // A source that is behind the others has nothing there yet.
            let wrong = (0..).zip(found).find(|(n, found)| **found != 0 && **found != value(*n, row));
            if let Some((n, found)) = wrong {
                return Ok(Err(format!("/whole: row {row} of source {n} is {found}")));
            }
            all += u64::from(all == row && !found.contains(&0));
        }
        Ok(Ok(all))
    }
}

/// Attributes of a group, a dataset and a named type that change, become many, and go (flush and refresh).
pub struct ChangingAttributes;

const OBJECTS: [&str; 3] = ["group", "group/data", "group/type"];
/// Attributes that each object has besides.
const EXTRA_ATTRIBUTES: u64 = 12;

fn set<T: H5Type>(object: &Object, name: &str, value: &T) -> Result<()> {
    match object {
        Object::Group(group) => group.set_attribute(name, value)?,
        Object::Dataset(dataset) => dataset.set_attribute(name, value)?,
        Object::Datatype(named) => named.set_attribute(name, value)?,
        _ => {}
    }
    Ok(())
}

fn attributes(object: &Object) -> Result<Vec<Attribute>> {
    Ok(match object {
        Object::Group(group) => group.attributes()?,
        Object::Dataset(dataset) => dataset.attributes()?,
        Object::Datatype(named) => named.attributes()?,
        _ => Vec::new(),
    })
}

/// The number of steps that an object states.
fn steps_of(attributes: &[Attribute]) -> Result<u64> {
    let steps = attributes.iter().find(|attribute| *attribute.name() == "steps");
    Ok(steps.map_or(Ok(0), Attribute::read_scalar)?)
}

impl ScenarioScript for ChangingAttributes {
    fn make(&self, file: &File, _: &Location) -> Result<()> {
        let group = file.create_group("group")?;
        group.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[4]).create("data")?;
        group.commit_datatype("type", &Datatype::integer(4, ByteOrder::Big, Sign::Signed))?;
        Ok(())
    }

    fn step(&self, files: &[File], number: u64) -> Result<()> {
        for file in files {
            for (n, path) in (0..).zip(OBJECTS) {
                let object = file.object(path)?;
                set(&object, &format!("other {}", number % EXTRA_ATTRIBUTES), &value(n, number).to_string())?;
                set(&object, "steps", &(number + 1))?;
            }
            file.flush()?;
        }
        Ok(())
    }

    fn look(&self, file: &File, _: u64) -> Result<Result<u64, String>> {
        let mut min_steps = u64::MAX;
        for (n, path) in (0..).zip(OBJECTS) {
            let object = file.object(path)?;
            let before = steps_of(&attributes(&object)?)?;
            let found = attributes(&object)?;
            let after = steps_of(&attributes(&object)?)?;
            for attribute in found.iter().filter(|attribute| *attribute.name() != "steps") {
                let name = attribute.name().to_string();
                let text: String = attribute.read_scalar()?;
                let other: u64 = name.trim_start_matches("other ").parse().unwrap_or(EXTRA_ATTRIBUTES);
                // Set between the looks before and after, or the last time before them.
                let mut steps =
                    (before.saturating_sub(EXTRA_ATTRIBUTES)..=after).filter(|step| step % EXTRA_ATTRIBUTES == other);
                if !steps.any(|step| value(n, step).to_string() == text) {
                    return Ok(Err(format!("/{path}: attribute {name:?} is {text:?} after {before} to {after} steps")));
                }
            }
            min_steps = min_steps.min(steps_of(&found)?);
        }
        Ok(Ok(min_steps))
    }
}

/// Opens the file that readers read.
///
/// # Errors
/// [`h5live_cli::error::Error::File`].
pub fn follow(location: &Location) -> Result<File> {
    open::for_following(location)
}
