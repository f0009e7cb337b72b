//! Datasets that were opened.

use std::collections::VecDeque;
use std::sync::Arc;

use h5live_model::ObjectId;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::dataset::DatasetCore;

/// Most unused datasets that are kept in case they are opened again.
const MAX_UNUSED_DATASETS: usize = 256;

/// The shared states of datasets, by identity. Some unused ones are kept; the oldest are evicted, one by one, when new
/// ones come.
#[derive(Default)]
pub(crate) struct DatasetCache {
    cores: FxHashMap<ObjectId, Arc<DatasetCore>>,
    /// In the order in which they came, or were found to be in use. Some may have been removed since, and some have come
    /// a second time: then the first place counts.
    order: VecDeque<ObjectId>,
    /// The last dataset, if it was created and not opened since. Most datasets that are created are soon dropped for
    /// good.
    newest: Option<ObjectId>,
}

/// Datasets that were evicted. The caller drops them after it has released the lock.
pub(crate) type EvictedDatasets = SmallVec<[Arc<DatasetCore>; 2]>;

impl DatasetCache {
    /// The dataset of this identity, if it is there. If it was only created so far, it counts as opened from here on.
    pub(crate) fn get_for_open(&mut self, id: ObjectId) -> Option<Arc<DatasetCore>> {
        self.newest.take_if(|made| *made == id);
        self.cores.get(&id).cloned()
    }

    /// The dataset that came last has just been made.
    pub(crate) fn mark_newest_created(&mut self, id: ObjectId) {
        self.newest = (self.order.back() == Some(&id)).then_some(id);
    }

    /// Adds a dataset, unless it is there: then that one counts.
    pub(crate) fn add(&mut self, id: ObjectId, core: Arc<DatasetCore>) -> (Arc<DatasetCore>, EvictedDatasets) {
        if let Some(there) = self.cores.get(&id) {
            return (there.clone(), EvictedDatasets::from_iter([core]));
        }
        let gone = self.evict_unused();
        self.cores.insert(id, core.clone());
        self.order.push_back(id);
        (core, gone)
    }

    /// Lets the one go that was made last, if its maker has. Otherwise looks at two of those that came first, so that
    /// there are never more than twice as many as are in use.
    fn evict_unused(&mut self) -> EvictedDatasets {
        let mut gone = EvictedDatasets::new();
        if let Some(made) = self.newest.take()
            && self.is_unused(made)
        {
            self.order.pop_back();
            gone.extend(self.cores.remove(&made));
            return gone;
        }
        for _ in 0..2 {
            if self.order.len() < MAX_UNUSED_DATASETS {
                break;
            }
            let Some(id) = self.order.pop_front() else { break };
            match self.is_unused(id) {
                true => gone.extend(self.cores.remove(&id)),
                false => self.order.push_back(id),
            }
        }
        gone
    }

    fn is_unused(&self, id: ObjectId) -> bool {
        self.cores.get(&id).is_none_or(|core| Arc::strong_count(core) == 1 && !core.must_stay_cached())
    }

    /// All datasets that are kept.
    pub(crate) fn cached_datasets(&self) -> Vec<Arc<DatasetCore>> {
        self.cores.values().cloned().collect()
    }

    /// Forgets a dataset that has been deleted.
    pub(crate) fn remove(&mut self, id: ObjectId) -> Option<Arc<DatasetCore>> {
        self.newest.take_if(|made| *made == id);
        let removed = self.cores.remove(&id)?;
        removed.leave_publish_order();
        if self.order.len() > MAX_UNUSED_DATASETS + 2 * self.cores.len() {
            let mut kept = FxHashSet::default();
            self.order.retain(|id| self.cores.contains_key(id) && kept.insert(*id));
        }
        Some(removed)
    }

    /// The datasets are let go one by one: none takes others with it that it is published after.
    pub(crate) fn clear(&mut self) {
        let datasets = std::mem::take(self);
        datasets.cores.values().for_each(|core| core.leave_publish_order());
    }
}

#[cfg(test)]
mod tests {
    use crate::File;

    use super::MAX_UNUSED_DATASETS;

    #[test]
    fn keeps_those_in_use_and_some_of_the_others() {
        let file = File::in_memory();
        let path = |n: usize| format!("{n}");
        let count = || {
            let opened = file.shared().dataset_cache();
            assert_eq!(opened.cores.len(), opened.order.len());
            opened.cores.len()
        };
        for n in 0..4 * MAX_UNUSED_DATASETS {
            file.new_dataset::<u32>().create(&path(n)).unwrap();
        }
        // Those that were made and let go are not kept.
        assert_eq!(count(), 1);
        for n in 0..4 * MAX_UNUSED_DATASETS {
            file.dataset(&path(n)).unwrap();
        }
        assert_eq!(count(), MAX_UNUSED_DATASETS);
        let held: Vec<_> = (0..2 * MAX_UNUSED_DATASETS).map(|n| file.dataset(&path(n)).unwrap()).collect();
        for n in 2 * MAX_UNUSED_DATASETS..4 * MAX_UNUSED_DATASETS {
            file.dataset(&path(n)).unwrap();
        }
        assert!((2 * MAX_UNUSED_DATASETS..=4 * MAX_UNUSED_DATASETS).contains(&count()));
        for (n, dataset) in held.iter().enumerate() {
            dataset.write(&[n as u32]).unwrap();
            assert_eq!(file.dataset(&path(n)).unwrap().read::<u32>().unwrap(), [n as u32]);
        }
        drop(held);
        for n in (0..4 * MAX_UNUSED_DATASETS).chain(0..4 * MAX_UNUSED_DATASETS) {
            file.dataset(&path(n)).unwrap();
        }
        assert_eq!(count(), MAX_UNUSED_DATASETS);
        let made: Vec<_> = (4 * MAX_UNUSED_DATASETS..5 * MAX_UNUSED_DATASETS)
            .map(|n| file.new_dataset::<u32>().create(&path(n)).unwrap())
            .collect();
        assert!((MAX_UNUSED_DATASETS..=2 * MAX_UNUSED_DATASETS).contains(&count()));
        for (n, dataset) in (4 * MAX_UNUSED_DATASETS..).zip(&made) {
            dataset.write(&[n as u32]).unwrap();
            assert_eq!(file.dataset(&path(n)).unwrap().read::<u32>().unwrap(), [n as u32]);
        }
    }

    #[test]
    fn who_deletes_a_dataset_and_makes_another_finds_that_one() {
        let file = File::in_memory();
        for n in 0..3 * MAX_UNUSED_DATASETS {
            let data = file.new_dataset::<u32>().create("data").unwrap();
            data.write(&[n as u32]).unwrap();
            assert_eq!(file.dataset("data").unwrap().read::<u32>().unwrap(), [n as u32]);
            file.root().unlink("data").unwrap();
        }
    }
}
