//! Looking up and listing names in a file that others may be changing.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use h5live_model::Name;
use h5live_swmr::{LockHandle, RetryPolicy};

use crate::adaptive_batch_limit::AdaptiveBatchLimit;
use crate::seen_names::{NameOwner, SeenNames};
use crate::{Error, Mode, Result};

/// Lookups and lists of names that are as stable as the mode of a session allows: a follower does not miss a name that
/// it has seen because the index is being changed.
#[derive(Debug)]
pub(crate) struct NameLookups {
    mode: Mode,
    retry: RetryPolicy,
    lock: Arc<LockHandle>,
    seen: SeenNames,
}

impl NameLookups {
    /// Names in a file that is open in `mode` and locked by `lock`. None was seen yet.
    pub fn new(mode: Mode, retry: RetryPolicy, lock: Arc<LockHandle>) -> Self {
        NameLookups { mode, retry, lock, seen: SeenNames::default() }
    }

    fn is_follower(&self) -> bool {
        self.mode == Mode::SwmrRead
    }

    /// Whether a process writes the file that may change name indexes in place. Other programs cannot reach a storage
    /// that is no file.
    fn is_written_by_others(&self) -> bool {
        self.is_follower() && self.lock.is_lockable_without_liveness_lock()
    }

    /// Looks up a name with `find`.
    ///
    /// # Errors
    /// Errors of `find`.
    pub fn find_entry_with_retry<T>(
        &self,
        of: NameOwner,
        name: &Name,
        mut find: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let vanished = Cell::new(false);
        let found = self.retry.retry(|| {
            vanished.set(false);
            let found = find()?;
            if !self.is_follower() {
                return Ok(found);
            }
            match (found.is_some(), self.seen.contains_name(of, name)) {
                (true, false) if self.is_written_by_others() => self.seen.add_names(of, [name].into_iter()),
                (false, true) if self.is_written_by_others() => {
                    vanished.set(true);
                    return Err(of.missing_name_error());
                }
                _ => {}
            }
            Ok(found)
        });
        match found {
            Err(_) if vanished.get() => {
                self.seen.retain_names(of, |kept| kept != name);
                Ok(None)
            }
            found => found,
        }
    }

    /// Lists everything, as [`NameLookups::list_in_parts`]. A name that was seen is not missed.
    ///
    /// # Errors
    /// Errors of `list_after`.
    pub fn list_entries_with_retry<T>(
        &self,
        of: NameOwner,
        name_of: impl Fn(&T) -> &Name,
        mut list_after: impl FnMut(Option<&Name>, &mut dyn FnMut(T) -> bool) -> Result<bool>,
    ) -> Result<Vec<T>> {
        if !self.is_written_by_others() || self.reads_generations() {
            return self.list_in_parts(name_of, list_after);
        }
        let mut less = None;
        let gathered = self.retry.retry_with_start_time(|since| {
            less = None;
            let all = self.list_in_parts(&name_of, &mut list_after)?;
            // Each part was read fast enough.
            *since = self.retry.now();
            let names = all.iter().map(&name_of).collect();
            if !self.seen.is_subset_of(of, &names) {
                drop(names);
                less = Some(all);
                return Err(of.missing_name_error());
            }
            self.seen.add_names(of, names.into_iter());
            Ok(all)
        });
        match (gathered, less) {
            (Err(_), Some(all)) => {
                let names: HashSet<_> = all.iter().map(name_of).collect();
                self.seen.retain_names(of, |name| names.contains(name));
                Ok(all)
            }
            (gathered, _) => gathered,
        }
    }

    /// Whether what is read counts only if the file shows one generation meanwhile. Then no name is missed.
    fn reads_generations(&self) -> bool {
        self.is_follower() && self.retry.generation_reader().is_some()
    }

    /// Lists everything in the order in which it is kept, in parts: a list that takes longer than the writer takes from
    /// one flush to the next, or than addresses may be trusted, would never be read at once. `list_after` lists what comes
    /// after a name, and returns whether there may be more. Each part is consistent by itself.
    fn list_in_parts<T>(
        &self,
        name_of: impl Fn(&T) -> &Name,
        mut list_after: impl FnMut(Option<&Name>, &mut dyn FnMut(T) -> bool) -> Result<bool>,
    ) -> Result<Vec<T>> {
        let (mut all, mut limit, mut parts) = (Vec::new(), AdaptiveBatchLimit::unlimited(), 0);
        loop {
            let after = all.last().map(|last| name_of(last).clone());
            let (part, is_ended) = self.retry.retry(|| {
                limit.shrink_if_retrying();
                let mut part = Vec::new();
                let is_ended = list_after(after.as_ref(), &mut |item| {
                    part.push(item);
                    limit.may_read_more(part.len())
                });
                limit.record_attempt_size(part.len());
                Ok::<_, Error>((part, is_ended?))
            })?;
            limit.grow_after_success();
            all.extend(part);
            parts += 1;
            if !is_ended {
                if parts > 1 {
                    keep_last_of_each_name(&mut all, name_of);
                }
                return Ok(all);
            }
        }
    }

    /// Calls `each` with everything that `list_after` lists. A follower may have to start again, and a writer must not
    /// keep others from writing meanwhile. So both first gather the whole list.
    pub fn for_each_entry_with_retry<T>(
        &self,
        each: &mut dyn FnMut(T) -> bool,
        (of, name_of): (NameOwner, impl Fn(&T) -> &Name),
        mut list_after: impl FnMut(Option<&Name>, &mut dyn FnMut(T) -> bool) -> Result<bool>,
    ) -> Result<()> {
        if !self.is_follower() && !self.mode.writes() {
            // A list may end later than it is told to.
            let mut goes_on = true;
            let mut each = |item| {
                goes_on = goes_on && each(item);
                goes_on
            };
            return list_after(None, &mut each).map(drop);
        }
        let all = self.list_entries_with_retry(of, name_of, list_after)?;
        all.into_iter().all(each);
        Ok(())
    }
}

/// Between two parts of a list, its items may move to a storage with another order. Then some are listed twice.
fn keep_last_of_each_name<T>(items: &mut Vec<T>, name_of: impl Fn(&T) -> &Name) {
    let mut later = HashSet::new();
    let is_last: Vec<bool> = items.iter().rev().map(|item| later.insert(name_of(item).clone())).collect();
    let mut is_last = is_last.into_iter().rev();
    items.retain(|_| is_last.next().unwrap_or(true));
}
