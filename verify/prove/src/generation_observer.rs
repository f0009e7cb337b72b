//! The kept state of a reader that goes by generations, and the end of reads that no longer count.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::sync::Arc;

use h5live_cache::{Storage, replay_operations};
use h5live_checker::schedule::{ReaderHistory, ReaderView};
use h5live_checker::trace::Trace;
use h5live_format::{Addr, GenerationWord, StatusFlags, Superblock};
use h5live_native::NativeFile;
use h5live_swmr::GenerationReadEvent;
use parking_lot::Mutex;

/// The generations that a writer shows.
#[derive(Debug, Default)]
pub(crate) struct GenerationsInTrace {
    /// The last prefix with which each may be shown.
    last_prefixes: HashMap<u64, u32>,
    /// The last prefix with which each end of file is announced.
    last_prefixes_of_ends: HashMap<u64, u32>,
    /// Whether the file is one that is followed by generations.
    are_shown: bool,
}

impl GenerationsInTrace {
    /// Those of a trace.
    pub fn from_trace(trace: &Trace) -> Arc<Self> {
        let announced = |image: &[u8]| Superblock::decode(image.get(..Superblock::MAX_SIZE.min(image.len()))?).ok();
        if announced(trace.base()).is_none_or(|superblock| superblock.version >= 3) {
            return Arc::default();
        }
        // Each end, and the prefixes from the first to the last with which it is announced.
        let mut ends: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        let each_image = |each: &mut dyn FnMut(usize, &[u8])| {
            let mut image = trace.base().to_vec();
            each(0, &image);
            for (n, operation) in trace.operations().iter().enumerate() {
                replay_operations(&mut image, [operation]).expect("a trace fits in memory");
                each(n + 1, &image);
            }
        };
        each_image(&mut |prefix, image| {
            let end = announced(image).and_then(|superblock| superblock.end_of_file.get());
            end.iter().for_each(|end| ends.entry(*end).or_insert((prefix, prefix)).1 = prefix);
        });
        let mut last: HashMap<u64, u32> = HashMap::new();
        each_image(&mut |prefix, image| {
            for (end, (from, to)) in &ends {
                let place = GenerationWord::word_addr(Addr::new(*end)).and_then(Addr::get).unwrap_or(u64::MAX) as usize;
                let word = image.get(place..).and_then(GenerationWord::from_bytes);
                if let (Some(word), true) = (word, (*from..=*to).contains(&prefix)) {
                    last.insert(word.generation_number(), prefix as u32);
                }
            }
        });
        let ends = ends.into_iter().map(|(end, (_, last))| (end, last as u32)).collect();
        Arc::new(GenerationsInTrace { last_prefixes: last, last_prefixes_of_ends: ends, are_shown: true })
    }

    /// Whether the file is one that is followed by generations.
    pub fn are_shown(&self) -> bool {
        self.are_shown
    }

    /// The last prefix with which a reader may find the generation of this number.
    fn last_prefix_showing(&self, number: u64) -> Option<u32> {
        self.last_prefixes.get(&number).copied()
    }
}

/// The kept state of a reader that goes by generations, beside its history. The history then is what its counted reads
/// have seen since the last checkpoint.
pub(crate) struct GenerationReaderState {
    generations: Arc<GenerationsInTrace>,
    file: Mutex<Option<NativeFile>>,
    now: Mutex<OperationState>,
}

/// The position of such a reader within an operation.
#[derive(Default)]
struct OperationState {
    /// Whether it goes by generations.
    follows_generations: bool,
    /// The history before the operation.
    history_before: ReaderHistory,
    attempt: u32,
    /// Whether it has taken a look in this operation.
    has_read_state: bool,
    /// The kept state when the read began, and what the read has seen.
    state_at_read: u64,
    history_of_read: ReaderHistory,
    /// Whether the last look counted.
    was_last_read_valid: bool,
    /// Whether it is finding out what the file shows, and has read where.
    is_finding_shown_state: bool,
    has_announced_end: bool,
}

impl GenerationReaderState {
    pub fn new(generations: Arc<GenerationsInTrace>) -> Self {
        GenerationReaderState { generations, file: Mutex::default(), now: Mutex::default() }
    }

