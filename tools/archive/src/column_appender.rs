//! Datasets that grow at their end, and what is to be appended to them.

use h5live::{Dataset, H5Write};

use crate::error::Result;

/// Bytes that are gathered before they are appended.
const PENDING_BYTES: usize = 256 << 10;

/// A dataset with one dimension, and the elements that are not in it yet.
#[derive(Debug)]
pub struct ColumnAppender<T> {
    dataset: Dataset,
    pending: Vec<T>,
    /// All elements, with the pending ones.
    len: u64,
}

impl<T: H5Write> ColumnAppender<T> {
    /// The elements of a dataset.
    ///
    /// # Errors
    /// If the shape cannot be read.
    pub fn new(dataset: Dataset) -> Result<Self> {
        let len = dataset.shape()?.first().copied().unwrap_or(0);
        Ok(ColumnAppender { dataset, pending: Vec::new(), len })
    }

    /// How many elements there are, with those that are not written yet.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The dataset.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Adds elements at the end.
    ///
    /// # Errors
    /// As [`Dataset::append`].
    pub fn push(&mut self, elements: &[T]) -> Result<()>
    where
        T: Clone,
    {
        self.pending.extend_from_slice(elements);
        self.len += elements.len() as u64;
        if self.pending.len() * size_of::<T>() >= PENDING_BYTES { self.append() } else { Ok(()) }
    }

    fn append(&mut self) -> Result<()> {
        if !self.pending.is_empty() {
            self.dataset.append(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Publishes all elements.
    ///
    /// # Errors
    /// As [`Dataset::flush`].
    pub fn commit(&mut self) -> Result<()> {
        self.append()?;
        Ok(self.dataset.flush()?)
    }

    /// Drops elements at the end.
    ///
    /// # Errors
    /// As [`Dataset::resize`].
    pub fn drop_pending_and_truncate(&mut self, row_count: u64) -> Result<()> {
        let rest = self.dataset.shape()?.get(1..).unwrap_or_default().to_vec();
        self.pending.clear();
        self.dataset.resize(&[&[row_count], &*rest].concat())?;
        self.len = row_count;
        Ok(())
    }
}
