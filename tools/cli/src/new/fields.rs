//! The fields of a description.

use serde_json::{Map, Value as Json};

use crate::from_json::JsonValueError;
use crate::reference_json::{parse_u64s_null_unlimited, selection_from_json};
use crate::type_parse::{DatatypeFromText, TypeParseError, unescape_name};

use crate::model::{
    AllocationTime, CreationOrder, Dataspace, Datatype, ExternalPiece, FillTime, FilterSpec,
    LinkOrAttributeStorageSpec, Name, Shape, UNLIMITED, VirtualSource,
};

/// The fault of a description.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionFault {
    /// It is no JSON.
    #[error("{0}")]
    InvalidJson(#[source] serde_json::Error),
    /// A key is there twice in an object.
    #[error("{0:?} is there twice")]
    RepeatedKey(String),
    /// A field is missing, or of another kind.
    #[error("{path}: {field:?} is missing, or is not {wanted}")]
    MissingOrWrongField {
        /// The object.
        path: String,
        /// The field.
        field: &'static str,
        /// The expected kind of value.
        wanted: &'static str,
    },
    /// A field is known to nobody.
    #[error("{path}: the field {field:?} is not known")]
    UnknownField {
        /// The object.
        path: String,
        /// The field.
        field: String,
    },
    /// A type is none.
    #[error("{path}: {source}")]
    InvalidDatatype {
        /// The object.
        path: String,
        /// Why.
        source: TypeParseError,
    },
    /// A value is none of its type.
    #[error("{path}: {source}")]
    InvalidValue {
        /// The object.
        path: String,
        /// Why.
        source: JsonValueError,
    },
    /// A value cannot be stored.
    #[error("{path}: {source}")]
    UnstorableValue {
        /// The object.
        path: String,
        /// Why.
        source: h5live::ConvertError,
    },
    /// A path leads to nothing in the description, or to something else.
    #[error("{path}: the description has no {target:?} of the right kind")]
    MissingOrWrongTarget {
        /// The object.
        path: String,
        /// Where the path should lead.
        target: String,
    },
}

/// The fields of an object of a description.
pub struct DescriptionFields<'a> {
    pub path: String,
    of: &'a Map<String, Json>,
}

impl<'a> DescriptionFields<'a> {
    /// # Errors
    /// [`DescriptionFault::MissingOrWrongField`] if it is no JSON object; [`DescriptionFault::UnknownField`] if it has other fields than
    /// `known`.
    pub fn new(path: &str, json: &'a Json, known: &[&str]) -> Result<Self, DescriptionFault> {
        let of = json.as_object();
        let of = of.ok_or(DescriptionFault::MissingOrWrongField {
            path: path.to_owned(),
            field: "kind",
            wanted: "an object's",
        })?;
        match of.keys().find(|key| !known.contains(&key.as_str())) {
            Some(field) => Err(DescriptionFault::UnknownField { path: path.to_owned(), field: field.clone() }),
            None => Ok(DescriptionFields { path: path.to_owned(), of }),
        }
    }

