//! Whether a conversion of numbers keeps their values.

use h5live_model::{ByteOrder, FloatType, IntegerType, Sign};

use super::native::{NativeNumber, Number, SaturatingCast, with_native};
use super::number_layout::{ExactNumber, NumberLayout};

/// What to do with a value that the other type does not have: an integer out of range, a fraction for an integer,
/// an integer that a float would round, a number too large for a float, a text that is longer than its place.
///
/// A float that becomes a float of fewer bits is rounded to the nearest one in both cases. Floats are made for that.
///
/// [`Options::conversion`](crate::Options::conversion) sets it for a file, and
/// [`Dataset::with_conversion`](crate::Dataset::with_conversion) for one handle.
///
/// ```
/// use h5live::{ConversionPolicy, File};
///
/// let file = File::in_memory();
/// let data = file.new_dataset::<u16>().shape(&[0]).max_shape(&[h5live::UNLIMITED]).create("data")?;
/// let error = data.append(&[7.0, 1.5]).unwrap_err();
/// assert!(error.to_string().ends_with("values[1]: 1.5 does not fit u16 (it would become 1)"), "{error}");
///
/// data.with_conversion(ConversionPolicy::Lossy).append(&[1.5, -1.0, 1e9])?;
/// assert_eq!(data.read::<u16>()?, [1, 0, 65535]);
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConversionPolicy {
    /// It is an error that names the value and the type. Nothing of an append or of an attribute is stored.
    #[default]
    Checked,
    /// The nearest value that the type has is taken, as libhdf5 does it: out of range, the smallest or the largest one
    /// (infinity for floats). A fraction is cut towards zero. Not-a-number becomes zero in an integer. A text is cut.
    Lossy,
}

/// Whether no value of one layout changes in the other one.
pub(super) fn is_lossless(from: &NumberLayout, to: &NumberLayout) -> bool {
    let magnitude_bits = |integer: &IntegerType| integer.precision - u16::from(integer.sign == Sign::Signed);
    match (from, to) {
        _ if from == to => true,
        (NumberLayout::Integer(from), NumberLayout::Integer(to)) => {
            (from.sign == Sign::Unsigned || to.sign == Sign::Signed) && magnitude_bits(from) <= magnitude_bits(to)
        }
        (NumberLayout::Integer(from), NumberLayout::Float(to)) => {
            let bits = magnitude_bits(from);
            bits <= u16::from(to.mantissa_size) && u32::from(bits) < to.exponent_bias
        }
        (NumberLayout::Float(_), NumberLayout::Integer(_)) => false,
        (NumberLayout::Float(from), NumberLayout::Float(to)) => is_wider(from, to),
    }
}

/// Whether a float reaches as far as another one. VAX floats have no infinity.
fn is_wider(from: &FloatType, to: &FloatType) -> bool {
    let same_form = (from.normalization, from.exponent_size) == (to.normalization, to.exponent_size);
    to.order != ByteOrder::Vax
        && (to.exponent_bias > from.exponent_bias
            || same_form && to.exponent_bias == from.exponent_bias && to.mantissa_size >= from.mantissa_size)
}

/// Whether a number is still what it was after it was converted. Of floats, only that it has not become infinite.
trait Keeps<D> {
    fn keeps(self, converted: D) -> bool;
}

macro_rules! keeps_integer {
    ($($s:ident)*) => {$( keeps_integer!(@from $s: u8 i8 u16 i16 u32 i32 u64 i64); keeps_integer!(@float $s: f32 f64); )*};
    (@from $s:ident: $($d:ident)*) => {$(
        impl Keeps<$d> for $s {
            #[inline(always)]
            fn keeps(self, converted: $d) -> bool {
                let back: $s = converted.cast();
                back == self
            }
        }
    )*};
    // The largest integer is no float if it has more bits than the mantissa. What becomes it was larger.
    (@float $s:ident: $($f:ident)*) => {$(
        impl Keeps<$f> for $s {
            #[inline(always)]
            fn keeps(self, converted: $f) -> bool {
                let back: $s = converted.cast();
                back == self && ($s::BITS <= $f::MANTISSA_DIGITS || self != $s::MAX)
            }
        }
        impl Keeps<$s> for $f {
            #[inline(always)]
            fn keeps(self, converted: $s) -> bool {
                let back: $f = converted.cast();
                back == self && ($s::BITS <= $f::MANTISSA_DIGITS || converted != $s::MAX)
            }
        }
    )*};
}

