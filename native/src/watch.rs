//! Waiting for what a writer publishes, by the few bytes of the file that change with it.

use std::sync::Arc;
use std::time::Duration;

use h5live_format::Addr;
use h5live_format::messages::{LinkInfo, MessageType};
use h5live_model::{ObjectId, ObjectKind, Result as ModelResult, Watch, WatchEvent};
use h5live_swmr::{Poller, ProbeResult, SystemWakeSource};

use crate::Result;
use crate::object_kind::kind_of;
use crate::session::NativeSession;

/// Bytes at the start of the superblock that end with its status flags: before version 2, and since.
const V0_STATUS_BYTES: usize = 24;
const STATUS_BYTES: usize = 12;
/// Bytes of a version 2 B-tree's header (the most that there can be), which changes with each of its records.
const MAX_BTREE2_HEADER_BYTES: usize = 64;

/// A part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WatchedRange {
    at: Addr,
    len: usize,
}

/// Watches objects of a session.
#[derive(Debug)]
pub(crate) struct NativeWatch {
    session: Arc<NativeSession>,
    objects: Vec<ObjectId>,
    watched_ranges: WatchedRanges,
    last_images: Vec<Vec<u8>>,
    last_status: Vec<u8>,
    /// Whether the places may be others since they were found.
    is_old: bool,
    poller: Poller<SystemWakeSource>,
}

/// Where the bytes are that change with the objects.
#[derive(Debug, PartialEq, Eq)]
struct WatchedRanges {
    /// `None` if only looking at the objects tells.
    spans: Option<Vec<WatchedRange>>,
    /// They stay where they are.
    fixed: bool,
}

impl NativeWatch {
    /// # Errors
    /// If an object cannot be read.
    pub fn new(session: &Arc<NativeSession>, objects: &[ObjectId]) -> Result<Self> {
        // In this order: later writes are reported.
        let attention = Poller::new(SystemWakeSource::new(session.hold.lock_handle()));
        let status = read_superblock_status(session)?;
        let places = WatchedRanges::ranges_of_objects(session, objects)?;
        let images = places.read_images(session)?;
        Ok(NativeWatch {
            session: session.clone(),
            objects: objects.to_vec(),
            watched_ranges: places,
            last_images: images,
            last_status: status,
            is_old: false,
            poller: attention,
        })
    }
}

fn read_range(session: &NativeSession, span: WatchedRange) -> Result<Vec<u8>> {
    Ok(session.cache.read_uncached_to_eof(span.at, span.len)?)
}

fn read_superblock_status(session: &NativeSession) -> Result<Vec<u8>> {
    let len = if session.superblock.version < 2 { V0_STATUS_BYTES } else { STATUS_BYTES };
    read_range(session, WatchedRange { at: Addr::new(0), len })
}

impl WatchedRanges {
    fn ranges_of_objects(session: &NativeSession, objects: &[ObjectId]) -> Result<Self> {
        let (mut spans, mut fixed) = (Vec::new(), true);
        if session.retry.generation_reader().is_some() {
            return Ok(WatchedRanges { spans: Some(spans), fixed });
        }
        for id in objects {
            let header = session.load_header(session.header_addr_of(*id)?)?;
            spans.extend(header.chunk_ranges().map(|(at, len)| WatchedRange { at, len }));
            if kind_of(&header)? != ObjectKind::Group {
                fixed &= header.first_chunk_has(MessageType::DATASPACE);
                continue;
            }
            fixed = false;
            if header.has_message(MessageType::SYMBOL_TABLE) {
                return Ok(WatchedRanges { spans: None, fixed });
            }
            if let Some(info) = header.get_message::<LinkInfo>()?.filter(LinkInfo::is_dense) {
                spans.push(WatchedRange { at: info.name_index, len: MAX_BTREE2_HEADER_BYTES });
            }
        }
        Ok(WatchedRanges { spans: Some(spans), fixed })
    }

    fn read_images(&self, session: &NativeSession) -> Result<Vec<Vec<u8>>> {
        if let Some(generations) = session.retry.generation_reader() {
            return Ok(vec![generations.read_generation_number_bytes()]);
        }
        self.spans.iter().flatten().map(|span| read_range(session, *span)).collect()
    }
}

impl Watch for NativeWatch {
    fn wait(&mut self, timeout: Duration) -> ModelResult<WatchEvent> {
        self.session.check_open()?;
        if std::mem::take(&mut self.is_old) && !self.watched_ranges.fixed {
            let places = WatchedRanges::ranges_of_objects(&self.session, &self.objects)?;
            if places != self.watched_ranges {
                self.last_images = places.read_images(&self.session)?;
                self.watched_ranges = places;
                return Ok(WatchEvent::Changed);
            }
        }
        let NativeWatch { session, watched_ranges, last_images, .. } = self;
        let mut first = true;
        let woken = self.poller.wait(timeout, || -> Result<ProbeResult> {
            let first = std::mem::take(&mut first);
            let new = watched_ranges.read_images(session)?;
            if new != *last_images || watched_ranges.spans.is_none() && !first {
                *last_images = new;
                return Ok(ProbeResult::Changed);
            }
            let new = read_superblock_status(session)?;
            let ended = new != self.last_status;
            self.last_status = new;
            Ok(if ended { ProbeResult::Ended } else { ProbeResult::Same })
        })?;
        self.is_old = woken == WatchEvent::Changed;
        Ok(woken)
    }
}
