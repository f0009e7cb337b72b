//! The order in which changes become visible.
//!
//! An object store writes one object at once, and nothing beyond. So what an object leads to is written before it:
//! chunks (when they come), the object of their dataset with its shape, then the group with the link. What is deleted
//! goes the other way: the group without the link, the object, its chunks. Shards come before the document that names them,
//! and are deleted after the one that does not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use h5live_model::{DurabilitySupport, Error as ModelError, ObjectId, PublishLevel, Result, StoreErrorKind};

use crate::engine::{DocumentPut, ListedObject, ObjectEngine, ObjectPut};
use crate::error::damaged_object_error;
use crate::layout::{DomainDocument, OWN_NAME_PREFIX, SUMMARY_FILES};
use crate::session::{HsdsSession, domain_document_key, unix_seconds_now};
use crate::shards::{delete_old_shards, reshard_and_write_changed_shards};
use crate::state::{DoomedObject, SessionState};
use crate::summary;

/// How often the object of a domain is taken up that another program changes again and again.
const MAX_DOMAIN_ROUNDS: u32 = 8;

/// Commits everything.
///
/// # Errors
/// Those of the engine. What was not written stays changed.
pub fn commit_objects_and_new_domain(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    let dirty: Vec<ObjectId> = state.dirty.iter().copied().collect();
    commit_objects(session, state, &dirty)?;
    if !is_new_domain_unwritten(state) || state.is_draft {
        return Ok(());
    }
    put_parents(session, state)?;
    commit_domain_document(session, state)?;
    if let Some(old) = state.domain_to_replace.take() {
        delete_prefix(session, &format!("{}/", old.id.key_prefix_without_slash()))?;
    }
    release_claims(session, state)
}

/// The domain is there, or is not going to be: its objects need no claim.
fn release_claims(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    while let Some(prefix) = state.claimed_prefixes.last() {
        session.engine.release_claim(prefix)?;
        state.claimed_prefixes.pop();
    }
    Ok(())
}

/// Removes a domain that never came to be, with its objects and its folders, and ends the session. What the domain would
/// have replaced is there as before.
///
/// # Errors
/// Those of the engine. Then objects may be left, to which nothing leads.
fn discard_domain(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    session.engine.discard_queued_chunks();
    let key = domain_document_key(&session.domain_path);
    // Its object may have been written although the answer was an error: nothing may lead to what is deleted.
    if state.uncertain_domain_put.take().is_some() {
        match &state.domain_to_replace {
            Some(old) => drop(session.engine.put_many(vec![ObjectPut { key, bytes: old.document_bytes.to_vec() }])?),
            None => session.engine.delete_many(&[key])?,
        }
    }
    delete_prefix(session, &format!("{}/", session.domain.key_prefix_without_slash()))?;
    release_claims(session, state)?;
    while let Some(parent) = state.made_parents.pop() {
        let key = domain_document_key(&parent);
        let listed = session.engine.list(&format!("{parent}/"))?;
        let own = format!("{}/{OWN_NAME_PREFIX}", session.domain_path);
        let is_own = |object: &ListedObject| object.key == key || object.key.starts_with(&own);
        if listed.iter().all(is_own) {
            session.engine.delete_many(&[key])?;
        }
    }
    session.engine.close_never_created()
}

/// Whether the domain is new, and not written yet.
pub fn is_new_domain_unwritten(state: &SessionState) -> bool {
    state.is_domain_changed && !state.new_folder_owner.is_empty()
}

/// Writes the object of the domain, if something in it has changed. What another program has changed of it stays, if it is
/// still this domain.
///
/// # Errors
/// [`HsdsError::DocumentChanged`](crate::HsdsError::DocumentChanged), and those of the engine.
pub fn commit_domain_document(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    if !state.is_domain_changed {
        return Ok(());
    }
    settle_domain_attempt(session, state)?;
    for _ in 0..MAX_DOMAIN_ROUNDS {
        match put_domain(session, state) {
            Err(error) if is_document_changed(&error) && reload_domain(session, state)? => {}
            put => return put,
        }
    }
    put_domain(session, state)
}

fn is_document_changed(error: &ModelError) -> bool {
    matches!(error.store_error_kind(), Some(StoreErrorKind::Changed(_)))
}

