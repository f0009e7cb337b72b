//! `h5live log`: what is in a log, and its index made anew.

use std::path::Path;
use std::sync::Arc;

use h5live::model::{AllocationLimit, ConnectorRegistry, Location, Mode, NoFilters, ObjectSpec, OpenRequest, Url};
use h5live_log::local_multi_writer_files::{LocalMultiWriterFiles, subfile_folder, subfile_path};
use h5live_log::{LAYOUT_VERSION, Log, LogFileInfo, LogInfo, LogLayout};
use h5live_native::{Native, NativeConnector, NativeFile, OpenOptions};
use serde_json::json;

use crate::copy::CopyCommand;
use crate::counted::counted;
use crate::error::{CommandOutcome, Error, Result};
use crate::open;
use crate::output::StdoutWriter;
use crate::temp_output::ForceArgs;

/// The settings of a log that is written anew.
const COMPACTED: &str = "min_log_size=4KiB";

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
    /// Make a plain HDF5 file from a log: each dataset as it is without the log
    Replay {
        /// The file with the log: run.h5 or log:run.h5
        file: Location,
        /// The new file
        to: Location,
        #[command(flatten)]
        force: ForceArgs,
        /// Say nothing
        #[arg(short, long)]
        quiet: bool,
    },
    /// Drop entries that were overwritten, and bring subfiles into the main file
    ///
    /// Nobody may write meanwhile. Readers that have the file open go on reading it as it was.
    Compact {
        /// The file: run.h5 or log:run.h5
        file: Location,
        /// Say nothing
        #[arg(short, long)]
        quiet: bool,
    },
}

impl LogCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If the file has no log, or the log is damaged.
    pub fn run(self) -> Result<CommandOutcome> {
        match self.action {
            LogAction::Info { file, json } => show(&file, json)?,
            LogAction::Rebuild { file } => rebuild(&file)?,
            LogAction::Replay { file, to, force, quiet } => {
                let from = as_log(&file)?;
                return CopyCommand::for_whole_file(from, to, force, quiet).run();
            }
            LogAction::Compact { file, quiet } => return compact(&file, quiet),
        }
        Ok(CommandOutcome::Clean)
    }
}

fn wrong(location: &Location, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Log { location: location.to_string(), source: source.into() }
}

/// The location of the log in a file.
fn as_log(location: &Location) -> Result<Location> {
    // The file must have a log: a plain file is opened as such.
    read(location)?;
    let path = open::require_any_file_path(location)?;
    let text = path.to_str().ok_or_else(|| wrong(location, "the name of the file is not UTF-8"))?;
    Ok(Url::literal("log", text).into())
}

/// Writes a log anew, with the elements that there are, in place of the old one.
fn compact(location: &Location, quiet: bool) -> Result<CommandOutcome> {
    if read(location)?.layout == LogLayout::LogVol {
        let rather = "a log in Log VOL's layout is made smaller by a copy of it: h5live copy log:run.h5 'log:new.h5?layout=logvol'";
        return Err(wrong(location, rather));
    }
    let (log, path) = (as_log(location)?, open::require_any_file_path(location)?);
    let text = path.to_str().ok_or_else(|| wrong(location, "the name of the file is not UTF-8"))?;
    // A log that is not written on has no room for more.
    let compacted = Location::from(format!("{}?{COMPACTED}", Url::literal("log", text)));
    let before = bytes_of_log(&path).map_err(|error| wrong(location, error))?;
    let replaces = ForceArgs { replaces_file: true };
    let outcome = CopyCommand::for_whole_file(log, compacted, replaces, true).run()?;
    // The new file has no subfiles.
    match std::fs::remove_dir_all(subfile_folder(&path)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(wrong(location, error)),
        _ => {}
    }
    if !quiet {
        let after = bytes_of_log(&path).map_err(|error| wrong(location, error))?;
        let percent = after as f64 / before.max(1) as f64 * 100.0;
        let mut out = StdoutWriter::stdout();
        out.line(format_args!("{} became {after} ({percent:.1} %)", counted(before, "byte")))?;
        out.flush()?;
    }
    Ok(outcome)
}

