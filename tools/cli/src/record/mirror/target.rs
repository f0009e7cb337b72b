//! The domain that is a mirror of a file.

use h5live::model::{Name, ObjectId, ObjectSpec};
use h5live::{Copier, File, Location};
use h5live_hsds::LastOpenedStore;

use crate::copy::{ReferencedFileNameMapper, described, losses};
use crate::draft_domain::{DraftDomain, options_tracking_opened, publish_domain};
use crate::error::{Error, Result};
use crate::open;

/// The domain that is a mirror of a file, and how far it is.
///
/// It is a draft until it has the first rows, and then has all that the file has at that moment. After that, rows are
/// appended to the recorded dataset and those of keys. So a reader of it finds whole objects and rows in their order.
#[derive(Debug)]
pub struct MirrorTarget {
    source_location: Location,
    /// The path of the recorded dataset.
    path: String,
    location: Location,
    /// Whether it takes the place of a domain that is there.
    replaces: bool,
    source: Option<File>,
    target: Option<File>,
    opened: LastOpenedStore,
    /// Removes the draft if a signal ends this process.
    draft: Option<DraftDomain>,
    /// What the root group of a draft is like.
    root_spec: ObjectSpec,
    /// The root group of the domain, once others see it.
    root: Option<ObjectId>,
    rows: u64,
    /// What the mirror does not have as the file has it, in lines.
    losses: Vec<String>,
}

impl MirrorTarget {
    /// A domain that is not there yet, for the dataset at `dataset_path` of a file.
    pub fn new(source_location: Location, dataset_path: String, location: Location, replaces: bool) -> Self {
        let draft = DraftDomain::prepare_with_signal_cleanup(&location);
        MirrorTarget {
            source_location,
            path: dataset_path,
            location,
            replaces,
            source: None,
            target: None,
            opened: draft.last_opened().clone(),
            draft: Some(draft),
            root_spec: ObjectSpec::group(),
            root: None,
            rows: 0,
            losses: Vec::new(),
        }
    }

    /// What the mirror does not have as the file has it, in lines.
    pub fn losses(&self) -> &[String] {
        &self.losses
    }

    /// Rows of the recorded dataset that others see.
    pub fn mirrored_row_count(&self) -> u64 {
        self.rows
    }

    /// Opens the domain for writing, and makes it as a draft if others do not see it yet.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::OpenFailed`] if somebody has replaced the domain.
    pub fn connect(&mut self) -> Result<()> {
        if self.target.is_some() {
            return Ok(());
        }
        let options = options_tracking_opened(open::command_line_options().root(self.root_spec.clone()), &self.opened);
        let options = match self.root {
            Some(_) => options.swmr_write(),
            None if self.replaces => options.create(),
            None => options.create_new(),
        };
        let target = options.open(&self.location)?;
        if self.root.is_some_and(|root| root != target.root().id()) {
            let text = "somebody has replaced the mirror".to_owned();
            let source = Box::new(h5live::OpenError::InvalidLocation(text));
            return Err(Error::OpenFailed { location: self.location.to_string(), source });
        }
        self.target = Some(target);
        Ok(())
    }

    /// Ends the sessions after a failure: what the domain has then is read from the server.
    pub fn disconnect(&mut self) {
        self.source = None;
        self.close_target();
    }

    fn close_target(&mut self) {
        self.target = None;
        // It has another handle on the session.
        self.draft = self.root.is_none().then(|| DraftDomain::prepare_with_signal_cleanup(&self.location));
        let opened = self.draft.as_ref().map(|draft| draft.last_opened().clone());
        self.opened = opened.unwrap_or_else(|| LastOpenedStore::default().create_as_drafts());
    }

