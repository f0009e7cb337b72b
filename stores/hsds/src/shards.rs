//! Shards of the links and the attributes of objects: read when they are wanted, and written before the document that names
//! them.

use std::sync::Arc;

use h5live_model::{Error as ModelError, ObjectId, ObjectKind, Result};
use parking_lot::Mutex;

use crate::engine::{ObjectEngine, ObjectPut};
use crate::error::{damaged_object_error, invalid_or_unsupported_error};
use crate::layout::{EntryQuery, LayoutError, LinksOrAttributes, Members, ObjectDocument, ShardId};
use crate::random::random;
use crate::session::HsdsSession;
use crate::state::SessionState;

/// How often a reader takes up a newer document, because a shard of the one that it has is gone.
const MAX_SHARD_ROUNDS: u32 = 16;

/// Shards that were read, and the first one that is not there.
struct ReadShards {
    found: Vec<(ShardId, Arc<Members>)>,
    missing: Option<ShardId>,
}

impl HsdsSession {
    /// The document of an object, with the links or the attributes that are wanted. A reader whose shards a writer has
    /// replaced takes up the newer document.
    ///
    /// # Errors
    /// As [`HsdsSession::document`]; [`ModelError::Moved`] if shards are replaced again and again.
    pub fn document_with_entries(&self, id: ObjectId, query: EntryQuery<'_>) -> Result<Arc<ObjectDocument>> {
        self.document(id)?;
        self.document_with_entries_ignoring_rights(id, query)
    }

    /// The same, whatever the rights of the user.
    ///
    /// # Errors
    /// As [`HsdsSession::document_with_entries`].
    pub fn document_with_entries_ignoring_rights(
        &self,
        id: ObjectId,
        query: EntryQuery<'_>,
    ) -> Result<Arc<ObjectDocument>> {
        for _ in 0..MAX_SHARD_ROUNDS {
            let document = self.document_ignoring_rights(id)?;
            let wanted = document.unloaded_shards(query);
            if wanted.is_empty() {
                return Ok(document);
            }
            let ReadShards { found, missing } = self.read_shards(&document, &wanted)?;
            drop(document);
            self.state.write().add_loaded_shards(id, found);
            let Some(missing) = missing else { continue };
            if self.session_info.mode.writes() || !self.reload_if_changed(id)? {
                return Err(damaged_object_error(&self.domain.shard_key(id, missing))(LayoutError::MissingShard));
            }
        }
        Err(ModelError::Moved)
    }

    /// A group, with the links that are wanted.
    ///
    /// # Errors
    /// [`ModelError::WrongKind`], and as [`HsdsSession::document_with_entries`].
    pub fn group_with_entries(&self, id: ObjectId, query: EntryQuery<'_>) -> Result<Arc<ObjectDocument>> {
        let document = self.document_with_entries(id, query)?;
        match document.kind() {
            ObjectKind::Group => Ok(document),
            _ => Err(ModelError::WrongKind { expected: "group" }),
        }
    }

    /// Reads shards in one wave.
    fn read_shards(&self, document: &ObjectDocument, wanted: &[ShardId]) -> Result<ReadShards> {
        let keys: Vec<String> = wanted.iter().map(|shard| document.shard_key(*shard)).collect();
        let (read, missing) = (Mutex::new(Vec::with_capacity(wanted.len())), Mutex::new(None));
        self.engine.get_many(&keys, &|number, found| {
            let (Some(shard), Some(key)) = (wanted.get(number), keys.get(number)) else { return Ok(()) };
            match found {
                Some(found) => {
                    let entries = document.parse_shard(*shard, &found.bytes).map_err(damaged_object_error(key))?;
                    read.lock().push((*shard, entries));
                }
                None => drop(missing.lock().get_or_insert(*shard)),
            }
            Ok(())
        })?;
        Ok(ReadShards { found: read.into_inner(), missing: missing.into_inner() })
    }
}

/// Writes the shards of objects that have changed, before their documents. Those that no document names afterwards are
/// deleted later.
///
/// # Errors
/// Those of the engine. Then the shards stay changed.
pub fn reshard_and_write_changed_shards(
    session: &HsdsSession,
    state: &mut SessionState,
    ids: &[ObjectId],
) -> Result<()> {
    let (mut puts, mut changed) = (Vec::new(), Vec::new());
    for id in ids {
        LinksOrAttributes::BOTH.iter().try_for_each(|class| spread(session, state, *id, *class))?;
        if state.cached_tagged_document(*id).is_some_and(|stored| stored.document.has_changed_shards()) {
            let generation = random()?;
            let changes = state.change(*id, |document| Ok(document.stage_changed_shards(generation)))?;
            state.old_shards.entry(*id).or_default().extend(changes.old_shards);
            puts.extend(changes.puts.into_iter().map(|(key, bytes)| ObjectPut { key, bytes }));
            changed.push(*id);
        }
    }
    if !puts.is_empty() {
        session.engine.put_many(puts)?;
    }
    let set_written = |document: &mut ObjectDocument| {
        document.set_shards_written();
        Ok(())
    };
    changed.into_iter().try_for_each(|id| state.change(id, set_written))
}

/// Spreads links or attributes over more shards, if there are enough of them.
fn spread(session: &HsdsSession, state: &mut SessionState, id: ObjectId, class: LinksOrAttributes) -> Result<()> {
    let wanted = |state: &SessionState| {
        let document = state.cached_tagged_document(id).map(|stored| stored.document.clone());
        document.filter(|document| document.needs_resharding(class, session.sharding))
    };
    let Some(document) = wanted(state) else { return Ok(()) };
    let unread = document.unloaded_shards(EntryQuery::AllOf(class));
    let ReadShards { found, missing } = session.read_shards(&document, &unread)?;
    if let Some(missing) = missing {
        return Err(damaged_object_error(&document.shard_key(missing))(LayoutError::MissingShard));
    }
    drop(document);
    state.add_loaded_shards(id, found);
    let old = state.change(id, |document| {
        document.reshard_if_needed(class, session.sharding).map_err(invalid_or_unsupported_error)
    })?;
    state.old_shards.entry(id).or_default().extend(old);
    Ok(())
}

/// Deletes shards that no document names any more.
///
/// # Errors
/// Those of the engine.
pub fn delete_old_shards(session: &HsdsSession, state: &mut SessionState) -> Result<()> {
    let ready: Vec<ObjectId> = state.old_shards.keys().copied().filter(|id| !state.dirty.contains(id)).collect();
    for id in ready {
        let shards = state.old_shards.get(&id).into_iter().flatten();
        let keys: Vec<String> = shards.map(|shard| session.domain.shard_key(id, *shard)).collect();
        if !keys.is_empty() {
            session.engine.delete_many(&keys)?;
        }
        state.old_shards.remove(&id);
    }
    Ok(())
}
