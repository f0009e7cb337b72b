//! The objects that describe groups, datasets, committed types and domains.
//!
//! A document is its JSON: members that are not known stay what they are when it is written again.

use h5live_model::{
    DatasetSpec, Datatype, FilterSpec, GroupSpec, Link, LinkOrAttributeStorageSpec, LinkTarget, Name, ObjectId,
    ObjectKind, ObjectKindSpec, ObjectSpec, ObjectTimes,
};
use serde_json::{Value, json};

use super::access::AccessRights;
use super::attribute::{AttributeContent, DatatypeAndCommittedId, get_type, put_type};
use super::creation::{StoredDatasetSpec, get_dataset, put_dataset};
use super::entry_storage::{GivenPositions, created, put_storage, stored_order};
use super::error::{LayoutError, Result};
use super::extras::{h5live_member, set_h5live_member};
use super::filters::{ChunkEncoding, all_hsds_filters_to_json};
use super::id::{DomainId, kind};
use super::json::{Members, json_to_bytes, object_member_or_insert, parse_json_object};
use super::link::{hard_target_of, link_from_json, link_to_json, name_text};
use super::shard_id::LinksOrAttributes;
use super::shards::ShardedEntries;

const LINKS: &str = "links";
const ATTRIBUTES: &str = "attributes";

/// The object that describes a group, a dataset or a committed type.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectDocument {
    pub(super) domain: DomainId,
    pub(super) id: ObjectId,
    /// Without the links and the attributes that are in shards.
    pub(super) members: Members,
    pub(super) link_shards: Option<ShardedEntries>,
    pub(super) attribute_shards: Option<ShardedEntries>,
    pub(super) given: GivenPositions,
}

impl ObjectDocument {
    /// The document of a new object that is made now (seconds). `stored_fill` is the fill value of a dataset as it is stored.
    ///
    /// # Errors
    /// [`LayoutError::Unsupported`], [`LayoutError::Encode`].
    pub fn new(
        domain: DomainId,
        id: ObjectId,
        spec: &ObjectSpec,
        stored_fill: Option<&[u8]>,
        now: f64,
    ) -> Result<Self> {
        let mut members = Members::new();
        members.insert("id".to_owned(), domain.object_id_text(id).into());
        members.insert("root".to_owned(), domain.object_id_text(domain.root()).into());
        members.insert("created".to_owned(), now.into());
        members.insert("lastModified".to_owned(), now.into());
        let mut links = None;
        match &spec.body {
            ObjectKindSpec::Group(group) => {
                members.insert(LINKS.to_owned(), json!({}));
                links = Some(group.link_storage);
            }
            ObjectKindSpec::Dataset(dataset) => put_dataset(&mut members, domain, dataset, stored_fill)?,
            ObjectKindSpec::Datatype(datatype) => {
                put_type(
                    &mut members,
                    domain,
                    &DatatypeAndCommittedId { datatype: datatype.clone(), committed_datatype: None },
                )?;
            }
            ObjectKindSpec::Map(_) => return Err(LayoutError::Unsupported("a map")),
        }
        members.insert(ATTRIBUTES.to_owned(), json!({}));
        put_storage(&mut members, links, spec.attribute_storage);
        if spec.expects_large_attributes {
            set_h5live_member(&mut members, "large_attributes", true.into());
        }
        let mut found = ObjectDocument {
            domain,
            id,
            members,
            link_shards: None,
            attribute_shards: None,
            given: GivenPositions::default(),
        };
        if spec.track_times {
            let now = now as i64;
            found.set_times(&ObjectTimes { access: now, modification: now, change: now, birth: now });
        }
        Ok(found)
    }

