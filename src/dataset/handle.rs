//! The handle on a dataset: which dataset it is, and its description.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use h5live_model::{BoundSelection, DatasetSpec, Datatype, ObjectId};

use super::core::DatasetCore;
use super::error::DatasetError;
use super::spec_snapshot::SpecSnapshot;
use super::store::DatasetWriter;
use crate::convert::ConversionPolicy;
use crate::select::{ResolvedSelection, kept_dims};
use crate::types::ConversionContext;
use crate::{Error, File, Result, Select, attribute};

/// An array of elements in a file. Clones of a handle, and other handles on the same dataset, share the staged
/// elements.
///
/// Elements are converted between their type in the file and the type of the caller. A value that the other type does
/// not have is an error ([`ConversionPolicy`]). Other processes see appended and written elements after a flush.
#[derive(Clone)]
pub struct Dataset {
    pub(super) file: File,
    pub(super) core: Arc<DatasetCore>,
    pub(super) id: ObjectId,
    pub(super) path: String,
    pub(super) conversion: ConversionPolicy,
    /// Whether sources whose writers let nobody read them yet count as not there.
    pub(super) awaits_sources: bool,
}

impl Dataset {
    pub(crate) fn open(file: File, id: ObjectId, path: String) -> Result<Dataset> {
        match file.core(id) {
            Ok(core) => {
                let conversion = file.shared().options.conversion;
                let dataset = Dataset { file, core, id, path, conversion, awaits_sources: false };
                // Sources that cannot be read are an error when they are read.
                dataset.forget_virtual_extent();
                Ok(dataset)
            }
            Err(kind) => Err(file.error(Some(&path), kind)),
        }
    }

    /// As [`Dataset::open`], of a dataset that has just been made.
    pub(crate) fn open_new(file: File, id: ObjectId, path: String) -> Result<Dataset> {
        let dataset = Dataset::open(file, id, path)?;
        dataset.file.shared().dataset_cache().mark_newest_created(id);
        Ok(dataset)
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The identity of the dataset in its file.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// The path by which the dataset was opened.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn with_error_path<T>(&self, action: impl FnOnce() -> Result<T, DatasetError>) -> Result<T> {
        action().map_err(|failure| failure.with_path(self.file.name(), Some(&self.path)))
    }

    /// As [`Dataset::with_error_path`]. If the store fails, the error says which rows it does not have for good.
    pub(super) fn with_append_error<T>(&self, action: impl FnOnce() -> Result<T, DatasetError>) -> Result<T> {
        self.with_error_path(action).map_err(|error| self.with_unpublished_rows(error))
    }

    #[cold]
    fn with_unpublished_rows(&self, error: Error) -> Error {
        error.with_unpublished(|| self.core.unpublished_rows())
    }

