//! Shapes: of a dataset, and of what is selected from it.

use super::Dataset;
use crate::select::kept_dims;
use crate::{Result, Select};

impl Dataset {
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
        Ok(self.spec()?.dataspace.max().to_vec())
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
        Ok(self.spec()?.dataspace.elements().unwrap_or(u64::MAX))
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
}