/// Bytes of the file with a log, and of all that is in the folder of its subfiles.
fn bytes_of_log(path: &Path) -> std::io::Result<u64> {
    let mut bytes = std::fs::metadata(path)?.len();
    let entries = match std::fs::read_dir(subfile_folder(path)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(bytes),
        entries => entries?,
    };
    for entry in entries {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

fn read(location: &Location) -> Result<LogInfo> {
    let path = open::require_any_file_path(location)?;
    let file = NativeFile::open(&path, &OpenOptions::default()).map_err(|source| wrong(location, source))?;
    let native = Native::default();
    let request = OpenRequest {
        mode: Mode::Read,
        root: &ObjectSpec::group(),
        options: &native,
        max_allocation: AllocationLimit::default(),
        filter_engine: Arc::new(NoFilters),
        registry: &ConnectorRegistry::new(NativeConnector),
    };
    let subfiles = LocalMultiWriterFiles::new(Arc::new(NativeConnector), path, Log::default().patience, &request);
    LogInfo::read(Arc::new(file), Some(Arc::new(subfiles)), request.max_allocation)
        .map_err(|source| wrong(location, source))
}

fn show(location: &Location, as_json: bool) -> Result<()> {
    let info = read(location)?;
    let mut out = StdoutWriter::stdout();
    let used: u64 = info.files.iter().map(LogFileInfo::used_bytes).sum();
    if as_json {
        let log_dataset = |(used, size): &(u64, u64)| json!({ "used": used, "size": size });
        let file = |file: &LogFileInfo| {
            let log_datasets: Vec<_> = file.used_bytes_and_capacities.iter().map(log_dataset).collect();
            json!({ "log_bytes": file.used_bytes(), "indexed_bytes": file.indexed_bytes, "log_datasets": log_datasets })
        };
        out.line(json!({
            "layout": match info.layout {
                LogLayout::LogVol => json!("logvol"),
                _ => json!(LAYOUT_VERSION),
            },
            "datasets": info.created_dataset_count,
            "entries": info.entry_count,
            "data_bytes": info.data_bytes,
            "log_bytes": used,
            "files": info.files.iter().map(file).collect::<Vec<_>>(),
        }))?;
    } else {
        let layout = match info.layout {
            LogLayout::LogVol => "logvol".to_owned(),
            _ => LAYOUT_VERSION.to_string(),
        };
        out.line(format_args!("layout {layout}, {} made", counted(info.created_dataset_count, "dataset")))?;
        let (entries, data) = (counted(info.entry_count, "entry"), counted(info.data_bytes, "byte"));
        out.line(format_args!("{entries} with {data} of data, {used} in all"))?;
        for (number, file) in info.files.iter().enumerate() {
            if number > 0 {
                out.line(format_args!("subfile {number}:"))?;
            }
            show_file(&mut out, file, info.layout)?;
        }
    }
    out.flush()
}

fn show_file(out: &mut StdoutWriter, file: &LogFileInfo, layout: LogLayout) -> Result<()> {
    if layout == LogLayout::LogVol {
        for (number, (_, size)) in file.used_bytes_and_capacities.iter().enumerate() {
            out.line(format_args!("_ld_{number}: {}", counted(*size, "byte")))?;
        }
        return Ok(());
    }
    match file.indexed_bytes {
        Some(covers) if covers == file.used_bytes() => out.line("index table: of the whole log")?,
        Some(covers) => out.line(format_args!("index table: of the first {}", counted(covers, "byte")))?,
        None => out.line("no index table")?,
    }
    for (number, (used, size)) in (1..).zip(&file.used_bytes_and_capacities) {
        out.line(format_args!("log_{number}: {used} of {}", counted(*size, "byte")))?;
    }
    Ok(())
}

fn rebuild(location: &Location) -> Result<()> {
    // The file must have a log: a plain file is opened as such.
    let info = read(location)?;
    if info.layout == LogLayout::LogVol {
        return Err(wrong(location, "a log in Log VOL's layout has no index table"));
    }
    let path = open::require_any_file_path(location)?;
    for number in 0..info.files.len() {
        let path = if number == 0 { path.clone() } else { subfile_path(&path, number as u32) };
        let text = path.to_str().ok_or_else(|| wrong(location, "the name of the file is not UTF-8"))?;
        let options = open::command_line_options().write().setting("rebuild_index", "yes");
        options.open(Location::from(Url::literal("log", text)))?.close()?;
    }
    Ok(())
}
