//! Arrays of `ndarray`.

use h5live_model::{SelectionError, UNLIMITED};
use ndarray::{Array, ArrayBase, Data, Dimension, IxDyn, SliceInfo, SliceInfoElem};

use crate::error::ErrorKind;
use crate::{Dataset, DatasetBuilder, DimSelection, H5Type, H5Write, ResolvedSelection, Result, Select, Selection};

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
    /// [`ErrorKind::ArrayRank`] if the dataset is of another rank than `D`, or as [`Dataset::read_into`].
    pub fn read_array<T: H5Type, D: Dimension>(&self) -> Result<Array<T, D>> {
        self.read_array_slice(Selection::All)
    }

    /// The elements of a selection, in an array of its shape ([`Dataset::selected_shape`]): a dimension for each range,
    /// none for a single index, and one for points, masks and unions.
    ///
    /// ```
    /// use h5live::File;
    /// use ndarray::{Array1, Array2, array, s};
    ///
    /// let file = File::in_memory();
    /// let image = Array2::from_shape_fn((3, 4), |(y, x)| (10 * y + x) as u16);
    /// let data = file.new_dataset::<u16>().create_with_array("image", &image)?;
    /// let line: Array1<u16> = data.read_array_slice((1, ..))?;
    /// assert_eq!(line, array![10, 11, 12, 13]);
    /// let corner: Array2<u16> = data.read_array_slice(s![-1.., ..;2])?;
    /// assert_eq!(corner, image.slice(s![-1.., ..;2]));
    /// let bright: Array1<u16> = data.read_array_slice(image.mapv(|value| value > 20))?;
    /// assert_eq!(bright, array![21, 22, 23]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dataset::read_array`].
    pub fn read_array_slice<T: H5Type, D: Dimension>(&self, selection: impl Select) -> Result<Array<T, D>> {
        let (values, dims) = self.read_with_dims(&selection)?;
        let dims: Vec<usize> = dims.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
        let array = Array::from_shape_vec(IxDyn(&dims), values).ok().and_then(|array| array.into_dimensionality().ok());
        array.ok_or_else(|| {
            let kind = ErrorKind::ArrayRank { array: D::NDIM.unwrap_or(dims.len()), selected: dims };
            self.file().error(Some(self.path()), kind)
        })
    }

    /// Writes an array over the elements of a selection of just its shape. Dimensions of one that stand for single
    /// indices may be there or not.
    ///
    /// # Errors
    /// [`ErrorKind::ArrayShape`] if the shapes differ, or as [`Dataset::write_slice`].
    pub fn write_array_slice<T: H5Write, S: Data<Elem = T>, D: Dimension>(
        &self,
        selection: impl Select,
        array: &ArrayBase<S, D>,
    ) -> Result<()> {
        let [kept, all] = self.selected_dims(&selection)?;
        let shape = || array.shape().iter().map(|n| *n as u64);
        if !shape().eq(kept.iter().copied()) && !shape().eq(all) {
            let kept: Vec<usize> = kept.iter().map(|n| *n as usize).collect();
            return Err(self.array_error(array.shape(), &kept));
        }
        match array.as_slice() {
            Some(values) => self.write_slice(selection, values),
            None => self.write_slice(selection, &array.iter().cloned().collect::<Vec<_>>()),
        }
    }

    /// Appends an array: of rows, or a single row if it has a dimension less than the dataset.
    ///
    /// # Errors
    /// [`ErrorKind::ArrayShape`] if its rows have another shape than the dataset's, or as [`Dataset::append`].
    pub fn append_array<T: H5Write, S: Data<Elem = T>, D: Dimension>(&self, array: &ArrayBase<S, D>) -> Result<()> {
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
        let kind = ErrorKind::ArrayShape { array: array.into(), dataset: dataset.into() };
        self.file().error(Some(self.path()), kind)
    }
}

/// What the macro `ndarray::s!` makes: indices from the end if they are negative, and steps that are positive.
impl<I: AsRef<[SliceInfoElem]>, In: Dimension, Out: Dimension> Select for SliceInfo<I, In, Out> {
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        let dims = self.as_ref();
        let mismatch = SelectionError::RankMismatch { selection: dims.len(), extent: extent.len() };
        let dim = |(dim, selected): (usize, &SliceInfoElem)| {
            let size = *extent.get(dim).ok_or(mismatch.clone())?;
            match selected {
                SliceInfoElem::Index(index) => Ok(DimSelection::index(from_end(*index, dim, size)?)),
                SliceInfoElem::Slice { step, .. } if *step <= 0 => {
                    Err(SelectionError::NonPositiveStep { dim, step: *step as i128 })
                }
                SliceInfoElem::Slice { start, end, step } => {
                    let (start, step) = (from_end(*start, dim, size)?, *step as u64);
                    let len = match end {
                        Some(end) => from_end(*end, dim, size)?.saturating_sub(start),
                        None if step == 1 => return Ok(DimSelection::from_start(start)),
                        None => return Ok(DimSelection::steps(start, step, UNLIMITED)),
                    };
                    Ok(match step {
                        1 => DimSelection::range(start, len),
                        _ => DimSelection::steps(start, step, len.div_ceil(step)),
                    })
                }
                SliceInfoElem::NewAxis => Err(SelectionError::NewAxis),
            }
        };
        let dims = dims.iter().enumerate().map(dim).collect::<Result<Vec<_>, _>>()?;
        dims.resolve(extent)
    }
}

/// An index that counts from the end if it is negative.
fn from_end(index: isize, dim: usize, extent: u64) -> Result<u64, SelectionError> {
    let out = SelectionError::IndexOutOfBounds { dim, index: index as i128, extent };
    if index >= 0 { Ok(index as u64) } else { extent.checked_sub(index.unsigned_abs() as u64).ok_or(out) }
}

