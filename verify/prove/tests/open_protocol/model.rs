//! The model: a file, and processes that each open it once, in one role.

use stateright::{Model, Property};

/// Whose code a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Library {
    H5live,
    Libhdf5,
}

/// What a process wants of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    Read,
    SwmrRead,
    Write,
    SwmrWrite,
    /// Make it anew, whatever is there.
    Create,
}

/// A library and a mode.
type Role = (Library, Mode);

const ROLES: [Role; 9] = [
    (Library::H5live, Mode::Read),
    (Library::H5live, Mode::SwmrRead),
    (Library::H5live, Mode::Write),
    (Library::H5live, Mode::SwmrWrite),
    (Library::H5live, Mode::Create),
    (Library::Libhdf5, Mode::Read),
    (Library::Libhdf5, Mode::SwmrRead),
    (Library::Libhdf5, Mode::Write),
    (Library::Libhdf5, Mode::SwmrWrite),
];

/// The status flags of the superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flags {
    Clear,
    Write,
    SwmrWrite,
}

/// What a process does next, or has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Open the file for writing.
    Open,
    Lock,
    /// Read the superblock.
    Look,
    /// Ask for a lease.
    Probe,
    Beacon,
    /// Read the superblock again, and begin anew if it is another.
    LookAgain,
    /// Write its own flags.
    Mark,
    Unlock,
    /// Write, or read.
    Work,
    /// Clear the flags.
    Unmark,
    /// Close the file, and with it let go of all locks.
    Close,
    Done,
    Refused,
    Dead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lock {
    None,
    Shared,
    Exclusive,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    role: Role,
    step: Step,
    lock: Lock,
    /// Whether it has the file open for writing.
    open: bool,
    beacon: bool,
    /// What it saw in the superblock: the flags, and which superblock it was.
    seen: Option<(Flags, u8)>,
    /// Whether somebody had the lock that it wanted.
    crowded: bool,
    /// Whether it reads as one reads a file that is being written.
    live: bool,
}

/// The file and the processes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    flags: Flags,
    /// Counts the superblocks.
    edition: u8,
    processes: Vec<Process>,
    /// A writer began with a superblock that was no longer there.
    stale: bool,
    /// A SWMR reader was refused, though a SWMR writer was at work and nobody opened the file to write.
    blocked: bool,
    /// A process with h5live was refused, though nobody else had the file, or had it when this one asked for the lock.
    lonely: bool,
}

/// A fault in the protocol of h5live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// No beacon.
    NoBeacon,
    /// The superblock is not read again once the beacon is lit.
    OneLook,
    /// The file of a dead SWMR writer is read as one that nobody will write.
    PlainReaderOfTheDead,
    /// A SWMR writer does not let go of its lock.
    KeepsLock,
    /// Flags are believed, whether or not there is a writer.
    BelievesFlags,
    /// Flags are not heeded.
    IgnoresFlags,
    /// A file that is made anew is probed before it is locked.
    ProbesFirst,
    /// Plain readers release their locks for SWMR writers, too.
    PlainReaderYields,
}

pub const ONE_WRITER: &str = "there is one writer";
pub const ALONE: &str = "nobody writes under a reader that does not expect it";
pub const NOT_BLOCKED: &str = "a SWMR reader is not kept out by a SWMR writer";
pub const OPENS: &str = "who is alone is let in";
pub const CURRENT: &str = "a writer begins with what is there";

impl Mutant {
    pub const ALL: [Mutant; 8] = [
        Mutant::NoBeacon,
        Mutant::OneLook,
        Mutant::PlainReaderOfTheDead,
        Mutant::KeepsLock,
        Mutant::BelievesFlags,
        Mutant::IgnoresFlags,
        Mutant::ProbesFirst,
        Mutant::PlainReaderYields,
    ];

    /// The property that it breaks.
    pub fn breaks(self) -> &'static str {
        match self {
            Mutant::NoBeacon | Mutant::IgnoresFlags | Mutant::ProbesFirst => ONE_WRITER,
            Mutant::OneLook => CURRENT,
            Mutant::PlainReaderOfTheDead | Mutant::PlainReaderYields => ALONE,
            Mutant::KeepsLock => NOT_BLOCKED,
            Mutant::BelievesFlags => OPENS,
        }
    }
}

/// So many processes, in all roles, on a file that was closed, or whose writer died.
#[derive(Debug, Clone)]
pub struct Protocol {
    processes: usize,
    mutant: Option<Mutant>,
}

/// What happens: a process goes a step, or dies, or a reader releases its lock for a SWMR writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Step(usize),
    Die(usize),
    Yield(usize),
}

