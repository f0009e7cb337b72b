//! Links as HSDS describes them.

use std::collections::HashMap;

use h5live::model::{Link, LinkTarget, ObjectKind};
use h5live::{Group, Object, StoreErrorKind};
use serde_json::{Value as Json, json};

use super::call::Call;
use super::faults::not_found;
use super::json_members::{JsonMembers, list_text};
use super::object_ids::collection_name;
use super::object_parts::objects_below;
use super::object_times::ObjectTimes;
use super::opened_domain::OpenedDomain;
use super::paging::Paging;
use crate::config::ServerLimits;
use crate::fault::Fault;

/// A link that HSDS knows.
#[derive(Debug, Clone)]
pub(super) struct ShownLink {
    pub title: String,
    order: Option<i64>,
    target: ShownTarget,
}

#[derive(Debug, Clone)]
enum ShownTarget {
    Hard(ObjectKind, String),
    Soft(String),
    External { file: String, path: String },
}

/// The links of a group, by name or in the order in which they were made. Links that HSDS does not know are left out: those
/// whose class only their user knows, and those to maps.
pub(super) fn links_of(domain: &OpenedDomain, group: &Group, is_ordered: bool) -> Result<Vec<ShownLink>, Fault> {
    let listed = group.links()?;
    let shown = listed.iter().map(|link| ShownLink::of(domain, group, link)).filter_map(Result::transpose);
    let mut links = shown.collect::<Result<Vec<_>, Fault>>()?;
    links.sort_by(|a, b| a.title.cmp(&b.title));
    if is_ordered {
        let times = ObjectTimes::of(domain, &Object::Group(group.clone()))?;
        let time = |link: &ShownLink| times.link_creation_time(&link.title, link.order);
        links.sort_by(|a, b| a.order.cmp(&b.order).then_with(|| time(a).total_cmp(&time(b))));
    }
    Ok(links)
}

/// Looks for links of a group by their titles.
struct LinksByTitle<'a> {
    domain: &'a OpenedDomain,
    group: &'a Group,
    /// All links, listed when a title is looked for that is not a name.
    all: Option<HashMap<String, ShownLink>>,
}

impl<'a> LinksByTitle<'a> {
    fn new(domain: &'a OpenedDomain, group: &'a Group) -> Self {
        LinksByTitle { domain, group, all: None }
    }

    fn find(&mut self, title: &str) -> Result<ShownLink, Fault> {
        let found = match self.group.link(title)? {
            Some(link) => ShownLink::of(self.domain, self.group, &link)?,
            // A name that is not UTF-8 has a title in which something else stands for some of its bytes.
            None if title.contains(char::REPLACEMENT_CHARACTER) => self.all()?.get(title).cloned(),
            None => None,
        };
        found.ok_or_else(|| not_found(format!("There is no link {title:?}")))
    }

    fn all(&mut self) -> Result<&HashMap<String, ShownLink>, Fault> {
        if self.all.is_none() {
            // Of several links with one title, the first one counts.
            let links = links_of(self.domain, self.group, false)?.into_iter().rev();
            self.all = Some(links.map(|link| (link.title.clone(), link)).collect());
        }
        Ok(self.all.get_or_insert_default())
    }
}

impl ShownLink {
    /// `None` for a link that HSDS does not know.
    fn of(domain: &OpenedDomain, group: &Group, link: &Link) -> Result<Option<Self>, Fault> {
        let target = match &link.target {
            LinkTarget::Hard(id) => {
                let kind = match group.file().store().kind(*id) {
                    Ok(kind) => kind,
                    // Who opens the object is told of the damage; who lists the group has the other links.
                    Err(error) if error.store_error_kind() == Some(&StoreErrorKind::Damaged) => ObjectKind::Group,
                    Err(error) => return Err(Fault::of_store(&error)),
                };
                domain.ids.format_id(kind, *id).map(|text| ShownTarget::Hard(kind, text))
            }
            LinkTarget::Soft(path) => Some(ShownTarget::Soft(path.to_string())),
            LinkTarget::External { file, path } => {
                Some(ShownTarget::External { file: file.to_string(), path: path.to_string() })
            }
            _ => None,
        };
        Ok(target.map(|target| ShownLink { title: link.name.to_string(), order: link.creation_order, target }))
    }

    fn members(&self, times: &ObjectTimes) -> Json {
        let mut json = match &self.target {
            ShownTarget::Hard(_, id) => json!({ "class": "H5L_TYPE_HARD", "id": id }),
            ShownTarget::Soft(path) => json!({ "class": "H5L_TYPE_SOFT", "h5path": path }),
            // h5pyd before 1.0 looks for `h5domain`.
            ShownTarget::External { file, path } => {
                json!({ "class": "H5L_TYPE_EXTERNAL", "h5path": path, "file": file, "h5domain": file })
            }
        };
        // Clients sort by this time.
        json["created"] = json!(times.link_creation_time(&self.title, self.order));
        json
    }

