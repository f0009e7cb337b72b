//! Numbers of any layout, bit by bit: the slow way, for those that this machine does not have.

use h5live_model::{BitfieldType, ByteOrder, Datatype, FloatType, IntegerType, Normalization, Padding, Sign};

use super::ConvertError;

/// The exact value of a number of any layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExactNumber {
    NotANumber {
        negative: bool,
    },
    Infinite {
        negative: bool,
    },
    /// `mantissa * 2^exponent`.
    Finite {
        negative: bool,
        mantissa: u128,
        exponent: i32,
    },
}

impl ExactNumber {
    pub(super) fn is_zero(self) -> bool {
        matches!(self, ExactNumber::Finite { mantissa: 0, .. })
    }
}

/// How a float is rounded when it has too few bits. libhdf5 leaves conversions between types of C to the compiler. It
/// does all others itself, in a different way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest float, and of two to the even one.
    TiesToEven,
    /// The same, but a value larger than the largest float becomes infinite even if that float is the nearest one.
    TiesToEvenOrInfinite,
    /// To the nearest float, and of two to the one further from zero; nothing is rounded up to infinity.
    AwayFromZero,
}

/// Where the bits of a number are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NumberLayout {
    Integer(IntegerType),
    Float(FloatType),
}

impl NumberLayout {
    /// The layout of a number, of an enum or of bits; `None` for other types.
    #[inline]
    pub(super) fn from_datatype(datatype: &Datatype) -> Option<Result<Self, ConvertError>> {
        Some(match datatype {
            Datatype::Integer(integer) => NumberLayout::from_integer(integer),
            Datatype::Float(float) => NumberLayout::from_float(float),
            Datatype::Bitfield(bits) => NumberLayout::from_bitfield(bits),
            Datatype::Enum(enumeration) => return NumberLayout::from_datatype(&enumeration.base),
            Datatype::Time(time) => NumberLayout::from_integer(&IntegerType {
                size: time.size,
                order: time.order,
                precision: time.precision,
                sign: Sign::Signed,
                ..IntegerType::default()
            }),
            _ => return None,
        })
    }

    #[inline]
    pub(super) fn from_integer(integer: &IntegerType) -> Result<Self, ConvertError> {
        let IntegerType { size, precision, offset, .. } = *integer;
        check_layout(size, precision, offset)?;
        Ok(NumberLayout::Integer(integer.clone()))
    }

    pub(super) fn from_bitfield(bits: &BitfieldType) -> Result<Self, ConvertError> {
        let BitfieldType { size, order, offset, precision, low_padding, high_padding } = *bits;
        NumberLayout::from_integer(&IntegerType {
            size,
            order,
            sign: Sign::Unsigned,
            offset,
            precision,
            low_padding,
            high_padding,
        })
    }

    pub(super) fn from_float(float: &FloatType) -> Result<Self, ConvertError> {
        let FloatType { size, precision, offset, .. } = *float;
        check_layout(size, precision, offset)?;
        let bits = u32::from(precision) + u32::from(offset);
        let field = |position: u8, len: u8| u32::from(position) + u32::from(len) <= bits.max(size * 8);
        let fits = u32::from(float.sign_position) < size * 8
            && field(float.exponent_position, float.exponent_size)
            && field(float.mantissa_position, float.mantissa_size)
            && (1..=30).contains(&float.exponent_size)
            && float.mantissa_size <= 120
            && float.exponent_bias < 1 << 30;
        if fits {
            Ok(NumberLayout::Float(float.clone()))
        } else {
            Err(ConvertError::Layout { size, precision, offset })
        }
    }

    pub(super) fn size(&self) -> usize {
        match self {
            NumberLayout::Integer(integer) => integer.size as usize,
            NumberLayout::Float(float) => float.size as usize,
        }
    }

    /// The type in short: u16, i32, f64.
    pub(super) fn name(&self) -> String {
        match self {
            NumberLayout::Integer(IntegerType { precision, sign: Sign::Signed, .. }) => format!("i{precision}"),
            NumberLayout::Integer(IntegerType { precision, .. }) => format!("u{precision}"),
            NumberLayout::Float(float) => format!("f{}", float.precision),
        }
    }

    /// The value of an element, for messages.
    pub(super) fn text(&self, element: &[u8]) -> String {
        match self.load(element) {
            ExactNumber::NotANumber { .. } => "NaN".to_owned(),
            ExactNumber::Infinite { negative } => if negative { "-inf" } else { "inf" }.to_owned(),
            ExactNumber::Finite { negative, mantissa, exponent } => {
                let sign = if negative { "-" } else { "" };
                match self {
                    NumberLayout::Integer(_) => format!("{sign}{mantissa}"),
                    NumberLayout::Float(_) => format!("{sign}{:?}", mantissa as f64 * 2f64.powi(exponent)),
                }
            }
        }
    }