fn put_domain(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    state.domain.set_last_modified(unix_seconds_now());
    let (key, bytes) = (domain_document_key(&session.domain_path), state.domain.to_bytes());
    let object = ObjectPut { key, bytes: bytes.clone() };
    match session.engine.put_documents(vec![DocumentPut { object, expected_tag: state.domain_tag.clone() }]) {
        Ok(tags) => {
            (state.domain_tag, state.uncertain_domain_put) = (tags.into_iter().next(), None);
            state.is_domain_changed = false;
            state.new_folder_owner.clear();
            Ok(())
        }
        Err(error) => {
            // One that was refused was not written; any other one may have been.
            state.uncertain_domain_put = Some(bytes).filter(|_| !is_document_changed(&error));
            Err(error)
        }
    }
}

/// Finds out whether a write of the object of the domain has succeeded that has failed.
fn settle_domain_attempt(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    let Some(attempted) = &state.uncertain_domain_put else { return Ok(()) };
    let found = session.engine.get(&domain_document_key(&session.domain_path))?;
    if let Some(found) = found.filter(|found| *found.bytes == **attempted) {
        state.domain_tag = Some(found.tag);
    }
    Ok(())
}

/// Takes up the object of the domain, and says whether it is still this domain.
fn reload_domain(session: &HsdsSession, state: &mut SessionState) -> Result<bool> {
    let key = domain_document_key(&session.domain_path);
    let Some(found) = session.engine.get(&key)? else { return Ok(false) };
    let document = DomainDocument::parse(&found.bytes).map_err(damaged_object_error(&key))?;
    if document.domain_id().map_err(damaged_object_error(&key))? != Some(session.domain) {
        return Ok(false);
    }
    (state.domain, state.domain_tag) = (document, Some(found.tag));
    Ok(true)
}

/// Makes the folders in which a new domain lies, where they are missing.
fn put_parents(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    for parent in std::mem::take(&mut state.maybe_missing_parents) {
        let key = domain_document_key(&parent);
        if session.engine.get(&key)?.is_none() {
            let bytes = DomainDocument::new(None, &state.new_folder_owner, unix_seconds_now()).to_bytes();
            state.made_parents.push(parent);
            session.engine.put_many(vec![ObjectPut { key, bytes }])?;
        }
    }
    Ok(())
}

fn delete_prefix(session: &HsdsSession, prefix: &str) -> Result<()> {
    let keys: Vec<String> = session.engine.list(prefix)?.into_iter().map(|object| object.key).collect();
    session.engine.delete_many(&keys)
}

/// Commits some objects, with what has to be seen before them.
///
/// # Errors
/// Those of the engine. What was not written stays changed.
pub fn commit_objects(session: &HsdsSession, state: &mut SessionState, ids: &[ObjectId]) -> Result<()> {
    // Of elements that are written over, no document tells.
    session.engine.flush_queued_chunks()?;
    let waves = waves(state, ids);
    if !waves.is_empty() {
        remove_summaries(session, state)?;
        state.is_domain_changed = true;
    }
    for wave in waves {
        put_wave(session, state, &wave)?;
    }
    drop_chunks(session, state)?;
    delete_old_shards(session, state)?;
    if state.dirty.is_empty() {
        delete_doomed(session, state)?;
    }
    Ok(())
}

/// Writes documents at once, after their shards. They stay changed if that fails.
fn put_wave(session: &HsdsSession, state: &mut SessionState, wave: &[ObjectId]) -> Result<()> {
    reshard_and_write_changed_shards(session, state, wave)?;
    let (mut written, mut puts, time) = (Vec::new(), Vec::new(), unix_seconds_now());
    for id in wave {
        if state.cached_tagged_document(*id).is_some() {
            let bytes = state.change(*id, |document| {
                document.set_last_modified(time);
                Ok(document.to_bytes())
            })?;
            written.push(*id);
            settle_uncertain(session, state, *id)?;
            let replaces = state.cached_tagged_document(*id).and_then(|stored| stored.tag.clone());
            puts.push(DocumentPut {
                object: ObjectPut { key: session.domain.document_key(*id), bytes },
                expected_tag: replaces,
            });
        }
    }
    let attempted: Vec<Vec<u8>> = puts.iter().map(|put| put.object.bytes.clone()).collect();
    let tags = match session.engine.put_documents(puts) {
        Ok(tags) => tags,
        Err(error) => {
            // Some of them may have been written.
            state.uncertain_puts.extend(written.into_iter().zip(attempted));
            return Err(error);
        }
    };
    for (id, tag) in written.into_iter().zip(tags) {
        state.set_tag(id, tag);
        state.dirty.remove(&id);
        state.commit_prerequisites.remove(&id);
    }
    Ok(())
}

