//! In which order the rows of datasets are seen.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use h5live_model::ObjectId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// One order is changed at a time, so that no circle comes to be.
static ORDERING: Mutex<()> = Mutex::new(());

/// What has a place in an order of publications.
pub(crate) trait InPublishOrder: Sized {
    fn publish_order(&self) -> &PublishOrder<Self>;

    /// A number that no two of them ever share.
    fn publish_key(&self) -> ObjectId;
}

/// The place of a dataset in the order of publications. Few datasets have one, so it takes little where there is none.
#[derive(Debug)]
pub(crate) struct PublishOrder<T>(Mutex<Option<Box<PublishPlace<T>>>>);

#[derive(Debug)]
struct PublishPlace<T> {
    /// What is seen before this one.
    earlier: BTreeMap<ObjectId, Arc<T>>,
    /// What is seen after this one.
    later: BTreeMap<ObjectId, Weak<T>>,
    /// Greater than that of each earlier one. So only one of a higher rank can be published after another one.
    rank: u64,
}

impl<T> Default for PublishOrder<T> {
    fn default() -> Self {
        PublishOrder(Mutex::new(None))
    }
}

impl<T> Default for PublishPlace<T> {
    fn default() -> Self {
        PublishPlace { earlier: BTreeMap::new(), later: BTreeMap::new(), rank: 0 }
    }
}

impl<T: InPublishOrder> PublishOrder<T> {
    /// Whether others are to be seen before this one.
    pub fn has_earlier(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|place| !place.earlier.is_empty())
    }

    /// Those that are seen before this one.
    pub fn predecessors(&self) -> Vec<Arc<T>> {
        self.0.lock().iter().flat_map(|place| place.earlier.values()).cloned().collect()
    }

    fn later(&self) -> Vec<Arc<T>> {
        self.0.lock().iter().flat_map(|place| place.later.values()).filter_map(Weak::upgrade).collect()
    }

    fn rank(&self) -> u64 {
        self.0.lock().as_ref().map_or(0, |place| place.rank)
    }

    fn change<U>(&self, change: impl FnOnce(&mut PublishPlace<T>) -> U) -> U {
        change(self.0.lock().get_or_insert_default())
    }

    /// From now on `earlier` is seen before `later`. Returns `false` if the opposite order exists already.
    pub fn try_put_before(earlier: &Arc<T>, later: &Arc<T>) -> bool {
        let _one_at_a_time = ORDERING.lock();
        let Some(raised) = ranks_after(later, earlier) else { return false };
        raised.into_iter().for_each(|(one, rank)| one.publish_order().change(|place| place.rank = rank));
        later.publish_order().change(|place| place.earlier.insert(earlier.publish_key(), earlier.clone()));
        earlier.publish_order().change(|place| place.later.insert(later.publish_key(), Arc::downgrade(later)));
        true
    }

    /// Takes one that nobody writes any more out of the order.
    pub fn remove_from_order(one: &T) {
        let _one_at_a_time = ORDERING.lock();
        let Some(mut place) = one.publish_order().0.lock().take() else { return };
        for later in place.later.values().filter_map(Weak::upgrade) {
            later.publish_order().change(|other| other.earlier.remove(&one.publish_key()));
        }
        // Let go one by one: what they order themselves does not go with them, one inside the other.
        while let Some((_, earlier)) = place.earlier.pop_first() {
            earlier.publish_order().change(|other| other.later.remove(&one.publish_key()));
        }
    }
}

/// The ranks that `later`, and what is published after it, need to be above `earlier`; `None` if `earlier` is among them.
fn ranks_after<T: InPublishOrder>(later: &Arc<T>, earlier: &Arc<T>) -> Option<Vec<(Arc<T>, u64)>> {
    let mut needed = FxHashMap::from_iter([(later.publish_key(), earlier.publish_order().rank() + 1)]);
    // By their ranks up to now: when one is taken, all are done that are seen before it.
    let mut waiting = BTreeMap::from([((later.publish_order().rank(), later.publish_key()), later.clone())]);
    let mut raised = Vec::new();
    while let Some(((rank, key), one)) = waiting.pop_first() {
        if Arc::ptr_eq(&one, earlier) {
            return None;
        }
        let least = needed[&key];
        if rank >= least {
            continue;
        }
        for next in one.publish_order().later() {
            let above = needed.entry(next.publish_key()).or_default();
            *above = least.saturating_add(1).max(*above);
            waiting.insert((next.publish_order().rank(), next.publish_key()), next);
        }
        raised.push((one, least));
    }
    Some(raised)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbered(u128, PublishOrder<Numbered>);

    impl InPublishOrder for Numbered {
        fn publish_order(&self) -> &PublishOrder<Self> {
            &self.1
        }

        fn publish_key(&self) -> ObjectId {
            ObjectId(self.0)
        }
    }

    fn numbered(count: u128) -> Vec<Arc<Numbered>> {
        (0..count).map(|n| Arc::new(Numbered(n, PublishOrder::default()))).collect()
    }

    /// Whether `one` is seen after `other`, found by looking at all that come before it.
    fn comes_after(one: &Arc<Numbered>, other: &Arc<Numbered>) -> bool {
        let (mut left, mut seen) = (vec![one.clone()], std::collections::HashSet::new());
        while let Some(next) = left.pop() {
            if Arc::ptr_eq(&next, other) {
                return true;
            }
            if seen.insert(next.0) {
                left.extend(next.1.predecessors());
            }
        }
        false
    }

    #[test]
    fn only_what_would_close_a_circle_is_refused() {
        let all = numbered(12);
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % all.len()
        };
        let mut refused = 0;
        for _ in 0..400 {
            let (earlier, later) = (&all[next()], &all[next()]);
            let closes_circle = comes_after(earlier, later);
            assert_eq!(PublishOrder::try_put_before(earlier, later), !closes_circle);
            refused += u32::from(closes_circle);
            if next() == 0 {
                PublishOrder::remove_from_order(&*all[next()]);
            }
        }
        assert!(refused > 50, "{refused}");
    }

    #[test]
    fn a_ladder_of_many_steps_takes_no_more_than_its_rungs() {
        let all = numbered(20_000);
        for step in all.windows(3) {
            assert!(
                PublishOrder::try_put_before(&step[0], &step[1]) && PublishOrder::try_put_before(&step[0], &step[2])
            );
        }
        assert!(!PublishOrder::try_put_before(&all[19_999], &all[0]));
        all.iter().for_each(|one| PublishOrder::remove_from_order(&**one));
        assert!(all.iter().all(|one| Arc::strong_count(one) == 1 && !one.1.has_earlier()));
    }
}
