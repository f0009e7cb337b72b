//! The file as one run of a reader sees it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use h5live_cache::Storage;
use parking_lot::Mutex;

use super::answers::QueryAnswers;
use super::position::{AllowedTears, WriterPosition};
use super::query::ReaderQuery;
use super::timeline::Timeline;
use crate::trace::Trace;

/// One query of a run, and where it was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryAtPosition {
    /// The query.
    pub query: ReaderQuery,
    /// How far the writer was.
    pub position: WriterPosition,
}

/// A branch of the tree: a query that has several answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BranchPoint {
    /// Which query of the run it is, from 0.
    pub number: u32,
    pub query: ReaderQuery,
    /// The answer that is explored.
    pub taken: WriterPosition,
    /// Those that are not yet.
    pub others: Vec<WriterPosition>,
    /// The checkpoint directly before the query. A run that continues here is the same as one that passes the
    /// checkpoint with the writer further on.
    pub after: Option<Checkpoint>,
}

/// All that a reader saw since some moment: two runs of the same reader with equal histories are in the same state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ReaderHistory(u64);

impl ReaderHistory {
    /// The history of a reader that has seen nothing.
    pub const NONE: ReaderHistory = ReaderHistory(0);

    /// The history of a reader that knows only this.
    pub fn from_reader_state(reader_state: impl Hash) -> Self {
        ReaderHistory::NONE.with_reader_state(reader_state)
    }

    /// This history, and then some state that is no part of the file, but on which the reader depends.
    #[must_use]
    pub fn with_reader_state(mut self, known: impl Hash) -> Self {
        self.add(known);
        self
    }

    /// This history, and then another.
    #[must_use]
    pub fn concat(mut self, later: ReaderHistory) -> ReaderHistory {
        self.add(later);
        self
    }

    fn add(&mut self, seen: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.0, seen).hash(&mut hasher);
        self.0 = hasher.finish();
    }
}

/// Everything on which the rest of a run depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Checkpoint {
    position: WriterPosition,
    moves: u32,
    tears: u32,
    history: ReaderHistory,
    state: u64,
    /// For a checkpoint in the middle of an operation: whether the file has changed since the operation was restarted,
    /// and the last checkpoint between two operations.
    within: Option<(bool, u64)>,
}

impl Checkpoint {
    /// Puts it among those where runs have been, unless one has been there, or where more is asked of the reader:
    /// nothing changed meanwhile.
    fn insert_if_new(self, known: &Checkpoints) -> bool {
        let mut known = known.lock();
        let strict = self.within.map(|(_, context)| Checkpoint { within: Some((false, context)), ..self });
        !strict.is_some_and(|strict| known.contains(&strict)) && known.insert(self)
    }

    /// The same one, the writer being further on; `None` if less may follow than from there.
    fn moved_to(self, position: WriterPosition, limits: &RunLimits) -> Option<Self> {
        let moves = if limits.moves == u32::MAX { 0 } else { self.moves + 1 };
        let (_, context) = self.within?;
        (!position.is_torn()).then_some(Checkpoint { position, moves, within: Some((true, context)), ..self })
    }
}

/// The checkpoints from which on all has been, or is being, explored.
pub(super) type Checkpoints = Arc<Mutex<HashSet<Checkpoint>>>;

/// The bounds of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunLimits {
    pub start: WriterPosition,
    pub moves: u32,
    pub queries: u32,
    pub merge: bool,
}

/// The file as a reader sees it while its writer comes further. Only to be read.
#[derive(Debug)]
pub struct ReaderView(Mutex<ReaderRun>);

