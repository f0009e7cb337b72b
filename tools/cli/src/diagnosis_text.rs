//! The state of a file, in words.

use crate::counted::counted;
use h5live::{FileDiagnosis, FileHolderProcess, FileOpenState, Location};
use serde_json::{Value, json};

/// A line for people: what state the file is in, who reads it, and what to do about it.
pub fn text(file: &Location, found: &FileDiagnosis) -> String {
    let readers =
        space_awaits_readers_text(&found.other_readers).map_or(String::new(), |readers| format!("; {readers}"));
    state_text(file, found) + &readers
}

/// Whom freed space of a live file waits for; `None` if nobody is known.
pub fn space_awaits_readers_text(readers: &[FileHolderProcess]) -> Option<String> {
    let names: Vec<_> = readers.iter().map(ToString::to_string).collect();
    (!names.is_empty()).then(|| format!("freed space waits for {}, who read it", names.join(", ")))
}

fn state_text(file: &Location, found: &FileDiagnosis) -> String {
    let ahead = found.announced_length.saturating_sub(found.length);
    let announced = if ahead > 0 {
        format!("; its superblock announces {} more than there is", counted(ahead, "byte"))
    } else {
        String::new()
    };
    let help = format!("`h5live repair {file}` brings it into order for programs that refuse it");
    match &found.open_state {
        FileOpenState::Closed if ahead > 0 => format!("closed, and cut short by {}", counted(ahead, "byte")),
        FileOpenState::Closed => "closed".to_owned(),
        FileOpenState::OpenForWriting { live, holders } => {
            let names: Vec<_> = holders.iter().map(ToString::to_string).collect();
            let by = if names.is_empty() { "another process".to_owned() } else { names.join(", ") };
            let who = if *live { "readers may follow" } else { "nobody else may open it" };
            format!("being written by {by}; {who}{announced}")
        }
        FileOpenState::Abandoned { live } => {
            let what = if *live { "its writer, which others could follow, died" } else { "its writer died" };
            format!("{what}; what was flushed is there{announced}; {help}")
        }
        FileOpenState::OpenOrAbandoned { .. } => {
            format!(
                "marked as being written, and the system does not tell this user whether it is{announced}; if no process \
                 writes it, `h5live repair --take-over {file}` brings it into order"
            )
        }
        _ => format!("unknown{announced}"),
    }
}

/// The same for programs.
pub fn json(found: &FileDiagnosis) -> Value {
    let (state, live, holders) = match &found.open_state {
        FileOpenState::Closed => ("closed", false, &[][..]),
        FileOpenState::OpenForWriting { live, holders } => ("written", *live, &**holders),
        FileOpenState::Abandoned { live } => ("abandoned", *live, &[][..]),
        FileOpenState::OpenOrAbandoned { live } => ("unknown", *live, &[][..]),
        _ => ("unknown", false, &[][..]),
    };
    let named = |holders: &[FileHolderProcess]| -> Vec<Value> {
        holders.iter().map(|holder| json!({ "pid": holder.pid, "name": holder.name })).collect()
    };
    let (holders, readers) = (named(holders), named(&found.other_readers));
    json!({
        "state": state,
        "live": live,
        "writers": holders,
        "readers": readers,
        "superblock": found.superblock_version,
        "length": found.length,
        "announced": found.announced_length,
        "needs_repair": found.needs_repair(),
    })
}
