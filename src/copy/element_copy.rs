//! Copying elements from one file to another, with the contents of heaps and the targets of references.

use std::cell::Cell;
use std::collections::HashMap;

use h5live_model::{Datatype, Name, ObjectId, ReferenceType, Referent};

use crate::File;
use crate::error::ErrorKind;
use crate::types::{ConversionContext, part, part_mut};

/// What a file uses another file for that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReferencedFileRole {
    /// An external link leads to an object in it.
    ExternalLink,
    /// It has elements of a virtual dataset. In such a name, `%b` stands for a number and `%%` for `%`.
    VirtualSource,
    /// It is a raw file with elements.
    RawFile,
    /// A reference leads to an object in it.
    Reference,
}

type RenameFile<'a> = Box<dyn Fn(&Name, ReferencedFileRole) -> Name + 'a>;

/// Two files, and which objects of the one have become which of the other.
pub(super) struct FilePair<'a> {
    pub(super) from: &'a File,
    pub(super) to: &'a File,
    pub(super) objects: HashMap<ObjectId, ObjectId>,
    /// The name of another file in the copy.
    pub(super) rename: Option<RenameFile<'a>>,
    /// References to objects that are only in the one file, since they were last counted.
    lost_references: Cell<u64>,
}

/// How elements of a datatype are copied.
pub(super) struct ElementCopy {
    from: usize,
    to: usize,
    step: ElementCopyStep,
}

enum ElementCopyStep {
    Bytes,
    /// A sequence of elements, or a string.
    Heap(Box<ElementCopy>),
    Reference {
        from: ReferenceType,
        to: ReferenceType,
    },
    Array(Box<ElementCopy>),
    Members(Vec<(usize, usize, ElementCopy)>),
}

impl ElementCopy {
    /// The way from a datatype to the same type in another file.
    pub(super) fn new(from: &Datatype, to: &Datatype) -> Self {
        let boxed = |from: &Datatype, to: &Datatype| Box::new(ElementCopy::new(from, to));
        let step = match (from, to) {
            (Datatype::VarLen(from), Datatype::VarLen(to)) => ElementCopyStep::Heap(boxed(&from.base, &to.base)),
            (Datatype::Reference(from), Datatype::Reference(to)) => {
                ElementCopyStep::Reference { from: from.clone(), to: to.clone() }
            }
            (Datatype::Array(a), Datatype::Array(b)) if from.has_vlen_or_references() => {
                ElementCopyStep::Array(boxed(&a.base, &b.base))
            }
            (Datatype::Compound(a), Datatype::Compound(b)) if from.has_vlen_or_references() => {
                let pairs =
                    a.members.iter().zip(&b.members).map(|(a, b)| {
                        (a.offset as usize, b.offset as usize, ElementCopy::new(&a.datatype, &b.datatype))
                    });
                ElementCopyStep::Members(pairs.collect())
            }
            _ => ElementCopyStep::Bytes,
        };
        ElementCopy { from: from.size().max(1) as usize, to: to.size().max(1) as usize, step }
    }