/// Finds out whether a write of a document has succeeded that has failed: then its state is the one that is replaced next.
fn settle_uncertain(session: &HsdsSession, state: &mut SessionState, id: ObjectId) -> Result<()> {
    let Some(attempted) = state.uncertain_puts.get(&id) else { return Ok(()) };
    let found = session.engine.get(&session.domain.document_key(id))?;
    if let Some(found) = found.filter(|found| *found.bytes == **attempted) {
        state.set_tag(id, found.tag);
    }
    state.uncertain_puts.remove(&id);
    Ok(())
}

/// Summaries are stale from the first change on.
fn remove_summaries(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    if state.has_removed_summaries {
        return Ok(());
    }
    let prefix = session.domain.key_prefix_without_slash();
    let keys = SUMMARY_FILES.map(|name| format!("{prefix}/{name}"));
    session.engine.delete_many(&keys)?;
    state.has_removed_summaries = true;
    Ok(())
}

/// Deletes chunks outside of extents that are committed.
fn drop_chunks(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    let ready: Vec<ObjectId> = state.dropped_chunks.keys().copied().filter(|id| !state.dirty.contains(id)).collect();
    for id in ready {
        let keys: Vec<String> = state.dropped_chunks.get(&id).into_iter().flat_map(BTreeMap::values).cloned().collect();
        session.engine.delete_many(&keys)?;
        state.dropped_chunks.remove(&id);
    }
    Ok(())
}

/// Deletes objects to which nothing leads any more: the object first, then its chunks and shards.
fn delete_doomed(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    if !state.doomed.is_empty() {
        remove_summaries(session, state)?;
    }
    while let Some(DoomedObject { id, may_have_parts: has_parts }) = state.doomed.last().copied() {
        session.engine.delete_many(&[session.domain.document_key(id)])?;
        if has_parts {
            delete_prefix(session, &session.domain.object_key_prefix(id))?;
        }
        state.doomed.pop();
    }
    Ok(())
}

/// The changed objects that are to be committed, in waves: an object comes after what it leads to.
fn waves(state: &SessionState, ids: &[ObjectId]) -> Vec<Vec<ObjectId>> {
    let (mut levels, mut waves): (HashMap<ObjectId, usize>, Vec<Vec<ObjectId>>) = (HashMap::new(), Vec::new());
    let (mut entered, all) = (BTreeSet::new(), ids.len() == state.dirty.len());
    // Objects that are stored already come last: what is new in them leads to the others.
    let mut roots: Vec<ObjectId> = ids.to_vec();
    roots.sort_by_key(|id| state.is_new(*id));
    for root in roots {
        let mut path = vec![(root, false)];
        while let Some((id, is_done)) = path.pop() {
            if !is_done {
                if !state.dirty.contains(&id) || !entered.insert(id) {
                    continue;
                }
                path.push((id, true));
                path.extend(before(state, id, all).into_iter().map(|earlier| (earlier, false)));
                continue;
            }
            let earlier = before(state, id, all).into_iter().filter_map(|earlier| levels.get(&earlier));
            let level = earlier.map(|level| level + 1).max().unwrap_or_default();
            levels.insert(id, level);
            if waves.len() <= level {
                waves.resize(level + 1, Vec::new());
            }
            waves[level].push(id);
        }
    }
    waves
}

/// What has to be seen before an object.
fn before(state: &SessionState, id: ObjectId, all: bool) -> Vec<ObjectId> {
    let uses = state.cached_tagged_document(id).map(|stored| stored.document.known_used_objects()).unwrap_or_default();
    let mut found: Vec<ObjectId> = uses.into_iter().filter(|used| all || state.is_new(*used)).collect();
    found.extend(state.commit_prerequisites.get(&id).into_iter().flatten());
    found.retain(|earlier| state.dirty.contains(earlier));
    found
}

