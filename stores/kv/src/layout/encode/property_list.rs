//! Property lists as `H5Pencode2` encodes them: a version, the class, each property by name, and an empty name.
//!
//! The library keeps properties in an order by a hash of their names (djb2 with 32 bits). It writes those that were set,
//! or that were copied with the list; then the others of the class, then those of the class above it.

use h5live_format::{Fault, Record, Result as WireResult, Width, Widths, Wire, decode, encode_mut};
use h5live_model::Name;

use crate::layout::Result;

/// The properties of a class of property lists.
pub trait PropertyClass: Default + Clone {
    /// The number of the class (`H5P_plist_type_t`).
    const CLASS: u8;
    /// The names of the properties of the class, then those of the classes above it; each by hash.
    const LEVELS: &'static [&'static [&'static str]];

    /// Whether a property comes before those that have their default.
    fn is_encoded_before_defaults(&self, property: &str) -> bool;

    /// Passes over the value of a property.
    ///
    /// # Errors
    /// [`h5live_format::DecodeError`] if the bytes are not such a value.
    fn wire_value(&mut self, property: &str, w: &mut impl Wire) -> WireResult<()>;
}

/// Encodes a property list as `H5Pencode2` does.
///
/// # Errors
/// [`RecordFormatError::Encode`](crate::layout::RecordFormatError::Encode) if a value does not fit its field.
pub fn encode_properties<P: PropertyClass>(properties: &P) -> Result<Vec<u8>> {
    Ok(encode_mut(&mut PropertyList(properties.clone()), Widths::default())?)
}

/// Decodes what [`encode_properties`], or `H5Pencode2`, has encoded. A property that is not there has its default.
///
/// # Errors
/// [`RecordFormatError::Decode`](crate::layout::RecordFormatError::Decode), also for a property that the class does not have.
pub fn decode_properties<P: PropertyClass>(bytes: &[u8]) -> Result<P> {
    Ok(decode::<PropertyList<P>>(bytes, Widths::default())?.0)
}

#[derive(Debug, Clone, Default)]
struct PropertyList<P>(P);

impl<P: PropertyClass> Record for PropertyList<P> {
    const NAME: &'static str = "property list";

    fn wire(&mut self, w: &mut impl Wire) -> WireResult<()> {
        w.version(0..=0, &mut 0)?;
        let class = w.derived_u8("class", P::CLASS)?;
        w.require("class", class == P::CLASS, class.into(), "that of the object")?;
        if !w.is_decoding() {
            let names = write_order(&self.0);
            names.into_iter().try_for_each(|name| self.wire_property(name, w))?;
            return w.nul_terminated_name("property", &mut Name::default());
        }
        loop {
            let mut name = Name::default();
            w.nul_terminated_name("property", &mut name)?;
            if name.is_empty() {
                return Ok(());
            }
            let known = P::LEVELS.iter().flat_map(|level| level.iter()).find(|known| name == **known);
            let rule = "a property of the class";
            let fault = Fault::InvalidValue { found: name.as_bytes().len() as u64, rule };
            self.0.wire_value(known.ok_or_else(|| w.fault("property", fault))?, w)?;
        }
    }
}

impl<P: PropertyClass> PropertyList<P> {
    fn wire_property(&mut self, name: &'static str, w: &mut impl Wire) -> WireResult<()> {
        w.nul_terminated_name("property", &mut Name::from(name))?;
        self.0.wire_value(name, w)
    }
}

/// The names of all properties, in the order in which the library writes them.
fn write_order<P: PropertyClass>(properties: &P) -> Vec<&'static str> {
    let names = P::LEVELS.iter().flat_map(|level| level.iter().copied());
    let (mut order, rest): (Vec<_>, Vec<_>) = names.partition(|name| properties.is_encoded_before_defaults(name));
    order.sort_by_key(|name| name_hash(name));
    order.extend(rest);
    order
}

/// The hash by which the library orders names.
fn name_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}

/// A number in as few bytes as it needs, after the number of these bytes.
pub(super) fn wire_sized(w: &mut impl Wire, field: &'static str, value: &mut u64) -> WireResult<()> {
    let bytes = w.derived_u8(field, Width::for_value(*value).bytes() as u8)?;
    let fault = Fault::InvalidValue { found: bytes.into(), rule: "a number has 1 to 8 bytes" };
    let width = Width::new(bytes).ok_or_else(|| w.fault(field, fault))?;
    w.uint(field, width, value)
}

/// A number of things, each of at least `each` bytes, as [`wire_sized`] has it.
pub(super) fn wire_count(w: &mut impl Wire, field: &'static str, count: usize, each: usize) -> WireResult<usize> {
    let mut count = count as u64;
    wire_sized(w, field, &mut count)?;
    w.bounded_count(field, count, each)
}

/// An `unsigned`, after the number of its bytes.
pub(super) fn wire_unsigned(w: &mut impl Wire, field: &'static str, value: &mut u32) -> WireResult<()> {
    let bytes = w.derived_u8(field, 4)?;
    w.require(field, bytes == 4, bytes.into(), "an unsigned number has 4 bytes")?;
    w.u32(field, value)
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    fn sorted<P: PropertyClass>() {
        for level in P::LEVELS {
            assert!(level.is_sorted_by_key(|name| name_hash(name)), "{level:?}");
        }
    }

    #[test]
    fn properties_of_a_class_are_listed_by_hash() {
        sorted::<DatasetCreationProperties>();
        sorted::<GroupCreationProperties>();
        sorted::<FileCreationProperties>();
        sorted::<AttributeCreationProperties>();
        sorted::<DatatypeCreationProperties>();
        sorted::<MapCreationProperties>();
    }
}
