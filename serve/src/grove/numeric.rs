//! Numbers as bytes: as the file has them, or as arrays of JavaScript take them.

use h5live::Dataset;
use h5live::model::{ByteOrder, Datatype, FloatType, IntegerType, Sign};

use super::dtype::{complex_part, is_bool, numpy_float_size};
use super::read_fault::ReadFault;
use super::selection::Selected;
use crate::fault::Fault;

/// The kind of number that an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberKind {
    Signed,
    Unsigned,
    Float,
    Bool,
    Complex,
}

/// A type of numbers, as numpy has it.
#[derive(Debug, Clone)]
pub(super) struct NumberType {
    pub kind: NumberKind,
    /// Bytes of a number; of a part of a complex number.
    pub size: u64,
    pub order: ByteOrder,
    /// Dimensions of the array that an element is.
    pub dims: Vec<u64>,
    /// Whether the bytes in the file are those of numpy.
    is_plain: bool,
}

/// Whether an integer uses all its bits, and numpy has its size.
fn is_plain_integer(t: &IntegerType) -> bool {
    matches!(t.size, 1 | 2 | 4 | 8)
        && t.offset == 0
        && u32::from(t.precision) == t.size * 8
        && t.order != ByteOrder::Vax
}

fn of_float(t: &FloatType, kind: NumberKind, dims: Vec<u64>) -> NumberType {
    let size = numpy_float_size(t);
    let ieee = Datatype::float(t.size, t.order);
    let is_ieee = ieee == Some(Datatype::Float(t.clone())) && u64::from(t.size) == size;
    // numpy's longest float is that of the machine that wrote it.
    let is_plain = is_ieee || size == 16 && t.size == 16 && t.order == ByteOrder::Little;
    NumberType { kind, size, order: t.order, dims, is_plain }
}

impl NumberType {
    /// The type of numbers that a datatype is; `None` if its elements are no numbers.
    pub fn of(datatype: &Datatype) -> Option<Self> {
        let dims = Vec::new();
        Some(match datatype {
            Datatype::Integer(t) if t.size <= 8 => {
                let kind = if t.sign == Sign::Signed { NumberKind::Signed } else { NumberKind::Unsigned };
                let size = u64::from(t.size).next_power_of_two();
                NumberType { kind, size, order: t.order, dims, is_plain: is_plain_integer(t) }
            }
            Datatype::Bitfield(t) if matches!(t.size, 1 | 2 | 4 | 8) => {
                NumberType { kind: NumberKind::Unsigned, size: t.size.into(), order: t.order, dims, is_plain: true }
            }
            Datatype::Float(t) => of_float(t, NumberKind::Float, dims),
            Datatype::Enum(t) if is_bool(t) => {
                NumberType { kind: NumberKind::Bool, size: 1, order: ByteOrder::Little, dims, is_plain: true }
            }
            Datatype::Enum(t) => NumberType::of(&t.base)?,
            Datatype::Complex(t) => match &*t.base {
                Datatype::Float(part) => of_float(part, NumberKind::Complex, dims),
                _ => return None,
            },
            Datatype::Compound(t) => of_float(complex_part(t)?, NumberKind::Complex, dims),
            Datatype::Array(t) => {
                let base = NumberType::of(&t.base)?;
                let outer = t.dims.iter().map(|dim| u64::from(*dim));
                NumberType { dims: outer.chain(base.dims.iter().copied()).collect(), ..base }
            }
            _ => return None,
        })
    }

    /// The name of numpy's type of the bytes that [`NumberType::read`] reads.
    pub fn dtype(&self, for_javascript: bool) -> String {
        let (size, order) = self.number_size_and_byte_order(for_javascript);
        let (letter, size) = match self.kind {
            NumberKind::Signed => ('i', size),
            NumberKind::Unsigned => ('u', size),
            NumberKind::Float => ('f', size),
            NumberKind::Bool => ('b', size),
            NumberKind::Complex => ('c', 2 * size),
        };
        let mark = match order {
            _ if size == 1 => '|',
            ByteOrder::Big => '>',
            _ => '<',
        };
        format!("{mark}{letter}{size}")
    }

    /// Size (bytes) and order of the numbers that are read.
    pub fn number_size_and_byte_order(&self, for_javascript: bool) -> (u64, ByteOrder) {
        let size = match self.kind {
            NumberKind::Float | NumberKind::Complex if for_javascript || !self.is_plain => self.size.clamp(4, 8),
            _ => self.size,
        };
        let size = if self.is_plain && !for_javascript { self.size } else { size };
        let order = match self.order {
            _ if for_javascript => ByteOrder::Little,
            order if self.is_plain => order,
            ByteOrder::Big => ByteOrder::Big,
            _ => ByteOrder::Little,
        };
        (size, order)
    }

