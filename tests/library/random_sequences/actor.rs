//! The calls of a sequence on the objects of some paths, each made on a store and on the model.

use h5live::model::DurabilitySupport;
use h5live::{Dataset, File, UNLIMITED};

use super::Random;
use super::model::{Column, Model, ModelDataset};

/// One that creates, changes and deletes datasets at some paths. Several can work beside each other.
pub struct Actor {
    pub file: Option<File>,
    pub model: Model,
    pub random: Random,
    pub paths: Vec<&'static str>,
    /// What a failure is told by.
    pub step: String,
    /// Handles of datasets, some of which are deleted by now.
    pub kept: Vec<(String, u64, Dataset)>,
}

impl Actor {
    pub fn new(file: File, random: Random, paths: &[&'static str]) -> Actor {
        Actor {
            file: Some(file),
            model: Model::new(paths),
            random,
            paths: paths.to_vec(),
            step: String::new(),
            kept: Vec::new(),
        }
    }

    pub fn file(&self) -> File {
        self.file.clone().unwrap()
    }

    pub fn who(&self, what: &str) -> String {
        format!("{}, {what}", self.step)
    }

    /// One call.
    pub fn act(&mut self) {
        match self.random.below(20) {
            0..3 => self.create_dataset(),
            3 => self.delete(),
            4 => self.rename(),
            5 | 6 => self.resize(),
            7..10 => self.write(),
            10..13 => self.append(),
            13 | 14 => self.read(),
            15 => self.flush(),
            16 => self.set_attribute(),
            17 => self.refuse(),
            _ => self.use_kept_handle(),
        }
    }

    /// Others who work on these paths, in this many parts. [`Actor::join`] takes back what they have done.
    pub fn split(&mut self, parts: usize) -> Vec<Actor> {
        let mut all: Vec<_> = (0..parts)
            .map(|part| {
                let mut actor = Actor::new(self.file(), Random(self.random.next()), &[]);
                actor.step = format!("{}, thread {part}", self.step);
                actor
            })
            .collect();
        for path in self.paths.clone() {
            let part = &mut all[self.random.below(parts as u64) as usize];
            part.paths.push(path);
            part.model.take_over(&mut self.model, path);
            part.kept.extend(self.kept.extract_if(.., |kept| kept.0 == path));
        }
        all
    }

    pub fn join(&mut self, part: Actor) {
        let mut model = part.model;
        part.paths.iter().for_each(|path| self.model.take_over(&mut model, path));
        self.kept.extend(part.kept);
    }

    /// A dataset that is there, if one is.
    fn some_path(&mut self) -> Option<String> {
        let paths: Vec<_> = self.model.datasets.keys().cloned().collect();
        if paths.is_empty() { None } else { Some(self.random.pick(&paths).clone()) }
    }

    /// Datasets that grow.
    pub fn all_unlimited(&self) -> Vec<(String, ModelDataset)> {
        let all = self.model.datasets.iter().filter(|(_, known)| known.is_unlimited);
        all.map(|(path, known)| (path.clone(), known.clone())).collect()
    }

    pub fn some_unlimited(&mut self) -> Option<(String, ModelDataset)> {
        let all = self.all_unlimited();
        if all.is_empty() { None } else { Some(self.random.pick(&all).clone()) }
    }

    /// Up to so many new rows of a dataset, at least one.
    pub fn random_rows(&mut self, known: &ModelDataset, most: u64) -> Vec<Column> {
        let count = 1 + self.random.below(most);
        (0..count).map(|_| known.elements.random_like(&mut self.random, known.row)).collect()
    }

    /// A path, whether there is something or not.
    fn any_path(&mut self) -> Option<String> {
        if self.paths.is_empty() { None } else { Some((*self.random.pick(&self.paths)).to_owned()) }
    }

    fn data(&self, path: &str) -> Dataset {
        self.file().dataset(path).unwrap_or_else(|error| panic!("{}: {error}", self.who("open")))
    }

    fn create_dataset(&mut self) {
        let Some(path) = self.any_path() else { return };
        let random = &mut self.random;
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
        let number = self.random.next();
        let attributes = Default::default();
        self.model.insert(&path, ModelDataset { number, elements, row, is_unlimited, attributes });
        if self.random.one_in(2) {
            self.kept.push((path, number, data));
        }
    }

    fn delete(&mut self) {
        let Some(path) = self.some_path() else { return };
        let gone = self.file().unlink(&path);
        gone.unwrap_or_else(|error| panic!("{}: {error}", self.who("delete")));
        self.model.datasets.remove(&path);
    }

    /// Moves a dataset to a path where nothing is.
    fn rename(&mut self) {
        let (Some(from), Some(to)) = (self.some_path(), self.any_path()) else { return };
        if self.model.datasets.contains_key(&to) {
            return;
        }
        let renamed = self.file().rename(&from, &to);
        renamed.unwrap_or_else(|error| panic!("{}: {from} to {to}: {error}", self.who("rename")));
        let moved = self.model.datasets.remove(&from).unwrap();
        let number = moved.number;
        self.model.insert(&to, moved);
        let is_moved = |kept: &&mut (String, u64, Dataset)| kept.1 == number && kept.0 == from;
        self.kept.iter_mut().filter(is_moved).for_each(|kept| kept.0.clone_from(&to));
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
        self.model.expect_len(&path, rows as usize * row);
        data.resize(&dims).unwrap_or_else(|error| panic!("{}: {path}: {error}", self.who("resize")));
        self.model.resize(&path, rows as usize * row);
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
        self.model.expect(&path, from as usize * row, &new);
        let written = new.write_to(&self.data(&path), from..to);
        written.unwrap_or_else(|error| panic!("{}: {path}: {error}", self.who("write")));
        self.model.put(&path, from as usize * row, &new);
    }

    fn append(&mut self) {
        let Some(path) = self.some_path() else { return };
        let known = &self.model.datasets[&path];
        if !known.is_unlimited {
            return;
        }
        let count = (1 + self.random.below(9)) as usize * known.row;
        let new = known.elements.random_like(&mut self.random, count);
        self.model.expect(&path, self.model.datasets[&path].elements.len(), &new);
        let appended = new.append_to(&self.data(&path));
        appended.unwrap_or_else(|error| panic!("{}: {path}: {error}", self.who("append")));
        self.model.append(&path, &new);
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

    /// A flush, or a refresh, which takes up what others have written and loses nothing of this session.
    fn flush(&mut self) {
        let who = self.who("flush");
        let flushed = match (self.random.below(6), self.some_path()) {
            (0, Some(path)) => self.data(&path).flush(),
            (4, Some(path)) => self.data(&path).refresh().map(drop),
            (5, _) => self.file().refresh(),
            (1, _) if self.file().session().capabilities.durability != DurabilitySupport::Never => {
                self.file().flush_durable()
            }
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
        if self.model.datasets.get(&path).is_none_or(|known| known.number != number) {
            self.use_deleted(&data);
            return self.model.compare(&self.file(), &who);
        }
        let known = &self.model.datasets[&path];
        if known.is_unlimited {
            let new = known.elements.random_like(&mut self.random, known.row);
            self.model.expect(&path, self.model.datasets[&path].elements.len(), &new);
            new.append_to(&data).unwrap_or_else(|error| panic!("{who}: {path}: {error}"));
            self.model.append(&path, &new);
        }
        self.model.compare_one(&self.file(), &path, &who);
    }

    /// What a handle of a deleted dataset says is either an error, or what it was told itself.
    fn use_deleted(&mut self, data: &Dataset) {
        let who = self.who("handle of a deleted dataset");
        let new = self.random.next() | 1;
        let is_numbers = data.read::<u64>().is_ok_and(|all| all.len() as u64 == data.shape().unwrap()[0]);
        let appended = data.append(&[new]);
        if is_numbers && appended.is_ok() {
            let rows = data.shape().unwrap_or_else(|error| panic!("{who}: a shape after an append: {error}"))[0];
            let last = data.read_slice::<u64>(rows - 1..rows);
            let last = last.unwrap_or_else(|error| panic!("{who}: a read after an append: {error}"));
            assert_eq!(last, [new], "{who}: the row that was appended");
        }
        let _ = data.flush();
    }
}