    /// As in a list.
    fn listed(&self, call: Option<(&Call, &str)>, times: &ObjectTimes) -> Json {
        let mut json = self.members(times);
        json["title"] = self.title.as_str().into();
        let Some((call, group)) = call else { return json };
        if let ShownTarget::Hard(kind, id) = &self.target {
            json["collection"] = collection_name(*kind).into();
            json["target"] = call.href(&format!("/{}/{id}", collection_name(*kind))).into();
        }
        json["href"] = call.href(&format!("/groups/{group}/links/{}", self.title)).into();
        json
    }
}

/// Links as members of an object, by their names.
pub(super) fn members_text(links: &[ShownLink], times: &ObjectTimes) -> String {
    let mut json = JsonMembers::default();
    for link in links {
        json.push_member(&link.title, link.members(times));
    }
    json.finish()
}

fn times_of(domain: &OpenedDomain, group: &Group) -> Result<ObjectTimes, Fault> {
    ObjectTimes::of(domain, &Object::Group(group.clone()))
}

/// `GET /groups/ID/links`.
pub(super) fn list(domain: &OpenedDomain, call: &Call, limits: &ServerLimits) -> Result<String, Fault> {
    let id = call.object_id()?;
    let (group, paging) = (domain.group(id)?, Paging::of(call)?);
    let own = format!("/groups/{id}");
    let mut json = JsonMembers::default();
    if call.flag("follow_links") {
        json.push_member_raw_json("links", &below_text(domain, call, &group, &paging, limits)?);
    } else {
        let links = paging.filter_then_page(links_of(domain, &group, call.flag("CreateOrder"))?, |link| &link.title)?;
        let times = times_of(domain, &group)?;
        let listed = links.iter().map(|link| link.listed(Some((call, id)), &times).to_string());
        json.push_member_raw_json("links", &list_text(listed));
    }
    json.push_member("hrefs", call.hrefs(&[("self", &format!("{own}/links")), ("home", "/"), ("owner", &own)]));
    Ok(json.finish())
}

/// The links of a group and of all groups below it, by their identities.
fn below_text(
    domain: &OpenedDomain,
    call: &Call,
    group: &Group,
    paging: &Paging<'_>,
    limits: &ServerLimits,
) -> Result<String, Fault> {
    let mut json = JsonMembers::default();
    for object in objects_below(domain, group, limits)? {
        let Object::Group(group) = &object else { continue };
        let times = times_of(domain, group)?;
        let links = paging.page_without_marker(links_of(domain, group, call.flag("CreateOrder"))?, |link| &link.title);
        let listed = links.iter().map(|link| link.listed(None, &times).to_string());
        json.push_member_raw_json(&domain.ids.format_id_of(&object).unwrap_or_default(), &list_text(listed));
        if json.text_length() as u64 > limits.max_answer_bytes {
            return Err(Fault::answer_too_large(json.text_length() as u64, limits.max_answer_bytes));
        }
    }
    Ok(json.finish())
}

/// `GET /groups/ID/links/TITLE`.
pub(super) fn one(domain: &OpenedDomain, call: &Call) -> Result<String, Fault> {
    let (id, title) = (call.object_id()?, call.link_or_attribute_name());
    let group = domain.group(id)?;
    let link = LinksByTitle::new(domain, &group).find(title)?;
    let times = times_of(domain, &group)?;
    let mut found = link.members(&times);
    let time = found.as_object_mut().and_then(|found| found.remove("created")).unwrap_or_default();
    found["title"] = title.into();
    let own = format!("/groups/{id}");
    let address = format!("{own}/links/{title}");
    let mut hrefs = vec![("self", address), ("home", "/".to_owned()), ("owner", own)];
    if let ShownTarget::Hard(kind, target) = &link.target {
        found["collection"] = collection_name(*kind).into();
        hrefs.push(("target", format!("/{}/{target}", collection_name(*kind))));
    }
    let hrefs: Vec<_> = hrefs.iter().map(|(rel, path)| (*rel, path.as_str())).collect();
    Ok(json!({ "link": found, "created": time, "lastModified": time, "hrefs": call.hrefs(&hrefs) }).to_string())
}

/// `POST /groups/ID/links`: links with these names, of one group or of several.
pub(super) fn named(domain: &OpenedDomain, call: &Call) -> Result<String, Fault> {
    let groups = super::named_entries::named_entries(call, "titles", "grp_ids")?;
    let links_named = |id: &str, titles: &Option<Vec<String>>| {
        let group = domain.group(id)?;
        let times = times_of(domain, &group)?;
        let Some(titles) = titles else {
            let links = links_of(domain, &group, call.flag("CreateOrder"))?;
            let all = Paging::of(call)?.filter_then_page(links, |link| &link.title)?;
            return Ok(list_text(all.iter().map(|link| link.listed(None, &times).to_string())));
        };
        let mut links = LinksByTitle::new(domain, &group);
        let found = titles.iter().map(|title| Ok(links.find(title)?.listed(None, &times).to_string()));
        Ok::<_, Fault>(list_text(found.collect::<Result<Vec<_>, Fault>>()?))
    };
    super::named_entries::entries_text("links", &groups, links_named)
}
