//! The order in which links of a group, or attributes of an object, were made.
//!
//! Each knows its position, which stays. Beside that the layout has an index: the names by their rank among those that
//! are still there, from 0 on. What is behind a name that is removed moves up by one.

use h5live_model::{ObjectId, Result};

use crate::engine::KeySpan;
use crate::error::damaged_object_error;
use crate::layout::value::encode_u64;
use crate::layout::{EngineKey, EngineKeyRange, RecordKey, key};
use crate::state::{KvState, read_number};

/// Which order of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinksOrAttributes {
    /// That of a group's links.
    Links,
    /// That of attributes.
    Attributes,
}

impl LinksOrAttributes {
    /// What is in the order.
    pub fn plural(self) -> &'static str {
        match self {
            LinksOrAttributes::Links => "links",
            LinksOrAttributes::Attributes => "attributes",
        }
    }

    /// The key of the number of names.
    pub fn count_key(self, object: ObjectId) -> EngineKey {
        match self {
            LinksOrAttributes::Links => key::link_count(object),
            LinksOrAttributes::Attributes => key::attribute_count(object),
        }
    }

    /// The key of the position that the next name gets.
    pub fn next_position_key(self, object: ObjectId) -> EngineKey {
        match self {
            LinksOrAttributes::Links => key::next_link_order(object),
            LinksOrAttributes::Attributes => key::next_attribute_order(object),
        }
    }

    fn name_at(self, object: ObjectId, rank: u64) -> EngineKey {
        match self {
            LinksOrAttributes::Links => key::link_name_at_rank(object, rank),
            LinksOrAttributes::Attributes => key::attribute_name_at_rank(object, rank),
        }
    }

    /// The keys of the names by their rank.
    pub fn names_by_rank_range(self, object: ObjectId) -> EngineKeyRange {
        match self {
            LinksOrAttributes::Links => key::links_by_creation_order(object),
            LinksOrAttributes::Attributes => key::attribute_names_by_creation_order(object),
        }
    }
}

/// Adds a name to an order, and returns its position. `target` is the value of a link.
///
/// # Errors
/// [`h5live_model::Error::Store`] if the records are damaged.
pub fn append_to_creation_order(
    state: &mut KvState,
    of: LinksOrAttributes,
    object: ObjectId,
    name: &[u8],
    target: Option<&[u8]>,
) -> Result<u64> {
    let (count_key, next_key) = (of.count_key(object), of.next_position_key(object));
    let count = read_number(&state.view_with_edits(), object, &count_key, "a count")?.unwrap_or_default();
    let position = read_number(&state.view_with_edits(), object, &next_key, "a position")?.unwrap_or_default();
    state.put(&count_key, encode_u64(count + 1));
    state.put(&next_key, encode_u64(position + 1));
    state.put(&of.name_at(object, count), name);
    if let Some(target) = target {
        state.put(&key::link_target_at_rank(object, count), target);
    }
    Ok(position)
}

/// Removes a name from an order. Those behind it move up.
///
/// # Errors
/// [`h5live_model::Error::Store`] if the records are damaged.
pub fn remove_from_creation_order(
    state: &mut KvState,
    of: LinksOrAttributes,
    object: ObjectId,
    name: &[u8],
) -> Result<()> {
    let count_key = of.count_key(object);
    let Some(count) = read_number(&state.view_with_edits(), object, &count_key, "a count")? else { return Ok(()) };
    let Some(rank) = rank_of(state, of, object, name)? else { return Ok(()) };
    for rank in rank..count.saturating_sub(1) {
        move_up(state, of.name_at(object, rank + 1), &of.name_at(object, rank))?;
        if of == LinksOrAttributes::Links {
            move_up(state, key::link_target_at_rank(object, rank + 1), &key::link_target_at_rank(object, rank))?;
        }
    }
    let last = count.saturating_sub(1);
    state.delete(&of.name_at(object, last));
    if of == LinksOrAttributes::Links {
        state.delete(&key::link_target_at_rank(object, last));
    }
    state.put(&count_key, encode_u64(last));
    Ok(())
}

fn move_up(state: &mut KvState, from: EngineKey, to: &EngineKey) -> Result<()> {
    match state.view_with_edits().get(from.as_bytes())? {
        Some(value) => state.put(to, value),
        None => state.delete(to),
    }
    Ok(())
}

fn rank_of(state: &KvState, of: LinksOrAttributes, object: ObjectId, name: &[u8]) -> Result<Option<u64>> {
    let mut found = None;
    state.view_with_edits().for_each_pair_reentrant(
        &KeySpan::from(&of.names_by_rank_range(object)),
        |key, value| -> Result<bool> {
            if let RecordKey::LinkNameAtRank(rank) | RecordKey::AttributeNameAtRank(rank) =
                EngineKey::parse(key).map_err(damaged_object_error(object))?.1
                && value == name
            {
                found = Some(rank);
            }
            Ok(found.is_none())
        },
    )?;
    Ok(found)
}
