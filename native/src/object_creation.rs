//! New objects: groups, committed datatypes, and what the headers of all objects have in common.

use std::time::SystemTime;

use h5live_cache::DependencyKind;
use h5live_format::messages::{
    DatatypeMessage, GroupInfo, LinkInfo, LinkPhaseChange, Message, ModificationTime, Shareable,
    SharedMessageReference, SharedMessageTarget, SymbolTableMessage,
};
use h5live_format::{
    Addr, AttributePhaseChange, HeaderTimes, MessageBody, MessageFlags, ObjectHeaderPrefix, RawMessage,
    StructureVersions, with_encoded,
};
use h5live_model::{
    CreationOrder, Datatype, Error as ModelError, GroupSpec, LinkOrAttributeStorageSpec, ObjectId, ObjectKind,
    ObjectKindSpec, ObjectSpec,
};

use crate::dataset::{create_dataset, not_compact_error};
use crate::header::{CachedHeader, ReservedHeaderSpace};
use crate::object_kind::kind_of;
use crate::session::NativeSession;
use crate::{Error, Result};

/// Bytes of unused space in the header of a new group, for links.
const GROUP_ROOM: ReservedHeaderSpace = ReservedHeaderSpace::AtEnd(320);

/// Bytes of unused space in the header of a new group of the old style, for attributes.
const SYMBOL_TABLE_GROUP_ROOM: ReservedHeaderSpace = ReservedHeaderSpace::AtEnd(64);

/// Bytes of unused space in the header of a new committed datatype, for attributes.
const DATATYPE_ROOM: ReservedHeaderSpace = ReservedHeaderSpace::AtEnd(64);

/// The flag of a message that another header holds.
const SHARED_FLAG: MessageFlags = MessageFlags(0x03);

impl NativeSession {
    /// Makes an object to which no link leads yet; a compact dataset may have `compact_elements` from the start.
    ///
    /// # Errors
    /// If the description contradicts itself, or a file of this profile cannot hold the object; if there is no space.
    pub fn create_object(&self, spec: &ObjectSpec, compact_elements: Option<&[u8]>) -> Result<CachedHeader> {
        match &spec.body {
            ObjectKindSpec::Dataset(dataset) => {
                dataset.check()?;
                create_dataset(self, spec, dataset, compact_elements)
            }
            _ if compact_elements.is_some() => Err(not_compact_error()),
            ObjectKindSpec::Group(group) => self.create_group(spec, group),
            ObjectKindSpec::Datatype(datatype) => {
                let message = DatatypeMessage::new(self.profile, datatype.clone());
                let message = self.encode_message(message, MessageFlags::CONSTANT)?;
                self.create_header(spec, self.new_header_prefix(spec), vec![message], DATATYPE_ROOM)
            }
            ObjectKindSpec::Map(_) => Err(ModelError::Unsupported("a map").into()),
        }
    }

    /// The message of a header that holds `message`.
    pub(crate) fn encode_message<M: Message>(&self, message: M, flags: MessageFlags) -> Result<RawMessage> {
        Ok(RawMessage::encode_from_owned(message, flags, self.cache.widths())?)
    }

    /// A header with this prefix and these messages, for an object as `spec` describes it.
    ///
    /// # Errors
    /// If there is no space.
    pub(crate) fn create_header(
        &self,
        spec: &ObjectSpec,
        prefix: ObjectHeaderPrefix,
        mut messages: Vec<RawMessage>,
        room: ReservedHeaderSpace,
    ) -> Result<CachedHeader> {
        if spec.track_times && prefix.version == 1 {
            let time = ModificationTime { unix_seconds: unix_time_seconds() };
            messages.push(self.encode_message(time, MessageFlags::default())?);
        }
        let header = CachedHeader::create_header(&self.cache, prefix, messages, room)?;
        self.headers.unmark_deleted(header.addr());
        Ok(header)
    }

    pub(crate) fn new_header_prefix(&self, spec: &ObjectSpec) -> ObjectHeaderPrefix {
        let LinkOrAttributeStorageSpec { order, max_compact, min_dense } = spec.attribute_storage;
        let phase = AttributePhaseChange { max_compact, min_dense };
        let tracked = order >= CreationOrder::Tracked;
        // libhdf5 takes such a type for damage in a header without a checksum.
        let unusual = match &spec.body {
            ObjectKindSpec::Dataset(spec) => {
                spec.committed_datatype.is_none() && spec.datatype.has_number_over_half_unused()
            }
            ObjectKindSpec::Datatype(datatype) => datatype.has_number_over_half_unused(),
            _ => false,
        };
        let newer = tracked || spec.expects_large_attributes || unusual;
        let version = if newer { 2 } else { self.profile.min_object_header_version() };
        let times = (spec.track_times && version > 1).then(|| {
            let now = unix_time_seconds();
            HeaderTimes { access: now, modification: now, change: now, birth: now }
        });
        ObjectHeaderPrefix {
            version,
            attribute_order_tracked: tracked,
            attribute_order_indexed: order == CreationOrder::Indexed,
            attribute_phase_change: (phase != AttributePhaseChange::default() && version > 1).then_some(phase),
            times,
            ..ObjectHeaderPrefix::default()
        }
    }

