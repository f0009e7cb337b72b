//! What a store should hold, as vectors.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use h5live::{Dataset, File};

use super::Random;

/// The elements of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    Numbers(Vec<u64>),
    Texts(Vec<String>),
}

impl Column {
    pub fn empty_like(&self) -> Column {
        match self {
            Column::Numbers(_) => Column::Numbers(Vec::new()),
            Column::Texts(_) => Column::Texts(Vec::new()),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Column::Numbers(all) => all.len(),
            Column::Texts(all) => all.len(),
        }
    }

    pub fn text_of(&self, at: usize) -> String {
        match self {
            Column::Numbers(all) => all[at].to_string(),
            Column::Texts(all) => format!("{:?}", all[at]),
        }
    }

    /// New elements of the same type.
    pub fn random_like(&self, random: &mut Random, count: usize) -> Column {
        match self {
            Column::Numbers(_) => Column::Numbers((0..count).map(|_| random.next() | 1).collect()),
            Column::Texts(_) => Column::Texts((0..count).map(|_| random_text(random)).collect()),
        }
    }

    /// Cuts it, or fills it with what nobody wrote.
    pub fn resize(&mut self, len: usize) {
        match self {
            Column::Numbers(all) => all.resize(len, 0),
            Column::Texts(all) => all.resize(len, String::new()),
        }
    }

    /// Puts other elements of the same type at a place.
    pub fn put(&mut self, at: usize, new: &Column) {
        match (self, new) {
            (Column::Numbers(all), Column::Numbers(new)) => all[at..at + new.len()].copy_from_slice(new),
            (Column::Texts(all), Column::Texts(new)) => all[at..at + new.len()].clone_from_slice(new),
            _ => unreachable!("columns have one type"),
        }
    }

    pub fn slice(&self, from: usize, to: usize) -> Column {
        match self {
            Column::Numbers(all) => Column::Numbers(all[from..to].to_vec()),
            Column::Texts(all) => Column::Texts(all[from..to].to_vec()),
        }
    }

    pub fn append_to(&self, data: &Dataset) -> h5live::Result<()> {
        match self {
            Column::Numbers(new) => data.append(new).map(drop),
            Column::Texts(new) => data.append(new).map(drop),
        }
    }

    /// Writes rows of a dataset with this many elements in a row.
    pub fn write_to(&self, data: &Dataset, rows: std::ops::Range<u64>) -> h5live::Result<()> {
        match self {
            Column::Numbers(new) => data.write_slice(rows_of(data, rows), new),
            Column::Texts(new) => data.write_slice(rows_of(data, rows), new),
        }
    }

    /// Reads rows of a dataset of this type.
    pub fn read_like(&self, data: &Dataset, rows: std::ops::Range<u64>) -> h5live::Result<Column> {
        Ok(match self {
            Column::Numbers(_) => Column::Numbers(data.read_slice(rows_of(data, rows))?),
            Column::Texts(_) => Column::Texts(data.read_slice(rows_of(data, rows))?),
        })
    }
}

/// Rows of a dataset with one or two dimensions.
fn rows_of(data: &Dataset, rows: std::ops::Range<u64>) -> h5live::Selection {
    let dims = data.shape().unwrap();
    let mut start = vec![0; dims.len()];
    let mut count = dims;
    (start[0], count[0]) = (rows.start, rows.end - rows.start);
    h5live::Selection::Hyperslab(h5live::model::Hyperslab::block(&start, &count))
}

fn random_text(random: &mut Random) -> String {
    let len = if random.one_in(10) { random.below(3000) } else { random.below(20) };
    let letter = char::from(b'a' + random.below(26) as u8);
    format!("{}{}", random.below(1000), letter.to_string().repeat(len as usize))
}

/// A dataset as it should be.
#[derive(Debug, Clone)]
pub struct ModelDataset {
    /// Another one for each dataset that is made.
    pub number: u64,
    pub elements: Column,
    /// Elements of a row.
    pub row: usize,
    /// Whether rows can be added and taken away.
    pub is_unlimited: bool,
    /// Bytes of each attribute.
    pub attributes: BTreeMap<String, Vec<u8>>,
}

impl ModelDataset {
    pub fn rows(&self) -> u64 {
        (self.elements.len() / self.row) as u64
    }
}

/// What each element of a dataset has ever been: what a reader may see that looks at any time.
type History = Vec<HashSet<String>>;

/// Everything that should be at some paths of a store.
#[derive(Debug, Clone, Default)]
pub struct Model {
    paths: Vec<&'static str>,
    pub datasets: BTreeMap<String, ModelDataset>,
    histories: BTreeMap<u64, History>,
    /// The datasets that have ever been at a path.
    ever_at: BTreeMap<String, BTreeSet<u64>>,
}

