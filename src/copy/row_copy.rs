//! Rows that come to a dataset after it was copied.

use h5live_model::{Error as ModelError, Selection};

use super::Copier;
use super::element_copy::ElementCopy;
use crate::dims::CoreDims;
use crate::{Dataset, Result};

/// Bytes of rows that are copied at a time, or one row if it is larger.
const MAX_ROW_COPY_BYTES: u64 = 4 << 20;

impl Copier<'_> {
    /// Appends rows that a copy of a dataset lacks, because they came to the dataset later: a part of them, of a few
    /// mebibytes. Returns the number of appended rows; 0 means that the copy has all of them. [`Dataset::refresh`] takes
    /// up what has come to a live file.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] if the copy has more rows, or rows of another shape; [`ModelError::Unsupported`] for
    /// elements that refer to objects; errors of reading and writing. After an error of writing, open the copy anew: its
    /// extent says which rows it has.
    ///
    /// ```
    /// use h5live::{Copier, File, UNLIMITED};
    ///
    /// let (file, other) = (File::in_memory(), File::in_memory());
    /// let rows = file.new_dataset::<u8>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[4]).create("rows")?;
    /// rows.append(&[1, 2, 3])?;
    /// let mut copy = Copier::new(&file, &other);
    /// copy.contents(&file.root(), &other.root())?;
    /// copy.copy_data_and_finish()?;
    /// rows.append(&[4, 5])?;
    /// let copied = other.dataset("rows")?;
    /// assert_eq!(Copier::new(&file, &other).append_next_missing_rows(&rows, &copied)?, 2);
    /// assert_eq!(copied.read::<u8>()?, [1, 2, 3, 4, 5]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn append_next_missing_rows(&mut self, from: &Dataset, to: &Dataset) -> Result<u64> {
        let (old, new) = (from.spec()?, to.spec()?);
        let (dims, copied) = (old.dataspace.dims(), new.dataspace.dims());
        let ([rows, row @ ..], [done, copied_row @ ..]) = (dims, copied) else {
            return Err(self.write_error(to.path(), ModelError::Invalid("a scalar has no rows".into())));
        };
        if row != copied_row || done > rows {
            let what = format!("{copied:?} is not a part of {dims:?} from its first row on");
            return Err(self.write_error(to.path(), ModelError::Invalid(what)));
        }
        let plan = ElementCopy::new(&old.datatype, &new.datatype);
        if plan.has_references() {
            let refused = ModelError::Unsupported("appending copies of elements that refer to objects");
            return Err(self.read_error(from.path(), refused));
        }
        let row_bytes = row.iter().fold(u64::from(old.datatype.size()), |bytes, dim| bytes.saturating_mul(*dim));
        let count = (MAX_ROW_COPY_BYTES / row_bytes.max(1)).max(1).min(rows - done);
        if count == 0 {
            return Ok(0);
        }
        let (mut start, mut counts) = (CoreDims::from_elem(0, dims.len()), CoreDims::from_slice(dims));
        (start[0], counts[0]) = (*done, count);
        let elements = from.read_raw(Selection::block(&start, &counts))?;
        let bytes = elements.len() as u64;
        let copied = match plan.is_plain() {
            true => elements,
            false => plan.run(&elements, &self.files).map_err(|kind| self.read_error(from.path(), kind))?,
        };
        to.append_raw(&copied)?;
        self.report_progress(bytes)?;
        Ok(count)
    }
}