#[derive(Debug)]
pub(super) struct ReaderRun {
    timeline: Arc<Timeline>,
    tearing: AllowedTears,
    ranges: HashMap<ReaderQuery, Arc<QueryAnswers>, BuildHasherDefault<DefaultHasher>>,
    limits: RunLimits,
    pub position: WriterPosition,
    pub forks: Vec<BranchPoint>,
    /// How many of the forks have been passed.
    passed: usize,
    pub query_count: u32,
    moves: u32,
    tears: u32,
    /// Whether the position has changed since the reader last restarted its operation.
    moved: bool,
    /// Beyond this prefix, the writer comes no further.
    rest_beyond: Option<u32>,
    history: ReaderHistory,
    /// The state of the last checkpoint between two operations.
    context: u64,
    /// The checkpoint since which nothing was asked.
    pending_checkpoint: Option<Checkpoint>,
    /// The hashed states of this run, and of the last run as far as they are the same.
    state_hashes: Vec<u64>,
    hash_count: usize,
    checkpoints: Checkpoints,
    /// Whether the run ended at a checkpoint of another.
    pub is_duplicate: bool,
    pub fault: Option<RunFault>,
    pub journal: Option<Vec<QueryAtPosition>>,
}

/// A fault that ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunFault {
    /// It asked for something else than before, where it had seen the same.
    Nondeterministic,
    /// It asked too often.
    TooManyQueries,
}

impl ReaderView {
    pub(super) fn new(
        timeline: Arc<Timeline>,
        tearing: AllowedTears,
        limits: RunLimits,
        checkpoints: Checkpoints,
    ) -> Self {
        ReaderView(Mutex::new(ReaderRun {
            timeline,
            tearing,
            ranges: HashMap::default(),
            position: limits.start,
            limits,
            forks: Vec::new(),
            passed: 0,
            query_count: 0,
            moves: 0,
            tears: 0,
            moved: false,
            rest_beyond: None,
            history: ReaderHistory::NONE,
            context: 0,
            pending_checkpoint: None,
            state_hashes: Vec::new(),
            hash_count: 0,
            checkpoints,
            is_duplicate: false,
            fault: None,
            journal: None,
        }))
    }

    /// Begins a run.
    pub(super) fn restart(&self, journal: bool) {
        let mut run = self.0.lock();
        run.position = run.limits.start;
        (run.passed, run.query_count, run.moves, run.tears) = (0, 0, 0, 0);
        (run.moved, run.fault, run.is_duplicate, run.rest_beyond) = (false, None, false, None);
        (run.history, run.context, run.hash_count, run.pending_checkpoint) = (ReaderHistory::NONE, 0, 0, None);
        run.journal = journal.then(Vec::new);
    }

    pub(super) fn with_run<R>(&self, look: impl FnOnce(&mut ReaderRun) -> R) -> R {
        look(&mut self.0.lock())
    }

    /// How far the writer is.
    pub fn writer_position(&self) -> WriterPosition {
        self.0.lock().position
    }

    /// The time by the marks `time N` of the writer (milliseconds). The reader itself takes no time.
    pub fn writer_time(&self) -> Duration {
        let run = self.0.lock();
        run.timeline.time_at(run.position)
    }

    /// The number of operations that are complete.
    pub fn writer_op_count(&self) -> usize {
        self.writer_position().prefix as usize
    }

    /// The number of times that the run has come into the middle of a write.
    pub fn torn_position_count(&self) -> u32 {
        self.0.lock().tears
    }

    /// How many queries the run has made.
    pub fn query_count(&self) -> u32 {
        self.0.lock().query_count
    }

    /// Says that the reader restarts an operation, because its reads did not fit together. A restart, and a failure in
    /// the end, is right only while the file changes: see [`ReaderView::operation_must_succeed`].
    pub fn mark_operation_restart(&self) {
        self.0.lock().moved = false;
    }

    /// Says that nothing counts any more that the reader sees once the writer is beyond `prefix`, until this is said
    /// again: the writer then comes no further, for it can do so later as well.
    pub fn stop_writer_beyond(&self, prefix: Option<u32>) {
        self.0.lock().rest_beyond = prefix;
    }

