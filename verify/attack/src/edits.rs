//! A writer that changes a live file until it is killed. Then the file must hold everything that it has flushed, and
//! the change after that as a whole or not at all.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use h5live::model::LinkTarget;
use h5live::{Dataset, File, Group, LibVer, Object, Selection, UNLIMITED};
use h5live_checker::file::check_path;

use h5live_cli::{CommandOutcome, Error, Result, StdoutWriter, error_with_causes};
use h5live_lab::mix;

/// Names of attributes, of links and of datasets that come and go.
const NAMES: [u64; 3] = [40, 60, 12];
/// Most elements of the dataset that is resized, along each dimension.
const SIDE: u64 = 40;

/// The kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Attributes are set, replaced and removed.
    Attributes,
    /// Links are made and removed.
    Links,
    /// Datasets are made and deleted.
    Datasets,
    /// A dataset of two dimensions is made larger and smaller.
    Resize,
    /// Rows are appended.
    Rows,
    /// All of it.
    Mixed,
}

/// Changes a live file, or checks its contents after its writer was killed
#[derive(Debug, clap::Args)]
pub struct Edits {
    /// The file
    file: PathBuf,
    /// The kind of change
    #[arg(long, value_enum)]
    kind: Kind,
    /// As the oldest programs can read it: with symbol tables, and with all attributes in object headers
    #[arg(long)]
    old: bool,
    /// The seed from which all changes follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Make the file
    #[arg(long)]
    create: bool,
    /// The first change of the writer
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Check the file after this many changes were flushed. Prints how many are in it
    #[arg(long, value_name = "CHANGES")]
    check: Option<u64>,
    /// Follow the file until standard input ends
    #[arg(long)]
    follow: bool,
}

/// The contents of a file. Names are numbers, and contents are the number of the change that made them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Model {
    attributes: BTreeMap<u64, u64>,
    links: BTreeMap<u64, u64>,
    datasets: BTreeMap<u64, u64>,
    grid: [u64; 2],
    rows: u64,
}

/// A change.
#[derive(Debug, Clone, Copy)]
enum Change {
    Attribute(u64),
    Link(u64),
    Dataset(u64),
    Grid([u64; 2]),
    Rows(u64),
}

impl Kind {
    fn change(self, random: u64) -> Change {
        let all = [Kind::Attributes, Kind::Links, Kind::Datasets, Kind::Resize, Kind::Rows];
        match self {
            Kind::Attributes => Change::Attribute(random % NAMES[0]),
            Kind::Links => Change::Link(random % NAMES[1]),
            Kind::Datasets => Change::Dataset(random % NAMES[2]),
            Kind::Resize => Change::Grid([1 + random % SIDE, 1 + (random >> 16) % SIDE]),
            Kind::Rows => Change::Rows(1 + random % 50),
            Kind::Mixed => all[(random >> 32) as usize % all.len()].change(random),
        }
    }
}

impl Model {
    /// Applies the change with this number to the model.
    fn apply(&mut self, change: Change, number: u64) {
        let toggle = |things: &mut BTreeMap<u64, u64>, name: u64| {
            if things.remove(&name).is_none() {
                things.insert(name, number);
            }
        };
        match change {
            // Every third time what is there is replaced.
            Change::Attribute(name) if number.is_multiple_of(3) => drop(self.attributes.insert(name, number)),
            Change::Attribute(name) => toggle(&mut self.attributes, name),
            Change::Link(name) => toggle(&mut self.links, name),
            Change::Dataset(name) => toggle(&mut self.datasets, name),
            Change::Grid(dims) => self.grid = dims,
            Change::Rows(rows) => self.rows += rows,
        }
    }
}

/// The value of an attribute that a change has set.
fn attribute_value(number: u64) -> Vec<u64> {
    vec![number; (1 + mix(number) % 60) as usize]
}

/// The elements of a dataset that a change has made.
fn dataset_values(number: u64) -> Vec<u64> {
    (0..4 + mix(number) % 40).map(|i| number * 1000 + i).collect()
}

fn grid_values([rows, columns]: [u64; 2]) -> Vec<u64> {
    (0..rows).flat_map(|row| (0..columns).map(move |column| 1 + row * 1000 + column)).collect()
}

fn log_values(rows: std::ops::Range<u64>) -> Vec<u64> {
    rows.map(|row| mix(row) | 1).collect()
}

