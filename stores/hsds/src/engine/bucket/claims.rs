//! Who makes objects to which no domain leads yet.
//!
//! A session that makes a domain puts an object among its objects that names the domain, and the session. The lease of the
//! domain says whether that session is alive. Whoever claims the objects of a dead session takes that lease: a session that
//! was only stopped is fenced by it, and writes nothing more.

use std::collections::BTreeMap;
use std::time::SystemTime;

use h5live_model::Result;
use h5live_objects::{GetCondition, GetOutcome, ObjectBytes, ObjectClient, ObjectErrorKind, PutCondition};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::{BUCKET_CLAIM_FILE, ClaimState};
use super::lease::{CLOCK_MARGIN, LeaseOptions, WriterLease, lease_key};
use super::lease_document::LeaseDocument;

/// The member by which the object is known, and its form.
const FORMAT: &str = "h5live claim";
const VERSION: u64 = 1;

/// A claim as it is stored.
#[derive(Debug, PartialEq, Eq)]
struct ClaimDocument {
    /// The path of the domain that is made.
    domain: String,
    /// The session, as its lease names it.
    session: u64,
}

impl ClaimDocument {
    fn to_bytes(&self) -> Vec<u8> {
        let session = format!("{:016x}", self.session);
        json!({ "format": FORMAT, "version": VERSION, "domain": self.domain, "session": session })
            .to_string()
            .into_bytes()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let json: Value = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| json.get(name).and_then(Value::as_str);
        if text("format")? != FORMAT || json.get("version").and_then(Value::as_u64)? != VERSION {
            return None;
        }
        let session = u64::from_str_radix(text("session")?, 16).ok()?;
        Some(ClaimDocument { domain: text("domain")?.to_owned(), session })
    }
}

/// The claims of a session, by the prefixes of the objects, each with the lease that was taken for it.
#[derive(Debug, Default)]
pub struct PrefixClaims(Mutex<BTreeMap<String, Option<WriterLease>>>);

fn claim_key(prefix: &str) -> String {
    format!("{}/{BUCKET_CLAIM_FILE}", prefix.trim_end_matches('/'))
}

fn get(client: &ObjectClient, key: &str) -> Result<Option<ObjectBytes>> {
    match client.get(key, &GetCondition::Always) {
        Ok(GetOutcome::Object(found)) => Ok(Some(found)),
        Ok(GetOutcome::NotModified) => Ok(None),
        Err(error) if error.kind == ObjectErrorKind::NotThere => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn find(client: &ObjectClient, prefix: &str) -> Result<Option<ClaimDocument>> {
    Ok(get(client, &claim_key(prefix))?.and_then(|found| ClaimDocument::parse(&found.bytes)))
}

/// Who has claimed the objects with a prefix. Whether a lease has ended is told by the clock of this machine, so it is
/// checked again before anything is deleted.
///
/// # Errors
/// Those of the client.
pub fn claim_state(client: &ObjectClient, prefix: &str) -> Result<ClaimState> {
    let Some(claim) = find(client, prefix)? else { return Ok(ClaimState::Absent) };
    let Some(found) = get(client, &lease_key(&claim.domain))? else { return Ok(ClaimState::Abandoned) };
    // What is no lease says nothing about its holder.
    let Some(lease) = LeaseDocument::parse(&found.bytes) else { return Ok(ClaimState::Held) };
    let age = SystemTime::now().duration_since(found.meta.modified).unwrap_or_default();
    let is_over = lease.session_id != claim.session || lease.is_released || age >= lease.ttl + CLOCK_MARGIN;
    Ok(if is_over { ClaimState::Abandoned } else { ClaimState::Held })
}

impl PrefixClaims {
    /// Claims the objects with a prefix for a session on a domain, which has this lease. The session that has claimed them
    /// before is fenced.
    ///
    /// # Errors
    /// [`HsdsError::Leased`](crate::HsdsError::Leased) if that session is alive, and those of the client.
    pub fn claim_prefix(
        &self,
        client: &ObjectClient,
        prefix: &str,
        (domain, lease): (&str, Option<&WriterLease>),
        how: &LeaseOptions,
    ) -> Result<()> {
        let mut claims = self.0.lock();
        if claims.contains_key(prefix) {
            return Ok(());
        }
        // Who has the lease of the domain has fenced those that had it before.
        let other = find(client, prefix)?.filter(|claim| lease.is_none() || claim.domain != domain);
        let other = other.filter(|_| !how.is_unfenced);
        let how = LeaseOptions { takes_over_unexpired: false, ..*how };
        let taken = other.map(|claim| WriterLease::acquire(client, &claim.domain, &how)).transpose()?;
        if let Some(lease) = lease {
            let claim = ClaimDocument { domain: domain.to_owned(), session: lease.session_id() };
            client.put(&claim_key(prefix), claim.to_bytes(), &PutCondition::Always)?;
        }
        claims.insert(prefix.to_owned(), taken);
        Ok(())
    }

    /// Ends a claim.
    ///
    /// # Errors
    /// Those of the client.
    pub fn release(&self, client: &ObjectClient, prefix: &str) -> Result<()> {
        let Some(taken) = self.0.lock().remove(prefix) else { return Ok(()) };
        let deleted = client.delete(&claim_key(prefix));
        // The domain of a lease that was taken for its objects never came to be, or has a writer of its own.
        taken.map_or(Ok(()), |lease| lease.release_delete_unless_domain_exists(client))?;
        match deleted {
            Err(error) if error.kind != ObjectErrorKind::NotThere => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Ends all claims.
    ///
    /// # Errors
    /// Those of the client.
    pub fn release_all(&self, client: &ObjectClient) -> Result<()> {
        let prefixes: Vec<String> = self.0.lock().keys().cloned().collect();
        prefixes.iter().try_for_each(|prefix| self.release(client, prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_read_as_it_was_written_and_nothing_else_is_taken_for_one() {
        let claim = ClaimDocument { domain: "home/me/run".to_owned(), session: 0xfedc_ba98_7654_3210 };
        assert_eq!(ClaimDocument::parse(&claim.to_bytes()), Some(claim));
        for bytes in [&b""[..], b"{}", br#"{"format": "h5live claim", "version": 2, "domain": "a", "session": "1"}"#] {
            assert_eq!(ClaimDocument::parse(bytes), None);
        }
    }
}
