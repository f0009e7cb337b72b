//! What mutants lack. The model checker runs mutants of the writer to show that each protection matters: some reader must
//! find out each of them.
//!
//! Only the feature `mutants` compiles mutants in. Without it, [`CacheMutantOptions`] is empty, and all that is asked of it is
//! known when the crate is compiled.

use crate::barrier_kind::BarrierKind;
use crate::dependency_kind::{DependencyKind, DependencyKinds};

/// The protections that a mutant of the cache lacks; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheMutantOptions {
    /// The kinds of flush dependencies that are violated on purpose.
    #[cfg(feature = "mutants")]
    pub violated_edges: DependencyKinds,
    /// The kind of barriers that durable flushes leave out.
    #[cfg(feature = "mutants")]
    pub disabled_barrier: Option<BarrierKind>,
    /// Whether changes in place have no redo record.
    #[cfg(feature = "mutants")]
    pub disable_redo: bool,
    /// Whether redo records have no serial numbers, nor those of generations.
    #[cfg(feature = "mutants")]
    pub disable_redo_serials: bool,
}

impl CacheMutantOptions {
    #[inline(always)]
    fn edges(self) -> DependencyKinds {
        #[cfg(feature = "mutants")]
        {
            self.violated_edges
        }
        #[cfg(not(feature = "mutants"))]
        {
            DependencyKinds::NONE
        }
    }

    /// Whether flush dependencies of `kind` are violated.
    #[inline(always)]
    pub(crate) fn lacks_edge(self, kind: DependencyKind) -> bool {
        self.edges().contains(kind)
    }

    /// Whether flush dependencies of any kind are violated.
    #[inline(always)]
    pub(crate) fn lacks_edges(self) -> bool {
        self.edges() != DependencyKinds::NONE
    }

    /// Whether durable flushes leave out barriers of `kind`.
    #[inline(always)]
    pub(crate) fn lacks_barrier(self, kind: BarrierKind) -> bool {
        #[cfg(feature = "mutants")]
        {
            self.disabled_barrier == Some(kind)
        }
        #[cfg(not(feature = "mutants"))]
        {
            let _ = kind;
            false
        }
    }

    /// Whether changes in place have no redo record.
    #[inline(always)]
    pub(crate) fn lacks_redo(self) -> bool {
        #[cfg(feature = "mutants")]
        {
            self.disable_redo
        }
        #[cfg(not(feature = "mutants"))]
        {
            false
        }
    }

    /// Whether redo records have no serial numbers, nor those of generations.
    #[inline(always)]
    pub(crate) fn lacks_redo_serials(self) -> bool {
        #[cfg(feature = "mutants")]
        {
            self.disable_redo_serials
        }
        #[cfg(not(feature = "mutants"))]
        {
            false
        }
    }
}
