//! A search for the page, over the names of files and objects and over attributes: `GET /api/search?text=`.

use std::time::{Duration, Instant};

use h5live::model::Dataspace;
use h5live::{Attribute, Object, WalkItem};
use serde_json::{Value as Json, json};

use crate::catalog::{Named, Place};
use crate::fault::Fault;
use crate::grove;
use crate::listing;
use crate::query::Query;
use crate::state::AppState;

/// Hits of one answer.
const MAX_HITS: usize = 200;
/// Files and folders that one search looks at.
const MAX_PLACES: usize = 2000;
/// How long one search looks.
const MAX_TIME: Duration = Duration::from_secs(3);
/// Elements of an attribute whose value is looked at.
const MAX_VALUE_ELEMENTS: u64 = 64;
/// Characters of a value that are shown.
const MAX_SHOWN_CHARS: usize = 120;

/// The answer: `hits`, each with its `file`, and for what is in a file `path`, `kind`, and of an attribute its name and `value`.
///
/// # Errors
/// If there is no text, or what is to be searched is not there.
pub(crate) fn search(state: &AppState, query: &Query) -> Result<Json, Fault> {
    let text = query.require("text")?.trim().to_lowercase();
    if text.is_empty() {
        return Err(Fault::unprocessable("The parameter text is empty"));
    }
    let mut search = Search {
        state,
        text,
        hits: Vec::new(),
        unread: 0,
        places_left: MAX_PLACES,
        until: Instant::now() + MAX_TIME,
        is_cut: false,
    };
    match query.get("file") {
        Some(name) => search.look_into(&state.catalog.find_store(name)?)?,
        None => search.look_below(query.get("folder").unwrap_or_default())?,
    }
    Ok(json!({ "hits": search.hits, "unread": search.unread, "is_cut": search.is_cut }))
}

struct Search<'a> {
    state: &'a AppState,
    /// In small letters.
    text: String,
    hits: Vec<Json>,
    /// Files that could not be read.
    unread: usize,
    places_left: usize,
    until: Instant,
    is_cut: bool,
}

impl Search<'_> {
    fn matches(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.text)
    }

    /// Whether there is no room or no time for more.
    fn is_over(&mut self) -> bool {
        self.is_cut |= self.hits.len() >= MAX_HITS || self.places_left == 0 || Instant::now() >= self.until;
        self.is_cut
    }

    /// Looks at everything below a folder: first at names, then into files.
    fn look_below(&mut self, folder: &str) -> Result<(), Fault> {
        let mut stores = Vec::new();
        let mut folders = vec![(folder.to_owned(), self.state.catalog.find(folder)?)];
        while let Some((name, named)) = folders.pop() {
            if self.is_over() {
                break;
            }
            self.places_left -= 1;
            if let Named::Store(place) = named {
                stores.push(place);
                continue;
            }
            // A folder below that cannot be read is as one that is not there.
            let below = listing::named_in(self.state, &name, &named).or_else(|fault| match name == folder {
                true => Err(fault),
                false => Ok(Vec::new()),
            })?;
            for (below, _) in &below {
                if self.matches(below.rsplit('/').next().unwrap_or_default()) {
                    self.hits.push(json!({ "file": below, "kind": "file" }));
                }
            }
            folders.extend(below.into_iter().rev());
        }
        for place in stores {
            if self.is_over() {
                break;
            }
            if self.look_into(&place).is_err() {
                self.unread += 1;
            }
        }
        Ok(())
    }

    /// Looks at the objects of a file, and at their attributes.
    fn look_into(&mut self, place: &Place) -> Result<(), Fault> {
        let file = self.state.sessions.open_unshared(place)?;
        for (n, item) in file.root().walk().enumerate() {
            if n >= self.state.limits.max_objects_per_watch || self.is_over() {
                self.is_cut = true;
                break;
            }
            // What cannot be read of a file is left out.
            let Ok(item) = item else { continue };
            let hit = json!({ "file": place.name, "path": item.path(), "kind": kind_of(&item) });
            if n > 0 && self.matches(item.path().rsplit('/').next().unwrap_or_default()) {
                self.hits.push(hit.clone());
            }
            if let WalkItem::Object(object) = &item {
                self.look_at_attributes(object, &hit);
            }
        }
        Ok(())
    }

    fn look_at_attributes(&mut self, object: &Object, hit: &Json) {
        for attribute in grove::attributes_of(object).unwrap_or_default() {
            if self.is_over() {
                return;
            }
            let (name, value) = (attribute.name().to_string(), value_text(&attribute));
            if self.matches(&name) || self.matches(&value) {
                let mut hit = hit.clone();
                let shown = value.char_indices().nth(MAX_SHOWN_CHARS).map_or(value.len(), |(at, _)| at);
                hit["attribute"] = name.into();
                hit["value"] = value[..shown].into();
                self.hits.push(hit);
            }
        }
    }
}

fn kind_of(item: &WalkItem) -> &'static str {
    match item {
        WalkItem::Object(Object::Group(_)) => "group",
        WalkItem::Object(Object::Dataset(_)) => "dataset",
        WalkItem::Object(Object::Datatype(_)) => "datatype",
        WalkItem::Object(_) => "other",
        _ => "link",
    }
}

/// The value of an attribute as a text: of a text itself, and of other small values as in JSON.
fn value_text(attribute: &Attribute) -> String {
    if matches!(attribute.dataspace(), Dataspace::Null) || attribute.size() > MAX_VALUE_ELEMENTS {
        return String::new();
    }
    match attribute.values().as_deref() {
        Ok([h5live::Value::Text(text)]) => text.trim_end_matches('\0').to_owned(),
        Ok(values) => grove::values_text(values, attribute).unwrap_or_default(),
        Err(_) => String::new(),
    }
}
