//! Dimension scales: datasets that say what the indices along a dimension mean (HDF5 Dimension Scale Specification).

use h5live_model::{
    CharacterSet, CompoundMember, CompoundType, Datatype, FixedStringType, ReferenceKind, StringPadding, VarLenKind,
    VarLenType,
};

use crate::error::ErrorKind;
use crate::{Attribute, Dataset, H5Type, Object, Reference, Result, Value};

const CLASS: &str = "CLASS";
const NAME: &str = "NAME";
/// On a dataset: for each dimension references to its scales.
const DIMENSION_LIST: &str = "DIMENSION_LIST";
/// On a scale: the dimensions of datasets to which it belongs.
const REFERENCE_LIST: &str = "REFERENCE_LIST";
const SCALE: &str = "DIMENSION_SCALE";

/// Dimension scales, as libhdf5's `H5DS` functions keep them.
///
/// ```
/// use h5live::File;
///
/// let file = File::in_memory();
/// let time = file.new_dataset::<f64>().create_with_data("time", &[0.0, 0.5, 1.0])?;
/// time.make_scale(Some("time"))?;
/// let data = file.new_dataset::<i32>().shape(&[3, 2]).create("data")?;
/// data.attach_scale(0, &time)?;
/// assert_eq!(data.scales(0)?[0].read::<f64>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), h5live::Error>(())
/// ```
impl Dataset {
    /// Makes the dataset a dimension scale, with an optional name.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if its attributes cannot be set.
    pub fn make_scale(&self, name: Option<&str>) -> Result<()> {
        self.set_text(CLASS, SCALE)?;
        name.map_or(Ok(()), |name| self.set_text(NAME, name))
    }

    /// Whether the dataset is a dimension scale.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if its attributes cannot be read.
    pub fn is_scale(&self) -> Result<bool> {
        let class = self.find_attribute(CLASS)?.map(|class| class.values()).transpose()?;
        Ok(class.is_some_and(|class| class.first().and_then(Value::text) == Some(SCALE)))
    }

    /// Attaches a scale to a dimension, after those that it has already. A dataset that is no scale yet becomes one.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSpec`] if there is no such dimension, or the scale is in another file or has scales itself;
    /// [`ErrorKind::Store`] if attributes cannot be set.
    pub fn attach_scale(&self, dimension: usize, scale: &Dataset) -> Result<()> {
        self.file().writer().map_err(|error| self.file().error(Some(self.path()), error))?;
        let refuse = |why| Err(self.file().error(Some(self.path()), ErrorKind::InvalidSpec(why)));
        if !std::ptr::addr_eq(self.file().store(), scale.file().store()) {
            return refuse("a dimension scale is in the file of the dataset");
        }
        if scale.find_attribute(DIMENSION_LIST)?.is_some() || scale.id() == self.id() || self.is_scale()? {
            return refuse("a dimension scale has no scales itself");
        }
        let mut lists = self.scale_lists()?;
        let Some(list) = lists.get_mut(dimension) else { return refuse("there is no such dimension") };
        let reference = Object::Dataset(scale.clone()).reference()?;
        if list.contains(&reference) {
            return Ok(());
        }
        list.push(reference);
        if !scale.is_scale()? {
            scale.make_scale(None)?;
        }
        let mut users =
            scale.find_attribute(REFERENCE_LIST)?.map(|users| users.values()).transpose()?.unwrap_or_default();
        let this = Value::Reference(Object::Dataset(self.clone()).reference()?);
        let index = Value::Integer(dimension as i128);
        users.push(Value::Compound(vec![("dataset".into(), this), ("dimension".into(), index)]));
        let builder = scale.new_attribute(REFERENCE_LIST).datatype(user_type()).shape(&[users.len() as u64]);
        builder.write_values(&users)?;
        self.set_scale_lists(&lists)
    }

    /// The scales of a dimension; none, if there is no such dimension.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the attribute that says so cannot be read, or a scale is not there any more.
    pub fn scales(&self, dimension: usize) -> Result<Vec<Dataset>> {
        let lists = self.scale_lists()?;
        let mut scales = Vec::new();
        for reference in lists.get(dimension).into_iter().flatten() {
            if let Some(Object::Dataset(scale)) = self.file().dereference(reference)? {
                scales.push(scale);
            }
        }
        Ok(scales)
    }

    /// References to the scales of each dimension.
    fn scale_lists(&self) -> Result<Vec<Vec<Reference>>> {
        let mut lists = vec![Vec::new(); self.shape()?.len()];
        let stored =
            self.find_attribute(DIMENSION_LIST)?.map(|stored| stored.values()).transpose()?.unwrap_or_default();
        for (list, stored) in lists.iter_mut().zip(stored) {
            if let Value::List(references) = stored {
                list.extend(references.into_iter().filter_map(|value| match value {
                    Value::Reference(reference) => Some(reference),
                    _ => None,
                }));
            }
        }
        Ok(lists)
    }

    fn set_scale_lists(&self, lists: &[Vec<Reference>]) -> Result<()> {
        let value = |list: &Vec<Reference>| Value::List(list.iter().cloned().map(Value::Reference).collect());
        let values: Vec<_> = lists.iter().map(value).collect();
        let base = Box::new(Reference::datatype_of(ReferenceKind::Object1));
        let datatype = Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: 16, base });
        self.new_attribute(DIMENSION_LIST).datatype(datatype).shape(&[values.len() as u64]).write_values(&values)
    }

    fn find_attribute(&self, name: &str) -> Result<Option<Attribute>> {
        match self.attribute(name) {
            Err(error) if error.is_not_found_in_file() => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    fn set_text(&self, name: &str, text: &str) -> Result<()> {
        let size = u32::try_from(text.len()).unwrap_or(u32::MAX).saturating_add(1);
        let padding = StringPadding::NullTerminated;
        let datatype = Datatype::String(FixedStringType { size, padding, character_set: CharacterSet::Ascii });
        self.new_attribute(name).datatype(datatype).write(&[text.to_owned()])
    }
}

/// The type of the elements of [`REFERENCE_LIST`].
fn user_type() -> Datatype {
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let dataset = member("dataset", 0, Reference::datatype_of(ReferenceKind::Object1));
    Datatype::Compound(CompoundType { size: 16, members: vec![dataset, member("dimension", 8, i32::datatype())] })
}

#[cfg(test)]
mod tests {
    use crate::{ErrorKind, File};

    #[test]
    fn scales_are_attached_once_and_found() {
        let file = File::in_memory();
        let [x, y] = ["x", "y"].map(|name| file.new_dataset::<f32>().create_with_data(name, &[1.0, 2.0]).unwrap());
        let data = file.new_dataset::<u8>().shape(&[2, 2]).create("data").unwrap();
        x.make_scale(Some("abscissa")).unwrap();
        for _ in 0..2 {
            data.attach_scale(1, &x).unwrap();
            data.attach_scale(1, &y).unwrap();
        }
        let ids = |dimension| data.scales(dimension).unwrap().iter().map(|scale| scale.id()).collect::<Vec<_>>();
        assert_eq!((ids(0), ids(1), ids(2)), (vec![], vec![x.id(), y.id()], vec![]));
        assert!(y.is_scale().unwrap() && !data.is_scale().unwrap());
        let users = x.attribute("REFERENCE_LIST").unwrap().values().unwrap();
        assert_eq!(users.len(), 1);
        let error = x.attach_scale(0, &data).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidSpec(_)), "{error}");
        assert!(data.attach_scale(2, &x).is_err());
    }
}
