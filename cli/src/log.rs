//! `h5live log`: what is in a log, and its index made anew.

use std::sync::Arc;

use h5live::model::{AllocationLimit, Location, Url};
use h5live_log::LogInfo;
use h5live_native::{NativeFile, OpenOptions};
use serde_json::json;

use crate::counted::counted;
use crate::error::{Error, Outcome, Result};
use crate::open;
use crate::output::Output;

/// Look after files with a log
#[derive(Debug, clap::Args)]
pub struct LogCommand {
    #[command(subcommand)]
    action: LogAction,
}

#[derive(Debug, clap::Subcommand)]
enum LogAction {
    /// How many entries there are, and how much room they take
    Info {
        /// The file: run.h5 or log:run.h5
        file: Location,
        /// JSON
        #[arg(long)]
        json: bool,
    },
    /// Make the index table anew from the entries of the log
    ///
    /// That is needed if the table is damaged. A file whose writer was killed does not need it: what is not in the table is
    /// read from the log.
    Rebuild {
        /// The file: run.h5 or log:run.h5
        file: Location,
    },
}

impl LogCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If the file has no log, or the log is damaged.
    pub fn run(self) -> Result<Outcome> {
        match self.action {
            LogAction::Info { file, json } => show(&file, json)?,
            LogAction::Rebuild { file } => rebuild(&file)?,
        }
        Ok(Outcome::Clean)
    }
}

fn wrong(location: &Location, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Log { location: location.to_string(), source: source.into() }
}

fn read(location: &Location) -> Result<LogInfo> {
    let path = open::require_path(location)?;
    let file = NativeFile::open(&path, &OpenOptions::default()).map_err(|source| wrong(location, source))?;
    LogInfo::read(Arc::new(file), AllocationLimit::default()).map_err(|source| wrong(location, source))
}

fn show(location: &Location, as_json: bool) -> Result<()> {
    let info = read(location)?;
    let mut out = Output::stdout();
    let used: u64 = info.log_datasets.iter().map(|(used, _)| used).sum();
    if as_json {
        let log_datasets: Vec<_> =
            info.log_datasets.iter().map(|(used, size)| json!({ "used": used, "size": size })).collect();
        out.line(json!({
            "layout": info.layout,
            "datasets": info.datasets,
            "entries": info.entries,
            "data_bytes": info.data_bytes,
            "log_bytes": used,
            "indexed_bytes": info.indexed_bytes,
            "log_datasets": log_datasets,
        }))?;
    } else {
        out.line(format_args!("layout {}, {} made", info.layout, counted(info.datasets, "dataset")))?;
        let (entries, data) = (counted(info.entries, "entry"), counted(info.data_bytes, "byte"));
        out.line(format_args!("{entries} with {data} of data, {used} in all"))?;
        match info.indexed_bytes {
            Some(covers) if covers == used => out.line("index table: of the whole log")?,
            Some(covers) => out.line(format_args!("index table: of the first {}", counted(covers, "byte")))?,
            None => out.line("no index table")?,
        }
        for (number, (used, size)) in (1..).zip(&info.log_datasets) {
            out.line(format_args!("log_{number}: {used} of {}", counted(*size, "byte")))?;
        }
    }
    out.flush()
}

fn rebuild(location: &Location) -> Result<()> {
    // The file must have a log: a plain file is opened as such.
    read(location)?;
    let path = open::require_path(location)?;
    let text = path.to_str().ok_or_else(|| wrong(location, "the name of the file is not UTF-8"))?;
    let options = open::options().write().setting("rebuild_index", "yes");
    options.open(Location::from(Url::literal("log", text)))?.close()?;
    Ok(())
}
