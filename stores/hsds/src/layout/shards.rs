//! Shards: the links, or the attributes, of an object that has many, in objects of their own.
//!
//! The document has a table that names a generation of each shard. A shard that changes is written under the key of a new
//! generation, and then the document with the table. So what a table names never changes, and nobody mixes two states.

use std::sync::Arc;

use h5live_model::{Name, ObjectId};
use serde_json::{Value, json};

use super::error::{LayoutError, Result};
use super::id::DomainId;
use super::json::{Members, json_to_bytes, object_member, parse_json_object};
use super::shard_id::{LinksOrAttributes, ShardId, generation_text, parse_generation};

/// Most shards of the links, or of the attributes, of an object.
const MAX_SHARDS: usize = 1 << 16;
/// Most links or attributes in a shard on average, when they are spread.
const MAX_ENTRIES_WHEN_SPREAD: u64 = 1024;
/// Over how many shards entries are spread first, or more.
const MIN_SHARDS_WHEN_SPREAD: u64 = 64;
/// How many times the average when they were spread is the one at which they are spread anew.
const GROWTH: u64 = 4;

/// Which links or attributes are wanted.
#[derive(Debug, Clone, Copy)]
pub enum EntryQuery<'a> {
    /// The one with this name.
    One(LinksOrAttributes, &'a Name),
    /// All of a class.
    AllOf(LinksOrAttributes),
    /// All links and attributes.
    All,
}

/// When links and attributes are spread over shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShardingThreshold {
    /// Most links, and most attributes, that an object has without shards; 0: as many as there are.
    pub above: u64,
}

/// The links, or the attributes, of an object, in shards.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardedEntries {
    class: LinksOrAttributes,
    shards: Vec<Shard>,
    /// Entries in all shards.
    count: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Shard {
    /// What the document names; `None`: there is no object, since nothing is in it.
    generation: Option<u64>,
    /// What is in it; `None`: it was not read.
    entries: Option<Arc<Members>>,
    is_changed: bool,
}

/// What a commit writes of the shards of an object.
#[derive(Debug, Default)]
pub struct StagedShards {
    /// Keys and bytes of objects that are written before the document.
    pub puts: Vec<(String, Vec<u8>)>,
    /// Objects that no table names when the document is written.
    pub old_shards: Vec<ShardId>,
}

impl ShardingThreshold {
    /// Over how many shards so many entries should be spread, which are in `now` shards (0: none); `None`: they stay.
    fn shards_for(self, now: usize, count: u64) -> Option<usize> {
        let per_shard = match self.above {
            0 => MAX_ENTRIES_WHEN_SPREAD,
            above => (above / MIN_SHARDS_WHEN_SPREAD).clamp(1, MAX_ENTRIES_WHEN_SPREAD),
        };
        let is_full = match now {
            0 => self.above > 0 && count > self.above,
            now => now < MAX_SHARDS && count / (now as u64) >= GROWTH * per_shard,
        };
        let wanted = usize::try_from(count / per_shard).unwrap_or(MAX_SHARDS).clamp(1, MAX_SHARDS);
        is_full.then(|| wanted.next_power_of_two())
    }
}

/// The number of the shard of a name, of so many: the FNV-1a hash of its bytes (64 bits), modulo this number.
fn shard_number(name: &str, shards: usize) -> usize {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash % (shards.max(1) as u64)) as usize
}

impl ShardedEntries {
    /// Entries that were in the document, over so many shards.
    fn spread(class: LinksOrAttributes, entries: impl Iterator<Item = (String, Value)>, shards: usize) -> Self {
        let mut spread = vec![Members::new(); shards.clamp(1, MAX_SHARDS)];
        let (number_of_shards, mut count) = (spread.len(), 0);
        for (name, value) in entries {
            if let Some(shard) = spread.get_mut(shard_number(&name, number_of_shards)) {
                shard.insert(name, value);
                count += 1;
            }
        }
        let changed = |entries: Members| Shard {
            generation: None,
            is_changed: !entries.is_empty(),
            entries: Some(Arc::new(entries)),
        };
        ShardedEntries { class, shards: spread.into_iter().map(changed).collect(), count }
    }

