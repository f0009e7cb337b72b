//! Dataspaces: the shape of a dataset or attribute.

use std::fmt;

use smallvec::SmallVec;

use crate::{Error, Result};

/// The largest rank that the format allows (`H5S_MAX_RANK`).
pub const MAX_RANK: usize = 32;

/// A maximum dimension without a limit.
pub const UNLIMITED: u64 = u64::MAX;

/// The dimensions of a simple dataspace: current and maximum, in elements, slowest-varying first.
#[derive(Debug, PartialEq, Eq, Hash, Default)]
pub struct Shape {
    dims: SmallVec<[u64; 4]>,
    max: Option<SmallVec<[u64; 4]>>,
}

// What `SmallVec` clones one by one is copied at once.
impl Clone for Shape {
    fn clone(&self) -> Self {
        Shape { dims: SmallVec::from_slice(&self.dims), max: self.max.as_deref().map(SmallVec::from_slice) }
    }
}

impl Shape {
    /// A shape of fixed `dims` (`[rank]`, elements): the maximum is the current size.
    pub fn fixed(dims: &[u64]) -> Self {
        Shape { dims: SmallVec::from_slice(dims), max: None }
    }

    /// A shape of current `dims` and maximum `max` (both `[rank]`, elements; [`UNLIMITED`] for no limit).
    /// `None` if the ranks differ or a dimension is above its maximum.
    pub fn with_max(dims: &[u64], max: &[u64]) -> Option<Self> {
        let fits = dims.len() == max.len() && dims.iter().zip(max).all(|(d, m)| d <= m);
        fits.then(|| Shape { dims: SmallVec::from_slice(dims), max: Some(SmallVec::from_slice(max)) })
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The current dimensions (`[rank]`, elements).
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// The maximum dimensions (`[rank]`, elements); the current ones if the shape is fixed.
    pub fn max_dims(&self) -> &[u64] {
        self.max.as_deref().unwrap_or(&self.dims)
    }

    /// Whether maximum dimensions are stored apart from the current ones.
    pub fn states_max_dims(&self) -> bool {
        self.max.is_some()
    }

    /// The indices of the unlimited dimensions.
    pub fn unlimited_axes(&self) -> impl Iterator<Item = usize> + '_ {
        self.max_dims().iter().enumerate().filter(|(_, m)| **m == UNLIMITED).map(|(i, _)| i)
    }

    /// Replaces the current dimensions (`[rank]`, elements). `false`, and nothing changed, if the rank
    /// differs or a dimension would go above its maximum, or be [`UNLIMITED`].
    pub fn try_resize(&mut self, dims: &[u64]) -> bool {
        let is_length = |(dim, max): (&u64, &u64)| dim <= max && *dim != UNLIMITED;
        let fits = dims.len() == self.rank() && dims.iter().zip(self.max_dims()).all(is_length);
        if fits {
            if self.max.is_none() && *self.dims != *dims {
                self.max = Some(self.dims.clone());
            }
            self.dims = SmallVec::from_slice(dims);
        }
        fits
    }

    /// The number of elements, or `None` if it does not fit 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        self.dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d))
    }
}

/// The dataspace of a dataset or attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Dataspace {
    /// No elements at all, and no shape.
    Null,
    /// One element.
    #[default]
    Scalar,
    /// An array of elements.
    Simple(Shape),
}

impl Dataspace {
    /// The current dimensions (`[rank]`, elements); empty for null and scalar dataspaces.
    pub fn dims(&self) -> &[u64] {
        match self {
            Dataspace::Simple(shape) => shape.dims(),
            _ => &[],
        }
    }

    /// The maximum dimensions (`[rank]`, elements); empty for null and scalar dataspaces.
    pub fn max_dims(&self) -> &[u64] {
        match self {
            Dataspace::Simple(shape) => shape.max_dims(),
            _ => &[],
        }
    }

    /// The number of dimensions; 0 for null and scalar dataspaces.
    pub fn rank(&self) -> usize {
        self.dims().len()
    }

    /// The number of elements, or `None` if it does not fit 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        match self {
            Dataspace::Null => Some(0),
            Dataspace::Scalar => Some(1),
            Dataspace::Simple(shape) => shape.element_count(),
        }
    }
}

impl Dataspace {
    /// Refuses a shape that no file can have. Every store calls it, by [`DatasetSpec::check`](crate::DatasetSpec::check) and
    /// [`AttributeData::check`](crate::AttributeData::check), before it makes anything.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<()> {
        if self.rank() > MAX_RANK {
            return Err(Error::Invalid(format!(
                "{} dimensions are more than the {MAX_RANK} that there can be",
                self.rank()
            )));
        }
        match self.dims().contains(&UNLIMITED) {
            true => Err(Error::Invalid(format!("a dimension of {UNLIMITED} elements is too long"))),
            false => Ok(()),
        }
    }
}

impl fmt::Display for Shape {
    /// `[2, 3]`, or `[2, 3] of at most [unlimited, 3]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |dims: &[u64]| {
            let dim = |n: &u64| if *n == UNLIMITED { "unlimited".to_owned() } else { n.to_string() };
            format!("[{}]", dims.iter().map(dim).collect::<Vec<_>>().join(", "))
        };
        match self.max_dims() == self.dims() {
            true => f.pad(&text(self.dims())),
            false => f.pad(&format!("{} of at most {}", text(self.dims()), text(self.max_dims()))),
        }
    }
}

impl fmt::Display for Dataspace {
    /// `null`, `scalar`, or the shape.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dataspace::Null => f.pad("null"),
            Dataspace::Scalar => f.pad("scalar"),
            Dataspace::Simple(shape) => shape.fmt(f),
        }
    }
}
