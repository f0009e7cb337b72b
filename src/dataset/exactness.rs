//! Whether the values of a dataset may change when they are converted.

use super::Dataset;
use crate::convert::Conversion;
use crate::types::Heap;

impl Dataset {
    /// The same dataset, with another rule for values that one of the types does not have. The rule of the file is
    /// that of [`Options::conversion`](crate::Options::conversion).
    pub fn with_conversion(&self, conversion: Conversion) -> Dataset {
        Dataset { conversion, ..self.clone() }
    }

    pub(super) fn heap(&self) -> Heap<'_> {
        self.file.heap().with_conversion(self.conversion)
    }
}