    /// Whether no write is half-done, unless such writes [last](AllowedTears::torn_writes_may_last), and nothing has changed since
    /// [`ReaderView::mark_operation_restart`]: then every operation of the reader must succeed.
    pub fn operation_must_succeed(&self) -> bool {
        let run = self.0.lock();
        (run.tearing.torn_writes_may_last || !run.position.is_torn()) && !run.moved
    }

    /// Returns the history since the run began, or since the last [`ReaderView::replace_history`]. From now on, the history
    /// starts with `history`.
    ///
    /// With this a reader says that it has forgotten what it once saw. So runs that differ only in that can meet at a
    /// [`ReaderView::try_enter_checkpoint`].
    pub fn replace_history(&self, history: ReaderHistory) -> ReaderHistory {
        std::mem::replace(&mut self.0.lock().history, history)
    }

    /// Asks whether to go on. Everything that the reader does from here on must follow from its history and from
    /// `state`. If another run has been, or will be, here with the same history and state, and with the same position
    /// of the writer, then everything that may follow is explored there. Then the reader should end.
    pub fn try_enter_checkpoint(&self, state: impl Hash) -> bool {
        let mut run = self.0.lock();
        run.context = hash(state);
        let state = run.context;
        run.should_continue(state, None)
    }

    /// As [`ReaderView::try_enter_checkpoint`], in the middle of an operation: what the reader does from here on must follow from
    /// its history since the last checkpoint between two, from the state that was given then, and from `state`. If it
    /// should end, it has no other answers but errors.
    pub fn try_enter_mid_operation_checkpoint(&self, state: impl Hash) -> bool {
        let mut run = self.0.lock();
        let within = Some((run.moved, run.context));
        run.should_continue(hash(state), within)
    }

    /// Whether the run should end, because another run is or was at the same point.
    pub fn is_duplicate_run(&self) -> bool {
        self.0.lock().is_duplicate
    }

    /// The hash of the reader's state, by `compute_hash`. Not called while the run repeats another one.
    pub fn state_hash_or_compute(&self, compute_hash: impl FnOnce() -> u64) -> u64 {
        {
            let mut run = self.0.lock();
            let number = run.hash_count;
            run.hash_count += 1;
            if run.passed < run.forks.len()
                && let Some(hash) = run.state_hashes.get(number)
            {
                return *hash;
            }
            run.state_hashes.truncate(number);
        }
        let hash = compute_hash();
        self.0.lock().state_hashes.push(hash);
        hash
    }

    /// The history since the run began, or [`ReaderView::replace_history`].
    pub fn history(&self) -> ReaderHistory {
        self.0.lock().history
    }

    /// The trace of the writer.
    pub fn trace(&self) -> Trace {
        self.0.lock().timeline.trace().clone()
    }
}

