//! The value stream that the last column hashes: elements without byte order, gaps, or heap places.

use std::borrow::Cow;

use h5live::model::{ByteOrder, Datatype, ReferenceKind, VarLenKind};
use h5live_text::counted::counted;

/// The reason why a value stream cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// The heap does not give what an element points to.
    #[error("what an element points to cannot be read")]
    Heap(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A few elements have more variable-length data than the memory may be filled with.
    #[error("a few elements have more variable-length data than there is room for")]
    TooMuchVlenData,
    /// It is not known where a reference leads.
    #[error("it cannot be read where a reference leads")]
    Reference(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A sequence in the heap is shorter than its element says.
    #[error("a sequence of {} has only {found} in the heap", counted(*expected, "byte"))]
    ShortSequence {
        /// Bytes that the element says.
        expected: u64,
        /// Bytes in the heap.
        found: u64,
    },
}

/// Resolves elements that are places in a heap.
pub trait VlenAndReferenceResolver {
    /// The bytes in the heap that a stored variable-length element points to.
    fn vlen_bytes(&self, element: &[u8]) -> Result<Vec<u8>, CanonicalError>;

    /// The path under which the object that a stored reference points to was listed, and for other kinds than
    /// [`ReferenceKind::Object1`] its file and its part; empty if it leads to nothing that was listed.
    fn referent_text(&self, kind: ReferenceKind, reference: &[u8]) -> Result<Vec<u8>, CanonicalError>;
}

/// How the stored elements of a datatype become their value stream.
#[derive(Debug, PartialEq)]
pub struct CanonicalPlan {
    /// Bytes of a stored element.
    size: usize,
    steps: Vec<CanonicalStep>,
}

#[derive(Debug, PartialEq)]
struct CanonicalStep {
    /// Bytes from the start of the element.
    at: usize,
    /// Stored bytes.
    len: usize,
    what: CanonicalOp,
}

#[derive(Debug, PartialEq)]
enum CanonicalOp {
    Verbatim,
    Reversed,
    /// 2-byte words in reverse order.
    WordsReversed,
    Elements(CanonicalPlan),
    Text,
    Sequence(CanonicalPlan),
    Referent(ReferenceKind),
}

impl CanonicalPlan {
    /// The plan for a datatype.
    pub fn for_datatype(datatype: &Datatype) -> CanonicalPlan {
        let size = datatype.size() as usize;
        let single = |what| CanonicalPlan { size, steps: vec![CanonicalStep { at: 0, len: size, what }] };
        match datatype {
            Datatype::Integer(t) => single(byte_order_op(t.order, t.size)),
            Datatype::Float(t) => single(byte_order_op(t.order, t.size)),
            Datatype::Time(t) => single(byte_order_op(t.order, t.size)),
            Datatype::Bitfield(t) => single(byte_order_op(t.order, t.size)),
            Datatype::String(_) | Datatype::Opaque(_) => single(CanonicalOp::Verbatim),
            Datatype::Enum(t) => CanonicalPlan::for_datatype(&t.base),
            Datatype::Complex(t) => CanonicalPlan::elements(size, CanonicalPlan::for_datatype(&t.base)),
            Datatype::Array(t) => CanonicalPlan::elements(size, CanonicalPlan::for_datatype(&t.base)),
            Datatype::Reference(t) => single(CanonicalOp::Referent(t.kind)),
            Datatype::VarLen(t) => match t.kind {
                VarLenKind::String { .. } => single(CanonicalOp::Text),
                VarLenKind::Sequence => single(CanonicalOp::Sequence(CanonicalPlan::for_datatype(&t.base))),
            },
            Datatype::Compound(t) => {
                let mut members: Vec<_> = t.members.iter().collect();
                members.sort_by_key(|m| m.offset);
                let mut steps: Vec<CanonicalStep> = Vec::new();
                for member in members {
                    for step in CanonicalPlan::for_datatype(&member.datatype).steps {
                        let step = CanonicalStep { at: step.at + member.offset as usize, ..step };
                        match steps.last_mut() {
                            Some(last) if last.is_followed_by(&step) => last.len += step.len,
                            _ => steps.push(step),
                        }
                    }
                }
                CanonicalPlan { size, steps }
            }
        }
    }

    fn elements(size: usize, base: CanonicalPlan) -> CanonicalPlan {
        let what = if base.is_verbatim() { CanonicalOp::Verbatim } else { CanonicalOp::Elements(base) };
        CanonicalPlan { size, steps: vec![CanonicalStep { at: 0, len: size, what }] }
    }

    fn is_verbatim(&self) -> bool {
        matches!(self.steps.as_slice(), [CanonicalStep { at: 0, len, what: CanonicalOp::Verbatim }] if *len == self.size)
    }

    /// The value stream of stored elements; a rest that is no whole element is left out.
    ///
    /// # Errors
    /// [`CanonicalError`] if what an element points to cannot be read.
    pub fn canonical_bytes<'a>(
        &self,
        stored: &'a [u8],
        resolver: &dyn VlenAndReferenceResolver,
    ) -> Result<Cow<'a, [u8]>, CanonicalError> {
        if self.is_verbatim() {
            return Ok(Cow::Borrowed(stored));
        }
        let mut out = Vec::with_capacity(stored.len());
        self.append(stored, resolver, &mut out)?;
        Ok(Cow::Owned(out))
    }

    fn append(
        &self,
        stored: &[u8],
        places: &dyn VlenAndReferenceResolver,
        out: &mut Vec<u8>,
    ) -> Result<(), CanonicalError> {
        for element in stored.chunks_exact(self.size.max(1)) {
            for step in &self.steps {
                let bytes = element.get(step.at..step.at.saturating_add(step.len)).unwrap_or_default();
                step.what.append(bytes, places, out)?;
            }
        }
        Ok(())
    }
}

