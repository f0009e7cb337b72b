//! The end of a copy: elements, attributes, and the links that lead to everything.

use h5live_model::{AttributeData, CreationOrder, LinkTarget, ObjectInfoChange, ObjectKind, ObjectSpec};

use super::element_copy::ElementCopy;
use super::{CopiedObject, Copier, CopyReport, LostMetadata, ObjectMetadataKind, report};
use crate::error::ErrorKind;
use crate::path::{NewLinkPath, join_path};
use crate::{Error, Result};

impl Copier<'_> {
    /// Copies attributes and elements, and adds the links that lead to the copies. The report names everything that
    /// could not be verified, what was left out, and references that are null in the copy.
    ///
    /// # Errors
    /// Errors of reading and writing. After an error, nothing leads to the copied objects.
    pub fn copy_data_and_finish(mut self) -> Result<CopyReport> {
        self.copy_all_elements()?;
        let mut next = 0;
        // Attributes may use committed types that lie elsewhere, which are then made too.
        while let Some(made) = self.incomplete.get(next) {
            let made = made.clone();
            next += 1;
            if !self.is_left_out(made.to) {
                self.copy_attributes(&made)?;
                self.copy_times(&made)?;
                self.note_not_kept(&made)?;
            }
        }
        self.remove_what_is_left_out()?;
        self.add_links()?;
        self.incomplete.clear();
        Ok(std::mem::take(&mut self.report))
    }

    /// Copies the elements of all datasets and maps. Those with references come last: then it is known which objects are left
    /// out.
    fn copy_all_elements(&mut self) -> Result<()> {
        let (referring, others): (Vec<_>, Vec<_>) =
            (0..self.incomplete.len()).partition(|n| self.incomplete[*n].has_references);
        others.iter().try_for_each(|n| self.copy_elements_or_leave_out(*n))?;
        let reported = self.report.lens();
        loop {
            let left_out = self.left_out.len();
            referring.iter().try_for_each(|n| self.copy_elements_or_leave_out(*n))?;
            if self.left_out.len() == left_out {
                return Ok(());
            }
            // What was copied before may refer to what is left out now: once more.
            self.report.truncate(reported);
        }
    }

    /// Copies what the `n`th object holds.
    fn copy_elements_or_leave_out(&mut self, n: usize) -> Result<()> {
        let made = &self.incomplete[n].clone();
        if self.is_left_out(made.to) {
            return Ok(());
        }
        let copied = match made.kind {
            ObjectKind::Dataset => self.copy_elements(made),
            ObjectKind::Map => self.copy_pairs(made),
            ObjectKind::Group | ObjectKind::Datatype => Ok(()),
        };
        match copied {
            Ok(()) => self.note_lost_references(&made.path),
            Err(error) => self.leave_out(made, error)?,
        }
        Ok(())
    }

    fn copy_attributes(&mut self, made: &CopiedObject) -> Result<()> {
        let mut attributes = Vec::new();
        let mut each = |attribute| {
            attributes.push(attribute);
            true
        };
        let listed = self.files.from.store().for_each_attribute(made.from, &mut each);
        let listed = listed.map_err(|error| self.read_error(&made.path, error));
        self.or_left_out(&made.path, listed)?;
        attributes.sort_by_key(|attribute: &AttributeData| attribute.creation_order);
        for attribute in attributes {
            let shown = format!("{}@{}", made.path, attribute.name);
            let copied = self.copy_attribute(made, attribute, &shown);
            self.or_left_out(&shown, copied)?;
        }
        Ok(())
    }

    fn copy_attribute(&mut self, made: &CopiedObject, attribute: AttributeData, shown: &str) -> Result<()> {
        let datatype = self.datatype_for_target(&attribute.datatype);
        let committed = self.copy_committed_type(attribute.committed_datatype, shown)?;
        let plan = ElementCopy::new(&attribute.datatype, &datatype);
        let value = plan.run(&attribute.value, &self.files).map_err(|kind| self.read_error(shown, kind))?;
        let copy = AttributeData { datatype, committed_datatype: committed, value, ..attribute };
        let set = self.files.to.writer().and_then(|writer| writer.set_attribute(made.to, &copy));
        set.map_err(|error| self.write_error(shown, error))?;
        self.note_lost_references(shown);
        Ok(())
    }

    /// Reports the references of what was just copied that are null in the copy.
    pub(super) fn note_lost_references(&mut self, path: &str) {
        self.report.add_lost_references(path, self.files.take_lost_references());
    }

    fn copy_times(&self, made: &CopiedObject) -> Result<()> {
        let info = self.files.from.store().info(made.from).map_err(|error| self.read_error(&made.path, error))?;
        match info.times {
            Some(times) => {
                let change = ObjectInfoChange::Times(times);
                let set = self.files.to.writer().and_then(|writer| writer.set_info(made.to, &change));
                set.map_err(|error| self.write_error(&made.path, error))
            }
            None => Ok(()),
        }
    }

    /// Reports what an object has, and its copy, which is complete, has not.
    fn note_not_kept(&mut self, made: &CopiedObject) -> Result<()> {
        let (from, to) = (self.files.from.store(), self.files.to.store());
        let had = from.info(made.from).map_err(|error| self.read_error(&made.path, error))?;
        let has = to.info(made.to).map_err(|error| self.write_error(&made.path, error))?;
        let is_lost =
            |had: CreationOrder, has: CreationOrder| had != CreationOrder::Untracked && has == CreationOrder::Untracked;
        let mut lost = Vec::new();
        // Some stores note times of every object, whether it asks for that or not.
        let asks_for_times = || from.spec(made.from).map(|spec| spec.track_times);
        let are_times_lost = had.times.is_some_and(|had| !has.times.is_some_and(|has| report::keeps_times(had, has)))
            && asks_for_times().map_err(|error| self.read_error(&made.path, error))?;
        lost.extend(are_times_lost.then_some(ObjectMetadataKind::Times));
        lost.extend((had.comment.is_some() && has.comment != had.comment).then_some(ObjectMetadataKind::Comment));
        lost.extend(
            is_lost(had.attribute_storage.order, has.attribute_storage.order)
                .then_some(ObjectMetadataKind::AttributeCreationOrder),
        );
        if made.kind == ObjectKind::Group {
            let had = from.spec(made.from).and_then(ObjectSpec::into_group);
            let had = had.map_err(|error| self.read_error(&made.path, error))?;
            let has = to.spec(made.to).and_then(ObjectSpec::into_group);
            let has = has.map_err(|error| self.write_error(&made.path, error))?;
            lost.extend(
                is_lost(had.link_storage.order, has.link_storage.order)
                    .then_some(ObjectMetadataKind::LinkCreationOrder),
            );
        }
        let not_kept = lost.into_iter().map(|part| LostMetadata { path: made.path.clone(), part });
        self.report.lost_metadata.extend(not_kept);
        Ok(())
    }

    /// Adds the links that lead to everything that was copied. If one cannot be added, there is none.
    fn add_links(&mut self) -> Result<()> {
        let mut done: Vec<NewLinkPath> = Vec::new();
        for (group, names, target) in std::mem::take(&mut self.links) {
            if matches!(target, LinkTarget::Hard(copy) if self.is_left_out(copy)) {
                continue;
            }
            let shown = names.iter().fold(group.path().to_owned(), |path, name| join_path(&path, &name.to_string()));
            let add = || -> Result<NewLinkPath, ErrorKind> {
                let place = NewLinkPath::resolve_names(group.file(), group.id(), names.into())?;
                place.add_link(&target)?;
                Ok(place)
            };
            let added: Result<_, Error> = add().map_err(|kind| group.file().error(Some(&shown), kind));
            match self.or_left_out(&shown, added) {
                Ok(place) => done.extend(place),
                Err(error) => {
                    // The first error is returned.
                    done.iter().rev().for_each(|place| drop(place.remove_link()));
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
