//! Single numbers, without an array around them.

use h5live::model::{ByteOrder, Datatype, Sign};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

/// Bytes of the largest number.
const MAX_BYTES: usize = 8;

/// An element that is just the same as a number of Python.
pub(crate) struct Number {
    element: [u8; MAX_BYTES],
    len: usize,
    order: ByteOrder,
    kind: NumberKind,
}

enum NumberKind {
    Signed,
    Unsigned,
    Float,
}

impl Number {
    /// Zero; `None` for types of which Python has not all values bit by bit, or whose bytes are not all of the number.
    pub(crate) fn new(datatype: &Datatype) -> Option<Self> {
        let (kind, order) = match datatype {
            Datatype::Integer(integer) if u32::from(integer.precision) == integer.size * 8 => match integer.sign {
                Sign::Signed => (NumberKind::Signed, integer.order),
                Sign::Unsigned => (NumberKind::Unsigned, integer.order),
            },
            Datatype::Float(float) if Datatype::float(8, float.order).is_some_and(|double| double == *datatype) => {
                (NumberKind::Float, float.order)
            }
            _ => return None,
        };
        let len = datatype.size() as usize;
        let is_usual = (1..=MAX_BYTES).contains(&len) && matches!(order, ByteOrder::Little | ByteOrder::Big);
        is_usual.then_some(Number { element: [0; MAX_BYTES], len, order, kind })
    }

    /// The bytes of the element.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.element[..self.len]
    }

    /// The number as an object.
    pub(crate) fn to_object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut bytes = self.element;
        if self.order == ByteOrder::Big {
            bytes[..self.len].reverse();
        }
        let number = u64::from_le_bytes(bytes);
        let unused = 8 * (MAX_BYTES - self.len);
        match self.kind {
            NumberKind::Signed => ((number << unused).cast_signed() >> unused).into_bound_py_any(py),
            NumberKind::Unsigned => number.into_bound_py_any(py),
            NumberKind::Float => f64::from_bits(number).into_bound_py_any(py),
        }
    }
}