impl Edits {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`h5live_cli::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        match self.check {
            _ if self.create => self.make().map(|()| CommandOutcome::Clean),
            Some(flushed) => self.examine(flushed),
            None if self.follow => self.watch().map(|()| CommandOutcome::Clean),
            None => self.write().map(|()| CommandOutcome::Clean),
        }
    }

    fn model(&self, changes: u64) -> Model {
        let mut model = Model { grid: [1, 1], ..Model::default() };
        (0..changes).for_each(|number| model.apply(self.change(number), number));
        model
    }

    fn change(&self, number: u64) -> Change {
        self.kind.change(mix(self.seed ^ mix(number)))
    }

    fn make(&self) -> Result<()> {
        let profile = if self.old { LibVer::Earliest } else { LibVer::default() };
        let file = File::options().create().libver(profile).open(&self.file)?;
        file.create_group("thing")?;
        file.create_group("links")?;
        file.create_group("made")?;
        let limit = [UNLIMITED, SIDE];
        let grid = file.new_dataset::<u64>().shape(&[1, 1]).max_shape(&limit).chunk_shape(&[4, 8]).create("grid")?;
        grid.write(&grid_values([1, 1]))?;
        file.new_dataset::<u64>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[16]).create("log")?;
        Ok(file.close()?)
    }

    fn write(&self) -> Result<()> {
        let file = File::options().swmr_write().open(&self.file)?;
        let mut out = StdoutWriter::stdout();
        let mut model = self.model(self.first);
        for number in self.first.. {
            make(&file, &model, self.change(number), number)?;
            file.flush()?;
            model.apply(self.change(number), number);
            out.line(number + 1)?;
            out.flush()?;
        }
        Ok(())
    }

    /// Reads everything, again and again. Objects that are removed meanwhile cannot be read.
    fn watch(&self) -> Result<()> {
        let file = File::options().swmr_read().open(&self.file)?;
        let end = std::thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
        while !end.is_finished() {
            let _: std::result::Result<Model, String> = found(&file);
        }
        Ok(())
    }

    /// Looks at the file, at a copy of it that was repaired, and at what the checker says of that copy.
    fn examine(&self, flushed: u64) -> Result<CommandOutcome> {
        let (flushed_model, attempted) = (self.model(flushed), self.model(flushed + 1));
        // A smaller extent is published at once, a larger one by the flush.
        let shrunk = [flushed_model.grid[0].min(attempted.grid[0]), flushed_model.grid[1].min(attempted.grid[1])];
        let half = Model { grid: shrunk, ..flushed_model.clone() };
        let changes = |path: &Path| -> std::result::Result<u64, String> {
            let file = File::open(path).map_err(|error| error_with_causes(&error))?;
            let found = found(&file)?;
            match () {
                () if found == flushed_model || found == half => Ok(flushed),
                () if found == attempted => Ok(flushed + 1),
                () => {
                    Err(format!("{flushed} changes were flushed, but there is {}", difference(&found, &flushed_model)))
                }
            }
        };
        let repaired = self.file.with_extension("repaired.h5");
        let fault = |source| Error::Io { path: repaired.clone(), source };
        std::fs::copy(&self.file, &repaired).map_err(fault)?;
        let mut out = StdoutWriter::stdout();
        let after = || -> std::result::Result<u64, String> {
            let before = changes(&self.file).map_err(|fault| format!("as it was left: {fault}"))?;
            h5live::repair(&repaired).map_err(|error| error_with_causes(&error))?;
            let report = check_path(&repaired).map_err(|error| error.to_string())?;
            if let Some(finding) = report.findings.first() {
                return Err(format!("repaired, it is not sound: {finding}"));
            }
            let after = changes(&repaired).map_err(|fault| format!("repaired: {fault}"))?;
            // What was half done may be done by the repair, and is never undone.
            if after < before { Err(format!("the repair has undone change {before}")) } else { Ok(after) }
        };
        let outcome = match after() {
            Ok(changes) => out.line(changes).map(|()| CommandOutcome::Clean),
            Err(fault) => out.line(format_args!("fault: {fault}")).map(|()| CommandOutcome::Findings),
        }?;
        out.flush()?;
        Ok(outcome)
    }
}

/// Makes a change.
fn make(file: &File, model: &Model, change: Change, number: u64) -> h5live::Result<()> {
    match change {
        Change::Attribute(name) => {
            let group = file.group("thing")?;
            let removes = model.attributes.contains_key(&name) && !number.is_multiple_of(3);
            let name = format!("attribute {name}");
            if removes {
                return group.remove_attribute(&name);
            }
            let value = attribute_value(number);
            group.set_attribute_array(&name, &value, &[value.len() as u64])
        }
        Change::Link(name) => {
            let group = file.group("links")?;
            let taken = model.links.contains_key(&name);
            let name = format!("link {name}");
            if taken { group.unlink(&name) } else { group.link_soft(&name, &format!("/target of {number}")) }
        }
        Change::Dataset(name) => {
            let group = file.group("made")?;
            let taken = model.datasets.contains_key(&name);
            let name = format!("dataset {name}");
            if taken {
                return group.unlink(&name);
            }
            let values = dataset_values(number);
            let shape = [values.len() as u64];
            let mut builder = group.new_dataset::<u64>().shape(&shape).max_shape(&[UNLIMITED]).chunk_shape(&[8]);
            if number.is_multiple_of(2) {
                builder = builder.deflate(1);
            }
            builder.create(&name)?.write(&values)
        }
        Change::Grid(dims) => {
            let grid = file.dataset("grid")?;
            grid.resize(&dims)?;
            grid.write_slice(Selection::All, &grid_values(dims))
        }
        Change::Rows(rows) => file.dataset("log")?.append(&log_values(model.rows..model.rows + rows)),
    }
}

/// The contents of a file, if changes can have made them.
fn found(file: &File) -> std::result::Result<Model, String> {
    let read = || -> h5live::Result<std::result::Result<Model, String>> {
        let mut model = Model::default();
        for attribute in file.group("thing")?.attributes()? {
            let value = attribute.read::<u64>()?;
            let number = value.first().copied().unwrap_or(0);
            if value != attribute_value(number) {
                return Ok(Err(format!("attribute {} has another value", attribute.name())));
            }
            model.attributes.insert(number_of(&attribute.name().to_string()), number);
        }
        for link in file.group("links")?.links()? {
            let LinkTarget::Soft(target) = &link.target else {
                return Ok(Err(format!("{} is no soft link", link.name)));
            };
            model.links.insert(number_of(&link.name.to_string()), number_of(&target.to_string()));
        }
        let made: Group = file.group("made")?;
        for name in made.names()? {
            let Object::Dataset(dataset) = made.object(&name.to_string())? else {
                return Ok(Err(format!("{name} is no dataset")));
            };
            let values = dataset.read::<u64>()?;
            let number = values.first().copied().unwrap_or(0) / 1000;
            if values != dataset_values(number) {
                return Ok(Err(format!("{name} has other values")));
            }
            model.datasets.insert(number_of(&name.to_string()), number);
        }
        let grid: Dataset = file.dataset("grid")?;
        model.grid = grid.shape()?.try_into().unwrap_or_default();
        if grid.read::<u64>()? != grid_values(model.grid) {
            return Ok(Err(format!("the grid of {:?} has other values", model.grid)));
        }
        let log = file.dataset("log")?.read::<u64>()?;
        model.rows = log.len() as u64;
        Ok(if log == log_values(0..model.rows) { Ok(model) } else { Err("the log has other values".into()) })
    };
    read().map_err(|error| error_with_causes(&error))?
}

/// The number at the end of a name.
fn number_of(name: &str) -> u64 {
    name.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(u64::MAX)
}

/// In what two models differ.
fn difference(found: &Model, flushed_model: &Model) -> String {
    let all = [
        ("attributes", &found.attributes, &flushed_model.attributes),
        ("links", &found.links, &flushed_model.links),
        ("datasets", &found.datasets, &flushed_model.datasets),
    ];
    for (what, found, flushed_model) in all {
        let names = found.keys().chain(flushed_model.keys());
        if let Some(name) = names.copied().find(|name| found.get(name) != flushed_model.get(name)) {
            return format!(
                "{what}: {name} is of change {:?}, not of {:?}",
                found.get(&name),
                flushed_model.get(&name)
            );
        }
    }
    format!(
        "a grid of {:?}, not {:?}, and {} rows, not {}",
        found.grid, flushed_model.grid, found.rows, flushed_model.rows
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_make_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        for (kind, old) in [(Kind::Mixed, false), (Kind::Mixed, true), (Kind::Attributes, false)] {
            let path = folder.path().join("file.h5");
            let edits =
                Edits { file: path.clone(), kind, old, seed: 3, create: true, first: 0, check: None, follow: false };
            edits.make().unwrap();
            let file = File::options().swmr_write().open(&path).unwrap();
            let mut model = edits.model(0);
            for number in 0..200 {
                make(&file, &model, edits.change(number), number).unwrap();
                model.apply(edits.change(number), number);
            }
            file.close().unwrap();
            assert_eq!(found(&File::open(&path).unwrap()), Ok(edits.model(200)));
            assert_eq!(edits.examine(200).unwrap(), CommandOutcome::Clean);
            assert_eq!(edits.examine(199).unwrap(), CommandOutcome::Clean);
            assert_eq!(edits.examine(198).unwrap(), CommandOutcome::Findings);
        }
    }
}
