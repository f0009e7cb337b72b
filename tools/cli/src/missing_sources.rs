//! What a command says of sources of virtual datasets that are not there.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use h5live::{MissingSource, MissingSourcePolicy};

use crate::error::CommandOutcome;
use crate::output::eprint_prefixed;

/// Most sources that are named.
const MAX_SHOWN_SOURCES: usize = 8;
/// Most sources that are told apart. More are not counted.
const MAX_COUNTED_SOURCES: usize = 1 << 16;

/// The sources that were to be read so far, in the order in which they were met.
#[derive(Debug, Default)]
struct MetSources {
    known: HashSet<MissingSource>,
    shown: Vec<MissingSource>,
}

static MET: LazyLock<Mutex<MetSources>> = LazyLock::new(Mutex::default);

fn take() -> MetSources {
    std::mem::take(&mut MET.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Notes a source that is not there.
pub fn record_missing_source(source: &MissingSource) {
    let mut met = MET.lock().unwrap_or_else(PoisonError::into_inner);
    if met.known.len() < MAX_COUNTED_SOURCES && met.known.insert(source.clone()) && met.shown.len() < MAX_SHOWN_SOURCES
    {
        met.shown.push(source.clone());
    }
}

/// Says nothing of what was noted: the command shows it itself.
pub fn discard_recorded_missing_sources() {
    drop(take());
}

/// Says on standard error which sources are not there. With some, it is a finding.
pub fn eprint_recorded_missing_sources() -> CommandOutcome {
    let met = take();
    met.shown.iter().for_each(eprint_prefixed);
    let more = met.known.len() - met.shown.len();
    if more > 0 {
        eprint_prefixed(format_args!("{more} more sources of virtual datasets are not there"));
    }
    if met.known.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings }
}

/// What `--missing-sources` says.
///
/// # Errors
/// The words that are allowed.
pub fn parse(text: &str) -> Result<MissingSourcePolicy, String> {
    match text {
        "fill" => Ok(MissingSourcePolicy::Fill),
        "error" => Ok(MissingSourcePolicy::Error),
        _ => Err("allowed are fill and error".to_owned()),
    }
}
