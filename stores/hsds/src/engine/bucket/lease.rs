//! The lease of a writer: an object beside the domain that one session at a time may write.
//!
//! Each change of the object depends on the tag that it had, so of two sessions one succeeds. The holder renews it on a
//! thread of its own. Whoever finds that it was not renewed for its period takes it, with the next epoch.
//!
//! A writer asks for its lease before each wave of changes. So a session that has lost it, be it that it was stopped for
//! long or that somebody has taken it by an option, writes nothing more. Between the question and the end of the wave it
//! is the time that protects: no change begins unless the lease holds longer than all attempts of it may take. The time is
//! counted from before the request that renewed the lease.

use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live_model::Result;
use h5live_objects::{
    GetCondition, GetOutcome, ObjectBytes, ObjectChangeTag, ObjectClient, ObjectError, ObjectErrorKind, PutCondition,
    RequestLimits,
};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::lease_document::{LeaseDocument, clamp_lease_ttl};
use crate::error::HsdsError;
use crate::layout::DOMAIN_FILE;
use crate::random::random;

/// The name of the object, in the folder of the domain. HSDS passes over it, as over everything there but its own.
const LEASE_FILE: &str = ".h5live.lease.json";
/// What the names of objects begin with whose time is that of the server's clock.
const CLOCK_PREFIX: &str = ".h5live.clock-";
/// A lease is renewed so often in its period.
const RENEWALS_IN_PERIOD: u32 = 6;
/// How often a session tries to take a lease that others take and release meanwhile.
const MAX_ROUNDS: u32 = 16;
/// How often a renewal is tried again whose answer was lost.
const MAX_RENEWAL_ROUNDS: u32 = 4;
/// The times of objects are whole seconds, and the clocks of the machines of a service may differ.
pub const CLOCK_MARGIN: Duration = Duration::from_secs(2);

/// How a lease is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseOptions {
    /// How long it holds without renewal.
    pub ttl: Duration,
    /// Whether it is taken away from a holder that may be alive.
    pub takes_over_unexpired: bool,
    /// Whether two writers may write at a time, because the object store cannot exclude them.
    pub is_unfenced: bool,
}

/// The lease of a session that writes. It ends with this.
#[derive(Debug)]
pub struct WriterLease(Arc<LeaseState>);

#[derive(Debug)]
struct LeaseState {
    client: ObjectClient,
    key: String,
    /// The domain, as errors name it.
    domain: String,
    is_unfenced: bool,
    held: Mutex<HeldLease>,
    has_ended: Condvar,
}

#[derive(Debug)]
struct HeldLease {
    document: LeaseDocument,
    tag: ObjectChangeTag,
    /// Until when nobody else takes it.
    valid_until: Instant,
    /// Who has taken it.
    lost_to: Option<String>,
    is_ended: bool,
}

/// The key of the lease of a domain.
pub fn lease_key(domain: &str) -> String {
    key_in_domain_folder(domain, LEASE_FILE)
}

/// The key of an object in the folder of a domain.
pub fn key_in_domain_folder(domain: &str, name: &str) -> String {
    if domain.is_empty() { name.to_owned() } else { format!("{domain}/{name}") }
}

/// The longest time of all attempts of a change of a session whose leases hold so long.
pub fn limits_for_lease_ttl(limits: &RequestLimits, ttl: Duration) -> RequestLimits {
    let part = clamp_lease_ttl(ttl) / 3;
    RequestLimits {
        attempt_timeout: limits.attempt_timeout.min(part),
        retry_timeout: limits.retry_timeout.min(part),
        ..*limits
    }
}

impl WriterLease {
    /// Takes the lease of a domain.
    ///
    /// # Errors
    /// [`HsdsError::Leased`] if a session holds it, [`HsdsError::BadLease`], [`HsdsError::NoConditionalWrites`], and those of the
    /// client.
    pub fn acquire(client: &ObjectClient, domain: &str, request: &LeaseOptions) -> Result<Self> {
        let client = client.with_limits(limits_for_lease_ttl(client.limits(), request.ttl));
        let taking =
            LeaseTaking { domain: client.object_display_name(domain), key: lease_key(domain), client, request };
        let held = taking.take(domain)?;
        let state = Arc::new(LeaseState {
            client: taking.client,
            key: taking.key,
            domain: taking.domain,
            is_unfenced: request.is_unfenced,
            held: Mutex::new(held),
            has_ended: Condvar::new(),
        });
        let lease = WriterLease(state.clone());
        lease.check_conditions()?;
        let thread = std::thread::Builder::new().name("h5live-lease".to_owned()).spawn(move || state.keep());
        thread.map_err(|source| HsdsError::Io { key: lease.0.key.clone(), source })?;
        Ok(lease)
    }

