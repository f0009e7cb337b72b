//! The calls of a sequence, each made on a store and on the model.

use h5live::StoreCheck;
use h5live::model::Durability;
use h5live::{Dataset, File, UNLIMITED};

use super::Random;
use super::model::{Column, Model, ModelDataset};

/// Where datasets are made.
pub const PATHS: &[&str] = &["a", "b", "g/a", "g/b", "h/i/j", "h/k"];

/// A store, the model of it, and what is open.
pub struct Session {
    location: String,
    random: Random,
    file: Option<File>,
    reader: Option<File>,
    model: Model,
    /// Handles of datasets, some of which are deleted by now.
    kept: Vec<(String, u64, Dataset)>,
    /// The number of each dataset that is there: one that is made again has another.
    numbers: std::collections::BTreeMap<String, u64>,
    made: u64,
    step: u64,
    is_live: bool,
    /// Whether others can follow such a store at all.
    can_be_live: bool,
}

impl Session {
    pub fn create(location: &str, seed: u64) -> Session {
        let mut random = Random(seed.wrapping_mul(0x1234_5678_9ABC_DEF1) ^ 0x55);
        let file = File::create(location).unwrap();
        let can_be_live = file.session().capabilities.live;
        let is_live = random.one_in(2) && can_be_live;
        if is_live {
            file.start_swmr().unwrap();
        }
        Session {
            location: location.to_owned(),
            random,
            file: Some(file),
            reader: None,
            model: Model::default(),
            kept: Vec::new(),
            numbers: Default::default(),
            made: 0,
            step: 0,
            is_live,
            can_be_live,
        }
    }

    fn file(&self) -> File {
        self.file.clone().unwrap()
    }

    fn who(&self, what: &str) -> String {
        format!("step {}, {what}", self.step)
    }

    pub fn step(&mut self) {
        self.step += 1;
        match self.random.below(22) {
            0..3 => self.create_dataset(),
            3 => self.delete(),
            4 | 5 => self.resize(),
            6..9 => self.write(),
            9..13 => self.append(),
            13 | 14 => self.read(),
            15 => self.flush(),
            16 => self.set_attribute(),
            17 => self.refuse(),
            18 => self.use_kept_handle(),
            19 => self.look_as_reader(),
            20 => self.run_threads(),
            _ => self.reopen(),
        }
    }

    pub fn finish(mut self) {
        self.step += 1;
        self.reopen();
        let file = self.file.take().unwrap();
        self.kept.clear();
        self.reader = None;
        file.close().unwrap();
    }

    /// A dataset that is there, if one is.
    fn some_path(&mut self) -> Option<String> {
        let paths: Vec<_> = self.model.datasets.keys().cloned().collect();
        if paths.is_empty() { None } else { Some(self.random.pick(&paths).clone()) }
    }

    fn data(&self, path: &str) -> Dataset {
        self.file().dataset(path).unwrap_or_else(|error| panic!("{}: {error}", self.who("open")))
    }

