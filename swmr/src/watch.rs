//! Waiting for what a writer publishes, by the few bytes of the file that change with it.

mod attention;
mod ears;
mod rhythm;

use std::sync::Arc;
use std::time::Duration;

use h5live_format::Addr;
use h5live_format::messages::{LinkInfo, MessageType};
use h5live_model::{ObjectId, ObjectKind, Result as ModelResult, Wake, Watch};

use self::attention::{Attention, Look};
use self::ears::Ears;
use crate::Result;
use crate::file::kind_of;
use crate::session::Session;

/// Bytes at the start of the superblock that end with its status flags: before version 2, and since.
const OLD_STATUS: usize = 24;
const STATUS: usize = 12;
/// Bytes of a version 2 B-tree's header (the most that there can be), which changes with each of its records.
const BTREE2_HEADER: usize = 64;

/// A part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    at: Addr,
    len: usize,
}

/// Watches objects of a session.
#[derive(Debug)]
pub(crate) struct NativeWatch {
    session: Arc<Session>,
    objects: Vec<ObjectId>,
    places: Places,
    images: Vec<Vec<u8>>,
    status: Vec<u8>,
    /// Whether the places may be others since they were found.
    is_old: bool,
    attention: Attention<Ears>,
}

/// Where the bytes are that change with the objects.
#[derive(Debug, PartialEq, Eq)]
struct Places {
    /// `None` if only looking at the objects tells.
    spans: Option<Vec<Span>>,
    /// They stay where they are.
    fixed: bool,
}

impl NativeWatch {
    /// # Errors
    /// If an object cannot be read.
    pub fn new(session: &Arc<Session>, objects: &[ObjectId]) -> Result<Self> {
        // In this order: what comes after it is heard.
        let attention = Attention::new(Ears::new(&session.lock));
        let status = status(session)?;
        let places = Places::find(session, objects)?;
        let images = places.images(session)?;
        Ok(NativeWatch {
            session: session.clone(),
            objects: objects.to_vec(),
            places,
            images,
            status,
            is_old: false,
            attention,
        })
    }
}

fn image(session: &Session, span: Span) -> Result<Vec<u8>> {
    Ok(session.cache.read_prefix(span.at, span.len)?)
}

fn status(session: &Session) -> Result<Vec<u8>> {
    let len = if session.superblock.version < 2 { OLD_STATUS } else { STATUS };
    image(session, Span { at: Addr::new(0), len })
}

impl Places {
    fn find(session: &Session, objects: &[ObjectId]) -> Result<Self> {
        let (mut spans, mut fixed) = (Vec::new(), true);
        if session.patience.generations().is_some() {
            return Ok(Places { spans: Some(spans), fixed });
        }
        for id in objects {
            let header = session.header(session.object(*id)?)?;
            spans.extend(header.extents().map(|(at, len)| Span { at, len }));
            if kind_of(&header)? != ObjectKind::Group {
                fixed &= header.begins_with(MessageType::DATASPACE);
                continue;
            }
            fixed = false;
            if header.has(MessageType::SYMBOL_TABLE) {
                return Ok(Places { spans: None, fixed });
            }
            if let Some(info) = header.get::<LinkInfo>()?.filter(LinkInfo::is_dense) {
                spans.push(Span { at: info.names, len: BTREE2_HEADER });
            }
        }
        Ok(Places { spans: Some(spans), fixed })
    }

    fn images(&self, session: &Session) -> Result<Vec<Vec<u8>>> {
        if let Some(generations) = session.patience.generations() {
            return Ok(vec![generations.image()]);
        }
        self.spans.iter().flatten().map(|span| image(session, *span)).collect()
    }
}

impl Watch for NativeWatch {
    fn wait(&mut self, timeout: Duration) -> ModelResult<Wake> {
        self.session.check_open()?;
        if std::mem::take(&mut self.is_old) && !self.places.fixed {
            let places = Places::find(&self.session, &self.objects)?;
            if places != self.places {
                self.images = places.images(&self.session)?;
                self.places = places;
                return Ok(Wake::Changed);
            }
        }
        let NativeWatch { session, places, images, .. } = self;
        let mut first = true;
        let woken = self.attention.wait(timeout, || {
            let first = std::mem::take(&mut first);
            let new = places.images(session)?;
            if new != *images || places.spans.is_none() && !first {
                *images = new;
                return Ok(Look::Changed);
            }
            let new = status(session)?;
            let ended = new != self.status;
            self.status = new;
            Ok(if ended { Look::Ended } else { Look::Same })
        })?;
        self.is_old = woken == Wake::Changed;
        Ok(woken)
    }
}
