//! From a description to a file: all objects first, then their attributes and values, which may refer to any of them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use h5live::{Dataset, File, Group, NamedType, Object, UntypedMap};
use h5live_native::existing_raw_file;
use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::file_space_args::{self, DEFAULT_OFFSET_SIZE};
use crate::from_json;
use crate::map_text;
use crate::model::{
    AttributeData, Datatype, ExternalPiece, FileSpaceSettings, GroupSpec, LinkTarget, MapSpec, Name, NewObject,
    ObjectId, ObjectInfoChange, ObjectKindSpec, ObjectSpec, ReferenceType, Selection, Store, VlenAndReferenceSizes,
    escape,
};
use crate::reference_json::{self, parse_u64s_null_unlimited};
use crate::type_parse::unescape_name;
use crate::value::Value;

use super::fields::{DescriptionFault, DescriptionFields};

const COMMON_FIELDS: [&str; 5] = ["kind", "attribute_order", "attributes", "comment", "times"];
const GROUP_FIELDS: [&str; 2] = ["link_order", "links"];
const FILE_FIELDS: [&str; 2] = ["file_space", "offset_size"];
const DATATYPE_FIELDS: [&str; 1] = ["type"];
const MAP_FIELDS: [&str; 3] = ["key_type", "value_type", "pairs"];
const DATASET_FIELDS: [&str; 15] = [
    "type",
    "committed",
    "shape",
    "max_shape",
    "layout",
    "chunks",
    "files",
    "sources",
    "filters",
    "unfiltered_edges",
    "fill",
    "fill_time",
    "fill_undefined",
    "allocation",
    "values",
];
const ATTRIBUTE_FIELDS: [&str; 4] = ["type", "committed", "shape", "value"];

fn fields<'a>(path: &str, json: &'a Json, own: &[&str]) -> Result<DescriptionFields<'a>, DescriptionFault> {
    let file = if path == "/" { &FILE_FIELDS[..] } else { &[] };
    DescriptionFields::new(path, json, &[&COMMON_FIELDS[..], own, file].concat())
}

/// The description of the root group.
///
/// # Errors
/// [`Error::InvalidDescription`].
pub fn root(json: &Json) -> Result<ObjectSpec> {
    let fields = fields("/", json, &GROUP_FIELDS)?;
    match fields.get_non_null("kind").and_then(Json::as_str) {
        None | Some("group") => Ok(object_spec(
            &fields,
            ObjectKindSpec::Group(GroupSpec { link_storage: fields.creation_order_storage("link_order")? }),
        )?),
        Some(_) => {
            Err(DescriptionFault::MissingOrWrongField { path: "/".to_owned(), field: "kind", wanted: "group" }.into())
        }
    }
}

/// How the file allocates its space.
///
/// # Errors
/// [`Error::InvalidDescription`].
pub fn parse_file_space(json: &Json) -> Result<FileSpaceSettings> {
    let wanted = "strategy, persist, threshold and page_size";
    Ok(fields("/", json, &GROUP_FIELDS)?
        .optional("file_space", wanted, file_space_args::from_json)?
        .unwrap_or_default())
}

/// Bytes of addresses in the file.
///
/// # Errors
/// [`Error::InvalidDescription`].
pub fn parse_offset_size(json: &Json) -> Result<u32> {
    let size =
        |json: &Json| json.as_u64().and_then(|size| u32::try_from(size).ok()).filter(|size| [2, 4, 8].contains(size));
    Ok(fields("/", json, &GROUP_FIELDS)?.optional("offset_size", "2, 4 or 8", size)?.unwrap_or(DEFAULT_OFFSET_SIZE))
}

fn object_spec(fields: &DescriptionFields<'_>, body: ObjectKindSpec) -> Result<ObjectSpec, DescriptionFault> {
    let (attributes, times) = (fields.creation_order_storage("attribute_order")?, fields.flag_or_false("times")?);
    Ok(ObjectSpec { attribute_storage: attributes, track_times: times, ..body.into() })
}

/// Puts into a new file what a description says of its root group.
///
/// # Errors
/// [`Error::InvalidDescription`], or what the file refuses.
pub fn fill(file: &File, json: &Json) -> Result<()> {
    let root = file.root();
    let made = HashMap::from([("/".to_owned(), root.id())]);
    let mut builder = FileBuilder { file, store: file.store(), json, made, making: HashSet::new() };
    builder.links(&root, "/", json)?;
    builder.contents("/", json)
}

