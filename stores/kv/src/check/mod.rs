//! The check of a container: each key accounted for, on one state of the engine.
//!
//! What it takes: all keys are read twice, values once; twice, where they have checksums. In memory are 64 bytes for each object and 17 for each blob; one
//! value at a time; and a chunk at a time, if its elements are looked at. What would be more than the allocation limit
//! is an error.

mod attributes;
mod checksums;
mod chunks;
mod fault;
mod links;
mod maps;
mod metadata;
mod order;
mod paths;
mod tables;
mod values;

use h5live_model::{
    AllocationLimit, FilterEngine, Leak, LeakLocation, ObjectId, ObjectKind, ObjectKindSpec, Result, StoreCheckOptions,
    StoreCheckReport, StoreFinding,
};

use crate::engine::{ChecksumPolicy, Engine, KeySpan, LongKeyEngine, ViewWithEdits};
use crate::layout::value::{ContainerFormat, decode_oid, decode_u64};
use crate::layout::{EngineKey, MetadataField, RecordKey, key, oid};
use crate::session::{container_format, view_without_checksums};

pub use fault::{ChunkFault, CreationOrderFault, KvFault};
use tables::{CheckedBlobTable, CheckedObjectTable};

/// A container that is checked.
struct CheckedContainer<'a> {
    /// The state without checksums: what is wrong with one is a fault of its record, and no error.
    state: ViewWithEdits<'a>,
    /// The state as it is stored.
    stored: ViewWithEdits<'a>,
    form: ContainerFormat,
    what: StoreCheckOptions,
    unfilter: &'a dyn FilterEngine,
    limit: AllocationLimit,
    /// The first index that no writer has reserved.
    next_index: u64,
    objects: CheckedObjectTable,
    blobs: CheckedBlobTable,
    faults: Vec<(Option<ObjectId>, KvFault)>,
    /// Some elements could not be looked at: blobs may be used by them.
    has_unseen_values: bool,
    /// Some links or uses could not be looked at.
    has_unseen_links: bool,
    report: StoreCheckReport,
}

/// Checks the container of an engine, as it is now.
///
/// # Errors
/// [`h5live_model::Error::Store`] if there is no container, or the engine cannot be read; an allocation error if the container has
/// too many objects or blobs for the limit.
pub fn check_container<E: Engine>(
    engine: &LongKeyEngine<E>,
    what: StoreCheckOptions,
    filter_engine: &dyn FilterEngine,
    limit: AllocationLimit,
) -> Result<StoreCheckReport> {
    let state = engine.view_pair()?;
    let mut long_keys = Vec::new();
    state.check_long_key_spaces(limit, &mut |fault| {
        long_keys.push(fault);
        long_keys.len() < StoreCheckReport::MAX_FINDINGS
    })?;
    if !long_keys.is_empty() {
        // Where spaces of long keys are damaged, other records cannot be read.
        let finding = |fault| {
            let fault = KvFault::LongKey(fault);
            StoreFinding { object: None, path: None, kind: fault.kind(), cause: Box::new(fault) }
        };
        return Ok(StoreCheckReport {
            findings: long_keys.into_iter().map(finding).collect(),
            ..StoreCheckReport::default()
        });
    }
    let form = container_format(&ViewWithEdits::without_edits(&state.long_key_view))?;
    let view = view_without_checksums(form, state.long_key_view.clone(), ChecksumPolicy::Skip);
    let mut container = CheckedContainer {
        state: ViewWithEdits::without_edits(&view),
        stored: ViewWithEdits::without_edits(&state.long_key_view),
        form,
        what,
        unfilter: filter_engine,
        limit,
        next_index: oid::FIRST_USER_INDEX,
        objects: CheckedObjectTable::default(),
        blobs: CheckedBlobTable::default(),
        faults: Vec::new(),
        has_unseen_values: false,
        has_unseen_links: false,
        report: StoreCheckReport::default(),
    };
    container.check_checksums(oid::GLOBAL_METADATA)?;
    container.check_global_metadata()?;
    container.list_objects()?;
    container.check_indices();
    for number in 0..container.objects.len() {
        if container.is_full() {
            break;
        }
        container.check_object(number)?;
    }
    container.check_link_counts();
    container.find_paths()?;
    container.list_leaks()?;
    container.finish()
}

/// Whether objects of a kind have a record.
fn is_record_of(kind: ObjectKind, record: &RecordKey<'_>) -> bool {
    match record {
        RecordKey::Metadata(field) => field.applies_to_kind(kind),
        RecordKey::AttributeCount
        | RecordKey::NextAttributeOrder
        | RecordKey::AttributeNameAtRank(_)
        | RecordKey::Attribute(..) => true,
        RecordKey::LinkCount
        | RecordKey::NextLinkOrder
        | RecordKey::LinkNameAtRank(_)
        | RecordKey::LinkTargetAtRank(_)
        | RecordKey::Link(_)
        | RecordKey::LinkOrder(_) => kind == ObjectKind::Group,
        RecordKey::ChunkPiece { .. } | RecordKey::FilteredChunk { .. } => kind == ObjectKind::Dataset,
        RecordKey::MapRecord(_) => kind == ObjectKind::Map,
        RecordKey::Blob(_) | RecordKey::Unknown { .. } => false,
    }
}

