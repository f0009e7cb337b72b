//! Elements of any type to elements of another, both as bytes.

use h5live_model::{BitfieldType, CompoundType, Datatype, EnumType, Name, StringPadding, VarLenKind, VarLenType};

use super::key_table::KeyTable;
use super::number_layout::NumberLayout;
use super::{ConversionPolicy, ConvertError, InexactValue, NumberPlan, class};
use crate::types::{ConversionContext, cut_text, pad, part, trim};

/// The value of an element whose enum value the enum in memory does not have. libhdf5 does the same.
const NO_VARIANT: u8 = 0xff;

/// The way from one datatype to another.
pub(crate) struct ElementPlan {
    from: usize,
    to: usize,
    step: ConversionStep,
}

enum ConversionStep {
    Copy,
    Number(NumberPlan),
    Bits(NumberLayout, NumberLayout),
    /// Values of the enum in the file, and of that in memory, by name.
    Enum(KeyTable<Vec<u8>, Vec<u8>>),
    /// Text that is in the element, padded, or in the heap.
    Text(Option<StringPadding>, StringPadding),
    /// The members of a compound, by name.
    Members(Vec<MemberConversion>),
    /// The parts of a complex number. What is not converted becomes zero.
    Parts(Vec<MemberConversion>),
    /// This many elements, one after the other.
    Array(Box<ElementPlan>),
    /// The real part of a complex number. The imaginary part is lost.
    RealPart(Box<ElementPlan>, NumberLayout),
}

struct MemberConversion {
    from: usize,
    to: usize,
    plan: ElementPlan,
}

fn class_mismatch_error(from: &Datatype, to: &Datatype) -> ConvertError {
    ConvertError::Class { file: class(from), memory: class(to) }
}

fn number_step(from: &Datatype, to: &Datatype) -> Result<ConversionStep, ConvertError> {
    let plan = NumberPlan::new(from, to).ok_or_else(|| class_mismatch_error(from, to))??;
    let is_copy = plan.is_copy() && plan.input_size() == plan.output_size();
    Ok(if is_copy { ConversionStep::Copy } else { ConversionStep::Number(plan) })
}

/// One of the types is complex: it is like an array of two, a compound of two members, or a number without an imaginary
/// part.
fn complex_step(from: &Datatype, to: &Datatype) -> Result<ConversionStep, ConvertError> {
    let none = || class_mismatch_error(from, to);
    let array = |from: &Datatype, to: &Datatype| -> Result<_, ConvertError> {
        Ok(ConversionStep::Array(Box::new(ElementPlan::new(from, to)?)))
    };
    let member = |at: (usize, usize), from: &Datatype, to: &Datatype| -> Result<_, ConvertError> {
        Ok(MemberConversion { from: at.0, to: at.1, plan: ElementPlan::new(from, to)? })
    };
    match (from, to) {
        (Datatype::Complex(from), Datatype::Complex(to)) => array(&from.base, &to.base),
        (Datatype::Complex(from), Datatype::Array(to)) if to.dims == [2] => array(&from.base, &to.base),
        (Datatype::Array(from), Datatype::Complex(to)) if from.dims == [2] => array(&from.base, &to.base),
        (Datatype::Complex(from), Datatype::Compound(to)) => {
            let [real, imaginary] = to.members.as_slice() else { return Err(none()) };
            let size = from.base.size() as usize;
            Ok(ConversionStep::Parts(vec![
                member((0, real.offset as usize), &from.base, &real.datatype)?,
                member((size, imaginary.offset as usize), &from.base, &imaginary.datatype)?,
            ]))
        }
        (Datatype::Compound(from), Datatype::Complex(to)) => {
            let [real, imaginary] = from.members.as_slice() else { return Err(none()) };
            let size = to.base.size() as usize;
            Ok(ConversionStep::Parts(vec![
                member((real.offset as usize, 0), &real.datatype, &to.base)?,
                member((imaginary.offset as usize, size), &imaginary.datatype, &to.base)?,
            ]))
        }
        (Datatype::Complex(from), Datatype::Integer(_) | Datatype::Float(_)) => {
            let imaginary = NumberLayout::from_datatype(&from.base).ok_or_else(none)??;
            Ok(ConversionStep::RealPart(Box::new(ElementPlan::new(&from.base, to)?), imaginary))
        }
        (Datatype::Integer(_) | Datatype::Float(_), Datatype::Complex(to)) => {
            Ok(ConversionStep::Parts(vec![member((0, 0), from, &to.base)?]))
        }
        _ => number_step(from, to),
    }
}

