//! Descriptions of attributes to be set.

use h5live_model::{self as model, Dataspace, Datatype, Name, ObjectId, Shape};

use super::display_path;
use crate::convert::{ElementPlan, blank_elements};
use crate::error::ErrorKind;
use crate::superseded_blobs::has_blobs;
use crate::value::EncodePlan;
use crate::{Attribute, ConversionPolicy, File, H5Type, H5Write, Result, Value};

/// An attribute to be set, of any type and shape. Made by `new_attribute` of groups, datasets and committed types.
///
/// ```
/// use h5live::{Datatype, File, H5Type, Value};
///
/// let file = File::in_memory();
/// let root = file.root();
/// root.new_attribute("origin").shape(&[2]).write(&[0.5, 1.5])?;
/// root.new_attribute("title").datatype(String::datatype()).write_values(&[Value::Text("run 7".into())])?;
/// root.new_attribute("nothing").datatype(u8::datatype()).null().write_values(&[])?;
/// assert_eq!(root.attribute("origin")?.read::<f32>()?, [0.5, 1.5]);
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "an attribute is set by `write`, `write_values` or `write_raw`"]
pub struct AttributeBuilder {
    file: File,
    id: ObjectId,
    object: String,
    name: Name,
    pub(crate) datatype: Option<Datatype>,
    pub(crate) committed: Option<ObjectId>,
    dataspace: Dataspace,
}

impl AttributeBuilder {
    pub(crate) fn new(file: &File, id: ObjectId, object: &str, name: Name) -> Self {
        AttributeBuilder {
            file: file.clone(),
            id,
            object: object.to_owned(),
            name,
            datatype: None,
            committed: None,
            dataspace: Dataspace::Scalar,
        }
    }

    /// The type of its elements in the file; without it, that of the values.
    pub fn datatype(mut self, datatype: Datatype) -> Self {
        self.datatype = Some(datatype);
        self.committed = None;
        self
    }

    /// Takes the type of another attribute of the same file, committed or not.
    pub fn same_type_as(mut self, other: &Attribute) -> Self {
        self.datatype = Some(other.datatype().clone());
        self.committed = other.committed_datatype_id();
        self
    }

    /// The dimensions (`[rank]`, elements). Without any, there is one element.
    pub fn shape(mut self, dims: &[u64]) -> Self {
        self.dataspace = Dataspace::Simple(Shape::fixed(dims));
        self
    }

    /// The dataspace.
    pub fn dataspace(mut self, dataspace: Dataspace) -> Self {
        self.dataspace = dataspace;
        self
    }

    /// No elements and no dimensions at all.
    pub fn null(mut self) -> Self {
        self.dataspace = Dataspace::Null;
        self
    }

    /// Sets the attribute to these elements, in row-major order, in place of one of the same name.
    ///
    /// # Errors
    /// [`model::Error::ReadOnly`], [`ErrorKind::ElementCount`] if there are more or fewer elements than the shape has,
    /// [`ErrorKind::Convert`] if the type in the file cannot hold them.
    pub fn write<T: H5Write>(self, values: &[T]) -> Result<()> {
        self.write_encoded(values.len(), T::Element::datatype, |datatype, file| {
            let size = datatype.size() as usize;
            let mut bytes = blank_elements(values.len(), size)?;
            T::encode_elements(&T::Element::encoder(datatype)?, values, &mut bytes, size, file.context())?;
            Ok(bytes)
        })
    }

    /// Sets the attribute to this element, in place of one of the same name.
    ///
    /// # Errors
    /// As [`AttributeBuilder::write`].
    pub fn write_scalar<T: H5Write>(self, value: &T) -> Result<()> {
        self.write(std::slice::from_ref(value))
    }

    /// Sets the attribute to these values. [`AttributeBuilder::datatype`] gives their type.
    ///
    /// # Errors
    /// As [`AttributeBuilder::write`].
    pub fn write_values(self, values: &[Value]) -> Result<()> {
        let encode =
            |datatype: &Datatype, file: &File| Ok(EncodePlan::new(datatype)?.encode_all(values, file.context())?);
        self.write_encoded(values.len(), Datatype::default, encode)
    }

    /// Sets the attribute to elements in the file's type, without conversion.
    ///
    /// # Errors
    /// As [`AttributeBuilder::write`].
    pub fn write_raw(self, bytes: &[u8]) -> Result<()> {
        let size = self.datatype.as_ref().map_or(1, |datatype| datatype.size().max(1) as usize);
        self.write_encoded(bytes.len() / size, Datatype::default, |datatype, file| {
            file.shared().blobs.note_stored_elements(datatype);
            Ok(bytes.to_vec())
        })
    }