keeps_integer! { u8 i8 u16 i16 u32 i32 u64 i64 }

macro_rules! keeps_float {
    ($($s:ident $d:ident)*) => {$(
        impl Keeps<$d> for $s {
            #[inline(always)]
            fn keeps(self, converted: $d) -> bool {
                converted.is_finite() || !self.is_finite()
            }
        }
    )*};
}

keeps_float! { f32 f32 f32 f64 f64 f32 f64 f64 }

/// Numbers that are compared at a time, without a branch for each.
const BLOCK_ELEMENTS: usize = 256;

fn first_changed<S: Number + Keeps<D>, D: Number>(
    from: &[u8],
    to: &[u8],
    load_from: impl Fn(&[u8]) -> S,
    load_to: impl Fn(&[u8]) -> D,
) -> Option<usize> {
    let (a, b) = (size_of::<S>(), size_of::<D>());
    let keeps = |(from, to): (&[u8], &[u8])| load_from(from).keeps(load_to(to));
    let blocks = from.chunks(BLOCK_ELEMENTS * a).zip(to.chunks(BLOCK_ELEMENTS * b));
    for (block, (from, to)) in blocks.enumerate() {
        let pairs = || from.chunks_exact(a).zip(to.chunks_exact(b));
        if !pairs().fold(true, |all, pair| all & keeps(pair)) {
            return pairs().position(|pair| !keeps(pair)).map(|at| block * BLOCK_ELEMENTS + at);
        }
    }
    None
}

fn load<T: Number>(element: &[u8]) -> T {
    bytemuck::pod_read_unaligned(element)
}

fn load_swapped<T: Number>(element: &[u8]) -> T {
    let mut value = T::default();
    let bytes = bytemuck::bytes_of_mut(&mut value);
    bytes.iter_mut().zip(element.iter().rev()).for_each(|(to, from)| *to = *from);
    value
}

/// The position of the first native number that is not what it was, after `from` was converted to `to`. A number may
/// have its bytes in the other order.
pub(super) fn first_changed_native(
    (a, swap_a): (NativeNumber, bool),
    (b, swap_b): (NativeNumber, bool),
    from: &[u8],
    to: &[u8],
) -> Option<usize> {
    with_native!(a, A => with_native!(b, B => {
        if !swap_a && !swap_b {
            // Known functions, so that the loop is compiled for them.
            return first_changed::<A, B>(from, to, load::<A>, load::<B>);
        }
        let load_a = if swap_a { load_swapped::<A> } else { load::<A> };
        let load_b = if swap_b { load_swapped::<B> } else { load::<B> };
        first_changed::<A, B>(from, to, load_a, load_b)
    }))
}

/// As [`first_changed_native`], of numbers of any layout.
pub(super) fn first_changed_of(a: &NumberLayout, b: &NumberLayout, from: &[u8], to: &[u8]) -> Option<usize> {
    let both_floats = matches!((a, b), (NumberLayout::Float(_), NumberLayout::Float(_)));
    let mut pairs = from.chunks_exact(a.size()).zip(to.chunks_exact(b.size()));
    pairs.position(|(from, to)| !is_same(a.load(from), b.load(to), both_floats))
}

/// Whether two numbers are one; floats may be rounded.
pub(super) fn is_same(from: ExactNumber, to: ExactNumber, rounded: bool) -> bool {
    match (from, to) {
        (ExactNumber::NotANumber { .. }, ExactNumber::NotANumber { .. }) => true,
        (ExactNumber::Infinite { negative }, ExactNumber::Infinite { negative: other }) => negative == other,
        (ExactNumber::Finite { .. }, ExactNumber::Finite { .. }) if rounded => true,
        (ExactNumber::Finite { negative, mantissa, exponent }, ExactNumber::Finite { .. }) => {
            let ExactNumber::Finite { negative: other_sign, mantissa: other, exponent: at } = to else { return false };
            let normal = |mantissa: u128, exponent: i32| {
                let zeros = mantissa.trailing_zeros();
                (mantissa.checked_shr(zeros).unwrap_or(0), exponent.saturating_add_unsigned(zeros))
            };
            match (mantissa, other) {
                (0, 0) => true,
                (0, _) | (_, 0) => false,
                _ => negative == other_sign && normal(mantissa, exponent) == normal(other, at),
            }
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;
