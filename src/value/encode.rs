//! How values become elements of a datatype: made once, run over many values.

use std::cell::OnceCell;

use h5live_model::{Datatype, Name, ReferenceKind, StringPadding, VarLenKind};

use super::Value;
use crate::convert::{
    ConversionPolicy, ConvertError, InexactValue, IntegerPlan, KeyTable, NativeNumber, NumberPlan, blank_elements,
    class,
};
use crate::types::{ConversionContext, cut_text, kept_text, pad, part_mut};

/// The way from values to the elements of a datatype.
pub(crate) struct EncodePlan {
    class: &'static str,
    size: usize,
    step: EncodeStep,
}

enum EncodeStep {
    Integer(IntegerPlan),
    /// From integers, from 32-bit floats, from 64-bit floats.
    Float(IntegerPlan, NumberPlan, NumberPlan),
    Text(StringPadding),
    HeapText,
    Bytes,
    Reference(ReferenceKind),
    Enum(KeyTable<Vec<u8>, Vec<u8>>, IntegerPlan),
    Complex(Box<EncodePlan>),
    Array(Box<EncodePlan>),
    Sequence(Box<EncodePlan>),
    Compound(Vec<MemberEncoder>),
}

struct MemberEncoder {
    name: Name,
    at: usize,
    plan: EncodePlan,
}

/// The name of a member of an enum that a value stands for.
fn enum_name(value: &Value) -> Option<&[u8]> {
    match value {
        Value::EnumName(name) => Some(name.as_bytes()),
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bool(truth) => Some(if *truth { b"TRUE" } else { b"FALSE" }),
        _ => None,
    }
}

/// Replaces a compound by the values that `value_of` returns for its members. Bytes between them become zero.
fn encode_members<'v>(
    members: &[MemberEncoder],
    element: &mut [u8],
    context: ConversionContext<'_>,
    value_of: impl Fn(usize, &MemberEncoder) -> Result<&'v Value, ConvertError>,
) -> Result<(), ConvertError> {
    element.fill(0);
    for (at, member) in members.iter().enumerate() {
        let value = value_of(at, member)?;
        let place = part_mut(element, member.at, member.plan.size)?;
        member.plan.encode(value, place, context).map_err(|error| member_error(&member.name, error))?;
    }
    Ok(())
}

