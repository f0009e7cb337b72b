//! A store that is opened, looked at by a reader, worked on by threads beside each other, closed and opened again.

use std::sync::atomic::{AtomicBool, Ordering};

use h5live::model::Datatype;
use h5live::{File, StoreCheckOptions};

use super::Random;
use super::actor::Actor;
use super::model::Column;

/// Where datasets are made.
const PATHS: &[&str] = &["a", "b", "g/a", "g/b", "h/i/j", "h/k"];
/// Threads that work beside each other.
const THREADS: usize = 3;

/// What a reader found at a path.
type Seen = (&'static str, Column);

/// A store, who works on it, and a reader of it.
pub struct Session {
    location: String,
    actor: Actor,
    reader: Option<File>,
    step: u64,
    is_live: bool,
    /// Whether others can follow such a store at all.
    can_be_live: bool,
}

impl Session {
    pub fn create(location: &str, seed: u64) -> Session {
        let mut random = Random(seed.wrapping_mul(0x1234_5678_9ABC_DEF1) ^ 0x55);
        let file = File::create(location).unwrap();
        let can_be_live = file.session().capabilities.supports_live_reads;
        let is_live = random.one_in(2) && can_be_live;
        if is_live {
            file.start_swmr().unwrap();
        }
        let actor = Actor::new(file, random, PATHS);
        Session { location: location.to_owned(), actor, reader: None, step: 0, is_live, can_be_live }
    }

    pub fn step(&mut self) {
        self.step += 1;
        self.actor.step = format!("step {}", self.step);
        match self.actor.random.below(24) {
            0 => self.look_after_a_flush(),
            1 => self.look_at_any_time(),
            2 => self.work_beside_each_other(),
            3 => self.append_to_one_dataset(),
            4 => self.reopen(),
            _ => self.actor.act(),
        }
    }

    pub fn finish(mut self) {
        self.step += 1;
        self.reopen();
        let file = self.actor.file.take().unwrap();
        self.actor.kept.clear();
        self.reader = None;
        file.close().unwrap();
    }

    /// A reader of the file as it is, one that was open before or a new one.
    fn open_reader(&mut self, who: &str) -> File {
        if self.reader.is_none() || self.actor.random.one_in(3) {
            let opened = File::options().swmr_read().open(&self.location);
            self.reader = Some(opened.unwrap_or_else(|error| panic!("{who}: {error}")));
        }
        let reader = self.reader.clone().unwrap();
        reader.refresh().unwrap_or_else(|error| panic!("{who}: {error}"));
        reader
    }

    /// After a flush, a reader sees what the writer has.
    fn look_after_a_flush(&mut self) {
        if !self.is_live {
            return self.actor.model.compare(&self.actor.file(), &self.actor.who("look"));
        }
        let who = self.actor.who("reader after a flush");
        self.actor.file().flush().unwrap_or_else(|error| panic!("{who}: {error}"));
        let reader = self.open_reader(&who);
        self.actor.model.compare(&reader, &who);
    }

    /// Before one, it sees nothing that never was.
    fn look_at_any_time(&mut self) {
        if self.is_live {
            let who = self.actor.who("reader at any time");
            let reader = self.open_reader(&who);
            let seen = look(&reader, &who);
            seen.iter().for_each(|(path, seen)| self.actor.model.check_seen(path, seen, &who));
        }
    }

    /// Threads with paths of their own, and a reader that looks meanwhile.
    fn work_beside_each_other(&mut self) {
        let who = self.actor.who("reader beside threads");
        let reader = self.is_live.then(|| self.open_reader(&who));
        let parts = self.actor.split(THREADS);
        let are_done = AtomicBool::new(false);
        let (parts, seen) = std::thread::scope(|scope| {
            let work = |mut part: Actor| {
                scope.spawn(move || {
                    (0..8).for_each(|_| part.act());
                    part
                })
            };
            let looker = reader.as_ref().map(|reader| {
                scope.spawn(|| {
                    let mut seen = Vec::new();
                    while !are_done.load(Ordering::Acquire) {
                        reader.refresh().unwrap_or_else(|error| panic!("{who}: {error}"));
                        seen.extend(look(reader, &who));
                    }
                    seen
                })
            });
            let threads: Vec<_> = parts.into_iter().map(work).collect();
            let parts: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            are_done.store(true, Ordering::Release);
            (parts, looker.map(|thread| thread.join()))
        });
        for part in parts {
            self.actor.join(part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        self.actor.model.compare(&self.actor.file(), &self.actor.who("threads"));
        let seen: Vec<Seen> =
            seen.map_or_else(Vec::new, |seen| seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        seen.iter().for_each(|(path, seen)| self.actor.model.check_seen(path, seen, &who));
    }

    /// Threads that append rows to one dataset: all of them are there, those of a thread in its order.
    fn append_to_one_dataset(&mut self) {
        let who = self.actor.who("threads that append to one dataset");
        let Some((path, known)) = self.actor.some_unlimited() else { return };
        let (row, before) = (known.row, known.elements.len());
        let rows: Vec<Vec<Column>> = (0..THREADS).map(|_| self.actor.random_rows(&known, 12)).collect();
        let file = self.actor.file();
        std::thread::scope(|scope| {
            for rows in &rows {
                let (file, path, who) = (&file, &path, &who);
                scope.spawn(move || {
                    let data = file.dataset(path).unwrap_or_else(|error| panic!("{who}: {error}"));
                    let append = |row: &Column| row.append_to(&data);
                    rows.iter().try_for_each(append).unwrap_or_else(|error| panic!("{who}: {path}: {error}"));
                });
            }
        });
        let data = file.dataset(&path).unwrap();
        let now = data.shape().unwrap()[0];
        let found = known.elements.read_like(&data, (before / row) as u64..now).unwrap();
        let mut waiting: Vec<_> = rows.iter().map(|rows| rows.iter()).collect();
        for at in (0..found.len()).step_by(row) {
            let new = found.slice(at, at + row);
            let is_next = |rows: &&mut std::slice::Iter<'_, Column>| rows.as_slice().first() == Some(&new);
            let next = waiting.iter_mut().find(is_next).and_then(Iterator::next);
            assert!(next.is_some(), "{who}: {path}: row {at} is of no thread, or not in its order");
        }
        assert!(waiting.iter().all(|rows| rows.as_slice().is_empty()), "{who}: {path}: rows are lost");
        self.actor.model.append(&path, &found);
        self.actor.model.compare(&file, &who);
    }

    /// Closes the store while a thread for each dataset appends to it: what was appended is there.
    fn close_beside_appends(&mut self, file: File) {
        let who = self.actor.who("close beside appends");
        let (started, starts) = std::sync::mpsc::channel();
        let work: Vec<_> = self
            .actor
            .all_unlimited()
            .into_iter()
            .map(|(path, known)| {
                let rows = self.actor.random_rows(&known, 200);
                (path, rows)
            })
            .collect();
        let appended: Vec<usize> = std::thread::scope(|scope| {
            let append = |(path, rows): &(String, Vec<Column>)| {
                let (data, rows, started) = (file.dataset(path).unwrap(), rows.clone(), started.clone());
                scope.spawn(move || {
                    let append = |row: &Column| row.append_to(&data).inspect(|()| _ = started.send(()));
                    rows.iter().take_while(|row| append(row).is_ok()).count()
                })
            };
            let threads: Vec<_> = work.iter().map(append).collect();
            if !threads.is_empty() {
                starts.recv().unwrap();
            }
            file.clone().close().unwrap_or_else(|error| panic!("{who}: {error}"));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for ((path, rows), count) in work.iter().zip(appended) {
            rows[..count].iter().for_each(|row| self.actor.model.append(path, row));
        }
    }

    /// Closes the store, looks at it, checks it, and opens it to write on.
    fn reopen(&mut self) {
        let who = self.actor.who("reopened");
        self.actor.kept.clear();
        self.reader = None;
        let file = self.actor.file.take().unwrap();
        match self.actor.random.below(4) {
            0 => drop(file),
            1 => self.close_beside_appends(file),
            _ => file.close().unwrap_or_else(|error| panic!("{}: {error}", self.actor.who("close"))),
        }
        let file = File::open(&self.location).unwrap_or_else(|error| panic!("{who}: {error}"));
        self.actor.model.compare(&file, &who);
        drop(file);
        self.check(&who);
        self.is_live = self.actor.random.one_in(2) && self.can_be_live;
        let options = if self.is_live { File::options().swmr_write() } else { File::options().write() };
        let file = options.open(&self.location).unwrap_or_else(|error| panic!("{who}: {error}"));
        self.actor.file = Some(file);
    }

    fn check(&self, who: &str) {
        if !self.location.starts_with("mem:") {
            let report =
                h5live::check(&self.location, StoreCheckOptions { verify_data: true, ..StoreCheckOptions::default() });
            let report = report.unwrap_or_else(|error| panic!("{who}: check: {error}"));
            assert!(report.findings.is_empty(), "{who}: {:?}", report.findings);
        }
    }
}

/// What a reader finds at each path where something is.
fn look(reader: &File, who: &str) -> Vec<Seen> {
    let read = |path: &&'static str| {
        let data = reader.dataset(path).ok()?;
        let read = || -> h5live::Result<Column> {
            let is_numbers = matches!(data.datatype()?, Datatype::Integer(_));
            Ok(if is_numbers { Column::Numbers(data.read()?) } else { Column::Texts(data.read()?) })
        };
        match read() {
            Err(error) if is_deleted(&error) => None,
            read => Some((*path, read.unwrap_or_else(|error| panic!("{who}: {path}: {error}")))),
        }
    };
    PATHS.iter().filter_map(read).collect()
}

/// Whether an error says that somebody has deleted the object meanwhile.
fn is_deleted(error: &h5live::Error) -> bool {
    matches!(error.kind(), h5live::ErrorKind::Store(h5live::model::Error::NoObject(_)))
}
