//! The parameters of nbit: a count of them, a flag that there is nothing to pack, the number of elements,
//! then the datatype in prefix order. A number is `1 size order precision offset`, an array `2 size` and its
//! base, a compound `3 size members` and for each member its offset and its type, anything else `4 size`.

use h5live_model::{ByteOrder, Datatype};

use crate::params::{param, param_to_usize};
use crate::{FilterFault, FilterTarget};

/// Parameters that libhdf5 allows.
const MAX_PARAMS: usize = 4096;
/// Arrays and compounds inside each other that are followed.
const MAX_DEPTH: u32 = 64;

const ATOM: u32 = 1;
const ARRAY: u32 = 2;
const COMPOUND: u32 = 3;
const BYTES: u32 = 4;

/// The packed form of elements of one type.
#[derive(Debug, PartialEq)]
pub(super) struct NbitLayout {
    elements: usize,
    /// Bytes of an element; not zero.
    pub size: usize,
    /// The type of an element.
    pub node: NbitType,
}

/// A type, as packing needs it. No size is zero, and no part reaches beyond the type that it belongs to.
#[derive(Debug, PartialEq)]
pub(super) enum NbitType {
    /// A number.
    Atom(NbitNumber),
    /// This many bytes, stored completely.
    Bytes(usize),
    /// As many values of `size` bytes as there is room for.
    Array { size: usize, base: Box<NbitType> },
    /// Members; bytes between them are not stored.
    Compound(Vec<NbitMember>),
}

/// A member of a compound.
#[derive(Debug, PartialEq)]
pub(super) struct NbitMember {
    pub offset: usize,
    pub size: usize,
    pub node: NbitType,
}

/// A number of `precision` significant bits. The lowest one is bit `offset`.
#[derive(Debug, PartialEq)]
pub(super) struct NbitNumber {
    size: usize,
    big_endian: bool,
    precision: u32,
    offset: u32,
}

/// Significant bits within one byte.
pub(super) struct BitSpan {
    /// The position of the byte.
    pub byte: usize,
    /// How many bits, 1 to 8.
    pub bits: u32,
    /// How many bits lie below them.
    pub shift: u32,
}

impl NbitNumber {
    /// The places of the significant bits, the most significant first.
    pub fn bit_spans(&self) -> impl Iterator<Item = BitSpan> {
        let end = self.offset + self.precision;
        (self.offset / 8..end.div_ceil(8)).rev().map(move |byte| {
            let low = self.offset.max(byte * 8);
            let high = end.min(byte * 8 + 8);
            let at = param_to_usize(byte);
            let byte = if self.big_endian { self.size - 1 - at } else { at };
            BitSpan { byte, bits: high - low, shift: low % 8 }
        })
    }
}

impl NbitLayout {
    /// Reads the parameters; `None` if there is nothing to pack.
    pub fn parse(params: &[u32]) -> Result<Option<Self>, FilterFault> {
        let all = param(params, 0)?;
        if param_to_usize(all) != params.len() {
            return Err(FilterFault::InvalidParameter { index: 0, value: all });
        }
        if param(params, 1)? != 0 {
            return Ok(None);
        }
        let elements = param_to_usize(param(params, 2)?);
        let mut parser = NbitParser { params, at: 3, is_misaligned: false };
        let (size, node) = parser.parse_type(MAX_DEPTH)?;
        Ok(Some(NbitLayout { elements, size, node }))
    }

    /// Bytes of all elements.
    pub fn decoded_bytes(&self) -> Option<usize> {
        self.elements.checked_mul(self.size)
    }

    /// The parameters for a dataset.
    pub fn params_for(target: &FilterTarget<'_>) -> Result<Vec<u32>, FilterFault> {
        let elements = target.chunk_element_count().ok_or(FilterFault::AppliesOnlyTo("chunks of less than 4 GiB"))?;
        let mut builder = NbitParamsBuilder { params: vec![0, 0, elements], packs: false };
        if !matches!(builder.class_of(target.datatype), NbitClass::Other) {
            builder.add_type(target.datatype)?;
        }
        let NbitParamsBuilder { mut params, packs } = builder;
        let all = u32::try_from(params.len()).unwrap_or(u32::MAX);
        if params.len() > MAX_PARAMS {
            return Err(FilterFault::AppliesOnlyTo("datatypes that 4096 parameters describe"));
        }
        for (to, value) in params.iter_mut().zip([all, u32::from(!packs)]) {
            *to = value;
        }
        NbitLayout::parse(&params)?;
        Ok(params)
    }
}

struct NbitParser<'a> {
    params: &'a [u32],
    at: usize,
    /// Whether an array of arrays or compounds has been read. After it, libhdf5 continues at the wrong parameter, so
    /// its stored bytes of the following members cannot be predicted.
    is_misaligned: bool,
}

