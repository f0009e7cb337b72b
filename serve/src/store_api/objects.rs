//! Objects, with their links and attributes.

use std::collections::HashSet;

use h5live::model::{
    AttributeData, Dataspace, Datatype, Error as ModelError, Link, LinkTarget, Name, ObjectId, ObjectKindSpec,
    ReferenceType, Referent, ReferentPart, Store, StoreFeatures, WriterLiveness,
};
use h5live_served::protocol::{
    AttributesAnswer, AttributesRequest, BlobsAnswer, BlobsRequest, LinksAnswer, LinksRequest, MAX_ANSWER_DATA_BYTES,
    MAX_LISTED_ATTRIBUTE_BYTES, MAX_LISTED_ENTRIES, MAX_REQUEST_OBJECTS, ObjectFailure, ObjectRecord, ObjectsAnswer,
    ObjectsRequest, ReferenceAnswer, ReferenceRequest, ReferentAnswer, ReferentRequest, SessionAnswer,
};

use super::answers::{answer, encoded_len_or_zero, message};
use super::opened::OpenedFile;
use crate::answer::Answer;
use crate::fault::Fault;
use crate::state::AppState;

/// Bytes after which no further objects are added to an answer.
const MAX_OBJECTS_BYTES: usize = 4 << 20;
/// Bytes of a link, beside its names.
const LINK_BYTES: u64 = 64;

/// What a file is.
pub(super) fn session(state: &AppState, opened: &OpenedFile, _: &[u8]) -> Result<Answer, Fault> {
    let store = opened.file().store();
    let session = store.session();
    let liveness = match opened.follows_writer() {
        true => store.liveness().map_err(|error| Fault::of_store(&error))?,
        // The session itself keeps writers out.
        false => WriterLiveness::AtRest,
    };
    let mut message = SessionAnswer {
        incarnation: opened.incarnation,
        connector: session.connector.into(),
        root: session.root,
        vlen_and_reference_sizes: session.vlen_and_reference_sizes,
        features: session.capabilities.features.without(StoreFeatures::MAPS),
        encoding: session.capabilities.encoding,
        view: session.capabilities.view,
        creation_settings: session.creation_settings.clone(),
        liveness,
        is_abandoned: store.is_abandoned().map_err(|error| Fault::of_store(&error))?,
    };
    answer(state, &mut message)
}

/// Objects, and others to which their links lead.
pub(super) fn objects(state: &AppState, opened: &OpenedFile, body: &[u8]) -> Result<Answer, Fault> {
    let request: ObjectsRequest = message(body)?;
    let store = opened.store_if_incarnation(request.incarnation)?;
    let mut wanted = request.ids;
    wanted.truncate(MAX_REQUEST_OBJECTS);
    let most = wanted.len().saturating_add(request.others.min(MAX_REQUEST_OBJECTS as u32) as usize);
    let mut known: HashSet<ObjectId> = wanted.iter().copied().collect();
    let (mut objects, mut bytes, mut next) = (Vec::new(), 0, 0);
    while let Some(id) = wanted.get(next).copied()
        && next < most
        && bytes < MAX_OBJECTS_BYTES
    {
        next += 1;
        let object = record(state, store, id);
        let targets = object.links_if_few.iter().flatten().filter_map(|link| match link.target {
            LinkTarget::Hard(id) => Some(id),
            _ => None,
        });
        wanted.extend(targets.filter(|id| known.insert(*id)));
        let mut one = ObjectsAnswer { objects: vec![object] };
        bytes += encoded_len_or_zero(&mut one);
        objects.append(&mut one.objects);
    }
    answer(state, &mut ObjectsAnswer { objects })
}

/// An object with what belongs to it, or why it cannot be read.
fn record(state: &AppState, store: &dyn Store, id: ObjectId) -> ObjectRecord {
    read_record(store, id).and_then(encodable).unwrap_or_else(|error| {
        let is_missing = matches!(error, ModelError::NoObject(_));
        let message = state.catalog.folders().redact_folder_paths(&error.to_string());
        let failure = Some(ObjectFailure { is_missing, message: message.into() });
        ObjectRecord { id, failure, ..ObjectRecord::default() }
    })
}

