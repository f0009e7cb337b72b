//! Elements: `/datasets/ID/value`.

use h5live::model::{CompoundType, Dataspace, Datatype, Layout};
use h5live::{Dataset, ErrorKind};
use serde_json::Value as Json;

use super::call::Call;
use super::element_pack::ElementPacker;
use super::element_query::ElementQuery;
use super::element_select::ElementSelection;
use super::element_text::{ElementWriter, TextFault};
use super::faults::bad_request;
use super::hdf5_json_type::Hdf5JsonType;
use super::json_members::JsonMembers;
use super::opened_domain::OpenedDomain;
use crate::answer::Answer;
use crate::fault::Fault;
use crate::pool::MemoryReservation;
use crate::state::AppState;

/// The type of bytes.
const BYTES: &str = "application/octet-stream";
/// Bytes of a point of a selection, for each dimension.
const INDEX_BYTES: usize = 8;
/// Bytes of memory that an element takes in JSON, at least.
const ELEMENT_TEXT_BYTES: u64 = 32;

/// Bytes of memory that an index takes, and its text.
const PLACE_TEXT_BYTES: u64 = 96;

/// What is asked for of a dataset.
struct ValueRequest<'a> {
    domain: &'a OpenedDomain,
    call: &'a Call,
    dataset: Dataset,
    /// The type, or of a compound the members that are asked for.
    datatype: Datatype,
    selection: ElementSelection,
    /// Whether it is asked for by POST.
    is_posted: bool,
}

/// `GET /datasets/ID/value`: elements, or those of them that fulfil a condition.
pub(super) fn get(state: &AppState, domain: &OpenedDomain, call: &Call) -> Result<Answer, Fault> {
    let request = ValueRequest::of_address(domain, call)?;
    match query_of(call, &request.dataset)? {
        None => request.answer(state),
        Some(query) => {
            let found = request.matching(state, &query)?;
            request.matching_elements(state, found)
        }
    }
}

/// `GET /datasets/ID/query`: where the elements lie that fulfil a condition.
pub(super) fn places(state: &AppState, domain: &OpenedDomain, call: &Call) -> Result<Answer, Fault> {
    let request = ValueRequest::of_address(domain, call)?;
    let query = query_of(call, &request.dataset)?;
    let query = query.ok_or_else(|| bad_request("query parameter is required for GET_Query"))?;
    let found = request.matching(state, &query)?;
    let per_place = PLACE_TEXT_BYTES.saturating_mul(request.selection.shape.len().max(1) as u64);
    let memory = state.memory.reserve(per_place.saturating_mul(found.numbers.len() as u64))?;
    let places = found.numbers.iter().map(|number| request.selection.coordinates(*number));
    let answer = match call.is_binary {
        true => domain.binary_answer(BYTES, places.flatten().flat_map(u64::to_le_bytes).collect()),
        false => {
            let places: Vec<_> = places.collect();
            let json = serde_json::json!({ "indices": places, "hrefs": request.hrefs()? });
            domain.json_answer(json.to_string())
        }
    };
    Ok(Answer { memory: Some(memory), ..answer })
}

/// The condition that a request has.
fn query_of(call: &Call, dataset: &Dataset) -> Result<Option<ElementQuery>, Fault> {
    refuse(call, &Json::Null, "regionref")?;
    let text = call.query.get("query").filter(|text| !text.is_empty());
    text.map(|text| ElementQuery::parse(text, &Hdf5JsonType::of(&dataset.spec()?.datatype))).transpose()
}

/// `POST /datasets/ID/value`: single elements, or a selection that is too long for an address.
pub(super) fn post(state: &AppState, domain: &OpenedDomain, call: &Call) -> Result<Answer, Fault> {
    let dataset = domain.requested_dataset(call)?;
    let spec = dataset.spec()?;
    let Dataspace::Simple(shape) = &spec.dataspace else {
        return Err(bad_request("POST value not supported for datasets with NULL or SCALAR shape"));
    };
    if call.body.is_empty() {
        return Err(bad_request("POST Value with no body"));
    }
    let (selection, body) = match call.is_binary_body {
        true => {
            (ElementSelection::of_points(binary_points(&call.body, shape.dims().len())?, shape.dims())?, Json::Null)
        }
        false => {
            let body = call.json_body()?;
            (json_selection(&body, call, shape.dims())?, body)
        }
    };
    refuse(call, &body, "query")?;
    refuse(call, &body, "regionref")?;
    let fields = body.get("fields").and_then(Json::as_str).or(call.query.get("fields"));
    let datatype = with_fields(&spec.datatype, fields)?;
    ValueRequest { domain, call, dataset, datatype, selection, is_posted: true }.answer(state)
}