impl ElementPlan {
    /// The way from one datatype to another: numbers, enums by the names of their values, strings, compounds by the
    /// names of their members (those that the other one lacks become zero), arrays, complex numbers.
    ///
    /// What stands in a heap keeps its place.
    ///
    /// # Errors
    /// [`ConvertError`] if there is none.
    pub(crate) fn new(from: &Datatype, to: &Datatype) -> Result<Self, ConvertError> {
        let step = match (from, to) {
            _ if from == to => ConversionStep::Copy,
            (Datatype::Complex(_), _) | (_, Datatype::Complex(_)) => complex_step(from, to)?,
            (Datatype::Enum(from), Datatype::Enum(to)) => ConversionStep::Enum(enum_mappings(from, to)?),
            (Datatype::Bitfield(from), Datatype::Bitfield(to)) => bits_step(from, to)?,
            (Datatype::String(from), Datatype::String(to)) => ConversionStep::Text(Some(from.padding), to.padding),
            (Datatype::VarLen(VarLenType { kind: VarLenKind::String { .. }, .. }), Datatype::String(to)) => {
                ConversionStep::Text(None, to.padding)
            }
            (Datatype::VarLen(of), Datatype::VarLen(other)) => match (of.kind, other.kind) {
                (VarLenKind::String { .. }, VarLenKind::String { .. }) if of.size == other.size => ConversionStep::Copy,
                _ => return Err(class_mismatch_error(from, to)),
            },
            (Datatype::Opaque(from), Datatype::Opaque(to)) if from.size == to.size => ConversionStep::Copy,
            (Datatype::Reference(from), Datatype::Reference(to)) if from.kind == to.kind && from.size == to.size => {
                ConversionStep::Copy
            }
            (Datatype::Compound(from), Datatype::Compound(to)) => members_step(from, to)?,
            (Datatype::Array(from), Datatype::Array(to)) if from.dims == to.dims => {
                ConversionStep::Array(Box::new(ElementPlan::new(&from.base, &to.base)?))
            }
            (Datatype::Array(from), Datatype::Array(to)) => {
                let memory = to.dims.iter().fold(1, |n: usize, dim| n.saturating_mul(*dim as usize));
                return Err(ConvertError::ArrayLength { file: from.dims.clone(), memory });
            }
            _ => number_step(from, to)?,
        };
        Ok(ElementPlan { from: from.size().max(1) as usize, to: to.size().max(1) as usize, step })
    }

    /// Whether the bytes do not change.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.step, ConversionStep::Copy)
    }

    /// Bytes of an element to convert.
    pub(crate) fn input_size(&self) -> usize {
        self.from
    }

    /// Bytes of a converted element.
    pub(crate) fn output_size(&self) -> usize {
        self.to
    }

    /// Converts elements, as many as both sides have. Members to which nothing is converted become zero.
    ///
    /// # Errors
    /// [`ConvertError::Heap`] if text in the heap cannot be read, [`ConvertError::Inexact`],
    /// [`ConvertError::StringTooLong`] or [`ConvertError::NoVariant`] if a value would change, unless `context` allows it.
    pub(crate) fn convert_elements(
        &self,
        from: &[u8],
        to: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        match &self.step {
            ConversionStep::Copy => {
                let n = from.len().min(to.len());
                to[..n].copy_from_slice(&from[..n]);
                return Ok(());
            }
            ConversionStep::Number(plan) => return plan.convert(from, to, context.conversion()),
            _ => {}
        }
        let is_exact = context.conversion() == ConversionPolicy::Checked;
        let elements = from.chunks_exact(self.from).zip(to.chunks_exact_mut(self.to));
        for (from, to) in elements {
            match &self.step {
                ConversionStep::Copy => to.copy_from_slice(from),
                ConversionStep::Number(plan) => plan.convert(from, to, context.conversion())?,
                ConversionStep::Bits(here, there) => {
                    there.copy_low_bits(here, from, to);
                    let is_same = here.load(from) == there.load(to);
                    check_kept(is_same || !is_exact, || (here.text(from), there.name(), there.text(to)))?;
                }
                ConversionStep::Enum(values) => convert_enum(values, from, to, is_exact)?,
                ConversionStep::Text(Some(StringPadding::SpacePadded), into) => {
                    pad_text(trim(from, StringPadding::SpacePadded), to, *into, is_exact)?;
                }
                // A NUL ends the string, also one that is padded with NULs.
                ConversionStep::Text(Some(_), into) => {
                    pad_text(trim(from, StringPadding::NullTerminated), to, *into, is_exact)?;
                }
                ConversionStep::Text(None, into) => {
                    pad_text(trim(&context.read_varlen(from)?, StringPadding::NullTerminated), to, *into, is_exact)?;
                }
                ConversionStep::Members(members) => {
                    if !context.keeps_members() {
                        to.fill(0);
                    }
                    convert_members(members, from, to, context)?;
                }
                ConversionStep::Parts(members) => {
                    to.fill(0);
                    convert_members(members, from, to, context)?;
                }
                ConversionStep::Array(plan) => plan.convert_elements(from, to, context)?,
                ConversionStep::RealPart(plan, imaginary) => {
                    plan.convert_elements(part(from, 0, plan.from)?, to, context)?;
                    let (real, lost) = (imaginary.text(from), part(from, plan.from, plan.from)?);
                    let value = || format!("{real} and {}i", imaginary.text(lost));
                    let is_real = imaginary.load(lost).is_zero();
                    check_kept(is_real || !is_exact, || (value(), "a real number".to_owned(), real.clone()))?;
                }
            }
        }
        Ok(())
    }
}

