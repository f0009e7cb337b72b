//! Copies of objects with everything below them, within a file and between files.

mod dataset_copy;
mod element_copy;
mod finish;
mod left_out;
mod map_copy;
mod other_files;
mod progress;
mod report;
mod row_copy;

#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::fmt;

use h5live_model::{
    self as model, DatasetSpec, FillValue, FilterSpec, Layout, Link, LinkTarget, MapSpec, Name, NewObject, ObjectId,
    ObjectInfoChange, ObjectKind, ObjectKindSpec, ObjectSpec, StoredChunk,
};

pub use self::element_copy::ReferencedFileRole;
use self::element_copy::{ElementCopy, FilePair};
use self::progress::CopyProgress;
pub use self::report::{
    CopyReport, DroppedFillValue, LostMetadata, LostReferences, ObjectMetadataKind, SkippedItem, UndecodableChunks,
};
use crate::error::ErrorKind;
use crate::map::check_supports_maps;
use crate::path::{self, NewLinkPath, join_path};
use crate::{Dataset, Error, File, Group, Object, Result};

/// An attribute with a value of more bytes may not fit a message of 64 KiB, together with its name, type and shape.
const LARGE_ATTRIBUTE_BYTES: usize = 56 << 10;

/// Copies objects with everything below them, to the same file or another one. [`Copier::new`] makes it.
///
/// Links are copied unchanged. An object with several hard links is copied once. A reference leads to the copy of its
/// object if that is copied too. In another file, all other references become null, and [`Copier::copy_data_and_finish`] reports
/// them. Committed types are copied with the objects that use them. Chunks are copied as they are stored, unless their
/// filters, shape or elements change. Names of other files stay as they are ([`Copier::rewrite_file_names`],
/// [`Copier::inline_external_storage_and_virtual`]).
///
/// Chunks that are copied as they are stored are also decoded by several threads, to verify them ([`Copier::verify`]).
/// A chunk that cannot be decoded is copied all the same, and [`Copier::copy_data_and_finish`] reports it.
///
/// ```
/// use h5live::{Copier, File};
///
/// let from = File::in_memory();
/// from.new_dataset::<u8>().create_with_data("run/frames", &[1, 2, 3])?.set_attribute("unit", &"counts")?;
/// let to = File::in_memory();
/// let mut copy = Copier::new(&from, &to);
/// copy.object(&from.object("run")?, &to.root(), "old/run")?;
/// copy.copy_data_and_finish()?;
/// assert_eq!(to.dataset("old/run/frames")?.read::<u8>()?, [1, 2, 3]);
/// # Ok::<(), h5live::Error>(())
/// ```
#[must_use = "objects appear when the copy is finished"]
pub struct Copier<'a> {
    files: FilePair<'a>,
    chunk: Option<Vec<u64>>,
    filters: Option<Vec<FilterSpec>>,
    verify: bool,
    /// Whether elements of other files are copied, too.
    inline: bool,
    report: CopyReport,
    progress: CopyProgress<'a>,
    elements_by: Option<Box<ElementsBy<'a>>>,
    /// Objects that are made and lack their attributes and elements, in the order of their making.
    incomplete: Vec<CopiedObject>,
    /// Groups whose links are still to be copied.
    groups: VecDeque<CopiedObject>,
    /// The objects to copy, each with everything below it.
    roots: Vec<ObjectId>,
    /// Every object that is copied, once this was needed.
    cached_objects_to_copy: Option<HashSet<ObjectId>>,
    /// Objects that fill values refer to.
    specs_in_progress: HashSet<ObjectId>,
    /// Links that lead to everything, added at the very end: from which group, along which names, and to what.
    links: Vec<(Group, Vec<Name>, LinkTarget)>,
    skip_unsupported: bool,
    skip_damaged: bool,
    /// Copies that were made and are left out.
    left_out: HashSet<ObjectId>,
}

impl fmt::Debug for Copier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Copier");
        out.field("from", &self.files.from.name()).field("to", &self.files.to.name());
        out.field("chunk", &self.chunk).field("filters", &self.filters).field("roots", &self.roots);
        out.finish_non_exhaustive()
    }
}

/// Brings the elements of a dataset along, or returns `false`.
type ElementsBy<'a> = dyn FnMut(&DatasetInCopy<'_>) -> model::Result<bool> + 'a;

/// A dataset that is copied, for [`Copier::elements_by`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DatasetInCopy<'a> {
    /// The path in the file that is copied.
    pub path: &'a str,
    /// What it is there.
    pub spec: &'a DatasetSpec,
    /// Its chunks there.
    pub chunks: &'a [StoredChunk],
    /// The copy.
    pub copy: ObjectId,
}