    /// The document that the bytes of an object are.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn parse(domain: DomainId, id: ObjectId, bytes: &[u8]) -> Result<Self> {
        let members = parse_json_object(bytes)?;
        if let Some(stated) = members.get("id").and_then(Value::as_str)
            && domain.parse_own_object_id(stated)? != id
        {
            return Err(LayoutError::InvalidId(stated.to_owned()));
        }
        let shards = |class: LinksOrAttributes| {
            let table = h5live_member(&members, class.table_member());
            table.map(|table| ShardedEntries::from_table(class, table)).transpose()
        };
        let (link_shards, attribute_shards) =
            (shards(LinksOrAttributes::Links)?, shards(LinksOrAttributes::Attributes)?);
        Ok(ObjectDocument { domain, id, members, link_shards, attribute_shards, given: GivenPositions::default() })
    }

    /// The bytes of the object.
    pub fn to_bytes(&self) -> Vec<u8> {
        json_to_bytes(&self.members)
    }

    /// The identity.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// The kind.
    pub fn kind(&self) -> ObjectKind {
        kind(self.id).unwrap_or(ObjectKind::Group)
    }

    /// Says when the object was changed (seconds).
    pub fn set_last_modified(&mut self, now: f64) {
        self.members.insert("lastModified".to_owned(), now.into());
    }

    /// When the document was made, and when it was changed last (seconds since 1970), if that is known.
    pub fn created_and_modified(&self) -> (Option<f64>, Option<f64>) {
        let time = |member: &str| self.members.get(member).and_then(Value::as_f64);
        (time("created"), time("lastModified"))
    }

    /// What the object is. The fill value is missing if it has variable-length parts.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn spec(&self) -> Result<ObjectSpec> {
        let body = match self.kind() {
            ObjectKind::Group => {
                ObjectKindSpec::Group(GroupSpec { link_storage: self.storage(LinksOrAttributes::Links) })
            }
            ObjectKind::Dataset => ObjectKindSpec::Dataset(Box::new(self.stored_dataset_spec()?.spec)),
            ObjectKind::Datatype | ObjectKind::Map => {
                ObjectKindSpec::Datatype(get_type(&self.members, self.domain)?.datatype)
            }
        };
        Ok(ObjectSpec {
            body,
            attribute_storage: self.attribute_storage(),
            track_times: self.times().is_some(),
            expects_large_attributes: h5live_member(&self.members, "large_attributes")
                .and_then(Value::as_bool)
                .unwrap_or(false),
        })
    }

    /// What a dataset is.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn stored_dataset_spec(&self) -> Result<StoredDatasetSpec> {
        get_dataset(&self.members, self.domain)
    }

    /// How the chunks of a dataset are stored whose elements take so many bytes when stored.
    pub fn chunk_encoding(&self, stored_element_size: Option<usize>) -> ChunkEncoding {
        let filters = self.members.get("creationProperties").and_then(|creation| creation.get("filters"));
        ChunkEncoding::new(filters, stored_element_size)
    }

    /// Over how many folders the chunks of a dataset are spread; fewer than two are none. The layout among the creation
    /// properties counts, if there is one.
    pub fn chunk_partition_count(&self) -> u64 {
        let own = || self.members.get("layout");
        let layout = self.creation_layout().filter(|layout| layout.is_object()).or_else(own);
        layout.and_then(|layout| layout.get("partition_count")?.as_u64()).unwrap_or_default()
    }

    /// The layout of a dataset, which may say that its chunks lie in a native file.
    pub fn creation_layout(&self) -> Option<&Value> {
        self.members.get("creationProperties")?.get("layout")
    }

    /// The dataset with the places of the chunks, if chunks lie in a native file.
    pub fn chunk_table(&self) -> Option<ObjectId> {
        let layout = self.creation_layout().filter(|_| self.kind() == ObjectKind::Dataset)?;
        layout.get("chunk_table")?.as_str().and_then(|table| self.domain.parse_own_object_id(table).ok())
    }

    /// Says where in a native file the chunks of a dataset lie, which have gone through these filters.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`].
    pub fn set_linked_chunk_layout(&mut self, layout: Value, filters: &[FilterSpec]) -> Result<()> {
        let creation = object_member_or_insert(&mut self.members, "creationProperties")?;
        creation.insert("layout".to_owned(), layout);
        if !filters.is_empty() {
            creation.insert("filters".to_owned(), all_hsds_filters_to_json(filters));
        }
        Ok(())
    }

    /// Sets the extent of a dataset.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`].
    pub fn set_extent(&mut self, spec: &DatasetSpec) -> Result<()> {
        let shape = object_member_or_insert(&mut self.members, "shape")?;
        shape.insert("dims".to_owned(), json!(spec.dataspace.dims()));
        Ok(())
    }

    /// What a user may do with the object, if it has rights of its own.
    pub fn own_acl_access(&self, user: &str) -> Option<AccessRights> {
        AccessRights::from_acls_member(&self.members, user)
    }

    /// How attributes are kept.
    pub fn attribute_storage(&self) -> LinkOrAttributeStorageSpec {
        self.storage(LinksOrAttributes::Attributes)
    }

    /// When each link, or attribute, of the document was made (seconds).
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`](super::LayoutError::MissingOrInvalidMember).
    pub fn unsharded_entry_creation_times(&self, class: LinksOrAttributes) -> Result<Vec<(String, f64)>> {
        let own = self.own_entries(class)?.into_iter().flatten();
        Ok(own.map(|(name, entry)| (name.clone(), created(entry))).collect())
    }

    /// When it was touched, if that is kept.
    pub fn times(&self) -> Option<ObjectTimes> {
        let times = h5live_member(&self.members, "times")?;
        let time = |member: &str| times.get(member).and_then(Value::as_i64).unwrap_or_default();
        Some(ObjectTimes {
            access: time("access"),
            modification: time("modification"),
            change: time("change"),
            birth: time("birth"),
        })
    }

    /// Says when it was touched.
    pub fn set_times(&mut self, times: &ObjectTimes) {
        let ObjectTimes { access, modification, change, birth } = times;
        let times = json!({"access": access, "modification": modification, "change": change, "birth": birth});
        set_h5live_member(&mut self.members, "times", times);
    }

    /// The comment.
    pub fn comment(&self) -> Option<Name> {
        h5live_member(&self.members, "comment").and_then(Value::as_str).map(Name::from)
    }

    /// Sets the comment, or takes it away.
    ///
    /// # Errors
    /// [`LayoutError::Unsupported`] if it is no UTF-8.
    pub fn set_comment(&mut self, comment: Option<&Name>) -> Result<()> {
        let comment = comment.map(name_text).transpose()?;
        set_h5live_member(&mut self.members, "comment", comment.map_or(Value::Null, Value::from));
        Ok(())
    }

    /// The link with this name.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`], [`LayoutError::InvalidId`], [`LayoutError::ShardNotLoaded`].
    pub fn link(&self, name: &Name) -> Result<Option<Link>> {
        let Some(name) = name.as_str() else { return Ok(None) };
        let Some(link) = self.entry(LinksOrAttributes::Links, name)? else { return Ok(None) };
        let mut link = link_from_json(self.domain, name, link)?;
        if link.creation_order.is_none() && self.keeps_order(LinksOrAttributes::Links) {
            link.creation_order =
                self.given_positions(LinksOrAttributes::Links)?.get(name).map(|position| *position as i64);
        }
        Ok(Some(link))
    }

    /// All links.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`], [`LayoutError::ShardNotLoaded`].
    pub fn links(&self) -> Result<impl Iterator<Item = Result<Link>> + '_> {
        let given = self.given_positions(LinksOrAttributes::Links)?;
        Ok(self.entries(LinksOrAttributes::Links)?.map(move |(name, link)| {
            let link = link_from_json(self.domain, name, link)?;
            let position = || given.get(name).map(|position| *position as i64);
            Ok(Link { creation_order: link.creation_order.or_else(position), ..link })
        }))
    }

    /// Adds a link that is made now (seconds).
    ///
    /// # Errors
    /// [`LayoutError::Unsupported`].
    pub fn put_link(&mut self, name: &Name, target: &LinkTarget, now: f64) -> Result<()> {
        let name = name_text(name)?.to_owned();
        link_to_json(self.domain, target, None, now)?;
        let (order, time) = self.take_position(LinksOrAttributes::Links, now)?;
        let link = link_to_json(self.domain, target, order.map(|order| order as i64), time)?;
        self.put_entry(LinksOrAttributes::Links, name, link)
    }

    /// Takes a link away, if it is there.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`].
    pub fn remove_link(&mut self, name: &Name) -> Result<()> {
        name.as_str().map_or(Ok(()), |name| self.remove_entry(LinksOrAttributes::Links, name).map(drop))
    }

    /// The objects to which hard links lead, the committed types that are used, each as often as it is, and the table of the
    /// chunks of a dataset. What is in shards counts as far as these were read.
    pub fn known_used_objects(&self) -> Vec<ObjectId> {
        let links = self.known_entries(LinksOrAttributes::Links);
        let mut found: Vec<ObjectId> = links.filter_map(|link| hard_target_of(self.domain, link)).collect();
        let attributes = self.known_entries(LinksOrAttributes::Attributes);
        let own = self.members.get("type").filter(|_| self.kind() == ObjectKind::Dataset);
        let types = attributes.filter_map(|attribute| attribute.get("type")).chain(own);
        let ids = types.filter_map(|used| used.get("id")?.as_str());
        found.extend(ids.filter_map(|id| self.domain.parse_own_object_id(id).ok()));
        found.extend(self.chunk_table());
        found
    }

    /// The attribute with this name.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn attribute(&self, name: &Name) -> Result<Option<AttributeContent>> {
        let Some(name) = name.as_str() else { return Ok(None) };
        let attribute = self.entry(LinksOrAttributes::Attributes, name)?;
        let mut record = attribute.map(|json| AttributeContent::from_json(self.domain, json)).transpose()?;
        if let Some(record) = record.as_mut().filter(|record| record.creation_order.is_none())
            && self.keeps_order(LinksOrAttributes::Attributes)
        {
            let given = self.given_positions(LinksOrAttributes::Attributes)?;
            record.creation_order = given.get(name).and_then(|position| u16::try_from(*position).ok());
        }
        Ok(record)
    }

    /// The names of all attributes, by their order of creation if it is kept. Shards have no order: then those are sorted.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`], [`LayoutError::ShardNotLoaded`].
    pub fn attribute_names(&self) -> Result<Vec<Name>> {
        let mut found: Vec<(&String, &Value)> = self.entries(LinksOrAttributes::Attributes)?.collect();
        let is_ordered = self.keeps_order(LinksOrAttributes::Attributes);
        let given = self.given_positions(LinksOrAttributes::Attributes)?;
        if is_ordered {
            found.sort_by_key(|(name, attribute)| stored_order(attribute).or_else(|| given.get(*name).copied()));
        } else if self.is_sharded(LinksOrAttributes::Attributes) {
            found.sort_by_key(|(name, _)| *name);
        }
        Ok(found.into_iter().map(|(name, _)| Name::from(name.as_str())).collect())
    }

    /// Sets an attribute, which keeps its position in the order of creation if it was there. Now is in seconds.
    ///
    /// # Errors
    /// [`LayoutError::Unsupported`], [`LayoutError::Encode`].
    pub fn set_attribute(&mut self, name: &Name, record: &AttributeContent, now: f64) -> Result<()> {
        let text = name_text(name)?.to_owned();
        let full = || LayoutError::Unsupported("the order of more than 65536 attributes");
        let mut record = AttributeContent { creation_order: None, ..record.clone() };
        record.to_json(self.domain, now)?;
        let old = self.entry(LinksOrAttributes::Attributes, &text)?.map(|old| (stored_order(old), created(old)));
        let (position, time) = match old {
            // It stays where it was, also in the order of the service.
            Some((position, time)) if self.keeps_order(LinksOrAttributes::Attributes) => (position, time),
            Some((position, _)) => (position, now),
            None => {
                let next = self.new_position(LinksOrAttributes::Attributes)?;
                next.map_or(Ok(0), u16::try_from).map_err(|_| full())?;
                self.take_position(LinksOrAttributes::Attributes, now)?
            }
        };
        record.creation_order = position.map(u16::try_from).transpose().map_err(|_| full())?;
        let json = record.to_json(self.domain, time)?;
        self.put_entry(LinksOrAttributes::Attributes, text, json)
    }

    /// Takes an attribute away, and says whether it was there.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`].
    pub fn remove_attribute(&mut self, name: &Name) -> Result<bool> {
        name.as_str().map_or(Ok(false), |name| self.remove_entry(LinksOrAttributes::Attributes, name))
    }

    /// The type of a committed type.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn datatype(&self) -> Result<Datatype> {
        Ok(get_type(&self.members, self.domain)?.datatype)
    }
}
