//! For tests that prove that checksums matter.

use std::cell::Cell;

thread_local! {
    static IGNORE_CHECKSUMS: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread takes every checksum for right.
pub(crate) fn ignores_checksums() -> bool {
    IGNORE_CHECKSUMS.get()
}

/// Does `work`, in which this thread takes every checksum for right.
pub fn ignoring_checksums<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IGNORE_CHECKSUMS.set(self.0);
        }
    }
    let _restore = Restore(IGNORE_CHECKSUMS.replace(true));
    work()
}
