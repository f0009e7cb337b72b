//! The one who opens a file after a crash, who knows what must be there.

use std::sync::Arc;

use h5live::{File, Options};
use h5live_checker::crash::{Disk, Expected};
use h5live_checker::file::{self, Cause, check_with};
use h5live_checker::schedule::Verdict;
use h5live_checker::trace::Counter;
use h5live_model::Objects;
use h5live_swmr::{Mode, NativeFile, OpenOptions, Trial};

use crate::checked::{Sure, explain, verdict};
use crate::{Kind, Series, Workload, content, find};

/// What the trace counts of something.
#[derive(Debug)]
struct Counted {
    kept: Counter,
    issued: Counter,
}

impl Counted {
    fn new(workload: &Workload, name: &str, kept: &str) -> Self {
        let counter = |what: &str| Counter::new(&workload.trace, &format!("{name}.{what}"));
        Counted { kept: counter(kept), issued: counter("issued") }
    }

    /// The least and the most that may be found.
    fn range(&self, expected: &Expected) -> Option<(u64, u64)> {
        let most = self.issued.at(expected.most)?;
        Some((self.kept.at(expected.least).unwrap_or(0), most))
    }
}

/// Opens a file after a crash, reads it, writes on, reads it again, and has it checked.
#[derive(Debug)]
pub struct Survivor {
    series: Vec<(Series, Counted)>,
    attributes: Counted,
    links: Counted,
    strings: Counted,
    /// How the file is written on.
    mode: Mode,
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
        let counted = |name: &str| Counted::new(workload, name, kept);
        let watch = |series: &Series| (series.clone(), counted(series.name));
        Survivor {
            series: workload.series.iter().map(watch).collect(),
            attributes: counted("a"),
            links: counted("o"),
            strings: counted("s"),
            mode: if workload.alone { Mode::Write } else { Mode::SwmrWrite },
        }
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
            self.check(disk)?;
        }
        Ok(())
    }

    /// Has a file that was recovered and closed checked, by code that shares nothing with that of readers and writers.
    fn check(&self, disk: &Arc<Disk>) -> Verdict {
        // Such chunks are of sizes that no filter gives.
        if self.series.iter().any(|(series, _)| matches!(series.kind, Kind::Filtered { .. })) {
            return Ok(());
        }
        // Sums that a writer brings into order last may stay behind what is there.
        let report = check_with(&**disk, file::Options { live: true, ..file::Options::default() });
        let status = report.notes.iter().filter(|note| matches!(note.cause, Cause::Status(_)));
        match report.findings.iter().chain(status).next() {
            None => Ok(()),
            Some(first) => Err(format!("a file that was recovered and closed: {first}")),
        }
    }

    fn open(disk: &Arc<Disk>, mode: Mode) -> Result<NativeFile, String> {
        let trial = Trial { shards: Some(1), ..Trial::default() };
        let options = OpenOptions { mode, trial, take_over: true, ..OpenOptions::default() };
        NativeFile::on(disk.clone(), &options).map_err(|error| format!("cannot open to {mode:?}: {}", explain(&error)))
    }

    /// Reads everything; `more` rows have been appended since the crash.
    fn read(&self, disk: &Arc<Disk>, mode: Mode, expected: &Expected, more: u64) -> Verdict {
        let file = Arc::new(Survivor::open(disk, mode)?);
        for (series, counted) in &self.series {
            let may_be_more = series.grows() && expected.round > 0;
            let more = if series.grows() { more.max(may_be_more.into()) } else { 0 };
            self.read_series(&file, series, counted, expected, more)
                .map_err(|fault| format!("{}: {fault}", series.name))?;
        }
        if let Some((least, most)) = self.attributes.range(expected) {
            let id = find(&file, "d").map_err(|error| explain(&error))?.ok_or("the link d is not there")?;
            verdict(content::attributes(&file, id, &Sure, least, &|| most).map(drop))?;
        }
        if let Some((least, most)) = self.links.range(expected) {
            verdict(content::links(&file, &Sure, least, &|| most).map(drop))?;
        }
        if let Some((least, most)) = self.strings.range(expected) {
            let file = File::with_store(file.clone(), "survivor", Options::default());
            verdict(content::strings(&file, &Sure, least, &|| most).map(drop))?;
        }
        Ok(())
    }

    fn read_series(
        &self,
        file: &NativeFile,
        series: &Series,
        counted: &Counted,
        expected: &Expected,
        more: u64,
    ) -> Verdict {
        let (kept, issued) = counted.range(expected).unwrap_or((0, 0));
        let told = |error: h5live_model::Error| explain(&error);
        let id = find(file, series.name).map_err(told)?.ok_or("the link is not there")?;
        let dataset = file.dataset(id).map_err(told)?;
        let extent = dataset.spec().map_err(told)?.dataspace.dims().first().copied().unwrap_or(0);
        let (mut least, mut most) = (series.extent(kept), series.extent(issued));
        if let Kind::Cut { .. } = series.kind {
            // Every extent that was asked for since the last flush.
            for count in counted.issued.between(expected.least, expected.most).chain(counted.issued.at(expected.least))
            {
                (least, most) = (least.min(count), most.max(count));
            }
            most = most.max(kept);
        }
        if extent < least || extent > most + more {
            return Err(format!("the extent is {extent}, of {least} rows kept and {most} written"));
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
        let file = Survivor::open(disk, self.mode)?;
        let file = File::with_store(Arc::new(file), "recovered", Options::default());
        let told = |error: h5live::Error| explain(&error);
        for (series, ..) in self.series.iter().filter(|(series, ..)| series.grows()) {
            let dataset = file.dataset(series.name).map_err(told)?;
            let row = dataset.shape().map_err(told)?.first().copied().unwrap_or(0);
            dataset.append(&[series.value(row, 1)]).map_err(told)?;
        }
        file.flush().map_err(told)?;
        if self.mode == Mode::SwmrWrite {
            self.read(disk, Mode::SwmrRead, expected, 1)?;
        }
        file.close().map_err(told)
    }
}