fn hash(state: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

impl ReaderRun {
    /// Drops the hashed states of other runs.
    pub fn clear_state_hashes(&mut self) {
        self.state_hashes.clear();
    }

    fn should_continue(&mut self, state: u64, within: Option<(bool, u64)>) -> bool {
        let ReaderRun { position, mut moves, tears, history, .. } = *self;
        if self.limits.moves == u32::MAX {
            moves = 0;
        }
        // Below a fork that is being explored, it is this run's own.
        if !self.limits.merge || self.passed < self.forks.len() || self.journal.is_some() || self.is_duplicate {
            return !self.is_duplicate;
        }
        // Readers remember when they saw what, which is no part of their history.
        if self.timeline.has_times() {
            return true;
        }
        let checkpoint = Checkpoint { position, moves, tears, history, state, within };
        self.is_duplicate = !checkpoint.insert_if_new(&self.checkpoints);
        self.pending_checkpoint = within.map(|_| checkpoint);
        !self.is_duplicate
    }

    /// The next answer to explore where the run forked. Another run may have passed a checkpoint with the writer
    /// further on. Everything after that position is then explored there.
    pub fn pop_unexplored_position(&self, fork: &mut BranchPoint) -> Option<WriterPosition> {
        let next = fork.others.pop()?;
        let checkpoint = fork.after.and_then(|after| after.moved_to(next, &self.limits));
        if checkpoint.is_some_and(|checkpoint| !checkpoint.insert_if_new(&self.checkpoints)) {
            fork.others.clear();
            return None;
        }
        Some(next)
    }

    fn answers_to(&mut self, query: ReaderQuery) -> Arc<QueryAnswers> {
        if let Some(range) = self.ranges.get(&query) {
            return range.clone();
        }
        let range = Arc::new(QueryAnswers::new(&self.timeline, &self.tearing, query));
        self.ranges.insert(query, range.clone());
        range
    }

    /// Goes to where a query is answered.
    fn choose_position(&mut self, query: ReaderQuery) -> io::Result<Arc<QueryAnswers>> {
        let number = self.query_count;
        self.query_count += 1;
        if self.is_duplicate {
            return Err(io::Error::other("the run is over"));
        }
        if number >= self.limits.queries || self.fault.is_some() {
            self.fault = self.fault.or(Some(RunFault::TooManyQueries));
            return Err(io::Error::other("the run is over"));
        }
        let range = self.answers_to(query);
        let after = self.pending_checkpoint.take();
        match self.forks.get(self.passed) {
            Some(fork) if fork.number == number => {
                if fork.query != query {
                    self.fault = Some(RunFault::Nondeterministic);
                    return Err(io::Error::other("the run is over"));
                }
                let taken = fork.taken;
                self.passed += 1;
                self.move_to(taken);
            }
            Some(_) => {}
            None if self.moves < self.limits.moves && !self.is_beyond_rest() => {
                let torn = self.tears < self.tearing.max_torn_positions_per_run;
                let mut others = range.positions_to_explore(self.position, torn);
                if let Some(last) = self.rest_beyond {
                    // Of those that do not count, the first leaves all later ones open.
                    let beyond = others.iter().position(|position| position.prefix > last);
                    others.truncate(beyond.map_or(others.len(), |beyond| beyond + 1));
                }
                if others.len() > 1 {
                    others.reverse();
                    let taken = others.pop().unwrap_or(self.position);
                    self.forks.push(BranchPoint { number, query, taken, others, after });
                    self.passed += 1;
                }
            }
            None => {}
        }
        if let Some(journal) = &mut self.journal {
            journal.push(QueryAtPosition { query, position: self.position });
        }
        Ok(range)
    }

    fn is_beyond_rest(&self) -> bool {
        self.rest_beyond.is_some_and(|prefix| self.position.prefix > prefix)
    }

    fn move_to(&mut self, to: WriterPosition) {
        if to != self.position {
            self.moves += 1;
            self.tears += u32::from(to.is_torn());
            self.moved = true;
            self.position = to;
        }
    }

    fn answer<R>(&mut self, query: ReaderQuery, give: impl FnOnce(&[u8]) -> R) -> io::Result<R> {
        let range = self.choose_position(query)?;
        Ok(match range.answer_at(self.position) {
            Some((number, answer)) => {
                self.history.add((query, number));
                give(answer)
            }
            None => {
                let (at, to) = query.span();
                let answer = self.timeline.read_at_position(self.position, at, usize::try_from(to - at).unwrap_or(0));
                self.history.add((query, &answer));
                give(&answer)
            }
        })
    }
}

fn read_only_error() -> io::Error {
    io::ErrorKind::PermissionDenied.into()
}

impl Storage for ReaderView {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.lock().answer(ReaderQuery::Bytes { at, len: into.len() }, |answer| {
            into.iter_mut().zip(answer).for_each(|(byte, found)| *byte = *found);
            answer.len()
        })
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(read_only_error())
    }

    fn len(&self) -> io::Result<u64> {
        self.0
            .lock()
            .answer(ReaderQuery::Length, |answer| answer.first_chunk().map_or(0, |len| u64::from_le_bytes(*len)))
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(read_only_error())
    }

    fn sync(&self) -> io::Result<()> {
        Err(read_only_error())
    }
}
