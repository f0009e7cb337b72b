//! The links and the attributes of a document, which may be in shards.
//!
//! A program that does not know shards may have added entries to the document itself. They count before those in shards.

use std::sync::Arc;

use serde_json::Value;

use super::document::ObjectDocument;
use super::entry_storage::GivenPositions;
use super::error::Result;
use super::extras::set_h5live_member;
use super::json::{Members, object_member, object_member_or_insert};
use super::shard_id::{LinksOrAttributes, ShardId};
use super::shards::{
    EntryQuery, ShardedEntries, ShardingThreshold, StagedShards, move_entries_to_shards, shard_from_bytes,
};

impl ObjectDocument {
    fn sharded(&self, class: LinksOrAttributes) -> Option<&ShardedEntries> {
        match class {
            LinksOrAttributes::Links => self.link_shards.as_ref(),
            LinksOrAttributes::Attributes => self.attribute_shards.as_ref(),
        }
    }

    fn sharded_mut(&mut self, class: LinksOrAttributes) -> &mut Option<ShardedEntries> {
        match class {
            LinksOrAttributes::Links => &mut self.link_shards,
            LinksOrAttributes::Attributes => &mut self.attribute_shards,
        }
    }

    /// The entries that are in the document itself.
    pub(super) fn own_entries(&self, class: LinksOrAttributes) -> Result<Option<&Members>> {
        let is_needed = class == LinksOrAttributes::Links && self.link_shards.is_none();
        match is_needed || self.members.contains_key(class.json_member()) {
            true => object_member(&self.members, class.json_member()).map(Some),
            false => Ok(None),
        }
    }

    /// The link or the attribute with this name.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`](super::LayoutError::MissingOrInvalidMember), [`LayoutError::ShardNotLoaded`](super::LayoutError::ShardNotLoaded).
    pub(super) fn entry(&self, class: LinksOrAttributes, name: &str) -> Result<Option<&Value>> {
        match (self.own_entries(class)?.and_then(|own| own.get(name)), self.sharded(class)) {
            (None, Some(sharded)) => sharded.get(name),
            (found, _) => Ok(found),
        }
    }

    /// All links, or all attributes.
    ///
    /// # Errors
    /// As for one.
    pub(super) fn entries(&self, class: LinksOrAttributes) -> Result<impl Iterator<Item = (&String, &Value)>> {
        let own = self.own_entries(class)?;
        let sharded = self.sharded(class).map(ShardedEntries::all_entries).transpose()?;
        let is_shadowed = move |name: &String| own.is_some_and(|own| own.contains_key(name));
        let sharded = sharded.into_iter().flatten().filter(move |(name, _)| !is_shadowed(name));
        Ok(own.into_iter().flatten().chain(sharded))
    }

    /// Those that are known: shards that were not read have others.
    pub(super) fn known_entries(&self, class: LinksOrAttributes) -> impl Iterator<Item = &Value> {
        let own = self.members.get(class.json_member()).and_then(Value::as_object);
        let sharded = self.sharded(class).into_iter().flat_map(ShardedEntries::loaded_entries);
        own.into_iter().flatten().chain(sharded).map(|(_, value)| value)
    }

    /// Sets a link or an attribute.
    ///
    /// # Errors
    /// As for [`ObjectDocument::entry`].
    pub(super) fn put_entry(&mut self, class: LinksOrAttributes, name: String, value: Value) -> Result<()> {
        self.given = GivenPositions::default();
        if self.sharded(class).is_none() {
            object_member_or_insert(&mut self.members, class.json_member())?.insert(name, value);
            return Ok(());
        }
        object_member_or_insert(&mut self.members, class.json_member())?.shift_remove(&name);
        self.sharded_mut(class).as_mut().map_or(Ok(()), |sharded| sharded.insert(name, value))
    }

    /// Takes a link or an attribute away, and says whether it was there.
    ///
    /// # Errors
    /// As for [`ObjectDocument::entry`].
    pub(super) fn remove_entry(&mut self, class: LinksOrAttributes, name: &str) -> Result<bool> {
        self.given = GivenPositions::default();
        let own = object_member_or_insert(&mut self.members, class.json_member())?;
        let was_own = match class {
            LinksOrAttributes::Links => own.swap_remove(name),
            LinksOrAttributes::Attributes => own.shift_remove(name),
        };
        let was_sharded = self.sharded_mut(class).as_mut().map_or(Ok(false), |sharded| sharded.remove(name))?;
        Ok(was_own.is_some() || was_sharded)
    }

    /// Whether links, or attributes, are in shards.
    pub fn is_sharded(&self, class: LinksOrAttributes) -> bool {
        self.sharded(class).is_some()
    }

