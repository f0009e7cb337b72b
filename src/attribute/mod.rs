//! Attributes: small named values on an object.

mod builder;
mod object_attributes;

use h5live_model::{self as model, Dataspace, Datatype, Name, ObjectId};

pub use builder::{AttributeBuilder, AttributeValue};
pub(crate) use object_attributes::attributes;

use crate::convert::{ConvertError, ElementPlan, blank_elements, class};
use crate::error::ErrorKind;
use crate::{File, H5Type, Result, Value};

/// An attribute, with the state that it had when it was opened.
#[derive(Debug, Clone)]
pub struct Attribute {
    file: File,
    object: String,
    value: model::AttributeData,
}

fn display_path(object: &str, name: &str) -> String {
    format!("{object}@{name}")
}

impl Attribute {
    pub(crate) fn open(file: &File, id: ObjectId, object: &str, name: &Name) -> Result<Attribute> {
        let value = match file.store().attribute(id, name) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(model::Error::NotFound(name.clone())),
            Err(error) => Err(error),
        };
        let value = value.map_err(|error| file.error(Some(&display_path(object, &name.to_string())), error))?;
        Ok(Attribute::new(file, object, value))
    }

    pub(crate) fn new(file: &File, object: &str, value: model::AttributeData) -> Attribute {
        Attribute { file: file.clone(), object: object.into(), value }
    }

    /// The name.
    pub fn name(&self) -> &Name {
        &self.value.name
    }

    /// The type of its elements in the file.
    pub fn datatype(&self) -> &Datatype {
        &self.value.datatype
    }

    /// The committed datatype of its file that is its type, if it is one.
    pub fn committed(&self) -> Option<ObjectId> {
        self.value.committed
    }

    /// The position in the order of creation, if the object keeps it.
    pub fn creation_order(&self) -> Option<u16> {
        self.value.creation_order
    }

    /// Its dataspace.
    pub fn dataspace(&self) -> &Dataspace {
        &self.value.dataspace
    }

    /// Its dimensions (`[rank]`, elements); empty for a scalar.
    pub fn shape(&self) -> &[u64] {
        self.value.dataspace.dims()
    }

    /// The number of its dimensions; 0 for a scalar.
    pub fn ndim(&self) -> usize {
        self.value.dataspace.rank()
    }

    /// The number of its elements.
    pub fn size(&self) -> u64 {
        self.value.dataspace.elements().unwrap_or(u64::MAX)
    }

    /// Its elements, as the file has them.
    pub fn raw(&self) -> &[u8] {
        &self.value.value
    }

    /// Its only element.
    ///
    /// # Errors
    /// [`ErrorKind::Length`] if it has more or none, [`ErrorKind::Convert`] if it cannot be a `T`.
    pub fn read_scalar<T: H5Type>(&self) -> Result<T> {
        let mut values = self.read()?;
        match (values.len(), values.pop()) {
            (1, Some(value)) => Ok(value),
            (n, _) => Err(self.error(ErrorKind::Length { expected: n as u64, found: 1 })),
        }
    }

    /// Its elements, in row-major order.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if they cannot be of type `T`.
    pub fn read<T: H5Type>(&self) -> Result<Vec<T>> {
        let read = || {
            let decoder = T::decoder(&self.value.datatype)?;
            let size = self.value.datatype.size().max(1) as usize;
            if !self.value.value.len().is_multiple_of(size) {
                return Err(ConvertError::Truncated { expected: size, found: self.value.value.len() % size });
            }
            let mut values = vec![T::placeholder(); self.value.value.len() / size];
            T::decode_slice(&decoder, &self.value.value, size, &mut values, self.file.heap())?;
            Ok(values)
        };
        read().map_err(|error| self.error(error))
    }

    /// Its elements as dynamic values, in row-major order.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if its type makes no sense.
    pub fn values(&self) -> Result<Vec<Value>> {
        let heap = Some(self.file.store());
        Value::decode_all(&self.value.datatype, &self.value.value, heap).map_err(|error| self.error(error))
    }

    /// Its elements as bytes of another datatype, converted as [`Dataset::read_as`](crate::Dataset::read_as) does it.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if they cannot be converted.
    pub fn read_as(&self, datatype: &Datatype) -> Result<Vec<u8>> {
        let read = || {
            let plan = ElementPlan::new(&self.value.datatype, datatype)?;
            let elements = self.value.value.len() / plan.input_size();
            let mut converted = blank_elements(elements, plan.output_size())?;
            plan.convert_elements(&self.value.value, &mut converted, self.file.heap())?;
            Ok(converted)
        };
        read().map_err(|error: ConvertError| self.error(error))
    }

    /// The class of its type, for messages: "integer", "compound", ...
    pub fn class(&self) -> &'static str {
        class(&self.value.datatype)
    }

    fn error(&self, kind: impl Into<ErrorKind>) -> crate::Error {
        self.file.error(Some(&display_path(&self.object, &self.value.name.to_string())), kind)
    }
}