    /// Whether C has a type for it, beside those that are native here: half and extended floats.
    pub(super) fn is_c_type(&self) -> bool {
        match self {
            NumberLayout::Integer(_) => false,
            NumberLayout::Float(float) => {
                let float = (float.size, float.precision, float.exponent_size, float.mantissa_size, float.order);
                [(2, 16, 5, 10, ByteOrder::NATIVE), (16, 80, 15, 64, ByteOrder::NATIVE)].contains(&float)
            }
        }
    }

    fn order(&self) -> ByteOrder {
        match self {
            NumberLayout::Integer(integer) => integer.order,
            NumberLayout::Float(float) => float.order,
        }
    }

    /// Copies significant bits unchanged from an element of another layout. If there are too many, copies the lowest
    /// ones.
    pub(super) fn copy_low_bits(&self, from: &NumberLayout, from_element: &[u8], into: &mut [u8]) {
        let (NumberLayout::Integer(from), NumberLayout::Integer(to)) = (from, self) else { return };
        let bits =
            load_bits(from_element, from.order) >> from.offset & low_bits_mask(from.precision.min(to.precision).into());
        let padding = padding_bits(to.size, to.precision, to.offset, to.low_padding, to.high_padding);
        store_bits(bits << to.offset | padding, into, to.order);
    }

    /// The value of an element of [`NumberLayout::size`] bytes.
    pub(super) fn load(&self, element: &[u8]) -> ExactNumber {
        let bits = load_bits(element, self.order());
        match self {
            NumberLayout::Integer(integer) => load_integer(integer, bits),
            NumberLayout::Float(float) => load_float(float, bits),
        }
    }

    /// Stores a value as near as the layout has one.
    pub(super) fn store(&self, value: ExactNumber, rounding: Rounding, element: &mut [u8]) {
        let bits = match self {
            NumberLayout::Integer(integer) => store_integer(integer, value),
            NumberLayout::Float(float) => store_float(float, value, rounding),
        };
        store_bits(bits, element, self.order());
    }
}

fn check_layout(size: u32, precision: u16, offset: u16) -> Result<(), ConvertError> {
    let fits = (1..=16).contains(&size) && precision > 0 && u32::from(precision) + u32::from(offset) <= size * 8;
    if fits { Ok(()) } else { Err(ConvertError::Layout { size, precision, offset }) }
}

/// The bits of an element, its least significant first.
fn load_bits(element: &[u8], order: ByteOrder) -> u128 {
    let byte = |bits: u128, byte: &u8| bits << 8 | u128::from(*byte);
    match order {
        ByteOrder::Little => element.iter().rev().fold(0, byte),
        ByteOrder::Big => element.iter().fold(0, byte),
        ByteOrder::Vax => element.chunks(2).flat_map(|word| word.iter().rev()).fold(0, byte),
    }
}

fn store_bits(mut bits: u128, element: &mut [u8], order: ByteOrder) {
    let mut put = |byte: &mut u8| {
        *byte = bits as u8;
        bits >>= 8;
    };
    match order {
        ByteOrder::Little => element.iter_mut().for_each(&mut put),
        ByteOrder::Big => element.iter_mut().rev().for_each(&mut put),
        ByteOrder::Vax => element.chunks_mut(2).rev().for_each(|word| word.iter_mut().for_each(&mut put)),
    }
}