impl Process {
    fn new(role: Role) -> Self {
        let step = match role {
            (Library::Libhdf5, Mode::Write | Mode::SwmrWrite) => Step::Open,
            _ => Step::Lock,
        };
        Process {
            role,
            step,
            lock: Lock::None,
            open: false,
            beacon: false,
            seen: None,
            crowded: false,
            live: role.1 == Mode::SwmrRead,
        }
    }

    fn writes(&self) -> bool {
        !matches!(self.role.1, Mode::Read | Mode::SwmrRead)
    }

    fn has_ended(&self) -> bool {
        matches!(self.step, Step::Done | Step::Refused | Step::Dead)
    }

    /// Whether what it writes may be found in the file.
    fn is_writing(&self) -> bool {
        self.writes() && matches!(self.step, Step::Unlock | Step::Work | Step::Unmark)
    }

    fn is_reading(&self) -> bool {
        !self.writes() && matches!(self.step, Step::Work | Step::Close)
    }

    /// Whether it is about to write, and may hold a lock meanwhile.
    fn is_opening(&self) -> bool {
        let begun = self.lock != Lock::None || self.open;
        self.writes() && begun && !self.has_ended() && !matches!(self.step, Step::Work | Step::Unmark | Step::Close)
    }

    fn end(&mut self, step: Step) {
        (self.step, self.lock, self.open, self.beacon) = (step, Lock::None, false, false);
    }
}

impl State {
    fn others(&self, n: usize) -> impl Iterator<Item = &Process> {
        self.processes.iter().enumerate().filter(move |(m, _)| *m != n).map(|(_, process)| process)
    }

    fn can_lock(&self, n: usize, lock: Lock) -> bool {
        self.others(n).all(|other| other.lock == Lock::None || (other.lock, lock) == (Lock::Shared, Lock::Shared))
    }

    fn refuse(&mut self, n: usize) {
        let process = &self.processes[n];
        let swmr = process.role.1 == Mode::SwmrRead;
        let alone = self.others(n).all(|other| other.has_ended() || other.lock == Lock::None && !other.open);
        let writer = self.others(n).any(|other| other.role.1 == Mode::SwmrWrite && other.step == Step::Work);
        let opening = self.others(n).any(Process::is_opening);
        self.blocked |= swmr && writer && !opening;
        self.lonely |= self.processes[n].role.0 == Library::H5live && alone && !self.processes[n].crowded;
        self.processes[n].end(Step::Refused);
    }

    /// One step of a process.
    fn step(&mut self, n: usize, mutant: Option<Mutant>) {
        let is = |fault| mutant == Some(fault);
        let process = self.processes[n].clone();
        let (library, mode) = process.role;
        let h5live = library == Library::H5live;
        let next = match process.step {
            Step::Open => {
                self.processes[n].open = true;
                if h5live { Step::Beacon } else { Step::Lock }
            }
            Step::Lock => {
                let lock = if process.writes() { Lock::Exclusive } else { Lock::Shared };
                let locked = self.can_lock(n, lock);
                if locked {
                    self.processes[n].lock = lock;
                }
                self.processes[n].crowded = !locked;
                let may_follow = h5live && matches!(mode, Mode::Write | Mode::SwmrWrite);
                if !(locked || may_follow) {
                    return self.refuse(n);
                }
                match mode {
                    Mode::Create if is(Mutant::ProbesFirst) => Step::Beacon,
                    Mode::Create => Step::Probe,
                    _ => Step::Look,
                }
            }
            Step::Look => {
                self.processes[n].seen = Some((self.flags, self.edition));
                let marked = self.flags != Flags::Clear;
                let swmr = self.flags == Flags::SwmrWrite;
                match (library, mode) {
                    (Library::Libhdf5, Mode::SwmrRead) if self.flags == Flags::Write => return self.refuse(n),
                    (Library::Libhdf5, Mode::SwmrRead) => Step::Work,
                    (Library::Libhdf5, _) if marked => return self.refuse(n),
                    (Library::Libhdf5, Mode::Read) => Step::Work,
                    (Library::Libhdf5, _) => Step::Mark,
                    (_, Mode::Read) if marked => Step::Probe,
                    (_, Mode::SwmrRead) if marked && !swmr => Step::Probe,
                    (_, Mode::SwmrRead) if swmr => Step::Unlock,
                    (_, Mode::Read | Mode::SwmrRead) => Step::Work,
                    _ if process.lock == Lock::None && !(swmr && mode == Mode::SwmrWrite) => return self.refuse(n),
                    _ if marked && !is(Mutant::IgnoresFlags) => Step::Probe,
                    _ => Step::Open,
                }
            }
            Step::Probe => {
                if self.others(n).any(|other| other.open) || is(Mutant::BelievesFlags) {
                    return self.refuse(n);
                }
                if !process.writes() {
                    let swmr = process.seen.is_some_and(|(flags, _)| flags == Flags::SwmrWrite);
                    self.processes[n].live |= swmr && !is(Mutant::PlainReaderOfTheDead);
                    Step::Work
                } else if mode == Mode::Create && is(Mutant::ProbesFirst) {
                    self.processes[n].open = true;
                    Step::Lock
                } else {
                    Step::Open
                }
            }
            Step::Beacon => {
                if !is(Mutant::NoBeacon) {
                    if self.others(n).any(|other| other.beacon) {
                        return self.refuse(n);
                    }
                    self.processes[n].beacon = true;
                }
                if mode == Mode::Create || is(Mutant::OneLook) { Step::Mark } else { Step::LookAgain }
            }
            Step::LookAgain => {
                if process.seen != Some((self.flags, self.edition)) {
                    self.processes[n] = Process::new(process.role);
                    return;
                }
                Step::Mark
            }
            Step::Mark => {
                self.stale |= process.seen.is_some_and(|(_, edition)| edition != self.edition);
                self.flags = if mode == Mode::SwmrWrite { Flags::SwmrWrite } else { Flags::Write };
                self.edition += 1;
                if mode == Mode::SwmrWrite && !(h5live && is(Mutant::KeepsLock)) { Step::Unlock } else { Step::Work }
            }
            Step::Unlock => {
                self.processes[n].lock = Lock::None;
                Step::Work
            }
            Step::Work if process.writes() => Step::Unmark,
            Step::Work => Step::Close,
            Step::Unmark => {
                self.flags = Flags::Clear;
                self.edition += 1;
                Step::Close
            }
            Step::Close => return self.processes[n].end(Step::Done),
            Step::Done | Step::Refused | Step::Dead => return,
        };
        self.processes[n].step = next;
    }
}

