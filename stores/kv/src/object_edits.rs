//! Changes of objects: made, linked, described anew, deleted.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use h5live_model::{
    AllocationLimit, AttributeData, ChunkCoord, Datatype, Error as ModelError, FillValue, FilterEngine, Layout,
    LinkTarget, Name, NewObject, ObjectId, ObjectInfoChange, ObjectKind, ObjectKindSpec, ObjectSpec, ObjectTimes,
    Result,
};

use crate::chunk_records;
use crate::creation_order::{self, LinksOrAttributes};
use crate::element_blobs::referenced_blob_ids;
use crate::engine::KeySpan;
use crate::layout::value::{encode_link_target, encode_times, encode_u64};
use crate::layout::{AttributeField, AttributeRecords, EngineKey, MetadataField, MetadataRecords, RecordKey, key, oid};
use crate::map_records::collect_map_blobs;
use crate::objects::{attribute, for_each_attribute, link, object_info, spec};
use crate::state::{KvState, check_kind, or_invalid, ref_count, ref_count_key};
use crate::tracked_orders::TrackedOrders;

/// What the deletion of elements needs to find the blobs to which they lead.
#[derive(Debug, Clone)]
pub struct DeletionContext {
    /// What undoes filters.
    pub filter_engine: Arc<dyn FilterEngine>,
    /// Most bytes of a chunk.
    pub max_allocation: AllocationLimit,
}

/// Makes an object, and links it if it has a link.
///
/// # Errors
/// As [`StoreWriter::create`](h5live_model::StoreWriter::create).
pub fn create(state: &mut KvState, new: &NewObject<'_>) -> Result<ObjectId> {
    if let Some((group, name)) = new.link {
        check_new_link(state, group, name)?;
    }
    check_spec(state, new)?;
    let described = match state.last_created_spec.take().filter(|(spec, _)| spec == new.spec) {
        Some(described) => described,
        None => (new.spec.clone(), or_invalid(MetadataRecords::of_object(new.spec))?),
    };
    let id = state.new_object_id(kind_of(&new.spec.body))?;
    state.tracked_orders.insert(id, TrackedOrders::of(new.spec));
    put_metadata(state, id, &described.1, new.spec);
    state.last_created_spec = Some(described);
    match &new.spec.body {
        ObjectKindSpec::Dataset(dataset) => {
            if let Some(committed) = dataset.committed_datatype {
                state.add_references(committed, 1)?;
            }
            if let Some(elements) = new.compact_elements {
                let origin = ChunkCoord::origin(dataset.dataspace.rank());
                chunk_records::put_unfiltered_chunk(state, id, dataset, &origin, elements);
            }
        }
        ObjectKindSpec::Map(_) => state.put(&key::metadata(id, MetadataField::PairCount), encode_u64(0)),
        ObjectKindSpec::Group(_) | ObjectKindSpec::Datatype(_) => {}
    }
    if let Some((group, name)) = new.link {
        put_link(state, group, name, &LinkTarget::Hard(id))?;
        state.put(&ref_count_key(id), encode_u64(1));
    }
    Ok(id)
}

/// Makes the root group, in an empty container.
///
/// # Errors
/// As [`create`].
pub fn create_root(state: &mut KvState, root: &ObjectSpec) -> Result<()> {
    let records = or_invalid(MetadataRecords::of_root(root))?;
    put_metadata(state, oid::ROOT, &records, root);
    // It is there without a link, and without a count, as in the connector.
    state.delete(&ref_count_key(oid::ROOT));
    Ok(())
}

fn put_metadata(state: &mut KvState, id: ObjectId, records: &MetadataRecords, spec: &ObjectSpec) {
    records.iter().for_each(|(field, value)| state.put(&key::metadata(id, field), value));
    state.put(&ref_count_key(id), encode_u64(0));
    if spec.track_times {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64);
        let times = ObjectTimes { access: now, modification: now, change: now, birth: now };
        state.put(&key::metadata(id, MetadataField::Times), encode_times(&times));
    }
}

fn kind_of(body: &ObjectKindSpec) -> ObjectKind {
    match body {
        ObjectKindSpec::Group(_) => ObjectKind::Group,
        ObjectKindSpec::Dataset(_) => ObjectKind::Dataset,
        ObjectKindSpec::Datatype(_) => ObjectKind::Datatype,
        ObjectKindSpec::Map(_) => ObjectKind::Map,
    }
}

