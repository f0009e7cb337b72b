//! Datatypes from the text that `ls` shows of them: `u16le`, `vstr(nullterm,utf8)`, `compound(16){a@0:i32le,...}`.

use std::str::FromStr;

use h5live::{H5Type, Reference};

use h5live::model::{
    ArrayType, BitfieldType, ByteOrder, CharacterSet, ComplexType, CompoundMember, CompoundType, Datatype, EnumMember,
    EnumType, FixedStringType, FloatType, IntegerType, Name, Normalization, OpaqueType, Padding, ReferenceKind, Sign,
    StringPadding, TimeType, VarLenKind, VarLenType,
};

/// A datatype on the command line or in a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatatypeFromText(pub Datatype);

/// A text that is no datatype.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a datatype; examples are u16le, f64be, str(10,nullpad,utf8) and string")]
pub struct TypeParseError(String);

impl FromStr for DatatypeFromText {
    type Err = TypeParseError;

    fn from_str(text: &str) -> Result<Self, TypeParseError> {
        let mut rest = TypeParser(text);
        match rest.datatype() {
            Some(datatype) if rest.0.is_empty() && datatype.size() > 0 => Ok(DatatypeFromText(datatype)),
            _ => Err(TypeParseError(text.to_owned())),
        }
    }
}

/// The rest of a text.
struct TypeParser<'a>(&'a str);

impl<'a> TypeParser<'a> {
    fn accept(&mut self, token: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(token)?;
        Some(())
    }

    fn take_while(&mut self, of: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c| !of(c)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    fn word(&mut self) -> &'a str {
        self.take_while(|c| c.is_ascii_lowercase())
    }

    fn number<T: FromStr>(&mut self) -> Option<T> {
        self.take_while(|c| c.is_ascii_digit()).parse().ok()
    }

