//! The numbers that this machine has, and how one becomes another.

use bytemuck::Pod;
use h5live_model::{ByteOrder, Datatype, Sign};

/// A number of this machine. Sealed: what implements it is known here.
pub trait Number: Pod + Default + PartialOrd + Send + Sync {
    #[doc(hidden)]
    const NATIVE: NativeNumber;
    #[doc(hidden)]
    const NAME: &'static str;
}

/// The numbers that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum NativeNumber {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

/// Calls `$macro` with the native number type that a [`NativeNumber`] stands for.
macro_rules! with_native {
    ($native:expr, $t:ident => $body:expr) => {
        match $native {
            NativeNumber::U8 => {
                type $t = u8;
                $body
            }
            NativeNumber::I8 => {
                type $t = i8;
                $body
            }
            NativeNumber::U16 => {
                type $t = u16;
                $body
            }
            NativeNumber::I16 => {
                type $t = i16;
                $body
            }
            NativeNumber::U32 => {
                type $t = u32;
                $body
            }
            NativeNumber::I32 => {
                type $t = i32;
                $body
            }
            NativeNumber::U64 => {
                type $t = u64;
                $body
            }
            NativeNumber::I64 => {
                type $t = i64;
                $body
            }
            NativeNumber::F32 => {
                type $t = f32;
                $body
            }
            NativeNumber::F64 => {
                type $t = f64;
                $body
            }
        }
    };
}

pub(super) use with_native;

macro_rules! number {
    ($($t:ident $native:ident)*) => {$(
        impl Number for $t {
            const NATIVE: NativeNumber = NativeNumber::$native;
            const NAME: &'static str = stringify!($t);
        }
    )*};
}

number! { u8 U8 i8 I8 u16 U16 i16 I16 u32 U32 i32 I32 u64 U64 i64 I64 f32 F32 f64 F64 }

impl NativeNumber {
    pub(super) fn size(self) -> usize {
        with_native!(self, T => size_of::<T>())
    }

    pub(super) fn name(self) -> &'static str {
        with_native!(self, T => T::NAME)
    }

    pub(crate) fn datatype(self, order: ByteOrder) -> Datatype {
        let size = self.size() as u32;
        match self {
            NativeNumber::F32 | NativeNumber::F64 => Datatype::float(size, order).unwrap_or_default(),
            NativeNumber::U8 | NativeNumber::U16 | NativeNumber::U32 | NativeNumber::U64 => {
                Datatype::integer(size, order, Sign::Unsigned)
            }
            _ => Datatype::integer(size, order, Sign::Signed),
        }
    }

    /// Whether a datatype is this number, with its bytes in the order of this machine.
    pub(crate) fn matches(self, datatype: &Datatype) -> bool {
        NativeNumber::of(datatype) == Some((self, false))
    }

    /// The native number that a datatype is, and whether its bytes are in the other order.
    #[inline(always)]
    pub(super) fn of(datatype: &Datatype) -> Option<(NativeNumber, bool)> {
        match datatype {
            Datatype::Integer(integer) => {
                let native = match (integer.size, integer.precision, integer.sign) {
                    (1, 8, Sign::Unsigned) => NativeNumber::U8,
                    (1, 8, Sign::Signed) => NativeNumber::I8,
                    (2, 16, Sign::Unsigned) => NativeNumber::U16,
                    (2, 16, Sign::Signed) => NativeNumber::I16,
                    (4, 32, Sign::Unsigned) => NativeNumber::U32,
                    (4, 32, Sign::Signed) => NativeNumber::I32,
                    (8, 64, Sign::Unsigned) => NativeNumber::U64,
                    (8, 64, Sign::Signed) => NativeNumber::I64,
                    _ => return None,
                };
                let has_padding = (integer.low_padding, integer.high_padding) != Default::default();
                let is_plain = integer.offset == 0 && !has_padding;
                is_plain.then_some((native, integer.order != ByteOrder::NATIVE && integer.size > 1))
            }
            Datatype::Float(float) => {
                let native = match float.size {
                    4 => NativeNumber::F32,
                    8 => NativeNumber::F64,
                    _ => return None,
                };
                (native.datatype(float.order) == *datatype).then_some((native, float.order != ByteOrder::NATIVE))
            }
            _ => None,
        }
    }
}

/// Conversion from one number of this machine to another, as libhdf5 does it. A value out of range becomes the nearest
/// value in range (infinity for floats). A fraction is cut towards zero. Not-a-number becomes zero in an integer.
pub(super) trait SaturatingCast<D> {
    fn cast(self) -> D;
}

macro_rules! cast_integer {
    ($($s:ident)*) => {$( cast_integer!(@to $s: u8 i8 u16 i16 u32 i32 u64 i64); )*};
    (@to $s:ident: $($d:ident)*) => {
        $(impl SaturatingCast<$d> for $s {
            #[inline(always)]
            fn cast(self) -> $d {
                $d::try_from(self).unwrap_or(if self > 0 { $d::MAX } else { $d::MIN })
            }
        })*
        impl SaturatingCast<f32> for $s {
            #[inline(always)]
            fn cast(self) -> f32 {
                self as f32
            }
        }
        impl SaturatingCast<f64> for $s {
            #[inline(always)]
            fn cast(self) -> f64 {
                self as f64
            }
        }
        impl SaturatingCast<$s> for f32 {
            #[inline(always)]
            fn cast(self) -> $s {
                self as $s
            }
        }
        impl SaturatingCast<$s> for f64 {
            #[inline(always)]
            fn cast(self) -> $s {
                self as $s
            }
        }
    };
}

cast_integer! { u8 i8 u16 i16 u32 i32 u64 i64 }

impl SaturatingCast<f32> for f32 {
    #[inline(always)]
    fn cast(self) -> f32 {
        self
    }
}

impl SaturatingCast<f64> for f64 {
    #[inline(always)]
    fn cast(self) -> f64 {
        self
    }
}

impl SaturatingCast<f64> for f32 {
    #[inline(always)]
    fn cast(self) -> f64 {
        self.into()
    }
}

impl SaturatingCast<f32> for f64 {
    #[inline(always)]
    fn cast(self) -> f32 {
        const MAX: f64 = f32::MAX as f64;
        if self > MAX {
            f32::INFINITY
        } else if self < -MAX {
            f32::NEG_INFINITY
        } else {
            self as f32
        }
    }
}