impl CheckedContainer<'_> {
    fn is_full(&self) -> bool {
        self.faults.len() >= StoreCheckReport::MAX_FINDINGS
    }

    fn add_fault(&mut self, object: impl Into<Option<ObjectId>>, fault: KvFault) {
        if !self.is_full() {
            self.faults.push((object.into(), fault));
        }
    }

    /// Looks at the records of the global metadata object, and lists its blobs.
    fn check_global_metadata(&mut self) -> Result<()> {
        let state = self.state;
        state.for_each_value_len_reentrant(
            &KeySpan::from(&key::object_records(oid::GLOBAL_METADATA)),
            |key, bytes| -> Result<bool> {
                match EngineKey::parse(key) {
                    Ok((_, RecordKey::Blob(id))) => {
                        self.report.raw_bytes += bytes;
                        self.blobs.push_in_order(id, self.limit)?;
                    }
                    Ok((_, RecordKey::Metadata(field))) if !field.applies_to_kind(ObjectKind::Group) => {
                        self.report.metadata_bytes += bytes;
                        self.check_global_record(field)?;
                    }
                    Ok((_, record)) => {
                        let fault = KvFault::UnexpectedRecord(record.describe_key());
                        self.add_fault(oid::GLOBAL_METADATA, fault);
                    }
                    Err(error) => self.add_fault(oid::GLOBAL_METADATA, KvFault::RecordFormat(error)),
                }
                Ok(!self.is_full())
            },
        )
    }

    fn check_global_record(&mut self, field: MetadataField) -> Result<()> {
        let value = self.state.get(key::metadata(oid::GLOBAL_METADATA, field).as_bytes())?.unwrap_or_default();
        let fault = match field {
            // It was looked at before anything else.
            MetadataField::ContainerFormat => None,
            MetadataField::RootGroup => match decode_oid(field.akey_text(), &value) {
                Ok(oid::ROOT) => None,
                Ok(other) => Some(KvFault::WrongRoot(other)),
                Err(error) => Some(KvFault::RecordFormat(error)),
            },
            MetadataField::FirstUnreservedObjectIndex => match decode_u64(field.akey_text(), &value) {
                Ok(next) => {
                    self.next_index = next.max(oid::FIRST_USER_INDEX);
                    None
                }
                Err(error) => {
                    self.next_index = u64::MAX;
                    Some(KvFault::RecordFormat(error))
                }
            },
            _ => Some(KvFault::UnexpectedRecord(field.akey_text().to_owned())),
        };
        fault.into_iter().for_each(|fault| self.add_fault(oid::GLOBAL_METADATA, fault));
        Ok(())
    }

    /// Lists the objects: one look for each, as their records lie together.
    fn list_objects(&mut self) -> Result<()> {
        let (state, mut left) = (self.state, KeySpan::all());
        let mut last = None;
        while !self.is_full() {
            let mut first = None;
            state.scan(&left, &mut |key, _| {
                first = Some(key.to_vec());
                false
            })?;
            let Some(first) = first else { break };
            let behind = KeySpan::all().after(&first);
            match EngineKey::object_of(&first) {
                Ok(id) if last != Some(id) => {
                    if id != oid::GLOBAL_METADATA {
                        self.objects.push_unsorted(id, self.limit)?;
                    }
                    last = Some(id);
                    let end = KeySpan::from(&key::object_records(id)).end.unwrap_or_default();
                    left = KeySpan { start: end.max(behind.start), end: None };
                    continue;
                }
                // It is behind all records that an object can have.
                Ok(id) => {
                    let fault = EngineKey::parse(&first).err().map(KvFault::RecordFormat);
                    fault.into_iter().for_each(|fault| self.add_fault(id, fault));
                }
                Err(error) => self.add_fault(None, KvFault::RecordFormat(error)),
            }
            left = behind;
        }
        self.objects.sort();
        self.report.object_count = self.objects.len() as u64;
        Ok(())
    }

    /// Looks whether the identities of objects were given out, each index once.
    fn check_indices(&mut self) {
        if self.objects.position(oid::ROOT).is_none() {
            self.add_fault(None, KvFault::NoRoot);
        }
        let mut found = Vec::new();
        for object in self.objects.iter() {
            let index = oid::index(object.id);
            if object.id != oid::ROOT && (index < oid::FIRST_USER_INDEX || index >= self.next_index) {
                found.push((object.id, KvFault::UnreservedObjectIndex { next: self.next_index }));
            }
            let other_kinds = [ObjectKind::Group, ObjectKind::Dataset, ObjectKind::Datatype, ObjectKind::Map];
            let other = other_kinds.map(|kind| oid::new(kind, index)).into_iter();
            let mut other = other.filter(|other| *other < object.id && self.objects.position(*other).is_some());
            found.extend(other.next().map(|other| (object.id, KvFault::ObjectIndexSharedWith(other))));
        }
        found.into_iter().for_each(|(id, fault)| self.add_fault(id, fault));
    }

    fn check_object(&mut self, number: usize) -> Result<()> {
        let Some(id) = self.objects.get(number).map(|object| object.id) else { return Ok(()) };
        self.check_checksums(id)?;
        self.check_record_kinds(number, id)?;
        let spec = self.check_metadata(number, id)?;
        self.check_attributes(id, spec.as_ref())?;
        match (oid::kind(id), spec.map(|spec| spec.body)) {
            (ObjectKind::Group, Some(ObjectKindSpec::Group(group))) => self.check_links(id, Some(&group)),
            (ObjectKind::Group, _) => self.check_links(id, None),
            (ObjectKind::Dataset, Some(ObjectKindSpec::Dataset(dataset))) => self.check_chunks(id, &dataset),
            (ObjectKind::Map, Some(ObjectKindSpec::Map(map))) => self.check_pairs(id, &map),
            (ObjectKind::Datatype, Some(_)) => Ok(()),
            _ => {
                // What cannot be described cannot be decoded.
                self.has_unseen_values = true;
                Ok(())
            }
        }
    }

    /// Looks whether all records are of the object's kind, and counts their bytes.
    fn check_record_kinds(&mut self, number: usize, id: ObjectId) -> Result<()> {
        let (state, kind, mut all) = (self.state, oid::kind(id), 0);
        state.for_each_value_len_reentrant(&KeySpan::from(&key::object_records(id)), |key, bytes| -> Result<bool> {
            all += key.len() as u64 + bytes;
            match EngineKey::parse(key) {
                Ok((_, record)) => {
                    match record {
                        RecordKey::ChunkPiece { .. } | RecordKey::FilteredChunk { .. } | RecordKey::MapRecord(_) => {
                            self.report.raw_bytes += bytes;
                        }
                        _ => self.report.metadata_bytes += bytes,
                    }
                    if !is_record_of(kind, &record) {
                        self.add_fault(id, KvFault::UnexpectedRecord(record.describe_key()));
                    }
                }
                Err(error) => self.add_fault(id, KvFault::RecordFormat(error)),
            }
            Ok(!self.is_full())
        })?;
        if let Some(object) = self.objects.get_mut(number) {
            object.record_bytes = all;
        }
        Ok(())
    }

    /// Compares the links that were found with those that objects state.
    fn check_link_counts(&mut self) {
        let mut faults = Vec::new();
        for object in self.objects.iter() {
            let (Some(stated), found) = (object.stated_ref_count, object.found_ref_count) else { continue };
            // The root group is there without a link.
            let found = found + u64::from(object.id == oid::ROOT);
            let may_have_more = self.has_unseen_links || self.is_full();
            if stated != found && !(may_have_more && found < stated) {
                faults.push((object.id, KvFault::RefCountMismatch { stated, found }));
            }
        }
        faults.into_iter().for_each(|(id, fault)| self.add_fault(id, fault));
    }

    /// Lists what nothing leads to, unless something is unknown that may lead there.
    fn list_leaks(&mut self) -> Result<()> {
        let mut found = Vec::new();
        if !self.has_unseen_links && !self.is_full() {
            for object in self.objects.iter().filter(|object| !object.is_reachable) {
                // A committed datatype that a dataset uses needs no link. A wrong count is a fault already.
                let is_used = oid::kind(object.id) == ObjectKind::Datatype && object.found_ref_count > 0;
                if !is_used && object.stated_ref_count == Some(object.found_ref_count) {
                    let place = LeakLocation::Object(object.id);
                    found.push(Leak { place, kind: Some(oid::kind(object.id)), bytes: object.record_bytes });
                }
            }
        }
        if !self.has_unseen_values && !self.is_full() {
            for blob in self.blobs.unused() {
                self.report.leak_count += 1;
                if found.len() < StoreCheckReport::MAX_FINDINGS {
                    let bytes = self.bytes_of_blob(blob)?.unwrap_or_default();
                    found.push(Leak { place: LeakLocation::Blob(blob.0), kind: None, bytes });
                }
            }
        }
        let objects = found.iter().filter(|leak| leak.kind.is_some()).count() as u64;
        self.report.leak_count += objects;
        found.truncate(StoreCheckReport::MAX_FINDINGS);
        self.report.leaks = found;
        Ok(())
    }

    fn finish(mut self) -> Result<StoreCheckReport> {
        let bytes = self.report.metadata_bytes + self.report.raw_bytes;
        self.report.unchecksummed_bytes = Some(if self.form.has_checksums { 0 } else { bytes });
        let faults = std::mem::take(&mut self.faults);
        for (object, fault) in faults {
            let path = object.map(|id| self.path_of(id)).transpose()?.flatten();
            self.report.findings.push(StoreFinding { object, path, kind: fault.kind(), cause: Box::new(fault) });
        }
        Ok(self.report)
    }
}
