//! `h5live dump --json FILE`: a file as one JSON description, from which `h5live new` makes it again.
//!
//! What the description says is written down in `docs/description.md`.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use h5live::{Attribute, Dataset, File, Group, NamedType, Object, Reference, UntypedMap};
use serde_json::{Map, Value as Json, json};

use crate::error::error_with_causes;
use crate::error::{Error, FileProblem, Result};
use crate::file_space_args::{self, DEFAULT_OFFSET_SIZE};
use crate::model::{
    AllocationTime, CreationOrder, DatasetSpec, Dataspace, Datatype, FillTime, FillValue, FilterSpec, Layout,
    LinkOrAttributeStorageSpec, LinkTarget, Name, ObjectId, ObjectInfo, ObjectKind, Selection, Shape, UNLIMITED,
    VirtualSource, VlenAndReferenceSizes, escape,
};
use crate::open;
use crate::reference_json::{self, selection_to_json};
use crate::value::{Value, exact_json};

/// Groups within groups that a description may have.
const MAX_DEPTH: usize = 60;

/// Describes a group and everything below it. Returns the number of errors, too. An object that cannot be read is
/// described by `errors`, in its place.
///
/// # Errors
/// [`FileProblem::GroupTooDeep`].
pub fn describe_with_error_count(group: &Group) -> Result<(Json, u64)> {
    let paths = HashMap::from([(group.id(), "/".to_owned())]);
    let described = RefCell::new(HashSet::from([group.id()]));
    let mut describer = JsonDescriber { file: group.file(), paths, described, errors: Cell::new(0) };
    describer.collect(group, "/", 0)?;
    let mut fields = describer.group(group, "/", 0);
    if group.path() == "/" {
        let space = file_space_args::non_default_to_json(group.file().file_space());
        fields.extend(space.map(|space| ("file_space".into(), space)));
        let size = group.file().offset_size();
        fields.extend((size != DEFAULT_OFFSET_SIZE).then(|| ("offset_size".into(), size.into())));
    }
    Ok((fields.into(), describer.errors.get()))
}

/// An object that has attributes.
trait Attributed {
    fn info(&self) -> h5live::Result<ObjectInfo>;
    fn attributes(&self) -> h5live::Result<Vec<Attribute>>;
    fn attribute_names(&self) -> h5live::Result<Vec<Name>>;
    fn attribute(&self, name: &str) -> h5live::Result<Attribute>;
}

macro_rules! attributed {
    ($($kind:ty),*) => {$(
        impl Attributed for $kind {
            fn info(&self) -> h5live::Result<ObjectInfo> {
                self.info()
            }

            fn attributes(&self) -> h5live::Result<Vec<Attribute>> {
                self.attributes()
            }

            fn attribute_names(&self) -> h5live::Result<Vec<Name>> {
                self.attribute_names()
            }

            fn attribute(&self, name: &str) -> h5live::Result<Attribute> {
                self.attribute(name)
            }
        }
    )*};
}

attributed!(Group, Dataset, UntypedMap, NamedType);

fn child_path(path: &str, name: &Name) -> String {
    format!("{}/{}", path.trim_end_matches('/'), escape(name.as_bytes()))
}

struct JsonDescriber<'a> {
    file: &'a File,
    /// The first path of each object, from the group on that is described, with escapes in the names.
    paths: HashMap<ObjectId, String>,
    /// The objects that are described, or are being described: two links of a damaged group may have one path.
    described: RefCell<HashSet<ObjectId>>,
    /// The number of errors so far.
    errors: Cell<u64>,
}

type JsonFields = Map<String, Json>;