    fn create_dataset(&mut self) {
        let random = &mut self.random;
        let path = (*random.pick(PATHS)).to_owned();
        let is_text = random.one_in(4);
        let empty = if is_text { Column::Texts(Vec::new()) } else { Column::Numbers(Vec::new()) };
        let row = if random.one_in(3) { 3 } else { 1 };
        let is_unlimited = !random.one_in(4);
        let rows = if is_unlimited { 0 } else { 1 + random.below(20) };
        let (chunk, choice, wide) = (1 + random.below(8), random.below(6), random.one_in(2));
        let file = self.file();
        let builder = if is_text { file.new_dataset::<String>() } else { file.new_dataset::<u64>() };
        let chunk = if is_unlimited { chunk } else { chunk.min(rows) };
        let others: &[u64] = if row == 3 { &[3] } else { &[] };
        let (mut dims, mut max, mut chunk_dims) = (vec![rows], vec![rows], vec![chunk]);
        dims.extend(others);
        max.extend(others);
        chunk_dims.extend(others.iter().map(|n| if wide { *n } else { 2 }));
        let mut builder = builder.shape(&dims);
        if is_unlimited {
            max[0] = UNLIMITED;
            builder = builder.max_shape(&max);
        }
        if is_unlimited || choice > 0 {
            builder = builder.chunk_shape(&chunk_dims);
            builder = match choice {
                1 => builder.deflate(1),
                2 => builder.fletcher32(),
                3 if !is_text => builder.shuffle().deflate(1),
                _ => builder,
            };
        }
        let created = builder.create(&path);
        if self.model.datasets.contains_key(&path) {
            assert!(created.is_err(), "{}: {path} was made twice", self.who("create"));
            return;
        }
        let data = created.unwrap_or_else(|error| panic!("{}: {error}", self.who("create")));
        let mut elements = empty;
        elements.resize(rows as usize * row);
        let attributes = Default::default();
        self.model.datasets.insert(path.clone(), ModelDataset { elements, row, is_unlimited, attributes });
        self.made += 1;
        self.numbers.insert(path.clone(), self.made);
        if self.random.one_in(2) {
            self.kept.push((path, self.made, data));
        }
    }

    fn delete(&mut self) {
        let Some(path) = self.some_path() else { return };
        let gone = self.file().unlink(&path);
        gone.unwrap_or_else(|error| panic!("{}: {error}", self.who("delete")));
        self.model.datasets.remove(&path);
        self.numbers.remove(&path);
    }

    fn resize(&mut self) {
        let Some(path) = self.some_path() else { return };
        let known = &self.model.datasets[&path];
        if !known.is_unlimited {
            return;
        }
        let (row, rows) = (known.row, self.random.below(known.rows() + 12));
        let data = self.data(&path);
        let mut dims = data.shape().unwrap();
        dims[0] = rows;
        data.resize(&dims).unwrap_or_else(|error| panic!("{}: {path}: {error}", self.who("resize")));
        self.model.datasets.get_mut(&path).unwrap().elements.resize(rows as usize * row);
    }

    fn write(&mut self) {
        let Some(path) = self.some_path() else { return };
        let known = &self.model.datasets[&path];
        let (row, rows) = (known.row, known.rows());
        if rows == 0 {
            return;
        }
        let from = self.random.below(rows);
        let to = from + 1 + self.random.below((rows - from).min(12));
        let new = known.elements.random_like(&mut self.random, (to - from) as usize * row);
        let written = new.write_to(&self.data(&path), from..to);
        written.unwrap_or_else(|error| panic!("{}: {path}: {error}", self.who("write")));
        self.model.datasets.get_mut(&path).unwrap().elements.put(from as usize * row, &new);
    }

    fn append(&mut self) {
        let Some(path) = self.some_path() else { return };
        let known = &self.model.datasets[&path];
        if !known.is_unlimited {
            return;
        }
        let count = (1 + self.random.below(9)) as usize * known.row;
        let new = known.elements.random_like(&mut self.random, count);
        let appended = new.append_to(&self.data(&path));
        appended.unwrap_or_else(|error| panic!("{}: {path}: {error}", self.who("append")));
        self.put_behind(&path, &new);
    }

    fn put_behind(&mut self, path: &str, new: &Column) {
        let known = self.model.datasets.get_mut(path).unwrap();
        let before = known.elements.len();
        known.elements.resize(before + new.len());
        known.elements.put(before, new);
    }

    fn read(&mut self) {
        let Some(path) = self.some_path() else { return };
        let who = self.who("read");
        if self.random.one_in(2) {
            return self.model.compare_one(&self.file(), &path, &who);
        }
        let known = &self.model.datasets[&path];
        let from = self.random.below(known.rows() + 1);
        let to = from + self.random.below(known.rows() - from + 1);
        let found = known.elements.read_like(&self.data(&path), from..to);
        let found = found.unwrap_or_else(|error| panic!("{who}: {path}: {error}"));
        assert_eq!(found, known.elements.slice(from as usize * known.row, to as usize * known.row), "{who}: {path}");
    }

