//! Rows as types of `serde`.

use serde::de::DeserializeOwned;

use crate::dataset::Dataset;
use crate::error::ErrorKind;
use crate::serde_value::ValueDeserializer;
use crate::{Result, Select};

/// Reading rows as types of `serde` (feature `serde`).
impl Dataset {
    /// The elements of a selection, in row-major order, as values of a type that derives `serde::Deserialize`.
    ///
    /// Compounds are structs or maps, arrays and sequences are `Vec`s, arrays or tuples, values of enums are texts or
    /// variants without data, complex numbers are `(real, imaginary)`. Fields are found by name, and what a member
    /// cannot be is an error. It is slower than [`derive(H5Type)`](macro@crate::H5Type), and knows all attributes of
    /// `serde`: fields that may be missing, other names, types of other crates.
    ///
    /// ```
    /// use h5live::{File, H5Type};
    /// use serde::Deserialize;
    ///
    /// #[derive(H5Type, Clone)]
    /// struct Sample {
    ///     time: f64,
    ///     counts: [u16; 2],
    /// }
    ///
    /// #[derive(Deserialize)]
    /// struct Row {
    ///     #[serde(rename = "time")]
    ///     seconds: f64,
    ///     counts: Vec<u32>,
    ///     #[serde(default)]
    ///     comment: String,
    /// }
    ///
    /// let file = File::in_memory();
    /// let log = file.new_dataset::<Sample>().unlimited_rows(&[]).create("log")?;
    /// log.append(&[Sample { time: 0.5, counts: [1, 2] }, Sample { time: 1.5, counts: [3, 4] }])?;
    /// let rows: Vec<Row> = log.read_rows(1..)?;
    /// assert_eq!((rows[0].seconds, &rows[0].counts[..], rows[0].comment.as_str()), (1.5, &[3, 4][..], ""));
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Deserialize`] with the number of the element in the selection, or as [`Dataset::read_values`].
    pub fn read_rows<T: DeserializeOwned>(&self, selection: impl Select) -> Result<Vec<T>> {
        let values = self.read_values(selection)?.into_iter().enumerate();
        let row = |(element, value)| {
            let failed = |error| ErrorKind::Deserialize { element: element as u64, error };
            T::deserialize(ValueDeserializer(value))
                .map_err(|error| self.file().error(Some(self.path()), failed(error)))
        };
        values.map(row).collect()
    }
}