    fn create_group(&self, spec: &ObjectSpec, group: &GroupSpec) -> Result<CachedHeader> {
        let LinkOrAttributeStorageSpec { order, max_compact, min_dense } = group.link_storage;
        if !self.profile.prefers_link_messages() && order == CreationOrder::Untracked {
            return self.create_symbol_table_group(spec);
        }
        let phase = LinkPhaseChange { max_compact, min_dense };
        let info = LinkInfo {
            next_creation_order: (order >= CreationOrder::Tracked).then_some(0),
            order_index: (order == CreationOrder::Indexed).then_some(Addr::UNDEFINED),
            ..LinkInfo::default()
        };
        let choices =
            GroupInfo { link_phase_change: (phase != LinkPhaseChange::default()).then_some(phase), estimate: None };
        let messages = vec![
            self.encode_message(info, MessageFlags::default())?,
            self.encode_message(choices, MessageFlags::CONSTANT)?,
        ];
        self.create_header(spec, self.new_header_prefix(spec), messages, GROUP_ROOM)
    }

    /// A group with a symbol table.
    fn create_symbol_table_group(&self, spec: &ObjectSpec) -> Result<CachedHeader> {
        let none = SymbolTableMessage { btree: Addr::UNDEFINED, heap: Addr::UNDEFINED };
        let mut header = self.create_header(
            spec,
            self.new_header_prefix(spec),
            vec![self.encode_message(none, MessageFlags::default())?],
            SYMBOL_TABLE_GROUP_ROOM,
        )?;
        let table = self.heaps.new_symbol_table(header.metadata())?;
        let (btree, heap) = table.tree_and_heap_addrs();
        header.set_message(&SymbolTableMessage { btree, heap })?;
        for chunk in header.chunk_nodes() {
            table.add_flush_parent(chunk)?;
        }
        Ok(header)
    }

    /// A datatype as a header holds it: itself, or the way to the committed datatype that it is.
    ///
    /// # Errors
    /// [`ModelError::WrongKind`] if `committed` is no committed datatype.
    pub(crate) fn datatype_message(
        &self,
        datatype: &Datatype,
        committed: Option<ObjectId>,
    ) -> Result<Shareable<DatatypeMessage>> {
        let Some(id) = committed else {
            return Ok(Shareable::Inline(DatatypeMessage::new(self.profile, datatype.clone())));
        };
        let addr = self.header_addr_of(id)?;
        if kind_of(&self.load_header(addr)?)? != ObjectKind::Datatype {
            return Err(Error::Model(ModelError::WrongKind { expected: "committed datatype" }));
        }
        Ok(Shareable::Shared(SharedMessageReference::new(SharedMessageTarget::Committed(addr))))
    }

    /// As [`NativeSession::datatype_message`], as a message of an object header.
    pub(crate) fn encode_datatype_message(
        &self,
        datatype: &Datatype,
        committed: Option<ObjectId>,
    ) -> Result<RawMessage> {
        let mut message = self.datatype_message(datatype, committed)?;
        let flags = if committed.is_some() { SHARED_FLAG } else { MessageFlags::CONSTANT };
        let body = with_encoded(&mut message, self.cache.widths(), |bytes| MessageBody::from(bytes))?;
        Ok(RawMessage { kind: DatatypeMessage::TYPE, flags, creation_index: 0, body })
    }

    /// Counts one more user of a committed datatype, for which `user` waits.
    ///
    /// # Errors
    /// If its header cannot be changed.
    pub(crate) fn count_datatype_use(&self, user: &CachedHeader, committed: Option<ObjectId>) -> Result<()> {
        let Some(id) = committed else { return Ok(()) };
        let addr = self.header_addr_of(id)?;
        let is_first = self.unlinked.take_new_object(addr);
        let _lock = self.lock_header(addr);
        let mut header = self.load_header(addr)?;
        if !is_first {
            header.change_link_count(1)?;
        }
        user.add_dependency_on(&header, DependencyKind::Link);
        Ok(())
    }
}

/// Seconds since 1970-01-01 UTC.
fn unix_time_seconds() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u32::try_from(since.as_secs()).unwrap_or(u32::MAX))
}
