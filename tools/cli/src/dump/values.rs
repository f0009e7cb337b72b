//! `h5live dump FILE PATH`: the values of a dataset or an attribute.

use std::sync::atomic::AtomicBool;

use h5live::{Dataset, SourceState};

use crate::error::{Error, FileProblem, Result};
use crate::model::{DatasetSpec, Dataspace};
use crate::output::StdoutWriter;
use crate::{open, progress, watch};

use super::lines::{ValueStyle, ValueWriter};
use super::slices::{DimRange, DimSlices, ascending_selection, restore_order};

/// Values are read in blocks of about this many bytes.
const BLOCK_BYTES: u64 = 4 << 20;

/// Writes the rows of a dataset, each on a line, and then those that its writer adds, until it ends or the user
/// interrupts.
///
/// # Errors
/// As [`crate::error::Error`] says.
pub fn write_and_follow_rows(
    dataset: &Dataset,
    slices: DimSlices,
    mut writer: ValueWriter<'_>,
    interrupted: &AtomicBool,
    out: &mut StdoutWriter,
) -> Result<()> {
    let dataset = &dataset.clone().ignore_busy_sources_in_extent();
    let file = dataset.file().name();
    let store_error = |source| Error::Store { file: file.into(), path: dataset.path().into(), source };
    let mut watch = dataset.file().store().watch(&[dataset.id()]).map_err(store_error)?;
    let mut rest = Some(slices);
    loop {
        let last = watch::should_stop_following(dataset, None, interrupted);
        let show = (|| {
            dataset.refresh()?;
            // Rows that were written are not written again, so all have to be readable.
            if matches!(last, Ok(false)) && dataset.source_states()?.contains(&SourceState::InExclusiveUse) {
                return Ok(());
            }
            let spec = dataset.spec()?;
            if let Some(slices) = rest.take() {
                let ranges = bind(dataset, &spec, &slices)?;
                write(dataset, &spec, &ranges, &mut writer, out)?;
                rest = slices.remaining_after(&ranges, spec.dataspace.dims());
            }
            out.flush()
        })();
        if watch::tolerate_busy_unless_last(last, show)? || rest.is_none() {
            return Ok(());
        }
        watch.wait(watch::POLL_INTERVAL).map_err(store_error)?;
    }
}

/// Writes the rows of a dataset, each on a line.
///
/// # Errors
/// As [`crate::error::Error`] says.
pub fn write_dataset_rows(
    dataset: &Dataset,
    slices: &DimSlices,
    mut writer: ValueWriter<'_>,
    out: &mut StdoutWriter,
) -> Result<()> {
    let spec = dataset.spec()?;
    let ranges = bind(dataset, &spec, slices)?;
    write(dataset, &spec, &ranges, &mut writer, out)
}

fn bind(dataset: &Dataset, spec: &DatasetSpec, slices: &DimSlices) -> Result<Vec<DimRange>> {
    slices.bind(spec.dataspace.dims()).map_err(|fault| {
        let problem = FileProblem::SliceOutOfBounds { path: dataset.path().to_owned(), fault };
        Error::UnsuitableFile { path: dataset.file().name().into(), problem }
    })
}

fn product(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(1, u64::saturating_mul)
}

/// Writes what is taken of a dataset, a row of the first dimension that is kept on a line.
fn write(
    dataset: &Dataset,
    spec: &DatasetSpec,
    ranges: &[DimRange],
    writer: &mut ValueWriter<'_>,
    out: &mut StdoutWriter,
) -> Result<()> {
    let kept = ranges.iter().position(|range| !range.is_index);
    let row: Vec<u64> = ranges.iter().filter(|range| !range.is_index).skip(1).map(|range| range.count).collect();
    writer.write_csv_header_once(dataset.path(), &spec.datatype, &row, out)?;
    let size = u64::from(spec.datatype.size());
    let elements = product(row.iter().copied());
    if writer.style() == ValueStyle::Raw {
        return write_raw_elements(dataset, ranges, size, out);
    }
    // A row is a line.
    open::check_value_memory(dataset, elements)?;
    let Some((at, rows)) = kept.and_then(|at| Some((at, *ranges.get(at)?))) else {
        return writer.write_lines(&row, dataset.read_values(ascending_selection(ranges))?, &[], out);
    };
    if elements == 0 {
        return Ok(());
    }
    let mut step = (BLOCK_BYTES / elements.saturating_mul(size).max(1)).max(1);
    let bar = progress::bar(usize::try_from(rows.count).unwrap_or(usize::MAX), "row");
    let mut first = 0;
    while first < rows.count {
        let part = rows.sub_range(first, step.min(rows.count - first));
        let mut ranges = ranges.to_vec();
        ranges.iter_mut().skip(at).take(1).for_each(|range| *range = part);
        let mut values = match dataset.read_values(ascending_selection(&ranges)) {
            // The rows hold more variable-length data than fits.
            Err(error) if error.is_over_max_allocation() && part.count > 1 => {
                step = part.count / 2;
                continue;
            }
            values => values?,
        };
        restore_order(&mut values, &ranges, 1);
        let labels: Vec<u64> = (0..part.count).map(|place| part.index_at(place)).collect();
        writer.write_lines(&row, values, &labels, out)?;
        first += part.count;
        bar.inc(part.count);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Writes the elements that are taken as stored, in pieces.
fn write_raw_elements(dataset: &Dataset, ranges: &[DimRange], size: u64, out: &mut StdoutWriter) -> Result<()> {
    let bytes = product(ranges.iter().map(|range| range.count)).saturating_mul(size);
    if bytes == 0 {
        return Ok(());
    }
    let cut = ranges.iter().position(|range| range.count > 1).filter(|_| bytes > BLOCK_BYTES);
    let Some((cut, whole)) = cut.and_then(|cut| Some((cut, *ranges.get(cut)?))) else {
        let mut elements = dataset.read_raw(ascending_selection(ranges))?;
        restore_order(&mut elements, ranges, usize::try_from(size).unwrap_or(usize::MAX));
        return out.bytes(&elements);
    };
    let step = (BLOCK_BYTES / (bytes / whole.count).max(1)).clamp(1, whole.count - 1);
    let mut done = 0;
    while done < whole.count {
        let part = whole.sub_range(done, step.min(whole.count - done));
        let mut ranges = ranges.to_vec();
        ranges.iter_mut().skip(cut).take(1).for_each(|range| *range = part);
        write_raw_elements(dataset, &ranges, size, out)?;
        done += part.count;
    }
    Ok(())
}

/// Writes the value of an attribute.
///
/// # Errors
/// As [`crate::error::Error`] says.
pub fn write_attribute_value(
    file: &h5live::File,
    attribute: &h5live::Attribute,
    style: ValueStyle,
    out: &mut StdoutWriter,
) -> Result<()> {
    if style == ValueStyle::Raw {
        return out.bytes(attribute.raw());
    }
    let mut writer = ValueWriter::new(style, file);
    let dims = attribute.dataspace().dims();
    let row = dims.get(1..).unwrap_or_default();
    writer.write_csv_header_once(&attribute.name().to_string(), attribute.datatype(), row, out)?;
    let labels: Vec<u64> = match attribute.dataspace() {
        Dataspace::Simple(_) => (0..dims.first().copied().unwrap_or(0)).collect(),
        _ => Vec::new(),
    };
    writer.write_lines(row, attribute.values()?, &labels, out)
}
