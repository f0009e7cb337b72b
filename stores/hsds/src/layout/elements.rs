//! Elements as the schema stores them: without gaps between the members of compounds, and with variable-length elements
//! in their place, each after its length (i32, bytes).
//!
//! Where elements cross the seam, a variable-length element is a [`VarLenToken`]: it says in which stored elements it is, and
//! which of them it is. Variable-length elements are numbered in the order in which they are stored, one inside another
//! after the one that holds it.
//!
//! Source: "Object Storage Schema for HDF5", "Chunk Specification", "Variable Length Data".

use std::sync::Arc;

use h5live_model::{Datatype, ReferenceKind, VarLenKind};

use super::error::{LayoutError, Result};

/// Bytes of a token.
pub const TOKEN_BYTES: usize = 16;
/// Bytes of the length before a variable-length element.
const LENGTH_BYTES: usize = 4;

/// A variable-length element where it crosses the seam.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VarLenToken {
    /// Base elements.
    pub base_element_count: u32,
    /// The stored elements in which it is; 0 if it has no bytes.
    pub holder_id: u32,
    /// The version of these.
    pub holder_version: u32,
    /// Which of them it is.
    pub element_number: u32,
}

impl VarLenToken {
    /// Reads a token.
    ///
    /// # Errors
    /// [`LayoutError::LengthMismatch`].
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let wrong = LayoutError::LengthMismatch { expected: TOKEN_BYTES, found: bytes.len() };
        let (words, rest) = bytes.as_chunks::<4>();
        match (words, rest) {
            ([count, holder, version, number], []) => Ok(VarLenToken {
                base_element_count: u32::from_le_bytes(*count),
                holder_id: u32::from_le_bytes(*holder),
                holder_version: u32::from_le_bytes(*version),
                element_number: u32::from_le_bytes(*number),
            }),
            _ => Err(wrong),
        }
    }

    /// The bytes.
    pub fn encode(self) -> [u8; TOKEN_BYTES] {
        let mut bytes = [0; TOKEN_BYTES];
        for (word, number) in bytes.as_chunks_mut::<4>().0.iter_mut().zip([
            self.base_element_count,
            self.holder_id,
            self.holder_version,
            self.element_number,
        ]) {
            *word = number.to_le_bytes();
        }
        bytes
    }

    /// Whether it has bytes.
    pub fn has_bytes(self) -> bool {
        self.base_element_count > 0 && self.holder_id > 0
    }
}

/// What a token leads to.
#[derive(Debug, Clone)]
pub enum VarLenContent {
    /// The bytes, as they are stored.
    StoredBytes(Vec<u8>),
    /// Base elements, as they cross the seam.
    ModelElements(Arc<[u8]>),
}

/// How elements of a datatype are stored.
#[derive(Debug, PartialEq, Eq)]
pub struct ElementCodec {
    /// Bytes of an element where it crosses the seam.
    size: usize,
    /// Bytes of a stored element; `None` if they vary.
    stored: Option<usize>,
    steps: Vec<CodecStep>,
}

#[derive(Debug, PartialEq, Eq)]
enum CodecStep {
    /// Bytes that are the same.
    Bytes { at: usize, len: usize },
    /// Elements of an array.
    Array { at: usize, count: usize, base: Arc<ElementCodec> },
    /// A variable-length element, and its base; `None` if that is bytes.
    Variable { at: usize, base: Option<Arc<ElementCodec>> },
}

/// A variable-length element among stored ones.
#[derive(Debug, Clone)]
struct VarLenNode {
    start: usize,
    len: usize,
    base: Option<Arc<ElementCodec>>,
}

/// Where the variable-length elements are among stored ones, by their numbers.
#[derive(Debug, Default)]
pub struct VarLenElementTable(Vec<VarLenNode>);

/// What is left of stored elements.
struct StoredReader<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> StoredReader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.saturating_add(len);
        let taken =
            self.all.get(self.at..end).ok_or(LayoutError::LengthMismatch { expected: end, found: self.all.len() })?;
        self.at = end;
        Ok(taken)
    }

    fn take_length(&mut self) -> Result<usize> {
        let bytes = self.take(LENGTH_BYTES)?;
        let length = bytes.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        usize::try_from(length).map_err(|_| LayoutError::InvalidVarLenLength(length.into()))
    }
}

/// Numbers variable-length elements.
struct Numbering<'a> {
    holder: u32,
    version: u32,
    next: u32,
    table: Option<&'a mut VarLenElementTable>,
}