fn check_spec(state: &KvState, new: &NewObject<'_>) -> Result<()> {
    let refused = || Err(ModelError::Invalid("only a compact dataset is made with its elements, all of them".into()));
    match &new.spec.body {
        ObjectKindSpec::Dataset(dataset) => {
            dataset.check()?;
            if matches!(dataset.layout, Layout::External(_)) {
                return Err(ModelError::Unsupported("a dataset in raw files, in a key-value store,"));
            }
            check_committed(state, dataset.committed_datatype, &dataset.datatype)?;
            let is_whole = |elements: &[u8]| {
                dataset.layout == Layout::Compact && dataset.chunk_bytes_or_total() == Some(elements.len() as u64)
            };
            if new.compact_elements.is_some_and(|elements| !is_whole(elements)) { refused() } else { Ok(()) }
        }
        ObjectKindSpec::Map(map) => map.check(),
        ObjectKindSpec::Group(_) | ObjectKindSpec::Datatype(_) => Ok(()),
    }
    .and_then(|()| {
        if new.compact_elements.is_some() && kind_of(&new.spec.body) != ObjectKind::Dataset {
            refused()
        } else {
            Ok(())
        }
    })
}

fn check_committed(state: &KvState, committed: Option<ObjectId>, datatype: &Datatype) -> Result<()> {
    let Some(id) = committed else { return Ok(()) };
    state.check_object_exists(id)?;
    check_kind(id, ObjectKind::Datatype)?;
    match spec(&state.view_with_edits(), id)?.into_datatype()? == *datatype {
        true => Ok(()),
        false => Err(ModelError::Invalid("the committed datatype is another type".into())),
    }
}

/// Refuses a link that cannot be added.
fn check_new_link(state: &KvState, group: ObjectId, name: &Name) -> Result<()> {
    name.check_as_link_name()?;
    check_kind(group, ObjectKind::Group)?;
    match state.view_with_edits().has(key::link(group, name.as_bytes()).as_bytes())? {
        true => Err(ModelError::Exists(name.clone())),
        false => state.check_object_exists(group),
    }
}

/// Adds a link.
///
/// # Errors
/// As [`StoreWriter::add_link`](h5live_model::StoreWriter::add_link).
pub fn add_link(state: &mut KvState, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
    check_new_link(state, group, name)?;
    if let LinkTarget::Hard(id) = target {
        state.check_object_exists(*id)?;
    }
    put_link(state, group, name, target)?;
    match target {
        LinkTarget::Hard(id) => state.add_references(*id, 1),
        _ => Ok(()),
    }
}

/// Whether orders of creation are kept at an object, which is there.
fn tracked_orders(state: &mut KvState, id: ObjectId) -> Result<TrackedOrders> {
    if let Some(known) = state.tracked_orders.get(id) {
        return Ok(known);
    }
    let orders = TrackedOrders::of(&spec(&state.view_with_edits(), id)?);
    state.tracked_orders.insert(id, orders);
    Ok(orders)
}

fn put_link(state: &mut KvState, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
    let value = or_invalid(encode_link_target(target))?;
    if tracked_orders(state, group)?.links {
        let position = creation_order::append_to_creation_order(
            state,
            LinksOrAttributes::Links,
            group,
            name.as_bytes(),
            Some(&value),
        )?;
        state.put(&key::link_order(group, name.as_bytes()), encode_u64(position));
    }
    state.put(&key::link(group, name.as_bytes()), value);
    Ok(())
}

/// Takes a link away, and leaves its target as it is.
fn take_link(state: &mut KvState, group: ObjectId, name: &Name) -> Result<LinkTarget> {
    let found = link(&state.view_with_edits(), group, name)?.ok_or_else(|| ModelError::NotFound(name.clone()))?;
    if found.creation_order.is_some() {
        creation_order::remove_from_creation_order(state, LinksOrAttributes::Links, group, name.as_bytes())?;
        state.delete(&key::link_order(group, name.as_bytes()));
    }
    state.delete(&key::link(group, name.as_bytes()));
    Ok(found.target)
}