    pub fn generations_in_trace(&self) -> &GenerationsInTrace {
        &self.generations
    }

    pub fn open(&self, file: NativeFile) {
        *self.file.lock() = Some(file);
    }

    /// Releases the file, which holds the hook for the events of operations.
    pub fn close(&self) {
        *self.file.lock() = None;
    }

    /// Whether the reader goes by generations.
    pub fn follows_generations(&self) -> bool {
        self.now.lock().follows_generations
    }

    /// Between two operations: the kept state, if the reader goes by generations.
    pub fn state_between_operations(&self, view: &ReaderView) -> Option<u64> {
        self.follows_generations().then(|| {
            view.replace_history(ReaderHistory::NONE);
            self.state_hash(view, &|_| ())
        })
    }

    fn state_hash(&self, view: &ReaderView, otherwise: &dyn Fn(&mut DefaultHasher)) -> u64 {
        view.state_hash_or_compute(|| {
            let mut hasher = DefaultHasher::new();
            match &*self.file.lock() {
                Some(file) => file.hash_state(&mut hasher),
                None => otherwise(&mut hasher),
            }
            hasher.finish()
        })
    }

    /// A read that does not count leaves nothing in memory. So runs meet before each attempt, when a read begins, and
    /// when it counts.
    pub fn record_event(&self, view: &ReaderView, moment: GenerationReadEvent<'_>) {
        let now = &mut *self.now.lock();
        match moment {
            GenerationReadEvent::AttemptStarted(attempt, tell) => {
                (now.is_finding_shown_state, now.has_announced_end) = (true, false);
                view.stop_writer_beyond(None);
                if attempt == 1 || now.was_last_read_valid {
                    now.history_before = view.history();
                }
                now.has_read_state &= attempt > 1;
                (now.follows_generations, now.was_last_read_valid, now.attempt) = (true, false, attempt);
                view.replace_history(now.history_before.with_reader_state((attempt, now.has_read_state)));
                view.try_enter_mid_operation_checkpoint(self.state_hash(view, tell));
            }
            GenerationReadEvent::ReadStarted(number, tell) => {
                now.is_finding_shown_state = false;
                view.stop_writer_beyond(number.and_then(|number| self.generations.last_prefix_showing(number)));
                now.state_at_read = self.state_hash(view, tell);
                view.replace_history(now.history_before.with_reader_state((now.attempt, now.has_read_state)));
                view.try_enter_mid_operation_checkpoint(("looks", now.state_at_read));
                now.has_read_state = true;
                view.replace_history(ReaderHistory::NONE);
            }
            GenerationReadEvent::ReadFinished => now.history_of_read = view.history(),
            GenerationReadEvent::PollTimedOut => {}
            GenerationReadEvent::ReadValidated => {
                now.was_last_read_valid = true;
                view.replace_history(
                    now.history_before.with_reader_state(now.state_at_read).concat(now.history_of_read),
                );
            }
        }
    }

    /// Notes that the reader has read `bytes` at `at`. Bytes at an end of file count only while that end is announced.
    /// The announced end is read before and after them.
    fn record_read(&self, view: &ReaderView, at: u64, bytes: &[u8]) {
        let now = &mut *self.now.lock();
        if at > 0 || !now.is_finding_shown_state {
            return;
        }
        let superblock = Superblock::decode(bytes).ok().filter(|found| found.status.contains(StatusFlags::SWMR));
        let end = superblock.and_then(|superblock| superblock.end_of_file.get());
        now.has_announced_end = !now.has_announced_end && end.is_some();
        view.stop_writer_beyond(
            end.filter(|_| now.has_announced_end)
                .and_then(|end| self.generations.last_prefixes_of_ends.get(&end).copied()),
        );
    }
}

/// The file of such a reader.
pub(crate) struct ObservedStorage(pub Arc<ReaderView>, pub Arc<GenerationReaderState>);

impl fmt::Debug for ObservedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Storage for ObservedStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let found = self.0.read_at(into, at)?;
        self.1.record_read(&self.0, at, into.get(..found).unwrap_or_default());
        Ok(found)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_at(bytes, at)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}
