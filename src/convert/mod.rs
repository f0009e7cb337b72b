//! From the datatype of a file to the types of this program, and back.

pub mod derive_support;
mod element_plan;
mod exact;
mod key_table;
mod native;
mod number_layout;
mod number_plan;
#[cfg(test)]
mod vectors_tests;

pub(crate) use element_plan::ElementPlan;
pub use exact::ConversionPolicy;
pub(crate) use key_table::KeyTable;
pub(crate) use native::{NativeNumber, Number};
pub(crate) use number_plan::{IntegerPlan, NumberPlan};

use h5live_model::{AllocationError, AllocationLimit, Datatype, Name};

/// Memory for `values` of the caller's values as elements of `size` bytes each. An error if the machine has not enough.
pub(crate) fn blank_elements(values: usize, size: usize) -> Result<Vec<u8>, ConvertError> {
    let bytes = (values as u64).saturating_mul(size as u64);
    Ok(AllocationLimit::new(u64::MAX).zeroed(bytes)?)
}

/// A value that the other type does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value} does not fit {class} (it would become {becomes})")]
pub struct InexactValue {
    /// The value.
    pub value: String,
    /// The type.
    pub class: String,
    /// What a lossy conversion makes of it.
    pub becomes: String,
}

impl From<InexactValue> for ConvertError {
    fn from(value: InexactValue) -> Self {
        ConvertError::Inexact(Box::new(value))
    }
}

/// Why a value cannot be converted.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// There is no conversion between a type in the file and one in memory.
    #[error("the type {file} in the file and the type {memory} in memory cannot be converted into each other")]
    Class {
        /// The class of the type in the file.
        file: &'static str,
        /// The type in memory.
        memory: &'static str,
    },
    /// There is no memory for the elements.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// The layout of a number in the file makes no sense, or is larger than 128 bits.
    #[error("numbers of {size} bytes with {precision} bits at bit {offset} are not supported")]
    Layout {
        /// Bytes of an element.
        size: u32,
        /// Significant bits.
        precision: u16,
        /// Position of the lowest of them.
        offset: u16,
    },
    /// The compound in the file lacks a member.
    #[error("the compound in the file has no member {0:?}")]
    NoMember(Name),
    /// A member cannot be converted.
    #[error("member {name:?}: {source}")]
    Member {
        /// The member.
        name: Name,
        /// Why not.
        source: Box<ConvertError>,
    },
    /// The array type in the file has another number of elements.
    #[error("the array in the file has dimensions {file:?}, the one in memory has {memory} elements")]
    ArrayLength {
        /// Dimensions in the file.
        file: Vec<u32>,
        /// Elements in memory.
        memory: usize,
    },
    /// A value in the file is none of those that the enum in memory has.
    #[error("the file has {value}, which is not a value of {memory}")]
    NoVariant {
        /// The value in the file.
        value: String,
        /// The enum in memory.
        memory: &'static str,
    },
    /// The enum in the file lacks a value that the one in memory has.
    #[error("the enum in the file has no value named {0:?}")]
    NoEnumName(Name),
    /// Elements of the file have no such value.
    #[error("{value} is not a value of the {class} in the file")]
    Value {
        /// The value.
        value: String,
        /// The class of the type in the file.
        class: &'static str,
    },
    /// A value would change, and [`ConversionPolicy::Lossy`] does not allow it.
    #[error(transparent)]
    Inexact(Box<InexactValue>),
    /// One of several values cannot be converted.
    #[error("values[{index}]: {source}")]
    Element {
        /// Its position among the values of the caller, from zero.
        index: u64,
        /// Why not.
        source: Box<ConvertError>,
    },
    /// A string does not fit the space that the file has for it.
    #[error("a string of {length} bytes does not fit {space}")]
    StringTooLong {
        /// Bytes of the string.
        length: usize,
        /// Bytes in the file.
        space: usize,
    },
    /// A string has a NUL character, which ends strings of the type in the file.
    #[error("a string of {length} bytes has a NUL, at which it would end after {kept}")]
    StringWithNul {
        /// Bytes of the string.
        length: usize,
        /// Bytes before the NUL.
        kept: usize,
    },
    /// A string in the file is not valid UTF-8.
    #[error("a string is not valid UTF-8: {0}")]
    Utf8(#[from] std::str::Utf8Error),
    /// The file ends inside an element.
    #[error("an element of {expected} bytes has {found}")]
    Truncated {
        /// Bytes that an element has.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// The heap that keeps variable-length data failed.
    #[error("variable-length data: {0}")]
    Heap(#[source] std::sync::Arc<h5live_model::Error>),
}

impl ConvertError {
    /// The error of the heap that is the cause.
    pub(crate) fn heap_error(&self) -> Option<&h5live_model::Error> {
        match self {
            ConvertError::Heap(error) => Some(error),
            ConvertError::Member { source, .. } | ConvertError::Element { source, .. } => source.heap_error(),
            _ => None,
        }
    }
}

/// The name of a datatype's class, for messages.
pub(crate) fn class(datatype: &Datatype) -> &'static str {
    match datatype {
        Datatype::Integer(_) => "integer",
        Datatype::Float(_) => "float",
        Datatype::Time(_) => "time",
        Datatype::String(_) => "string",
        Datatype::Bitfield(_) => "bit field",
        Datatype::Opaque(_) => "opaque value",
        Datatype::Compound(_) => "compound",
        Datatype::Reference(_) => "reference",
        Datatype::Enum(_) => "enum",
        Datatype::VarLen(_) => "variable-length value",
        Datatype::Array(_) => "array",
        Datatype::Complex(_) => "complex number",
    }
}