/// Removes a link, and its object if no other one leads there.
///
/// # Errors
/// As [`StoreWriter::remove_link`](h5live_model::StoreWriter::remove_link).
pub fn remove_link(state: &mut KvState, group: ObjectId, name: &Name, cleanup: &DeletionContext) -> Result<()> {
    match take_link(state, group, name)? {
        LinkTarget::Hard(id) => release_references(state, vec![id], cleanup),
        _ => Ok(()),
    }
}

/// Gives a link another name.
///
/// # Errors
/// As [`StoreWriter::rename_link`](h5live_model::StoreWriter::rename_link).
pub fn rename_link(state: &mut KvState, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
    let found = link(&state.view_with_edits(), from.0, from.1)?.ok_or_else(|| ModelError::NotFound(from.1.clone()))?;
    if from == to {
        return Ok(());
    }
    check_new_link(state, to.0, to.1)?;
    put_link(state, to.0, to.1, &found.target)?;
    take_link(state, from.0, from.1).map(drop)
}

/// Adds an attribute, or replaces the one of the same name.
///
/// # Errors
/// As [`StoreWriter::set_attribute`](h5live_model::StoreWriter::set_attribute).
pub fn set_attribute(state: &mut KvState, id: ObjectId, new: &AttributeData, cleanup: &DeletionContext) -> Result<()> {
    new.check()?;
    state.check_object_exists(id)?;
    check_committed(state, new.committed_datatype, &new.datatype)?;
    // The first record of an attribute says whether there is one.
    let first = key::attribute(id, AttributeField::Datatype, new.name.as_bytes());
    let old = match state.view_with_edits().has(first.as_bytes())? {
        true => attribute(&state.view_with_edits(), id, &new.name)?,
        false => None,
    };
    let creation_order = match &old {
        Some(old) => old.creation_order,
        None if tracked_orders(state, id)?.attributes => {
            let position = creation_order::append_to_creation_order(
                state,
                LinksOrAttributes::Attributes,
                id,
                new.name.as_bytes(),
                None,
            )?;
            let full = || ModelError::Invalid("an object knows the order of at most 65536 attributes".into());
            Some(u16::try_from(position).map_err(|_| full())?)
        }
        None => None,
    };
    let kept = AttributeData { creation_order, ..new.clone() };
    let records = or_invalid(AttributeRecords::of_attribute(&kept))?;
    for &field in AttributeField::ALL {
        let key = key::attribute(id, field, new.name.as_bytes());
        match records.get(field) {
            Some(value) => state.put(&key, value),
            None if old.is_some() => state.delete(&key),
            None => {}
        }
    }
    if let Some(committed) = new.committed_datatype {
        state.add_references(committed, 1)?;
    }
    match old {
        Some(old) => release_attribute(state, &old, Some(new), cleanup),
        None => Ok(()),
    }
}

/// Removes an attribute.
///
/// # Errors
/// As [`StoreWriter::remove_attribute`](h5live_model::StoreWriter::remove_attribute).
pub fn remove_attribute(state: &mut KvState, id: ObjectId, name: &Name, cleanup: &DeletionContext) -> Result<()> {
    let old = attribute(&state.view_with_edits(), id, name)?.ok_or_else(|| ModelError::NotFound(name.clone()))?;
    for &field in AttributeField::ALL {
        state.delete(&key::attribute(id, field, name.as_bytes()));
    }
    if old.creation_order.is_some() {
        creation_order::remove_from_creation_order(state, LinksOrAttributes::Attributes, id, name.as_bytes())?;
    }
    release_attribute(state, &old, None, cleanup)
}

/// Gives up what an attribute led to that `new` does not lead to.
fn release_attribute(
    state: &mut KvState,
    old: &AttributeData,
    new: Option<&AttributeData>,
    cleanup: &DeletionContext,
) -> Result<()> {
    let mut gone = referenced_blob_ids(&state.view_with_edits(), &old.datatype, &old.value)?;
    if let Some(new) = new {
        let kept = referenced_blob_ids(&state.view_with_edits(), &new.datatype, &new.value)?;
        gone.retain(|blob| !kept.contains(blob));
    }
    gone.into_iter().for_each(|blob| state.delete(&key::blob(blob)));
    release_references(state, old.committed_datatype.into_iter().collect(), cleanup)
}