    /// The table of a document.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`].
    pub fn from_table(class: LinksOrAttributes, table: &Value) -> Result<Self> {
        let wrong = LayoutError::MissingOrInvalidMember { member: class.table_member(), expected: "a table of shards" };
        let generations = table.get("generations").and_then(Value::as_array);
        let is_valid = |list: &&Vec<Value>| list.len().is_power_of_two() && list.len() <= MAX_SHARDS;
        let (Some(generations), Some(count)) =
            (generations.filter(is_valid), table.get("count").and_then(Value::as_u64))
        else {
            return Err(wrong);
        };
        let shard = |json: &Value| match json {
            Value::Null => Some(Shard { entries: Some(Arc::default()), ..Shard::default() }),
            json => Some(Shard { generation: Some(parse_generation(json.as_str()?)?), ..Shard::default() }),
        };
        let shards = generations.iter().map(shard).collect::<Option<_>>().ok_or(wrong)?;
        Ok(ShardedEntries { class, shards, count })
    }

    /// The table of the document.
    pub fn table(&self) -> Value {
        let generations: Vec<Option<String>> =
            self.shards.iter().map(|shard| shard.generation.map(generation_text)).collect();
        json!({"count": self.count, "generations": generations})
    }

    /// All shards that the table names.
    pub fn shard_ids_in_table(&self) -> impl Iterator<Item = ShardId> + '_ {
        let named = |(number, shard): (usize, &Shard)| Some(self.id(number, shard.generation?));
        self.shards.iter().enumerate().filter_map(named)
    }

    fn id(&self, number: usize, generation: u64) -> ShardId {
        ShardId { class: self.class, number, version_id: generation }
    }

    /// The shards that have to be read before the entry of this name is known; all entries, if there is no name.
    pub fn unloaded_shards(&self, name: Option<&str>) -> Vec<ShardId> {
        let number = name.map(|name| shard_number(name, self.shards.len()));
        let is_missing = |shard: &ShardId| {
            number.is_none_or(|number| number == shard.number)
                && self.shards.get(shard.number).is_some_and(|shard| shard.entries.is_none())
        };
        self.shard_ids_in_table().filter(is_missing).collect()
    }

    fn not_read(&self) -> LayoutError {
        LayoutError::ShardNotLoaded(self.class.json_member())
    }

    /// The entry with this name.
    ///
    /// # Errors
    /// [`LayoutError::ShardNotLoaded`].
    pub fn get(&self, name: &str) -> Result<Option<&Value>> {
        let shard = self.shards.get(shard_number(name, self.shards.len()));
        let entries = shard.and_then(|shard| shard.entries.as_deref()).ok_or_else(|| self.not_read())?;
        Ok(entries.get(name))
    }

    /// The entries of the shards that were read.
    pub fn loaded_entries(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.shards.iter().filter_map(|shard| shard.entries.as_deref()).flatten()
    }

    /// All entries.
    ///
    /// # Errors
    /// [`LayoutError::ShardNotLoaded`].
    pub fn all_entries(&self) -> Result<impl Iterator<Item = (&String, &Value)>> {
        if self.is_complete() { Ok(self.loaded_entries()) } else { Err(self.not_read()) }
    }

    /// How many shards there are.
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    fn is_complete(&self) -> bool {
        self.shards.iter().all(|shard| shard.entries.is_some())
    }

    /// The entries of the shard of a name, which are about to change.
    fn changed(&mut self, name: &str) -> Result<&mut Members> {
        let (not_read, number) = (self.not_read(), shard_number(name, self.shards.len()));
        let Some(shard) = self.shards.get_mut(number) else { return Err(not_read) };
        let entries = shard.entries.as_mut().ok_or(not_read)?;
        shard.is_changed = true;
        Ok(Arc::make_mut(entries))
    }

    /// Sets an entry.
    ///
    /// # Errors
    /// [`LayoutError::ShardNotLoaded`].
    pub fn insert(&mut self, name: String, value: Value) -> Result<()> {
        let is_new = self.changed(&name)?.insert(name, value).is_none();
        self.count = self.count.saturating_add(u64::from(is_new));
        Ok(())
    }

    /// Takes an entry away, and says whether it was there.
    ///
    /// # Errors
    /// [`LayoutError::ShardNotLoaded`].
    pub fn remove(&mut self, name: &str) -> Result<bool> {
        if self.get(name)?.is_none() {
            return Ok(false);
        }
        self.changed(name)?.swap_remove(name);
        self.count = self.count.saturating_sub(1);
        Ok(true)
    }

    /// Takes up a shard that was loaded, if it is wanted.
    pub fn add_loaded_shard(&mut self, shard: ShardId, entries: Arc<Members>) {
        let Some(found) = self.shards.get_mut(shard.number) else { return };
        if found.generation == Some(shard.version_id) && found.entries.is_none() {
            found.entries = Some(entries);
        }
    }

    /// Takes over from an older state what has not changed since.
    pub fn reuse_loaded_shards(&mut self, older: &ShardedEntries) {
        if older.shards.len() == self.shards.len() {
            for (number, old) in older.shards.iter().enumerate().filter(|(_, old)| !old.is_changed) {
                if let (Some(generation), Some(entries)) = (old.generation, &old.entries) {
                    self.add_loaded_shard(older.id(number, generation), entries.clone());
                }
            }
        }
    }

    /// Whether a shard is not as it is stored.
    pub fn is_changed(&self) -> bool {
        self.shards.iter().any(|shard| shard.is_changed)
    }

    /// Names the shards that have changed anew.
    pub fn stage_changes(&mut self, domain: DomainId, id: ObjectId, generation: u64) -> StagedShards {
        let (mut changes, class, shards) = (StagedShards::default(), self.class, self.shards.len());
        for (number, shard) in self.shards.iter_mut().enumerate().filter(|(_, shard)| shard.is_changed) {
            let old = shard.generation.take().map(|generation| ShardId { class, number, version_id: generation });
            changes.old_shards.extend(old);
            let entries = shard.entries.as_deref().filter(|entries| !entries.is_empty());
            if let Some(entries) = entries {
                shard.generation = Some(generation);
                let key = domain.shard_key(id, ShardId { class, number, version_id: generation });
                changes.puts.push((key, shard_to_bytes((domain, id), (class, number, shards), entries)));
            }
        }
        changes
    }

    /// Says that the shards are stored as they are.
    pub fn set_written(&mut self) {
        self.shards.iter_mut().for_each(|shard| shard.is_changed = false);
    }

    /// Over how many shards the entries should be spread anew; `None`: they stay.
    pub fn reshard_target_count(&self, sharding: ShardingThreshold) -> Option<usize> {
        // What a table states counts only as long as it is not known better.
        let count = if self.is_complete() { self.loaded_entries().count() as u64 } else { self.count };
        sharding.shards_for(self.shards.len(), count)
    }

    /// Spreads the entries over so many shards. Returns those that no table names any more.
    ///
    /// # Errors
    /// [`LayoutError::ShardNotLoaded`].
    pub fn reshard(&mut self, shard_count: usize) -> Result<Vec<ShardId>> {
        let entries = self.all_entries()?.map(|(name, value)| (name.clone(), value.clone()));
        let new = ShardedEntries::spread(self.class, entries, shard_count);
        Ok(std::mem::replace(self, new).shard_ids_in_table().collect())
    }
}

