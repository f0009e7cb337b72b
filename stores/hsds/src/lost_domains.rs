//! Objects in a bucket whose domain is not there: what a process has left that was killed while it made a domain.
//!
//! A session claims the objects of a domain before it writes the first one, and ends the claim when the domain is there.
//! Objects are lost if no domain names them, and the session that has claimed them has died. Objects that nobody has claimed
//! are those of other programs: they are lost when no domain has named them for a day.

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, SystemTime};

use h5live_model::{Error as ModelError, Leak, LeakLocation, Result, StoreCheckReport, StoreErrorKind};

use crate::engine::{ClaimState, ListedObject, OBJECTS_FOLDER, ObjectEngine};
use crate::error::damaged_object_error;
use crate::layout::{DomainDocument, DomainId, LayoutError};

/// Objects that nobody has claimed are left alone for so long after the last one was written.
const MIN_UNCLAIMED_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Objects of domains that are read in one wave.
const DOMAINS_AT_ONCE: usize = 1024;
/// Objects that are deleted in one wave.
const DELETED_AT_ONCE: usize = 4096;

/// The domains whose objects are lost, with what they take. `known_not_lost` is one that is there.
///
/// # Errors
/// [`HsdsError::DamagedObject`](crate::HsdsError::DamagedObject) if the object of a domain is damaged: nobody knows which objects it names.
/// Those of the engine.
pub fn find_lost_domains(engine: &dyn ObjectEngine, known_not_lost: Option<DomainId>) -> Result<Vec<(DomainId, Leak)>> {
    let folders = engine.folder_names(&format!("{OBJECTS_FOLDER}/"))?;
    let there: BTreeSet<u64> = folders.iter().filter_map(|name| parse_prefix(name)).map(|id| id.0).collect();
    let others = there.into_iter().map(DomainId).filter(|id| Some(*id) != known_not_lost).collect::<Vec<_>>();
    let mut lost = Vec::new();
    for id in without_domain(engine, others)? {
        let claim = engine.find_claim(&id.key_prefix_without_slash())?;
        if claim == ClaimState::Held || lost.len() >= StoreCheckReport::MAX_FINDINGS {
            continue;
        }
        let listed = engine.list(&format!("{}/", id.key_prefix_without_slash()))?;
        if claim == ClaimState::Abandoned || is_old(&listed) {
            let (objects, bytes) = (listed.len() as u64, listed.iter().map(|object| object.size).sum());
            lost.push((id, Leak { place: LeakLocation::LostDomain { prefix: id.0, objects }, kind: None, bytes }));
        }
    }
    Ok(lost)
}

/// Deletes the objects of domains that were found to be lost, and says of which. What is claimed by a living session by
/// now, or named by a domain, is left as it is.
///
/// # Errors
/// As [`find_lost_domains`].
pub fn delete_lost_domains(engine: &dyn ObjectEngine, found: Vec<(DomainId, Leak)>) -> Result<Vec<Leak>> {
    let mut claimed = Vec::new();
    for (id, leak) in found {
        match engine.claim(&id.key_prefix_without_slash()) {
            Ok(()) => claimed.push((id, leak)),
            Err(error) if matches!(error.store_error_kind(), Some(StoreErrorKind::InUse(_))) => {}
            Err(error) => return Err(error),
        }
    }
    // Whoever has made them writes nothing more from here on. A domain that names them now was there before.
    let ids = claimed.iter().map(|(id, _)| *id).collect();
    let lost: HashSet<DomainId> = without_domain(engine, ids)?.into_iter().collect();
    let mut deleted = Vec::new();
    for (id, leak) in claimed {
        if lost.contains(&id) {
            let keys: Vec<String> = engine
                .list(&format!("{}/", id.key_prefix_without_slash()))?
                .into_iter()
                .map(|object| object.key)
                .collect();
            keys.chunks(DELETED_AT_ONCE).try_for_each(|keys| engine.delete_many(keys))?;
            deleted.push(leak);
        }
        engine.release_claim(&id.key_prefix_without_slash())?;
    }
    Ok(deleted)
}

/// Those that no domain of the bucket names.
fn without_domain(engine: &dyn ObjectEngine, ids: Vec<DomainId>) -> Result<Vec<DomainId>> {
    let mut left: HashSet<DomainId> = ids.iter().copied().collect();
    let keys = if left.is_empty() { Vec::new() } else { engine.all_domain_document_keys()? };
    for keys in keys.chunks(DOMAINS_AT_ONCE) {
        if left.is_empty() {
            break;
        }
        let named = parking_lot::Mutex::new(Vec::new());
        engine.get_many(keys, &|number, found| {
            let (Some(key), Some(found)) = (keys.get(number), found) else { return Ok(()) };
            match DomainDocument::parse(&found.bytes).and_then(|document| document.domain_id()) {
                Ok(root) => named.lock().extend(root),
                // Its objects are not below the prefixes of this schema.
                Err(LayoutError::Schema1Id(_)) => {}
                Err(error) => return Err(damaged_object_error(key)(error)),
            }
            Ok::<_, ModelError>(())
        })?;
        left.retain(|id| !named.lock().contains(id));
    }
    Ok(ids.into_iter().filter(|id| left.contains(id)).collect())
}

fn is_old(objects: &[ListedObject]) -> bool {
    let age = |object: &ListedObject| SystemTime::now().duration_since(object.modified?).ok();
    !objects.is_empty() && objects.iter().all(|object| age(object).is_some_and(|age| age >= MIN_UNCLAIMED_AGE))
}

/// The domain whose objects lie in a folder of this name.
fn parse_prefix(name: &str) -> Option<DomainId> {
    let (high, low) = name.split_once('-')?;
    let is_half = |text: &str| text.len() == 8 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_half(high) || !is_half(low) {
        return None;
    }
    u64::from_str_radix(&format!("{high}{low}"), 16).ok().map(DomainId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_objects_is_known_by_its_name() {
        let id = DomainId(0xb03b_24ef_69f2_44b6);
        assert_eq!(parse_prefix(id.key_prefix_without_slash().strip_prefix("db/").unwrap()), Some(id));
        for name in
            ["", "b03b24ef", "b03b24ef-69f244b", "B03b24ef-69f244b6", "b03b24ef-69f244b6-1", "+03b24ef-69f244b6"]
        {
            assert_eq!(parse_prefix(name), None, "{name}");
        }
    }
}
