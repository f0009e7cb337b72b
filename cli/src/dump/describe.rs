//! `h5live dump --json FILE`: a file as one JSON description, from which `h5live new` makes it again.
//!
//! What the description says is written down in `docs/description.md`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use h5live::{Attribute, Dataset, File, Group, NamedType, Object, Reference};
use serde_json::{Map, Value as Json, json};

use crate::error::{Error, Problem, Result};
use crate::manifest::{escape, type_text};
use crate::model::{
    AllocationTime, CreationOrder, DatasetSpec, Dataspace, Datatype, EntryStorage, FillTime, FillValue, FilterSpec,
    Hyperslab, Layout, LinkTarget, Name, ObjectId, ObjectInfo, ReferenceKind, Selection, UNLIMITED, VirtualSource,
};
use crate::space::{self, USUAL_OFFSETS};
use crate::value::{Value, exact_json, with_paths};

use super::values::nested;

/// Groups within groups that a description may have.
const MAX_DEPTH: usize = 60;

/// The description of a group and everything below it.
///
/// # Errors
/// If something cannot be read; [`Problem::TooDeep`].
pub fn describe(group: &Group) -> Result<Json> {
    let mut describer = Describer { file: group.file(), paths: HashMap::from([(group.id(), "/".to_owned())]) };
    describer.collect(group, "/", 0)?;
    let mut json = describer.group(group, "/", 0)?;
    if let (Some(fields), "/") = (json.as_object_mut(), group.path()) {
        let space = space::described(group.file().file_space()?);
        fields.extend(space.map(|space| ("file_space".into(), space)));
        let size = group.file().offset_size();
        fields.extend((size != USUAL_OFFSETS).then(|| ("offset_size".into(), size.into())));
    }
    Ok(json)
}

fn below(path: &str, name: &Name) -> String {
    format!("{}/{}", path.trim_end_matches('/'), escape(name.as_bytes()))
}

struct Describer<'a> {
    file: &'a File,
    /// The first path of each object, from the group on that is described, with escapes in the names.
    paths: HashMap<ObjectId, String>,
}

type Fields = Map<String, Json>;