    /// Bytes of an element that is read.
    pub fn element_size(&self, for_javascript: bool) -> u64 {
        let parts = if self.kind == NumberKind::Complex { 2 } else { 1 };
        self.dims
            .iter()
            .fold(parts * self.number_size_and_byte_order(for_javascript).0, |bytes, dim| bytes.saturating_mul(*dim))
    }

    /// Reads numbers: `for_javascript` for what arrays of JavaScript take, which is little-endian and has no floats of 16 or 128 bits.
    ///
    /// # Errors
    /// If they cannot be read, or JavaScript has no such numbers.
    pub fn read(&self, dataset: &Dataset, selected: &Selected, for_javascript: bool) -> Result<Vec<u8>, ReadFault> {
        let (size, order) = self.number_size_and_byte_order(for_javascript);
        if self.is_plain && size == self.size {
            let mut bytes = dataset.read_raw(selected)?;
            if order != self.order {
                bytes.chunks_exact_mut(size as usize).for_each(<[u8]>::reverse);
            }
            return Ok(bytes);
        }
        // To the order of the file first: integers that do not use all their bits are only reversed on the way to the other one.
        let converted = if self.order == ByteOrder::Big { ByteOrder::Big } else { ByteOrder::Little };
        let target = self.target(size, converted);
        let target =
            target.ok_or_else(|| Fault::unprocessable("Such numbers cannot be converted: ask for format=json"))?;
        let mut bytes = dataset.read_as(selected, &target)?;
        if order != converted {
            bytes.chunks_exact_mut(size as usize).for_each(<[u8]>::reverse);
        }
        Ok(bytes)
    }

    /// The type to convert to.
    fn target(&self, size: u64, order: ByteOrder) -> Option<Datatype> {
        let size = u32::try_from(size).ok()?;
        let number = match self.kind {
            NumberKind::Signed => Datatype::integer(size, order, Sign::Signed),
            NumberKind::Unsigned => Datatype::integer(size, order, Sign::Unsigned),
            NumberKind::Float => Datatype::float(size, order)?,
            NumberKind::Bool => return None,
            NumberKind::Complex => {
                let part = Datatype::float(size, order)?;
                Datatype::compound([("r", part.clone()), ("i", part)])
            }
        };
        Some(match &self.dims[..] {
            [] => number,
            dims => Datatype::Array(h5live::model::ArrayType {
                dims: dims.iter().map(|dim| u32::try_from(*dim).ok()).collect::<Option<_>>()?,
                base: number.into(),
            }),
        })
    }
}

/// A number, or a part of a complex one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(i128),
    Float32(f32),
    Float64(f64),
}

impl NumberType {
    /// The numbers in bytes that were read in the form that JavaScript takes.
    pub(super) fn numbers<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = Number> + use<'a> {
        let (size, kind) = (self.number_size_and_byte_order(true).0 as usize, self.kind);
        bytes.chunks_exact(size).map(move |bytes| {
            let mut wide = [0; 8];
            wide[..size.min(8)].copy_from_slice(&bytes[..size.min(8)]);
            let word = u64::from_le_bytes(wide);
            match (kind, size) {
                (NumberKind::Float | NumberKind::Complex, 4) => Number::Float32(f32::from_bits(word as u32)),
                (NumberKind::Float | NumberKind::Complex, _) => Number::Float64(f64::from_bits(word)),
                (NumberKind::Signed, _) => {
                    let unused = 64 - 8 * size as u32;
                    Number::Integer((((word << unused) as i64) >> unused).into())
                }
                _ => Number::Integer(word.into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_forms_that_javascript_takes() {
        for (size, order, origin, safe) in
            [(2, ByteOrder::Big, ">f2", "<f4"), (4, ByteOrder::Big, ">f4", "<f4"), (8, ByteOrder::Little, "<f8", "<f8")]
        {
            let float = NumberType::of(&Datatype::float(size, order).unwrap()).unwrap();
            assert_eq!((float.dtype(false), float.dtype(true)), (origin.to_owned(), safe.to_owned()));
        }
        let byte = NumberType::of(&Datatype::integer(1, ByteOrder::Little, Sign::Signed)).unwrap();
        assert_eq!((byte.dtype(false), byte.element_size(true)), ("|i1".to_owned(), 1));
        assert!(NumberType::of(&Datatype::fixed_string(3, Default::default())).is_none());
    }
}