impl Protocol {
    pub fn of(processes: usize, mutant: Option<Mutant>) -> Self {
        Protocol { processes, mutant }
    }

    /// Whether this process releases its lock for a SWMR writer that waits.
    fn yields(&self, process: &Process) -> bool {
        let is_follower = process.role == (Library::H5live, Mode::SwmrRead);
        let is_faulty = process.role == (Library::H5live, Mode::Read) && self.mutant == Some(Mutant::PlainReaderYields);
        (is_follower || is_faulty) && process.lock == Lock::Shared && process.step == Step::Work
    }

    fn process(&self, role: Role) -> Process {
        let mut process = Process::new(role);
        if role.1 == Mode::Create && self.mutant == Some(Mutant::ProbesFirst) {
            process.step = Step::Probe;
        }
        process
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        // In which order the processes are named makes no difference.
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        for _ in 0..self.processes {
            let longer = sets.iter().flat_map(|set| {
                (set.last().copied().unwrap_or(0)..ROLES.len()).map(|role| [set.as_slice(), &[role]].concat())
            });
            sets = longer.collect();
        }
        let all = sets.iter().flat_map(|set| {
            [Flags::Clear, Flags::Write, Flags::SwmrWrite].map(|flags| State {
                flags,
                edition: 0,
                processes: set.iter().map(|role| self.process(ROLES[*role])).collect(),
                stale: false,
                blocked: false,
                lonely: false,
            })
        });
        all.collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (n, process) in state.processes.iter().enumerate().filter(|(_, process)| !process.has_ended()) {
            actions.push(Action::Step(n));
            let waits =
                |writer: &Process| writer.role == (Library::H5live, Mode::SwmrWrite) && writer.step == Step::Lock;
            if self.yields(process) && state.others(n).any(waits) {
                actions.push(Action::Yield(n));
            }
            // Of those who have left no trace, nobody knows whether they live.
            if process.open {
                actions.push(Action::Die(n));
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Step(n) => next.step(n, self.mutant),
            Action::Die(n) => next.processes[n].end(Step::Dead),
            Action::Yield(n) => next.processes[n].lock = Lock::None,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_WRITER, |_, state: &State| {
                state.processes.iter().filter(|process| process.is_writing()).count() <= 1
            }),
            Property::always(ALONE, |_, state: &State| {
                let reads = state.processes.iter().any(|process| process.is_reading() && !process.live);
                !(reads && state.processes.iter().any(Process::is_writing))
            }),
            Property::always(NOT_BLOCKED, |_, state: &State| !state.blocked),
            Property::always(OPENS, |_, state: &State| !state.lonely),
            Property::always(CURRENT, |_, state: &State| !state.stale),
        ]
    }
}
