//! How readers know that a writer is there: its lease is renewed again and again.
//!
//! A reader compares what it finds with what it found before, by its own clock. So clocks of different machines are never
//! compared.

use std::time::{Duration, Instant};

use h5live_objects::{GetCondition, GetOutcome, ObjectChangeTag, ObjectClient, ObjectErrorKind};

use super::lease_document::LeaseDocument;

/// What a session knows of the writer.
#[derive(Debug, Default)]
pub struct LeaseObserver {
    last: Option<SeenLease>,
}

/// A lease as it was found, and when it was found so for the first time.
#[derive(Debug)]
struct SeenLease {
    tag: ObjectChangeTag,
    since: Instant,
    /// How long it holds without renewal; `None` if its holder has ended, or it is no lease.
    period: Option<Duration>,
}

impl LeaseObserver {
    /// Whether a writer is there. One that was killed is there until its lease has not been renewed for its period.
    ///
    /// # Errors
    /// Those of the client.
    pub fn has_writer(&mut self, client: &ObjectClient, key: &str) -> h5live_objects::Result<bool> {
        let condition = match &self.last {
            Some(last) => GetCondition::NotMatching(last.tag.clone()),
            None => GetCondition::Always,
        };
        match client.get(key, &condition) {
            Ok(GetOutcome::NotModified) => Ok(self.is_alive(Instant::now())),
            Ok(GetOutcome::Object(found)) => {
                self.observe(found.meta.tag, &found.bytes, Instant::now());
                Ok(self.is_alive(Instant::now()))
            }
            Err(error) if error.kind == ObjectErrorKind::NotThere => {
                self.last = None;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the last lease that was found was not renewed for its period, and its holder has not ended it.
    pub fn has_expired(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.period.is_some()) && !self.is_alive(Instant::now())
    }

    fn observe(&mut self, tag: ObjectChangeTag, bytes: &[u8], now: Instant) {
        // A store without tags gives the same bytes again.
        if self.last.as_ref().is_some_and(|last| last.tag == tag && !tag.lacks_etag()) {
            return;
        }
        let period = LeaseDocument::parse(bytes).filter(|lease| !lease.is_released).map(|lease| lease.ttl);
        self.last = Some(SeenLease { tag, since: now, period });
    }

    fn is_alive(&self, now: Instant) -> bool {
        let is_held =
            |last: &SeenLease| last.period.is_some_and(|period| now.saturating_duration_since(last.since) < period);
        self.last.as_ref().is_some_and(is_held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_dead_when_its_lease_was_not_renewed_for_its_period_and_not_before() {
        let (mut observer, start) = (LeaseObserver::default(), Instant::now());
        let mut lease = LeaseDocument::new(7, Duration::from_secs(60));
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(!observer.is_alive(start), "nobody was ever there");
        assert!(!observer.has_expired());
        observer.observe(ObjectChangeTag::of_etag("1"), &lease.to_bytes(), after(0));
        assert!(observer.is_alive(after(59)) && !observer.is_alive(after(60)));
        assert!(!observer.has_expired());
        lease.renewal_count += 1;
        observer.observe(ObjectChangeTag::of_etag("2"), &lease.to_bytes(), after(70));
        assert!(observer.is_alive(after(129)), "it was only slow");
        observer.observe(ObjectChangeTag::of_etag("2"), &lease.to_bytes(), after(100));
        assert!(!observer.is_alive(after(130)), "the same state again is no renewal");
        let last = SeenLease { tag: ObjectChangeTag::of_etag("2"), since: start, period: Some(Duration::ZERO) };
        let dead = LeaseObserver { last: Some(last) };
        assert!(dead.has_expired());
        lease.is_released = true;
        observer.observe(ObjectChangeTag::of_etag("3"), &lease.to_bytes(), after(131));
        assert!(!observer.is_alive(after(131)) && !observer.has_expired(), "it was closed");
        observer.observe(ObjectChangeTag::of_etag("4"), b"anything", after(132));
        assert!(!observer.is_alive(after(132)));
    }
}
