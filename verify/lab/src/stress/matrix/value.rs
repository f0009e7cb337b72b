//! The rule of the matrix: an element is a function of its place and of how often it was written.

use h5live::H5Type;

use crate::stress::rule::mix;

/// The value as text, or a word for its absence.
pub fn shown<T: std::fmt::Debug>(value: Option<T>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| format!("{value:?}"))
}

/// Bits of a number that say which element it is, and bits that say that it is whole.
const ELEMENT_BITS: u32 = 24;
const CHECK_BITS: u32 = 20;

/// Which element, and of which dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementId {
    /// The number of the dataset.
    pub dataset: usize,
    /// The number of the element in it.
    pub element: u64,
}

/// The value that was found in the place of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservedValue {
    /// A fill value: the element was never written.
    Fill,
    /// The value that it had as of this version, from 1 on.
    Version(u32),
    /// A value that was never written.
    Nothing,
}

/// A type of elements with a value for each place and version.
pub trait RuleValue: H5Type + PartialEq + std::fmt::Debug {
    /// The value of an element.
    fn value(place: ElementId, version: u32) -> Self;

    /// Observes a value: which version of the element it is.
    fn observe(&self, place: ElementId) -> ObservedValue;
}

fn salted(place: ElementId, version: u32) -> u64 {
    mix(place.element ^ u64::from(version) << 32 ^ (place.dataset as u64) << 56)
}

impl RuleValue for u64 {
    fn value(place: ElementId, version: u32) -> u64 {
        let check = salted(place, version) >> (64 - CHECK_BITS);
        u64::from(version) << (ELEMENT_BITS + CHECK_BITS) | place.element << CHECK_BITS | check
    }

    fn observe(&self, place: ElementId) -> ObservedValue {
        let version = (self >> (ELEMENT_BITS + CHECK_BITS)) as u32;
        match *self {
            0 => ObservedValue::Fill,
            _ if version > 0 && *self == u64::value(place, version) => ObservedValue::Version(version),
            _ => ObservedValue::Nothing,
        }
    }
}

impl RuleValue for String {
    fn value(place: ElementId, version: u32) -> String {
        let salt = salted(place, version);
        let letter = char::from(b'a' + (salt % 26) as u8);
        let more = (salt >> 8) as usize % 40;
        format!("{version}:{}:{}", place.element, letter.to_string().repeat(more))
    }

    fn observe(&self, place: ElementId) -> ObservedValue {
        let version = || self.split_once(':')?.0.parse::<u32>().ok().filter(|version| *version > 0);
        match version() {
            _ if self.is_empty() => ObservedValue::Fill,
            Some(version) if *self == String::value(place, version) => ObservedValue::Version(version),
            _ => ObservedValue::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> impl Iterator<Item = ElementId> {
        (0..3).flat_map(|dataset| [0, 1, 77, (1 << ELEMENT_BITS) - 1].map(|element| ElementId { dataset, element }))
    }

    #[test]
    fn a_value_tells_its_version() {
        for place in places() {
            for version in [1, 2, (1 << 20) - 1] {
                assert_eq!(u64::value(place, version).observe(place), ObservedValue::Version(version));
                assert_eq!(String::value(place, version).observe(place), ObservedValue::Version(version));
            }
        }
    }

    #[test]
    fn a_value_in_another_place_is_none() {
        let (here, there) = (ElementId { dataset: 0, element: 5 }, ElementId { dataset: 0, element: 6 });
        let elsewhere = ElementId { dataset: 1, element: 5 };
        for other in [there, elsewhere] {
            assert_eq!(u64::value(here, 3).observe(other), ObservedValue::Nothing);
            assert_eq!(String::value(here, 3).observe(other), ObservedValue::Nothing);
        }
    }

    #[test]
    fn half_of_one_value_and_half_of_another_are_none() {
        let place = ElementId { dataset: 0, element: 12_345 };
        let (old, new) = (u64::value(place, 300).to_le_bytes(), u64::value(place, 301).to_le_bytes());
        for cut in 1..8 {
            let torn: Vec<u8> = new[..cut].iter().chain(&old[cut..]).copied().collect();
            let torn = u64::from_le_bytes(torn.try_into().unwrap());
            assert!(
                torn.to_le_bytes() == old || torn.to_le_bytes() == new || torn.observe(place) == ObservedValue::Nothing
            );
        }
    }

    #[test]
    fn fill_values_are_known() {
        let place = ElementId { dataset: 0, element: 0 };
        assert_eq!((0_u64.observe(place), String::new().observe(place)), (ObservedValue::Fill, ObservedValue::Fill));
    }
}
