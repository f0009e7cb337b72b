//! Attributes: small named values on an object.

mod builder;
mod object_attributes;
mod replace;

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
    id: ObjectId,
    object: String,
    value: model::AttributeData,
}

/// How often a value that another thread replaces meanwhile is read.
const MAX_READS: u32 = 1000;

fn display_path(object: &str, name: &Name) -> String {
    format!("{object}@{name}")
}

impl Attribute {
    pub(crate) fn open(file: &File, id: ObjectId, object: &str, name: &Name) -> Result<Attribute> {
        let value = match file.store().attribute(id, name) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(model::Error::NotFound(name.clone())),
            Err(error) => Err(error),
        };
        let value = value.map_err(|error| file.error(Some(&display_path(object, name)), error))?;
        Ok(Attribute::new(file, id, object, value))
    }

    pub(crate) fn new(file: &File, id: ObjectId, object: &str, value: model::AttributeData) -> Attribute {
        Attribute { file: file.clone(), id, object: object.into(), value }
    }

    /// Calls `read` with the elements: with those that are stored now, if they lead to variable-length data that this
    /// session gives up when the attribute is replaced.
    fn with_elements<T>(&self, read: impl Fn(&[u8]) -> Result<T, ErrorKind>) -> Result<T> {
        let reading = self.file.shared().blobs.begin_read(&self.value.datatype);
        if reading.is_none() || self.file.writer().is_err() {
            return read(&self.value.value).map_err(|error| self.error(error));
        }
        let read_current = || {
            let mut now = self.current_value()?;
            for _ in 1..MAX_READS {
                match read(&now.value) {
                    Ok(value) => return Ok(value),
                    // Some stores give the data of the old value up at once when another thread replaces it.
                    Err(error) => match self.current_value()? {
                        same if same.value == now.value => return Err(error),
                        newer => now = newer,
                    },
                }
            }
            read(&now.value)
        };
        read_current().map_err(|error| self.error(error))
    }

    /// The attribute as it is stored now, with elements of the same type and shape.
    fn current_value(&self) -> Result<model::AttributeData, ErrorKind> {
        match self.file.store().attribute(self.id, self.name()) {
            Ok(Some(now)) if now.datatype == self.value.datatype && now.dataspace == self.value.dataspace => Ok(now),
            Ok(_) => Err(model::Error::NotFound(self.name().clone()).into()),
            Err(error) => Err(error.into()),
        }
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
    pub fn committed_datatype_id(&self) -> Option<ObjectId> {
        self.value.committed_datatype
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
        self.value.dataspace.element_count().unwrap_or(u64::MAX)
    }

    /// Its elements, as the file has them.
    pub fn raw(&self) -> &[u8] {
        &self.value.value
    }

    /// Its only element.
    ///
    /// # Errors
    /// [`ErrorKind::ElementCount`] if it has more or none, [`ErrorKind::Convert`] if it cannot be a `T`.
    pub fn read_scalar<T: H5Type>(&self) -> Result<T> {
        let mut values = self.read()?;
        match (values.len(), values.pop()) {
            (1, Some(value)) => Ok(value),
            (n, _) => Err(self.error(ErrorKind::ElementCount { expected: n as u64, found: 1 })),
        }
    }

    /// Its elements, in row-major order.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if they cannot be of type `T`.
    pub fn read<T: H5Type>(&self) -> Result<Vec<T>> {
        self.with_elements(|elements| {
            let decoder = T::decoder(&self.value.datatype)?;
            let size = self.value.datatype.size().max(1) as usize;
            if !elements.len().is_multiple_of(size) {
                return Err(ConvertError::Truncated { expected: size, found: elements.len() % size }.into());
            }
            let mut values = vec![T::placeholder(); elements.len() / size];
            T::decode_slice(&decoder, elements, size, &mut values, self.file.context())?;
            Ok(values)
        })
    }

    /// Its elements as dynamic values, in row-major order.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if its type makes no sense.
    pub fn values(&self) -> Result<Vec<Value>> {
        let store = Some(self.file.store());
        self.with_elements(|elements| Ok(Value::decode_all(&self.value.datatype, elements, store)?))
    }

    /// Its elements as bytes of another datatype, converted as [`Dataset::read_as`](crate::Dataset::read_as) does it.
    ///
    /// # Errors
    /// [`ErrorKind::Convert`] if they cannot be converted.
    pub fn read_as(&self, datatype: &Datatype) -> Result<Vec<u8>> {
        self.with_elements(|elements| {
            let plan = ElementPlan::new(&self.value.datatype, datatype)?;
            let mut converted = blank_elements(elements.len() / plan.input_size(), plan.output_size())?;
            plan.convert_elements(elements, &mut converted, self.file.context())?;
            Ok(converted)
        })
    }

    /// The class of its type, for messages: "integer", "compound", ...
    pub fn type_class_name(&self) -> &'static str {
        class(&self.value.datatype)
    }

    fn error(&self, kind: impl Into<ErrorKind>) -> crate::Error {
        self.file.error(Some(&display_path(&self.object, &self.value.name)), kind)
    }
}
