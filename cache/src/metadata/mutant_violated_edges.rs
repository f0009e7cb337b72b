//! The edges that a mutant lacks.

#[cfg(feature = "mutants")]
use super::id_hasher::EntryIdMap;
use crate::{dependency_kind::DependencyKind, entry_id::EntryId, mutant::CacheMutantOptions};

/// The edges of kinds that a mutant lacks, at the parent. A flush turns them around, because without an edge the order
/// would only be unsure. Without the feature `mutants`, there are none.
#[derive(Default)]
pub(super) struct MutantViolatedEdges {
    mutant: CacheMutantOptions,
    #[cfg(feature = "mutants")]
    children: EntryIdMap<Vec<EntryId>>,
}

impl MutantViolatedEdges {
    pub fn new(mutant: CacheMutantOptions) -> Self {
        MutantViolatedEdges {
            mutant,
            #[cfg(feature = "mutants")]
            children: EntryIdMap::default(),
        }
    }

    /// Whether the mutant lacks an edge of this kind, which is kept here then.
    pub fn record_if_violated(&mut self, kind: DependencyKind, parent: EntryId, child: EntryId) -> bool {
        let is_broken = self.mutant.lacks_edge(kind);
        #[cfg(feature = "mutants")]
        if is_broken {
            let children = self.children.entry(parent).or_default();
            if !children.contains(&child) {
                children.push(child);
            }
        }
        let _ = (parent, child);
        is_broken
    }

    pub fn is_empty(&self) -> bool {
        #[cfg(feature = "mutants")]
        {
            self.children.is_empty()
        }
        #[cfg(not(feature = "mutants"))]
        {
            true
        }
    }

    /// The child of the broken edge with this number, of those of `parent`.
    pub fn nth_child(&self, parent: EntryId, number: usize) -> Option<EntryId> {
        #[cfg(feature = "mutants")]
        {
            self.children.get(&parent)?.get(number).copied()
        }
        #[cfg(not(feature = "mutants"))]
        {
            let _ = (parent, number);
            None
        }
    }

    /// Forgets the edges of a parent that is gone.
    pub fn remove_parent(&mut self, parent: EntryId) {
        #[cfg(feature = "mutants")]
        self.children.remove(&parent);
        let _ = parent;
    }
}