    /// Up to a token, which is eaten.
    fn until(&mut self, token: &str) -> Option<&'a str> {
        let (before, after) = self.0.split_once(token)?;
        self.0 = after;
        Some(before)
    }

    /// A name, in which anything may stand: up to the first `mark` after which there is a number (behind what `sign`
    /// takes away) and one of `ends`. The mark is eaten.
    fn name(&mut self, mark: char, sign: fn(&str) -> &str, ends: &[char]) -> Option<&'a str> {
        let is_end = |at: usize| {
            let number = sign(self.0.get(at + mark.len_utf8()..).unwrap_or_default());
            let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
            rest.len() < number.len() && rest.starts_with(ends)
        };
        let (at, _) = self.0.match_indices(mark).find(|(at, _)| is_end(*at))?;
        let (name, rest) = self.0.split_at(at);
        self.0 = rest.get(mark.len_utf8()..).unwrap_or_default();
        Some(name)
    }

    fn field<T: FromStr>(&mut self, name: &str) -> Option<T> {
        self.accept(name)?;
        self.number()
    }

    fn base(&mut self) -> Option<Box<Datatype>> {
        self.accept("<")?;
        let base = self.datatype()?;
        self.accept(">")?;
        Some(Box::new(base))
    }

    fn datatype(&mut self) -> Option<Datatype> {
        match self.word() {
            "i" => self.integer(Sign::Signed),
            "u" => self.integer(Sign::Unsigned),
            "bitfield" => {
                let Datatype::Integer(bits) = self.integer(Sign::Unsigned)? else { return None };
                let IntegerType { size, order, precision, offset, low_padding, high_padding, .. } = bits;
                Some(Datatype::Bitfield(BitfieldType { size, order, precision, offset, low_padding, high_padding }))
            }
            "f" => {
                let size = self.bytes()?;
                Datatype::float(size, self.order())
            }
            "float" => self.float(),
            "time" => self.time(),
            "bool" => Some(bool::datatype()),
            "string" => Some(String::datatype()),
            "str" => self.fixed_string(),
            "vstr" => {
                self.accept("(")?;
                let (padding, character_set) = self.text()?;
                self.accept(")")?;
                let kind = VarLenKind::String { padding, character_set };
                Some(Datatype::VarLen(VarLenType { kind, size: 16, base: Box::default() }))
            }
            "opaque" => {
                let size = self.field("(")?;
                self.accept(",\"")?;
                let tag = self.until("\")")?.replace("\\\"", "\"");
                Some(Datatype::Opaque(OpaqueType { size, tag: unescape_name(&tag) }))
            }
            "vlen" => Some(Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: 16, base: self.base()? })),
            "complex" => Some(Datatype::Complex(ComplexType { base: self.base()? })),
            "array" => {
                self.accept("[")?;
                let dims = self.until("]")?.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
                Some(Datatype::Array(ArrayType { dims, base: self.base()? }))
            }
            "ref" => {
                let kind = match self.until(")")? {
                    "(object" => ReferenceKind::Object1,
                    "(region" => ReferenceKind::Region1,
                    "(std" => ReferenceKind::Object2,
                    _ => return None,
                };
                Some(Reference::datatype_of(kind))
            }
            "enum" => self.enumeration(),
            "compound" => self.compound(),
            _ => None,
        }
    }

    fn time(&mut self) -> Option<Datatype> {
        let (size, order) = (self.bytes()?, self.order());
        let mut precision = u16::try_from(size * 8).ok()?;
        if self.accept("(prec=").is_some() {
            precision = self.number()?;
            self.accept(")")?;
        }
        Some(Datatype::Time(TimeType { size, order, precision }))
    }

    fn fixed_string(&mut self) -> Option<Datatype> {
        let size = self.field("(")?;
        let (mut padding, mut character_set) = (StringPadding::NullPadded, CharacterSet::Utf8);
        if self.accept(",").is_some() {
            (padding, character_set) = self.text()?;
        }
        self.accept(")")?;
        Some(Datatype::String(FixedStringType { size, padding, character_set }))
    }

    /// A size in bits, as bytes.
    fn bytes(&mut self) -> Option<u32> {
        let bits: u32 = self.number()?;
        (bits.is_multiple_of(8) && bits <= 1 << 16).then_some(bits / 8)
    }

    fn order(&mut self) -> ByteOrder {
        let orders = [("le", ByteOrder::Little), ("be", ByteOrder::Big), ("vax", ByteOrder::Vax)];
        let found = orders.into_iter().find(|(text, _)| self.accept(text).is_some());
        found.map_or(ByteOrder::Little, |(_, order)| order)
    }

    fn padding(&mut self) -> Option<Padding> {
        match self.word() {
            "zero" => Some(Padding::Zero),
            "one" => Some(Padding::One),
            _ => None,
        }
    }

    fn integer(&mut self, sign: Sign) -> Option<Datatype> {
        let size = self.bytes()?;
        let order = self.order();
        let mut integer =
            IntegerType { size, order, sign, precision: u16::try_from(size * 8).ok()?, ..IntegerType::default() };
        if self.0.starts_with("(prec=") {
            integer.precision = self.field("(prec=")?;
            integer.offset = self.field(",off=")?;
            self.accept(",pad=")?;
            integer.low_padding = self.padding()?;
            self.accept("/")?;
            integer.high_padding = self.padding()?;
            self.accept(")")?;
        }
        Some(Datatype::Integer(integer))
    }

    fn float(&mut self) -> Option<Datatype> {
        let size = self.field("(size=")?;
        self.accept(",order=")?;
        let order = self.order();
        let _ = self.accept("-");
        let precision = self.field(",prec=")?;
        let offset = self.field(",off=")?;
        let sign_position = self.field(",sign=")?;
        let (exponent_position, exponent_size) = (self.field(",exp=")?, self.field("+")?);
        let (mantissa_position, mantissa_size) = (self.field(",mant=")?, self.field("+")?);
        let exponent_bias = self.field(",bias=")?;
        self.accept(",norm=")?;
        let normalization = match self.word() {
            "implied" => Normalization::Implied,
            "msbset" => Normalization::MsbSet,
            "none" => Normalization::None,
            _ => return None,
        };
        self.accept(",pad=")?;
        let low_padding = self.padding()?;
        self.accept("/")?;
        let high_padding = self.padding()?;
        self.accept("/")?;
        let internal_padding = self.padding()?;
        self.accept(")")?;
        Some(Datatype::Float(FloatType {
            size,
            order,
            precision,
            offset,
            low_padding,
            high_padding,
            internal_padding,
            normalization,
            sign_position,
            exponent_position,
            exponent_size,
            mantissa_position,
            mantissa_size,
            exponent_bias,
        }))
    }

    /// The padding and the encoding of a string.
    fn text(&mut self) -> Option<(StringPadding, CharacterSet)> {
        let padding = match self.word() {
            "nullterm" => StringPadding::NullTerminated,
            "nullpad" => StringPadding::NullPadded,
            "spacepad" => StringPadding::SpacePadded,
            _ => return None,
        };
        self.accept(",")?;
        let character_set = match self.take_while(|c| c.is_ascii_alphanumeric()) {
            "ascii" => CharacterSet::Ascii,
            "utf8" => CharacterSet::Utf8,
            _ => return None,
        };
        Some((padding, character_set))
    }

    fn enumeration(&mut self) -> Option<Datatype> {
        let base = self.base()?;
        self.accept("{")?;
        let mut members = Vec::new();
        while self.accept("}").is_none() {
            let name = unescape_name(self.name('=', |rest| rest.strip_prefix('-').unwrap_or(rest), &[',', '}'])?);
            let negative = self.accept("-").is_some();
            let value: i128 = self.number()?;
            let value = h5live::Value::Integer(if negative { -value } else { value });
            // An integer needs no heap.
            let store = h5live::model::memory::MemoryStore::new();
            let value = h5live::Value::encode_all(&[value], &base, &store).ok()?;
            members.push(EnumMember { name, value });
            let _ = self.accept(",");
        }
        Some(Datatype::Enum(EnumType { base, members }))
    }

    fn compound(&mut self) -> Option<Datatype> {
        let size = self.field("(")?;
        self.accept("){")?;
        let mut members = Vec::new();
        while self.accept("}").is_none() {
            let name = unescape_name(self.name('@', |rest| rest, &[':'])?);
            let offset = self.number()?;
            self.accept(":")?;
            members.push(CompoundMember { name, offset, datatype: self.datatype()? });
            let _ = self.accept(",");
        }
        let fits =
            |member: &CompoundMember| member.offset.checked_add(member.datatype.size()).is_some_and(|end| end <= size);
        members.iter().all(fits).then_some(Datatype::Compound(CompoundType { size, members }))
    }
}

