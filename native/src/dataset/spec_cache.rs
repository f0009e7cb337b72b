//! Caches of descriptions of datasets. A description that the next dataset has, too, is decoded or encoded once.

use std::sync::Arc;

use h5live_format::RawMessage;
use h5live_format::messages::{FillValueOldMessage, Message, MessageType};
use h5live_model::{DatasetSpec, Layout};
use parking_lot::Mutex;

use crate::header::CachedHeader;

/// The last description that was read, and the messages from which it was decoded; none in a session that writes.
#[derive(Debug, Default)]
pub(crate) struct SpecCache(Mutex<Option<(Vec<RawMessage>, Arc<DatasetSpec>)>>);

/// How the dataset that was made last is described, and the messages that say so, beside its layout: many are made
/// alike.
#[derive(Debug, Default)]
pub(crate) struct SpecMessageCache(Mutex<Option<(Arc<DatasetSpec>, Vec<RawMessage>)>>);

/// Messages of a header beside those that describe its dataset: layout, raw files, unused space.
const EXTRA_MESSAGES: usize = 3;

/// The messages that describe a dataset, beside its layout.
const SPEC_MESSAGES: [MessageType; 5] = [
    MessageType::DATASPACE,
    MessageType::DATATYPE,
    MessageType::FILL_VALUE,
    FillValueOldMessage::TYPE,
    MessageType::FILTER_PIPELINE,
];

/// Calls `look` with these messages of a header.
fn for_each_spec_message(header: &CachedHeader, mut look: impl FnMut(&RawMessage)) {
    let _never_fails = header.for_each_message(|_, message| {
        if SPEC_MESSAGES.contains(&message.kind) {
            look(message);
        }
        Ok(())
    });
}

/// Whether these are the messages that describe the dataset of a header.
fn has_same_spec(header: &CachedHeader, known: &[RawMessage]) -> bool {
    let (mut left, mut alike) = (known.iter(), true);
    for_each_spec_message(header, |message| alike &= left.next() == Some(message));
    alike && left.next().is_none()
}

impl SpecCache {
    /// The description that a header holds, if it is the last one and has this layout, with or without filters at the
    /// edges.
    pub fn find(&self, header: &CachedHeader, layout: &(Layout, bool)) -> Option<Arc<DatasetSpec>> {
        let last = self.0.lock();
        let (known, spec) = last.as_ref()?;
        let is_same =
            (&spec.layout, spec.unfiltered_partial_chunks) == (&layout.0, layout.1) && has_same_spec(header, known);
        is_same.then(|| spec.clone())
    }

    /// A description that was decoded: many datasets that are described alike share one in memory.
    pub fn intern_spec(&self, spec: DatasetSpec) -> Arc<DatasetSpec> {
        let mut last = self.0.lock();
        match last.as_ref() {
            Some((_, known)) if **known == spec => known.clone(),
            _ => last.insert((Vec::new(), Arc::new(spec))).1.clone(),
        }
    }

    /// Keeps the description that was decoded from a header.
    pub fn set(&self, header: &CachedHeader, spec: &Arc<DatasetSpec>) {
        let mut describing = Vec::new();
        for_each_spec_message(header, |message| describing.push(message.clone()));
        // The address of a message that is stored elsewhere does not identify its contents.
        if !describing.iter().any(|message| message.flags.is_shared()) {
            *self.0.lock() = Some((describing, spec.clone()));
        }
    }
}

impl SpecMessageCache {
    /// The messages for a dataset that is described like the last one, and how its header will describe it. There is
    /// room for the other messages of a header.
    pub fn find(&self, spec: &DatasetSpec) -> Option<(Arc<DatasetSpec>, Vec<RawMessage>)> {
        let last = self.0.lock();
        let (described, known) = last.as_ref().filter(|(described, _)| **described == *spec)?;
        let mut messages = Vec::with_capacity(known.len() + EXTRA_MESSAGES);
        messages.extend_from_slice(known);
        Some((described.clone(), messages))
    }

    /// Keeps the messages for a dataset, if there are any that the next one can have, too.
    pub fn set(&self, made: Option<(Arc<DatasetSpec>, Vec<RawMessage>)>) {
        *self.0.lock() = made;
    }
}