/// Changes the comment of an object, or its times if it keeps any.
///
/// # Errors
/// [`ModelError::NoObject`].
pub fn change_comment_or_times(state: &mut KvState, id: ObjectId, change: &ObjectInfoChange<'_>) -> Result<()> {
    state.check_object_exists(id)?;
    let comment = key::metadata(id, MetadataField::Comment);
    match change {
        ObjectInfoChange::Comment(Some(text)) => state.put(&comment, text.as_bytes()),
        ObjectInfoChange::Comment(None) => state.delete(&comment),
        ObjectInfoChange::Times(times) => {
            if object_info(&state.view_with_edits(), id)?.times.is_some() {
                state.put(&key::metadata(id, MetadataField::Times), encode_times(times));
            }
        }
    }
    Ok(())
}

/// Deletes an object to which no link leads, with what only it leads to.
///
/// # Errors
/// [`ModelError::NoObject`].
pub fn delete_if_unreferenced(state: &mut KvState, id: ObjectId, cleanup: &DeletionContext) -> Result<()> {
    match ref_count(&state.view_with_edits(), id)?.ok_or(ModelError::NoObject(id))? {
        0 => {
            let held = delete_returning_references(state, id, cleanup)?;
            release_references(state, held, cleanup)
        }
        _ => Ok(()),
    }
}

/// Takes one use from each object, and deletes each that has none left, with what only it leads to.
///
/// # Errors
/// [`ModelError::Store`] if something cannot be read.
pub fn release_references(state: &mut KvState, mut ids: Vec<ObjectId>, cleanup: &DeletionContext) -> Result<()> {
    while let Some(id) = ids.pop() {
        let Some(uses) = ref_count(&state.view_with_edits(), id)? else { continue };
        match uses.saturating_sub(1) {
            0 => ids.extend(delete_returning_references(state, id, cleanup)?),
            left => state.put(&ref_count_key(id), encode_u64(left)),
        }
    }
    Ok(())
}

/// Deletes all records of an object, and the blobs that they lead to. Returns the objects that it used.
///
/// # Errors
/// [`ModelError::Store`] if something cannot be read.
pub fn delete_returning_references(
    state: &mut KvState,
    id: ObjectId,
    cleanup: &DeletionContext,
) -> Result<Vec<ObjectId>> {
    state.deleted_object_count += 1;
    state.tracked_orders.remove(id);
    let (mut used, mut blobs) = (Vec::new(), Vec::new());
    let view = state.view_with_edits();
    let description = spec(&view, id)?;
    for_each_attribute(&view, id, &mut |attribute| {
        used.extend(attribute.committed_datatype);
        blobs.extend(referenced_blob_ids(&view, &attribute.datatype, &attribute.value)?);
        Ok(true)
    })?;
    match &description.body {
        ObjectKindSpec::Dataset(dataset) => {
            used.extend(dataset.committed_datatype);
            if let FillValue::Value(element) = &dataset.fill.value {
                blobs.extend(referenced_blob_ids(&view, &dataset.datatype, element)?);
            }
            if dataset.datatype.has_vlen_or_references() {
                chunk_records::for_each_decoded_chunk(
                    &view,
                    id,
                    dataset,
                    (&cleanup.filter_engine, cleanup.max_allocation),
                    &mut |elements| {
                        blobs.extend(referenced_blob_ids(&view, &dataset.datatype, elements)?);
                        Ok(())
                    },
                )?;
            }
        }
        ObjectKindSpec::Map(map) => collect_map_blobs(&view, state.form, id, map, &mut blobs)?,
        ObjectKindSpec::Group(_) | ObjectKindSpec::Datatype(_) => {}
    }
    let mut keys = Vec::new();
    view.scan(&KeySpan::from(&key::object_records(id)), &mut |key, value| {
        if let Ok((_, RecordKey::Link(_))) = EngineKey::parse(key)
            && let Ok(LinkTarget::Hard(target)) = crate::layout::value::decode_link_target(value)
        {
            used.push(target);
        }
        keys.push(key.to_vec());
        true
    })?;
    keys.iter().for_each(|key| state.edits.delete(key));
    blobs.into_iter().for_each(|blob| state.delete(&key::blob(blob)));
    Ok(used)
}
