//! Elements where the file has them, without a copy.

use bytemuck::Pod;
use h5live_model::{ChunkCoord, DatasetView};

use crate::dataset::Dataset;
use crate::error::ErrorKind;
use crate::{H5Type, Result};

impl Dataset {
    /// All elements without reading them into memory: a contiguous dataset, or one that is a single chunk without
    /// filters, whose elements are stored just as `T` is in memory, in a file that was opened to be read
    /// ([`File::open`]). h5live aligns those of 4 KiB and more to eight bytes, so that they can be seen so.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("run.h5");
    /// # let file = h5live::File::create(&path)?;
    /// # file.new_dataset::<f64>().shape(&[1000]).contiguous().create("data")?.write(&[2.5; 1000])?;
    /// # file.close()?;
    /// let file = h5live::File::open(&path)?;
    /// let view = file.dataset("data")?.view::<f64>()?;
    /// // SAFETY: nobody changes this file.
    /// assert_eq!(unsafe { view.as_slice() }[1], 2.5);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Who looks at the elements promises that nobody changes the file meanwhile: [`DatasetView::as_slice`] is unsafe.
    ///
    /// # Errors
    /// [`ErrorKind::NotViewable`] with the reason if the dataset cannot be seen so; [`ErrorKind::Convert`] if its
    /// elements cannot be of type `T` at all.
    ///
    /// [`File::open`]: crate::File::open
    pub fn view<T: H5Type + Pod>(&self) -> Result<DatasetView<T>> {
        self.with_error_path(|| {
            let view = self.core.spec_snapshot()?;
            let decoder = T::decoder(&view.spec.datatype)?;
            if T::decode_in_place(&decoder, &mut [T::zeroed()]).is_none() {
                return Err(ErrorKind::NotViewable("its elements are stored in another form").into());
            }
            let Some((grid, len)) = view.grid()? else {
                return Err(ErrorKind::NotViewable("it has no elements").into());
            };
            let first = ChunkCoord::new(&vec![0; view.extent.len()]);
            if grid.is_partial(&first, &view.extent) || grid.elements() != Some(view.extent.iter().product()) {
                return Err(ErrorKind::NotViewable("it is cut into chunks").into());
            }
            if !self.core.filters.is_empty() {
                return Err(ErrorKind::NotViewable("it has filters").into());
            }
            let stored = self.core.chunks.locate(&first)?.filter(|stored| stored.size >= len as u64);
            let stored = stored.ok_or(ErrorKind::NotViewable("nobody wrote its elements"))?;
            let bytes = self.core.chunks.map(&stored, len as u64)?;
            let bytes =
                bytes.ok_or(ErrorKind::NotViewable("the file is not open just to be read, or cannot be mapped"))?;
            let elements = bytes.into_elements();
            elements.ok_or_else(|| ErrorKind::NotViewable("its elements are not aligned in the file").into())
        })
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "nobody else has the files of these tests")]
mod tests {
    use super::*;
    use crate::File;

    fn view<T: H5Type + Pod>(file: &File, name: &str) -> Result<DatasetView<T>> {
        file.dataset(name)?.view()
    }

    fn elements<T: Pod>(view: &DatasetView<T>) -> &[T] {
        // SAFETY: the file is the test's own, and is not changed any more.
        unsafe { view.as_slice() }
    }

    #[test]
    fn a_view_shows_what_was_written_and_outlives_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        let values: Vec<f64> = (0..10_000).map(f64::from).collect();
        let file = File::options().user_block(&[7; 100]).mode(crate::Mode::Create).open(&path).unwrap();
        file.new_dataset::<f64>().shape(&[100, 100]).contiguous().create("data").unwrap().write(&values).unwrap();
        file.new_dataset::<f64>()
            .shape(&[100, 100])
            .chunk_shape(&[100, 100])
            .create("one")
            .unwrap()
            .write(&values)
            .unwrap();
        file.close().unwrap();
        let file = File::open(&path).unwrap();
        let (contiguous, one) = (view::<f64>(&file, "data").unwrap(), view::<f64>(&file, "one").unwrap());
        drop(file);
        assert_eq!(elements(&contiguous), values);
        assert_eq!(elements(&one), values);
    }

    #[test]
    fn what_cannot_be_seen_in_place_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        let file = File::create(&path).unwrap();
        let new = || file.new_dataset::<i32>().shape(&[2002]);
        let values: Vec<i32> = (0..2002).collect();
        new().chunk_shape(&[1001]).create("chunks").unwrap().write(&values).unwrap();
        new().chunk_shape(&[2002]).shuffle().create("filters").unwrap().write(&values).unwrap();
        new().contiguous().create("unwritten").unwrap();
        new().contiguous().create("data").unwrap().write(&values).unwrap();
        let reason = |file: &File, name: &str| view::<i32>(file, name).unwrap_err().to_string();
        assert!(reason(&file, "data").contains("just to be read"));
        file.close().unwrap();
        let file = File::open(&path).unwrap();
        assert!(reason(&file, "chunks").contains("cut into chunks"));
        assert!(reason(&file, "filters").contains("filters"));
        assert!(reason(&file, "unwritten").contains("nobody wrote"));
        assert!(view::<i64>(&file, "data").unwrap_err().to_string().contains("another form"));
        assert_eq!(elements(&view::<i32>(&file, "data").unwrap()), values);
    }
}