impl Numbering<'_> {
    /// Takes one variable-length element, and numbers it and those in it. Returns its token.
    fn number(&mut self, from: &mut StoredReader<'_>, base: Option<&Arc<ElementCodec>>) -> Result<VarLenToken> {
        let len = from.take_length()?;
        let (start, number) = (from.at, self.next);
        self.next = self.next.checked_add(1).ok_or(LayoutError::ValueIsNot("fewer than 4294967296 elements"))?;
        let bytes = from.take(len)?;
        if let Some(table) = &mut self.table {
            table.0.push(VarLenNode { start, len, base: base.cloned() });
        }
        let count = match base {
            None => len,
            Some(base) => base.number_all(&mut StoredReader { all: bytes, at: 0 }, self, start)?,
        };
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Ok(if count == 0 {
            VarLenToken::default()
        } else {
            VarLenToken {
                base_element_count: count,
                holder_id: self.holder,
                holder_version: self.version,
                element_number: number,
            }
        })
    }
}

/// Tokens, and the numbers of the variable-length elements that were stored for them.
#[derive(Debug, Default)]
pub struct StoredTokenNumbers {
    /// Each token with the number that it has now.
    pub new_element_numbers: Vec<(VarLenToken, u32)>,
    next: u32,
}

impl ElementCodec {
    /// How elements of this type are stored.
    pub fn new(datatype: &Datatype) -> Self {
        let mut steps = Vec::new();
        let stored = add_steps(datatype, 0, &mut steps);
        ElementCodec { size: datatype.size() as usize, stored, steps }
    }

    /// Bytes of an element where it crosses the seam.
    pub fn model_element_size(&self) -> usize {
        self.size
    }

    /// Bytes of a stored element; `None` if they vary.
    pub fn stored_element_size(&self) -> Option<usize> {
        self.stored
    }

    /// Whether elements are stored as they cross the seam.
    pub fn is_verbatim(&self) -> bool {
        matches!(self.steps.as_slice(), [CodecStep::Bytes { at: 0, len }] if *len == self.size)
    }

    /// Whether elements have variable-length parts.
    pub fn has_variable_parts(&self) -> bool {
        self.stored.is_none()
    }