#[derive(Clone)]
struct CopiedObject {
    from: ObjectId,
    to: ObjectId,
    kind: ObjectKind,
    /// The path in the file that is copied, for messages.
    path: String,
    /// Whether its elements or pairs refer to objects.
    has_references: bool,
}

impl<'a> Copier<'a> {
    /// A copy from one file to another, or within one, of nothing yet.
    pub fn new(from: &'a File, to: &'a File) -> Self {
        let files = FilePair::new(from, to);
        Copier {
            files,
            chunk: None,
            filters: None,
            verify: true,
            inline: false,
            report: CopyReport::default(),
            progress: CopyProgress::default(),
            elements_by: None,
            incomplete: Vec::new(),
            groups: VecDeque::new(),
            roots: Vec::new(),
            cached_objects_to_copy: None,
            specs_in_progress: HashSet::new(),
            links: Vec::new(),
            skip_unsupported: false,
            skip_damaged: false,
            left_out: HashSet::new(),
        }
    }

    /// Datasets of this rank are stored in chunks of these dimensions (`[rank]`, elements).
    pub fn chunk(mut self, dims: &[u64]) -> Self {
        self.chunk = Some(dims.into());
        self
    }

    /// Sets the filters of all copied datasets with dimensions, instead of their own. An empty list decodes them. An
    /// optional filter that does not fit the elements is left out.
    pub fn filters(mut self, filters: &[FilterSpec]) -> Self {
        self.filters = Some(filters.into());
        self
    }

    /// Sets whether chunks that are copied as they are stored are decoded to verify them (default: yes). Without it, a
    /// copy takes no longer than reading and writing.
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Calls `each` with the bytes of elements that were copied since the last call.
    pub fn progress(mut self, each: impl FnMut(u64) + 'a) -> Self {
        self.progress.each = Some(Box::new(each));
        self
    }

    /// Flushes the file to which is copied after each so many bytes of elements (default: never). For a store that keeps
    /// changes in memory until they are flushed, and that nobody else sees yet. A flush that fails ends the copy.
    pub fn flush_every(mut self, bytes: u64) -> Self {
        self.progress.flush_every = Some(bytes);
        self
    }