impl HsdsSession {
    /// Commits all that was changed.
    ///
    /// # Errors
    /// [`ModelError::Closed`], [`ModelError::ReadOnly`], and those of the engine.
    pub fn commit(&self, publish: PublishLevel) -> Result<()> {
        self.check_writable()?;
        self.check_publish(publish)?;
        let mut state = self.state.write();
        self.check_open()?;
        commit_objects_and_new_domain(self, &mut state)?;
        drop(state);
        self.sync(publish)
    }

    /// Commits what was changed of some objects, with what has to be seen before it.
    ///
    /// # Errors
    /// As [`HsdsSession::commit`].
    pub fn commit_objects(&self, ids: &[ObjectId], publish: PublishLevel) -> Result<()> {
        self.check_writable()?;
        self.check_publish(publish)?;
        let mut state = self.state.write();
        self.check_open()?;
        match is_new_domain_unwritten(&state) {
            // Nobody can be led to a part of a domain that is not there.
            true => commit_objects_and_new_domain(self, &mut state)?,
            false => commit_objects(self, &mut state, ids)?,
        }
        drop(state);
        self.sync(publish)
    }

    fn check_publish(&self, publish: PublishLevel) -> Result<()> {
        let never = self.session_info.capabilities.durability == DurabilitySupport::Never;
        match publish == PublishLevel::Durable && never {
            true => Err(ModelError::Unsupported("outlasting a power failure in this store")),
            false => Ok(()),
        }
    }

    fn sync(&self, publish: PublishLevel) -> Result<()> {
        if publish == PublishLevel::Durable { self.engine.sync() } else { Ok(()) }
    }

    /// Commits, and ends the session. A second call does nothing.
    ///
    /// # Errors
    /// As [`HsdsSession::commit`].
    pub fn close(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut state = self.state.write();
        if self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        if state.is_draft {
            self.is_closed.store(true, Ordering::Release);
            return discard_domain(self, &mut state);
        }
        // What others change until now is committed; from now on they are refused.
        let writes = self.chunk_writes.write();
        if self.session_info.mode.writes() {
            commit_objects_and_new_domain(self, &mut state)?;
            commit_domain_document(self, &mut state)?;
            if state.has_removed_summaries {
                // The domain is complete without it, as it is where this session may not list objects.
                let _ = summary::write_domain_summary_if_countable(self, &state);
            }
        }
        self.is_closed.store(true, Ordering::Release);
        drop((writes, state));
        self.engine.close()
    }

    /// Ends a session that was not closed. It leaves what it has committed, and nothing of a domain that it has not.
    pub fn close_without_commit_ignoring_errors(&self) {
        let mut state = self.state.write();
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // Nobody is there to be told of an error.
        let _ = match is_new_domain_unwritten(&state) {
            true => discard_domain(self, &mut state),
            false => self.engine.close(),
        };
    }

    /// Ends a session in the middle of its work, whatever other threads do with it: of a draft, nothing is left. Those that
    /// write at this moment are waited for.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn close_without_commit(&self) -> Result<()> {
        let was_ended = self.is_closed.swap(true, Ordering::AcqRel);
        drop(self.chunk_writes.write());
        let mut state = self.state.write();
        match (was_ended, is_new_domain_unwritten(&state)) {
            (true, _) => Ok(()),
            (false, true) => discard_domain(self, &mut state),
            (false, false) => self.engine.close(),
        }
    }

    /// Writes chunks, at the next commit at the latest, unless the session has ended.
    ///
    /// # Errors
    /// [`ModelError::Closed`], and those of the engine.
    pub fn put_or_queue_chunks(&self, puts: Vec<ObjectPut>) -> Result<()> {
        let _writes = self.chunk_writes.read();
        self.check_open()?;
        self.engine.put_or_queue_chunks(puts)
    }

    /// Lets others see a domain that was a draft, as it is.
    ///
    /// # Errors
    /// As [`HsdsSession::commit`]. Then it is still a draft.
    pub fn publish_domain(&self) -> Result<()> {
        self.check_writable()?;
        let mut state = self.state.write();
        self.check_open()?;
        let was_draft = std::mem::take(&mut state.is_draft);
        let published = commit_objects_and_new_domain(self, &mut state);
        state.is_draft = was_draft && is_new_domain_unwritten(&state);
        published
    }
}