/// Calls `each` with the raw files that values of a description are written to, and with the path of the dataset.
fn for_each_raw_file<F>(path: &str, json: &Json, each: &mut F) -> Result<()>
where
    F: FnMut(&str, &ExternalPiece) -> Result<()>,
{
    if json.get("layout").and_then(Json::as_str) == Some("external") && json.get("values").is_some() {
        for piece in fields(path, json, &DATASET_FIELDS)?.external_file_pieces()? {
            each(path, &piece)?;
        }
    }
    for (name, json) in json.get("links").and_then(Json::as_object).into_iter().flatten() {
        for_each_raw_file(&child_path(path, &unescape_name(name)), json, each)?;
    }
    Ok(())
}

/// Where a raw file is if it is beside the new file at `place`.
fn path_beside(place: &Path, name: &Name) -> PathBuf {
    place.parent().unwrap_or(Path::new("")).join(OsStr::from_bytes(name.as_bytes()))
}

/// Whether this user says where raw files are, as libhdf5 takes it.
fn has_folder_of_raw_files() -> bool {
    std::env::var_os("HDF5_EXTFILE_PREFIX").is_some_and(|prefix| !prefix.is_empty() && prefix != ".")
}

/// Refuses values that would replace bytes of a raw file, which exists beside the new file at `place`, or that would be
/// written into another folder: the description may come from somebody else.
///
/// # Errors
/// [`Error::InvalidDescription`], [`Error::RawFileExists`], or [`Error::RawFileElsewhere`].
pub fn refuse_existing_raw_files(place: &Path, json: &Json) -> Result<()> {
    for_each_raw_file("/", json, &mut |dataset, piece| {
        let elsewhere = || Error::RawFileElsewhere { name: piece.name.to_string(), dataset: dataset.to_owned() };
        let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(OsStr::from_bytes(piece.name.as_bytes())).components().all(is_below) {
            return Err(elsewhere());
        }
        let Some(found) = existing_raw_file(place, &piece.name) else { return Ok(()) };
        if found.metadata().is_ok_and(|there| there.len() > piece.offset) {
            return Err(Error::RawFileExists { path: found, dataset: dataset.to_owned() });
        }
        // As libhdf5 does it, one in the folder where this process runs is taken before the one beside the new file.
        let is_beside = || Some(found.canonicalize().ok()? == path_beside(place, &piece.name).canonicalize().ok()?);
        if !has_folder_of_raw_files() && is_beside() != Some(true) {
            return Err(elsewhere());
        }
        Ok(())
    })
}

/// Raw files that were made for values; they are deleted unless they are kept.
#[derive(Debug, Default)]
pub struct NewRawFiles(Vec<PathBuf>);

impl NewRawFiles {
    /// Makes the raw files that are nowhere beside the new file at `place`: libhdf5 would make them in the folder where
    /// this process runs.
    ///
    /// # Errors
    /// [`Error::InvalidDescription`], or [`Error::Io`].
    pub fn create(place: &Path, json: &Json) -> Result<Self> {
        let mut made = NewRawFiles::default();
        if has_folder_of_raw_files() {
            return Ok(made);
        }
        for_each_raw_file("/", json, &mut |_, piece| {
            if existing_raw_file(place, &piece.name).is_some() {
                return Ok(());
            }
            let path = path_beside(place, &piece.name);
            match std::fs::File::create_new(&path) {
                Ok(_) => made.0.push(path),
                Err(source) => return Err(Error::Io { path, source }),
            }
            Ok(())
        })?;
        Ok(made)
    }

    /// They stay.
    pub fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for NewRawFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

struct FileBuilder<'a> {
    file: &'a File,
    store: &'a dyn Store,
    json: &'a Json,
    /// The objects that are made, by their path in the description.
    made: HashMap<String, ObjectId>,
    /// The paths at which objects are being made, or are.
    making: HashSet<String>,
}

/// A path as the description has it: with escapes in the names.
fn child_path(path: &str, name: &Name) -> String {
    format!("{}/{}", path.trim_end_matches('/'), escape(name.as_bytes()))
}

impl<'a> FileBuilder<'a> {
    fn error(&self, path: &str, error: crate::model::Error) -> Error {
        Error::Store { file: self.file.name().into(), path: path.to_owned(), source: error }
    }