    /// Sets the attribute to elements of another datatype, which are converted as
    /// [`Dataset::write_as`](crate::Dataset::write_as) does it.
    ///
    /// # Errors
    /// As [`AttributeBuilder::write`].
    pub fn write_as(self, memory_datatype: &Datatype, bytes: &[u8], conversion: ConversionPolicy) -> Result<()> {
        let size = memory_datatype.size().max(1) as usize;
        self.write_encoded(
            bytes.len() / size,
            || memory_datatype.clone(),
            |stored, file| {
                let plan = ElementPlan::new(memory_datatype, stored)?;
                let mut converted = blank_elements(bytes.len() / size, plan.output_size())?;
                plan.convert_elements(bytes, &mut converted, file.context().with_conversion(conversion))?;
                file.shared().blobs.note_stored_elements(stored);
                Ok(converted)
            },
        )
    }

    fn write_encoded(
        self,
        found: usize,
        default: impl FnOnce() -> Datatype,
        encode: impl FnOnce(&Datatype, &File) -> Result<Vec<u8>, ErrorKind>,
    ) -> Result<()> {
        let AttributeBuilder { file, id, object, name, datatype, committed, dataspace } = self;
        let set = || -> Result<(), ErrorKind> {
            file.writer()?;
            let (expected, found) = (dataspace.element_count().unwrap_or(u64::MAX), found as u64);
            if expected != found {
                return Err(ErrorKind::ElementCount { expected, found });
            }
            let datatype = file.stored_type(&datatype.unwrap_or_else(default));
            let value = encode(&datatype, &file)?;
            let attribute = model::AttributeData {
                name: name.clone(),
                datatype,
                committed_datatype: committed,
                dataspace,
                value,
                creation_order: None,
            };
            // Only there the old value is looked at: few attributes are texts first, and then numbers.
            if has_blobs(&attribute.datatype) {
                return Ok(file.replace_attribute(id, &attribute.name, |writer| writer.set_attribute(id, &attribute))?);
            }
            Ok(file.writer()?.set_attribute(id, &attribute)?)
        };
        set().map_err(|kind| file.error(Some(&display_path(&object, &name)), kind))
    }
}

/// A value that an attribute can have: every [`H5Write`], and `str`.
pub trait AttributeValue {
    #[doc(hidden)]
    fn write_to(&self, attribute: AttributeBuilder) -> Result<()>;
}

impl<T: H5Write> AttributeValue for T {
    fn write_to(&self, attribute: AttributeBuilder) -> Result<()> {
        attribute.write(std::slice::from_ref(self))
    }
}

impl AttributeValue for str {
    fn write_to(&self, attribute: AttributeBuilder) -> Result<()> {
        attribute.write(&[self])
    }
}

#[cfg(test)]
mod tests {
    use crate::{ConversionPolicy, ErrorKind, File, H5Type, Value};

    #[test]
    fn attributes_have_any_type_and_shape() {
        let file = File::in_memory();
        let root = file.root();
        let datatype = root.commit_datatype("type", &f32::datatype()).unwrap();
        root.new_attribute("a").committed_datatype(&datatype).shape(&[2, 1]).write(&[1u8, 2]).unwrap();
        let attribute = root.attribute("a").unwrap();
        assert_eq!(attribute.datatype(), &f32::datatype());
        assert_eq!((attribute.shape(), attribute.ndim(), attribute.size()), (&[2, 1][..], 2, 2));
        assert_eq!(attribute.read::<f64>().unwrap(), [1.0, 2.0]);
        assert_eq!(
            file.store().attribute(root.id(), &"a".into()).unwrap().unwrap().committed_datatype,
            Some(datatype.id())
        );
        root.new_attribute("a").null().datatype(u16::datatype()).write_raw(&[]).unwrap();
        assert_eq!(root.attribute("a").unwrap().values().unwrap(), []);
        root.new_attribute("t").datatype(bool::datatype()).write_values(&[Value::Bool(true)]).unwrap();
        assert!(root.attribute("t").unwrap().read_scalar::<bool>().unwrap());
        root.new_attribute("s").write_scalar(&2.5).unwrap();
        let scalar = root.attribute("s").unwrap();
        assert_eq!((scalar.read_scalar().unwrap(), scalar.ndim(), scalar.size()), (2.5, 0, 1));
        let byte = [7, 255];
        let wide = root.new_attribute("w").shape(&[2]).datatype(f64::datatype());
        wide.write_as(&i8::datatype(), &byte, ConversionPolicy::Checked).unwrap();
        assert_eq!(root.attribute("w").unwrap().read::<f64>().unwrap(), [7.0, -1.0]);
        let narrow = || root.new_attribute("w").datatype(u8::datatype());
        assert!(narrow().write_as(&i8::datatype(), &byte[1..], ConversionPolicy::Checked).is_err());
        narrow().write_as(&i8::datatype(), &byte[1..], ConversionPolicy::Lossy).unwrap();
        assert_eq!(root.attribute("w").unwrap().read::<u8>().unwrap(), [0]);
        let error = root.new_attribute("x").shape(&[3]).write(&[1, 2]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ElementCount { expected: 3, found: 2 }), "{error}");
        assert!(root.new_attribute("x").datatype(u8::datatype()).write(&["text".to_owned()]).is_err());
        assert!(root.attribute("x").is_err());
    }
}
