//! The order in which links and attributes were created.
//!
//! The service has the property `CreateOrder`, for the links and the attributes of an object, and sorts by the times in `created`. What
//! it has no room for is in `h5live`: which of both are ordered, and the positions. Entries without a position, which the service has
//! made, come after those that have one, by their times.

use std::collections::HashMap;
use std::sync::Arc;

use h5live_model::{CreationOrder, LinkOrAttributeStorageSpec, ObjectKind};
use serde_json::{Value, json};

use super::document::ObjectDocument;
use super::entry_storage::{
    CREATE_ORDER, CREATION, GivenPositions, created, entry_storage_from_json, is_set, is_tracked, stored_order,
};
use super::error::Result;
use super::extras::{h5live_member, set_h5live_member};
use super::json::object_member_or_insert;
use super::shard_id::LinksOrAttributes;

/// The time of the newest entry whose position is kept.
const LAST_CREATED: &str = "last_created";
/// The least difference between two times of entries (seconds).
const TICK: f64 = 1e-6;

impl ObjectDocument {
    /// How links, or attributes, are kept.
    pub(super) fn storage(&self, class: LinksOrAttributes) -> LinkOrAttributeStorageSpec {
        let has_entries = class == LinksOrAttributes::Attributes || self.kind() == ObjectKind::Group;
        match h5live_member(&self.members, class.json_member()) {
            Some(exact) => entry_storage_from_json(exact),
            None if has_entries
                && is_set(self.members.get(CREATION).and_then(|creation| creation.get(CREATE_ORDER))) =>
            {
                LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() }
            }
            None => LinkOrAttributeStorageSpec::default(),
        }
    }

    /// Whether the order of links, or of attributes, is kept.
    pub(super) fn keeps_order(&self, class: LinksOrAttributes) -> bool {
        is_tracked(self.storage(class))
    }

    fn next_position(&self, class: LinksOrAttributes) -> u64 {
        h5live_member(&self.members, class.counter()).and_then(Value::as_u64).unwrap_or_default()
    }

    /// The positions of the entries in the document that the service has made, if the order is kept.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`](super::LayoutError::MissingOrInvalidMember).
    pub(super) fn given_positions(&self, class: LinksOrAttributes) -> Result<Arc<HashMap<String, u64>>> {
        let known = match class {
            LinksOrAttributes::Links => &self.given.links,
            LinksOrAttributes::Attributes => &self.given.attributes,
        };
        if let Some(known) = known.get() {
            return Ok(known.clone());
        }
        let own = self.own_entries(class)?.filter(|_| self.keeps_order(class));
        let mut found: Vec<(f64, &String)> = own
            .into_iter()
            .flatten()
            .filter(|(_, entry)| stored_order(entry).is_none())
            .map(|(name, entry)| (created(entry), name))
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
        let positions = found.into_iter().map(|(_, name)| name.clone()).zip(self.next_position(class)..).collect();
        Ok(known.get_or_init(|| Arc::new(positions)).clone())
    }

    /// The position that a new entry would have, if the order is kept.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`](super::LayoutError::MissingOrInvalidMember).
    pub(super) fn new_position(&self, class: LinksOrAttributes) -> Result<Option<u64>> {
        match self.keeps_order(class) {
            true => Ok(Some(self.next_position(class).saturating_add(self.given_positions(class)?.len() as u64))),
            false => Ok(None),
        }
    }

    /// The position of a new entry, if the order is kept, and its time: now (seconds), or a little later, so that the service sees the
    /// same order. Entries of the service get their positions before.
    ///
    /// # Errors
    /// [`LayoutError::MissingOrInvalidMember`](super::LayoutError::MissingOrInvalidMember).
    pub(super) fn take_position(&mut self, class: LinksOrAttributes, now: f64) -> Result<(Option<u64>, f64)> {
        let Some(position) = self.new_position(class)? else { return Ok((None, now)) };
        let mut last = h5live_member(&self.members, LAST_CREATED).and_then(Value::as_f64).unwrap_or_default();
        let given = self.given_positions(class)?;
        if !given.is_empty() {
            let own = object_member_or_insert(&mut self.members, class.json_member())?;
            for (name, position) in &*given {
                if let Some(entry) = own.get_mut(name) {
                    last = last.max(created(entry));
                    if let Some(members) = entry.as_object_mut() {
                        set_h5live_member(members, "order", json!(position));
                    }
                }
            }
        }
        self.given = GivenPositions::default();
        let time = if now > last { now } else { last + TICK };
        set_h5live_member(&mut self.members, class.counter(), json!(position.saturating_add(1)));
        set_h5live_member(&mut self.members, LAST_CREATED, json!(time));
        Ok((Some(position), time))
    }
}

