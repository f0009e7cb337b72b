//! `h5live kv`: what is in a key-value store.

use h5live::Location;
use h5live_kv::{KvStat, LmdbStat};
use serde_json::{Value, json};

use crate::counted::counted;
use crate::error::{CommandOutcome, Result};
use crate::open;
use crate::output::StdoutWriter;

/// Look after key-value stores
#[derive(Debug, clap::Args)]
pub struct KvCommand {
    #[command(subcommand)]
    action: KvAction,
}

#[derive(Debug, clap::Subcommand)]
enum KvAction {
    /// How many keys of each kind there are, how much room they take, and who has the store open
    Stat {
        /// The store: kv:run
        store: Location,
        /// JSON
        #[arg(long)]
        json: bool,
    },
}

impl KvCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no key-value store, or it cannot be read.
    pub fn run(self) -> Result<CommandOutcome> {
        let KvAction::Stat { store, json } = self.action;
        let stat = open::with_key_value_location(&store, KvStat::scan)?;
        let mut out = StdoutWriter::stdout();
        if json {
            out.line(as_json(&stat))?;
        } else {
            show(&mut out, &stat)?;
        }
        out.flush()?;
        Ok(CommandOutcome::Clean)
    }
}

fn show(out: &mut StdoutWriter, KvStat { engine, has_checksums, records, lmdb }: &KvStat) -> Result<()> {
    let checksums = if *has_checksums { "with checksums" } else { "without checksums" };
    out.line(format_args!("engine {engine}, {checksums}, newest commit {}", lmdb.newest_commit))?;
    match &lmdb.writers_if_locked {
        None => out.line("no writer")?,
        Some(holders) if holders.is_empty() => out.line("a process has it open for writing")?,
        Some(holders) => {
            let names: Vec<_> = holders.iter().map(ToString::to_string).collect();
            out.line(format_args!("open for writing: {}", names.join(", ")))?;
        }
    }
    for count in records.iter().filter(|count| count.key_count > 0) {
        let (keys, bytes) = (counted(count.key_count, "key"), counted(count.bytes, "byte"));
        out.line(format_args!("{}: {keys}, {bytes}", count.kind))?;
    }
    let LmdbStat { map_bytes, file_bytes, page_size: page_bytes, used_pages, .. } = lmdb;
    let (file, map) = (counted(*file_bytes, "byte"), counted(*map_bytes, "byte"));
    out.line(format_args!("file: {file}; it may grow to {map}"))?;
    let free = lmdb.free_pages();
    out.line(format_args!("pages of {page_bytes} bytes: {used_pages} used, {free} free"))?;
    out.line(format_args!(
        "readers: {} live, {} dead (removed)",
        lmdb.other_readers.len(),
        lmdb.dead_readers_removed_at_open
    ))?;
    for reader in &lmdb.other_readers {
        match reader.pinned_commit {
            Some(version) => out.line(format_args!("  process {} reads commit {version}", reader.pid))?,
            None => out.line(format_args!("  process {} reads nothing now", reader.pid))?,
        }
    }
    out.line(match &lmdb.durable_state {
        None => "durable: nothing (sync=never)".to_owned(),
        Some(state) if state.is_newest_commit => "durable: the newest commit".to_owned(),
        Some(_) => "durable: an earlier commit".to_owned(),
    })
}

fn as_json(KvStat { engine, has_checksums, records, lmdb }: &KvStat) -> Value {
    let records: serde_json::Map<_, _> = records
        .iter()
        .map(|count| (count.kind.replace([' ', '-'], "_"), json!({ "keys": count.key_count, "bytes": count.bytes })))
        .collect();
    let writers = lmdb.writers_if_locked.as_ref().map(|holders| {
        holders.iter().map(|holder| json!({ "pid": holder.pid, "name": holder.name })).collect::<Vec<_>>()
    });
    let reader = |reader: &h5live_kv::LmdbReaderEntry| json!({ "pid": reader.pid, "commit": reader.pinned_commit });
    json!({
        "engine": engine,
        "checksums": has_checksums,
        "commit": lmdb.newest_commit,
        "is_written": writers.is_some(),
        "writers": writers.unwrap_or_default(),
        "records": records,
        "map_bytes": lmdb.map_bytes,
        "file_bytes": lmdb.file_bytes,
        "page_bytes": lmdb.page_size,
        "pages": lmdb.ever_used_pages,
        "used_pages": lmdb.used_pages,
        "free_pages": lmdb.free_pages(),
        "readers": lmdb.other_readers.iter().map(reader).collect::<Vec<_>>(),
        "dead_readers": lmdb.dead_readers_removed_at_open,
        "durable": lmdb.durable_state.map(|state| if state.is_newest_commit { "newest" } else { "earlier" }),
    })
}
