//! The model of space that is used again at once while nobody has the file open (`FileSpaceAllocator::begin_min_grace_if_exclusive`,
//! `LockHandle::is_writing_handle_sole`): a root that leads to a node, a writer that moves the node with every flush, and readers
//! that come and go.

use stateright::{Model, Property};

/// Places for nodes: the one that the root leads to, the one that is being written, and one that rests.
const PLACES: usize = 3;

/// What is written: the root, and in each place the flush that a node is of.
type Flush = u8;

/// What a reader does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reader {
    Open,
    /// Read the root.
    Look,
    /// Read the node that the root led to, which is of this flush.
    Follow(usize, Flush),
    Close,
    Done,
}

/// What the writer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Writer {
    /// Ask whether anybody has the file open.
    Probe,
    /// What rests is free, or is not.
    Free(bool),
    /// Write a node to a place that is free.
    Node,
    /// Write the root, which leads there.
    Root(usize),
}

/// The file, the writer and the readers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    root: (usize, Flush),
    nodes: [Flush; PLACES],
    free: Vec<usize>,
    resting: Vec<usize>,
    writer: Writer,
    flushes: Flush,
    readers: Vec<Reader>,
    /// A reader found another node than the one that it was led to.
    misled: bool,
    /// A place that had rested was used again.
    reused: bool,
}

/// A fault of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does not ask.
    NeverAsks,
    /// What the root has led to until now is free by an answer from before.
    AsksTooEarly,
}

/// So many flushes, and so many readers, each of which opens the file once.
#[derive(Debug, Clone)]
pub struct Reuse {
    pub flushes: Flush,
    pub readers: usize,
    pub fault: Option<Fault>,
}

pub const FOUND: &str = "a reader finds what it was led to";
const REUSED: &str = "space is used again";

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Write,
    Read(usize),
}

impl State {
    fn is_unread(&self) -> bool {
        self.readers.iter().all(|reader| matches!(reader, Reader::Open | Reader::Done))
    }

    fn write(&mut self, fault: Option<Fault>) {
        self.writer = match self.writer {
            Writer::Probe => Writer::Free(self.is_unread() || fault == Some(Fault::NeverAsks)),
            Writer::Free(unread) if fault == Some(Fault::AsksTooEarly) => {
                // The answer counts for what this flush is going to free, too.
                if unread {
                    self.free.append(&mut self.resting);
                    self.free.push(self.root.0);
                }
                Writer::Node
            }
            Writer::Free(unread) => {
                if unread {
                    self.reused |= !self.resting.is_empty();
                    self.free.append(&mut self.resting);
                }
                Writer::Node
            }
            Writer::Node => match self.free.pop() {
                Some(place) => {
                    self.flushes += 1;
                    self.nodes[place] = self.flushes;
                    Writer::Root(place)
                }
                // The file grows: more of the same.
                None => Writer::Probe,
            },
            Writer::Root(place) => {
                let (old, _) = std::mem::replace(&mut self.root, (place, self.flushes));
                if !self.free.contains(&old) && old != place {
                    self.resting.push(old);
                }
                Writer::Probe
            }
        }
    }

    fn read(&mut self, n: usize) {
        self.readers[n] = match self.readers[n] {
            Reader::Open => Reader::Look,
            Reader::Look => Reader::Follow(self.root.0, self.root.1),
            Reader::Follow(place, flush) => {
                self.misled |= self.nodes[place] != flush;
                Reader::Close
            }
            Reader::Close | Reader::Done => Reader::Done,
        }
    }
}

impl Model for Reuse {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            root: (0, 0),
            nodes: [0; PLACES],
            free: (1..PLACES).collect(),
            resting: Vec::new(),
            writer: Writer::Probe,
            flushes: 0,
            readers: vec![Reader::Open; self.readers],
            misled: false,
            reused: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.flushes < self.flushes || matches!(state.writer, Writer::Root(_)) {
            actions.push(Action::Write);
        }
        let reading = state.readers.iter().enumerate().filter(|(_, reader)| **reader != Reader::Done);
        actions.extend(reading.map(|(n, _)| Action::Read(n)));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Write => next.write(self.fault),
            Action::Read(n) => next.read(n),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(FOUND, |_, state: &State| !state.misled),
            Property::sometimes(REUSED, |_, state: &State| state.reused),
        ]
    }
}
