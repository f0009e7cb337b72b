//! How elements of a datatype become values: made once, run over many elements.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use h5live_model::{AllocationError, AllocationLimit, Datatype, Name, ReferenceKind, Store, StringPadding, VarLenKind};

use super::Value;
use crate::Reference;
use crate::convert::{ConvertError, IntegerPlan, KeyTable, NativeNumber, NumberPlan};
use crate::types::ConversionContext;
use crate::types::trim;

/// Memory for what lies within one value, at all depths (bytes): sequences of sequences may be the same ones over and
/// over.
const ELEMENT_BYTES: u64 = 256 << 20;
/// What an allocator takes for each piece of memory, beyond the bytes that are asked for, and for the smallest piece
/// (bytes).
const ALLOCATION_OVERHEAD: u64 = 32;

/// Memory for what lies within values: lists, members, texts and bytes. All threads of a read share it.
pub(crate) struct ValueBudget {
    limit: AllocationLimit,
    taken: AtomicU64,
}

impl ValueBudget {
    pub(crate) fn new(limit: AllocationLimit) -> Self {
        ValueBudget { limit, taken: AtomicU64::new(0) }
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    /// [`AllocationError::OverLimit`] if there are not enough. They are counted all the same, so that all later calls
    /// fail, too.
    pub(crate) fn take_bytes(&self, bytes: u64) -> Result<(), AllocationError> {
        let before = self.taken.fetch_add(bytes.min(u64::MAX >> 16), Relaxed);
        self.limit.check(before.saturating_add(bytes)).map(drop)
    }

    fn remaining_limit(&self) -> AllocationLimit {
        AllocationLimit::new(self.limit.bytes().saturating_sub(self.taken.load(Relaxed)))
    }
}

impl Value {
    /// The value of an element that a file stores as `bytes`; variable-length data is read from `store`, if there is
    /// one.
    ///
    /// To read many elements, [`Value::decode_all`] is faster.
    ///
    /// # Errors
    /// [`ConvertError`] if `bytes` are too short, or the datatype makes no sense.
    pub fn decode(datatype: &Datatype, bytes: &[u8], store: Option<&dyn Store>) -> Result<Value, ConvertError> {
        Ok(DecodePlan::new(datatype)?.decode_value(bytes, store))
    }

