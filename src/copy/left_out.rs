//! What a copy leaves out, if it may, because its store cannot hold it or because it is damaged.

use std::collections::HashSet;

use h5live_model::{LinkTarget, ObjectId, ObjectKind};

use super::{CopiedObject, Copier, SkippedItem};
use crate::error::ErrorKind;
use crate::{Error, Result};

impl Copier<'_> {
    /// Sets whether what the store of the copy cannot hold, or this library cannot read, is left out (default: no; it is an
    /// error): objects, attributes and links. [`CopyReport::skipped_items`](super::CopyReport::skipped_items) has all of it.
    pub fn skip_unsupported(mut self, skip: bool) -> Self {
        self.skip_unsupported = skip;
        self
    }

    /// Sets whether what is damaged is left out (default: no; it is an error): datasets with elements that cannot be decoded and
    /// must be, objects, attributes, and links that cannot be listed. Chunks that are copied as they are stored stay
    /// ([`Copier::verify`]). [`CopyReport::skipped_items`](super::CopyReport::skipped_items) has all of it.
    pub fn skip_damaged(mut self, skip: bool) -> Self {
        self.skip_damaged = skip;
        self
    }

    /// Whether what has failed so is left out.
    pub(super) fn is_to_be_skipped(&self, kind: &ErrorKind) -> bool {
        self.skip_unsupported && kind.is_unsupported() || self.skip_damaged && kind.is_damage()
    }

    /// What was found or made; nothing, and a line of the report, if it is left out.
    pub(super) fn or_left_out<T>(&mut self, path: &str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(error) if self.is_to_be_skipped(error.kind()) => {
                // Part of it may have been copied.
                self.files.take_lost_references();
                self.report.skipped_items.push(SkippedItem { path: path.to_owned(), error });
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    pub(super) fn is_left_out(&self, copy: ObjectId) -> bool {
        self.left_out.contains(&copy)
    }

    /// Leaves out an object that is made already. References to it become null. A fill value that refers to it is in the
    /// file already: then the error remains one.
    pub(super) fn leave_out(&mut self, made: &CopiedObject, error: Error) -> Result<()> {
        if self.specs_in_progress.contains(&made.from) {
            return Err(error);
        }
        if self.or_left_out(&made.path, Err::<(), _>(error))?.is_none() {
            self.files.objects.remove(&made.from);
            self.left_out.insert(made.to);
        }
        Ok(())
    }

    /// Removes the links of copied groups to objects that are left out, and the objects.
    pub(super) fn remove_what_is_left_out(&mut self) -> Result<()> {
        if self.left_out.is_empty() {
            return Ok(());
        }
        let mut linked = HashSet::new();
        for group in self.incomplete.iter().filter(|made| made.kind == ObjectKind::Group) {
            let mut names = Vec::new();
            let mut each = |link: h5live_model::Link| {
                if let LinkTarget::Hard(target) = link.target
                    && self.left_out.contains(&target)
                {
                    linked.insert(target);
                    names.push(link.name);
                }
                true
            };
            let listed = self.files.to.store().for_each_link(group.to, &mut each);
            let removed = listed
                .and_then(|()| self.files.to.writer())
                .and_then(|writer| names.iter().try_for_each(|name| writer.remove_link(group.to, name)));
            removed.map_err(|error| self.write_error(&group.path, error))?;
        }
        let left_out = &self.left_out;
        let (gone, kept) =
            std::mem::take(&mut self.incomplete).into_iter().partition(|made| left_out.contains(&made.to));
        self.incomplete = kept;
        let gone: Vec<CopiedObject> = gone;
        for made in gone.iter().filter(|made| !linked.contains(&made.to)) {
            let discarded = self.files.to.writer().and_then(|writer| writer.discard(made.to));
            discarded.map_err(|error| self.write_error(&made.path, error))?;
        }
        Ok(())
    }
}
