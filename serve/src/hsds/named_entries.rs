//! Requests for links, or attributes, with some names, of one object or of several.

use serde_json::Value as Json;

use super::call::Call;
use super::faults::bad_request;
use super::json_members::JsonMembers;
use crate::fault::Fault;

/// Objects, and the names that are asked for of each; all of them for `None`.
pub(super) type NamedEntries = Vec<(String, Option<Vec<String>>)>;

/// What the body of a request for several entries asks for: `names` of the object of the address, or of `objects`.
pub(super) fn named_entries(call: &Call, names: &str, objects: &str) -> Result<NamedEntries, Fault> {
    let body = call.json_body()?;
    let texts = |json: &Json, of: &str| {
        let list = json.as_array().and_then(|list| list.iter().map(|name| name.as_str().map(str::to_owned)).collect());
        list.ok_or_else(|| bad_request(format!("expected list for {of}")))
    };
    let given: Option<Vec<String>> = body.get(names).map(|json| texts(json, names)).transpose()?;
    match (body.get(objects), given) {
        (None, None) => Err(bad_request(format!("expected body to contain one of {names}, {objects} keys"))),
        (None, given) => Ok(vec![(call.object_id()?.to_owned(), given)]),
        (Some(Json::Object(_)), Some(_)) => {
            Err(bad_request(format!("{names} must not be provided if {objects} is a dict")))
        }
        (Some(Json::Object(map)), None) => {
            map.iter().map(|(id, list)| Ok((id.clone(), Some(texts(list, names)?)))).collect()
        }
        (Some(list), given) => Ok(texts(list, objects)?.into_iter().map(|id| (id, given.clone())).collect()),
    }
}

/// A list, or for several objects a list for each.
pub(super) fn entries_text(
    name: &str,
    entries: &NamedEntries,
    mut each: impl FnMut(&str, &Option<Vec<String>>) -> Result<String, Fault>,
) -> Result<String, Fault> {
    let mut json = JsonMembers::default();
    match &entries[..] {
        [] => return Err(bad_request("no ids specified")),
        [(id, names)] => json.push_member_raw_json(name, &each(id, names)?),
        several => {
            let mut by_id = JsonMembers::default();
            for (id, names) in several {
                by_id.push_member_raw_json(id, &each(id, names)?);
            }
            json.push_member_raw_json(name, &by_id.finish());
        }
    }
    Ok(json.finish())
}
