//! Objects that exist without a link: new ones, to which no link leads yet, and deleted ones, to which the file still
//! leads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use h5live_format::Addr;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use crate::dataset::OpenDataset;
use crate::shared_table_use::SharedTableUse;

/// The objects to be deleted, and those that stay with fewer links.
#[derive(Debug, Default)]
pub(crate) struct DeletePlan {
    /// Links and other uses that each object loses.
    pub lost_uses: BTreeMap<Addr, u32>,
    /// Objects that lose all of theirs.
    pub deleted_objects: BTreeSet<Addr>,
    /// Raw data that goes: first byte and length (bytes).
    pub raw_ranges: Vec<(Addr, u64)>,
    /// Uses of shared messages that go.
    pub shared_uses: Vec<SharedTableUse>,
    /// The datasets among the objects.
    pub datasets: Vec<Arc<OpenDataset>>,
}

/// The objects of a file that have no link now.
#[derive(Debug, Default)]
pub(crate) struct UnlinkedObjects {
    /// Objects that nothing leads to yet, though their headers count one link.
    new: Mutex<FxHashSet<Addr>>,
    /// Objects that lost their last link while others follow. The file still leads to them. After the flush that writes
    /// what no longer leads there, their space is freed. Their headers then say that they are deleted, for readers that
    /// have them open.
    pending: Mutex<Vec<DeletePlan>>,
}

impl UnlinkedObjects {
    /// An object was made that nothing leads to.
    pub fn add_new_object(&self, addr: Addr) {
        self.new.lock().insert(addr);
    }

    /// Something leads to this object now, or it goes. Says whether it was a new one without a link.
    pub fn take_new_object(&self, addr: Addr) -> bool {
        self.new.lock().remove(&addr)
    }

    /// These deleted objects wait for the next flush of the whole file.
    pub fn delete_later(&self, plans: impl IntoIterator<Item = DeletePlan>) {
        self.pending.lock().extend(plans);
    }

    /// Whether the object at `addr` goes with the next flush.
    pub fn is_pending_delete(&self, addr: Addr) -> bool {
        self.pending.lock().iter().any(|plan| plan.deleted_objects.contains(&addr))
    }

    /// The deleted objects that wait for a flush, which begins now.
    pub fn take_pending_deletes(&self) -> Vec<DeletePlan> {
        std::mem::take(&mut *self.pending.lock())
    }
}
