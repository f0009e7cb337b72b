//! Numbers: any integer or float to any other.

use h5live_model::{ByteOrder, Datatype};

use super::exact::{self, ConversionPolicy};
use super::native::{NativeNumber, Number, SaturatingCast, with_native};
use super::number_layout::{ExactNumber, NumberLayout, Rounding};
use super::{ConvertError, InexactValue, class};

/// Elements that are swapped and converted at a time: few enough to stay in the nearest cache.
const BLOCK_ELEMENTS: usize = 512;

/// How a number in the file becomes one in memory, or the other way round.
#[derive(Debug, Clone)]
pub(crate) struct NumberPlan {
    from: NumberFormat,
    to: NumberFormat,
    kind: PlanKind,
    rounding: Rounding,
    /// Whether no value changes.
    is_lossless: bool,
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
        let datatype = match datatype {
            Datatype::Enum(enumeration) => &enumeration.base,
            other => other,
        };
        let native = NativeNumber::of(datatype);
        Some(NumberLayout::from_datatype(datatype)?.map(|layout| NumberFormat { layout, native }))
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
        if from.native.is_some() && from.native == to.native {
            let (kind, rounding) = (PlanKind::Copy, Rounding::TiesToEven);
            return NumberPlan { from, to, kind, rounding, is_lossless: true };
        }
        let kind = match (from.native, to.native) {
            (Some((a, _)), Some((b, _))) if a == b => PlanKind::Swap,
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
        let is_lossless = exact::is_lossless(&from.layout, &to.layout);
        NumberPlan { from, to, kind, rounding, is_lossless }
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

    /// Whether no value changes.
    pub(crate) fn is_lossless(&self) -> bool {
        self.is_lossless
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
    ///
    /// # Errors
    /// [`ConvertError::Inexact`] if a value changes, and the conversion is to be exact.
    #[inline]
    pub(crate) fn convert(&self, from: &[u8], to: &mut [u8], conversion: ConversionPolicy) -> Result<(), ConvertError> {
        self.convert_values(from, to);
        if self.is_lossless || conversion == ConversionPolicy::Lossy {
            Ok(())
        } else {
            self.check_values_kept(from, to)
        }
    }

    fn check_values_kept(&self, from: &[u8], to: &[u8]) -> Result<(), ConvertError> {
        let changed = match (self.from.native, self.to.native) {
            (Some(a), Some(b)) => exact::first_changed_native(a, b, from, to),
            _ => exact::first_changed_of(&self.from.layout, &self.to.layout, from, to),
        };
        let Some(at) = changed else { return Ok(()) };
        let text = |layout: &NumberLayout, bytes: &[u8]| {
            bytes.chunks_exact(layout.size()).nth(at).map(|element| layout.text(element)).unwrap_or_default()
        };
        let (value, becomes) = (text(&self.from.layout, from), text(&self.to.layout, to));
        Err(InexactValue { value, class: self.to.layout.name(), becomes }.into())
    }

    /// Converts as many elements as both sides have, to the nearest values.
    pub(crate) fn convert_values(&self, from: &[u8], to: &mut [u8]) {
        match (self.kind, self.from.native, self.to.native) {
            (PlanKind::Copy, ..) => {
                let n = from.len().min(to.len());
                to[..n].copy_from_slice(&from[..n]);
            }
            (PlanKind::Swap, ..) => {
                let n = from.len().min(to.len());
                to[..n].copy_from_slice(&from[..n]);
                swap_bytes(&mut to[..n], self.input_size());
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
                            swap_bytes(scratch, a.size());
                            scratch
                        }
                        None => from,
                    };
                    if (a, b, self.rounding) == (NativeNumber::F64, NativeNumber::F32, Rounding::AwayFromZero) {
                        narrow_slice_to_f32(from, to);
                    } else {
                        with_native!(a, A => with_native!(b, B => cast_slice::<A, B>(from, to)));
                    }
                    if swap_b {
                        swap_bytes(to, b.size());
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
        let none = ConvertError::Class { file: class(from), memory: "integer" };
        Ok(IntegerPlan(NumberFormat::new(from).ok_or(none)??.layout))
    }

    /// Stores the nearest value that an element can have. Returns whether it is an integer that is stored exactly.
    pub(crate) fn store(&self, value: i128, element: &mut [u8]) -> bool {
        let real = ExactNumber::Finite { negative: value < 0, mantissa: value.unsigned_abs(), exponent: 0 };
        self.0.store(real, Rounding::TiesToEven, element);
        exact::is_same(real, self.0.load(element), false)
    }

    /// Stores the nearest value that an element can have.
    pub(crate) fn store_float(&self, value: f64, element: &mut [u8]) {
        let Some(Datatype::Float(double)) = Datatype::float(8, ByteOrder::Little) else { return };
        self.0.store(NumberLayout::Float(double).load(&value.to_le_bytes()), Rounding::TiesToEven, element);
    }

    /// The type of the elements, in short.
    pub(crate) fn name(&self) -> String {
        self.0.name()
    }

    /// The value of an element, as a text.
    pub(crate) fn text(&self, element: &[u8]) -> String {
        self.0.text(element)
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

fn cast_slice<S: Number + SaturatingCast<D>, D: Number>(from: &[u8], to: &mut [u8]) {
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

fn narrow_slice_to_f32(from: &[u8], to: &mut [u8]) {
    for (from, to) in from.as_chunks::<8>().0.iter().zip(to.as_chunks_mut::<4>().0) {
        *to = narrow_to_f32(f64::from_ne_bytes(*from)).to_ne_bytes();
    }
}

/// The nearest `f32` as [`Rounding::AwayFromZero`] has it.
fn narrow_to_f32(value: f64) -> f32 {
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
fn swap_bytes(bytes: &mut [u8], size: usize) {
    // As integers: the compiler then swaps several at a time.
    macro_rules! swap_as {
        ($t:ty) => {{
            let elements = bytes.as_chunks_mut::<{ size_of::<$t>() }>().0;
            elements.iter_mut().for_each(|element| *element = <$t>::from_ne_bytes(*element).swap_bytes().to_ne_bytes());
        }};
    }
    match size {
        2 => swap_as!(u16),
        4 => swap_as!(u32),
        8 => swap_as!(u64),
        16 => swap_as!(u128),
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
        plan(&native, &other).convert_values(bytemuck::cast_slice(values), &mut stored);
        let (native, target) = (D::NATIVE.datatype(ByteOrder::NATIVE), D::NATIVE.datatype(to_order));
        let mut middle = vec![0; values.len() * size_of::<D>()];
        plan(&other, &target).convert_values(&stored, &mut middle);
        let mut out = vec![D::default(); values.len()];
        plan(&target, &native).convert_values(&middle, bytemuck::cast_slice_mut(&mut out));
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
            fast.convert_values(bytes, &mut a);
            slow.convert_values(bytes, &mut b);
            assert_eq!(a, b, "{to:?}");
        }
    }
}
