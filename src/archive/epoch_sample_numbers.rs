//! Numbers of samples.

use super::order::EpochOrder;

/// Numbers of samples, in the order of an epoch.
#[derive(Debug, Clone)]
pub struct EpochSampleNumbers {
    order: EpochOrder,
    n: u64,
    next: u64,
    step: u64,
}

impl EpochSampleNumbers {
    /// Every `step`-th position of an order of `n` samples, from `next` on.
    pub(super) fn new(order: EpochOrder, n: u64, next: u64, step: u64) -> Self {
        EpochSampleNumbers { order, n, next, step }
    }

    /// The position of the next sample in the epoch: where [`EpochSamples::start_at`](super::EpochSamples::start_at) continues.
    pub fn next_position_in_epoch(&self) -> u64 {
        self.next
    }

    /// The same with the sample before it as the next one.
    pub(super) fn before(self) -> Self {
        EpochSampleNumbers { next: self.next.saturating_sub(self.step), ..self }
    }
}

impl Iterator for EpochSampleNumbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let sample = (self.next < self.n).then(|| self.order.at(self.next))?;
        self.next = self.next.saturating_add(self.step);
        Some(sample)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.n.saturating_sub(self.next).div_ceil(self.step);
        (usize::try_from(left).unwrap_or(usize::MAX), usize::try_from(left).ok())
    }
}