impl EncodePlan {
    pub(crate) fn new(datatype: &Datatype) -> Result<Self, ConvertError> {
        let boxed = |base: &Datatype| EncodePlan::new(base).map(Box::new);
        let step = match datatype {
            Datatype::Integer(_) | Datatype::Bitfield(_) | Datatype::Time(_) => {
                EncodeStep::Integer(IntegerPlan::new(datatype)?)
            }
            Datatype::Float(_) => {
                let from = |native| NumberPlan::from_native(native, datatype);
                EncodeStep::Float(IntegerPlan::new(datatype)?, from(NativeNumber::F32)?, from(NativeNumber::F64)?)
            }
            Datatype::String(string) => EncodeStep::Text(string.padding),
            Datatype::Opaque(_) => EncodeStep::Bytes,
            Datatype::Reference(reference) => EncodeStep::Reference(reference.kind),
            Datatype::Enum(of) => {
                let named = |member: &h5live_model::EnumMember| (member.name.as_bytes().to_vec(), member.value.clone());
                EncodeStep::Enum(of.members.iter().map(named).collect(), IntegerPlan::new(&of.base)?)
            }
            Datatype::Complex(complex) => EncodeStep::Complex(boxed(&complex.base)?),
            Datatype::Array(array) => {
                let mut plan = EncodePlan::new(&array.base)?;
                for dim in array.dims.iter().rev() {
                    let size = plan.size.saturating_mul(*dim as usize);
                    plan = EncodePlan { class: "array", size, step: EncodeStep::Array(Box::new(plan)) };
                }
                return Ok(plan);
            }
            Datatype::VarLen(of) => match of.kind {
                VarLenKind::Sequence => EncodeStep::Sequence(boxed(&of.base)?),
                VarLenKind::String { .. } => EncodeStep::HeapText,
            },
            Datatype::Compound(compound) => {
                let member = |member: &h5live_model::CompoundMember| {
                    let plan = EncodePlan::new(&member.datatype).map_err(|error| member_error(&member.name, error))?;
                    Ok(MemberEncoder { name: member.name.clone(), at: member.offset as usize, plan })
                };
                EncodeStep::Compound(compound.members.iter().map(member).collect::<Result<_, ConvertError>>()?)
            }
        };
        Ok(EncodePlan { class: class(datatype), size: datatype.size() as usize, step })
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Replaces an element by a value. Bytes between the members of a compound become zero.
    ///
    /// # Errors
    /// [`ConvertError::Value`] if elements of this type have no such value, [`ConvertError::Heap`].
    pub(crate) fn encode(
        &self,
        value: &Value,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let element = part_mut(element, 0, self.size)?;
        match (&self.step, value) {
            (EncodeStep::Complex(plan), value) => {
                let (real, imaginary) = match value {
                    Value::Complex(parts) => (&parts[0], &parts[1]),
                    Value::List(parts) if parts.len() == 2 => (&parts[0], &parts[1]),
                    Value::Integer(_) | Value::Float32(_) | Value::Float64(_) => (value, &Value::Integer(0)),
                    _ => return Err(self.unfit_value_error(value)),
                };
                plan.encode(real, element, context)?;
                plan.encode(imaginary, part_mut(element, plan.size, plan.size)?, context)
            }
            (EncodeStep::Array(plan), Value::List(values)) if values.len().saturating_mul(plan.size) == self.size => {
                plan.encode_slice(values, element, context)
            }
            (EncodeStep::Sequence(plan), Value::List(values)) => {
                let mut bytes = blank_elements(values.len(), plan.size)?;
                plan.encode_slice(values, &mut bytes, context)?;
                context.write_varlen(&bytes, values.len(), element)
            }
            (EncodeStep::Compound(members), Value::Compound(values)) if values.len() == members.len() => {
                let by_name = OnceCell::new();
                encode_members(members, element, context, |at, member| match &values[at] {
                    // Most values come in the order of the type.
                    (name, value) if *name == member.name => Ok(value),
                    _ => {
                        let pairs = || values.iter().map(|(name, value)| (name, value)).collect();
                        let table: &KeyTable<&Name, &Value> = by_name.get_or_init(pairs);
                        table.find(&member.name).copied().ok_or_else(|| ConvertError::NoMember(member.name.clone()))
                    }
                })
            }
            (EncodeStep::Compound(members), Value::List(values)) if values.len() == members.len() => {
                encode_members(members, element, context, |at, _| Ok(&values[at]))
            }
            _ => self.encode_scalar(value, element, context),
        }
    }

    fn unfit_value_error(&self, value: &Value) -> ConvertError {
        ConvertError::Value { value: value.to_string(), class: self.class }
    }

    /// As [`EncodePlan::encode`], of elements that have no others in them.
    fn encode_scalar(
        &self,
        value: &Value,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let refused = || self.unfit_value_error(value);
        match (&self.step, value) {
            (EncodeStep::Integer(plan), value) => encode_integer(plan, value, element, context).ok_or_else(refused)?,
            (EncodeStep::Float(_, plan, _), Value::Float32(value)) => {
                plan.convert(&value.to_ne_bytes(), element, context.conversion())
            }
            (EncodeStep::Float(_, _, plan), Value::Float64(value)) => {
                plan.convert(&value.to_ne_bytes(), element, context.conversion())
            }
            (EncodeStep::Float(plan, ..), Value::Integer(value)) => store_integer(plan, *value, element, context),
            (EncodeStep::Text(padding), value) => {
                let text = kept_text(value.bytes().ok_or_else(refused)?, Some(*padding), context.conversion())?;
                if text.len() == self.size {
                    // Such strings are found in files, though nothing ends them.
                    element.copy_from_slice(text);
                    return Ok(());
                }
                let space = self.size.saturating_sub(usize::from(*padding == StringPadding::NullTerminated));
                let is_lossy = context.conversion() == ConversionPolicy::Lossy;
                pad(if is_lossy { cut_text(text, space) } else { text }, element, *padding)
            }
            (EncodeStep::HeapText, value) => {
                let text = kept_text(value.bytes().ok_or_else(refused)?, None, context.conversion())?;
                context.write_varlen(text, text.len(), element)
            }
            (EncodeStep::Bytes, Value::Bytes(bytes)) if bytes.len() == self.size => {
                element.copy_from_slice(bytes);
                Ok(())
            }
            (EncodeStep::Reference(kind), Value::Reference(reference)) => {
                let bytes = reference.as_bytes();
                if reference.is_null() {
                    element.fill(0);
                } else if reference.kind() == *kind && bytes.len() == self.size {
                    element.copy_from_slice(bytes);
                } else {
                    return Err(refused());
                }
                Ok(())
            }
            (EncodeStep::Enum(members, base), value) => match (enum_name(value), value) {
                (Some(name), _) => {
                    let found = members.find(name).ok_or_else(refused)?;
                    part_mut(element, 0, found.len())?.copy_from_slice(found);
                    Ok(())
                }
                (None, Value::Integer(value)) => base.store(*value, element).then_some(()).ok_or_else(refused),
                _ => Err(refused()),
            },
            _ => Err(refused()),
        }
    }

    /// The elements that values become.
    ///
    /// # Errors
    /// As [`EncodePlan::encode`].
    pub(crate) fn encode_all(&self, values: &[Value], context: ConversionContext<'_>) -> Result<Vec<u8>, ConvertError> {
        let mut bytes = blank_elements(values.len(), self.size)?;
        self.encode_slice(values, &mut bytes, context)?;
        Ok(bytes)
    }

    /// Replaces elements, one after another, by as many values.
    ///
    /// # Errors
    /// As [`EncodePlan::encode`].
    pub(crate) fn encode_slice(
        &self,
        values: &[Value],
        elements: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let elements = elements.chunks_exact_mut(self.size.max(1));
        values.iter().zip(elements).try_for_each(|(value, element)| self.encode(value, element, context))
    }
}

fn store_integer(
    plan: &IntegerPlan,
    value: i128,
    element: &mut [u8],
    context: ConversionContext<'_>,
) -> Result<(), ConvertError> {
    if plan.store(value, element) || context.conversion() == ConversionPolicy::Lossy {
        return Ok(());
    }
    Err(InexactValue { value: value.to_string(), class: plan.name(), becomes: plan.text(element) }.into())
}

/// Stores a value as an integer; `None` if it is no number.
fn encode_integer(
    plan: &IntegerPlan,
    value: &Value,
    element: &mut [u8],
    context: ConversionContext<'_>,
) -> Option<Result<(), ConvertError>> {
    if let Some(integer) = value.exact_integer() {
        return Some(store_integer(plan, integer, element, context));
    }
    let float = match value {
        Value::Float32(float) => f64::from(*float),
        Value::Float64(float) => *float,
        _ => return None,
    };
    plan.store_float(float, element);
    if context.conversion() == ConversionPolicy::Lossy {
        return Some(Ok(()));
    }
    let (value, becomes) = (format!("{float:?}"), plan.text(element));
    Some(Err(InexactValue { value, class: plan.name(), becomes }.into()))
}

fn member_error(name: &Name, error: ConvertError) -> ConvertError {
    ConvertError::Member { name: name.clone(), source: Box::new(error) }
}

impl Value {
    /// The bytes of elements of a datatype, one after another; variable-length data goes to `store`.
    ///
    /// # Errors
    /// [`ConvertError::Value`] if elements of this type have no such values, [`ConvertError::Heap`] if the heap
    /// refuses.
    pub fn encode_all(
        values: &[Value],
        datatype: &Datatype,
        store: &dyn h5live_model::Store,
    ) -> Result<Vec<u8>, ConvertError> {
        EncodePlan::new(datatype)?.encode_all(values, ConversionContext::new(store))
    }