impl JsonDescriber<'_> {
    /// Collects the paths of everything below a group.
    fn collect(&mut self, group: &Group, path: &str, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::UnsuitableFile {
                path: self.file.name().into(),
                problem: FileProblem::GroupTooDeep(path.to_owned()),
            });
        }
        // Objects that cannot be read are described by their errors later.
        for link in group.links().unwrap_or_default() {
            let LinkTarget::Hard(id) = link.target else { continue };
            let path = child_path(path, &link.name);
            if let Entry::Vacant(place) = self.paths.entry(id) {
                place.insert(path.clone());
                if let Ok(Object::Group(inner)) = group.object_by_id(id, &link.name.to_string()) {
                    self.collect(&inner, &path, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    /// The value that was read, or `None`: then the fields get the error.
    fn ok_or_add_error<T>(&self, fields: &mut JsonFields, read: Result<T, impl std::error::Error>) -> Option<T> {
        read.inspect_err(|error| self.add_error(fields, error_with_causes(error))).ok()
    }

    fn add_error(&self, fields: &mut JsonFields, error: String) {
        self.errors.set(self.errors.get().saturating_add(1));
        let errors = fields.entry("errors").or_insert_with(|| Json::Array(Vec::new()));
        errors.as_array_mut().into_iter().for_each(|errors| errors.push(error.as_str().into()));
    }

    /// Adds values to the fields, under a name; and how many of them cannot be read.
    fn put_values(&self, fields: &mut JsonFields, name: &str, space: &Dataspace, values: Vec<Value>) {
        let note = |fields: &mut JsonFields, number: u64, one: &str, many: &str| match number {
            0 => {}
            1 => self.add_error(fields, one.to_owned()),
            number => self.add_error(fields, format!("{number} {many}")),
        };
        let number = values.iter().map(unreadable).fold(0, u64::saturating_add);
        note(fields, number, "1 value cannot be read, and is null", "values cannot be read, and are null");
        let number = values.iter().map(foreign_texts).fold(0, u64::saturating_add);
        note(fields, number, "1 text is not UTF-8, and is changed", "texts are not UTF-8, and are changed");
        let lost = Cell::new(0u64);
        let path = |object| self.paths.get(&object).cloned();
        let reference = |reference: &Reference| {
            let described = reference_json::reference_to_json(self.file.store(), reference, &path);
            described.unwrap_or_else(|| {
                lost.set(lost.get().saturating_add(1));
                Json::Null
            })
        };
        let mut described = values.into_iter().map(|value| exact_json(&value, &reference));
        let described = nested_json(space.dims(), &mut described);
        let one = "1 reference leads to nothing in this description, and is null";
        note(fields, lost.get(), one, "references lead to nothing in this description, and are null");
        fields.insert(name.into(), described);
    }

    fn group(&self, group: &Group, path: &str, depth: usize) -> JsonFields {
        let mut fields = JsonFields::new();
        fields.insert("kind".into(), "group".into());
        if let Some(spec) = self.ok_or_add_error(&mut fields, group.spec()) {
            order(&mut fields, "link_order", &spec.link_storage);
        }
        self.common(&mut fields, group);
        let mut links = self.ok_or_add_error(&mut fields, group.links()).unwrap_or_default();
        links.sort_by_key(|link| link.creation_order);
        let mut described = JsonFields::new();
        for link in links {
            let name = link.name.to_string();
            let below = child_path(path, &link.name);
            let value = match link.target {
                LinkTarget::Hard(id) => match self.paths.get(&id) {
                    Some(first) if *first != below || !self.described.borrow_mut().insert(id) => {
                        json!({ "kind": "hard", "target": first })
                    }
                    _ => self.object(group, id, &name, &below, depth),
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
        fields
    }

    /// The object to which a link of a group leads.
    fn object(&self, group: &Group, id: ObjectId, name: &str, path: &str, depth: usize) -> Json {
        let mut fields = JsonFields::new();
        match self.ok_or_add_error(&mut fields, group.object_by_id(id, name)) {
            Some(Object::Group(group)) => self.group(&group, path, depth + 1).into(),
            Some(Object::Dataset(dataset)) => self.dataset(&dataset).into(),
            Some(Object::Datatype(datatype)) => self.datatype(&datatype).into(),
            Some(Object::Map(map)) => self.map(&map).into(),
            Some(_) => Json::Null,
            None => {
                let kind = match self.file.store().kind(id) {
                    Ok(ObjectKind::Dataset) => "dataset",
                    Ok(ObjectKind::Group) => "group",
                    Ok(ObjectKind::Datatype) => "datatype",
                    Ok(ObjectKind::Map) => "map",
                    _ => "unknown",
                };
                fields.insert("kind".into(), kind.into());
                fields.into()
            }
        }
    }

    fn datatype(&self, datatype: &NamedType) -> JsonFields {
        let mut fields = JsonFields::new();
        fields.insert("kind".into(), "datatype".into());
        fields.insert("type".into(), self.type_text(datatype.datatype()));
        self.common(&mut fields, datatype);
        fields
    }

    fn map(&self, map: &UntypedMap) -> JsonFields {
        let mut fields = JsonFields::new();
        fields.insert("kind".into(), "map".into());
        fields.insert("key_type".into(), self.type_text(map.key_type()));
        fields.insert("value_type".into(), self.type_text(map.value_type()));
        self.common(&mut fields, map);
        let list = |(key, value)| Value::List(vec![key, value]);
        let pairs: h5live::Result<Vec<_>> = map.pairs(..).and_then(|pairs| pairs.map(|pair| pair.map(list)).collect());
        if let Some(pairs) = self.ok_or_add_error(&mut fields, pairs) {
            let space = Dataspace::Simple(Shape::fixed(&[pairs.len() as u64]));
            self.put_values(&mut fields, "pairs", &space, pairs);
        }
        fields
    }

    /// The fields of all objects.
    fn common(&self, fields: &mut JsonFields, object: &impl Attributed) {
        if let Some(info) = self.ok_or_add_error(fields, object.info()) {
            order(fields, "attribute_order", &info.attribute_storage);
            if info.times.is_some() {
                fields.insert("times".into(), true.into());
            }
            if let Some(comment) = &info.comment {
                fields.insert("comment".into(), comment.to_string().into());
            }
        }
        let described = match object.attributes() {
            Ok(mut attributes) => {
                attributes.sort_by_key(Attribute::creation_order);
                let each = attributes.iter().map(|one| (escape(one.name().as_bytes()), self.attribute(one).into()));
                each.collect()
            }
            Err(_) => self.attributes_one_by_one(fields, object),
        };
        if !described.is_empty() {
            fields.insert("attributes".into(), described.into());
        }
    }

    /// The attributes of an object, read one by one because not all can be read.
    fn attributes_one_by_one(&self, fields: &mut JsonFields, object: &impl Attributed) -> JsonFields {
        let names = self.ok_or_add_error(fields, object.attribute_names()).unwrap_or_default();
        let each = names.into_iter().map(|name| {
            let mut unread = JsonFields::new();
            let read = self.ok_or_add_error(&mut unread, object.attribute(&name.to_string()));
            let described = read.map_or(unread, |attribute| self.attribute(&attribute));
            (escape(name.as_bytes()), described.into())
        });
        each.collect()
    }

    fn attribute(&self, attribute: &Attribute) -> JsonFields {
        let mut fields = JsonFields::new();
        fields.insert("type".into(), self.type_text(attribute.datatype()));
        self.committed(&mut fields, attribute.committed_datatype_id());
        shape(&mut fields, attribute.dataspace());
        if *attribute.dataspace() != Dataspace::Null
            && let Some(values) = self.ok_or_add_error(&mut fields, attribute.values())
        {
            self.put_values(&mut fields, "value", attribute.dataspace(), values);
        }
        fields
    }

    /// The text of a type, as in files with the usual size of addresses.
    fn type_text(&self, datatype: &Datatype) -> Json {
        datatype
            .with_vlen_and_reference_sizes(
                self.file.session().vlen_and_reference_sizes,
                VlenAndReferenceSizes::default(),
            )
            .to_string()
            .into()
    }

    fn committed(&self, fields: &mut JsonFields, committed: Option<ObjectId>) {
        if let Some(path) = committed.and_then(|id| self.paths.get(&id)) {
            fields.insert("committed".into(), path.as_str().into());
        }
    }

    fn dataset(&self, dataset: &Dataset) -> JsonFields {
        let mut fields = JsonFields::new();
        fields.insert("kind".into(), "dataset".into());
        let Some(spec) = self.ok_or_add_error(&mut fields, dataset.spec()) else {
            self.common(&mut fields, dataset);
            return fields;
        };
        fields.insert("type".into(), self.type_text(&spec.datatype));
        self.committed(&mut fields, spec.committed_datatype);
        shape(&mut fields, &spec.dataspace);
        storage(&mut fields, &spec);
        if let FillValue::Value(bytes) = &spec.fill.value {
            let values = Value::decode_all(&spec.datatype, bytes, Some(self.file.store())).unwrap_or_default();
            self.put_values(&mut fields, "fill", &Dataspace::Scalar, values);
        }
        self.common(&mut fields, dataset);
        let elsewhere = matches!(spec.layout, Layout::Virtual(_) | Layout::External(_));
        if spec.dataspace != Dataspace::Null && !elsewhere {
            let is_stored =
                self.ok_or_add_error(&mut fields, dataset.stored_chunks()).is_some_and(|chunks| !chunks.is_empty());
            let values = is_stored.then(|| self.ok_or_add_error(&mut fields, all_values(dataset, &spec)));
            if let Some(values) = values.flatten() {
                self.put_values(&mut fields, "values", &spec.dataspace, values);
            }
        }
        fields
    }
}

/// Values as lists of lists, as their dataspace has them.
fn nested_json(dims: &[u64], values: &mut dyn Iterator<Item = Json>) -> Json {
    match dims {
        [] => values.next().unwrap_or_default(),
        [length, inner @ ..] => (0..*length).map(|_| nested_json(inner, values)).collect(),
    }
}

/// How many values there are that cannot be read, within lists and compounds, too.
fn unreadable(value: &Value) -> u64 {
    match value {
        Value::Unreadable => 1,
        Value::List(values) => values.iter().map(unreadable).fold(0, u64::saturating_add),
        Value::Compound(members) => members.iter().map(|(_, value)| unreadable(value)).fold(0, u64::saturating_add),
        _ => 0,
    }
}

/// How many texts there are that had other bytes, within lists and compounds, too: they have the character that stands
/// for those.
fn foreign_texts(value: &Value) -> u64 {
    match value {
        Value::Text(text) => text.contains(char::REPLACEMENT_CHARACTER).into(),
        Value::List(values) => values.iter().map(foreign_texts).fold(0, u64::saturating_add),
        Value::Compound(members) => members.iter().map(|(_, value)| foreign_texts(value)).fold(0, u64::saturating_add),
        _ => 0,
    }
}

/// All values of a dataset, if they are not too many.
fn all_values(dataset: &Dataset, spec: &DatasetSpec) -> Result<Vec<Value>> {
    open::check_value_memory(dataset, spec.dataspace.element_count().unwrap_or(u64::MAX))?;
    Ok(dataset.read_values(Selection::All)?)
}

fn order(fields: &mut JsonFields, name: &str, storage: &LinkOrAttributeStorageSpec) {
    match storage.order {
        CreationOrder::Untracked => return,
        CreationOrder::Tracked => fields.insert(name.into(), "tracked".into()),
        CreationOrder::Indexed => fields.insert(name.into(), "indexed".into()),
    };
}

fn shape(fields: &mut JsonFields, space: &Dataspace) {
    let limit = |max: &u64| if *max == UNLIMITED { Json::Null } else { (*max).into() };
    match space {
        Dataspace::Null => fields.insert("shape".into(), "null".into()),
        Dataspace::Scalar => None,
        Dataspace::Simple(shape) => {
            if shape.max_dims() != shape.dims() {
                fields.insert("max_shape".into(), shape.max_dims().iter().map(limit).collect());
            }
            fields.insert("shape".into(), shape.dims().into())
        }
    };
}

fn storage(fields: &mut JsonFields, spec: &DatasetSpec) {
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
    if spec.unfiltered_partial_chunks {
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
    let mut fields = JsonFields::new();
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
        "source": selection_to_json(&source.source),
        "target": selection_to_json(&source.target),
    })
}