impl NbitParser<'_> {
    fn next_param(&mut self) -> Result<u32, FilterFault> {
        let value = param(self.params, self.at)?;
        self.at += 1;
        Ok(value)
    }

    /// The fault of the parameter read last.
    fn param_fault(&self, value: u32) -> FilterFault {
        FilterFault::InvalidParameter { index: self.at - 1, value }
    }

    fn parse_size(&mut self, max_bytes: usize) -> Result<usize, FilterFault> {
        let value = self.next_param()?;
        if value == 0 || param_to_usize(value) > max_bytes {
            Err(self.param_fault(value))
        } else {
            Ok(param_to_usize(value))
        }
    }

    /// A type with its size.
    fn parse_type(&mut self, depth: u32) -> Result<(usize, NbitType), FilterFault> {
        let class = self.next_param()?;
        self.parse_type_within(class, usize::MAX, depth)
    }

    /// A type of at most `max_bytes` bytes. Its class was read already.
    fn parse_type_within(
        &mut self,
        class: u32,
        max_bytes: usize,
        depth: u32,
    ) -> Result<(usize, NbitType), FilterFault> {
        if !(ATOM..=BYTES).contains(&class) {
            return Err(self.param_fault(class));
        }
        let depth = depth.checked_sub(1).ok_or(FilterFault::Unsupported("a datatype of more than 64 levels"))?;
        let size = self.parse_size(max_bytes)?;
        let node = match class {
            ATOM => NbitType::Atom(self.parse_number(size)?),
            ARRAY => match self.next_param()? {
                BYTES => {
                    self.next_param()?;
                    NbitType::Bytes(size)
                }
                class => {
                    let (size, base) = self.parse_type_within(class, size, depth)?;
                    self.is_misaligned |= class != ATOM;
                    NbitType::Array { size, base: Box::new(base) }
                }
            },
            COMPOUND => self.parse_compound(size, depth)?,
            _ => NbitType::Bytes(size),
        };
        Ok((size, node))
    }

    fn parse_number(&mut self, size: usize) -> Result<NbitNumber, FilterFault> {
        let big_endian = match self.next_param()? {
            0 => false,
            1 => true,
            order => return Err(self.param_fault(order)),
        };
        let bits = u32::try_from(size).ok().and_then(|size| size.checked_mul(8));
        let bits = bits.ok_or(FilterFault::Unsupported("a number of 512 MiB"))?;
        let precision = self.next_param()?;
        if precision == 0 || precision > bits {
            return Err(self.param_fault(precision));
        }
        let offset = self.next_param()?;
        if offset > bits - precision {
            return Err(self.param_fault(offset));
        }
        Ok(NbitNumber { size, big_endian, precision, offset })
    }

    fn parse_compound(&mut self, size: usize, depth: u32) -> Result<NbitType, FilterFault> {
        let count_of_members = self.next_param()?;
        let mut members = Vec::new();
        // Members may overlap in damaged files only; their sum bounds the work for one element.
        let mut unused = size;
        for _ in 0..count_of_members {
            if self.is_misaligned {
                return Err(FilterFault::Unsupported("a member after an array of arrays or compounds"));
            }
            let offset = self.next_param()?;
            let room = size.checked_sub(param_to_usize(offset)).ok_or_else(|| self.param_fault(offset))?;
            let class = self.next_param()?;
            let (size, node) = self.parse_type_within(class, room.min(unused), depth)?;
            unused -= size;
            members.push(NbitMember { offset: param_to_usize(offset), size, node });
        }
        Ok(NbitType::Compound(members))
    }
}

/// The class of a datatype for nbit.
enum NbitClass<'a> {
    Atom { order: ByteOrder, precision: u16, offset: u16 },
    Array(&'a h5live_model::ArrayType),
    Compound(&'a h5live_model::CompoundType),
    Other,
}

struct NbitParamsBuilder {
    params: Vec<u32>,
    /// Whether any number has bits that can be left out.
    packs: bool,
}

impl NbitParamsBuilder {
    fn class_of<'a>(&self, datatype: &'a Datatype) -> NbitClass<'a> {
        match datatype {
            Datatype::Integer(t) => NbitClass::Atom { order: t.order, precision: t.precision, offset: t.offset },
            Datatype::Float(t) => NbitClass::Atom { order: t.order, precision: t.precision, offset: t.offset },
            Datatype::Array(t) => NbitClass::Array(t),
            Datatype::Compound(t) => NbitClass::Compound(t),
            _ => NbitClass::Other,
        }
    }

    fn add_type(&mut self, datatype: &Datatype) -> Result<(), FilterFault> {
        let size = datatype.size();
        match self.class_of(datatype) {
            NbitClass::Atom { order, precision, offset } => {
                let order = match order {
                    ByteOrder::Little => 0,
                    ByteOrder::Big => 1,
                    ByteOrder::Vax => return Err(FilterFault::AppliesOnlyTo("little- and big-endian numbers")),
                };
                let bits = size.checked_mul(8).ok_or(FilterFault::AppliesOnlyTo("numbers of less than 512 MiB"))?;
                let (precision, offset) = (u32::from(precision), u32::from(offset));
                if precision == 0 || precision + offset > bits {
                    return Err(FilterFault::AppliesOnlyTo("numbers whose bits lie within their bytes"));
                }
                self.packs |= precision != bits;
                self.params.extend([ATOM, size, order, precision, offset]);
            }
            NbitClass::Array(array) => {
                self.params.extend([ARRAY, size]);
                if let Datatype::VarLen(_) = *array.base {
                    return Err(FilterFault::AppliesOnlyTo("arrays of elements of fixed length"));
                }
                self.add_type(&array.base)?;
            }
            NbitClass::Compound(compound) => {
                let members = u32::try_from(compound.members.len()).unwrap_or(u32::MAX);
                self.params.extend([COMPOUND, size, members]);
                for (i, member) in compound.members.iter().enumerate() {
                    self.params.push(member.offset);
                    if let Datatype::VarLen(_) = member.datatype {
                        // libhdf5 takes the distance to the next member for the size.
                        let end = compound.members.get(i + 1).map_or(size, |next| next.offset);
                        self.params.extend([BYTES, end.saturating_sub(member.offset)]);
                    } else {
                        self.add_type(&member.datatype)?;
                    }
                }
            }
            NbitClass::Other => self.params.extend([BYTES, size]),
        }
        Ok(())
    }
}