/// The same for entries that are in their document. `None`: they stay there.
pub fn move_entries_to_shards(
    class: LinksOrAttributes,
    members: &mut Members,
    sharding: ShardingThreshold,
) -> Option<ShardedEntries> {
    let own = members.get_mut(class.json_member()).and_then(Value::as_object_mut)?;
    let shards = sharding.shards_for(0, own.len() as u64)?;
    Some(ShardedEntries::spread(class, std::mem::take(own).into_iter(), shards))
}

/// The bytes of the object of a shard, with its number and that of all shards.
fn shard_to_bytes(
    (domain, id): (DomainId, ObjectId),
    (class, number, shards): (LinksOrAttributes, usize, usize),
    entries: &Members,
) -> Vec<u8> {
    let mut members = Members::new();
    members.insert("id".to_owned(), domain.object_id_text(id).into());
    members.insert("shard".to_owned(), number.into());
    members.insert("shards".to_owned(), shards.into());
    members.insert(class.json_member().to_owned(), Value::Object(entries.clone()));
    json_to_bytes(&members)
}

/// The entries of a shard, from the bytes of its object; `shard_count` is the number of all shards.
///
/// # Errors
/// [`LayoutError::MissingOrInvalidMember`], [`LayoutError::EntryInWrongShard`].
pub fn shard_from_bytes(
    (domain, id): (DomainId, ObjectId),
    shard: ShardId,
    shard_count: usize,
    bytes: &[u8],
) -> Result<Members> {
    let mut members = parse_json_object(bytes)?;
    let is_number = |member, number: usize| members.get(member).and_then(Value::as_u64) == Some(number as u64);
    if members.get("id").and_then(Value::as_str) != Some(domain.object_id_text(id).as_str()) {
        return Err(LayoutError::MissingOrInvalidMember {
            member: "id",
            expected: "the id of the object whose shard it is",
        });
    }
    if !is_number("shard", shard.number) || !is_number("shards", shard_count) {
        return Err(LayoutError::MissingOrInvalidMember {
            member: "shard",
            expected: "the number of the shard that the document names",
        });
    }
    let entries = object_member(&members, shard.class.json_member())?;
    if let Some(name) = entries.keys().find(|name| shard_number(name, shard_count) != shard.number) {
        return Err(LayoutError::EntryInWrongShard(name.chars().take(64).collect()));
    }
    match members.remove(shard.class.json_member()) {
        Some(Value::Object(entries)) => Ok(entries),
        _ => Ok(Members::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(count: usize, shards: usize) -> ShardedEntries {
        let entries = (0..count).map(|number| (format!("n{number}"), json!(number)));
        ShardedEntries::spread(LinksOrAttributes::Links, entries, shards)
    }

    #[test]
    fn entries_are_found_in_their_shards_and_spread_anew() {
        let mut entries = spread(1000, 8);
        for shards in [8, 64, 1] {
            entries.reshard(shards).unwrap();
            assert_eq!((entries.shard_count(), entries.all_entries().unwrap().count()), (shards, 1000));
            assert_eq!(entries.get("n999").unwrap(), Some(&json!(999)));
            assert_eq!(entries.get("n1000").unwrap(), None);
        }
    }

    #[test]
    fn a_shard_comes_back_from_its_bytes_and_no_other_is_taken_for_it() {
        let (domain, mut entries) = (DomainId(7), spread(100, 4));
        let id = domain.root();
        let changes = entries.stage_changes(domain, id, 5);
        assert_eq!((changes.puts.len(), changes.old_shards.len()), (4, 0));
        let mut again = ShardedEntries::from_table(LinksOrAttributes::Links, &entries.table()).unwrap();
        assert_eq!(again.unloaded_shards(None).len(), 4);
        assert!(again.get("n1").is_err() && again.all_entries().is_err());
        for shard in again.unloaded_shards(None) {
            let bytes = &changes.puts[shard.number].1;
            let found = shard_from_bytes((domain, id), shard, 4, bytes).unwrap();
            let other = ShardId { number: (shard.number + 1) % 4, ..shard };
            assert!(shard_from_bytes((domain, id), other, 4, bytes).is_err());
            assert!(shard_from_bytes((domain, id), shard, 8, bytes).is_err());
            assert!(shard_from_bytes((DomainId(8), id), shard, 4, bytes).is_err());
            again.add_loaded_shard(shard, Arc::new(found));
        }
        entries.set_written();
        assert_eq!(again, entries);
    }

    #[test]
    fn tables_of_another_form_are_refused() {
        let text = generation_text(1);
        let good = json!({"count": 1, "generations": [text, null]});
        assert!(ShardedEntries::from_table(LinksOrAttributes::Links, &good).is_ok());
        let lists =
            [json!([]), json!([text, null, null]), json!(["../../../x"]), json!(["+00000000000000f"]), json!([1])];
        for list in lists {
            let table = json!({"count": 1, "generations": list});
            assert!(ShardedEntries::from_table(LinksOrAttributes::Links, &table).is_err(), "{table}");
        }
        let many = vec![Value::Null; 2 * MAX_SHARDS];
        assert!(
            ShardedEntries::from_table(LinksOrAttributes::Links, &json!({"count": 1, "generations": many})).is_err()
        );
        assert!(ShardedEntries::from_table(LinksOrAttributes::Links, &json!({"generations": [text]})).is_err());
    }

    #[test]
    fn shards_grow_in_number_with_what_is_in_them() {
        let never = ShardingThreshold::default();
        assert_eq!(never.shards_for(0, u64::MAX), None);
        assert_eq!(never.shards_for(8, 8 * 4 * 1024 - 1), None);
        assert_eq!(never.shards_for(8, 8 * 4 * 1024), Some(32));
        assert_eq!(never.shards_for(MAX_SHARDS, u64::MAX), None);
        let above = ShardingThreshold { above: 100_000 };
        assert_eq!(above.shards_for(0, 100_000), None);
        assert_eq!(above.shards_for(0, 100_001), Some(128));
        assert_eq!(above.shards_for(1, u64::MAX), Some(MAX_SHARDS));
    }
}