    /// Whether elements are copied without change.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.step, ElementCopyStep::Bytes)
    }

    /// Whether elements refer to objects.
    pub(super) fn has_references(&self) -> bool {
        match &self.step {
            ElementCopyStep::Bytes => false,
            ElementCopyStep::Reference { .. } => true,
            ElementCopyStep::Heap(base) | ElementCopyStep::Array(base) => base.has_references(),
            ElementCopyStep::Members(members) => members.iter().any(|(_, _, member)| member.has_references()),
        }
    }

    /// The elements as the other file is to hold them.
    pub(super) fn run(&self, elements: &[u8], way: &FilePair<'_>) -> Result<Vec<u8>, ErrorKind> {
        let mut copied = vec![0; (elements.len() / self.from).saturating_mul(self.to)];
        self.run_into(elements, &mut copied, way)?;
        Ok(copied)
    }

    /// Calls `each` with the objects of the file that elements refer to.
    pub(super) fn for_each_referent(&self, elements: &[u8], way: &FilePair<'_>, each: &mut dyn FnMut(ObjectId)) {
        for element in elements.chunks_exact(self.from) {
            match &self.step {
                ElementCopyStep::Bytes => {}
                ElementCopyStep::Heap(base) => {
                    let bytes = ConversionContext::new(way.from.store()).read_varlen(element).unwrap_or_default();
                    base.for_each_referent(&bytes, way, each);
                }
                ElementCopyStep::Reference { from, .. } => {
                    let referent = way.from.store().referent(from.kind, element).ok().flatten();
                    referent
                        .filter(|referent| referent.file.is_none())
                        .iter()
                        .for_each(|referent| each(referent.object));
                }
                ElementCopyStep::Array(base) => base.for_each_referent(element, way, each),
                ElementCopyStep::Members(members) => {
                    for (at, _, member) in members {
                        let part = element.get(*at..at.saturating_add(member.from)).unwrap_or_default();
                        member.for_each_referent(part, way, each);
                    }
                }
            }
        }
    }

    fn run_into(&self, elements: &[u8], into: &mut [u8], way: &FilePair<'_>) -> Result<(), ErrorKind> {
        if self.is_plain() {
            let n = elements.len().min(into.len());
            into[..n].copy_from_slice(&elements[..n]);
            return Ok(());
        }
        let pairs = elements.chunks_exact(self.from).zip(into.chunks_exact_mut(self.to));
        for (element, into) in pairs {
            match &self.step {
                ElementCopyStep::Bytes => {}
                ElementCopyStep::Heap(base) => {
                    let bytes = ConversionContext::new(way.from.store()).read_varlen(element)?;
                    // An element that was never written stays so.
                    if !bytes.is_empty() {
                        let count = bytes.len() / base.from;
                        ConversionContext::new(way.to.store()).write_varlen(&base.run(&bytes, way)?, count, into)?;
                    }
                }
                ElementCopyStep::Reference { from, to } => {
                    if let Some(referent) = way.from.store().referent(from.kind, element)?.and_then(|r| way.referent(r))
                    {
                        let copied = way.to.encode_reference(to, &referent)?;
                        part_mut(into, 0, copied.len())?.copy_from_slice(&copied);
                    }
                }
                ElementCopyStep::Array(base) => base.run_into(element, into, way)?,
                ElementCopyStep::Members(members) => {
                    // Bytes between the members are copied where both types have the same gap.
                    if self.from == self.to {
                        into.copy_from_slice(element);
                    }
                    for (at, place, member) in members {
                        let place = part_mut(into, *place, member.to)?;
                        place.fill(0);
                        member.run_into(part(element, *at, member.from)?, place, way)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl<'a> FilePair<'a> {
    pub(super) fn new(from: &'a File, to: &'a File) -> Self {
        FilePair { from, to, objects: HashMap::new(), rename: None, lost_references: Cell::new(0) }
    }

    /// How many references have become null since the last call.
    pub(super) fn take_lost_references(&self) -> u64 {
        self.lost_references.take()
    }

    /// The name of another file in the copy.
    pub(super) fn renamed(&self, name: &Name, usage: ReferencedFileRole) -> Name {
        self.rename.as_ref().map_or_else(|| name.clone(), |rename| rename(name, usage))
    }

    /// Whether a file is copied within itself.
    pub(super) fn is_same_file(&self) -> bool {
        std::ptr::addr_eq(self.from.store(), self.to.store())
    }

    /// The target of a copied reference: the copy of the object, if there is one; `None` if the object is only in the
    /// other file.
    fn referent(&self, referent: Referent) -> Option<Referent> {
        match (&referent.file, self.objects.get(&referent.object)) {
            (Some(file), _) => {
                Some(Referent { file: Some(self.renamed(file, ReferencedFileRole::Reference)), ..referent })
            }
            (None, Some(copy)) => Some(Referent { object: *copy, ..referent }),
            (None, None) if self.is_same_file() => Some(referent),
            (None, None) => {
                self.lost_references.set(self.lost_references.get().saturating_add(1));
                None
            }
        }
    }
}
