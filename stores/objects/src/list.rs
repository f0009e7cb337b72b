//! Listing objects, page by page.

use std::borrow::Cow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use futures::StreamExt;
use object_store::ListResult;
use object_store::list::PaginatedListOptions;

use crate::client::{ClientState, ObjectClient};
use crate::counts::RequestKind;
use crate::error::{ObjectError, ObjectErrorKind, Result};
use crate::runtime;
use crate::tag::ObjectMeta;

/// Objects of a page, where the library gives no pages.
const PAGE_OBJECTS: usize = 1000;
/// Pages that wait to be handed on.
const WAITING_PAGES: usize = 1;

/// What a listing finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListEntry {
    /// An object.
    Object {
        /// Its key.
        key: String,
        /// What is known of it. Some stores give no tag here.
        meta: ObjectMeta,
    },
    /// What the keys of one or more objects begin with, up to the next slash, without the slash: a folder.
    Prefix(String),
}

/// A page of a listing, or why there is none. `None` comes last.
type Page = Result<Option<Vec<ListEntry>>>;

impl ObjectClient {
    /// Lists all objects whose keys begin with `folder_prefix` and a slash; all of them, if it is empty. `each` is called on
    /// this thread, and returns whether to go on. The order is the store's own. An object that comes or goes meanwhile
    /// may be listed or not. At most a few pages of 1,000 objects are in memory, except of local folders and of servers
    /// that have no pages.
    ///
    /// # Errors
    /// Those of the object store.
    pub fn list_objects_recursively(&self, folder_prefix: &str, each: &mut dyn FnMut(ListEntry) -> bool) -> Result<()> {
        self.list_pages(folder_prefix, false, each)
    }

    /// Lists the objects and the prefixes that lie directly below a prefix, as the content of a folder.
    ///
    /// # Errors
    /// As [`ObjectClient::list_objects_recursively`].
    pub fn list_children(&self, folder_prefix: &str, each: &mut dyn FnMut(ListEntry) -> bool) -> Result<()> {
        self.list_pages(folder_prefix, true, each)
    }

    fn list_pages(&self, prefix: &str, is_flat: bool, each: &mut dyn FnMut(ListEntry) -> bool) -> Result<()> {
        let (sender, receiver): (_, Receiver<Page>) = sync_channel(WAITING_PAGES);
        let (state, prefix) = (self.0.clone(), prefix.to_owned());
        let name = state.object_display_name(&prefix);
        let work = async move {
            let prefix = prefix.trim_end_matches('/');
            let listed = match state.optional_interfaces.pages.is_some() {
                true => state.list_by_pages(prefix, is_flat, &sender).await,
                false => state.list_at_once(prefix, is_flat, &sender).await,
            };
            let _ = send(&sender, listed.map(|()| None)).await;
        };
        let lost = |cause: &str| ObjectError::new(ObjectErrorKind::Other, name.clone(), cause);
        runtime::spawn(work).map_err(|error| lost(&error.to_string()))?;
        // Without a receiver, the work ends by itself.
        for page in receiver {
            let Some(entries) = page? else { return Ok(()) };
            if !entries.into_iter().all(&mut *each) {
                return Ok(());
            }
        }
        Err(lost("the listing has ended before its end"))
    }
}

/// Hands a page on; `false` if nobody wants it. The thread is not held meanwhile.
async fn send(sender: &SyncSender<Page>, page: Page) -> bool {
    let sender = sender.clone();
    let sent = tokio::task::spawn_blocking(move || sender.send(page).is_ok());
    sent.await.unwrap_or(false)
}

fn entries(listed: ListResult) -> Vec<ListEntry> {
    let prefixes = listed.common_prefixes.into_iter().map(|prefix| ListEntry::Prefix(prefix.to_string()));
    let objects = listed.objects.iter().map(entry);
    prefixes.chain(objects).collect()
}

fn entry(meta: &object_store::ObjectMeta) -> ListEntry {
    ListEntry::Object { key: meta.location.to_string(), meta: ObjectMeta::from(meta) }
}

impl ClientState {
    async fn list_by_pages(&self, prefix: &str, is_flat: bool, sender: &SyncSender<Page>) -> Result<()> {
        let Some(pages) = &self.optional_interfaces.pages else { return Ok(()) };
        let begin = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let mut token = None;
        loop {
            let options = PaginatedListOptions {
                delimiter: is_flat.then_some(Cow::Borrowed("/")),
                page_token: token.take(),
                ..PaginatedListOptions::default()
            };
            let list =
                |_| pages.list_paginated(Some(begin.as_str()).filter(|begin| !begin.is_empty()), options.clone());
            let page = self.request_with_retries(RequestKind::List, |_| false, list).await;
            let page = page.map_err(|failure| self.error(prefix, &failure))?;
            token = page.page_token;
            if !send(sender, Ok(Some(entries(page.result)))).await || token.is_none() {
                return Ok(());
            }
        }
    }

    async fn list_at_once(&self, prefix: &str, is_flat: bool, sender: &SyncSender<Page>) -> Result<()> {
        let path = self.parse_key(prefix)?;
        let path = Some(path).filter(|path| !path.as_ref().is_empty());
        if is_flat {
            let list = |_| self.store.list_with_delimiter(path.as_ref());
            let listed = self.request_with_retries(RequestKind::List, |_| false, list).await;
            let listed = listed.map_err(|failure| self.error(prefix, &failure))?;
            send(sender, Ok(Some(entries(listed)))).await;
            return Ok(());
        }
        self.counters.record_attempt(RequestKind::List, false);
        let mut objects = self.store.list(path.as_ref()).chunks(PAGE_OBJECTS);
        while let Some(page) = objects.next().await {
            let page: object_store::Result<Vec<ListEntry>> =
                page.into_iter().map(|object| object.map(|meta| entry(&meta))).collect();
            let page = page.map_err(|error| ObjectError::of_library(&self.object_display_name(prefix), &error, 1))?;
            if !send(sender, Ok(Some(page))).await {
                return Ok(());
            }
        }
        Ok(())
    }
}