impl CanonicalStep {
    fn is_followed_by(&self, next: &CanonicalStep) -> bool {
        self.what == CanonicalOp::Verbatim && next.what == CanonicalOp::Verbatim && self.at + self.len == next.at
    }
}

impl CanonicalOp {
    fn append(
        &self,
        bytes: &[u8],
        places: &dyn VlenAndReferenceResolver,
        out: &mut Vec<u8>,
    ) -> Result<(), CanonicalError> {
        match self {
            CanonicalOp::Verbatim => out.extend_from_slice(bytes),
            CanonicalOp::Reversed => out.extend(bytes.iter().rev()),
            CanonicalOp::WordsReversed => out.extend(bytes.chunks(2).rev().flatten()),
            CanonicalOp::Elements(base) => base.append(bytes, places, out)?,
            CanonicalOp::Text => {
                let text = if element_count(bytes) == 0 { Vec::new() } else { places.vlen_bytes(bytes)? };
                append_text(text.split(|b| *b == 0).next().unwrap_or_default(), out);
            }
            CanonicalOp::Sequence(base) => {
                let count = element_count(bytes);
                let sequence = if count == 0 { Vec::new() } else { places.vlen_bytes(bytes)? };
                let expected = u64::from(count) * base.size as u64;
                let short = CanonicalError::ShortSequence { expected, found: sequence.len() as u64 };
                let stored = usize::try_from(expected).ok().and_then(|n| sequence.get(..n)).ok_or(short)?;
                out.extend(u64::from(count).to_le_bytes());
                base.append(stored, places, out)?;
            }
            CanonicalOp::Referent(kind) => append_text(&places.referent_text(*kind, bytes)?, out),
        }
        Ok(())
    }
}

fn append_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
}

/// The number of elements of a stored variable-length element; 0 for a null one (heap address 0).
fn element_count(stored: &[u8]) -> u32 {
    match stored.split_first_chunk() {
        Some((count, [address @ .., _, _, _, _])) if address.iter().any(|b| *b != 0) => u32::from_le_bytes(*count),
        _ => 0,
    }
}

fn byte_order_op(order: ByteOrder, size: u32) -> CanonicalOp {
    match order {
        ByteOrder::Big if size > 1 => CanonicalOp::Reversed,
        ByteOrder::Vax if size.is_multiple_of(2) => CanonicalOp::WordsReversed,
        _ => CanonicalOp::Verbatim,
    }
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
