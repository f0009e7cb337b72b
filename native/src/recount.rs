//! Recounting and correcting the entries of objects that a dead writer has left.
//!
//! Live readers see one structure after the other: the heap, then the index of names, then the index of creation order,
//! and the header last. A writer that dies between two of them leaves each of them whole, but one is ahead of the
//! other. The index of names decides which entries exist. The others are made to agree with it.

use std::collections::{HashMap, HashSet};

use h5live_format::Addr;
use h5live_format::messages::{AttributeInfo, LinkInfo};

use crate::Result;
use crate::attributes::{AttributeStorage, DenseAttributes};
use crate::header::CachedHeader;
use crate::links::DenseLinks;
use crate::session::NativeSession;

/// The newest entries of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HighestCreationOrders {
    /// The highest position of a link in the order of creation.
    pub link_order: Option<i64>,
    /// The highest position of an attribute.
    pub attribute_order: Option<u16>,
    /// Whether the header has two attributes of one name: one was to replace the other.
    pub has_duplicate_attributes: bool,
}

/// An object whose structures contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectToRepair {
    pub addr: Addr,
    newest: HighestCreationOrders,
    /// Links to it that its header does not count; less than 0 if it counts too many.
    missing_links: i32,
}

/// The objects that are found on a walk over the file.
#[derive(Debug, Default)]
pub(crate) struct ObjectUses {
    /// Hard links and other uses that were found, by the header to which they lead.
    uses: HashMap<Addr, u32>,
    /// How many each object that was visited says that there are, and the newest entries of those that do not agree.
    visited: Vec<(Addr, u32, Option<HighestCreationOrders>)>,
}

impl ObjectUses {
    /// Something leads to the object with this header.
    pub fn add_use(&mut self, addr: Addr) {
        let uses = self.uses.entry(addr).or_default();
        *uses = uses.saturating_add(1);
    }

    /// An object was visited, which has these entries.
    ///
    /// # Errors
    /// If a structure cannot be read.
    pub fn add_visited_object(
        &mut self,
        session: &NativeSession,
        header: &mut CachedHeader,
        newest: HighestCreationOrders,
    ) -> Result<()> {
        let disagrees = session.check_or_repair_entries(header, newest, false)?;
        self.visited.push((header.addr(), header.object_info()?.hard_link_count, disagrees.then_some(newest)));
        Ok(())
    }

    /// The counts that must be corrected. Uses are compared only if all of them were found.
    pub fn into_objects_to_repair(self, found_all_uses: bool) -> Vec<ObjectToRepair> {
        let wrong = |(addr, stated, newest): (Addr, u32, Option<HighestCreationOrders>)| {
            let found = self.uses.get(&addr).copied().unwrap_or(stated);
            let links =
                if found_all_uses { i32::try_from(i64::from(found) - i64::from(stated)).unwrap_or(0) } else { 0 };
            let newest = match newest {
                None if links == 0 => return None,
                newest => newest.unwrap_or_default(),
            };
            Some(ObjectToRepair { addr, newest, missing_links: links })
        };
        self.visited.into_iter().filter_map(wrong).collect()
    }
}

impl NativeSession {
    /// Corrects the counts that were found.
    ///
    /// # Errors
    /// If a structure cannot be read or changed.
    pub fn repair_counts_and_indexes(&self, object: &ObjectToRepair) -> Result<()> {
        let _operation = self.cache.begin_atomic_change();
        let _lock = self.lock_header(object.addr);
        let mut header = self.load_header(object.addr)?;
        self.check_or_repair_entries(&mut header, object.newest, true)?;
        if object.missing_links != 0 {
            header.change_link_count(object.missing_links)?;
        }
        Ok(())
    }

    /// Leaves the first attribute of each name in a header, which is the one that readers find.
    fn remove_duplicate_attributes(&self, header: &mut CachedHeader) -> Result<()> {
        let mut names = HashSet::new();
        let mut second = AttributeStorage::list_compact_attributes(self, header)?;
        second.retain(|(_, held)| !names.insert(held.message.name.clone()));
        // From the end, so that the others stay where they are.
        second.into_iter().rev().try_for_each(|(spot, _)| header.remove_message(spot))
    }

    /// Whether heaps, indexes and header of an object do not agree about its entries; with `repair`, they do afterwards.
    fn check_or_repair_entries(
        &self,
        header: &mut CachedHeader,
        newest: HighestCreationOrders,
        repair: bool,
    ) -> Result<bool> {
        let mut wrong = newest.has_duplicate_attributes;
        if newest.has_duplicate_attributes && repair {
            self.remove_duplicate_attributes(header)?;
        }
        if let Some(mut info) = header.get_message::<AttributeInfo>()? {
            if info.is_dense() {
                wrong |= DenseAttributes::open_for_check_or_repair(self, header, &info, repair)
                    .find_or_repair_inconsistency(repair)?;
            }
            let next = newest.attribute_order.and_then(|newest| newest.checked_add(1));
            let is_low = raise_creation_order(&mut info.next_creation_order, next);
            wrong |= is_low;
            if is_low && repair {
                header.set_message(&info)?;
            }
        }
        if let Some(mut info) = header.get_message::<LinkInfo>()? {
            if info.is_dense() {
                wrong |= DenseLinks::open_for_check_or_repair(self, header, &info, repair)
                    .find_or_repair_inconsistency(header, repair)?;
            }
            let next = newest.link_order.and_then(|newest| newest.checked_add(1));
            let is_low = raise_creation_order(&mut info.next_creation_order, next);
            wrong |= is_low;
            if is_low && repair {
                header.set_message(&info)?;
            }
        }
        Ok(wrong)
    }
}

/// Raises the highest position in the order of creation, if it is tracked and lower than `next`; whether it was.
fn raise_creation_order<T: Ord + Copy>(max: &mut Option<T>, next: Option<T>) -> bool {
    let is_low = max.is_some() && next.is_some() && *max < next;
    if is_low {
        *max = next;
    }
    is_low
}