    fn flush(&mut self) {
        let who = self.who("flush");
        let flushed = match (self.random.below(4), self.some_path()) {
            (0, Some(path)) => self.data(&path).flush(),
            (1, _) if self.file().session().capabilities.durability != Durability::Never => self.file().flush_durable(),
            _ => self.file().flush(),
        };
        flushed.unwrap_or_else(|error| panic!("{who}: {error}"));
    }

    fn set_attribute(&mut self) {
        let Some(path) = self.some_path() else { return };
        let who = self.who("attribute");
        let data = self.data(&path);
        let name = format!("attribute {}", self.random.below(12));
        let known = self.model.datasets.get_mut(&path).unwrap();
        if self.random.one_in(4) {
            let removed = data.remove_attribute(&name);
            assert_eq!(removed.is_ok(), known.attributes.remove(&name).is_some(), "{who}: {path}: {removed:?}");
            return;
        }
        let len = *self.random.pick(&[1, 8, 200, 5000, 40_000]);
        let value: Vec<u8> = (0..len).map(|_| self.random.next() as u8).collect();
        let set = data.set_attribute_array(&name, &value, &[len]);
        set.unwrap_or_else(|error| panic!("{who}: {path}: {error}"));
        known.attributes.insert(name, value);
    }

    /// Calls that must fail, and change nothing.
    fn refuse(&mut self) {
        let who = self.who("refused");
        let file = self.file();
        let create = |path: &str, dims: &[u64]| {
            file.new_dataset::<u64>().shape(dims).chunk_shape(&vec![1; dims.len()]).create(path)
        };
        let call = self.random.below(8);
        let refused = match call {
            0 => create("new", &[1; 33]).map(drop),
            1 => create("new", &[u64::MAX]).map(drop),
            2 => create("", &[1]).map(drop),
            3 => file.unlink("not there"),
            7 => create("nul\0", &[1]).map(drop),
            4 => match self.model.datasets.keys().collect::<Vec<_>>()[..] {
                [first, second, ..] => file.rename(first, second),
                _ => return,
            },
            5 => match self.some_path() {
                Some(path) => {
                    let (data, known) = (self.data(&path), &self.model.datasets[&path]);
                    let rows = known.rows();
                    known.elements.read_like(&data, rows..rows + 1).map(drop)
                }
                None => return,
            },
            _ => match self.some_path() {
                Some(path) => {
                    let (data, known) = (self.data(&path), &self.model.datasets[&path]);
                    let new = known.elements.empty_like().random_like(&mut Random(1), known.row);
                    let rows = known.rows();
                    new.write_to(&data, rows..rows + 1)
                }
                None => return,
            },
        };
        if refused.is_ok() && call < 2 {
            // Not every store limits the rank and the dimensions. What it takes is there.
            return file.unlink("new").unwrap_or_else(|error| panic!("{who}: {error}"));
        }
        assert!(refused.is_err(), "{who}: call {call} must fail");
        assert!(file.dataset("new").is_err(), "{who}: something is left");
        self.model.compare(&file, &who);
    }

    /// A handle that was kept: of a dataset that is still there, or of one that is not, which must harm no other.
    fn use_kept_handle(&mut self) {
        if self.kept.is_empty() {
            return;
        }
        let at = self.random.below(self.kept.len() as u64) as usize;
        let (path, number, data) = self.kept[at].clone();
        let who = self.who("kept handle");
        if self.numbers.get(&path) != Some(&number) {
            // Whatever it says.
            let _ = data.append(&[1u64]);
            let _ = data.read::<u64>();
            let _ = data.flush();
            return self.model.compare(&self.file(), &who);
        }
        let known = &self.model.datasets[&path];
        if known.is_unlimited {
            let new = known.elements.random_like(&mut self.random, known.row);
            new.append_to(&data).unwrap_or_else(|error| panic!("{who}: {path}: {error}"));
            self.put_behind(&path, &new);
        }
        self.model.compare_one(&self.file(), &path, &who);
    }