    /// A writer of elements and of the extent, if the file can be written.
    pub(super) fn writer(&self) -> Result<DatasetWriter<'_>, DatasetError> {
        self.file.writer()?;
        self.core.publish.note_path(&self.path);
        let writer = DatasetWriter::begin(&self.core, self.file.store(), &self.file.shared().cache)?;
        Ok(self.core.stage.check_not_closing().map(|()| writer)?)
    }

    /// The same dataset, with another rule for values that one of the types does not have. The rule of the file is
    /// that of [`Options::conversion`](crate::Options::conversion).
    pub fn with_conversion(&self, conversion: ConversionPolicy) -> Dataset {
        Dataset { conversion, ..self.clone() }
    }

    pub(super) fn context(&self) -> ConversionContext<'_> {
        self.file.context().with_conversion(self.conversion)
    }

    /// Reads what the writer of a live file has published since the last refresh. Returns whether the extent has
    /// changed.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the dataset cannot be read any more.
    pub fn refresh(&self) -> Result<bool> {
        self.with_error_path(|| {
            self.file.shared().refreshes.fetch_add(1, Ordering::Relaxed);
            // Rows that were appended are counted on from the extent that was known.
            self.core.write_out_if_exists(self.file.shared())?;
            let changed = self.core.chunks.refresh()?;
            self.core.count_change();
            self.file.shared().cache.forget_dataset(self.core.cache_id());
            let extent = || self.core.sources.as_ref().and_then(|sources| sources.extent.lock().dims().cloned());
            let before = extent();
            self.refresh_sources()?;
            self.forget_virtual_extent();
            self.resolved_snapshot()?;
            Ok(changed || extent() != before)
        })
    }

    /// A handle for one who follows a virtual dataset. A source whose writer lets nobody read it yet has no rows so far;
    /// for others, it is an error ([`Error::is_in_use`]) as soon as the extent depends on it.
    /// Reading elements of such a source is an error for both. [`Dataset::follow`] waits for them.
    pub fn ignore_busy_sources_in_extent(mut self) -> Self {
        self.awaits_sources = true;
        self
    }

    /// Type, shape, layout, filters and fill value. The shape is as of the last refresh.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the description cannot be read;
    /// [`ErrorKind::OtherFile`](crate::ErrorKind::OtherFile) if the shape follows from sources of a virtual dataset, and
    /// one of them is there and cannot be read.
    pub fn spec(&self) -> Result<Arc<DatasetSpec>> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let mut spec = view.spec;
            if *spec.dataspace.dims() != *view.extent {
                let mut grown = DatasetSpec::clone(&spec);
                if let h5live_model::Dataspace::Simple(shape) = &mut grown.dataspace {
                    shape.try_resize(&view.extent);
                }
                spec = grown.into();
            }
            Ok(spec)
        })
    }

    /// The description as it is stored: the extent of a virtual dataset may be another one.
    pub(crate) fn stored_spec(&self) -> Result<Arc<DatasetSpec>> {
        self.with_error_path(|| Ok(self.core.chunks.spec()?))
    }

    /// The type of an element in the file.
    ///
    /// # Errors
    /// As [`Dataset::spec`].
    pub fn datatype(&self) -> Result<Datatype> {
        Ok(self.spec()?.datatype.clone())
    }

    /// The current dimensions (`[rank]`, elements), with elements that were appended and not flushed yet.
    ///
    /// # Errors
    /// As [`Dataset::spec`].
    pub fn shape(&self) -> Result<Vec<u64>> {
        self.with_error_path(|| Ok(self.resolved_snapshot()?.extent.to_vec()))
    }

    /// The maximum dimensions (`[rank]`, elements; [`UNLIMITED`](crate::UNLIMITED) for no limit).
    ///
    /// # Errors
    /// As [`Dataset::spec`].
    pub fn max_shape(&self) -> Result<Vec<u64>> {
        Ok(self.spec()?.dataspace.max_dims().to_vec())
    }

    /// The number of dimensions; 0 for a scalar.
    ///
    /// # Errors
    /// As [`Dataset::spec`].
    pub fn ndim(&self) -> Result<usize> {
        self.with_error_path(|| Ok(self.resolved_snapshot()?.extent.len()))
    }

    /// The number of elements.
    ///
    /// # Errors
    /// As [`Dataset::spec`].
    pub fn size(&self) -> Result<u64> {
        Ok(self.spec()?.dataspace.element_count().unwrap_or(u64::MAX))
    }

    /// The shape of what a selection reads (elements): a dimension for each range, none for a single index, and one for
    /// points and masks.
    ///
    /// # Errors
    /// [`ErrorKind::Selection`](crate::ErrorKind::Selection) if the selection does not fit.
    pub fn selected_shape(&self, selection: impl Select) -> Result<Vec<u64>> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let resolved = selection.resolve(&view.extent)?;
            let dropped = resolved.dropped();
            let selected = self.bind_selection(&view, resolved)?;
            Ok(kept_dims(selected.dims(), dropped).to_vec())
        })
    }

    /// The dataset as an operation sees it that needs its elements or its extent.
    ///
    /// # Errors
    /// If the extent follows from sources that cannot be read, or are not there and must be.
    pub(super) fn resolved_snapshot(&self) -> Result<SpecSnapshot, DatasetError> {
        // What is known may be forgotten at any time.
        let extent = match &self.core.sources {
            Some(sources) => self.resolve_virtual_extent(sources)?,
            None => None,
        };
        let snapshot = self.core.spec_snapshot()?;
        Ok(match extent {
            Some(extent) => SpecSnapshot { extent, ..snapshot },
            None => snapshot,
        })
    }

    pub(crate) fn growing_axis(&self) -> Option<usize> {
        let (shape, max) = (self.shape().ok()?, self.max_shape().ok()?);
        if shape.first().zip(max.first()).is_some_and(|(now, max)| max > now) {
            return Some(0);
        }
        max.iter().position(|max| *max == h5live_model::UNLIMITED)
    }

    pub(super) fn select(&self, view: &SpecSnapshot, selection: &impl Select) -> Result<BoundSelection, DatasetError> {
        self.bind_selection(view, selection.resolve(&view.extent)?)
    }

    /// The selection, checked against the extent.
    #[inline]
    pub(super) fn bind_selection(
        &self,
        view: &SpecSnapshot,
        resolved: ResolvedSelection,
    ) -> Result<BoundSelection, DatasetError> {
        self.core.check_allocation(view.size)?;
        // A null dataspace has no elements, unlike a scalar one, and the same rank.
        if matches!(view.spec.dataspace, h5live_model::Dataspace::Null) {
            resolved.into_bound(&view.extent)?;
            return Ok(h5live_model::Selection::None.bind(&[])?);
        }
        Ok(resolved.into_bound(&view.extent)?)
    }
}

attribute::attributes!(Dataset);

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset({}:{})", self.file.name(), self.path)
    }
}
