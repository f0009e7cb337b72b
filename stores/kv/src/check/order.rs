//! The index by rank of an order of creation: it has each name once, and positions grow with ranks.

use h5live_model::{Name, ObjectId, Result};

use super::{CheckedContainer, CreationOrderFault, KvFault};
use crate::creation_order::LinksOrAttributes;
use crate::engine::KeySpan;
use crate::layout::value::decode_u64;
use crate::layout::{AttributeField, EngineKey, RecordKey, key};

/// How far an index was followed.
#[derive(Default)]
struct FollowedIndex {
    /// Names so far, which is the next rank.
    names: u64,
    /// Targets so far.
    targets: u64,
    last_position: Option<u64>,
}

impl CheckedContainer<'_> {
    /// Looks at the index of an object that has `count` links or attributes. One fault of an index is enough.
    pub(super) fn check_order(
        &mut self,
        of: LinksOrAttributes,
        id: ObjectId,
        is_tracked: bool,
        count: u64,
    ) -> Result<()> {
        if let Some(fault) = self.find_order_fault(of, id, is_tracked, count)? {
            self.add_fault(id, KvFault::CreationOrder { of: of.plural(), fault });
        }
        Ok(())
    }

    fn find_order_fault(
        &mut self,
        of: LinksOrAttributes,
        id: ObjectId,
        is_tracked: bool,
        count: u64,
    ) -> Result<Option<CreationOrderFault>> {
        let (stated, next) =
            (self.order_number(id, &of.count_key(id))?, self.order_number(id, &of.next_position_key(id))?);
        let ranks = KeySpan::from(&of.names_by_rank_range(id));
        if !is_tracked {
            let is_there = stated.is_some() || next.is_some() || self.state.has_any(&ranks)?;
            return Ok(is_there.then_some(CreationOrderFault::IndexWithoutTracking));
        }
        let (stated, next) = (stated.unwrap_or_default(), next.unwrap_or_default());
        if stated != count {
            return Ok(Some(CreationOrderFault::StatedCountMismatch { stated, found: count }));
        }
        let (state, mut index, mut fault) = (self.state, FollowedIndex::default(), None);
        state.for_each_pair_reentrant(&ranks, |key, value| -> Result<bool> {
            fault = match EngineKey::parse(key) {
                Ok((_, RecordKey::LinkNameAtRank(rank) | RecordKey::AttributeNameAtRank(rank))) => {
                    self.follow_name(of, id, &mut index, (rank, value, next))?
                }
                Ok((_, RecordKey::LinkTargetAtRank(rank))) => self.follow_target(id, &mut index, rank, value)?,
                // A fault already.
                _ => None,
            };
            Ok(fault.is_none())
        })?;
        let is_short = index.names != count || (of == LinksOrAttributes::Links && index.targets != count);
        Ok(fault.or(is_short.then_some(CreationOrderFault::IndexLengthMismatch {
            indexed: index.names.min(index.targets),
            found: count,
        })))
    }

    /// The number of a record; `None` if it is not there, or cannot be decoded, which is a fault.
    fn order_number(&mut self, id: ObjectId, key: &EngineKey) -> Result<Option<u64>> {
        let value = self.state.get(key.as_bytes())?;
        match value.map(|value| decode_u64("a creation order", &value)).transpose() {
            Ok(number) => Ok(number),
            Err(error) => {
                self.add_fault(id, KvFault::RecordFormat(error));
                Ok(None)
            }
        }
    }

    fn follow_name(
        &self,
        of: LinksOrAttributes,
        id: ObjectId,
        index: &mut FollowedIndex,
        (rank, name, next): (u64, &[u8], u64),
    ) -> Result<Option<CreationOrderFault>> {
        if rank != index.names {
            return Ok(Some(CreationOrderFault::MissingRank(index.names)));
        }
        index.names += 1;
        if of == LinksOrAttributes::Attributes {
            index.targets += 1;
        }
        let at = match of {
            LinksOrAttributes::Links => key::link_order(id, name),
            LinksOrAttributes::Attributes => key::attribute(id, AttributeField::CreationOrder, name),
        };
        let position = self.state.get(at.as_bytes())?.and_then(|value| decode_u64("a position", &value).ok());
        let Some(position) = position else {
            return Ok(Some(CreationOrderFault::DanglingName { rank, name: Name::from(name).to_string() }));
        };
        if index.last_position.replace(position).is_some_and(|last| last >= position) {
            return Ok(Some(CreationOrderFault::PositionNotAscendingAtRank(rank)));
        }
        Ok((position >= next).then_some(CreationOrderFault::PositionNotBelowNext { rank, position, next }))
    }

    fn follow_target(
        &self,
        id: ObjectId,
        index: &mut FollowedIndex,
        rank: u64,
        target: &[u8],
    ) -> Result<Option<CreationOrderFault>> {
        // Its name comes before it.
        if rank.checked_add(1) != Some(index.names) || rank != index.targets {
            return Ok(Some(CreationOrderFault::MissingRank(index.targets)));
        }
        index.targets += 1;
        let name = self.state.get(key::link_name_at_rank(id, rank).as_bytes())?.unwrap_or_default();
        let is_same = self.state.get(key::link(id, &name).as_bytes())?.is_some_and(|value| value == target);
        Ok((!is_same).then_some(CreationOrderFault::TargetMismatchAtRank(rank)))
    }
}