    /// Elements as they cross the seam, from all of `stored`, which are `count`.
    ///
    /// # Errors
    /// [`LayoutError::LengthMismatch`], [`LayoutError::InvalidVarLenLength`].
    pub fn unpack(
        &self,
        stored: &[u8],
        count: usize,
        holder_id: u32,
        holder_version: u32,
        into: &mut [u8],
    ) -> Result<()> {
        let wrong = |expected| LayoutError::LengthMismatch { expected, found: stored.len() };
        if self.is_verbatim() {
            if stored.len() != into.len() {
                return Err(wrong(into.len()));
            }
            into.copy_from_slice(stored);
            return Ok(());
        }
        let mut from = StoredReader { all: stored, at: 0 };
        let mut numbering = Numbering { holder: holder_id, version: holder_version, next: 0, table: None };
        for element in into.chunks_exact_mut(self.size.max(1)).take(count) {
            self.unpack_one(&mut from, &mut numbering, element)?;
        }
        // The service leaves room that it does not use for arrays of variable-length elements: as for a length of each.
        let unused = stored.get(from.at..).unwrap_or_default();
        let is_room = unused.len() == count.saturating_mul(self.arrays()).saturating_mul(LENGTH_BYTES);
        match unused.is_empty() || is_room && unused.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(wrong(from.at)),
        }
    }

    /// Arrays of variable-length elements in an element, but for those in others.
    fn arrays(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, CodecStep::Array { .. })).count()
    }

    fn unpack_one(&self, from: &mut StoredReader<'_>, numbering: &mut Numbering<'_>, into: &mut [u8]) -> Result<()> {
        const OUTSIDE: LayoutError = LayoutError::ValueIsNot("within its element");
        for step in &self.steps {
            match step {
                CodecStep::Bytes { at, len } => {
                    let part = into.get_mut(*at..at.saturating_add(*len)).ok_or(OUTSIDE)?;
                    part.copy_from_slice(from.take(*len)?);
                }
                CodecStep::Array { at, count, base } => {
                    let part = into.get_mut(*at..at.saturating_add(count * base.size)).ok_or(OUTSIDE)?;
                    for element in part.chunks_exact_mut(base.size.max(1)) {
                        base.unpack_one(from, numbering, element)?;
                    }
                }
                CodecStep::Variable { at, base } => {
                    let token = numbering.number(from, base.as_ref())?;
                    let part = into.get_mut(*at..at.saturating_add(TOKEN_BYTES)).ok_or(OUTSIDE)?;
                    part.copy_from_slice(&token.encode());
                }
            }
        }
        Ok(())
    }

    /// Numbers what is in all elements of `from`, which begin at `start` among all. Returns how many there are.
    fn number_all(&self, from: &mut StoredReader<'_>, numbering: &mut Numbering<'_>, start: usize) -> Result<usize> {
        if let Some(stored) = self.stored.filter(|stored| *stored > 0) {
            let len = from.all.len();
            return if len.is_multiple_of(stored) {
                Ok(len / stored)
            } else {
                Err(LayoutError::InvalidVarLenLength(len as i64))
            };
        }
        let mut count = 0;
        while from.at < from.all.len() {
            let (first, before) = (numbering.table.as_ref().map_or(0, |table| table.0.len()), from.at);
            self.number_one(from, numbering)?;
            // Their places were counted from the start of this element.
            let added = numbering.table.iter_mut().flat_map(|table| table.0.iter_mut().skip(first));
            added.for_each(|node| node.start = node.start.saturating_add(start));
            if from.at == before {
                return Err(LayoutError::ValueIsNot("an element with bytes"));
            }
            count += 1;
        }
        Ok(count)
    }

    fn number_one(&self, from: &mut StoredReader<'_>, numbering: &mut Numbering<'_>) -> Result<()> {
        for step in &self.steps {
            match step {
                CodecStep::Bytes { len, .. } => drop(from.take(*len)?),
                CodecStep::Array { count, base, .. } => {
                    for _ in 0..*count {
                        base.number_one(from, numbering)?;
                    }
                }
                CodecStep::Variable { base, .. } => drop(numbering.number(from, base.as_ref())?),
            }
        }
        Ok(())
    }

    /// Where the variable-length elements of `count` stored elements are.
    ///
    /// # Errors
    /// As [`ElementCodec::unpack`].
    pub fn varlen_element_table(&self, stored: &[u8], count: usize) -> Result<VarLenElementTable> {
        let mut table = VarLenElementTable::default();
        let mut numbering = Numbering { holder: 0, version: 0, next: 0, table: Some(&mut table) };
        let mut from = StoredReader { all: stored, at: 0 };
        for _ in 0..count {
            self.number_one(&mut from, &mut numbering)?;
        }
        Ok(table)
    }

    /// Appends elements as they are stored. `resolve_token` says what a token leads to.
    ///
    /// # Errors
    /// [`LayoutError`], and those of `resolve_token`.
    pub fn pack<E: From<LayoutError>>(
        &self,
        elements: &[u8],
        resolve_token: &mut dyn FnMut(VarLenToken) -> std::result::Result<VarLenContent, E>,
        tokens: &mut StoredTokenNumbers,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), E> {
        if self.is_verbatim() {
            out.extend_from_slice(elements);
            return Ok(());
        }
        elements
            .chunks_exact(self.size.max(1))
            .try_for_each(|element| self.pack_one(element, resolve_token, tokens, out))
    }

    fn pack_one<E: From<LayoutError>>(
        &self,
        element: &[u8],
        content: &mut dyn FnMut(VarLenToken) -> std::result::Result<VarLenContent, E>,
        tokens: &mut StoredTokenNumbers,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), E> {
        let part = |at: usize, len: usize| element.get(at..at.saturating_add(len)).unwrap_or_default();
        for step in &self.steps {
            match step {
                CodecStep::Bytes { at, len } => out.extend_from_slice(part(*at, *len)),
                CodecStep::Array { at, count, base } => {
                    base.pack(part(*at, count * base.size), content, tokens, out)?;
                }
                CodecStep::Variable { at, base } => {
                    let token = VarLenToken::decode(part(*at, TOKEN_BYTES))?;
                    pack_variable(token, base.as_ref(), content, tokens, out)?;
                }
            }
        }
        Ok(())
    }
}

