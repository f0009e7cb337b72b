//! Descriptions of objects, their links and attributes, as a state has them.

use h5live_model::{
    AttributeData, Error as ModelError, Link, LinkTarget, Name, ObjectId, ObjectInfo, ObjectKind, ObjectSpec, Result,
};

use crate::engine::{KeySpan, ViewWithEdits};
use crate::error::{KvError, damaged_object_error};
use crate::layout::value::{decode_link_target, decode_times, decode_u64};
use crate::layout::{AttributeRecords, EngineKey, EngineKeyRange, MetadataField, MetadataRecords, RecordKey};
use crate::layout::{key, oid};
use crate::state::{check_kind, check_object_exists, ref_count};

/// The records that describe an object.
///
/// # Errors
/// [`ModelError::NoObject`] if it is not there.
pub fn metadata(state: &ViewWithEdits<'_>, id: ObjectId) -> Result<MetadataRecords> {
    let mut records = MetadataRecords::default();
    let mut failure = None;
    state.scan(&KeySpan::from(&key::all_metadata(id)), &mut |key, value| {
        match EngineKey::parse(key) {
            Ok((_, RecordKey::Metadata(field))) => records.insert(field, value),
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
        failure.is_none()
    })?;
    match failure {
        Some(error) => Err(damaged_object_error(id)(error)),
        None if records.get(MetadataField::RefCount).is_none() && id != oid::ROOT => Err(ModelError::NoObject(id)),
        None => Ok(records),
    }
}

/// The description of an object.
///
/// # Errors
/// [`ModelError::NoObject`].
pub fn spec(state: &ViewWithEdits<'_>, id: ObjectId) -> Result<ObjectSpec> {
    metadata(state, id)?.decode_object_spec(oid::kind(id)).map_err(damaged_object_error(id))
}

/// What is known of an object beside that.
///
/// # Errors
/// [`ModelError::NoObject`].
pub fn object_info(state: &ViewWithEdits<'_>, id: ObjectId) -> Result<ObjectInfo> {
    let records = metadata(state, id)?;
    let times = records.get(MetadataField::Times).map(decode_times).transpose().map_err(damaged_object_error(id))?;
    Ok(ObjectInfo {
        hard_link_count: ref_count(state, id)?.unwrap_or_default().try_into().unwrap_or(u32::MAX),
        times,
        comment: records.get(MetadataField::Comment).map(Name::from),
        attribute_storage: records
            .decode_object_spec(oid::kind(id))
            .map_err(damaged_object_error(id))?
            .attribute_storage,
    })
}

/// The link of a group with this name.
///
/// # Errors
/// [`ModelError::NoObject`], [`ModelError::WrongKind`].
pub fn link(state: &ViewWithEdits<'_>, group: ObjectId, name: &Name) -> Result<Option<Link>> {
    check_kind(group, ObjectKind::Group)?;
    let mut start = key::link(group, name.as_bytes()).as_bytes().to_vec();
    let order = key::link_order(group, name.as_bytes());
    let span = KeySpan { start: std::mem::take(&mut start), end: None };
    let mut found = LinkRecords::default();
    let mut count = 0;
    state.scan(&span, &mut |key, value| {
        if key == span.start {
            found.target = Some(decode_link_target(value));
        } else if key == order.as_bytes() {
            found.order = Some(decode_u64("/Link Creation Order", value));
        }
        count += 1;
        count < 2 && key <= order.as_bytes()
    })?;
    match found.finish(group, name.clone())? {
        Some(link) => Ok(Some(link)),
        None => check_object_exists(state, group).map(|()| None),
    }
}

/// The records of one link.
#[derive(Default)]
struct LinkRecords {
    target: Option<crate::layout::Result<LinkTarget>>,
    order: Option<crate::layout::Result<u64>>,
}

impl LinkRecords {
    fn finish(self, group: ObjectId, name: Name) -> Result<Option<Link>> {
        let Some(target) = self.target else { return Ok(None) };
        let order = self.order.transpose().map_err(damaged_object_error(group))?;
        let creation_order = order.map(|order| i64::try_from(order).unwrap_or(i64::MAX));
        Ok(Some(Link { name, target: target.map_err(damaged_object_error(group))?, creation_order }))
    }
}

/// Calls `each` with each link of a group, by name, until it returns `false`. `each` may call the store.
///
/// # Errors
/// [`ModelError::NoObject`], [`ModelError::WrongKind`], and those of `each`.
pub fn for_each_link(
    state: &ViewWithEdits<'_>,
    group: ObjectId,
    each: &mut dyn FnMut(Link) -> Result<bool>,
) -> Result<()> {
    check_kind(group, ObjectKind::Group)?;
    check_object_exists(state, group)?;
    let mut pending: Option<(Name, LinkRecords)> = None;
    let mut goes_on = true;
    state.for_each_pair_reentrant(&KeySpan::from(&key::links(group)), |key, value| -> Result<bool> {
        match EngineKey::parse(key).map_err(damaged_object_error(group))?.1 {
            RecordKey::Link(name) => {
                let new = LinkRecords { target: Some(decode_link_target(value)), order: None };
                if let Some((name, records)) = pending.replace((Name::from(&*name), new))
                    && let Some(link) = records.finish(group, name)?
                {
                    goes_on = each(link)?;
                }
            }
            RecordKey::LinkOrder(name) => {
                if let Some((_, records)) = pending.as_mut().filter(|(pending, _)| pending.as_bytes() == &*name) {
                    records.order = Some(decode_u64("/Link Creation Order", value));
                }
            }
            _ => {}
        }
        Ok(goes_on)
    })?;
    if let Some((name, records)) = pending.filter(|_| goes_on)
        && let Some(link) = records.finish(group, name)?
    {
        each(link)?;
    }
    Ok(())
}

/// The attribute of an object with this name.
///
/// # Errors
/// [`ModelError::NoObject`].
pub fn attribute(state: &ViewWithEdits<'_>, id: ObjectId, name: &Name) -> Result<Option<AttributeData>> {
    let mut found = None;
    for_each_attribute_in(state, id, &key::attribute_records(id, name.as_bytes()), &mut |attribute| {
        found = Some(attribute);
        Ok(false)
    })?;
    if found.is_none() {
        check_object_exists(state, id)?;
    }
    Ok(found)
}

/// Calls `each` with each attribute of an object, by name, until it returns `false`. `each` may call the store.
///
/// # Errors
/// [`ModelError::NoObject`], and those of `each`.
pub fn for_each_attribute(
    state: &ViewWithEdits<'_>,
    id: ObjectId,
    each: &mut dyn FnMut(AttributeData) -> Result<bool>,
) -> Result<()> {
    check_object_exists(state, id)?;
    for_each_attribute_in(state, id, &key::attributes(id), each)
}

fn for_each_attribute_in(
    state: &ViewWithEdits<'_>,
    id: ObjectId,
    range: &EngineKeyRange,
    each: &mut dyn FnMut(AttributeData) -> Result<bool>,
) -> Result<()> {
    let mut pending: Option<(Name, AttributeRecords)> = None;
    let mut goes_on = true;
    state.for_each_pair_reentrant(&KeySpan::from(range), |key, value| -> Result<bool> {
        let RecordKey::Attribute(field, name) = EngineKey::parse(key).map_err(damaged_object_error(id))?.1 else {
            return Ok(true);
        };
        if pending.as_ref().is_none_or(|(pending, _)| pending.as_bytes() != &*name)
            && let Some((name, records)) = pending.replace((Name::from(&*name), AttributeRecords::default()))
        {
            goes_on = each(records.decode_attribute(name).map_err(damaged_object_error(id))?)?;
        }
        if let Some((_, records)) = &mut pending {
            records.insert(field, value);
        }
        Ok(goes_on)
    })?;
    if let Some((name, records)) = pending.filter(|_| goes_on) {
        each(records.decode_attribute(name).map_err(damaged_object_error(id))?)?;
    }
    Ok(())
}

/// Says that records of an object contradict each other.
pub fn contradiction_error(object: ObjectId, rule: &'static str) -> ModelError {
    KvError::InconsistentObject { object, rule }.into()
}
