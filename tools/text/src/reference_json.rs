//! References as JSON: `"/PATH"` for an object, `{"dataset": "/PATH", "region": SELECTION}` for elements of a dataset,
//! `{"object": "/PATH", "attribute": NAME}` for an attribute; and selections.

use h5live::{File, Reference, Value};
use serde_json::{Value as Json, json};

use crate::type_parse::unescape_name;
use h5live::model::escape;
use h5live::model::{Block, Hyperslab, ObjectId, ReferenceType, Referent, ReferentPart, Selection, Store, UNLIMITED};

/// A reference as JSON; `None` if it leads to nothing that `path` knows.
pub fn reference_to_json(
    store: &dyn Store,
    reference: &Reference,
    path: &dyn Fn(ObjectId) -> Option<String>,
) -> Option<Json> {
    if reference.is_null() {
        return Some(Json::Null);
    }
    let referent = store.referent(reference.kind(), reference.as_bytes()).ok()??;
    let path = path(referent.object).filter(|_| referent.file.is_none())?;
    match referent.part {
        ReferentPart::Whole => Some(path.into()),
        ReferentPart::Region(region) => Some(json!({ "dataset": path, "region": selection_to_json(&region) })),
        ReferentPart::Attribute(name) => Some(json!({ "object": path, "attribute": escape(name.as_bytes()) })),
    }
}

/// The path of the object to which a reference leads.
pub fn referenced_object_path(json: &Json) -> Option<&str> {
    let path = json.get("dataset").or_else(|| json.get("object")).unwrap_or(json);
    path.as_str()
}

/// The reference that JSON stands for, to an object of a file.
pub fn reference_from_json(
    file: &File,
    form: &ReferenceType,
    json: &Json,
    referenced_object: ObjectId,
) -> Option<Value> {
    let part = match (json.get("region"), json.get("attribute")) {
        (Some(region), _) => ReferentPart::Region(selection_from_json(region)?),
        (None, Some(name)) => ReferentPart::Attribute(unescape_name(name.as_str()?)),
        (None, None) => ReferentPart::Whole,
    };
    let referent = Referent { file: None, object: referenced_object, part };
    let _change = file.writer().ok()?;
    let bytes = file.store().encode_reference(form, &referent).ok()?;
    Some(Value::Reference(Reference::new(form.kind, &bytes)))
}

/// A selection as JSON.
pub fn selection_to_json(selection: &Selection) -> Json {
    let numbers = |numbers: &[u64]| -> Json {
        numbers.iter().map(|n| if *n == UNLIMITED { Json::Null } else { (*n).into() }).collect()
    };
    match selection {
        Selection::All => "all".into(),
        Selection::None => "none".into(),
        Selection::Hyperslab(Hyperslab { start, stride, count, block }) => json!({
            "start": numbers(start), "stride": numbers(stride), "count": numbers(count), "block": numbers(block),
        }),
        Selection::Blocks(blocks) => {
            let block = |block: &Block| json!({ "start": numbers(&block.start), "count": numbers(&block.count) });
            json!({ "blocks": blocks.iter().map(block).collect::<Vec<_>>() })
        }
        Selection::Points(points) => json!({ "points": points.iter().map(|at| numbers(at)).collect::<Vec<_>>() }),
    }
}

/// Numbers; null is no limit.
pub fn parse_u64s_null_unlimited(json: &Json) -> Option<Vec<u64>> {
    json.as_array()?.iter().map(|n| if n.is_null() { Some(UNLIMITED) } else { n.as_u64() }).collect()
}

/// The selection that JSON stands for.
pub fn selection_from_json(json: &Json) -> Option<Selection> {
    let field = |name: &str| Some(parse_u64s_null_unlimited(json.get(name)?)?.into());
    match json {
        Json::String(text) if text == "all" => Some(Selection::All),
        Json::String(text) if text == "none" => Some(Selection::None),
        _ if json.get("blocks").is_some() => {
            let block = |json: &Json| {
                let field = |name: &str| Some(parse_u64s_null_unlimited(json.get(name)?)?.into());
                Some(Block { start: field("start")?, count: field("count")? })
            };
            Some(Selection::Blocks(json.get("blocks")?.as_array()?.iter().map(block).collect::<Option<_>>()?))
        }
        _ if json.get("points").is_some() => {
            let points = json.get("points")?.as_array()?.iter().map(|at| Some(parse_u64s_null_unlimited(at)?.into()));
            Some(Selection::Points(points.collect::<Option<_>>()?))
        }
        _ => Some(Selection::Hyperslab(Hyperslab {
            start: field("start")?,
            stride: field("stride")?,
            count: field("count")?,
            block: field("block")?,
        })),
    }
}