/// The record, if it fits the protocol.
fn encodable(record: ObjectRecord) -> Result<ObjectRecord, ModelError> {
    let mut one = ObjectsAnswer { objects: vec![record] };
    match encoded_len_or_zero(&mut one) {
        0 => Err(ModelError::Unsupported("an object that does not fit the protocol")),
        _ => one.objects.pop().ok_or(ModelError::Unsupported("an answer without an object")),
    }
}

fn read_record(store: &dyn Store, id: ObjectId) -> Result<ObjectRecord, ModelError> {
    let (spec, info) = (store.spec(id)?, store.info(id)?);
    let links = match &spec.body {
        ObjectKindSpec::Group(_) => listed_links(store, id)?,
        _ => Some(Vec::new()),
    };
    Ok(ObjectRecord {
        id,
        failure: None,
        spec,
        info,
        links_if_few: links,
        attributes_if_small: listed_attributes(store, id)?,
    })
}

/// The links of a group; `None` if they are too many.
fn listed_links(store: &dyn Store, group: ObjectId) -> Result<Option<Vec<Link>>, ModelError> {
    let mut links = Vec::new();
    let mut is_all = true;
    store.for_each_link(group, &mut |link| {
        is_all = links.len() < MAX_LISTED_ENTRIES;
        if is_all {
            links.push(link);
        }
        is_all
    })?;
    Ok(is_all.then_some(links))
}

/// The attributes of an object; `None` if they are too many or too large.
fn listed_attributes(store: &dyn Store, id: ObjectId) -> Result<Option<Vec<AttributeData>>, ModelError> {
    let (mut attributes, mut bytes, mut is_all) = (Vec::new(), 0, true);
    store.for_each_attribute(id, &mut |attribute| {
        bytes += attribute.value.len();
        is_all = attributes.len() < MAX_LISTED_ENTRIES && bytes <= MAX_LISTED_ATTRIBUTE_BYTES;
        if is_all {
            attributes.push(attribute);
        }
        is_all
    })?;
    Ok(is_all.then_some(attributes))
}

/// The links of a group, or one of them.
pub(super) fn links(state: &AppState, opened: &OpenedFile, body: &[u8]) -> Result<Answer, Fault> {
    let request: LinksRequest = message(body)?;
    let store = opened.store_if_incarnation(request.incarnation)?;
    let (mut links, mut bytes, limit) = (Vec::new(), 0, state.memory.max_answer_bytes());
    match &request.name {
        Some(name) => links.extend(store.link(request.group, name).map_err(|error| Fault::of_store(&error))?),
        None => {
            let listed = store.for_each_link(request.group, &mut |link| {
                bytes += LINK_BYTES + link.name.as_bytes().len() as u64;
                links.push(link);
                bytes <= limit
            });
            listed.map_err(|error| Fault::of_store(&error))?;
        }
    }
    if bytes > limit {
        return Err(Fault::answer_too_large(bytes, limit));
    }
    answer(state, &mut LinksAnswer { links })
}

/// The attributes of an object, their names, or one of them.
pub(super) fn attributes(state: &AppState, opened: &OpenedFile, body: &[u8]) -> Result<Answer, Fault> {
    let request: AttributesRequest = message(body)?;
    let store = opened.store_if_incarnation(request.incarnation)?;
    let limit = state.memory.max_answer_bytes();
    let fault = |error: ModelError| Fault::of_store(&error);
    let attributes = match (&request.name, request.are_names) {
        (Some(name), _) => store.attribute(request.object, name).map_err(fault)?.into_iter().collect(),
        (None, true) => store.attribute_names(request.object).map_err(fault)?.into_iter().map(name_alone).collect(),
        (None, false) => {
            let (mut all, mut bytes) = (Vec::new(), 0u64);
            let listed = store.for_each_attribute(request.object, &mut |attribute| {
                bytes += LINK_BYTES + attribute.value.len() as u64;
                all.push(attribute);
                bytes <= limit
            });
            listed.map_err(fault)?;
            if bytes > limit {
                return Err(Fault::answer_too_large(bytes, limit));
            }
            all
        }
    };
    answer(state, &mut AttributesAnswer { attributes })
}

