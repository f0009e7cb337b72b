//! Datasets that were opened.

use std::collections::VecDeque;
use std::sync::Arc;

use h5live_model::ObjectId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::dataset::Core;

/// Datasets that are kept for those who open them again, if nobody has them.
const KEPT: usize = 256;

/// The shared states of datasets, by identity. Some that nobody has any more are kept; the oldest go, one by one, as others
/// come.
#[derive(Default)]
pub(crate) struct Opened {
    cores: FxHashMap<ObjectId, Arc<Core>>,
    /// In the order in which they came, or were found to be in use.
    order: VecDeque<ObjectId>,
}

/// Those that went, for who holds the lock to drop when it no longer does.
pub(crate) type Gone = SmallVec<[Arc<Core>; 2]>;

impl Opened {
    pub(crate) fn get(&self, id: ObjectId) -> Option<Arc<Core>> {
        self.cores.get(&id).cloned()
    }

    /// Adds a dataset, unless it is there: then that one counts.
    pub(crate) fn add(&mut self, id: ObjectId, core: Arc<Core>) -> (Arc<Core>, Gone) {
        if let Some(there) = self.cores.get(&id) {
            return (there.clone(), Gone::from_iter([core]));
        }
        let gone = self.make_room();
        self.cores.insert(id, core.clone());
        self.order.push_back(id);
        (core, gone)
    }

    /// Looks at two of those that came first, so that there are never more than twice as many as are in use.
    fn make_room(&mut self) -> Gone {
        let mut gone = Gone::new();
        for _ in 0..2 {
            if self.order.len() < KEPT {
                break;
            }
            let Some(id) = self.order.pop_front() else { break };
            match self.cores.get(&id) {
                Some(core) if Arc::strong_count(core) > 1 || core.must_stay() => self.order.push_back(id),
                _ => gone.extend(self.cores.remove(&id)),
            }
        }
        gone
    }

    /// Forgets a dataset that has been deleted.
    pub(crate) fn remove(&mut self, id: ObjectId) -> Option<Arc<Core>> {
        self.order.retain(|other| *other != id);
        self.cores.remove(&id)
    }

    pub(crate) fn clear(&mut self) {
        *self = Opened::default();
    }
}

#[cfg(test)]
mod tests {
    use crate::File;

    use super::KEPT;

    #[test]
    fn keeps_those_in_use_and_some_of_the_others() {
        let file = File::in_memory();
        let path = |n: usize| format!("{n}");
        for n in 0..4 * KEPT {
            file.new_dataset::<u32>().create(&path(n)).unwrap();
        }
        let count = || {
            let opened = file.shared().opened();
            assert_eq!(opened.cores.len(), opened.order.len());
            opened.cores.len()
        };
        assert_eq!(count(), KEPT);
        let held: Vec<_> = (0..2 * KEPT).map(|n| file.dataset(&path(n)).unwrap()).collect();
        for n in 2 * KEPT..4 * KEPT {
            file.dataset(&path(n)).unwrap();
        }
        assert!((2 * KEPT..=4 * KEPT).contains(&count()));
        for (n, dataset) in held.iter().enumerate() {
            dataset.write(&[n as u32]).unwrap();
            assert_eq!(file.dataset(&path(n)).unwrap().read::<u32>().unwrap(), [n as u32]);
        }
        drop(held);
        for n in 4 * KEPT..8 * KEPT {
            file.new_dataset::<u32>().create(&path(n)).unwrap();
        }
        assert_eq!(count(), KEPT);
    }

    #[test]
    fn who_deletes_a_dataset_and_makes_another_finds_that_one() {
        let file = File::in_memory();
        for n in 0..3 * KEPT {
            let data = file.new_dataset::<u32>().create("data").unwrap();
            data.write(&[n as u32]).unwrap();
            assert_eq!(file.dataset("data").unwrap().read::<u32>().unwrap(), [n as u32]);
            file.root().remove("data").unwrap();
        }
    }
}