    /// The values of elements stored one after another; a rest that is no whole element is left out.
    ///
    /// # Errors
    /// [`ConvertError`] if the datatype makes no sense.
    pub fn decode_all(
        datatype: &Datatype,
        bytes: &[u8],
        store: Option<&dyn Store>,
    ) -> Result<Vec<Value>, ConvertError> {
        let plan = DecodePlan::new(datatype)?;
        Ok(bytes.chunks_exact(plan.size()).map(|element| plan.decode_value(element, store)).collect())
    }
}

/// The way from the elements of a datatype to values.
pub(crate) struct DecodePlan {
    size: usize,
    step: DecodeStep,
}

enum DecodeStep {
    Integer(IntegerPlan),
    Single(NumberPlan),
    Double(NumberPlan),
    Text(StringPadding),
    HeapText,
    Bytes,
    Reference(ReferenceKind),
    Enum { names: KeyTable<Vec<u8>, Value>, base: Box<DecodePlan> },
    Complex(Box<DecodePlan>),
    Array(Box<DecodePlan>),
    Sequence(Box<DecodePlan>),
    Compound(Vec<MemberDecoder>),
}

struct MemberDecoder {
    name: Name,
    at: usize,
    plan: DecodePlan,
}

impl DecodePlan {
    pub(crate) fn new(datatype: &Datatype) -> Result<Self, ConvertError> {
        let boxed = |base: &Datatype| DecodePlan::new(base).map(Box::new);
        let step = match datatype {
            Datatype::Integer(_) | Datatype::Bitfield(_) | Datatype::Time(_) => {
                DecodeStep::Integer(IntegerPlan::new(datatype)?)
            }
            Datatype::Float(float) => {
                let ieee = Datatype::float(float.size, float.order).is_some_and(|ieee| ieee == *datatype);
                let single = float.size <= 2 || float.size == 4 && ieee;
                let native = if single { NativeNumber::F32 } else { NativeNumber::F64 };
                let plan = NumberPlan::to_native(datatype, native)?;
                if single { DecodeStep::Single(plan) } else { DecodeStep::Double(plan) }
            }
            Datatype::String(string) => DecodeStep::Text(string.padding),
            Datatype::Opaque(_) => DecodeStep::Bytes,
            Datatype::Reference(reference) => DecodeStep::Reference(reference.kind),
            Datatype::Enum(of) => {
                let is = |i: usize, name: &str| of.members.get(i).is_some_and(|member| member.name == name);
                let truth =
                    of.members.len() == 2 && (is(0, "FALSE") && is(1, "TRUE") || is(0, "TRUE") && is(1, "FALSE"));
                let named = |member: &h5live_model::EnumMember| {
                    let name = member.name.clone();
                    let value = if truth { Value::Bool(member.name == "TRUE") } else { Value::EnumName(name) };
                    (member.value.clone(), value)
                };
                DecodeStep::Enum { names: of.members.iter().map(named).collect(), base: boxed(&of.base)? }
            }
            Datatype::Complex(complex) => DecodeStep::Complex(boxed(&complex.base)?),
            Datatype::Array(array) => {
                // From the last dimension to the first: lists of lists.
                let mut plan = DecodePlan::new(&array.base)?;
                for dim in array.dims.iter().rev() {
                    let size = plan.size.saturating_mul(*dim as usize).max(1);
                    plan = DecodePlan { size, step: DecodeStep::Array(Box::new(plan)) };
                }
                return Ok(plan);
            }
            Datatype::VarLen(of) => match of.kind {
                VarLenKind::Sequence => DecodeStep::Sequence(boxed(&of.base)?),
                VarLenKind::String { .. } => DecodeStep::HeapText,
            },
            Datatype::Compound(compound) => {
                let member = |member: &h5live_model::CompoundMember| {
                    let plan = DecodePlan::new(&member.datatype)?;
                    Ok(MemberDecoder { name: member.name.clone(), at: member.offset as usize, plan })
                };
                DecodeStep::Compound(compound.members.iter().map(member).collect::<Result<_, ConvertError>>()?)
            }
        };
        Ok(DecodePlan { size: datatype.size().max(1) as usize, step })
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The value of an element.
    pub(crate) fn decode_value(&self, element: &[u8], store: Option<&dyn Store>) -> Value {
        self.value_with_budget(element, store, ELEMENT_BYTES).0
    }

    /// The value of an element, if what lies within it needs no more than this many bytes. What needs more is
    /// [`Value::Unreadable`]. With it, the bytes that it needs.
    pub(super) fn value_with_budget(&self, element: &[u8], store: Option<&dyn Store>, bytes: u64) -> (Value, u64) {
        let budget = ElementBudget { store, limit: bytes, needed: Cell::new(0) };
        let value = self.decode_element(element, &budget);
        (value, budget.needed.get())
    }

    /// The value of an element; what lies within it is taken from the memory of the read, `copies` times.
    ///
    /// # Errors
    /// [`AllocationError`] if there is not enough memory.
    pub(crate) fn value_within(
        &self,
        element: &[u8],
        store: Option<&dyn Store>,
        memory: &ValueBudget,
        copies: usize,
    ) -> Result<Value, AllocationError> {
        let (value, bytes) = self.value_with_budget(element, store, memory.remaining_limit().bytes());
        memory.take_bytes(bytes.saturating_mul(copies as u64))?;
        Ok(value)
    }

    fn decode_element(&self, element: &[u8], budget: &ElementBudget<'_>) -> Value {
        let Some(element) = element.get(..self.size) else { return Value::Unreadable };
        match &self.step {
            DecodeStep::Integer(plan) => Value::Integer(plan.value(element)),
            DecodeStep::Single(plan) => {
                let mut value = [0; 4];
                plan.convert_values(element, &mut value);
                Value::Float32(f32::from_ne_bytes(value))
            }
            DecodeStep::Double(plan) => {
                let mut value = [0; 8];
                plan.convert_values(element, &mut value);
                Value::Float64(f64::from_ne_bytes(value))
            }
            DecodeStep::Text(padding) if budget.take_bytes(element.len() as u64) => text_value(trim(element, *padding)),
            DecodeStep::Bytes if budget.take_bytes(element.len() as u64) => Value::Bytes(element.into()),
            DecodeStep::Text(_) | DecodeStep::Bytes => Value::Unreadable,
            DecodeStep::HeapText => match budget.read_heap_object(element) {
                Some(bytes) => text_value(trim(&bytes, StringPadding::NullTerminated)),
                None => Value::Unreadable,
            },
            DecodeStep::Reference(kind) => Value::Reference(Reference::new(*kind, element)),
            DecodeStep::Enum { names, base } => match names.find(element) {
                Some(name) => name.clone(),
                None => base.decode_element(element, budget),
            },
            DecodeStep::Complex(plan) => {
                budget.take_bytes(size_of::<[Value; 2]>() as u64);
                let (real, imaginary) = element.split_at(element.len() / 2);
                Value::Complex(Box::new([plan.decode_element(real, budget), plan.decode_element(imaginary, budget)]))
            }
            DecodeStep::Array(plan) => plan.decode_list(element, budget),
            DecodeStep::Sequence(plan) => match budget.read_heap_object(element) {
                Some(bytes) => plan.decode_list(&bytes, budget),
                None => Value::Unreadable,
            },
            DecodeStep::Compound(members) => {
                if !budget.take_bytes((members.len() * size_of::<(Name, Value)>()) as u64) {
                    return Value::Unreadable;
                }
                let member = |member: &MemberDecoder| {
                    let value = element.get(member.at..).map(|bytes| member.plan.decode_element(bytes, budget));
                    (member.name.clone(), value.unwrap_or_default())
                };
                Value::Compound(members.iter().map(member).collect())
            }
        }
    }

    fn decode_list(&self, elements: &[u8], budget: &ElementBudget<'_>) -> Value {
        let count = (elements.len() / self.size) as u64;
        if !budget.take_bytes(count.saturating_mul(size_of::<Value>() as u64)) {
            return Value::Unreadable;
        }
        Value::List(elements.chunks_exact(self.size).map(|element| self.decode_element(element, budget)).collect())
    }
}

/// The heap, and the memory for what lies within one value.
struct ElementBudget<'a> {
    store: Option<&'a dyn Store>,
    /// Bytes that the value may need.
    limit: u64,
    /// Bytes that it needs.
    needed: Cell<u64>,
}

impl ElementBudget<'_> {
    /// Counts a piece of memory. Returns whether it may be allocated.
    fn take_bytes(&self, bytes: u64) -> bool {
        let needed = self.needed.get().saturating_add(bytes).saturating_add(ALLOCATION_OVERHEAD);
        self.needed.set(needed);
        needed <= self.limit
    }

    /// The variable-length data of an element, if it can be read and there is memory for it.
    fn read_heap_object(&self, element: &[u8]) -> Option<Vec<u8>> {
        if self.needed.get() > self.limit {
            return None;
        }
        let bytes = ConversionContext::new(self.store?).read_varlen(element).ok()?;
        self.take_bytes(bytes.len() as u64).then_some(bytes)
    }
}

fn text_value(bytes: &[u8]) -> Value {
    Value::Text(String::from_utf8_lossy(bytes).into_owned())
}
