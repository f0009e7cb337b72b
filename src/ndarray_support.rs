//! Arrays of `ndarray`.

use ndarray::{Array, ArrayBase, Data, Dimension, IxDyn};

use crate::error::ErrorKind;
use crate::{Dataset, DatasetBuilder, H5Type, Result, Select, Selection};

/// Reading into and writing from arrays of the crate `ndarray` (feature `ndarray`).
impl Dataset {
    /// All elements, in an array of the dataset's shape.
    ///
    /// ```
    /// use h5live::File;
    /// use ndarray::{Array2, array};
    ///
    /// let file = File::in_memory();
    /// let data = file.new_dataset::<i32>().unlimited_rows(&[3]).create("data")?;
    /// data.append_array(&array![[1, 2, 3], [4, 5, 6]])?;
    /// data.append_array(&array![7, 8, 9])?;
    /// let all: Array2<f64> = data.read_array()?;
    /// assert_eq!(all, array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Array`] if the dataset is of another rank than `D`, or as [`Dataset::read_into`].
    pub fn read_array<T: H5Type, D: Dimension>(&self) -> Result<Array<T, D>> {
        self.read_array_slice(Selection::All)
    }

    /// The elements of a selection, in an array of its shape: of the dataset's rank for ranges and hyperslabs (a single
    /// index is a dimension of one), of one dimension for points and unions.
    ///
    /// # Errors
    /// As [`Dataset::read_array`].
    pub fn read_array_slice<T: H5Type, D: Dimension>(&self, selection: impl Select) -> Result<Array<T, D>> {
        let (values, dims) = self.read_with_dims(&selection)?;
        let dims: Vec<usize> = dims.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
        let array = Array::from_shape_vec(IxDyn(&dims), values).ok().and_then(|array| array.into_dimensionality().ok());
        array.ok_or_else(|| self.array_error(&vec![0; D::NDIM.unwrap_or(0)], &dims))
    }

    /// Writes an array over the elements of a selection of just its shape.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] if the shapes differ, or as [`Dataset::write_slice`].
    pub fn write_array<T: H5Type, S: Data<Elem = T>, D: Dimension>(
        &self,
        selection: impl Select,
        array: &ArrayBase<S, D>,
    ) -> Result<()> {
        let dims = self.selected_dims(&selection)?;
        if !dims.iter().copied().eq(array.shape().iter().map(|n| *n as u64)) {
            let dims: Vec<usize> = dims.iter().map(|n| *n as usize).collect();
            return Err(self.array_error(array.shape(), &dims));
        }
        match array.as_slice() {
            Some(values) => self.write_slice(selection, values),
            None => self.write_slice(selection, &array.iter().cloned().collect::<Vec<_>>()),
        }
    }

    /// Appends an array: of rows, or a single row if it has a dimension less than the dataset.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] if its rows have another shape than the dataset's, or as [`Dataset::append`].
    pub fn append_array<T: H5Type, S: Data<Elem = T>, D: Dimension>(&self, array: &ArrayBase<S, D>) -> Result<()> {
        let shape: Vec<usize> = self.shape()?.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
        let axis = self.growing_axis().unwrap_or(0);
        let without = |dims: &[usize]| {
            dims.iter().enumerate().filter(|(dim, _)| *dim != axis).map(|(_, n)| *n).collect::<Vec<_>>()
        };
        let row = without(&shape);
        let rows = array.ndim() == shape.len() && without(array.shape()) == row;
        if !rows && array.shape() != row {
            return Err(self.array_error(array.shape(), &shape));
        }
        match array.as_slice() {
            Some(values) => self.append(values),
            None => self.append(&array.iter().cloned().collect::<Vec<_>>()),
        }
    }

    fn array_error(&self, array: &[usize], dataset: &[usize]) -> crate::Error {
        let kind = ErrorKind::Array { array: array.into(), dataset: dataset.into() };
        self.file().error(Some(self.path()), kind)
    }
}

/// Making datasets of arrays of the crate `ndarray` (feature `ndarray`).
impl DatasetBuilder {
    /// Makes the dataset and writes an array. Without a shape it has the array's.
    ///
    /// # Errors
    /// As [`DatasetBuilder::create`] and [`Dataset::write_array`].
    pub fn create_with_array<T: H5Type, S: Data<Elem = T>, D: Dimension>(
        self,
        path: &str,
        array: &ArrayBase<S, D>,
    ) -> Result<Dataset> {
        let dims: Vec<u64> = array.shape().iter().map(|n| *n as u64).collect();
        let dataset = self.default_shape(&dims).create(path)?;
        dataset.write_array(Selection::All, array)?;
        Ok(dataset)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2, Array3, array, s};

    use crate::{ErrorKind, File};

    #[test]
    fn arrays_come_back_in_any_layout() {
        let file = File::in_memory();
        let whole = Array3::from_shape_fn((4, 3, 2), |(i, j, k)| (i * 6 + j * 2 + k) as i32);
        let turned = whole.view().reversed_axes();
        let data = file.new_dataset::<i32>().create_with_array("turned", &turned).unwrap();
        assert_eq!(data.read_array::<i32, _>().unwrap(), turned);
        data.write_array((.., 1..3, 0), &whole.slice(s![0..2, 0..2, 0..1])).unwrap();
        let part: Array3<i64> = data.read_array_slice((1, 1..3, 0)).unwrap();
        assert_eq!(part, array![[[6], [8]]]);
    }

    #[test]
    fn shapes_that_differ_are_refused() {
        let file = File::in_memory();
        let data = file.new_dataset::<i32>().unlimited_rows(&[3]).create("data").unwrap();
        let error = data.append_array(&Array2::<i32>::zeros((3, 2))).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Array { .. }), "{error}");
        data.append_array(&Array1::<i32>::zeros(3)).unwrap();
        assert!(data.read_array::<i32, ndarray::Ix3>().is_err());
        assert!(data.write_array(.., &Array1::<i32>::zeros(3)).is_err());
    }
}
