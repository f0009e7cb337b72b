//! Waiting for what a writer publishes of a map.

use std::time::{Duration, Instant};

use h5live_model::{self as model, Watch, WatchEvent};

use super::UntypedMap;
use crate::Result;
use crate::liveness_check::{LivenessCheck, MAX_WAIT};

/// What a writer publishes of a map. [`Map::follow`](crate::Map::follow) makes it.
///
/// Each item is the number of pairs after a refresh: the first one at once, the others when the writer has published
/// changes. Between two items, nothing moves what this session sees of the map. The iterator ends when the writer has
/// closed the file, or when the timeout is over without a change.
#[derive(Debug)]
pub struct MapLengthFollower {
    map: UntypedMap,
    watch: Option<Box<dyn Watch>>,
    timeout: Option<Duration>,
    liveness: LivenessCheck,
    is_finished: bool,
}

impl UntypedMap {
    /// Waits for what a writer publishes of the map.
    pub fn follow(&self) -> MapLengthFollower {
        MapLengthFollower {
            map: self.clone(),
            watch: None,
            timeout: None,
            liveness: LivenessCheck::default(),
            is_finished: false,
        }
    }
}

impl MapLengthFollower {
    /// Ends the iterator when nothing was published for this long. Without a timeout, it ends only when the writer does.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn is_live(&mut self) -> Result<bool> {
        self.liveness.defer_file_change_error(self.map.file().is_live())
    }

    /// Waits until something was published; `None` at the end.
    fn wait_for_change(&mut self) -> Result<Option<u64>> {
        let error = |map: &UntypedMap, error: model::Error| map.error(error);
        if self.watch.is_none() {
            // Made before the first look, so that no change is missed.
            let watch = self.map.file().store().watch(&[self.map.id()]);
            self.watch = Some(watch.map_err(|kind| error(&self.map, kind))?);
            self.map.refresh()?;
            return self.map.len().map(Some);
        }
        let until = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = until.map_or(MAX_WAIT, |until| until.saturating_duration_since(Instant::now())).min(MAX_WAIT);
            let Some(watch) = &mut self.watch else { return Ok(None) };
            match watch.wait(left).map_err(|kind| error(&self.map, kind))? {
                WatchEvent::Changed => {
                    self.map.refresh()?;
                    return self.map.len().map(Some);
                }
                _ if self.is_live()? => {}
                _ => {
                    self.is_finished = true;
                    // What was published before the end is still seen.
                    self.map.refresh()?;
                    return match self.liveness.pending_error.take() {
                        Some(ending) => Err(ending),
                        None => self.map.len().map(Some),
                    };
                }
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
        }
    }
}

impl Iterator for MapLengthFollower {
    type Item = Result<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_finished {
            return None;
        }
        let next = self.wait_for_change().transpose();
        self.is_finished |= !matches!(next, Some(Ok(_)));
        next
    }
}
