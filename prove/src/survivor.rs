//! The one who opens a file after a crash, who knows what must be there.

use std::sync::Arc;

use h5live::{File, Options};
use h5live_checker::crash::{Disk, Expected};
use h5live_checker::schedule::Verdict;
use h5live_checker::trace::Counter;
use h5live_model::Objects;
use h5live_swmr::{Mode, NativeFile, OpenOptions, Trial};

use crate::checked::explain;
use crate::{Kind, Series, Workload, find};

/// Opens a file after a crash, reads it, writes on, and reads it again.
#[derive(Debug)]
pub struct Survivor {
    series: Vec<(Series, Counter, Counter)>,
}

impl Survivor {
    /// For the death of the writer of a workload: what was flushed is there, and nothing else but what was written.
    pub fn of_death(workload: &Workload) -> Self {
        Survivor::new(workload, "flushed")
    }

    /// For a power failure: what was durable is there, and each later flush whole or not at all.
    pub fn of_power_failure(workload: &Workload) -> Self {
        Survivor::new(workload, "durable")
    }

    fn new(workload: &Workload, kept: &str) -> Self {
        let counter = |series: &Series, what: &str| Counter::new(&workload.trace, &format!("{}.{what}", series.name));
        let watch = |series: &Series| (series.clone(), counter(series, kept), counter(series, "issued"));
        Survivor { series: workload.series.iter().map(watch).collect() }
    }

    /// Recovers a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn recover(&self, disk: &Arc<Disk>, expected: &Expected) -> Verdict {
        self.read(disk, Mode::Read, expected, 0)?;
        if expected.round == 0 {
            self.write_on(disk, expected)?;
            self.read(disk, Mode::Read, expected, 1)?;
        }
        Ok(())
    }

    fn open(disk: &Arc<Disk>, mode: Mode) -> Result<NativeFile, String> {
        let trial = Trial { shards: Some(1), ..Trial::default() };
        let options = OpenOptions { mode, trial, take_over: true, ..OpenOptions::default() };
        NativeFile::on(disk.clone(), &options).map_err(|error| format!("cannot open to {mode:?}: {}", explain(&error)))
    }

    /// Reads everything; `more` rows have been appended since the crash.
    fn read(&self, disk: &Arc<Disk>, mode: Mode, expected: &Expected, more: u64) -> Verdict {
        let file = Survivor::open(disk, mode)?;
        for (series, kept, issued) in &self.series {
            let (kept, issued) = (kept.at(expected.least).unwrap_or(0), issued.at(expected.most).unwrap_or(0));
            let more =
                if matches!(series.kind, Kind::Rows { .. }) { more.max(expected.round.min(1).into()) } else { 0 };
            self.read_series(&file, series, (kept, issued, more))
                .map_err(|fault| format!("{}: {fault}", series.name))?;
        }
        Ok(())
    }

    fn read_series(&self, file: &NativeFile, series: &Series, (kept, issued, more): (u64, u64, u64)) -> Verdict {
        let told = |error: h5live_model::Error| explain(&error);
        let id = find(file, series.name).map_err(told)?.ok_or("the link is not there")?;
        let dataset = file.dataset(id).map_err(told)?;
        let extent = dataset.spec().map_err(told)?.dataspace.dims().first().copied().unwrap_or(0);
        if extent < series.extent(kept) || extent > series.extent(issued + more) {
            return Err(format!("the extent is {extent}, of {kept} rows kept and {issued} written"));
        }
        for at in series.first / series.chunk..extent.div_ceil(series.chunk) {
            let first = at * series.chunk;
            let Some(chunk) = dataset.chunk(&series.coord(at)).map_err(told)? else {
                if series.least_version(at, kept) > 0 {
                    return Err(format!("there is no chunk for row {first}, the extent is {extent}"));
                }
                continue;
            };
            let mut bytes = vec![0; series.chunk as usize * 8];
            dataset.read(&chunk, 0, &mut bytes).map_err(told)?;
            for (row, value) in (first..extent)
                .zip(bytes.chunks_exact(8))
                .filter(|(row, _)| *row >= series.first && series.is_written(*row))
            {
                let value = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                let least = series.least_version(at, kept);
                match series.version(row, value) {
                    Some(version) if version >= least => {}
                    _ => return Err(format!("row {row} is {value:#x}, the extent is {extent}")),
                }
            }
        }
        Ok(())
    }

    /// Opens the file to write, appends a row to each series, and closes it.
    fn write_on(&self, disk: &Arc<Disk>, expected: &Expected) -> Verdict {
        let file = Survivor::open(disk, Mode::SwmrWrite)?;
        let file = File::with_store(Arc::new(file), "recovered", Options::default());
        let told = |error: h5live::Error| explain(&error);
        for (series, ..) in self.series.iter().filter(|(series, ..)| matches!(series.kind, Kind::Rows { .. })) {
            let dataset = file.dataset(series.name).map_err(told)?;
            let row = dataset.shape().map_err(told)?.first().copied().unwrap_or(0);
            dataset.append(&[series.value(row, 1)]).map_err(told)?;
        }
        file.flush().map_err(told)?;
        self.read(disk, Mode::SwmrRead, expected, 1)?;
        file.close().map_err(told)
    }
}