impl Model {
    pub fn new(paths: &[&'static str]) -> Model {
        Model { paths: paths.to_vec(), ..Model::default() }
    }

    /// Takes a path, and what is there, from another model.
    pub fn take_over(&mut self, other: &mut Model, path: &'static str) {
        other.paths.retain(|known| *known != path);
        self.paths.push(path);
        self.datasets.extend(other.datasets.remove_entry(path));
        let ever = other.ever_at.remove(path).unwrap_or_default();
        for number in &ever {
            let more = other.histories.get(number).cloned().unwrap_or_default();
            let history = self.histories.entry(*number).or_default();
            history.resize_with(history.len().max(more.len()), HashSet::new);
            history.iter_mut().zip(more).for_each(|(seen, more)| seen.extend(more));
        }
        self.ever_at.insert(path.to_owned(), ever);
    }

    pub fn insert(&mut self, path: &str, new: ModelDataset) {
        self.ever_at.entry(path.to_owned()).or_default().insert(new.number);
        let elements = new.elements.clone();
        self.datasets.insert(path.to_owned(), new);
        self.expect(path, 0, &elements);
    }

    /// These elements are about to be at a path.
    pub fn expect(&mut self, path: &str, at: usize, new: &Column) {
        let history = self.histories.entry(self.datasets[path].number).or_default();
        history.resize_with(history.len().max(at + new.len()), HashSet::new);
        history[at..].iter_mut().zip(0..new.len()).for_each(|(seen, at)| _ = seen.insert(new.text_of(at)));
    }

    /// A dataset is about to have this many elements. What is cut off is filled before it is out of sight.
    pub fn expect_len(&mut self, path: &str, len: usize) {
        let (mut fill, before) = (self.datasets[path].elements.empty_like(), self.datasets[path].elements.len());
        fill.resize(len.abs_diff(before));
        self.expect(path, len.min(before), &fill);
    }

    /// Whether a reader that looks at any time may have seen these elements at a path.
    pub fn check_seen(&self, path: &str, seen: &Column, who: &str) {
        let ever = self.ever_at.get(path).into_iter().flatten().filter_map(|number| self.histories.get(number));
        let mut reason = "nothing was ever there".to_owned();
        for history in ever {
            match (0..seen.len()).find(|at| !history.get(*at).is_some_and(|known| known.contains(&seen.text_of(*at)))) {
                None => return,
                Some(at) => reason = format!("element {at} of {} has never been {:.60}", seen.len(), seen.text_of(at)),
            }
        }
        panic!("{who}: {path}: {reason}");
    }

    pub fn put(&mut self, path: &str, at: usize, new: &Column) {
        self.datasets.get_mut(path).unwrap().elements.put(at, new);
    }

    pub fn append(&mut self, path: &str, new: &Column) {
        let before = self.datasets[path].elements.len();
        self.expect(path, before, new);
        self.resize(path, before + new.len());
        self.put(path, before, new);
    }

    pub fn resize(&mut self, path: &str, len: usize) {
        self.datasets.get_mut(path).unwrap().elements.resize(len);
    }

    /// Compares all of it with what is seen.
    pub fn compare(&self, file: &File, who: &str) {
        self.datasets.keys().for_each(|path| self.compare_one(file, path, who));
        for path in &self.paths {
            let is_there = file.dataset(path).is_ok();
            assert_eq!(is_there, self.datasets.contains_key(*path), "{who}: whether {path} is there");
        }
    }

    pub fn compare_one(&self, file: &File, path: &str, who: &str) {
        let expected = &self.datasets[path];
        let data = file.dataset(path).unwrap_or_else(|error| panic!("{who}: {path}: {error}"));
        let failed = |error: h5live::Error| -> ! { panic!("{who}: {path}: {error}") };
        let rows = data.shape().unwrap_or_else(|error| failed(error))[0];
        assert_eq!(rows, expected.rows(), "{who}: rows of {path}");
        let found = expected.elements.read_like(&data, 0..rows).unwrap_or_else(|error| failed(error));
        assert!(found == expected.elements, "{who}: {path}: {}", first_difference(&found, &expected.elements));
        let names: Vec<_> = data.attribute_names().unwrap().iter().map(ToString::to_string).collect();
        let known: Vec<_> = expected.attributes.keys().cloned().collect();
        assert_eq!(names, known, "{who}: attributes of {path}");
        for (name, value) in &expected.attributes {
            let found: Vec<u8> = data.attribute(name).and_then(|attribute| attribute.read()).unwrap();
            assert!(found == *value, "{who}: attribute {name} of {path}");
        }
    }
}

fn first_difference(found: &Column, expected: &Column) -> String {
    let differs = |at: &usize| found.text_of(*at) != expected.text_of(*at);
    match (0..found.len().min(expected.len())).find(differs) {
        Some(at) => format!("element {at} is {:.60}, and not {:.60}", found.text_of(at), expected.text_of(at)),
        None => format!("{} elements, and not {}", found.len(), expected.len()),
    }
}