/// An error, unless a value is kept: the value, the type that does not have it, and what it becomes.
fn check_kept(is_kept: bool, lost: impl FnOnce() -> (String, String, String)) -> Result<(), ConvertError> {
    if is_kept {
        return Ok(());
    }
    let (value, class, becomes) = lost();
    Err(InexactValue { value, class, becomes }.into())
}

fn convert_members(
    members: &[MemberConversion],
    from: &[u8],
    to: &mut [u8],
    context: ConversionContext<'_>,
) -> Result<(), ConvertError> {
    members.iter().try_for_each(|MemberConversion { from: at, to: into, plan }| {
        let from = part(from, *at, plan.from)?;
        plan.convert_elements(from, crate::types::part_mut(to, *into, plan.to)?, context)
    })
}

fn convert_enum(
    values: &KeyTable<Vec<u8>, Vec<u8>>,
    from: &[u8],
    to: &mut [u8],
    is_exact: bool,
) -> Result<(), ConvertError> {
    match values.find(from) {
        Some(value) if value.len() == to.len() => to.copy_from_slice(value),
        _ if is_exact => {
            return Err(ConvertError::NoVariant { value: format!("{from:02x?}"), memory: "the other enum" });
        }
        _ => to.fill(NO_VARIANT),
    }
    Ok(())
}

fn pad_text(text: &[u8], element: &mut [u8], padding: StringPadding, is_exact: bool) -> Result<(), ConvertError> {
    if is_exact {
        // A text that fills its place is whole, though nothing ends it.
        return if text.len() == element.len() {
            pad(text, element, StringPadding::NullPadded)
        } else {
            pad(text, element, padding)
        };
    }
    let space = match padding {
        StringPadding::NullTerminated => element.len().saturating_sub(1),
        _ => element.len(),
    };
    pad(cut_text(text, space), element, padding)
}

/// The values of two enums that have the same name. As in libhdf5, each in the file must be in memory too.
fn enum_mappings(from: &EnumType, to: &EnumType) -> Result<KeyTable<Vec<u8>, Vec<u8>>, ConvertError> {
    let in_memory: KeyTable<&Name, &Vec<u8>> = to.members.iter().map(|member| (&member.name, &member.value)).collect();
    let pair = |member: &h5live_model::EnumMember| {
        let other = in_memory.find(&member.name);
        let other = *other.ok_or_else(|| ConvertError::NoEnumName(member.name.clone()))?;
        Ok((member.value.clone(), other.clone()))
    };
    from.members.iter().map(pair).collect()
}

fn bits_step(from: &BitfieldType, to: &BitfieldType) -> Result<ConversionStep, ConvertError> {
    Ok(ConversionStep::Bits(NumberLayout::from_bitfield(from)?, NumberLayout::from_bitfield(to)?))
}

fn members_step(from: &CompoundType, to: &CompoundType) -> Result<ConversionStep, ConvertError> {
    let stored: KeyTable<&Name, _> = from.members.iter().map(|member| (&member.name, member)).collect();
    let mut members = Vec::new();
    for member in &to.members {
        let Some(found) = stored.find(&member.name) else { continue };
        let plan = ElementPlan::new(&found.datatype, &member.datatype)
            .map_err(|source| ConvertError::Member { name: member.name.clone(), source: Box::new(source) })?;
        members.push(MemberConversion { from: found.offset as usize, to: member.offset as usize, plan });
    }
    Ok(ConversionStep::Members(members))
}

#[cfg(test)]
#[path = "elements_tests.rs"]
mod tests;