/// Reverses the escaping of a name.
pub fn unescape_name(text: &str) -> Name {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let letter = |byte: &u8| match byte {
            b't' => b'\t',
            b'n' => b'\n',
            b'r' => b'\r',
            other => *other,
        };
        match (first, after) {
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digits = [*high, *low];
                let byte = std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
                bytes.extend(byte);
                rest = after;
            }
            (b'\\', [escaped, after @ ..]) => {
                bytes.push(letter(escaped));
                rest = after;
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_what_their_text_says() {
        let texts = [
            "i8",
            "u16be",
            "i64vax",
            "u128le",
            "i32le(prec=20,off=3,pad=zero/one)",
            "bitfield16le(prec=12,off=2,pad=zero/zero)",
            "f16be",
            "f64le",
            "float(size=16,order=le,prec=80,off=0,sign=79,exp=64+15,mant=0+64,bias=16383,norm=none,pad=zero/zero/zero)",
            "time32le",
            "time64be(prec=40)",
            "complex<f64le>",
            "opaque(16,\"a \\\"tag\\\" with \\t\")",
            "str(10,spacepad,ascii)",
            "vstr(nullterm,utf8)",
            "compound(24){a@0:i32le,b\\n\\xFF@8:vlen<array[3,4]<enum<u8>{RED=1,x y=2}>>}",
            "compound(4){}",
            "compound(16){,:{}@@0:f64le,b@c=1@8:u8}",
            "enum<i8>{a b,c=d=5,=7}",
            "enum<i8>{FALSE=0,TRUE=1}",
            "enum<i16be>{a=-3}",
            "ref(object)",
            "ref(region)",
            "ref(std)",
        ];
        for text in texts {
            let DatatypeFromText(datatype) = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(datatype.to_string(), text);
        }
        assert_eq!("bool".parse(), Ok(DatatypeFromText(bool::datatype())));
        assert_eq!("string".parse(), Ok(DatatypeFromText(String::datatype())));
    }

    #[test]
    fn refuses_what_is_no_type() {
        for text in ["", "i7", "f24le", "u16bex", "str(0)", "compound(2){a@0:i32le}", "enum<u8>{A=300}", "array[x]<u8>"]
        {
            assert!(text.parse::<DatatypeFromText>().is_err(), "{text}");
        }
    }
}