    /// The value as an integer, if it is one. A float may be an integer, too.
    fn exact_integer(&self) -> Option<i128> {
        let whole = |value: f64| (value.trunc() == value && value.abs() < 2f64.powi(126)).then_some(value as i128);
        match self {
            Value::Integer(value) => Some(*value),
            Value::Bool(truth) => Some((*truth).into()),
            Value::Float32(value) => whole((*value).into()),
            Value::Float64(value) => whole(*value),
            _ => None,
        }
    }

    /// The bytes of a text.
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Text(text) => Some(text.as_bytes()),
            Value::EnumName(name) => Some(name.as_bytes()),
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use h5live_model::{
        ArrayType, BitfieldType, ByteOrder, CharacterSet, ComplexType, CompoundType, EnumMember, EnumType,
        FixedStringType, OpaqueType, Sign, VarLenType,
    };

    use super::*;
    use crate::{File, H5Type};

    fn comes_back(datatype: &Datatype, values: &[Value]) {
        let file = File::in_memory();
        let bytes = Value::encode_all(values, datatype, file.store()).unwrap();
        assert_eq!(Value::decode_all(datatype, &bytes, Some(file.store())).unwrap(), values, "{datatype:?}");
    }

    fn int(size: u32) -> Datatype {
        Datatype::integer(size, ByteOrder::Big, Sign::Signed)
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn values_of_every_class_come_back() {
        let integers = [Value::Integer(-3), Value::Integer(127)];
        comes_back(&int(1), &integers);
        comes_back(&int(16), &[Value::Integer(i128::MIN), Value::Integer(i128::MAX)]);
        let bits = BitfieldType { size: 2, precision: 12, offset: 2, ..BitfieldType::default() };
        comes_back(&Datatype::Bitfield(bits), &[Value::Integer(0xFFF)]);
        comes_back(&Datatype::float(8, ByteOrder::Big).unwrap(), &[Value::Float64(0.1), Value::Float64(f64::INFINITY)]);
        comes_back(&Datatype::float(2, ByteOrder::Little).unwrap(), &[Value::Float32(-0.5)]);
        let padding = StringPadding::SpacePadded;
        let fixed = FixedStringType { size: 5, padding, character_set: CharacterSet::Utf8 };
        comes_back(&Datatype::String(fixed), &[text("grün"), text("")]);
        let padding = StringPadding::NullTerminated;
        let fixed = FixedStringType { size: 3, padding, character_set: CharacterSet::Ascii };
        comes_back(&Datatype::String(fixed), &[text("abc"), text("ab")]);
        comes_back(&String::datatype(), &[text("a rather long text"), text("")]);
        comes_back(&Datatype::Opaque(OpaqueType { size: 2, tag: "x".into() }), &[Value::Bytes(vec![1, 255])]);
        let complex = Datatype::Complex(ComplexType { base: Box::new(Datatype::float(4, ByteOrder::Big).unwrap()) });
        comes_back(&complex, &[Value::Complex(Box::new([Value::Float32(1.5), Value::Float32(-2.0)]))]);
        let member = |name: &str, value| EnumMember { name: name.into(), value: vec![value, 0] };
        let members = vec![member("RED", 1), member("GREEN", 2)];
        let colour = Datatype::Enum(EnumType { base: Box::new(u16::datatype()), members });
        comes_back(&colour, &[Value::EnumName("GREEN".into()), Value::Integer(7)]);
        comes_back(&bool::datatype(), &[Value::Bool(true), Value::Bool(false)]);
        let list = |values: &[i128]| Value::List(values.iter().copied().map(Value::Integer).collect());
        let array = Datatype::Array(ArrayType { dims: vec![2, 2], base: Box::new(int(2)) });
        comes_back(&array, &[Value::List(vec![list(&[1, 2]), list(&[3, 4])])]);
        let nested =
            Datatype::VarLen(VarLenType { size: 16, base: Box::new(<Vec<u8>>::datatype()), ..VarLenType::default() });
        comes_back(&nested, &[Value::List(vec![list(&[1]), list(&[]), list(&[2, 3])]), Value::List(vec![])]);
        let member =
            |name: &str, offset, datatype| h5live_model::CompoundMember { name: name.into(), offset, datatype };
        let members = vec![member("colour", 20, colour), member("names", 2, String::datatype())];
        let compound = Datatype::Compound(CompoundType { size: 24, members });
        let value = vec![("colour".into(), Value::EnumName("RED".into())), ("names".into(), text("x"))];
        comes_back(&compound, &[Value::Compound(value)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let file = File::in_memory();
        let refused = |datatype: &Datatype, value: Value| {
            Value::encode_all(&[value], datatype, file.store()).unwrap_err().to_string()
        };
        assert_eq!(refused(&int(1), Value::Integer(128)), "128 does not fit i8 (it would become 127)");
        refused(&int(1), Value::Float64(0.5));
        refused(&int(1), text("1"));
        refused(&u8::datatype(), Value::Integer(-1));
        refused(&bool::datatype(), text("MAYBE"));
        refused(&<[u8; 2]>::datatype(), Value::List(vec![Value::Integer(1)]));
        refused(&Datatype::fixed_string(2, CharacterSet::Ascii), text("abc"));
        refused(&String::datatype(), Value::Unreadable);
        let with_nul = "a string of 3 bytes has a NUL, at which it would end after 1";
        assert_eq!(refused(&String::datatype(), text("a\0b")), with_nul);
        let fixed = |padding| Datatype::String(FixedStringType { size: 4, padding, character_set: CharacterSet::Utf8 });
        assert_eq!(refused(&fixed(StringPadding::NullTerminated), text("a\0b")), with_nul);
        refused(&fixed(StringPadding::NullPadded), text("ab\0"));
        refused(&fixed(StringPadding::NullPadded), text("abc\0"));
        comes_back(&fixed(StringPadding::NullPadded), &[text("a\0b")]);
        comes_back(&fixed(StringPadding::SpacePadded), &[text("a\0b"), text("b\0")]);
    }
}
