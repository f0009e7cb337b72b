//! Elements as bytes of another datatype than that of the file, from and into the caller's memory.

use h5live_model::Datatype;

use super::scratch::{filled_buffer, zeroed_buffer};
use super::transfer::{ConvertedSink, RawSink, check_length, raw_element_count};
use super::{Dataset, DatasetError};
use crate::convert::{ElementPlan, KeyTable};
use crate::{Result, Select};

impl Dataset {
    /// Reads the elements of a selection into a buffer of just their size, as elements of another datatype
    /// ([`Dataset::read_as`]).
    ///
    /// ```
    /// use h5live::{ByteOrder, Datatype, File};
    ///
    /// let file = File::in_memory();
    /// let data = file.new_dataset::<u8>().shape(&[3]).create("data")?;
    /// data.write(&[1, 2, 3])?;
    /// let mut bytes = [0; 8];
    /// data.read_as_into(1.., &Datatype::float(4, ByteOrder::Little).unwrap(), &mut bytes)?;
    /// assert_eq!(bytes, [2_f32.to_le_bytes(), 3_f32.to_le_bytes()].concat()[..]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dataset::read_into`].
    pub fn read_as_into(&self, selection: impl Select, datatype: &Datatype, bytes: &mut [u8]) -> Result<()> {
        self.with_error_path(|| {
            let view = self.resolved_snapshot()?;
            let selected = self.select(&view, &selection)?;
            let plan = ElementPlan::new(&view.spec.datatype, datatype)?;
            check_length(&selected, raw_element_count(bytes, plan.output_size())?)?;
            if plan.is_copy() {
                return self.read_to(&view, &selected, RawSink { bytes, size: view.size });
            }
            self.read_to(&view, &selected, ConvertedSink { bytes, plan: &plan, conversion: self.conversion })
        })
    }

    /// Writes the elements of a selection from elements of another datatype, which are converted as
    /// [`Dataset::read_as`] does it, the other way round. Members of a compound that `datatype` lacks keep their values.
    ///
    /// ```
    /// use h5live::{ByteOrder, Datatype, File};
    ///
    /// let file = File::in_memory();
    /// let data = file.new_dataset::<f32>().shape(&[3]).create("data")?;
    /// data.write_as(1.., &Datatype::integer(1, ByteOrder::Little, Default::default()), &[2, 3])?;
    /// assert_eq!(data.read::<f32>()?, [0.0, 2.0, 3.0]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Dataset::write_slice`].
    pub fn write_as(&self, selection: impl Select, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
        let stored = self.datatype()?;
        if stored == *datatype {
            return self.write_raw(selection, bytes);
        }
        let converted = self.with_error_path(|| {
            let plan = ElementPlan::new(datatype, &stored)?;
            let elements = raw_element_count(bytes, plan.input_size())?;
            let mut converted = zeroed_buffer(elements.saturating_mul(plan.output_size()))?;
            if lacks_members(&stored, datatype) {
                let view = self.resolved_snapshot()?;
                let selected = self.select(&view, &selection)?;
                check_length(&selected, elements)?;
                self.read_to(&view, &selected, RawSink { bytes: &mut converted, size: view.size })?;
            }
            plan.convert_elements(bytes, &mut converted, self.heap().keep_members())?;
            Ok(converted)
        })?;
        self.write_raw(selection, &converted)
    }

    /// Appends rows of elements of another datatype, which are converted as by [`Dataset::write_as`]. Members of a
    /// compound that `datatype` lacks have the fill value.
    ///
    /// # Errors
    /// As [`Dataset::append`].
    pub fn append_as(&self, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
        if self.with_error_path(|| Ok(self.core.spec_snapshot()?.spec.datatype == *datatype))? {
            return self.append_raw(bytes);
        }
        let converted = self.with_error_path(|| -> Result<_, DatasetError> {
            let view = self.resolved_snapshot()?;
            let plan = ElementPlan::new(datatype, &view.spec.datatype)?;
            let elements = raw_element_count(bytes, plan.input_size())?;
            let mut converted = filled_buffer(&view, elements)?;
            plan.convert_elements(bytes, &mut converted, self.heap().keep_members())?;
            Ok(converted)
        })?;
        self.append_raw(&converted)
    }
}

/// Whether a compound has members that another one has not, at any depth.
fn lacks_members(stored: &Datatype, given: &Datatype) -> bool {
    match (stored, given) {
        (Datatype::Compound(stored), Datatype::Compound(given)) => {
            let given: KeyTable<_, _> = given.members.iter().map(|member| (&member.name, &member.datatype)).collect();
            stored
                .members
                .iter()
                .any(|member| given.find(&member.name).is_none_or(|other| lacks_members(&member.datatype, other)))
        }
        (Datatype::Array(stored), Datatype::Array(given)) => lacks_members(&stored.base, &given.base),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use h5live_model::{ByteOrder, Sign};

    use super::*;
    use crate::{Conversion, ErrorKind, File};

    fn int(size: u32) -> Datatype {
        Datatype::integer(size, ByteOrder::Little, Sign::Signed)
    }

    #[test]
    fn elements_of_other_types_are_converted_both_ways() {
        let file = File::in_memory();
        let data = file.new_dataset::<i16>().unlimited_rows(&[2]).create("data").unwrap();
        data.append_as(&int(4), &[1, 0, 0, 0, 254, 255, 255, 255]).unwrap();
        data.append_as(&int(2), &[3, 0, 4, 0]).unwrap();
        assert_eq!(data.read::<i16>().unwrap(), [1, -2, 3, 4]);
        data.write_as((1, 0), &int(1), &[255]).unwrap();
        let mut bytes = [0; 4];
        data.read_as_into((.., 0), &int(2), &mut bytes).unwrap();
        assert_eq!(bytes, [1, 0, 255, 255]);
        let error = data.read_as_into(.., &int(2), &mut bytes).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Length { expected: 4, found: 2 }), "{error}");
        assert!(data.append_as(&int(4), &[0, 0, 1, 0, 0, 0, 1, 0]).is_err(), "too large for 16 bits");
        let lossy = data.with_conversion(Conversion::Lossy);
        lossy.append_as(&int(4), &[0, 0, 1, 0, 0, 0, 255, 255]).unwrap();
        assert_eq!(data.read::<i16>().unwrap(), [1, -2, -1, 4, i16::MAX, i16::MIN]);
    }

    #[test]
    fn members_that_are_not_given_keep_their_values() {
        let file = File::in_memory();
        let both = Datatype::compound([("a", int(1)), ("b", int(2))]);
        let data = file.new_dataset_with_type(both.clone()).unlimited_rows(&[]).create("data").unwrap();
        data.append_as(&both, &[1, 2, 0, 3, 4, 0]).unwrap();
        let one = Datatype::compound([("b", int(4))]);
        data.write_as(1, &one, &[9, 0, 0, 0]).unwrap();
        data.append_as(&one, &[5, 0, 0, 0]).unwrap();
        assert_eq!(data.read_raw(..).unwrap(), [1, 2, 0, 3, 9, 0, 0, 5, 0]);
    }
}
