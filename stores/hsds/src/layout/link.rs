//! Links as JSON ("Links").

use h5live_model::{Link, LinkTarget, Name};
use serde_json::{Value, json};

use super::error::{LayoutError, Result};
use super::extras::EXTRAS;
use super::id::DomainId;
use super::json::{Members, set_member};

const HARD: &str = "H5L_TYPE_HARD";
const SOFT: &str = "H5L_TYPE_SOFT";
const EXTERNAL: &str = "H5L_TYPE_EXTERNAL";

/// A name as text.
///
/// # Errors
/// [`LayoutError::Unsupported`] if it is no UTF-8.
pub fn name_text(name: &Name) -> Result<&str> {
    name.as_str().ok_or(LayoutError::Unsupported("a name that is no UTF-8"))
}

/// The JSON of a link that is made now (seconds). `order` is its position in the order of creation, if that is kept.
///
/// # Errors
/// [`LayoutError::Unsupported`].
pub fn link_to_json(domain: DomainId, target: &LinkTarget, order: Option<i64>, now: f64) -> Result<Value> {
    let mut found = match target {
        LinkTarget::Hard(id) => json!({"class": HARD, "id": domain.object_id_text(*id), "created": now}),
        LinkTarget::Soft(path) => json!({"class": SOFT, "h5path": name_text(path)?, "created": now}),
        LinkTarget::External { file, path } => json!({
            "class": EXTERNAL, "h5path": name_text(path)?, "h5domain": name_text(file)?, "created": now,
        }),
        LinkTarget::UserDefined { .. } => return Err(LayoutError::Unsupported("a user-defined link")),
    };
    if let Some(order) = order {
        set_member(&mut found, EXTRAS, json!({"order": order}));
    }
    Ok(found)
}

/// The link that a JSON describes.
///
/// # Errors
/// [`LayoutError::MissingOrInvalidMember`], [`LayoutError::InvalidId`].
pub fn link_from_json(domain: DomainId, name: &str, json: &Value) -> Result<Link> {
    const NO_LINK: LayoutError = LayoutError::MissingOrInvalidMember { member: "links", expected: "a list of links" };
    let members = json.as_object().ok_or(NO_LINK)?;
    let text = |member: &str| members.get(member).and_then(Value::as_str);
    let path = || text("h5path").ok_or(LayoutError::MissingOrInvalidMember { member: "h5path", expected: "a path" });
    let target = match text("class").ok_or(NO_LINK)? {
        HARD => LinkTarget::Hard(hard_target(domain, members)?),
        SOFT => LinkTarget::Soft(path()?.into()),
        EXTERNAL => {
            let file = text("h5domain").or(text("domain")).or(text("file"));
            let file = file.ok_or(LayoutError::MissingOrInvalidMember { member: "h5domain", expected: "a domain" })?;
            LinkTarget::External { file: file.into(), path: path()?.into() }
        }
        _ => return Err(NO_LINK),
    };
    let order = members.get(EXTRAS).and_then(|extras| extras.get("order")).and_then(Value::as_i64);
    Ok(Link { name: name.into(), target, creation_order: order })
}

fn hard_target(domain: DomainId, members: &Members) -> Result<h5live_model::ObjectId> {
    let text = members.get("id").and_then(Value::as_str);
    domain
        .parse_own_object_id(text.ok_or(LayoutError::MissingOrInvalidMember { member: "id", expected: "an identity" })?)
}

/// The identity of the object to which a link leads; `None` if it is not a hard link.
pub fn hard_target_of(domain: DomainId, json: &Value) -> Option<h5live_model::ObjectId> {
    let members = json.as_object().filter(|members| members.get("class").and_then(Value::as_str) == Some(HARD))?;
    hard_target(domain, members).ok()
}

#[cfg(test)]
mod tests {
    use h5live_model::ObjectKind;

    use super::super::id::object_id;
    use super::*;

    #[test]
    fn links_come_back_from_their_json() {
        let domain = DomainId(7);
        let targets = [
            LinkTarget::Hard(object_id(ObjectKind::Dataset, 5)),
            LinkTarget::Soft("/a/b".into()),
            LinkTarget::External { file: "/home/other".into(), path: "/x".into() },
        ];
        for (order, target) in targets.into_iter().enumerate() {
            let order = (order > 0).then_some(order as i64);
            let json = link_to_json(domain, &target, order, 1.5).unwrap();
            let link = Link { name: "n".into(), target, creation_order: order };
            assert_eq!(link_from_json(domain, "n", &json).unwrap(), link);
        }
        let of_the_document = json!({"class": "H5L_TYPE_EXTERNAL", "h5path": "/x", "domain": "/d"});
        assert!(link_from_json(domain, "n", &of_the_document).is_ok());
        for bad in
            [json!(1), json!({}), json!({"class": "H5L_TYPE_HARD", "id": "g-1"}), json!({"class": "H5L_TYPE_SOFT"})]
        {
            assert!(link_from_json(domain, "n", &bad).is_err(), "{bad}");
        }
    }
}