fn low_bits_mask(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

/// The bits outside `precision` bits at `offset`, filled as the padding says.
fn padding_bits(size: u32, precision: u16, offset: u16, low: Padding, high: Padding) -> u128 {
    let below = low_bits_mask(u32::from(offset));
    let above = low_bits_mask(size * 8) & !low_bits_mask(u32::from(offset) + u32::from(precision));
    let fill = |padding, bits| if padding == Padding::One { bits } else { 0 };
    fill(low, below) | fill(high, above)
}

fn load_integer(integer: &IntegerType, bits: u128) -> ExactNumber {
    let precision = u32::from(integer.precision);
    let value = bits >> integer.offset & low_bits_mask(precision);
    let negative = integer.sign == Sign::Signed && value >> (precision - 1) & 1 == 1;
    let mantissa = if negative { (!value & low_bits_mask(precision)) + 1 } else { value };
    ExactNumber::Finite { negative, mantissa, exponent: 0 }
}

fn store_integer(integer: &IntegerType, value: ExactNumber) -> u128 {
    let precision = u32::from(integer.precision);
    let signed = integer.sign == Sign::Signed;
    let (highest, lowest) = if signed {
        (low_bits_mask(precision - 1), low_bits_mask(precision - 1) + 1)
    } else {
        (low_bits_mask(precision), 0)
    };
    let (negative, magnitude) = match value {
        ExactNumber::NotANumber { .. } => (false, 0),
        ExactNumber::Infinite { negative } => (negative, u128::MAX),
        ExactNumber::Finite { negative, mantissa, exponent } => (negative, shift_mantissa(mantissa, exponent)),
    };
    let value =
        if negative { magnitude.min(lowest).wrapping_neg() & low_bits_mask(precision) } else { magnitude.min(highest) };
    let IntegerType { size, offset, low_padding, high_padding, .. } = *integer;
    value << offset | padding_bits(size, integer.precision, offset, low_padding, high_padding)
}

/// `mantissa * 2^exponent`, cut to an integer, or the largest one if it is larger.
fn shift_mantissa(mantissa: u128, exponent: i32) -> u128 {
    match u32::try_from(exponent) {
        _ if mantissa == 0 => 0,
        Ok(left) if left <= mantissa.leading_zeros() => mantissa << left,
        Ok(_) => u128::MAX,
        Err(_) => mantissa.checked_shr(exponent.unsigned_abs()).unwrap_or(0),
    }
}

fn load_float(float: &FloatType, bits: u128) -> ExactNumber {
    let exponent_max = low_bits_mask(u32::from(float.exponent_size));
    let mantissa_size = u32::from(float.mantissa_size);
    let negative = bits >> float.sign_position & 1 == 1;
    let exponent = bits >> float.exponent_position & exponent_max;
    let stored = bits >> float.mantissa_position & low_bits_mask(mantissa_size);
    let implied = float.normalization == Normalization::Implied;
    // VAX floats have no infinities; their all-ones exponent is a number like others, and a sign with a zero
    // exponent is a reserved operand.
    let vax = float.order == ByteOrder::Vax;
    if exponent == exponent_max && !vax {
        let fraction = if implied { stored } else { stored & low_bits_mask(mantissa_size.saturating_sub(1)) };
        return if fraction == 0 { ExactNumber::Infinite { negative } } else { ExactNumber::NotANumber { negative } };
    }
    if vax && exponent == 0 {
        let zero = ExactNumber::Finite { negative: false, mantissa: 0, exponent: 0 };
        return if negative { ExactNumber::NotANumber { negative } } else { zero };
    }
    let bias = float.exponent_bias as i32;
    let (mantissa, biased) = match (implied, exponent) {
        (true, 0) => (stored, 1),
        (true, exponent) => (stored | 1 << mantissa_size, exponent as i32),
        (false, 0) => (stored, 1),
        (false, exponent) => (stored, exponent as i32),
    };
    let fraction_bits = if implied { mantissa_size } else { mantissa_size.saturating_sub(1) };
    ExactNumber::Finite { negative, mantissa, exponent: biased - bias - fraction_bits as i32 }
}

fn store_float(float: &FloatType, value: ExactNumber, rounding: Rounding) -> u128 {
    let mantissa_size = u32::from(float.mantissa_size);
    let exponent_max = low_bits_mask(u32::from(float.exponent_size));
    let implied = float.normalization == Normalization::Implied;
    let leading = if implied { 0 } else { 1u128 << mantissa_size.saturating_sub(1) };
    let (negative, exponent, stored) = match value {
        ExactNumber::NotANumber { negative } => (negative, exponent_max, low_bits_mask(mantissa_size)),
        ExactNumber::Infinite { negative } => (negative, exponent_max, leading),
        ExactNumber::Finite { negative, mantissa, exponent } => {
            let (exponent, stored) = round_mantissa(float, mantissa, exponent, rounding);
            if exponent >= exponent_max { (negative, exponent_max, leading) } else { (negative, exponent, stored) }
        }
    };
    let FloatType { size, precision, offset, low_padding, high_padding, .. } = *float;
    u128::from(negative) << float.sign_position
        | exponent << float.exponent_position
        | stored << float.mantissa_position
        | padding_bits(size, precision, offset, low_padding, high_padding)
}

/// The biased exponent and the stored mantissa nearest to a value.
fn round_mantissa(float: &FloatType, mantissa: u128, exponent: i32, rounding: Rounding) -> (u128, u128) {
    if mantissa == 0 {
        return (0, 0);
    }
    let implied = float.normalization == Normalization::Implied;
    let fraction_bits = if implied { i32::from(float.mantissa_size) } else { i32::from(float.mantissa_size) - 1 };
    let bias = float.exponent_bias as i32;
    let width = 128 - mantissa.leading_zeros() as i32;
    // The exponent of the leading bit, and the smallest that a normal number may have.
    let leading = exponent.saturating_add(width - 1);
    let lowest = 1 - bias;
    let unit = leading.max(lowest) - fraction_bits;
    let mut biased = leading.max(lowest).saturating_add(bias);
    let largest = biased as i64 + 2 == 1 << float.exponent_size;
    let mut stored = match unit - exponent {
        shift if shift <= 0 => mantissa << -shift,
        shift if shift > 128 => 0,
        shift => {
            let (down, rest) =
                (mantissa.checked_shr(shift as u32).unwrap_or(0), mantissa & low_bits_mask(shift as u32));
            let half = 1u128 << (shift - 1);
            let at_the_top = largest && down == low_bits_mask(fraction_bits as u32 + 1) && rest > 0;
            down + u128::from(match rounding {
                Rounding::TiesToEvenOrInfinite if at_the_top => true,
                Rounding::TiesToEven | Rounding::TiesToEvenOrInfinite => rest > half || (rest == half && down & 1 == 1),
                Rounding::AwayFromZero => rest >= half && !at_the_top,
            })
        }
    };
    if stored >> (fraction_bits + 1) != 0 {
        stored >>= 1;
        biased = biased.saturating_add(1);
    }
    let normal = stored >> fraction_bits & 1 == 1;
    let exponent = if normal { u128::try_from(biased).unwrap_or(0) } else { 0 };
    (exponent, if implied { stored & low_bits_mask(fraction_bits as u32) } else { stored })
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5live_model::Datatype;

    fn float(size: u32, order: ByteOrder) -> NumberLayout {
        let Some(Datatype::Float(float)) = Datatype::float(size, order) else { panic!("an IEEE size") };
        NumberLayout::from_float(&float).unwrap()
    }

    #[test]
    fn ieee_layouts_are_those_of_this_machine() {
        let (wide, narrow) = (float(8, ByteOrder::Little), float(4, ByteOrder::Big));
        let samples = [0.0, 1.0, -1.5, 1e300, -1e-300, 5e-324, 1e-40, 3.4028235e38, 3.4028236e38, f64::INFINITY, 0.1];
        for x in samples.into_iter().flat_map(|x: f64| [x, -x]) {
            let mut bytes = [0; 8];
            wide.store(wide.load(&x.to_le_bytes()), Rounding::TiesToEven, &mut bytes);
            assert_eq!(f64::from_le_bytes(bytes), x);
            let mut bytes = [0; 4];
            narrow.store(wide.load(&x.to_le_bytes()), Rounding::TiesToEven, &mut bytes);
            assert_eq!(f32::from_be_bytes(bytes), x as f32, "{x}");
        }
        let mut bytes = [0; 4];
        narrow.store(wide.load(&f64::NAN.to_le_bytes()), Rounding::TiesToEven, &mut bytes);
        assert!(f32::from_be_bytes(bytes).is_nan());
    }

    #[test]
    fn integers_of_odd_precision_saturate() {
        let odd = IntegerType { size: 2, precision: 10, offset: 3, sign: Sign::Signed, ..Default::default() };
        let odd = NumberLayout::from_integer(&odd).unwrap();
        let Datatype::Integer(long) = Datatype::integer(8, ByteOrder::Little, Sign::Signed) else { panic!() };
        let long = NumberLayout::from_integer(&long).unwrap();
        for (x, want) in [(0, 0), (-1, -1), (511, 511), (512, 511), (-512, -512), (-9999, -512), (i64::MIN, -512)] {
            let (mut bytes, mut back) = ([0; 2], [0; 8]);
            odd.store(long.load(&i64::to_le_bytes(x)), Rounding::TiesToEven, &mut bytes);
            long.store(odd.load(&bytes), Rounding::TiesToEven, &mut back);
            assert_eq!(i64::from_le_bytes(back), want);
        }
    }

    #[test]
    fn vax_words_are_swapped() {
        let bits = 0x0123_4567_89AB_CDEFu64.into();
        let mut bytes = [0; 8];
        store_bits(bits, &mut bytes, ByteOrder::Vax);
        assert_eq!(bytes, [0x23, 0x01, 0x67, 0x45, 0xAB, 0x89, 0xEF, 0xCD]);
        assert_eq!(load_bits(&bytes, ByteOrder::Vax), bits);
    }
}