/// Appends a variable-length element, after its length.
fn pack_variable<E: From<LayoutError>>(
    token: VarLenToken,
    base: Option<&Arc<ElementCodec>>,
    content: &mut dyn FnMut(VarLenToken) -> std::result::Result<VarLenContent, E>,
    tokens: &mut StoredTokenNumbers,
    out: &mut Vec<u8>,
) -> std::result::Result<(), E> {
    let number = tokens.next;
    tokens.next = tokens.next.wrapping_add(1);
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    if !token.has_bytes() {
        return Ok(());
    }
    tokens.new_element_numbers.push((token, number));
    match (content(token)?, base) {
        (VarLenContent::ModelElements(elements), Some(base)) => base.pack(&elements, content, tokens, out)?,
        (VarLenContent::ModelElements(elements), None) => out.extend_from_slice(&elements),
        (VarLenContent::StoredBytes(bytes), base) => {
            if let Some(base) = base {
                let mut numbering = Numbering { holder: 0, version: 0, next: tokens.next, table: None };
                base.number_all(&mut StoredReader { all: &bytes, at: 0 }, &mut numbering, 0)?;
                tokens.next = numbering.next;
            }
            out.extend_from_slice(&bytes);
        }
    }
    let len = out.len() - start - LENGTH_BYTES;
    let length = i32::try_from(len).map_err(|_| LayoutError::InvalidVarLenLength(len as i64))?;
    if let Some(place) = out.get_mut(start..start + LENGTH_BYTES) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

impl VarLenElementTable {
    /// The bytes of a variable-length element among the stored ones, as they are stored.
    pub fn stored_bytes<'a>(&self, number: u32, stored: &'a [u8]) -> Option<&'a [u8]> {
        let node = self.0.get(number as usize)?;
        stored.get(node.start..node.start.checked_add(node.len)?)
    }

    /// The bytes of a variable-length element whose base elements cross the seam as they are stored.
    pub fn stored_bytes_if_verbatim<'a>(&self, number: u32, stored: &'a [u8]) -> Option<&'a [u8]> {
        let node = self.0.get(number as usize)?;
        let is_verbatim = node.base.as_ref().is_none_or(|base| base.is_verbatim());
        self.stored_bytes(number, stored).filter(|_| is_verbatim)
    }

    /// The base elements of a variable-length element, as they cross the seam. `holder` and `version` are for what is in
    /// them.
    ///
    /// # Errors
    /// As [`ElementCodec::unpack`].
    pub fn unpack_base_elements(&self, token: VarLenToken, stored: &[u8]) -> Result<Vec<u8>> {
        const GONE: LayoutError = LayoutError::ValueIsNot("an element that is there");
        let node = self.0.get(token.element_number as usize).ok_or(GONE)?;
        let bytes = self.stored_bytes(token.element_number, stored).ok_or(GONE)?;
        let Some(base) = node.base.as_ref().filter(|base| !base.is_verbatim()) else { return Ok(bytes.to_vec()) };
        let (holder, version) = (token.holder_id, token.holder_version);
        let mut numbering = Numbering { holder, version, next: token.element_number.saturating_add(1), table: None };
        let mut from = StoredReader { all: bytes, at: 0 };
        let mut elements = Vec::new();
        while from.at < bytes.len() {
            let (start, before) = (elements.len(), from.at);
            elements.resize(start + base.size, 0);
            base.unpack_one(&mut from, &mut numbering, elements.get_mut(start..).unwrap_or_default())?;
            if from.at == before {
                return Err(LayoutError::ValueIsNot("an element with bytes"));
            }
        }
        Ok(elements)
    }
}

/// Adds the steps of a type whose elements begin at `at`. Returns the bytes that they take when stored.
fn add_steps(datatype: &Datatype, at: usize, steps: &mut Vec<CodecStep>) -> Option<usize> {
    match datatype {
        Datatype::Compound(t) => {
            let mut stored = Some(0usize);
            for member in &t.members {
                let of_member = add_steps(&member.datatype, at.saturating_add(member.offset as usize), steps);
                stored = stored.zip(of_member).and_then(|(sum, more)| sum.checked_add(more));
            }
            stored
        }
        Datatype::Array(t) => {
            let base = ElementCodec::new(&t.base);
            let count = t.dims.iter().fold(1usize, |n, dim| n.saturating_mul(*dim as usize));
            if base.is_verbatim() {
                return add_bytes(at, count.saturating_mul(base.size), steps);
            }
            let stored = base.stored.and_then(|stored| stored.checked_mul(count));
            steps.push(CodecStep::Array { at, count, base: Arc::new(base) });
            stored
        }
        Datatype::VarLen(t) => {
            let base = (t.kind == VarLenKind::Sequence).then(|| Arc::new(ElementCodec::new(&t.base)));
            steps.push(CodecStep::Variable { at, base });
            None
        }
        Datatype::Reference(t) if t.kind != ReferenceKind::Object1 => {
            steps.push(CodecStep::Variable { at, base: None });
            None
        }
        other => add_bytes(at, other.size() as usize, steps),
    }
}

fn add_bytes(at: usize, len: usize, steps: &mut Vec<CodecStep>) -> Option<usize> {
    match steps.last_mut() {
        Some(CodecStep::Bytes { at: start, len: before }) if *start + *before == at => *before += len,
        _ => steps.push(CodecStep::Bytes { at, len }),
    }
    Some(len)
}

#[cfg(test)]
#[path = "elements_tests.rs"]
mod tests;