/// Refuses what HSDS has a parameter for.
fn refuse(call: &Call, body: &Json, name: &str) -> Result<(), Fault> {
    match call.query.get(name).is_some_and(|text| !text.is_empty()) || body.get(name).is_some() {
        true => {
            Err(super::faults::not_implemented(format!("{name} is not supported here: select a part, and look there")))
        }
        false => Ok(()),
    }
}

fn binary_points(body: &[u8], rank: usize) -> Result<Vec<Vec<u64>>, Fault> {
    let point_bytes = rank.max(1) * INDEX_BYTES;
    if !body.len().is_multiple_of(point_bytes) {
        return Err(bad_request("Number of point values is not consistent with dataset rank"));
    }
    let index = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let point = |bytes: &[u8]| bytes.chunks_exact(INDEX_BYTES).map(index).collect();
    Ok(body.chunks_exact(point_bytes).map(point).collect())
}

fn json_selection(body: &Json, call: &Call, extent: &[u64]) -> Result<ElementSelection, Fault> {
    let selected = match call.query.get("select").filter(|text| !text.is_empty()) {
        Some(text) => Some(ElementSelection::of_text(text, extent)?),
        None => ElementSelection::of_body(body, extent)?,
    };
    let points = match (selected, body.get("points")) {
        (Some(_), Some(_)) => return Err(bad_request("Unexpected points and select key in request body")),
        (Some(selected), None) => return Ok(selected),
        (None, Some(Json::Array(points))) => points,
        (None, _) => return Err(bad_request("Expected points or select key in request body")),
    };
    let point = |json: &Json| match json {
        Json::Array(indices) => indices.iter().map(Json::as_u64).collect::<Option<Vec<_>>>(),
        index => Some(vec![index.as_u64()?]),
    };
    let points = points.iter().map(point).collect::<Option<Vec<_>>>();
    ElementSelection::of_points(points.ok_or_else(|| bad_request("Points are lists of indices"))?, extent)
}

/// A compound with these members only: `a:b`.
fn with_fields(datatype: &Datatype, fields: Option<&str>) -> Result<Datatype, Fault> {
    let Some(fields) = fields.filter(|fields| !fields.is_empty()) else { return Ok(datatype.clone()) };
    let Datatype::Compound(compound) = datatype else {
        return Err(bad_request("invalid fields selection: the dataset has no fields"));
    };
    let member = |name: &str| {
        let found = compound.members.iter().find(|member| member.name.as_bytes() == name.as_bytes());
        found.cloned().ok_or_else(|| bad_request(format!("invalid fields selection: there is no field {name:?}")))
    };
    let members = fields.split(':').map(member).collect::<Result<_, _>>()?;
    Ok(Datatype::Compound(CompoundType { size: compound.size, members }))
}

/// The elements that fulfil a condition.
struct MatchingElements {
    /// Their numbers in the selection.
    numbers: Vec<u64>,
    /// All that is selected, as it crosses the seam.
    raw: Vec<u8>,
    memory: MemoryReservation,
}

impl<'a> ValueRequest<'a> {
    /// What the parameters of an address ask for.
    fn of_address(domain: &'a OpenedDomain, call: &'a Call) -> Result<Self, Fault> {
        let dataset = domain.requested_dataset(call)?;
        let spec = dataset.spec()?;
        let selection = match (&spec.dataspace, call.query.get("select").filter(|text| !text.is_empty())) {
            (Dataspace::Null, _) => {
                return Err(bad_request("Null space datasets can not be used as target for GET value"));
            }
            (Dataspace::Simple(shape), Some(text)) => ElementSelection::of_text(text, shape.dims())?,
            (dataspace, _) => ElementSelection::all(dataspace.dims()),
        };
        let datatype = with_fields(&spec.datatype, call.query.get("fields"))?;
        Ok(ValueRequest { domain, call, dataset, datatype, selection, is_posted: false })
    }