fn name_alone(name: Name) -> AttributeData {
    let (datatype, dataspace) = (Datatype::default(), Dataspace::Null);
    AttributeData { name, datatype, committed_datatype: None, dataspace, value: Vec::new(), creation_order: None }
}

/// Where a reference leads.
pub(super) fn referent(state: &AppState, opened: &OpenedFile, body: &[u8]) -> Result<Answer, Fault> {
    let request: ReferentRequest = message(body)?;
    let store = opened.store_if_incarnation(request.incarnation)?;
    let referent = store.referent(request.kind, &request.element).map_err(|error| Fault::of_store(&error))?;
    answer(state, &mut ReferentAnswer { referent })
}

/// The reference to an object.
pub(super) fn reference(state: &AppState, opened: &OpenedFile, body: &[u8]) -> Result<Answer, Fault> {
    let request: ReferenceRequest = message(body)?;
    let store = opened.store_if_incarnation(request.incarnation)?;
    let form = ReferenceType { kind: request.kind, size: request.size };
    let to = Referent { file: None, object: request.object, part: ReferentPart::Whole };
    let element = store.encode_reference(&form, &to).map_err(|error| Fault::of_store(&error))?;
    answer(state, &mut ReferenceAnswer { element })
}

/// The bytes of the first of some variable-length elements.
pub(super) fn blobs(state: &AppState, opened: &OpenedFile, body: &[u8]) -> Result<Answer, Fault> {
    let request: BlobsRequest = message(body)?;
    let store = opened.store_if_incarnation(request.incarnation)?;
    let size = (store.session().vlen_and_reference_sizes.vlen as usize).max(1);
    if !request.elements.len().is_multiple_of(size) {
        return Err(Fault::unprocessable(format!("A variable-length element has {size} bytes here")));
    }
    let limit = state.memory.max_answer_bytes() as usize;
    let (mut blobs, mut bytes, mut rest, mut at_a_time) = (Vec::new(), 0, &request.elements[..], BLOBS_AT_A_TIME);
    while !rest.is_empty() && bytes < MAX_ANSWER_DATA_BYTES {
        let (elements, after) = rest.split_at(rest.len().min(size * at_a_time));
        match read_blobs(store, elements, size, limit - bytes.min(limit))? {
            Some(mut found) => {
                bytes += found.iter().map(Vec::len).sum::<usize>();
                blobs.append(&mut found);
                rest = after;
            }
            // Those that fit come one by one.
            None if at_a_time > 1 => at_a_time = 1,
            None if blobs.is_empty() => return Err(Fault::answer_too_large(limit as u64 + 1, limit as u64)),
            None => break,
        }
    }
    answer(state, &mut BlobsAnswer { blobs })
}

/// The bytes of some elements; `None` if they have more than `limit`.
fn read_blobs(store: &dyn Store, elements: &[u8], size: usize, limit: usize) -> Result<Option<Vec<Vec<u8>>>, Fault> {
    let elements: Vec<&[u8]> = elements.chunks(size).collect();
    let (mut found, mut bytes) = (vec![Vec::new(); elements.len()], 0usize);
    let read = store.read_blobs(&elements, &mut |number, blob| {
        bytes = bytes.saturating_add(blob.len());
        if let Some(place) = found.get_mut(number).filter(|_| bytes <= limit) {
            *place = blob.to_vec();
        }
    });
    read.map_err(|error| Fault::of_store(&error))?;
    Ok((bytes <= limit).then_some(found))
}

/// Elements that are looked up at a time.
const BLOBS_AT_A_TIME: usize = 256;
