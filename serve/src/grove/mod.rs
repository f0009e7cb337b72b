//! h5grove's API: what h5web and jupyterlab-h5web ask for.

mod data;
mod dtype;
mod formats;
mod json_text;
mod links;
mod meta;
mod numeric;
mod read_fault;
mod resolved_entity;
mod selection;
mod stats;

use std::sync::Arc;

use h5live::model::Layout;
use h5live::{Dataset, File, Object};

use crate::answer::Answer;
use crate::catalog::Place;
use crate::fault::Fault;
use crate::query::Query;
use crate::sessions::FileSession;
use crate::state::AppState;
use links::LinkResolution;
pub(crate) use meta::attributes_of;
use resolved_entity::{Entity, ResolvedEntity};

/// The path that is meant if none is given.
const ROOT: &str = "/";
/// The longest text of a value that is looked at as a whole.
const MAX_TEXT_BYTES: u64 = 64 << 10;

/// The file of a request, open.
struct Opened {
    session: Arc<FileSession>,
    place: Place,
    path: String,
    publication: Option<u64>,
}

impl Opened {
    fn of(state: &AppState, query: &Query) -> Result<Self, Fault> {
        let place = state.catalog.find_store(query.require("file")?)?;
        let session = state.sessions.open_or_refresh(&place)?;
        // Before anything else is looked at: what was published then is all there.
        let publication = session.file.publication_count().ok();
        Ok(Opened { session, place, path: query.get("path").unwrap_or(ROOT).to_owned(), publication })
    }

    fn file(&self) -> &File {
        &self.session.file
    }

    fn find(&self, links: LinkResolution) -> Result<ResolvedEntity, Fault> {
        resolved_entity::find(self.file(), &self.path, links, self.place.base_name())
    }

    fn object(&self) -> Result<Object, Fault> {
        match self.find(LinkResolution::OnlyValid)?.entity {
            Entity::Object(object) => Ok(object),
            _ => Err(Fault::unprocessable(format!("{} is a link that leads to no object", self.path))),
        }
    }

    fn dataset(&self) -> Result<Dataset, Fault> {
        match self.object()? {
            Object::Dataset(dataset) => {
                // The extent of a virtual dataset follows from its sources, which nothing else takes up.
                if matches!(dataset.spec()?.layout, Layout::Virtual(_)) {
                    dataset.refresh()?;
                }
                Ok(dataset)
            }
            _ => Err(Fault::unprocessable(format!("{} is not a dataset", self.path))),
        }
    }

    fn answer(&self, answer: Answer) -> Answer {
        Answer { publication: self.publication, ..answer }
    }
}

/// Values of an attribute as they are in JSON.
///
/// # Errors
/// If they are too many.
pub(crate) fn values_text(values: &[h5live::Value], attribute: &h5live::Attribute) -> Result<String, Fault> {
    let mut text = json_text::JsonText::new(MAX_TEXT_BYTES);
    text.push_values(values, attribute.datatype(), attribute.shape())?;
    text.finish()
}

/// `GET /meta`: what an object, or a link, is.
///
/// # Errors
/// What the client is told.
pub(crate) fn meta(state: &AppState, query: &Query) -> Result<Answer, Fault> {
    let links = LinkResolution::from_query(query)?;
    let opened = Opened::of(state, query)?;
    let found = opened.find(links)?;
    Ok(opened.answer(Answer::json(&meta::entity_json(&found, 1)?)))
}

/// `GET /attr`: values of attributes.
///
/// # Errors
/// What the client is told.
pub(crate) fn attr(state: &AppState, query: &Query) -> Result<Answer, Fault> {
    let opened = Opened::of(state, query)?;
    let object = opened.object()?;
    let names: Vec<_> = query.all("attr_keys").collect();
    let text = meta::attribute_values(&object, &names, state.memory.max_answer_bytes())?;
    Ok(opened.answer(Answer::new(crate::answer::JSON, text.into_bytes())))
}

/// `GET /data`: elements.
///
/// # Errors
/// What the client is told.
pub(crate) fn data(state: &AppState, query: &Query) -> Result<Answer, Fault> {
    let request = data::DataRequest::from_query(query)?;
    let opened = Opened::of(state, query)?;
    Ok(opened.answer(request.answer(&opened.dataset()?, &state.memory)?))
}

/// `GET /stats`: numbers about elements.
///
/// # Errors
/// What the client is told.
pub(crate) fn stats(state: &AppState, query: &Query) -> Result<Answer, Fault> {
    let opened = Opened::of(state, query)?;
    let dataset = opened.dataset()?;
    Ok(opened.answer(Answer::json(&stats::stats_json(&dataset, query.get("selection"), &state.memory)?)))
}

/// `GET /paths`: all paths below a group.
///
/// # Errors
/// What the client is told.
pub(crate) fn paths(state: &AppState, query: &Query) -> Result<Answer, Fault> {
    let links = LinkResolution::from_query(query)?;
    let opened = Opened::of(state, query)?;
    let found = opened.find(links)?;
    let text = resolved_entity::paths_json(&found, links, opened.place.base_name(), state.memory.max_answer_bytes())?;
    Ok(opened.answer(Answer::new(crate::answer::JSON, text.into_bytes())))
}
