//! Elements: `/datasets/ID/value`.

use h5live::model::{Compound, Dataspace, Datatype, Layout};
use h5live::{Dataset, ErrorKind};
use serde_json::Value as Json;

use super::bad_request;
use super::call::Call;
use super::element_pack::ElementPacker;
use super::element_select::ElementSelection;
use super::element_text::{ElementWriter, TextFault};
use super::json_members::JsonMembers;
use super::opened_domain::OpenedDomain;
use super::shown_type::ShownType;
use crate::answer::Answer;
use crate::fault::Fault;
use crate::state::AppState;

/// The type of bytes.
const BYTES: &str = "application/octet-stream";
/// Bytes of a point of a selection, for each dimension.
const INDEX_BYTES: usize = 8;
/// Bytes of memory that an element takes in JSON, at least.
const ELEMENT_TEXT_BYTES: u64 = 32;

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

/// `GET /datasets/ID/value`.
pub(super) fn get(state: &AppState, domain: &OpenedDomain, call: &Call) -> Result<Answer, Fault> {
    refuse_queries(call, &Json::Null)?;
    let dataset = domain.dataset(call)?;
    let spec = dataset.spec()?;
    let selection = match (&spec.dataspace, call.query.get("select").filter(|text| !text.is_empty())) {
        (Dataspace::Null, _) => {
            return Err(bad_request("Null space datasets can not be used as target for GET value"));
        }
        (Dataspace::Simple(shape), Some(text)) => ElementSelection::of_text(text, shape.dims())?,
        (dataspace, _) => ElementSelection::all(dataspace.dims()),
    };
    let datatype = with_fields(&spec.datatype, call.query.get("fields"))?;
    ValueRequest { domain, call, dataset, datatype, selection, is_posted: false }.answer(state)
}

/// `POST /datasets/ID/value`: single elements, or a selection that is too long for an address.
pub(super) fn post(state: &AppState, domain: &OpenedDomain, call: &Call) -> Result<Answer, Fault> {
    let dataset = domain.dataset(call)?;
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
    refuse_queries(call, &body)?;
    let fields = body.get("fields").and_then(Json::as_str).or(call.query.get("fields"));
    let datatype = with_fields(&spec.datatype, fields)?;
    ValueRequest { domain, call, dataset, datatype, selection, is_posted: true }.answer(state)
}

fn refuse_queries(call: &Call, body: &Json) -> Result<(), Fault> {
    let asks = |name: &str| call.query.get(name).is_some_and(|text| !text.is_empty()) || body.get(name).is_some();
    match asks("query") || asks("regionref") {
        true => Err(super::not_implemented("Queries of elements are not supported: select a part, and look there")),
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
    Ok(Datatype::Compound(Compound { size: compound.size, members }))
}

impl ValueRequest<'_> {
    fn answer(&self, state: &AppState) -> Result<Answer, Fault> {
        let spec = self.dataset.spec()?;
        if matches!(spec.layout, Layout::Virtual(_)) && spec.datatype.is_indirect() {
            return Err(super::not_implemented(
                "Virtual datasets of variable-length elements are not served over HSDS's API",
            ));
        }
        let size = u64::from(spec.datatype.size());
        let per_element = match self.call.is_binary {
            true => size.saturating_mul(2),
            false => size.saturating_mul(8).max(ELEMENT_TEXT_BYTES),
        };
        let memory = state.memory.reserve(self.selection.elements().saturating_mul(per_element))?;
        let max_bytes = state.memory.max_answer();
        let raw = match self.selection.elements() {
            0 => Vec::new(),
            _ => self.dataset.read_raw(&self.selection).map_err(of_read_error)?,
        };
        let packer = ElementPacker { file: self.dataset.file(), ids: &self.domain.ids, max_bytes };
        let packed = packer.pack(&self.datatype, raw)?.bytes;
        let answer = match self.call.is_binary {
            true => self.domain.bytes(BYTES, packed),
            false => self.domain.answer(self.text(&packed, max_bytes)?),
        };
        Ok(Answer { memory: Some(memory), ..answer })
    }

    fn text(&self, packed: &[u8], max_bytes: u64) -> Result<String, Fault> {
        let is_reduced = self.call.flag("reduce_dim");
        let shape = self.selection.shape.iter().copied().filter(|dim| !is_reduced || *dim != 1);
        let is_nan_null = self.call.flag("ignore_nan");
        let mut writer = ElementWriter { bytes: packed, text: String::new(), is_nan_null, max_bytes };
        writer.push_nested(&shape.collect::<Vec<_>>(), &ShownType::of(&self.datatype)).map_err(
            |fault| match fault {
                TextFault::NoText => bad_request("Cannot decode bytes to list: ask for application/octet-stream"),
                TextFault::Other(fault) => fault,
            },
        )?;
        let own = format!("/datasets/{}", self.call.id()?);
        let root = format!("/groups/{}", self.domain.ids.root());
        let hrefs = [("self", &*self.call.path), ("root", &root), ("home", "/"), ("owner", &own)];
        let mut json = JsonMembers::default();
        if !self.is_posted {
            json.set("status", 200);
        }
        json.set_text("value", &writer.text);
        json.set("hrefs", self.call.hrefs(&hrefs));
        Ok(json.finish())
    }
}

fn of_read_error(error: h5live::Error) -> Fault {
    match error.kind() {
        ErrorKind::Selection(_) => Fault::busy("The dataset becomes smaller while it is read: ask again"),
        _ => error.into(),
    }
}
