//! Bytes of a store that are seen where they are, without a copy.
#![allow(unsafe_code, reason = "others may change these bytes: who looks at them must promise that nobody does")]

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use bytemuck::Pod;

/// Memory in which a store has bytes of a file, usually a mapping of it.
///
/// # Safety
/// The `len` bytes at `as_ptr` can be read as long as the value lives and nobody shortens the file, and `as_ptr` and `len`
/// always return the same.
pub unsafe trait MappedMemory: Send + Sync {
    /// Where the bytes begin.
    fn as_ptr(&self) -> *const u8;

    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with the bytes from `at` on, also while others change or shorten the file. `false` if there are no
    /// such bytes, or nothing can be copied so. Whether all of them were bytes of the file, [`MappedMemory::has_not_been_truncated`]
    /// says afterwards.
    fn copy_to(&self, at: usize, into: &mut [u8]) -> bool;

    /// Whether the file has had all of these bytes until now, as far as copies have met them.
    fn has_not_been_truncated(&self) -> bool;

    /// Whether a copy has met bytes that the file does not have any more. Costs nothing, unlike [`MappedMemory::has_not_been_truncated`].
    fn has_faulted(&self) -> bool;
}

/// Bytes that are shared with a file. They can be held and copied without care, and looked at only as a [`DatasetView`].
#[derive(Clone)]
pub struct FileBackedBytes(Arc<dyn MappedMemory>);

impl FileBackedBytes {
    /// The bytes of `memory`.
    pub fn new(memory: Arc<dyn MappedMemory>) -> Self {
        FileBackedBytes(memory)
    }

    /// Copies the bytes from `at` on into `into`, as [`MappedMemory::copy_to`].
    pub fn copy_to(&self, at: usize, into: &mut [u8]) -> bool {
        self.0.copy_to(at, into)
    }

    /// Whether what was copied so far were bytes of the file, as [`MappedMemory::has_not_been_truncated`].
    pub fn has_not_been_truncated(&self) -> bool {
        self.0.has_not_been_truncated()
    }

    /// Whether a copy has met bytes that the file does not have any more, as [`MappedMemory::has_faulted`].
    pub fn has_faulted(&self) -> bool {
        self.0.has_faulted()
    }

    /// The same as elements of type `T`; `None` if they are not aligned for it, or do not end with an element.
    pub fn into_elements<T: Pod>(self) -> Option<DatasetView<T>> {
        let is_aligned = self.0.as_ptr().cast::<T>().is_aligned();
        let is_whole = size_of::<T>() > 0 && self.0.len().is_multiple_of(size_of::<T>());
        (is_aligned && is_whole).then_some(DatasetView { bytes: self, elements: PhantomData })
    }
}

impl fmt::Debug for FileBackedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileBackedBytes").field(&self.0.len()).finish()
    }
}

/// All elements of a dataset, in the order of storage, as they are in the file.
///
/// The file stays open as long as there is one.
#[derive(Clone)]
pub struct DatasetView<T> {
    /// Aligned for `T`, and of whole elements.
    bytes: FileBackedBytes,
    elements: PhantomData<T>,
}

impl<T: Pod> DatasetView<T> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.bytes.0.len() / size_of::<T>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of the elements; `None` if there are not so many.
    pub fn part(&self, range: Range<usize>) -> Option<DatasetViewPart<'_, T>> {
        let is_inside = range.start <= range.end && range.end <= self.len();
        is_inside.then_some(DatasetViewPart { view: self, range })
    }

    /// The elements.
    ///
    /// # Safety
    /// As long as the slice is used, nobody may change or shorten the file. Programs that heed file locks do not:
    /// h5live and libhdf5 hold one for a file that is open to be read.
    pub unsafe fn as_slice(&self) -> &[T] {
        // SAFETY: the memory has so many bytes, aligned for `T`, of which any are a `T`; the caller promises that they
        // stay.
        unsafe { slice::from_raw_parts(self.bytes.0.as_ptr().cast(), self.len()) }
    }
}

impl<T: Pod> fmt::Debug for DatasetView<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DatasetView").field(&self.len()).finish()
    }
}

/// Some elements of a [`DatasetView`], one after another.
#[derive(Clone)]
pub struct DatasetViewPart<'a, T> {
    view: &'a DatasetView<T>,
    /// Within the view.
    range: Range<usize>,
}

impl<'a, T: Pod> DatasetViewPart<'a, T> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The elements.
    ///
    /// # Safety
    /// As [`DatasetView::as_slice`].
    pub unsafe fn as_slice(&self) -> &'a [T] {
        // SAFETY: the caller promises what the view asks for, and the part lies within it.
        unsafe { self.view.as_slice() }.get(self.range.clone()).unwrap_or_default()
    }
}

impl<T: Pod> fmt::Debug for DatasetViewPart<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DatasetViewPart").field(&self.range).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a vector from an offset on.
    struct Memory(Vec<u64>, usize, usize);

    // SAFETY: the bytes lie within the vector, which nobody changes.
    unsafe impl MappedMemory for Memory {
        fn as_ptr(&self) -> *const u8 {
            bytemuck::cast_slice::<u64, u8>(&self.0)[self.1..].as_ptr()
        }

        fn len(&self) -> usize {
            self.2
        }

        fn copy_to(&self, _: usize, _: &mut [u8]) -> bool {
            false
        }

        fn has_not_been_truncated(&self) -> bool {
            true
        }

        fn has_faulted(&self) -> bool {
            false
        }
    }

    fn bytes(values: &[u64], at: usize, len: usize) -> FileBackedBytes {
        assert!(at + len <= values.len() * 8);
        FileBackedBytes::new(Arc::new(Memory(values.to_vec(), at, len)))
    }

    #[test]
    fn a_view_has_the_elements_of_the_memory_and_keeps_it() {
        let view = bytes(&[1, 2, 3], 8, 16).into_elements::<u64>().unwrap();
        let other = view.clone();
        drop(view);
        assert_eq!((other.len(), other.is_empty()), (2, false));
        // SAFETY: nobody changes the vector.
        assert_eq!(unsafe { other.as_slice() }, [2, 3]);
        // SAFETY: as above.
        assert_eq!(unsafe { other.part(1..2).unwrap().as_slice() }, [3]);
        assert!(other.part(1..3).is_none() && other.part(2..2).is_some_and(|part| part.is_empty()));
        let none = bytes(&[1], 8, 0).into_elements::<u16>();
        // SAFETY: as above.
        assert!(none.is_some_and(|none| none.is_empty() && unsafe { none.as_slice() }.is_empty()));
    }

    #[test]
    fn bytes_that_are_not_aligned_or_end_within_an_element_are_no_elements() {
        assert!(bytes(&[1, 2, 3], 1, 16).into_elements::<u64>().is_none());
        assert!(bytes(&[1, 2, 3], 1, 16).into_elements::<u8>().is_some());
        assert!(bytes(&[1, 2, 3], 0, 15).into_elements::<u64>().is_none());
        assert!(bytes(&[1, 2, 3], 0, 15).into_elements::<()>().is_none());
    }
}
