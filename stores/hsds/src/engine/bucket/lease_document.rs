//! The object that says who writes a domain.

use std::time::Duration;

use h5live_model::FileHolderProcess;
use serde_json::{Value, json};

/// The member by which the object is known, and its form.
const FORMAT: &str = "h5live lease";
const VERSION: u64 = 1;
/// Most characters of the name of a holder that are shown.
const MAX_NAME_CHARS: usize = 200;
/// Bounds of the time for which a lease holds without renewal.
const PERIOD_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));

/// Who writes a domain, and for how long that holds without renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseDocument {
    /// The name of the holder, for people.
    pub holder: String,
    /// The session of the holder: a random number, so that no two sessions write the same bytes.
    pub session_id: u64,
    /// How many sessions have had the lease, with this one.
    pub epoch: u64,
    /// How often this session has renewed it. So each renewal has other bytes, and another tag.
    pub renewal_count: u64,
    /// How long it holds without renewal.
    pub ttl: Duration,
    /// Whether the holder has ended.
    pub is_released: bool,
    /// Whether somebody has found that the object store keeps conditions of writes.
    pub has_verified_conditional_writes: bool,
}

/// A time within the bounds of a period.
pub fn clamp_lease_ttl(ttl: Duration) -> Duration {
    ttl.clamp(PERIOD_BOUNDS.0, PERIOD_BOUNDS.1)
}

impl LeaseDocument {
    /// A lease of this process, which nobody has had before.
    pub fn new(session: u64, period: Duration) -> Self {
        LeaseDocument {
            holder: name_of_this_process(),
            session_id: session,
            epoch: 1,
            renewal_count: 0,
            ttl: clamp_lease_ttl(period),
            is_released: false,
            has_verified_conditional_writes: false,
        }
    }

    /// The bytes of the object.
    pub fn to_bytes(&self) -> Vec<u8> {
        let document = json!({
            "format": FORMAT,
            "version": VERSION,
            "holder": self.holder,
            "session": format!("{:016x}", self.session_id),
            "epoch": self.epoch,
            "renewals": self.renewal_count,
            "milliseconds": u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX),
            "released": self.is_released,
            "hasConditions": self.has_verified_conditional_writes,
        });
        document.to_string().into_bytes()
    }

    /// What the bytes of the object say; `None` if they are no lease.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let json: Value = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| json.get(name).and_then(Value::as_str);
        let number = |name: &str| json.get(name).and_then(Value::as_u64);
        let truth = |name: &str| json.get(name).and_then(Value::as_bool).unwrap_or(false);
        if text("format")? != FORMAT || number("version")? != VERSION {
            return None;
        }
        let shown = text("holder")?.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS);
        Some(LeaseDocument {
            holder: shown.collect(),
            session_id: u64::from_str_radix(text("session")?, 16).ok()?,
            epoch: number("epoch")?,
            renewal_count: number("renewals")?,
            ttl: clamp_lease_ttl(Duration::from_millis(number("milliseconds")?)),
            is_released: truth("released"),
            has_verified_conditional_writes: truth("hasConditions"),
        })
    }
}

/// The process, and its machine.
fn name_of_this_process() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok()).map(|host| host.trim().to_owned());
    match host.filter(|host| !host.is_empty()) {
        Some(host) => format!("{} on {host}", FileHolderProcess::this_process()),
        None => FileHolderProcess::this_process().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_read_as_it_was_written() {
        let mut lease = LeaseDocument::new(0xfedc_ba98_7654_3210, Duration::from_millis(1500));
        assert!(lease.holder.contains(&format!("process {}", std::process::id())), "{}", lease.holder);
        (lease.epoch, lease.renewal_count, lease.is_released, lease.has_verified_conditional_writes) =
            (7, 12, true, true);
        assert_eq!(LeaseDocument::parse(&lease.to_bytes()), Some(lease.clone()));
        lease.renewal_count += 1;
        assert_eq!(LeaseDocument::parse(&lease.to_bytes()).map(|lease| lease.renewal_count), Some(13));
    }

    #[test]
    fn what_is_no_lease_is_not_taken_for_one() {
        let whole = LeaseDocument::new(1, Duration::from_secs(60)).to_bytes();
        let text = String::from_utf8(whole.clone()).unwrap();
        for (from, to) in [
            ("h5live lease", "other"),
            ("\"version\":1", "\"version\":2"),
            ("\"session\":\"0", "\"session\":\"x"),
            ("\"epoch\":1", "\"epoch\":-1"),
            ("\"milliseconds\":60000", "\"milliseconds\":\"long\""),
        ] {
            assert!(text.contains(from), "{text}");
            assert_eq!(LeaseDocument::parse(text.replace(from, to).as_bytes()), None, "{to}");
        }
        (0..whole.len()).for_each(|len| assert_eq!(LeaseDocument::parse(&whole[..len]), None));
        let long = text.replace("60000", "18446744073709551615");
        assert_eq!(LeaseDocument::parse(long.as_bytes()).unwrap().ttl, PERIOD_BOUNDS.1);
        let named = text.replace("process", &format!("\\u001b[2J{}", "x".repeat(1000)));
        let holder = LeaseDocument::parse(named.as_bytes()).unwrap().holder;
        assert!(holder.chars().count() == MAX_NAME_CHARS && holder.starts_with("[2Jx"), "{holder}");
    }
}