impl Describer<'_> {
    /// Takes up the paths of everything below a group.
    fn collect(&mut self, group: &Group, path: &str, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::Unfit { path: self.file.name().into(), problem: Problem::TooDeep(path.to_owned()) });
        }
        for link in group.links()? {
            let LinkTarget::Hard(id) = link.target else { continue };
            let path = below(path, &link.name);
            if let Entry::Vacant(place) = self.paths.entry(id) {
                place.insert(path.clone());
                if let Object::Group(inner) = group.object_by_id(id, &link.name.to_string())? {
                    self.collect(&inner, &path, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn group(&self, group: &Group, path: &str, depth: usize) -> Result<Json> {
        let mut fields = Fields::new();
        fields.insert("kind".into(), "group".into());
        order(&mut fields, "link_order", &group.spec()?.links);
        self.common(&mut fields, &group.info()?, group.attributes()?)?;
        let mut links = group.links()?;
        links.sort_by_key(|link| link.creation_order);
        let mut described = Fields::new();
        for link in links {
            let name = link.name.to_string();
            let below = below(path, &link.name);
            let value = match link.target {
                LinkTarget::Hard(id) => match self.paths.get(&id) {
                    Some(first) if *first != below => json!({ "kind": "hard", "target": first }),
                    _ => self.object(&group.object_by_id(id, &name)?, &below, depth)?,
                },
                LinkTarget::Soft(target) => json!({ "kind": "soft", "target": target.to_string() }),
                LinkTarget::External { file, path } => {
                    json!({ "kind": "external", "file": file.to_string(), "target": path.to_string() })
                }
                LinkTarget::UserDefined { class, data } => {
                    json!({ "kind": "user", "class": class, "data": crate::value::hex(&data) })
                }
            };
            described.insert(escape(link.name.as_bytes()), value);
        }
        fields.insert("links".into(), described.into());
        Ok(fields.into())
    }

    fn object(&self, object: &Object, path: &str, depth: usize) -> Result<Json> {
        match object {
            Object::Group(group) => self.group(group, path, depth + 1),
            Object::Dataset(dataset) => self.dataset(dataset),
            Object::Datatype(datatype) => self.datatype(datatype),
            _ => Ok(Json::Null),
        }
    }

    fn datatype(&self, datatype: &NamedType) -> Result<Json> {
        let mut fields = Fields::new();
        fields.insert("kind".into(), "datatype".into());
        fields.insert("type".into(), self.type_text(datatype.datatype()));
        self.common(&mut fields, &datatype.info()?, datatype.attributes()?)?;
        Ok(fields.into())
    }

    /// What all objects have.
    fn common(&self, fields: &mut Fields, info: &ObjectInfo, mut attributes: Vec<Attribute>) -> Result<()> {
        order(fields, "attribute_order", &info.attributes);
        if info.times.is_some() {
            fields.insert("times".into(), true.into());
        }
        if let Some(comment) = &info.comment {
            fields.insert("comment".into(), comment.to_string().into());
        }
        if attributes.is_empty() {
            return Ok(());
        }
        attributes.sort_by_key(Attribute::creation_order);
        let mut described = Fields::new();
        for attribute in attributes {
            described.insert(escape(attribute.name().as_bytes()), self.attribute(&attribute)?);
        }
        fields.insert("attributes".into(), described.into());
        Ok(())
    }

    fn attribute(&self, attribute: &Attribute) -> Result<Json> {
        let mut fields = Fields::new();
        fields.insert("type".into(), self.type_text(attribute.datatype()));
        self.committed(&mut fields, attribute.committed());
        shape(&mut fields, attribute.dataspace());
        if *attribute.dataspace() != Dataspace::Null {
            fields.insert("value".into(), self.values(attribute.dataspace(), attribute.values()?));
        }
        Ok(fields.into())
    }

    /// A type as it is in files with the usual size of addresses.
    fn type_text(&self, datatype: &Datatype) -> Json {
        type_text(&datatype.with_offsets(self.file.offset_size(), USUAL_OFFSETS)).into()
    }

    fn committed(&self, fields: &mut Fields, committed: Option<ObjectId>) {
        if let Some(path) = committed.and_then(|id| self.paths.get(&id)) {
            fields.insert("committed".into(), path.as_str().into());
        }
    }

    fn dataset(&self, dataset: &Dataset) -> Result<Json> {
        let spec = dataset.spec()?;
        let mut fields = Fields::new();
        fields.insert("kind".into(), "dataset".into());
        fields.insert("type".into(), self.type_text(&spec.datatype));
        self.committed(&mut fields, spec.committed);
        shape(&mut fields, &spec.dataspace);
        storage(&mut fields, &spec);
        if let FillValue::Value(bytes) = &spec.fill.value {
            let values = Value::decode_all(&spec.datatype, bytes, Some(self.file.store())).unwrap_or_default();
            fields.insert("fill".into(), self.values(&Dataspace::Scalar, values));
        }
        self.common(&mut fields, &dataset.info()?, dataset.attributes()?)?;
        let elsewhere = matches!(spec.layout, Layout::Virtual(_) | Layout::External(_));
        if spec.dataspace != Dataspace::Null && !elsewhere && !dataset.chunks()?.is_empty() {
            fields.insert("values".into(), self.values(&spec.dataspace, dataset.read_values(Selection::All)?));
        }
        Ok(fields.into())
    }

    fn values(&self, space: &Dataspace, values: Vec<Value>) -> Json {
        let path = |reference: &Reference| {
            // A path does not say what of the object is meant.
            let whole = reference.kind() == ReferenceKind::Object1;
            let object = self.file.dereference(reference).ok().flatten().filter(|_| whole)?;
            self.paths.get(&object.id()).map(|path| Name::from(path.as_str()))
        };
        let values = values.into_iter().map(|value| with_paths(value, &path));
        let known = |value: Value| without_references(value);
        exact_json(&nested(space.dims(), &mut values.map(known)))
    }
}

/// A value with null in place of references that no path could be put in the place of.
fn without_references(value: Value) -> Value {
    let each = |values: Vec<Value>| values.into_iter().map(without_references).collect();
    match value {
        Value::Reference(_) => Value::Unreadable,
        Value::List(values) => Value::List(each(values)),
        Value::Compound(members) => {
            Value::Compound(members.into_iter().map(|(name, value)| (name, without_references(value))).collect())
        }
        other => other,
    }
}

fn order(fields: &mut Fields, name: &str, storage: &EntryStorage) {
    match storage.order {
        CreationOrder::Untracked => return,
        CreationOrder::Tracked => fields.insert(name.into(), "tracked".into()),
        CreationOrder::Indexed => fields.insert(name.into(), "indexed".into()),
    };
}

fn shape(fields: &mut Fields, space: &Dataspace) {
    let limit = |max: &u64| if *max == UNLIMITED { Json::Null } else { (*max).into() };
    match space {
        Dataspace::Null => fields.insert("shape".into(), "null".into()),
        Dataspace::Scalar => None,
        Dataspace::Simple(shape) => {
            if shape.max() != shape.dims() {
                fields.insert("max_shape".into(), shape.max().iter().map(limit).collect());
            }
            fields.insert("shape".into(), shape.dims().into())
        }
    };
}

fn storage(fields: &mut Fields, spec: &DatasetSpec) {
    let layout = match &spec.layout {
        Layout::Compact => "compact",
        Layout::Contiguous => "contiguous",
        Layout::Chunked(dims) => {
            fields.insert("chunks".into(), dims.clone().into());
            "chunked"
        }
        Layout::External(pieces) => {
            let piece = |piece: &crate::model::ExternalPiece| {
                let size = if piece.size == UNLIMITED { Json::Null } else { piece.size.into() };
                json!({ "file": escape(piece.name.as_bytes()), "offset": piece.offset, "size": size })
            };
            fields.insert("files".into(), pieces.iter().map(piece).collect());
            "external"
        }
        Layout::Virtual(sources) => {
            fields.insert("sources".into(), sources.iter().map(source).collect());
            "virtual"
        }
    };
    fields.insert("layout".into(), layout.into());
    if !spec.filters.is_empty() {
        fields.insert("filters".into(), spec.filters.iter().map(filter).collect());
    }
    if spec.unfiltered_edges {
        fields.insert("unfiltered_edges".into(), true.into());
    }
    match spec.fill.time {
        FillTime::IfSet => {}
        FillTime::Allocation => drop(fields.insert("fill_time".into(), "allocation".into())),
        FillTime::Never => drop(fields.insert("fill_time".into(), "never".into())),
    }
    let allocation = match spec.fill.allocation {
        AllocationTime::Early => "early",
        AllocationTime::Late => "late",
        AllocationTime::Incremental => "incremental",
    };
    fields.insert("allocation".into(), allocation.into());
    if spec.fill.value == FillValue::Undefined {
        fields.insert("fill_undefined".into(), true.into());
    }
}

fn filter(filter: &FilterSpec) -> Json {
    let mut fields = Fields::new();
    fields.insert("id".into(), filter.id.into());
    if let Some(name) = &filter.name {
        fields.insert("name".into(), name.to_string().into());
    }
    fields.insert("optional".into(), filter.optional.into());
    fields.insert("params".into(), filter.params.clone().into());
    fields.into()
}

fn source(source: &VirtualSource) -> Json {
    json!({
        "file": escape(source.file.as_bytes()),
        "dataset": escape(source.dataset.as_bytes()),
        "source": selection(&source.source),
        "target": selection(&source.target),
    })
}

fn selection(selection: &Selection) -> Json {
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
            let block =
                |block: &crate::model::Block| json!({ "start": numbers(&block.start), "count": numbers(&block.count) });
            json!({ "blocks": blocks.iter().map(block).collect::<Vec<_>>() })
        }
        Selection::Points(points) => json!({ "points": points.iter().map(|at| numbers(at)).collect::<Vec<_>>() }),
    }
}
