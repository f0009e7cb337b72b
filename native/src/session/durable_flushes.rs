//! Which flushes of a session outlast a power failure.

use std::sync::atomic::{AtomicBool, Ordering};

use h5live_cache::Cache;

/// Whether flushes are durable. The first durable flush has all later ones keep the order that a power failure needs.
#[derive(Debug)]
pub(crate) struct DurableFlushes {
    is_always: bool,
    has_barriers: AtomicBool,
}

impl DurableFlushes {
    /// The flushes of a session, in which every flush of the whole file may be durable.
    pub fn new(is_always: bool) -> Self {
        DurableFlushes { is_always, has_barriers: is_always.into() }
    }

    /// Whether every flush of the whole file is durable.
    pub fn is_always(&self) -> bool {
        self.is_always
    }

    /// A durable flush begins. From here on, flushes keep the order that a power failure needs.
    pub fn enable_barriers(&self, cache: &Cache) {
        cache.enable_barriers();
        self.has_barriers.store(true, Ordering::Release);
    }

    /// Whether flushes keep that order.
    pub fn has_barriers(&self) -> bool {
        self.has_barriers.load(Ordering::Acquire)
    }
}