    /// After a flush, a reader sees what the writer has.
    fn look_as_reader(&mut self) {
        if !self.is_live {
            return self.model.compare(&self.file(), &self.who("look"));
        }
        let who = self.who("live reader");
        self.file().flush().unwrap_or_else(|error| panic!("{who}: {error}"));
        let is_new = self.reader.is_none() || self.random.one_in(3);
        if is_new {
            let opened = File::options().swmr_read().open(&self.location);
            self.reader = Some(opened.unwrap_or_else(|error| panic!("{who}: {error}")));
        }
        let reader = self.reader.clone().unwrap();
        reader.refresh().unwrap_or_else(|error| panic!("{who}: {error}"));
        self.model.compare(&reader, &who);
    }

    /// Threads that append to and read one dataset each.
    fn run_threads(&mut self) {
        let paths: Vec<_> = self.model.datasets.keys().cloned().collect();
        let who = self.who("threads");
        let mut work = Vec::new();
        for path in paths {
            let known = &self.model.datasets[&path];
            if known.is_unlimited {
                let count = (1 + self.random.below(20)) as usize * known.row;
                let new = known.elements.random_like(&mut self.random, count);
                work.push((path, new));
            }
        }
        let file = self.file();
        let model = &self.model;
        let done: Vec<_> = std::thread::scope(|scope| {
            let run = |(path, new): &(String, Column)| {
                let (file, path, new, row) = (file.clone(), path.clone(), new.clone(), model.datasets[path].row);
                scope.spawn(move || -> h5live::Result<()> {
                    let data = file.dataset(&path)?;
                    for from in (0..new.len()).step_by(row) {
                        new.slice(from, from + row).append_to(&data)?;
                        let rows = data.shape()?[0];
                        new.read_like(&data, rows.saturating_sub(2)..rows)?;
                        if from % 5 == 0 {
                            data.flush()?;
                        }
                    }
                    Ok(())
                })
            };
            let threads: Vec<_> = work.iter().map(run).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for ((path, new), done) in work.iter().zip(done) {
            done.unwrap_or_else(|error| panic!("{who}: {path}: {error}"));
            self.put_behind(path, new);
        }
        self.model.compare(&self.file(), &who);
    }

    /// Closes the store, looks at it, checks it, and opens it to write on.
    fn reopen(&mut self) {
        let who = self.who("reopened");
        self.kept.clear();
        self.reader = None;
        let file = self.file.take().unwrap();
        if self.random.one_in(3) {
            drop(file);
        } else {
            file.close().unwrap_or_else(|error| panic!("{}: {error}", self.who("close")));
        }
        let file = File::open(&self.location).unwrap_or_else(|error| panic!("{who}: {error}"));
        self.model.compare(&file, &who);
        drop(file);
        self.check(&who);
        self.is_live = self.random.one_in(2) && self.can_be_live;
        let options = if self.is_live { File::options().swmr_write() } else { File::options().write() };
        let file = options.open(&self.location).unwrap_or_else(|error| panic!("{who}: {error}"));
        self.file = Some(file);
    }

    fn check(&self, who: &str) {
        if let Some(path) = self.location.strip_prefix("native:") {
            let report = h5live_checker::file::check_path(std::path::Path::new(path)).unwrap();
            assert!(report.is_clean(), "{who}: {:?}", report.findings);
        } else if !self.location.starts_with("mem:") {
            let report = h5live::check(&self.location, StoreCheck { data: true, ..StoreCheck::default() });
            let report = report.unwrap_or_else(|error| panic!("{who}: check: {error}"));
            assert!(report.findings.is_empty(), "{who}: {:?}", report.findings);
        }
    }
}
