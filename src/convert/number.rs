//! Numbers: any integer or float to any other.

use bytemuck::Pod;
use h5live_model::{ByteOrder, Datatype, Integer, Sign};

use super::number_layout::{ExactNumber, NumberLayout, Rounding};
use super::{ConvertError, class};

/// Elements that are swapped and converted at a time: few enough to stay in the nearest cache.
const BLOCK_ELEMENTS: usize = 512;

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
    fn size(self) -> usize {
        with_native!(self, T => size_of::<T>())
    }

    fn name(self) -> &'static str {
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
    fn of(datatype: &Datatype) -> Option<(NativeNumber, bool)> {
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
trait Cast<D> {
    fn cast(self) -> D;
}

macro_rules! cast_integer {
    ($($s:ident)*) => {$( cast_integer!(@to $s: u8 i8 u16 i16 u32 i32 u64 i64); )*};
    (@to $s:ident: $($d:ident)*) => {
        $(impl Cast<$d> for $s {
            #[inline(always)]
            fn cast(self) -> $d {
                $d::try_from(self).unwrap_or(if self > 0 { $d::MAX } else { $d::MIN })
            }
        })*
        impl Cast<f32> for $s {
            #[inline(always)]
            fn cast(self) -> f32 {
                self as f32
            }
        }
        impl Cast<f64> for $s {
            #[inline(always)]
            fn cast(self) -> f64 {
                self as f64
            }
        }
        impl Cast<$s> for f32 {
            #[inline(always)]
            fn cast(self) -> $s {
                self as $s
            }
        }
        impl Cast<$s> for f64 {
            #[inline(always)]
            fn cast(self) -> $s {
                self as $s
            }
        }
    };
}

cast_integer! { u8 i8 u16 i16 u32 i32 u64 i64 }

impl Cast<f32> for f32 {
    #[inline(always)]
    fn cast(self) -> f32 {
        self
    }
}

impl Cast<f64> for f64 {
    #[inline(always)]
    fn cast(self) -> f64 {
        self
    }
}

impl Cast<f64> for f32 {
    #[inline(always)]
    fn cast(self) -> f64 {
        self.into()
    }
}

impl Cast<f32> for f64 {
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

/// How a number in the file becomes one in memory, or the other way round.
#[derive(Debug, Clone)]
pub(crate) struct NumberPlan {
    from: NumberFormat,
    to: NumberFormat,
    kind: PlanKind,
    rounding: Rounding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanKind {
    Copy,
    Swap,
    Cast,
    Bitwise,
}

#[derive(Debug, Clone)]
struct NumberFormat {
    layout: NumberLayout,
    native: Option<(NativeNumber, bool)>,
}

impl NumberFormat {
    fn new(datatype: &Datatype) -> Option<Result<Self, ConvertError>> {
        let layout = match datatype {
            Datatype::Integer(integer) => NumberLayout::integer(integer),
            Datatype::Float(float) => NumberLayout::float(float),
            Datatype::Bitfield(bits) => NumberLayout::bits(bits),
            Datatype::Enum(enumeration) => return NumberFormat::new(&enumeration.base),
            Datatype::Time(time) => NumberLayout::integer(&Integer {
                size: time.size,
                order: time.order,
                precision: time.precision,
                sign: Sign::Signed,
                ..Integer::default()
            }),
            _ => return None,
        };
        Some(layout.map(|layout| NumberFormat { layout, native: NativeNumber::of(datatype) }))
    }
}

impl NumberPlan {
    /// The way from one datatype to another; `None` if one of them is not a number, an enum or bits.
    pub(crate) fn new(from: &Datatype, to: &Datatype) -> Option<Result<Self, ConvertError>> {
        let side = match NumberFormat::new(from)? {
            Ok(side) => side,
            Err(error) => return Some(Err(error)),
        };
        let (from, to) = match if from == to { Ok(side.clone()) } else { NumberFormat::new(to)? } {
            Ok(to) => (side, to),
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(NumberPlan::from_formats(from, to)))
    }

    fn from_formats(from: NumberFormat, to: NumberFormat) -> Self {
        let kind = match (from.native, to.native) {
            (Some((a, swap_a)), Some((b, swap_b))) if a == b => {
                if swap_a == swap_b {
                    PlanKind::Copy
                } else {
                    PlanKind::Swap
                }
            }
            (Some(_), Some(_)) => PlanKind::Cast,
            _ if from.layout == to.layout => PlanKind::Copy,
            _ => PlanKind::Bitwise,
        };
        let kind = if is_byte_swap(&from.layout, &to.layout) { PlanKind::Swap } else { kind };
        let of_c = |side: &NumberFormat| side.native.map_or(side.layout.is_c_type(), |(_, swapped)| !swapped);
        let rounding = match (&from.layout, of_c(&from) && of_c(&to)) {
            (NumberLayout::Integer(_), _) => Rounding::TiesToEven,
            (NumberLayout::Float(_), true) => Rounding::TiesToEvenOrInfinite,
            (NumberLayout::Float(_), false) => Rounding::AwayFromZero,
        };
        NumberPlan { from, to, kind, rounding }
    }

    /// The way from a datatype to a number of this machine.
    pub(crate) fn to_native(from: &Datatype, to: NativeNumber) -> Result<Self, ConvertError> {
        let none = || ConvertError::Class { file: class(from), memory: to.name() };
        let from = NumberFormat::new(from).ok_or_else(none)??;
        let to = match from.native {
            Some((native, false)) if native == to => from.clone(),
            _ => NumberFormat::new(&to.datatype(ByteOrder::NATIVE)).ok_or_else(none)??,
        };
        Ok(NumberPlan::from_formats(from, to))
    }

    /// The way from a number of this machine to a datatype.
    pub(crate) fn from_native(from: NativeNumber, to: &Datatype) -> Result<Self, ConvertError> {
        let none = || ConvertError::Class { file: class(to), memory: from.name() };
        let to = NumberFormat::new(to).ok_or_else(none)??;
        let from = match to.native {
            Some((native, false)) if native == from => to.clone(),
            _ => NumberFormat::new(&from.datatype(ByteOrder::NATIVE)).ok_or_else(none)??,
        };
        Ok(NumberPlan::from_formats(from, to))
    }

    /// Whether the bytes do not change.
    pub(crate) fn is_copy(&self) -> bool {
        self.kind == PlanKind::Copy
    }

    /// Bytes of an element to convert.
    pub(crate) fn input_size(&self) -> usize {
        self.from.layout.size()
    }

    /// Bytes of a converted element.
    pub(crate) fn output_size(&self) -> usize {
        self.to.layout.size()
    }

    /// Converts as many elements as both sides have.
    pub(crate) fn run(&self, from: &[u8], to: &mut [u8]) {
        match (self.kind, self.from.native, self.to.native) {
            (PlanKind::Copy, ..) => {
                let n = from.len().min(to.len());
                to[..n].copy_from_slice(&from[..n]);
            }
            (PlanKind::Swap, ..) => {
                let n = from.len().min(to.len());
                to[..n].copy_from_slice(&from[..n]);
                swap(&mut to[..n], self.input_size());
            }
            (PlanKind::Cast, Some((a, swap_a)), Some((b, swap_b))) => {
                // Only then: a single element would spend most of its time on making it.
                let mut scratch = if swap_a { Some([0; BLOCK_ELEMENTS * 8]) } else { None };
                let blocks = from.chunks(BLOCK_ELEMENTS * a.size()).zip(to.chunks_mut(BLOCK_ELEMENTS * b.size()));
                for (from, to) in blocks {
                    let from = match &mut scratch {
                        Some(scratch) => {
                            let scratch = &mut scratch[..from.len()];
                            scratch.copy_from_slice(from);
                            swap(scratch, a.size());
                            scratch
                        }
                        None => from,
                    };
                    if (a, b, self.rounding) == (NativeNumber::F64, NativeNumber::F32, Rounding::AwayFromZero) {
                        narrow_slice(from, to);
                    } else {
                        with_native!(a, A => with_native!(b, B => cast_slice::<A, B>(from, to)));
                    }
                    if swap_b {
                        swap(to, b.size());
                    }
                }
            }
            _ => {
                let elements = from.chunks_exact(self.input_size()).zip(to.chunks_exact_mut(self.output_size()));
                elements.for_each(|(from, to)| self.to.layout.store(self.from.layout.load(from), self.rounding, to));
            }
        }
    }
}

/// The way from integers of any layout to the widest of this machine, and back.
pub(crate) struct IntegerPlan(NumberLayout);

impl IntegerPlan {
    pub(crate) fn new(from: &Datatype) -> Result<Self, ConvertError> {
        let none = ConvertError::Class { file: class(from), memory: "an integer" };
        Ok(IntegerPlan(NumberFormat::new(from).ok_or(none)??.layout))
    }

    /// Stores the nearest value that an element can have. Returns whether it is an integer that is stored exactly.
    pub(crate) fn store(&self, value: i128, element: &mut [u8]) -> bool {
        let real = ExactNumber::Finite { negative: value < 0, mantissa: value.unsigned_abs(), exponent: 0 };
        self.0.store(real, Rounding::TiesToEven, element);
        self.value(element) == value
    }

    /// The value of an element; of an unsigned one of 128 bits, no more than the largest signed one.
    pub(crate) fn value(&self, element: &[u8]) -> i128 {
        match self.0.load(element) {
            ExactNumber::Finite { negative: true, mantissa, .. } => 0i128.saturating_sub_unsigned(mantissa),
            ExactNumber::Finite { mantissa, .. } => i128::try_from(mantissa).unwrap_or(i128::MAX),
            _ => 0,
        }
    }
}

fn cast_slice<S: Number + Cast<D>, D: Number>(from: &[u8], to: &mut [u8]) {
    // Aligned elements, nearly all, are converted several at a time.
    if let (Ok(from), Ok(to)) = (bytemuck::try_cast_slice::<u8, S>(from), bytemuck::try_cast_slice_mut::<u8, D>(to)) {
        return from.iter().zip(to).for_each(|(from, to)| *to = from.cast());
    }
    let elements = from.chunks_exact(size_of::<S>()).zip(to.chunks_exact_mut(size_of::<D>()));
    for (from, to) in elements {
        let value: D = bytemuck::pod_read_unaligned::<S>(from).cast();
        to.copy_from_slice(bytemuck::bytes_of(&value));
    }
}

/// Whether libhdf5 only reverses the bytes: for integers without an offset, of one size, in two byte orders. It only
/// reverses them even if their signs differ, and does not saturate then.
fn is_byte_swap(from: &NumberLayout, to: &NumberLayout) -> bool {
    let (NumberLayout::Integer(from), NumberLayout::Integer(to)) = (from, to) else { return false };
    let orders = (from.order, to.order);
    let opposite = [(ByteOrder::Little, ByteOrder::Big), (ByteOrder::Big, ByteOrder::Little)].contains(&orders);
    opposite && from.size == to.size && from.size.is_power_of_two() && from.offset == 0 && to.offset == 0
}

fn narrow_slice(from: &[u8], to: &mut [u8]) {
    for (from, to) in from.as_chunks::<8>().0.iter().zip(to.as_chunks_mut::<4>().0) {
        *to = narrow(f64::from_ne_bytes(*from)).to_ne_bytes();
    }
}

/// The nearest `f32` as [`Rounding::AwayFromZero`] has it.
fn narrow(value: f64) -> f32 {
    const HALF: u64 = 1 << 28;
    const LOW_BITS: u64 = 2 * HALF - 1;
    const TWO_TO_128: f64 = f64::from_bits((1023 + 128) << 52);
    let magnitude = value.abs();
    if magnitude >= TWO_TO_128 {
        return if value > 0.0 { f32::INFINITY } else { f32::NEG_INFINITY };
    }
    if magnitude >= f32::MAX.into() {
        return f32::MAX.copysign(value as f32);
    }
    if magnitude >= f32::MIN_POSITIVE.into() {
        // The bits that an f32 lacks: half of their weight is added, and they are cut off.
        return f64::from_bits((value.to_bits() + HALF) & !LOW_BITS) as f32;
    }
    // In units of the smallest f32, which is exact.
    let units = value * f64::from_bits((1023 + 149) << 52);
    (units.round() * f64::from_bits((1023 - 149) << 52)) as f32
}

/// Reverses the bytes of every element.
fn swap(bytes: &mut [u8], size: usize) {
    fn by<const N: usize>(bytes: &mut [u8]) {
        bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|element| element.reverse());
    }
    match size {
        2 => by::<2>(bytes),
        4 => by::<4>(bytes),
        8 => by::<8>(bytes),
        16 => by::<16>(bytes),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert<S: Number, D: Number>(values: &[S], from_order: ByteOrder, to_order: ByteOrder) -> Vec<D> {
        let plan = |from, to| NumberPlan::new(from, to).unwrap().unwrap();
        let (native, other) = (S::NATIVE.datatype(ByteOrder::NATIVE), S::NATIVE.datatype(from_order));
        let mut stored = vec![0; size_of_val(values)];
        plan(&native, &other).run(bytemuck::cast_slice(values), &mut stored);
        let (native, target) = (D::NATIVE.datatype(ByteOrder::NATIVE), D::NATIVE.datatype(to_order));
        let mut middle = vec![0; values.len() * size_of::<D>()];
        plan(&other, &target).run(&stored, &mut middle);
        let mut out = vec![D::default(); values.len()];
        plan(&target, &native).run(&middle, bytemuck::cast_slice_mut(&mut out));
        out
    }

    #[test]
    fn integers_saturate() {
        use ByteOrder::{Big, Little};
        for (a, b) in [(Little, Little), (Big, Little), (Little, Big), (Big, Big)] {
            assert_eq!(convert::<i32, u8>(&[-1, 0, 255, 256, i32::MAX], a, b), [0, 0, 255, 255, 255]);
            assert_eq!(convert::<u64, i32>(&[0, u64::MAX, 7], a, b), [0, i32::MAX, 7]);
            assert_eq!(convert::<i64, i16>(&[i64::MIN, i64::MAX, -7], a, b), [i16::MIN, i16::MAX, -7]);
        }
    }

    #[test]
    fn floats_are_cut_towards_zero_and_saturate() {
        let values = [1.9, -1.9, 300.0, -300.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        assert_eq!(convert::<f64, i8>(&values, ByteOrder::Big, ByteOrder::Little), [1, -1, 127, -128, 127, -128, 0]);
        let narrow = convert::<f64, f32>(&[1e300, -1e300, 0.1], ByteOrder::Little, ByteOrder::Little);
        assert_eq!(narrow, [f32::INFINITY, f32::NEG_INFINITY, 0.1]);
    }

    #[test]
    fn the_slow_way_agrees_with_the_fast_one() {
        let values = [0.0, -0.0, 1.5, -2.5, 1e10, -1e10, 1e-310, 3.5e38, f64::INFINITY, 0.3, 255.99, 65535.5];
        let bytes: &[u8] = bytemuck::cast_slice(&values);
        let from = NativeNumber::F64.datatype(ByteOrder::NATIVE);
        for to in [NativeNumber::U8, NativeNumber::I16, NativeNumber::U32, NativeNumber::I64, NativeNumber::F64] {
            let to = to.datatype(ByteOrder::NATIVE);
            let fast = NumberPlan::new(&from, &to).unwrap().unwrap();
            let slow = NumberPlan { kind: PlanKind::Bitwise, ..fast.clone() };
            let (mut a, mut b) =
                (vec![0; values.len() * fast.output_size()], vec![0; values.len() * fast.output_size()]);
            fast.run(bytes, &mut a);
            slow.run(bytes, &mut b);
            assert_eq!(a, b, "{to:?}");
        }
    }
}