/// A mask of the dataset's shape.
impl<S: Data<Elem = bool>, D: Dimension> Select for ArrayBase<S, D> {
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        if !self.shape().iter().map(|n| *n as u64).eq(extent.iter().copied()) {
            let mask = self.shape().iter().map(|n| *n as u64).collect();
            return Err(SelectionError::MaskShapeMismatch { mask, extent: extent.to_vec() });
        }
        match self.as_slice() {
            Some(mask) => mask.resolve(extent),
            None => self.iter().copied().collect::<Vec<_>>().resolve(extent),
        }
    }
}

/// Making datasets of arrays of the crate `ndarray` (feature `ndarray`).
impl DatasetBuilder {
    /// Makes the dataset and writes an array. Without a shape it has the array's, and as many rows if they are unlimited
    /// and there are none yet.
    ///
    /// # Errors
    /// As [`DatasetBuilder::create`] and [`Dataset::write_array_slice`].
    pub fn create_with_array<T: H5Write, S: Data<Elem = T>, D: Dimension>(
        self,
        path: &str,
        array: &ArrayBase<S, D>,
    ) -> Result<Dataset> {
        let dims: Vec<u64> = array.shape().iter().map(|n| *n as u64).collect();
        let dataset = self.default_shape(&dims).create(path)?;
        dataset.write_array_slice(Selection::All, array)?;
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
        data.write_array_slice((.., 1..3, 0), &whole.slice(s![0..2, 0..2, 0..1])).unwrap();
        let part: Array3<i64> = data.read_array_slice((1..2, 1..3, 0..1)).unwrap();
        assert_eq!(part, array![[[6], [8]]]);
    }

    #[test]
    fn single_indices_drop_their_dimension() {
        let file = File::in_memory();
        let whole = Array3::from_shape_fn((4, 3, 2), |(i, j, k)| (i * 6 + j * 2 + k) as i32);
        let data = file.new_dataset::<i32>().create_with_array("data", &whole).unwrap();
        assert_eq!(data.read_array_slice::<i32, _>((1, .., 0)).unwrap(), whole.slice(s![1, .., 0]));
        assert_eq!(data.read_array_slice::<i32, ndarray::Ix0>([3, 2, 1]).unwrap().into_scalar(), 23);
        assert_eq!(data.read_array_slice::<i32, ndarray::IxDyn>(2).unwrap().shape(), [3, 2]);
        data.write_array_slice((1, .., 0), &array![7, 8, 9]).unwrap();
        data.write_array_slice((1, .., 1), &array![[[-7], [-8], [-9]]]).unwrap();
        assert_eq!(data.read_slice::<i32>(1).unwrap(), [7, -7, 8, -8, 9, -9]);
        assert!(data.write_array_slice((1, .., 0), &array![[7, 8, 9]]).is_err());
    }

    #[test]
    fn an_array_of_another_rank_is_refused_with_the_shape_that_is_there() {
        let data = File::in_memory().new_dataset::<i32>().shape(&[2, 3, 4]).create("data").unwrap();
        let said = data.read_array::<i32, ndarray::Ix2>().unwrap_err().to_string();
        assert!(said.ends_with("data: an array of 2 dimensions cannot have the shape [2, 3, 4]"), "{said}");
    }

    #[test]
    fn slices_of_ndarray_select_what_they_select_there() {
        let file = File::in_memory();
        let whole = Array2::from_shape_fn((5, 7), |(i, j)| (i * 7 + j) as i32);
        let data = file.new_dataset::<i32>().create_with_array("data", &whole).unwrap();
        assert_eq!(data.read_array_slice::<i32, _>(s![-2.., 1..6;2]).unwrap(), whole.slice(s![-2.., 1..6;2]));
        assert_eq!(data.read_array_slice::<i32, _>(s![.., -3]).unwrap(), whole.slice(s![.., -3]));
        assert_eq!(data.read_array_slice::<i32, _>(s![..-1, 2..;3]).unwrap(), whole.slice(s![..-1, 2..;3]));
        let mask = whole.mapv(|value| value % 3 == 0);
        let chosen: Vec<i32> = whole.iter().copied().filter(|value| value % 3 == 0).collect();
        assert_eq!(data.read_slice::<i32>(&mask).unwrap(), chosen);
        assert_eq!(data.read_slice::<i32>(mask.t().as_standard_layout().t()).unwrap(), chosen);
        for (error, text) in [
            (data.read_slice::<i32>(s![0..5;-1, ..]).unwrap_err(), "step -1 of dimension 0 is not positive"),
            (data.read_slice::<i32>(s![.., -8]).unwrap_err(), "index -8 is out of bounds: dimension 1 has 7 elements"),
            (data.read_slice::<i32>(mask.t()).unwrap_err(), "a mask of shape [7, 5] does not fit the extent [5, 7]"),
        ] {
            assert!(error.to_string().ends_with(text), "{error}");
        }
    }

    #[test]
    fn shapes_that_differ_are_refused() {
        let file = File::in_memory();
        let data = file.new_dataset::<i32>().unlimited_rows(&[3]).create("data").unwrap();
        let error = data.append_array(&Array2::<i32>::zeros((3, 2))).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ArrayShape { .. }), "{error}");
        data.append_array(&Array1::<i32>::zeros(3)).unwrap();
        assert!(data.read_array::<i32, ndarray::Ix3>().is_err());
        assert!(data.write_array_slice(.., &Array1::<i32>::zeros(3)).is_err());
    }
}
