//! The file at every position of its writer, without an image for each.

use std::time::Duration;

use crate::schedule::position::{OS_PAGE_BYTES, Tear, WriterPosition};
use crate::trace::{MarkValues, StorageOp, Trace};

/// Where the bytes of a segment come from.
#[derive(Debug, Clone, Copy)]
enum SegmentSource {
    Base,
    Write(u32),
    Zero,
}

/// The file is cut where any write begins or ends, and each segment has the list of its versions.
#[derive(Debug)]
pub(crate) struct Timeline {
    trace: Trace,
    /// Where the segments begin, ascending; the last one has no end.
    starts: Vec<u64>,
    /// The versions of each segment, with the prefix from which on they are there.
    versions: Vec<Vec<(u32, SegmentSource)>>,
    /// The length of the file after each prefix.
    lengths: Vec<u64>,
    /// The remarks `time N` (milliseconds).
    times: MarkValues,
    has_times: bool,
}

impl Timeline {
    pub fn new(trace: Trace) -> Self {
        let mut len = trace.base().len() as u64;
        let mut lengths = vec![len];
        // What each operation puts where.
        let mut patches: Vec<(u32, u64, u64, SegmentSource)> = vec![(0, 0, len, SegmentSource::Base)];
        for (n, operation) in trace.operations().iter().enumerate() {
            let prefix = n as u32 + 1;
            match operation {
                StorageOp::Write { at, bytes } if !bytes.is_empty() => {
                    let end = at.saturating_add(bytes.len() as u64);
                    patches.push((prefix, *at, end, SegmentSource::Write(n as u32)));
                    len = len.max(end);
                }
                StorageOp::SetLen(new) => {
                    if *new < len {
                        patches.push((prefix, *new, len, SegmentSource::Zero));
                    }
                    len = *new;
                }
                _ => {}
            }
            lengths.push(len);
        }
        let mut starts: Vec<u64> = patches.iter().flat_map(|(_, start, end, _)| [*start, *end]).chain([0]).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut versions = vec![vec![(0, SegmentSource::Zero)]; starts.len()];
        for (prefix, start, end, source) in patches {
            let from = starts.partition_point(|at| *at < start);
            let to = starts.partition_point(|at| *at < end);
            versions.get_mut(from..to).into_iter().flatten().for_each(|list| list.push((prefix, source)));
        }
        let times = MarkValues::new(&trace, "time");
        Timeline { has_times: times != MarkValues::default(), times, trace, starts, versions, lengths }
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Whether the trace says when its operations were done.
    pub fn has_times(&self) -> bool {
        self.has_times
    }

    /// The time at a position; 0 without times.
    pub fn time_at(&self, position: WriterPosition) -> Duration {
        let time = if self.has_times { self.times.last_value_at(position.prefix as usize) } else { None };
        Duration::from_millis(time.unwrap_or(0))
    }

    pub fn operation(&self, index: u32) -> Option<&StorageOp> {
        self.trace.operations().get(index as usize)
    }

    fn length_after(&self, prefix: u32) -> u64 {
        self.lengths.get(prefix as usize).or(self.lengths.last()).copied().unwrap_or(0)
    }

    /// The length of the file.
    pub fn file_len_at(&self, position: WriterPosition) -> u64 {
        let whole = self.length_after(position.prefix);
        self.parts(position).iter().fold(whole, |len, (at, bytes)| len.max(at + bytes.len() as u64))
    }

    /// Whether an operation changes the bytes between `from` and `to`, or the length of the file there.
    pub fn operation_may_affect_read(&self, operation: u32, from: u64, to: u64) -> bool {
        let resized = self.length_after(operation) != self.length_after(operation + 1);
        match self.operation(operation) {
            Some(StorageOp::Write { at, bytes }) => {
                resized || !bytes.is_empty() && *at < to && from < at.saturating_add(bytes.len() as u64)
            }
            Some(StorageOp::SetLen(_)) => resized,
            _ => false,
        }
    }

    /// Whether an operation changes the length of the file.
    pub fn operation_resizes_file(&self, operation: u32) -> bool {
        self.length_after(operation) != self.length_after(operation + 1)
    }

    /// The `len` bytes from `at` on, fewer at the end of the file.
    pub fn read_at_position(&self, position: WriterPosition, at: u64, len: usize) -> Vec<u8> {
        let end = at.saturating_add(len as u64).min(self.file_len_at(position));
        let mut found = vec![0; usize::try_from(end.saturating_sub(at)).unwrap_or(0)];
        let mut segment = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        while let Some(start) = self.starts.get(segment).copied().filter(|start| *start < end) {
            let stop = self.starts.get(segment + 1).copied().unwrap_or(u64::MAX);
            let (from, to) = (start.max(at), stop.min(end));
            let versions = self.versions.get(segment).map_or(&[][..], Vec::as_slice);
            let newest = versions.partition_point(|(prefix, _)| *prefix <= position.prefix);
            let source = match newest.checked_sub(1).and_then(|n| versions.get(n)) {
                Some((_, SegmentSource::Base)) => Some((0, self.trace.base())),
                Some((_, SegmentSource::Write(n))) => match self.operation(*n) {
                    Some(StorageOp::Write { at, bytes }) => Some((*at, &bytes[..])),
                    _ => None,
                },
                Some((_, SegmentSource::Zero)) | None => None,
            };
            if let Some((base, bytes)) = source {
                let part = &bytes[(from - base) as usize..(to - base) as usize];
                found[(from - at) as usize..(to - at) as usize].copy_from_slice(part);
            }
            segment += 1;
        }
        for (start, bytes) in self.parts(position) {
            let (from, to) = (start.max(at), (start + bytes.len() as u64).min(end));
            if from < to {
                let part = &bytes[(from - start) as usize..(to - start) as usize];
                found[(from - at) as usize..(to - at) as usize].copy_from_slice(part);
            }
        }
        found
    }

    /// The visible parts of the write that is under way.
    fn parts(&self, position: WriterPosition) -> Vec<(u64, &[u8])> {
        if position.tear == Tear::None {
            return Vec::new();
        }
        match self.operation(position.prefix) {
            Some(StorageOp::Write { at, bytes }) => visible(position.tear, *at, bytes),
            _ => Vec::new(),
        }
    }
}

/// The parts of a write that a tear shows, with where they are.
pub(crate) fn visible(tear: Tear, at: u64, bytes: &[u8]) -> Vec<(u64, &[u8])> {
    match tear {
        Tear::None => Vec::new(),
        Tear::Cut(cut) => vec![(at, &bytes[..bytes.len().min(cut as usize)])],
        Tear::PageMask(pages) => {
            let end = at + bytes.len() as u64;
            let chosen = (0..u64::from(u64::BITS)).filter(|bit| pages >> bit & 1 == 1);
            let spans = chosen.map(|bit| {
                let start = (at / OS_PAGE_BYTES + bit) * OS_PAGE_BYTES;
                (start.max(at), (start + OS_PAGE_BYTES).min(end))
            });
            let inside = spans.filter(|(from, to)| from < to);
            inside.map(|(from, to)| (from, &bytes[(from - at) as usize..(to - at) as usize])).collect()
        }
    }
}
