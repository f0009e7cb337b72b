//! The values that the test writes, and how they are shown, as `tests/python/hand.py` has them.

use h5live::{FixedStr, H5Type};

/// A kind of element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    I4,
    F8,
    S8,
    Text,
    Pair,
}

#[derive(Debug, Clone, Copy, PartialEq, H5Type)]
pub struct Pair {
    a: i16,
    b: f32,
}

pub trait Element: H5Type + Clone {
    fn of(number: u64) -> Self;
    fn shown(&self) -> String;
}

impl Element for i32 {
    fn of(number: u64) -> Self {
        number as i32
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Element for f64 {
    fn of(number: u64) -> Self {
        number as f64 / 8.0
    }

    fn shown(&self) -> String {
        format!("{self:.3}")
    }
}

impl Element for FixedStr<8> {
    fn of(number: u64) -> Self {
        FixedStr::new(&format!("v{number}")).expect("it fits")
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Element for String {
    fn of(number: u64) -> Self {
        "x".repeat((number % 20) as usize) + &number.to_string()
    }

    fn shown(&self) -> String {
        self.clone()
    }
}

impl Element for Pair {
    fn of(number: u64) -> Self {
        Pair { a: (number % 1000) as i16, b: number as f32 / 4.0 }
    }

    fn shown(&self) -> String {
        format!("({},{:.3})", self.a, self.b)
    }
}

pub fn values<T: Element>(seed: u64, count: u64) -> Vec<T> {
    (0..count).map(|i| T::of(seed * 31 + i)).collect()
}

/// A checksum of what elements show (CRC-32, as zlib has it).
pub fn contents<T: Element>(values: &[T]) -> String {
    let text = values.iter().map(Element::shown).collect::<Vec<_>>().join("|");
    let step = |crc: u32| (0..8).fold(crc, |crc, _| crc >> 1 ^ 0xedb8_8320 & (crc & 1).wrapping_neg());
    format!("{:08x}", !text.bytes().fold(!0, |crc, byte| step(crc ^ u32::from(byte))))
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::I4 => "i4",
            Kind::F8 => "f8",
            Kind::S8 => "s8",
            Kind::Text => "text",
            Kind::Pair => "pair",
        }
    }
}
