//! How far a copy is, and when what it has written is to be flushed.

/// How far a copy is.
#[derive(Default)]
pub(super) struct CopyProgress<'a> {
    pub(super) each: Option<Box<dyn FnMut(u64) + 'a>>,
    /// After so many bytes of elements the copy is flushed; `None`: it is left to the caller.
    pub(super) flush_every: Option<u64>,
    unflushed: u64,
}

impl CopyProgress<'_> {
    /// Counts bytes of elements that were copied.
    pub(super) fn add(&mut self, bytes: u64) {
        self.unflushed = self.unflushed.saturating_add(bytes);
        if let Some(each) = &mut self.each {
            each(bytes);
        }
    }

    /// Whether it is time for a flush. Then the count begins anew.
    pub(super) fn takes_flush(&mut self) -> bool {
        let is_due = self.flush_every.is_some_and(|most| self.unflushed >= most);
        if is_due {
            self.unflushed = 0;
        }
        is_due
    }
}
