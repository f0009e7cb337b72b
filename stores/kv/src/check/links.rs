//! The links of groups.

use h5live_model::{GroupSpec, LinkTarget, Name, ObjectId, Result};

use super::{CheckedContainer, KvFault};
use crate::creation_order::LinksOrAttributes;
use crate::engine::KeySpan;
use crate::layout::value::{decode_link_target, decode_u64};
use crate::layout::{EngineKey, RecordKey, key};
use crate::tracked_orders::is_tracked;

/// A link of which the position in the order of creation may follow.
struct PendingLink {
    name: Name,
    has_position: bool,
}

impl CheckedContainer<'_> {
    /// Looks at the links of a group, and at their order of creation if the group could be decoded.
    pub(super) fn check_links(&mut self, id: ObjectId, spec: Option<&GroupSpec>) -> Result<()> {
        let is_tracked = spec.map(|spec| is_tracked(spec.link_storage.order));
        let (state, mut count) = (self.state, 0);
        let mut pending: Option<PendingLink> = None;
        state.for_each_pair_reentrant(&KeySpan::from(&key::links(id)), |key, value| -> Result<bool> {
            match EngineKey::parse(key) {
                Ok((_, RecordKey::Link(name))) => {
                    count += 1;
                    let name = Name::from(&*name);
                    self.check_link(id, &name, value);
                    let whole = pending.replace(PendingLink { name, has_position: false });
                    self.check_position(id, whole, is_tracked);
                }
                Ok((_, RecordKey::LinkOrder(name))) => {
                    let of_pending = pending.as_mut().filter(|pending| pending.name.as_bytes() == &*name);
                    if let Err(error) = decode_u64("/Link Creation Order", value) {
                        self.add_fault(id, KvFault::RecordFormat(error));
                    }
                    match of_pending {
                        Some(pending) => pending.has_position = true,
                        None => {
                            self.add_fault(id, KvFault::LinkPositionTrackingMismatch(Name::from(&*name).to_string()))
                        }
                    }
                }
                // A fault already.
                _ => {}
            }
            Ok(!self.is_full())
        })?;
        self.check_position(id, pending, is_tracked);
        is_tracked.map_or(Ok(()), |is_tracked| self.check_order(LinksOrAttributes::Links, id, is_tracked, count))
    }

    fn check_link(&mut self, group: ObjectId, name: &Name, value: &[u8]) {
        match decode_link_target(value) {
            Ok(LinkTarget::Hard(target)) => {
                if !self.objects.increment_ref_count(target) {
                    self.add_fault(group, KvFault::DanglingHardLink { name: name.to_string(), target });
                }
            }
            Ok(_) => {}
            Err(error) => {
                self.has_unseen_links = true;
                self.add_fault(group, KvFault::RecordFormat(error));
            }
        }
    }

    fn check_position(&mut self, group: ObjectId, link: Option<PendingLink>, is_tracked: Option<bool>) {
        if let (Some(PendingLink { name, has_position }), Some(is_tracked)) = (link, is_tracked)
            && has_position != is_tracked
        {
            self.add_fault(group, KvFault::LinkPositionTrackingMismatch(name.to_string()));
        }
    }
}