    /// The part of the description at a path.
    fn at(&self, path: &str) -> Option<&'a Json> {
        let mut json = self.json;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let links = json.get("links")?.as_object()?;
            json = links.iter().find(|(key, _)| escape(unescape_name(key).as_bytes()) == name).map(|(_, json)| json)?;
        }
        Some(json)
    }

    fn object(&self, id: ObjectId, path: &str) -> Result<Object> {
        Ok(self.file.root().object_by_id(id, path)?)
    }

    fn links(&mut self, group: &Group, path: &str, json: &'a Json) -> Result<()> {
        let described = fields(path, json, &GROUP_FIELDS)?;
        for (name, json) in described.members("links")? {
            let path = child_path(path, &name);
            let kind = json.get("kind").and_then(Json::as_str).unwrap_or("dataset");
            let text =
                |field: &'static str, known: &[&str]| DescriptionFields::new(&path, json, known)?.required_text(field);
            let target = match kind {
                "soft" => LinkTarget::Soft(text("target", &["kind", "target"])?.into()),
                "external" => {
                    let known = ["kind", "file", "target"];
                    LinkTarget::External { file: text("file", &known)?.into(), path: text("target", &known)?.into() }
                }
                "user" => {
                    let fields = DescriptionFields::new(&path, json, &["kind", "class", "data"])?;
                    let class = fields.required("class", "a number from 64 to 255", Json::as_u64)?;
                    let data =
                        fields.required("data", "bytes in hexadecimal", |json| from_json::unhex(json.as_str()?))?;
                    LinkTarget::UserDefined { class: u8::try_from(class).unwrap_or(0), data }
                }
                "hard" => LinkTarget::Hard(self.create_object(text("target", &["kind", "target"])?, &path)?),
                _ => LinkTarget::Hard(self.create_object(&path, &path)?),
            };
            self.file
                .writer()
                .and_then(|writer| writer.add_link(group.id(), &name, &target))
                .map_err(|error| self.error(&path, error))?;
            if let ("group", LinkTarget::Hard(id)) = (kind, &target)
                && let Object::Group(inner) = self.object(*id, &path)?
            {
                self.links(&inner, &path, json)?;
            }
        }
        Ok(())
    }

    /// Makes the object that the description has at a path, unless it is made.
    fn create_object(&mut self, path: &str, from: &str) -> Result<ObjectId> {
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if let Some(id) = self.made.get(&path) {
            return Ok(*id);
        }
        let missing = || DescriptionFault::MissingOrWrongTarget { path: from.to_owned(), target: path.clone() };
        let json = self.at(&path).ok_or_else(missing)?;
        let kind = json.get("kind").and_then(Json::as_str).unwrap_or("dataset");
        if !self.making.insert(path.clone()) {
            return Err(missing().into());
        }
        let id = match kind {
            "group" => {
                let fields = fields(&path, json, &GROUP_FIELDS)?;
                let group =
                    ObjectKindSpec::Group(GroupSpec { link_storage: fields.creation_order_storage("link_order")? });
                self.unlinked(&path, &object_spec(&fields, group)?)?
            }
            "datatype" => {
                let fields = fields(&path, json, &DATATYPE_FIELDS)?;
                let datatype = self.fit(fields.datatype()?);
                self.unlinked(&path, &object_spec(&fields, ObjectKindSpec::Datatype(datatype))?)?
            }
            "dataset" => self.dataset(&path, json)?,
            "map" => {
                let fields = fields(&path, json, &MAP_FIELDS)?;
                let types = [fields.datatype_in("key_type")?, fields.datatype_in("value_type")?];
                let [key, value] = types.map(|datatype| self.fit(datatype));
                let map = ObjectKindSpec::Map(Box::new(MapSpec { key_type: key, value_type: value }));
                self.unlinked(&path, &object_spec(&fields, map)?)?
            }
            _ => return Err(missing().into()),
        };
        self.made.insert(path, id);
        Ok(id)
    }

    fn fit(&self, datatype: Datatype) -> Datatype {
        datatype.with_vlen_and_reference_sizes(
            VlenAndReferenceSizes::default(),
            self.store.session().vlen_and_reference_sizes,
        )
    }

    fn unlinked(&self, path: &str, spec: &ObjectSpec) -> Result<ObjectId> {
        self.file
            .writer()
            .and_then(|writer| writer.create(&NewObject::unlinked(spec)))
            .map_err(|error| self.error(path, error))
    }

    /// The committed type that fields name.
    fn committed(&mut self, fields: &DescriptionFields<'_>) -> Result<Option<NamedType>> {
        let Some(target) = fields.optional("committed", "the path of a committed type", Json::as_str)? else {
            return Ok(None);
        };
        let id = self.create_object(target, &fields.path)?;
        match self.object(id, target)? {
            Object::Datatype(datatype) => Ok(Some(datatype)),
            _ => {
                Err(DescriptionFault::MissingOrWrongTarget { path: fields.path.clone(), target: target.to_owned() }
                    .into())
            }
        }
    }

    fn dataset(&mut self, path: &str, json: &'a Json) -> Result<ObjectId> {
        let fields = fields(path, json, &DATASET_FIELDS)?;
        let committed = self.committed(&fields)?;
        let datatype = match &committed {
            Some(committed) => committed.datatype().clone(),
            None => fields.datatype()?,
        };
        let mut builder = self.file.root().new_dataset_with_type(datatype.clone());
        if let Some(committed) = &committed {
            builder = builder.committed_datatype(committed);
        }
        builder = builder.dataspace(fields.dataspace()?);
        let chunks = fields.optional("chunks", "dimensions", parse_u64s_null_unlimited)?;
        builder = match (fields.optional("layout", "the name of a layout", Json::as_str)?, chunks) {
            (None | Some("chunked"), Some(dims)) => builder.chunk_shape(&dims),
            (None | Some("chunked"), None) => builder,
            (Some("compact"), _) => builder.compact(),
            (Some("contiguous"), _) => builder.contiguous(),
            (Some("virtual"), _) => builder.virtual_sources(fields.sources()?),
            (Some("external"), _) => {
                let pieces = fields.external_file_pieces()?;
                pieces
                    .into_iter()
                    .fold(builder, |builder, piece| builder.external(&piece.name.to_string(), piece.offset, piece.size))
            }
            (Some(_), _) => {
                let wanted = "compact, contiguous, chunked, external or virtual";
                return Err(
                    DescriptionFault::MissingOrWrongField { path: path.to_owned(), field: "layout", wanted }.into()
                );
            }
        };
        builder = fields.filters()?.into_iter().fold(builder, |builder, filter| builder.filter(filter));
        if fields.flag_or_false("unfiltered_edges")? {
            builder = builder.unfiltered_partial_chunks();
        }
        builder = builder.fill_time(fields.fill_time()?);
        if let Some(allocation) = fields.allocation_time()? {
            builder = builder.alloc_time(allocation);
        }
        if let Some(fill) = fields.get_non_null("fill") {
            if let (Datatype::Reference(_), Some(target)) = (&datatype, reference_json::referenced_object_path(fill)) {
                self.create_object(target, path)?;
            }
            let refer = |form: &ReferenceType, json: &Json| self.refer(form, json);
            let value = from_json::value_from_json(&datatype, fill, &refer);
            builder = builder
                .fill_value(&value.map_err(|source| DescriptionFault::InvalidValue { path: path.to_owned(), source })?);
        }
        if fields.flag_or_false("fill_undefined")? {
            builder = builder.fill_undefined();
        }
        builder = builder.attribute_storage(fields.creation_order_storage("attribute_order")?);
        if fields.flag_or_false("times")? {
            builder = builder.track_times();
        }
        Ok(builder.create_unlinked()?.id())
    }

    /// Sets the attributes, values and comments of an object that is made, and of everything below it.
    fn contents(&mut self, path: &str, json: &'a Json) -> Result<()> {
        let Some(id) = self.made.get(path).copied() else { return Ok(()) };
        let kind = json.get("kind").and_then(Json::as_str).unwrap_or(if path == "/" { "group" } else { "dataset" });
        let own = match kind {
            "group" => &GROUP_FIELDS[..],
            "datatype" => &DATATYPE_FIELDS[..],
            "map" => &MAP_FIELDS[..],
            _ => &DATASET_FIELDS[..],
        };
        let fields = fields(path, json, own)?;
        let object = self.object(id, path)?;
        for (name, json) in fields.members("attributes")? {
            self.attribute(&object, path, &name, json)?;
        }
        if let Some(comment) = fields.optional("comment", "a text", Json::as_str)? {
            let comment = comment.into();
            let change = ObjectInfoChange::Comment(Some(&comment));
            let set = self.file.writer().and_then(|writer| writer.set_info(id, &change));
            set.map_err(|error| self.error(path, error))?;
        }
        if let Object::Dataset(dataset) = &object {
            return self.values(&fields, dataset);
        }
        if let Object::Map(map) = &object {
            return self.pairs(&fields, map);
        }
        if kind == "group" {
            for (name, json) in fields.members("links")? {
                let path = child_path(path, &name);
                let is_object =
                    !matches!(json.get("kind").and_then(Json::as_str), Some("hard" | "soft" | "external" | "user"));
                if is_object {
                    self.contents(&path, json)?;
                }
            }
        }
        Ok(())
    }

    fn values(&self, fields: &DescriptionFields<'_>, dataset: &Dataset) -> Result<()> {
        let Some(values) = fields.get_non_null("values") else { return Ok(()) };
        let spec = dataset.spec()?;
        let values = self.elements(&fields.path, &spec.datatype, spec.dataspace.dims(), values)?;
        Ok(dataset.write_values(Selection::All, &values)?)
    }

    fn pairs(&self, fields: &DescriptionFields<'_>, map: &UntypedMap) -> Result<()> {
        let refer = |form: &ReferenceType, json: &Json| self.refer(form, json);
        let wrong = |source| DescriptionFault::InvalidValue { path: fields.path.clone(), source };
        let mut pairs = Vec::new();
        for pair in fields.optional("pairs", "a list of keys and values", Json::as_array)?.into_iter().flatten() {
            let wanted = "a list of keys and values";
            let [key, value] = pair.as_array().map(Vec::as_slice).unwrap_or_default() else {
                return Err(DescriptionFault::MissingOrWrongField {
                    path: fields.path.clone(),
                    field: "pairs",
                    wanted,
                }
                .into());
            };
            let key = map_text::map_key_from_json(map.key_type(), key, &refer).map_err(wrong)?;
            pairs.push((key, from_json::value_from_json(map.value_type(), value, &refer).map_err(wrong)?));
        }
        Ok(map.put_pairs(&pairs)?)
    }

    fn attribute(&mut self, object: &Object, path: &str, name: &Name, json: &Json) -> Result<()> {
        let shown = format!("{path}@{name}");
        let fields = DescriptionFields::new(&shown, json, &ATTRIBUTE_FIELDS)?;
        let committed = self.committed(&fields)?;
        let Some(mut builder) = crate::object_or_attribute::new_attribute(object, &name.to_string()) else {
            return Ok(());
        };
        let datatype = match &committed {
            Some(committed) => committed.datatype().clone(),
            None => fields.datatype()?,
        };
        builder = match &committed {
            Some(committed) => builder.committed_datatype(committed),
            None => builder.datatype(datatype.clone()),
        };
        let dataspace = fields.dataspace()?;
        let values = match (&dataspace, fields.get_non_null("value")) {
            (crate::model::Dataspace::Null, _) => Vec::new(),
            (_, value) => self.elements(&shown, &datatype, dataspace.dims(), value.unwrap_or(&Json::Null))?,
        };
        if std::str::from_utf8(name.as_bytes()).is_err() {
            let value = Value::encode_all(&values, &self.fit(datatype.clone()), self.store)
                .map_err(|source| DescriptionFault::UnstorableValue { path: shown.clone(), source })?;
            let committed = committed.map(|committed| committed.id());
            let (name, datatype) = (name.clone(), self.fit(datatype));
            let data =
                AttributeData { name, datatype, committed_datatype: committed, dataspace, value, creation_order: None };
            let set = self.file.writer().and_then(|writer| writer.set_attribute(object.id(), &data));
            return set.map_err(|error| self.error(&shown, error));
        }
        Ok(builder.dataspace(dataspace).write_values(&values)?)
    }

    /// A reference to the object that is made at a path, or to a part of it.
    fn refer(&self, form: &ReferenceType, json: &Json) -> Option<Value> {
        let id = self.made.get(reference_json::referenced_object_path(json)?)?;
        reference_json::reference_from_json(self.file, form, json, *id)
    }

    fn elements(&self, path: &str, datatype: &Datatype, dims: &[u64], json: &Json) -> Result<Vec<Value>> {
        let refer = |form: &ReferenceType, json: &Json| self.refer(form, json);
        let values = from_json::elements_from_json(datatype, dims, json, &refer);
        values.map_err(|source| DescriptionFault::InvalidValue { path: path.to_owned(), source }.into())
    }
}
