//! `h5live ls` of a folder of domains.

use h5live::Location;
use h5live_hsds::{DomainEntry, DomainEntryKind, DomainFolder};
use serde_json::json;

use crate::error::{CommandOutcome, Error, Result, error_with_causes};
use crate::model::escape;
use crate::output::StdoutWriter;
use crate::{open, utc};

use super::text::bytes_text;

/// Lists the folder of domains at a location.
pub struct DomainLister<'a> {
    pub location: &'a Location,
    /// How many levels are listed.
    pub levels: usize,
    /// Whether owners, times and sizes are shown.
    pub is_long: bool,
    pub is_json: bool,
}

/// Whether a location says that it is a folder: its last character, or that of its domain, is a slash.
pub fn domain_has_trailing_slash(location: &Location) -> bool {
    let Location::Url(url) = location else { return false };
    let settings = url.query_settings().unwrap_or_default();
    let domain = settings.iter().find(|(name, _)| *name == "domain").map(|(_, value)| value.ends_with('/'));
    domain.unwrap_or_else(|| url.scheme().contains('+') && url.encoded_hier_part().ends_with('/'))
}

impl DomainLister<'_> {
    /// Lists it; `None` if no folder of domains is there. If `prefer_folder`, the location names a folder.
    ///
    /// # Errors
    /// [`Error::OpenFailed`], and those of the output.
    pub fn run(&self, prefer_folder: bool) -> Result<Option<CommandOutcome>> {
        if !open::is_hsds_location(self.location).unwrap_or(false) {
            return Ok(None);
        }
        let Some(folder) = open::with_hsds_location(self.location, |at| DomainFolder::open(at, prefer_folder))? else {
            return Ok(None);
        };
        let failed = |source: h5live::model::Error| Error::OpenFailed {
            location: self.location.to_string(),
            source: Box::new(h5live::OpenError::Store(source)),
        };
        let (mut out, mut outcome, mut shown) = (StdoutWriter::stdout(), CommandOutcome::Clean, Ok(()));
        let listed = folder.for_each_page(self.levels, &mut |page| {
            if page.iter().any(|entry| entry.kind.is_err()) {
                outcome = CommandOutcome::Findings;
            }
            shown = self.show(&folder, &page, &mut out).and_then(|()| out.flush());
            shown.is_ok()
        });
        shown?;
        listed.map_err(failed)?;
        out.flush()?;
        Ok(Some(outcome))
    }

    fn show(&self, folder: &DomainFolder, page: &[DomainEntry], out: &mut StdoutWriter) -> Result<()> {
        let width = page.iter().map(|entry| shown_path(entry).chars().count()).max().unwrap_or_default();
        for entry in page {
            // What cannot be counted is not shown; the entry is there all the same.
            let size = if self.is_long { folder.stored_size(entry).ok().flatten() } else { None };
            if self.is_json {
                out.line(json!({
                    "path": entry.path,
                    "kind": entry.kind.as_ref().map_or("error", |kind| kind_text(*kind)),
                    "error": entry.kind.as_ref().err().map(|error| error_with_causes(error)),
                    "owner": entry.owner,
                    "created": entry.created.map(utc::iso8601_seconds),
                    "modified": entry.modified.map(utc::iso8601_seconds),
                    "objects": size.map(|size| size.stored_object_count),
                    "stored_bytes": size.map(|size| size.bytes),
                }))?;
                continue;
            }
            let mut text = match &entry.kind {
                Ok(kind) => kind_text(*kind).to_owned(),
                Err(error) => format!("cannot be read: {}", error_with_causes(error)),
            };
            if self.is_long && entry.kind.is_ok() {
                text.push_str(&format!(
                    "  owner={}",
                    entry.owner.as_deref().map_or("?".to_owned(), |owner| escape(owner.as_bytes()))
                ));
                text.extend(entry.modified.map(|at| format!("  {}", utc::iso8601_seconds(at))));
                text.extend(size.map(|size| format!("  {}", bytes_text(size.bytes))));
            }
            out.line(format_args!("{:width$}  {text}", shown_path(entry)))?;
        }
        Ok(())
    }
}

fn kind_text(kind: DomainEntryKind) -> &'static str {
    match kind {
        DomainEntryKind::Domain => "domain",
        DomainEntryKind::Folder => "folder",
    }
}

/// The path of an entry, with a slash behind that of a folder.
fn shown_path(entry: &DomainEntry) -> String {
    let slash = if matches!(entry.kind, Ok(DomainEntryKind::Folder)) { "/" } else { "" };
    format!("{}{slash}", escape(entry.path.as_bytes()))
}