    fn packer(&self, max_bytes: u64) -> ElementPacker<'_> {
        ElementPacker { file: self.dataset.file(), ids: &self.domain.ids, max_bytes }
    }

    /// Reads what is selected, and looks which elements fulfil a condition.
    fn matching(&self, state: &AppState, query: &ElementQuery) -> Result<MatchingElements, Fault> {
        let limit = self.call.number("Limit")?.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let (raw, memory) = self.read(state, 2)?;
        let whole = self
            .packer(state.memory.max_answer_bytes())
            .encode_for_hsds(&self.dataset.spec()?.datatype, raw.clone())?;
        let numbers = query.matching_indices(&whole.bytes, self.selection.element_count(), limit)?;
        Ok(MatchingElements { numbers, raw, memory })
    }

    /// The elements that fulfil a condition, one after the other.
    fn matching_elements(&self, state: &AppState, found: MatchingElements) -> Result<Answer, Fault> {
        let (size, max_bytes) = (self.dataset.spec()?.datatype.size() as usize, state.memory.max_answer_bytes());
        let of = |number: &u64| found.raw.chunks_exact(size.max(1)).nth(*number as usize).unwrap_or_default();
        let raw = found.numbers.iter().flat_map(of).copied().collect();
        let packed = self.packer(max_bytes).encode_for_hsds(&self.datatype, raw)?.bytes;
        let answer = match self.call.is_binary {
            true => self.domain.binary_answer(BYTES, packed),
            false => self.domain.json_answer(self.text(&packed, &[found.numbers.len() as u64], max_bytes)?),
        };
        Ok(Answer { memory: Some(found.memory), ..answer })
    }

    /// What is selected, as it crosses the seam, with memory for it, for so many copies, and for the answer.
    fn read(&self, state: &AppState, copies: u64) -> Result<(Vec<u8>, MemoryReservation), Fault> {
        let spec = self.dataset.spec()?;
        if matches!(spec.layout, Layout::Virtual(_)) && spec.datatype.has_vlen_or_references() {
            return Err(super::faults::not_implemented(
                "Virtual datasets of variable-length elements are not served over HSDS's API",
            ));
        }
        let size = u64::from(spec.datatype.size());
        let per_element = match self.call.is_binary {
            true => size.saturating_mul(2),
            false => size.saturating_mul(8).max(ELEMENT_TEXT_BYTES),
        };
        let per_element = per_element.saturating_add(copies.saturating_mul(size));
        let memory = state.memory.reserve(self.selection.element_count().saturating_mul(per_element))?;
        let raw = match self.selection.element_count() {
            0 => Vec::new(),
            _ => self.dataset.read_raw(&self.selection).map_err(of_read_error)?,
        };
        Ok((raw, memory))
    }

    fn answer(&self, state: &AppState) -> Result<Answer, Fault> {
        let max_bytes = state.memory.max_answer_bytes();
        let (raw, memory) = self.read(state, 0)?;
        let packed = self.packer(max_bytes).encode_for_hsds(&self.datatype, raw)?.bytes;
        let answer = match self.call.is_binary {
            true => self.domain.binary_answer(BYTES, packed),
            false => self.domain.json_answer(self.text(&packed, &self.selection.shape, max_bytes)?),
        };
        Ok(Answer { memory: Some(memory), ..answer })
    }

    fn text(&self, packed: &[u8], shape: &[u64], max_bytes: u64) -> Result<String, Fault> {
        let is_reduced = self.call.flag("reduce_dim");
        let shape = shape.iter().copied().filter(|dim| !is_reduced || *dim != 1);
        let is_nan_null = self.call.flag("ignore_nan");
        let mut writer = ElementWriter { bytes: packed, text: String::new(), is_nan_null, max_bytes };
        writer.push_nested(&shape.collect::<Vec<_>>(), &Hdf5JsonType::of(&self.datatype)).map_err(
            |fault| match fault {
                TextFault::NoText => bad_request("Cannot decode bytes to list: ask for application/octet-stream"),
                TextFault::Other(fault) => fault,
            },
        )?;
        let mut json = JsonMembers::default();
        if !self.is_posted {
            json.push_member("status", 200);
        }
        json.push_member_raw_json("value", &writer.text);
        json.push_member("hrefs", self.hrefs()?);
        Ok(json.finish())
    }

    fn hrefs(&self) -> Result<Json, Fault> {
        let own = format!("/datasets/{}", self.call.object_id()?);
        let root = format!("/groups/{}", self.domain.ids.format_root_id());
        Ok(self.call.hrefs(&[("self", &*self.call.path), ("root", &root), ("home", "/"), ("owner", &own)]))
    }
}

fn of_read_error(error: h5live::Error) -> Fault {
    match error.kind() {
        ErrorKind::Selection(_) => Fault::busy("The dataset becomes smaller while it is read: ask again"),
        _ => error.into(),
    }
}