    pub fn get_non_null(&self, field: &str) -> Option<&'a Json> {
        self.of.get(field).filter(|value| !value.is_null())
    }

    /// A field, if it is there, as what `read` makes of it.
    pub fn optional<T>(
        &self,
        field: &'static str,
        wanted: &'static str,
        read: impl FnOnce(&'a Json) -> Option<T>,
    ) -> Result<Option<T>, DescriptionFault> {
        let fault = || DescriptionFault::MissingOrWrongField { path: self.path.clone(), field, wanted };
        self.get_non_null(field).map(|value| read(value).ok_or_else(fault)).transpose()
    }

    pub fn required<T>(
        &self,
        field: &'static str,
        wanted: &'static str,
        read: impl FnOnce(&'a Json) -> Option<T>,
    ) -> Result<T, DescriptionFault> {
        let fault = DescriptionFault::MissingOrWrongField { path: self.path.clone(), field, wanted };
        self.optional(field, wanted, read)?.ok_or(fault)
    }

    pub fn required_text(&self, field: &'static str) -> Result<&'a str, DescriptionFault> {
        self.required(field, "a text", Json::as_str)
    }

    pub fn flag_or_false(&self, field: &'static str) -> Result<bool, DescriptionFault> {
        Ok(self.optional(field, "true or false", Json::as_bool)?.unwrap_or(false))
    }

    /// The members of an object in this field; none, if it is not there.
    pub fn members(
        &self,
        field: &'static str,
    ) -> Result<impl Iterator<Item = (Name, &'a Json)> + 'a, DescriptionFault> {
        let members = self.optional(field, "an object", Json::as_object)?;
        Ok(members.into_iter().flatten().map(|(name, value)| (unescape_name(name), value)))
    }

    pub fn datatype(&self) -> Result<Datatype, DescriptionFault> {
        self.datatype_in("type")
    }

    /// The datatype in a field.
    pub fn datatype_in(&self, field: &'static str) -> Result<Datatype, DescriptionFault> {
        let parsed = self.required_text(field)?.parse::<DatatypeFromText>();
        parsed
            .map(|text| text.0)
            .map_err(|source| DescriptionFault::InvalidDatatype { path: self.path.clone(), source })
    }

    pub fn dataspace(&self) -> Result<Dataspace, DescriptionFault> {
        let shape = |json: &Json| match json {
            Json::String(text) if text == "null" => Some(Dataspace::Null),
            Json::String(text) if text == "scalar" => Some(Dataspace::Scalar),
            dims => Some(Dataspace::Simple(Shape::fixed(&parse_u64s_null_unlimited(dims)?))),
        };
        let space = self.optional("shape", "dimensions, \"scalar\" or \"null\"", shape)?.unwrap_or_default();
        let max = self.optional("max_shape", "dimensions not below the shape", |json| {
            Shape::with_max(space.dims(), &parse_u64s_null_unlimited(json)?).map(Dataspace::Simple)
        })?;
        Ok(max.unwrap_or(space))
    }

    pub fn creation_order_storage(&self, field: &'static str) -> Result<LinkOrAttributeStorageSpec, DescriptionFault> {
        let order = |json: &Json| match json.as_str()? {
            "untracked" => Some(CreationOrder::Untracked),
            "tracked" => Some(CreationOrder::Tracked),
            "indexed" => Some(CreationOrder::Indexed),
            _ => None,
        };
        let order = self.optional(field, "untracked, tracked or indexed", order)?.unwrap_or_default();
        Ok(LinkOrAttributeStorageSpec { order, ..LinkOrAttributeStorageSpec::default() })
    }

    pub fn fill_time(&self) -> Result<FillTime, DescriptionFault> {
        let time = self.optional("fill_time", "ifset, allocation or never", |json| match json.as_str()? {
            "ifset" => Some(FillTime::IfSet),
            "allocation" => Some(FillTime::Allocation),
            "never" => Some(FillTime::Never),
            _ => None,
        })?;
        Ok(time.unwrap_or_default())
    }

    pub fn allocation_time(&self) -> Result<Option<AllocationTime>, DescriptionFault> {
        self.optional("allocation", "early, late or incremental", |json| match json.as_str()? {
            "early" => Some(AllocationTime::Early),
            "late" => Some(AllocationTime::Late),
            "incremental" => Some(AllocationTime::Incremental),
            _ => None,
        })
    }

    pub fn filters(&self) -> Result<Vec<FilterSpec>, DescriptionFault> {
        let list = |json: &Json| json.as_array()?.iter().map(filter).collect();
        Ok(self.optional("filters", "filters: names with parameters, or objects with id", list)?.unwrap_or_default())
    }

    pub fn external_file_pieces(&self) -> Result<Vec<ExternalPiece>, DescriptionFault> {
        let piece = |json: &Json| {
            let size = json.get("size").filter(|size| !size.is_null());
            let offset = json.get("offset").map_or(Some(0), Json::as_u64)?;
            let size = size.map_or(Some(UNLIMITED), Json::as_u64)?;
            Some(ExternalPiece { name: unescape_name(json.get("file")?.as_str()?), offset, size })
        };
        self.required("files", "files with offset and size", |json| json.as_array()?.iter().map(piece).collect())
    }

    pub fn sources(&self) -> Result<Vec<VirtualSource>, DescriptionFault> {
        let source = |json: &Json| {
            Some(VirtualSource {
                file: unescape_name(json.get("file")?.as_str()?),
                dataset: unescape_name(json.get("dataset")?.as_str()?),
                source: selection_from_json(json.get("source")?)?,
                target: selection_from_json(json.get("target")?)?,
            })
        };
        let wanted = "sources with file, dataset, source and target";
        self.required("sources", wanted, |json| json.as_array()?.iter().map(source).collect())
    }
}

fn filter(json: &Json) -> Option<FilterSpec> {
    if let Json::String(text) = json {
        return text.parse::<crate::copy::FilterArg>().ok()?.0;
    }
    let params = json.get("params").map_or(Some(Vec::new()), |params| {
        params.as_array()?.iter().map(|n| n.as_u64().and_then(|n| u32::try_from(n).ok())).collect()
    })?;
    Some(FilterSpec {
        id: u16::try_from(json.get("id")?.as_u64()?).ok()?,
        optional: json.get("optional").and_then(Json::as_bool).unwrap_or(true),
        name: json.get("name").and_then(Json::as_str).map(Name::from),
        params,
    })
}