    /// Tries once whether the object store keeps conditions: a store that does not would let two writers write.
    fn check_conditions(&self) -> Result<()> {
        let mut held = self.0.held.lock();
        if self.0.is_unfenced || held.document.has_verified_conditional_writes {
            return Ok(());
        }
        let old = held.tag.clone();
        self.0.renew(&mut held)?;
        for (condition, refusal) in
            [(PutCondition::Absent, ObjectErrorKind::Exists), (PutCondition::Matching(old), ObjectErrorKind::Changed)]
        {
            let other = LeaseDocument { renewal_count: held.document.renewal_count + 1, ..held.document.clone() };
            match self.0.client.put(&self.0.key, other.to_bytes(), &condition) {
                Err(error) if error.kind == refusal => {}
                Err(error) if error.kind != ObjectErrorKind::Unsupported => return Err(error.into()),
                _ => {
                    let released = LeaseDocument { is_released: true, ..other };
                    self.0.client.put(&self.0.key, released.to_bytes(), &PutCondition::Always)?;
                    held.is_ended = true;
                    return Err(HsdsError::NoConditionalWrites(self.0.client.location_name().to_owned()).into());
                }
            }
        }
        held.document.has_verified_conditional_writes = true;
        Ok(())
    }

    /// Asks whether the session still has the lease.
    ///
    /// # Errors
    /// [`HsdsError::Fenced`] if another one has it, and those of the client.
    pub fn confirm(&self) -> Result<()> {
        if self.0.is_unfenced {
            return Ok(());
        }
        let tag = {
            let mut held = self.0.held.lock();
            self.0.check_held(&held)?;
            if !self.0.is_fresh(&held) {
                return self.0.renew(&mut held);
            }
            held.tag.clone()
        };
        match self.0.client.get(&self.0.key, &GetCondition::NotMatching(tag)) {
            Ok(GetOutcome::NotModified) => Ok(()),
            Ok(GetOutcome::Object(found)) => {
                // The thread may have renewed it meanwhile.
                let mut held = self.0.held.lock();
                self.0.check_found(&mut held, &found).map(drop)
            }
            Err(error) if error.kind == ObjectErrorKind::NotThere => {
                Err(self.0.lose(&mut self.0.held.lock(), DELETED.to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a change begin within a wave: renews the lease if it does not hold long enough.
    ///
    /// # Errors
    /// As [`WriterLease::confirm`].
    pub fn renew_if_due(&self) -> Result<()> {
        let mut held = self.0.held.lock();
        self.0.check_held(&held)?;
        match self.0.is_unfenced || self.0.is_fresh(&held) {
            true => Ok(()),
            false => self.0.renew(&mut held),
        }
    }

    /// Whether the object store does not keep conditions of writes, so that nothing depends on any.
    pub fn is_unfenced(&self) -> bool {
        self.0.is_unfenced
    }

    /// Whether the session has not lost it, as far as it knows.
    pub fn is_held(&self) -> bool {
        let held = self.0.held.lock();
        held.lost_to.is_none() && !held.is_ended
    }

    /// Ends it, so that others may write. If the object store does not answer, it ends after its period.
    pub fn release(&self) {
        let mut held = self.0.held.lock();
        if std::mem::replace(&mut held.is_ended, true) {
            return;
        }
        self.0.has_ended.notify_all();
        if held.lost_to.is_none() {
            let released = LeaseDocument {
                is_released: true,
                renewal_count: held.document.renewal_count + 1,
                ..held.document.clone()
            };
            // Somebody else's lease is left as it is.
            let _ = self.0.client.put(&self.0.key, released.to_bytes(), &self.0.condition(&held));
        }
    }

    /// Ends it, and deletes its object if this session made that. It is deleted while it is held: whoever takes it away at
    /// this moment (`take=yes`) counts it as lost, and writes nothing.
    ///
    /// # Errors
    /// As [`WriterLease::confirm`], and those of the client.
    pub fn release_and_delete_if_created(&self) -> Result<()> {
        let is_first = self.0.held.lock().document.epoch == 1;
        if !is_first {
            self.release();
            return Ok(());
        }
        self.delete()
    }

    fn delete(&self) -> Result<()> {
        self.confirm()?;
        let mut held = self.0.held.lock();
        self.0.check_held(&held)?;
        if !held.is_ended {
            self.0.client.delete(&self.0.key)?;
            held.is_ended = true;
            self.0.has_ended.notify_all();
        }
        Ok(())
    }

    /// Ends it, and deletes its object if there is no domain beside it. Whoever has had it before finds that it is lost.
    ///
    /// # Errors
    /// As [`WriterLease::release_and_delete_if_created`].
    pub fn release_delete_unless_domain_exists(&self, client: &ObjectClient) -> Result<()> {
        let domain = self.0.key.strip_suffix(LEASE_FILE).unwrap_or_default().trim_end_matches('/');
        match client.head(&key_in_domain_folder(domain, DOMAIN_FILE)) {
            Ok(_) => self.release(),
            Err(error) if error.kind == ObjectErrorKind::NotThere => self.delete()?,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The session that has it.
    pub fn session_id(&self) -> u64 {
        self.0.held.lock().document.session_id
    }
}

impl Drop for WriterLease {
    fn drop(&mut self) {
        self.release();
    }
}

/// Who has taken a lease that is not there any more, or is no lease.
const DELETED: &str = "somebody who has deleted its lease";
const OVERWRITTEN: &str = "somebody who has overwritten its lease";

impl LeaseState {
    /// The work of the thread: renews the lease until it ends or is lost.
    fn keep(&self) {
        let mut held = self.held.lock();
        while !held.is_ended && held.lost_to.is_none() {
            let pause = held.document.ttl / RENEWALS_IN_PERIOD;
            self.has_ended.wait_for(&mut held, pause);
            if !held.is_ended && held.lost_to.is_none() {
                // One that fails is missed; the next one makes up for it.
                let _ = self.renew(&mut held);
            }
        }
    }

    /// Whether all attempts of a change that begins now end before somebody else may take the lease.
    fn is_fresh(&self, held: &HeldLease) -> bool {
        let left = held.valid_until.saturating_duration_since(Instant::now());
        left >= held.document.ttl * 2 / 3
    }

    fn condition(&self, held: &HeldLease) -> PutCondition {
        match self.is_unfenced {
            true => PutCondition::Always,
            false => PutCondition::Matching(held.tag.clone()),
        }
    }

    fn check_held(&self, held: &HeldLease) -> Result<()> {
        match &held.lost_to {
            None => Ok(()),
            Some(by) => Err(HsdsError::Fenced { domain: self.domain.clone(), by: by.clone() }.into()),
        }
    }

    fn lose(&self, held: &mut HeldLease, by: String) -> h5live_model::Error {
        let by = held.lost_to.get_or_insert(by).clone();
        HsdsError::Fenced { domain: self.domain.clone(), by }.into()
    }

    /// Takes the lease that is there for its own, if it is.
    fn check_found(&self, held: &mut HeldLease, found: &ObjectBytes) -> Result<LeaseDocument> {
        match LeaseDocument::parse(&found.bytes) {
            Some(lease) if lease.session_id == held.document.session_id && !lease.is_released => Ok(lease),
            Some(lease) => Err(self.lose(held, lease.holder)),
            None => Err(self.lose(held, OVERWRITTEN.to_owned())),
        }
    }

    fn renew(&self, held: &mut MutexGuard<'_, HeldLease>) -> Result<()> {
        for _ in 0..MAX_RENEWAL_ROUNDS {
            let begin = Instant::now();
            let renewed = LeaseDocument { renewal_count: held.document.renewal_count + 1, ..held.document.clone() };
            match self.client.put(&self.key, renewed.to_bytes(), &self.condition(held)) {
                Ok(tag) => {
                    (held.valid_until, held.document, held.tag) = (begin + renewed.ttl, renewed, tag);
                    return Ok(());
                }
                Err(error) if error.kind == ObjectErrorKind::Changed => {}
                Err(error) => return Err(error.into()),
            }
            // An earlier renewal may have succeeded, and all of its answers may be lost.
            match self.client.get(&self.key, &GetCondition::Always) {
                Ok(GetOutcome::Object(found)) => {
                    let lease = self.check_found(held, &found)?;
                    held.document.renewal_count = held.document.renewal_count.max(lease.renewal_count);
                    held.tag = found.meta.tag;
                }
                Ok(GetOutcome::NotModified) => {}
                Err(error) if error.kind == ObjectErrorKind::NotThere => {
                    return Err(self.lose(held, DELETED.to_owned()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let cause = "the lease changes again and again";
        Err(ObjectError::new(ObjectErrorKind::Changed, self.client.object_display_name(&self.key), cause).into())
    }
}

/// A lease that is being taken.
struct LeaseTaking<'a> {
    client: ObjectClient,
    key: String,
    domain: String,
    request: &'a LeaseOptions,
}

impl LeaseTaking<'_> {
    fn take(&self, domain: &str) -> Result<HeldLease> {
        let mut own = LeaseDocument::new(random()?, self.request.ttl);
        for _ in 0..MAX_ROUNDS {
            let condition = match self.client.get(&self.key, &GetCondition::Always) {
                Err(error) if error.kind == ObjectErrorKind::NotThere => {
                    own.epoch = 1;
                    PutCondition::Absent
                }
                Ok(GetOutcome::Object(found)) => {
                    self.check_free(domain, &found)?;
                    let old = LeaseDocument::parse(&found.bytes);
                    own.epoch = old.as_ref().map_or(0, |old| old.epoch).saturating_add(1);
                    own.has_verified_conditional_writes = old.is_some_and(|old| old.has_verified_conditional_writes);
                    PutCondition::Matching(found.meta.tag)
                }
                Ok(GetOutcome::NotModified) => continue,
                Err(error) => return Err(error.into()),
            };
            let condition = if self.request.is_unfenced { PutCondition::Always } else { condition };
            let begin = Instant::now();
            match self.client.put(&self.key, own.to_bytes(), &condition) {
                Ok(tag) => {
                    let valid_until = begin + own.ttl;
                    return Ok(HeldLease { document: own, tag, valid_until, lost_to: None, is_ended: false });
                }
                // Somebody else was first.
                Err(error) if matches!(error.kind, ObjectErrorKind::Exists | ObjectErrorKind::Changed) => {}
                Err(error) if error.kind == ObjectErrorKind::Unsupported => {
                    return Err(HsdsError::NoConditionalWrites(self.client.location_name().to_owned()).into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(self.leased("other processes".to_owned()))
    }

    fn leased(&self, holder: String) -> h5live_model::Error {
        HsdsError::Leased { domain: self.domain.clone(), holder }.into()
    }

    /// Refuses a lease that a session holds.
    fn check_free(&self, domain: &str, found: &ObjectBytes) -> Result<()> {
        if self.request.takes_over_unexpired || self.request.is_unfenced {
            return Ok(());
        }
        let Some(lease) = LeaseDocument::parse(&found.bytes) else {
            return Err(HsdsError::BadLease(self.client.object_display_name(&self.key)).into());
        };
        if lease.is_released {
            return Ok(());
        }
        let now = self.server_time(domain)?;
        let age = now.duration_since(found.meta.modified).unwrap_or_default();
        match age >= lease.ttl + CLOCK_MARGIN {
            true => Ok(()),
            false => Err(self.leased(lease.holder)),
        }
    }

    /// The time by the clock of the server, which is that of the lease.
    fn server_time(&self, domain: &str) -> Result<std::time::SystemTime> {
        let key = key_in_domain_folder(domain, &format!("{CLOCK_PREFIX}{:016x}.json", random()?));
        self.client.put(&key, "{}", &PutCondition::Always)?;
        let found = self.client.head(&key);
        // It says nothing any more.
        let _ = self.client.delete(&key);
        Ok(found?.modified)
    }
}