    /// Mirrors what came to the file since the last time.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::OpenFailed`]. Then [`MirrorTarget::disconnect`] comes next.
    pub fn catch_up(&mut self) -> Result<()> {
        let source = match self.source.take() {
            Some(source) => {
                source.refresh()?;
                source
            }
            None => open::command_line_options().swmr_read().open(&self.source_location)?,
        };
        let has_rows = match source.dataset(&self.path) {
            Err(error) if error.is_not_found_in_file() => false,
            found => found?.shape()?.first().is_some_and(|rows| *rows > 0),
        };
        let done = if has_rows || self.root.is_some() { self.mirror(&source) } else { Ok(()) };
        self.source = Some(source);
        done
    }

    /// Mirrors the rest of the file, which nobody writes any more, and closes the domain.
    ///
    /// # Errors
    /// As [`MirrorTarget::catch_up`].
    pub fn finish(&mut self) -> Result<()> {
        let source = open::command_line_options().open(&self.source_location)?;
        self.mirror(&source)?;
        Ok(self.target.take().map_or(Ok(()), |target| target.close())?)
    }

    fn mirror(&mut self, source: &File) -> Result<()> {
        if self.root.is_none() {
            let root_spec = described(&source.root())?;
            if root_spec != self.root_spec {
                self.root_spec = root_spec;
                self.close_target();
            }
        }
        self.connect()?;
        let Some(target) = self.target.clone() else { return Ok(()) };
        if self.root.is_none() {
            self.publish(source, &target)?;
        }
        let path = self.path.clone();
        let (folder, leaf) = path.rsplit_once('/').unwrap_or(("", &path));
        let keys = format!("{leaf}.");
        let parent = match source.group(&format!("/{folder}")) {
            Err(error) if error.is_not_found_in_file() => return Ok(()),
            found => found?,
        };
        let is_recorded = |name: &Name| name.as_str().is_some_and(|name| name == leaf || name.starts_with(&keys));
        for name in parent.names()?.iter().filter(|name| is_recorded(name)) {
            let path = format!("{folder}/{name}");
            let rows = self.append_new_rows(source, &target, &path)?;
            if name.as_str() == Some(leaf) {
                self.rows = rows;
            }
        }
        Ok(())
    }

    /// Copies all that the file has, and lets others see the domain.
    fn publish(&mut self, source: &File, target: &File) -> Result<()> {
        let losses = self.copy(source, target, |copy| copy.contents(&source.root(), &target.root()))?;
        // Of an attempt that failed before, everything is copied anew.
        self.losses = losses;
        publish_domain(&self.opened, &self.location)?;
        self.root = Some(target.root().id());
        self.draft = None;
        Ok(())
    }

    /// Copies what `what` says. Returns what the copy does not have, in lines.
    fn copy(
        &self,
        source: &File,
        target: &File,
        what: impl FnOnce(&mut Copier<'_>) -> h5live::Result<()>,
    ) -> Result<Vec<String>> {
        let names = ReferencedFileNameMapper::between(&self.source_location, &self.location)?;
        let mut copy = Copier::new(source, target)
            .rewrite_file_names(|file_name, role| names.rename_and_record_lost(file_name, role));
        what(&mut copy)?;
        let mut found = losses(&copy.copy_data_and_finish()?);
        found.extend(names.lost_name_messages());
        target.flush()?;
        Ok(found)
    }

    /// Appends the rows that a dataset of the mirror lacks, and makes it if it is not there. Returns how many rows it has.
    fn append_new_rows(&mut self, source: &File, target: &File, path: &str) -> Result<u64> {
        let from = match source.object(path)? {
            h5live::Object::Dataset(dataset) => dataset,
            _ => return Ok(0),
        };
        let to = match target.dataset(path) {
            Err(error) if error.is_not_found_in_file() => {
                let object = h5live::Object::Dataset(from.clone());
                let losses = self.copy(source, target, |copy| copy.object(&object, &target.root(), path))?;
                self.losses.extend(losses);
                target.dataset(path)?
            }
            found => found?,
        };
        if from.shape()?.is_empty() {
            return Ok(0);
        }
        while Copier::new(source, target).append_next_missing_rows(&from, &to)? > 0 {
            // So that a part is seen, and no more than one is in memory.
            target.flush()?;
        }
        Ok(to.shape()?.first().copied().unwrap_or_default())
    }
}
