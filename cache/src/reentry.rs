//! Checks for calls that a thread must not nest. They would deadlock once in a while; debug builds always panic.

/// The scope in which a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReentryScope {
    /// [`Cache::begin_atomic_change`](crate::Cache::begin_atomic_change).
    Operation,
    /// A flush, or an unwritten plan of one.
    Flush,
    /// The `read` of [`Cache::load`](crate::Cache::load).
    Load,
}

/// The thread is inside until this is dropped.
#[derive(Debug)]
pub(crate) struct ReentryGuard {
    #[cfg(all(debug_assertions, not(loom)))]
    _inside: debug::EnteredScope,
}

/// Enters a scope. Panics in debug builds if the thread is in a `forbidden` one.
pub(crate) fn enter_scope<T>(cache: &T, entering: ReentryScope, forbidden: &[ReentryScope]) -> ReentryGuard {
    assert_not_inside(cache, entering, forbidden);
    #[cfg(any(not(debug_assertions), loom))]
    let _ = entering;
    ReentryGuard {
        #[cfg(all(debug_assertions, not(loom)))]
        _inside: debug::EnteredScope::enter(cache, entering),
    }
}

#[cfg(any(not(debug_assertions), loom))]
pub(crate) fn assert_not_inside<T>(_: &T, _: ReentryScope, _: &[ReentryScope]) {}

#[cfg(all(debug_assertions, not(loom)))]
pub(crate) use debug::assert_not_inside;

#[cfg(all(debug_assertions, not(loom)))]
mod debug {
    use std::{cell::RefCell, marker::PhantomData, ptr::from_ref};

    use super::ReentryScope;

    thread_local! {
        static INSIDE: RefCell<Vec<(usize, ReentryScope)>> = const { RefCell::new(Vec::new()) };
    }

    #[derive(Debug)]
    pub(crate) struct EnteredScope {
        what: (usize, ReentryScope),
        _same_thread: PhantomData<*const ()>,
    }

    impl EnteredScope {
        pub fn enter<T>(cache: &T, entering: ReentryScope) -> Self {
            let what = (from_ref(cache).addr(), entering);
            INSIDE.with_borrow_mut(|all| all.push(what));
            EnteredScope { what, _same_thread: PhantomData }
        }
    }

    pub(crate) fn assert_not_inside<T>(cache: &T, entering: ReentryScope, forbidden: &[ReentryScope]) {
        let cache = from_ref(cache).addr();
        let outer =
            INSIDE.with_borrow(|all| all.iter().copied().find(|(of, outer)| *of == cache && forbidden.contains(outer)));
        if let Some((_, outer)) = outer {
            panic!("{entering:?} within {outer:?} of the same cache and thread: this would deadlock");
        }
    }

    impl Drop for EnteredScope {
        fn drop(&mut self) {
            INSIDE.with_borrow_mut(|all| {
                if let Some(at) = all.iter().rposition(|one| *one == self.what) {
                    all.remove(at);
                }
            });
        }
    }
}