    /// The shards that the document names.
    pub fn shard_ids(&self) -> Vec<ShardId> {
        LinksOrAttributes::BOTH
            .iter()
            .filter_map(|class| self.sharded(*class))
            .flat_map(ShardedEntries::shard_ids_in_table)
            .collect()
    }

    /// The shards that have to be read before something is known of the object.
    pub fn unloaded_shards(&self, query: EntryQuery<'_>) -> Vec<ShardId> {
        let missing = |class: LinksOrAttributes, name: Option<&str>| {
            self.sharded(class).map(|sharded| sharded.unloaded_shards(name)).unwrap_or_default()
        };
        match query {
            // No name that is no UTF-8 is in a document.
            EntryQuery::One(class, name) => name.as_str().map(|name| missing(class, Some(name))).unwrap_or_default(),
            EntryQuery::AllOf(class) => missing(class, None),
            EntryQuery::All => LinksOrAttributes::BOTH.iter().flat_map(|class| missing(*class, None)).collect(),
        }
    }

    /// The key of a shard.
    pub fn shard_key(&self, shard: ShardId) -> String {
        self.domain.shard_key(self.id, shard)
    }

    /// The entries of a shard that the document names, from the bytes of its object.
    ///
    /// # Errors
    /// [`LayoutError`](super::LayoutError).
    pub fn parse_shard(&self, shard: ShardId, bytes: &[u8]) -> Result<Arc<Members>> {
        let shards = self.sharded(shard.class).map(ShardedEntries::shard_count).unwrap_or_default();
        shard_from_bytes((self.domain, self.id), shard, shards, bytes).map(Arc::new)
    }

    /// Takes up a shard that was loaded, if the document names it.
    pub fn add_loaded_shard(&mut self, shard: ShardId, entries: Arc<Members>) {
        if let Some(sharded) = self.sharded_mut(shard.class) {
            sharded.add_loaded_shard(shard, entries);
        }
    }

    /// Takes over the shards that an older state of the document has, and this one names as well.
    pub fn reuse_loaded_shards(&mut self, older: &ObjectDocument) {
        for class in LinksOrAttributes::BOTH {
            if let (Some(sharded), Some(older)) = (self.sharded_mut(class), older.sharded(class)) {
                sharded.reuse_loaded_shards(older);
            }
        }
    }

    /// Whether links or attributes should be spread over another number of shards, or over shards at all. Then all of them
    /// have to be read.
    pub fn needs_resharding(&self, class: LinksOrAttributes, sharding: ShardingThreshold) -> bool {
        match self.sharded(class) {
            Some(sharded) => sharded.reshard_target_count(sharding).is_some(),
            None => {
                let own = self.members.get(class.json_member()).and_then(Value::as_object).map_or(0, Members::len);
                sharding.above > 0 && own as u64 > sharding.above
            }
        }
    }

    /// Spreads links or attributes over shards, if there are enough. Returns the shards that are not named any more.
    ///
    /// # Errors
    /// [`LayoutError::ShardNotLoaded`](super::LayoutError::ShardNotLoaded).
    pub fn reshard_if_needed(&mut self, class: LinksOrAttributes, sharding: ShardingThreshold) -> Result<Vec<ShardId>> {
        if let Some(sharded) = self.sharded_mut(class) {
            let wanted = sharded.reshard_target_count(sharding);
            return wanted.map_or(Ok(Vec::new()), |shards| sharded.reshard(shards));
        }
        if let Some(spread) = move_entries_to_shards(class, &mut self.members, sharding) {
            *self.sharded_mut(class) = Some(spread);
        }
        Ok(Vec::new())
    }

    /// Whether shards are to be written.
    pub fn has_changed_shards(&self) -> bool {
        LinksOrAttributes::BOTH.iter().filter_map(|class| self.sharded(*class)).any(ShardedEntries::is_changed)
    }

    /// Gives each shard that has changed this new generation, in the table as well.
    pub fn stage_changed_shards(&mut self, version_id: u64) -> StagedShards {
        let (mut all, domain, id) = (StagedShards::default(), self.domain, self.id);
        for class in LinksOrAttributes::BOTH {
            let Some(sharded) = self.sharded_mut(class) else { continue };
            let changes = sharded.stage_changes(domain, id, version_id);
            all.puts.extend(changes.puts);
            all.old_shards.extend(changes.old_shards);
            let table = sharded.table();
            set_h5live_member(&mut self.members, class.table_member(), table);
        }
        all
    }

    /// Says that all shards are stored.
    pub fn set_shards_written(&mut self) {
        self.link_shards.iter_mut().chain(&mut self.attribute_shards).for_each(ShardedEntries::set_written);
    }
}