#[cfg(test)]
mod tests {
    use h5live_model::{GroupSpec, LinkTarget, Name, ObjectKind, ObjectSpec};

    use super::super::id::{DomainId, object_id};
    use super::*;

    fn order_of(document: &ObjectDocument) -> Vec<String> {
        let mut links: Vec<_> = document.links().unwrap().map(Result::unwrap).collect();
        links.sort_by_key(|link| link.creation_order.expect("the order is kept"));
        links.into_iter().map(|link| link.name.to_string()).collect()
    }

    fn add(document: &mut ObjectDocument, name: &str, now: f64) {
        document.put_link(&Name::from(name), &LinkTarget::Soft("/x".into()), now).unwrap();
    }

    /// The order in which the service lists the links.
    fn order_of_service(document: &ObjectDocument) -> Vec<String> {
        let links = document.members["links"].as_object().unwrap();
        let mut found: Vec<(f64, &String)> = links.iter().map(|(name, link)| (created(link), name)).collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.into_iter().map(|(_, name)| name.clone()).collect()
    }

    #[test]
    fn the_service_lists_links_in_the_order_in_which_they_were_made_here() {
        let links =
            LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() };
        let id = object_id(ObjectKind::Group, 5);
        let spec: ObjectSpec = GroupSpec { link_storage: links }.into();
        let mut document = ObjectDocument::new(DomainId(7), id, &spec, None, 1.0).unwrap();
        // Several at one moment, and after the clock was set back.
        for (name, now) in [("z", 10.0), ("a", 10.0), ("m", 9.0), ("b", 20.0)] {
            add(&mut document, name, now);
        }
        assert_eq!(order_of(&document), ["z", "a", "m", "b"]);
        assert_eq!(order_of_service(&document), ["z", "a", "m", "b"]);
        assert_eq!(document.members["creationProperties"]["CreateOrder"], 1);
        assert_eq!(document.spec().unwrap(), spec, "the order of attributes is not kept");
    }

    #[test]
    fn links_of_the_service_have_the_order_of_their_times() {
        let json = json!({
            "id": "g-00000000-00000007-0000-000000-000005", "attributes": {}, "creationProperties": {"CreateOrder": true},
            "links": {
                "b": {"class": "H5L_TYPE_SOFT", "h5path": "/x", "created": 3.0},
                "c": {"class": "H5L_TYPE_SOFT", "h5path": "/x", "created": 1.0},
                "a": {"class": "H5L_TYPE_SOFT", "h5path": "/x", "created": 2.0},
            },
        });
        let id = object_id(ObjectKind::Group, 5);
        let mut document = ObjectDocument::parse(DomainId(7), id, json.to_string().as_bytes()).unwrap();
        assert_eq!(order_of(&document), ["c", "a", "b"]);
        assert_eq!(document.link(&"a".into()).unwrap().unwrap().creation_order, Some(1));
        // The clock of this machine is behind that of the service.
        add(&mut document, "0", 2.5);
        assert_eq!(order_of(&document), ["c", "a", "b", "0"]);
        assert_eq!(order_of_service(&document), ["c", "a", "b", "0"]);
        // The service adds one.
        let later = json!({"class": "H5L_TYPE_SOFT", "h5path": "/x", "created": 2.0});
        document.put_entry(LinksOrAttributes::Links, "1".to_owned(), later).unwrap();
        assert_eq!(order_of(&document), ["c", "a", "b", "0", "1"]);
        for unset in [json!(0), json!(false), json!("0"), json!("")] {
            document.members.insert(CREATION.to_owned(), json!({"CreateOrder": unset}));
            assert!(!document.keeps_order(LinksOrAttributes::Links), "{unset}");
        }
    }
}