    /// Asks `each` for each dataset with elements whether it brings them along by itself: then they are not copied. The copy
    /// has no elements yet.
    pub fn elements_by(mut self, each: impl FnMut(&DatasetInCopy<'_>) -> model::Result<bool> + 'a) -> Self {
        self.elements_by = Some(Box::new(each));
        self
    }

    /// Copies an object, with everything below it, to a path in a group. Missing groups on the way are created.
    /// [`Copier::copy_data_and_finish`] copies the attributes and elements.
    ///
    /// # Errors
    /// [`model::Error::Exists`] if the name is taken; [`model::Error::Unsupported`] if the file cannot hold such an
    /// object; errors of reading it. After an error, do not finish the copy.
    pub fn object(&mut self, object: &Object, group: &Group, path: &str) -> Result<()> {
        self.object_at_bytes(object, group, path.as_bytes())
    }

    /// As [`Copier::object`], along names that may be other than UTF-8, as other programs make them.
    ///
    /// # Errors
    /// As [`Copier::object`].
    pub fn object_at_bytes(&mut self, object: &Object, group: &Group, path: &[u8]) -> Result<()> {
        let check = || NewLinkPath::resolve(group.file(), group.id(), path)?.check_absent();
        check()
            .map_err(|kind| group.file().error(Some(&join_path(group.path(), &String::from_utf8_lossy(path))), kind))?;
        self.add_root(object.id());
        let copy = self.create_copy(object.id(), object.path())?;
        let from = if path.starts_with(b"/") { group.file().root() } else { group.clone() };
        let names = path::path_names(path).map(Name::from).collect();
        self.links.push((from, names, LinkTarget::Hard(copy)));
        self.copy_group_links()
    }

    /// Copies everything in a group to another group, with the attributes and the comment of the group.
    ///
    /// # Errors
    /// As [`Copier::object`].
    pub fn contents(&mut self, from: &Group, to: &Group) -> Result<()> {
        self.add_root(from.id());
        self.files.objects.insert(from.id(), to.id());
        let (path, kind) = (from.path().to_owned(), ObjectKind::Group);
        let made = CopiedObject { from: from.id(), to: to.id(), kind, path, has_references: false };
        for link in self.ordered_links(&made)? {
            let shown = join_path(from.path(), &link.name.to_string());
            let target = self.copied_target(link.target, &shown);
            if let Some(target) = self.or_left_out(&shown, target)? {
                self.links.push((to.clone(), vec![link.name], target));
            }
        }
        let comment =
            self.files.from.store().info(from.id()).map_err(|error| self.read_error(from.path(), error))?.comment;
        if let Some(comment) = &comment {
            let set = to
                .file()
                .writer()
                .and_then(|writer| writer.set_info(to.id(), &ObjectInfoChange::Comment(Some(comment))));
            set.map_err(|error| self.write_error(to.path(), error))?;
        }
        self.incomplete.push(made);
        self.copy_group_links()
    }

    fn add_root(&mut self, id: ObjectId) {
        self.roots.push(id);
        self.cached_objects_to_copy = None;
    }

    fn read_error(&self, path: &str, error: impl Into<ErrorKind>) -> Error {
        self.files.from.error(Some(path), error)
    }

    fn write_error(&self, path: &str, error: impl Into<ErrorKind>) -> Error {
        self.files.to.error(Some(path), error)
    }

    /// Makes the copy of an object, unless there is one.
    fn create_copy(&mut self, id: ObjectId, path: &str) -> Result<ObjectId> {
        if let Some(copy) = self.files.objects.get(&id) {
            return Ok(*copy);
        }
        let store = self.files.from.store();
        let info = store.info(id).map_err(|error| self.read_error(path, error))?;
        let kind = store.kind(id).map_err(|error| self.read_error(path, error))?;
        let body = match kind {
            ObjectKind::Group => {
                let spec =
                    store.spec(id).and_then(ObjectSpec::into_group).map_err(|error| self.read_error(path, error))?;
                ObjectKindSpec::Group(spec)
            }
            ObjectKind::Datatype => {
                let datatype =
                    store.spec(id).and_then(ObjectSpec::into_datatype).map_err(|error| self.read_error(path, error))?;
                ObjectKindSpec::Datatype(self.datatype_for_target(&datatype))
            }
            ObjectKind::Dataset => {
                let dataset = Dataset::open(self.files.from.clone(), id, path.to_owned())?;
                ObjectKindSpec::Dataset(Box::new(self.new_dataset_spec(&dataset)?))
            }
            ObjectKind::Map => {
                check_supports_maps(self.files.to).map_err(|kind| self.write_error(path, kind))?;
                let spec = store.spec(id).and_then(ObjectSpec::into_map);
                let MapSpec { key_type: key, value_type: value } =
                    spec.map_err(|error| self.read_error(path, error))?;
                let [key, value] = [key, value].map(|datatype| self.datatype_for_target(&datatype));
                ObjectKindSpec::Map(Box::new(MapSpec { key_type: key, value_type: value }))
            }
        };
        // A fill value may have led back here.
        if let Some(copy) = self.files.objects.get(&id) {
            return Ok(*copy);
        }
        let large_attributes = self.needs_newer_header(id, path)?;
        let has_references = has_references(&body);
        let (attributes, times) = (info.attribute_storage, info.times.is_some());
        let spec = ObjectSpec {
            body,
            attribute_storage: attributes,
            track_times: times,
            expects_large_attributes: large_attributes,
        };
        let to = self.files.to.writer().map_err(|error| self.write_error(path, error))?;
        let copy = to.create(&NewObject::unlinked(&spec)).map_err(|error| self.write_error(path, error))?;
        self.files.objects.insert(id, copy);
        let made = || CopiedObject { from: id, to: copy, kind, path: path.to_owned(), has_references };
        self.incomplete.push(made());
        if kind == ObjectKind::Group {
            self.groups.push_back(made());
        }
        if let Some(comment) = &info.comment {
            let set = to.set_info(copy, &ObjectInfoChange::Comment(Some(comment)));
            let set = set.map_err(|error| self.write_error(path, error));
            self.or_left_out(path, set)?;
        }
        Ok(copy)
    }

    /// Whether some attribute needs an object header of version 2: because it is large, or because its type would be
    /// taken for damage in a header without a checksum. Those that cannot be listed are told of when they are copied, if they
    /// may be left out.
    fn needs_newer_header(&self, id: ObjectId, path: &str) -> Result<bool> {
        let mut found = false;
        let listed = self.files.from.store().for_each_attribute(id, &mut |attribute| {
            let unusual = attribute.committed_datatype.is_none() && attribute.datatype.has_number_over_half_unused();
            found |= attribute.value.len() > LARGE_ATTRIBUTE_BYTES || unusual;
            !found
        });
        match listed.map_err(|error| self.read_error(path, error)) {
            Err(error) if !self.is_to_be_skipped(error.kind()) => Err(error),
            _ => Ok(found),
        }
    }

    /// The type in the other file.
    fn datatype_for_target(&self, datatype: &model::Datatype) -> model::Datatype {
        datatype.with_vlen_and_reference_sizes(
            self.files.from.session().vlen_and_reference_sizes,
            self.files.to.session().vlen_and_reference_sizes,
        )
    }

    /// The copy of a committed type.
    fn copy_committed_type(&mut self, id: Option<ObjectId>, path: &str) -> Result<Option<ObjectId>> {
        id.map(|id| self.create_copy(id, path)).transpose()
    }

    /// The target of the copy of a link, which is made if it is an object.
    fn copied_target(&mut self, target: LinkTarget, shown: &str) -> Result<LinkTarget> {
        match target {
            LinkTarget::Hard(id) => Ok(LinkTarget::Hard(self.create_copy(id, shown)?)),
            target => Ok(self.link_target(target)),
        }
    }

    /// The links of a group, in the order of their creation if that is known.
    fn ordered_links(&mut self, group: &CopiedObject) -> Result<Vec<Link>> {
        let mut links = Vec::new();
        let mut each = |link| {
            links.push(link);
            true
        };
        let listed = self.files.from.store().for_each_link(group.from, &mut each);
        let listed = listed.map_err(|error| self.read_error(&group.path, error));
        self.or_left_out(&group.path, listed)?;
        links.sort_by_key(|link: &Link| link.creation_order);
        Ok(links)
    }

    /// Copies the links of groups that were created, and creates their targets.
    fn copy_group_links(&mut self) -> Result<()> {
        while let Some(group) = self.groups.pop_front() {
            for link in self.ordered_links(&group)? {
                let shown = join_path(&group.path, &link.name.to_string());
                let added = self.copied_target(link.target, &shown).and_then(|target| {
                    let added =
                        self.files.to.writer().and_then(|writer| writer.add_link(group.to, &link.name, &target));
                    added.map_err(|error| self.write_error(&shown, error))
                });
                self.or_left_out(&shown, added)?;
            }
        }
        Ok(())
    }

    /// The description of the copy of a dataset.
    fn new_dataset_spec(&mut self, dataset: &Dataset) -> Result<DatasetSpec> {
        let found = if self.has_elements_elsewhere(dataset)? { dataset.stored_spec()? } else { dataset.spec()? };
        let mut spec = DatasetSpec::clone(&*found);
        spec.committed_datatype = self.copy_committed_type(spec.committed_datatype, dataset.path())?;
        self.drop_unfit_fill_value(&mut spec, dataset.path());
        let datatype = self.datatype_for_target(&spec.datatype);
        if let FillValue::Value(bytes) = &mut spec.fill.value {
            let plan = ElementCopy::new(&spec.datatype, &datatype);
            self.create_referents(&plan, bytes)?;
            *bytes = plan.run(bytes, &self.files).map_err(|kind| self.read_error(dataset.path(), kind))?;
            self.note_lost_references(dataset.path());
        }
        self.change_sources(&mut spec);
        let resized = spec.datatype.size() != datatype.size();
        spec.datatype = datatype;
        self.change_storage(&mut spec, resized).map_err(|kind| self.write_error(dataset.path(), kind))?;
        Ok(spec)
    }

    /// Leaves out a fill value that does not fit the elements, which libhdf5 refuses.
    fn drop_unfit_fill_value(&mut self, spec: &mut DatasetSpec, path: &str) {
        let FillValue::Value(bytes) = &spec.fill.value else { return };
        let (found, expected) = (bytes.len() as u64, u64::from(spec.datatype.size()));
        if found != expected {
            spec.fill.value = FillValue::Default;
            self.report.dropped_fill_values.push(DroppedFillValue {
                path: path.to_owned(),
                fill_value_size: found,
                element_size: expected,
            });
        }
    }

    /// Makes the objects that a fill value refers to, which must be there before the dataset, if they are copied at
    /// all.
    fn create_referents(&mut self, plan: &ElementCopy, fill: &[u8]) -> Result<()> {
        let mut referents = Vec::new();
        plan.for_each_referent(fill, &self.files, &mut |id| referents.push(id));
        if !referents.is_empty() && self.cached_objects_to_copy.is_none() {
            self.cached_objects_to_copy = Some(self.objects_to_copy());
        }
        for id in referents {
            let copied = self.cached_objects_to_copy.as_ref().is_some_and(|tree| tree.contains(&id));
            if copied && self.specs_in_progress.insert(id) {
                self.create_copy(id, &id.to_string())?;
            }
        }
        Ok(())
    }

    /// Every object that is copied.
    fn objects_to_copy(&self) -> HashSet<ObjectId> {
        let mut found: HashSet<ObjectId> = self.roots.iter().copied().collect();
        let mut groups = self.roots.clone();
        while let Some(group) = groups.pop() {
            // Other objects have no links. An object that cannot be read is an error when it is copied.
            let _ = self.files.from.store().for_each_link(group, &mut |link| {
                if let LinkTarget::Hard(id) = link.target
                    && found.insert(id)
                {
                    groups.push(id);
                }
                true
            });
        }
        found
    }

    /// Puts the chunks and filters that are wished for into a description.
    fn change_storage(&self, spec: &mut DatasetSpec, resized: bool) -> Result<(), ErrorKind> {
        let rank = spec.dataspace.rank();
        let elsewhere = matches!(spec.layout, Layout::Virtual(_) | Layout::External(_));
        if rank == 0
            || elsewhere
            || spec.dataspace.element_count() == Some(0) && !matches!(spec.layout, Layout::Chunked(_))
        {
            return Ok(());
        }
        if let Some(dims) = self.chunk.as_ref().filter(|dims| dims.len() == rank) {
            let bounds = spec.dataspace.max_dims().iter().zip(dims);
            spec.layout = Layout::Chunked(bounds.map(|(max, dim)| (*dim).min(*max).max(1)).collect());
        }
        let rechunked = self.chunk.is_some();
        let Some(filters) = &self.filters else {
            if (resized || rechunked) && !spec.filters.is_empty() {
                let filters = std::mem::take(&mut spec.filters);
                spec.filters = self.complete_filters(spec, &filters, false)?;
            }
            return Ok(());
        };
        if !matches!(spec.layout, Layout::Chunked(_)) {
            if filters.is_empty() {
                return Ok(());
            }
            let (dims, max) = (spec.dataspace.dims(), spec.dataspace.max_dims());
            spec.layout = Layout::Chunked(crate::chunk_guess::guess_chunk(dims, max, spec.datatype.size().into()));
        }
        spec.filters = self.complete_filters(spec, filters, true)?;
        Ok(())
    }

    /// Filters with the parameters that follow from the dataset.
    fn complete_filters(
        &self,
        spec: &DatasetSpec,
        filters: &[FilterSpec],
        wished: bool,
    ) -> Result<Vec<FilterSpec>, ErrorKind> {
        let Layout::Chunked(chunk_dims) = &spec.layout else { return Ok(filters.into()) };
        let target = h5live_filters::FilterTarget { datatype: &spec.datatype, chunk_dims, fill: &spec.fill.value };
        let registry = &self.files.to.shared().options.filters;
        let mut completed = Vec::new();
        for filter in filters {
            match registry.complete_spec(filter, &target) {
                Ok(filter) => completed.push(filter),
                Err(_) if wished && filter.optional => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(completed)
    }
}

/// Whether the elements or pairs of an object refer to objects.
fn has_references(body: &ObjectKindSpec) -> bool {
    let of = |datatype: &model::Datatype| ElementCopy::new(datatype, datatype).has_references();
    match body {
        ObjectKindSpec::Dataset(spec) => of(&spec.datatype),
        ObjectKindSpec::Map(spec) => of(&spec.key_type) || of(&spec.value_type),
        ObjectKindSpec::Group(_) | ObjectKindSpec::Datatype(_) => false,
    }
}

impl Drop for Copier<'_> {
    /// Removes the objects of a copy that was not finished.
    fn drop(&mut self) {
        for made in self.incomplete.iter().rev() {
            let _ = self.files.to.writer().and_then(|writer| writer.discard(made.to));
        }
    }
}

impl Object {
    /// Copies the object, with everything below it, to a path in a group of the same file or another one.
    ///
    /// # Errors
    /// As [`Copier::object`] and [`Copier::copy_data_and_finish`].
    pub fn copy_to(&self, group: &Group, path: &str) -> Result<CopyReport> {
        let mut copy = Copier::new(self.file(), group.file());
        copy.object(self, group, path)?;
        copy.copy_data_and_finish()
    }
}

impl File {
    /// Copies the object at a path, with everything below it, to another path of the same file.
    ///
    /// # Errors
    /// As [`Copier::object`] and [`Copier::copy_data_and_finish`].
    pub fn copy_object(&self, from: &str, to: &str) -> Result<CopyReport> {
        self.object(from)?.copy_to(&self.root(), to)
    }
}
