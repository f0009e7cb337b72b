//! An object with what belongs to it.

use h5live_format::{Fault, Result, Wire};
use h5live_model::{
    AttributeData, Dataspace, Datatype, Link, LinkTarget, Name, ObjectId, ObjectInfo, ObjectSpec, ObjectTimes,
};

use super::codec::{wire_blob, wire_id, wire_list, wire_name, wire_option};
use super::spec::{no_id, wire_dataspace, wire_datatype, wire_entry_storage, wire_spec};

/// Fewest bytes of a link, of an attribute and of an object.
pub(super) const MIN_LINK_BYTES: usize = 10;
pub(super) const MIN_ATTRIBUTE_BYTES: usize = 24;
pub(super) const MIN_OBJECT_BYTES: usize = 17;

/// An object with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRecord {
    /// Its identity.
    pub id: ObjectId,
    /// Why the rest cannot be read; the rest is as by default then.
    pub failure: Option<ObjectFailure>,
    /// Its description, with the present extent of a dataset.
    pub spec: ObjectSpec,
    /// What else is known of it.
    pub info: ObjectInfo,
    /// The links of a group, unless they are too many; none of what is no group.
    pub links_if_few: Option<Vec<Link>>,
    /// The attributes, unless they are too many or too large.
    pub attributes_if_small: Option<Vec<AttributeData>>,
}

/// Why an object cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectFailure {
    /// Whether nothing is there.
    pub is_missing: bool,
    /// A sentence.
    pub message: Name,
}

impl Default for ObjectRecord {
    fn default() -> Self {
        let (failure, links, attributes) = Default::default();
        ObjectRecord {
            id: no_id(),
            failure,
            spec: ObjectSpec::group(),
            info: ObjectInfo::default(),
            links_if_few: links,
            attributes_if_small: attributes,
        }
    }
}

impl ObjectRecord {
    pub(super) fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        wire_id(w, "object", &mut self.id)?;
        wire_option(w, "failure", &mut self.failure, ObjectFailure::default, |w, failure| {
            super::codec::wire_bool(w, "is missing", &mut failure.is_missing)?;
            wire_name(w, "message", &mut failure.message)
        })?;
        if self.failure.is_some() {
            return Ok(());
        }
        wire_spec(w, &mut self.spec)?;
        wire_info(w, &mut self.info)?;
        wire_option(w, "has links", &mut self.links_if_few, Vec::new, wire_links)?;
        wire_option(w, "has attributes", &mut self.attributes_if_small, Vec::new, wire_attributes)
    }
}

fn wire_info(w: &mut impl Wire, info: &mut ObjectInfo) -> Result<()> {
    w.u32("hard links", &mut info.hard_link_count)?;
    wire_option(w, "has times", &mut info.times, ObjectTimes::default, |w, times| {
        let all = [&mut times.access, &mut times.modification, &mut times.change, &mut times.birth];
        all.into_iter().try_for_each(|time| w.i64("time", time))
    })?;
    wire_option(w, "has a comment", &mut info.comment, Name::default, |w, comment| wire_name(w, "comment", comment))?;
    wire_entry_storage(w, &mut info.attribute_storage)
}

const HARD: u8 = 0;
const SOFT: u8 = 1;
const EXTERNAL: u8 = 2;
const USER_DEFINED: u8 = 3;

pub(super) fn wire_links<W: Wire>(w: &mut W, links: &mut Vec<Link>) -> Result<()> {
    let new = || Link { name: Name::default(), target: LinkTarget::Hard(no_id()), creation_order: None };
    wire_list(w, "links", MIN_LINK_BYTES, links, new, wire_link)
}

fn wire_link<W: Wire>(w: &mut W, link: &mut Link) -> Result<()> {
    wire_name(w, "name", &mut link.name)?;
    wire_option(w, "has an order", &mut link.creation_order, || 0, |w, order| w.i64("creation order", order))?;
    let number = match &link.target {
        LinkTarget::Hard(_) => HARD,
        LinkTarget::Soft(_) => SOFT,
        LinkTarget::External { .. } => EXTERNAL,
        LinkTarget::UserDefined { .. } => USER_DEFINED,
    };
    let number = w.derived_u8("link", number)?;
    if w.is_decoding() {
        link.target = match number {
            HARD => LinkTarget::Hard(no_id()),
            SOFT => LinkTarget::Soft(Name::default()),
            EXTERNAL => LinkTarget::External { file: Name::default(), path: Name::default() },
            USER_DEFINED => LinkTarget::UserDefined { class: 0, data: Vec::new() },
            found => return Err(w.fault("link", Fault::InvalidValue { found: found.into(), rule: "0 to 3" })),
        };
    }
    match &mut link.target {
        LinkTarget::Hard(id) => wire_id(w, "object", id),
        LinkTarget::Soft(path) => wire_name(w, "path", path),
        LinkTarget::External { file, path } => {
            wire_name(w, "file", file)?;
            wire_name(w, "path", path)
        }
        LinkTarget::UserDefined { class, data } => {
            w.u8("class", class)?;
            wire_blob(w, "data", data)
        }
    }
}

pub(super) fn wire_attributes<W: Wire>(w: &mut W, attributes: &mut Vec<AttributeData>) -> Result<()> {
    let new = || AttributeData {
        name: Name::default(),
        datatype: Datatype::default(),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: Vec::new(),
        creation_order: None,
    };
    wire_list(w, "attributes", MIN_ATTRIBUTE_BYTES, attributes, new, wire_attribute)
}

fn wire_attribute<W: Wire>(w: &mut W, attribute: &mut AttributeData) -> Result<()> {
    wire_name(w, "name", &mut attribute.name)?;
    wire_datatype(w, &mut attribute.datatype)?;
    wire_option(w, "committed type", &mut attribute.committed_datatype, no_id, |w, id| {
        wire_id(w, "committed type", id)
    })?;
    wire_dataspace(w, &mut attribute.dataspace)?;
    wire_option(w, "has an order", &mut attribute.creation_order, || 0, |w, order| w.u16("creation order", order))?;
    wire_blob(w, "value", &mut attribute.value)?;
    let elements = attribute.dataspace.element_count();
    let bytes = elements.and_then(|elements| elements.checked_mul(attribute.datatype.size().into()));
    let found = attribute.value.len() as u64;
    // Names may come alone.
    w.require("value", found == 0 || bytes == Some(found), found, "as many bytes as type and shape say")
}
