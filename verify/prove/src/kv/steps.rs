//! What the writer of a key-value store does, step by step, and what a reader finds after each.

use h5live::model::{CreationOrder, LinkTarget, Name};
use h5live::{Error, File, UNLIMITED};

/// Steps of the writer; each ends with a flush.
pub const STEPS: usize = 5;

/// A part of what is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A dataset to which rows are appended.
    Rows,
    /// Further links to it, which come and go, and their number.
    Names,
    /// A dataset whose elements are overwritten.
    Grid,
    /// A dataset of texts, of which the first is replaced again and again.
    Texts,
    /// A map.
    Map,
    /// Attributes of the root group.
    Attributes,
    /// A group that keeps the order of creation, in which datasets come and go.
    Group,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 7] =
        [Part::Rows, Part::Names, Part::Grid, Part::Texts, Part::Map, Part::Attributes, Part::Group];

    /// What it shows after a step.
    fn expected(self, step: usize) -> Vec<String> {
        let number = |n: usize| n.to_string();
        match self {
            Part::Rows => (1..=step).map(number).collect(),
            Part::Names => {
                let mut names: Vec<_> = kept(step).map(alias).collect();
                names.push(format!("rows of {} links", names.len() + 1));
                names
            }
            Part::Grid => (0..2).map(|cell| number((1..=step).filter(|n| n % 2 == cell).max().unwrap_or(0))).collect(),
            Part::Texts => (1..=step).map(|n| if n == 1 { first_text(step) } else { new_text(n) }).collect(),
            Part::Map => {
                let pairs = kept(step).map(|n| format!("{}={n}", map_key(n)));
                pairs.chain([format!("newest={step}")]).collect()
            }
            Part::Attributes => vec![number(step), note(step)],
            Part::Group => kept(step).map(|n| format!("{} has {n}", member(n))).collect(),
        }
    }

    /// After which step it looks like this; `None` if after none.
    pub fn step_of(self, found: &[String]) -> Option<usize> {
        (0..=STEPS).find(|step| self.expected(*step) == found)
    }

    /// What it shows.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read(self, file: &File) -> Result<Vec<String>, Error> {
        let numbers =
            |name: &str| Ok(file.dataset(name)?.read::<u64>()?.iter().map(u64::to_string).collect::<Vec<_>>());
        match self {
            Part::Rows => numbers("rows"),
            Part::Names => {
                let rows = file.dataset("rows")?;
                let links = file.root().links()?.into_iter().filter(|link| link.target == LinkTarget::Hard(rows.id()));
                let mut found: Vec<_> = links.map(|link| link.name.to_string()).collect();
                found.retain(|name| name != "rows");
                found.sort();
                found.push(format!("rows of {} links", rows.info()?.hard_link_count));
                Ok(found)
            }
            Part::Grid => numbers("grid"),
            Part::Texts => file.dataset("texts")?.read::<String>(),
            Part::Map => {
                let pairs = file.map::<String, u64>("map")?;
                pairs.iter().map(|pair| pair.map(|(key, value)| format!("{key}={value}"))).collect()
            }
            Part::Attributes => {
                let root = file.root();
                let count: u64 = root.attribute("count")?.read_scalar()?;
                Ok(vec![count.to_string(), root.attribute("note")?.read_scalar::<String>()?])
            }
            Part::Group => {
                let group = file.group("group")?;
                let mut links = group.links()?;
                links.sort_by_key(|link| link.creation_order);
                let show = |name: &Name| -> Result<String, Error> {
                    Ok(format!("{name} has {}", group.dataset(&name.to_string())?.read_scalar::<u64>()?))
                };
                links.iter().map(|link| show(&link.name)).collect()
            }
        }
    }
}

/// The steps of which what comes and goes is there after a step.
fn kept(step: usize) -> impl Iterator<Item = usize> {
    (1..=step).filter(move |n| n + 2 > step)
}

fn alias(step: usize) -> String {
    format!("alias {step}")
}

fn first_text(step: usize) -> String {
    format!("first as of {step}")
}

fn new_text(step: usize) -> String {
    format!("text {step}")
}

/// Some keys are longer than those of the engine.
fn map_key(step: usize) -> String {
    format!("key {step}{}", "-".repeat(step % 2 * 90))
}

fn note(step: usize) -> String {
    format!("note {step}")
}

/// The datasets of the group. The first names come last.
fn member(step: usize) -> String {
    format!("member {}", 9 - step)
}

/// Makes what the steps change.
///
/// # Errors
/// Those of the store.
pub fn make_objects(file: &File) -> Result<(), Error> {
    let growing = || file.new_dataset::<u64>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[2]);
    growing().create("rows")?;
    file.new_dataset::<u64>().shape(&[2]).create("grid")?.write(&[0, 0])?;
    file.new_dataset::<String>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[2]).create("texts")?;
    file.new_map::<String, u64>().create("map")?.put("newest", &0)?;
    file.root().new_group().link_order(CreationOrder::Indexed).create("group")?;
    attributes(file, 0)?;
    file.flush()
}

fn attributes(file: &File, step: usize) -> Result<(), Error> {
    file.root().new_attribute("count").write_scalar(&(step as u64))?;
    file.root().new_attribute("note").write_scalar(&note(step))
}

/// Takes a step (1 or more), with a flush at its end.
///
/// # Errors
/// Those of the store.
pub fn take_step(file: &File, step: usize) -> Result<(), Error> {
    let root = file.root();
    file.dataset("rows")?.append(&[step as u64])?;
    file.dataset("grid")?.write_slice(step % 2, &[step as u64])?;
    let texts = file.dataset("texts")?;
    texts.append(&[new_text(step)])?;
    texts.write_slice(0, &[first_text(step)])?;
    let map = file.map::<String, u64>("map")?;
    map.put("newest", &(step as u64))?;
    map.put(&map_key(step), &(step as u64))?;
    attributes(file, step)?;
    let group = file.group("group")?;
    group.new_dataset::<u64>().compact().create(&member(step))?.write_scalar(&(step as u64))?;
    root.link_hard(&alias(step), file.dataset("rows")?.id())?;
    if step > 2 {
        root.unlink(&alias(step - 2))?;
        map.remove(&map_key(step - 2))?;
        group.unlink(&member(step - 2))?;
    }
    file.flush()
}
