//! Copies between every pair of stores, for a table of their own.

use std::path::Path;

use h5live::{Copier, File, Options};
use h5live_hsds::{HsdsFolderConnector, HsdsStore, LastOpenedStore};

use crate::work::{Done, Ground, Requests, Unit, WRITING, Work, bytes, sum, timed};
use crate::{Error, Result, Side};

/// What the table says of each store, and the scheme of its locations.
const SCHEMES: [&str; 5] = ["native", "log", "kv", "hsds", "mem"];
/// For a native file, no scheme is given.
const NATIVE: &str = SCHEMES[0];
const MEMORY: &str = SCHEMES[4];
const OBJECTS: &str = SCHEMES[3];

/// Equal datasets in groups, each with an attribute that has its number.
#[derive(Clone, Copy)]
struct Contents {
    datasets: u64,
    /// Elements of 8 bytes of a dataset.
    len: u64,
    /// Elements of a chunk; `None` for datasets that are not chunked.
    chunk: Option<u64>,
    /// Datasets of a group.
    in_group: u64,
}

const LARGE: Contents = Contents { datasets: 64, len: 128 << 10, chunk: Some(8 << 10), in_group: 8 };
const SMALL: Contents = Contents { datasets: 2000, len: 100, chunk: None, in_group: 100 };

impl Contents {
    /// The paths of all datasets, with their numbers.
    fn paths(self, ground: &Ground) -> impl Iterator<Item = (u64, String)> {
        (0..ground.times(self.datasets)).map(move |n| (n, format!("group {}/data {n}", n / self.in_group)))
    }

    fn values(self, n: u64) -> Vec<u64> {
        (0..self.len).map(|at| n * self.len + at + 1).collect()
    }

    fn write(self, file: &File, ground: &Ground) -> Result<()> {
        for (n, path) in self.paths(ground) {
            let new = file.new_dataset::<u64>();
            let new = self.chunk.map_or(new.clone(), |chunk| new.chunk_shape(&[chunk]));
            let data = new.create_with_data(&path, &self.values(n))?;
            data.new_attribute("number").write_scalar(&n)?;
        }
        Ok(file.flush()?)
    }

    /// A sum over what a file has of these.
    fn sum_of(self, file: &File, ground: &Ground) -> Result<u64> {
        self.paths(ground).try_fold(0, |total, (_, path)| {
            let data = file.dataset(&path)?;
            let number = data.attribute("number")?.read_scalar::<u64>()?;
            Ok(add(total, number, &data.read::<u64>()?))
        })
    }

    /// The same sum as it has to be.
    fn expected_sum(self, ground: &Ground) -> u64 {
        self.paths(ground).fold(0, |total, (n, _)| add(total, n, &self.values(n)))
    }
}

fn add(total: u64, number: u64, values: &[u64]) -> u64 {
    total.wrapping_mul(3).wrapping_add(sum(bytes(values))).wrapping_add(number)
}

fn location(scheme: &str, path: &Path) -> String {
    if scheme == NATIVE { path.display().to_string() } else { format!("{scheme}:{}", path.display()) }
}

/// The stores of a pair.
fn schemes(ground: &Ground) -> (&'static str, &'static str) {
    let (pair, count) = (ground.part.unwrap_or(0) as usize, SCHEMES.len());
    (SCHEMES[pair / count], SCHEMES[pair % count])
}

/// Options with which `opened` keeps an object store, to count its requests.
fn counting(opened: &LastOpenedStore) -> Options {
    File::options().connectors(
        Options::built_in_connectors().with_connector(HsdsFolderConnector::remembering_last_opened(opened.clone())),
    )
}

/// Makes what is copied, unless another pair has. A file in memory is made by the process that copies it.
fn prepare(contents: Contents, ground: &Ground) -> Result<()> {
    let (scheme, _) = schemes(ground);
    let path = ground.file(&format!("from-{scheme}"));
    if scheme == MEMORY || path.exists() {
        return Ok(());
    }
    let file = File::options().create().open(&*location(scheme, &path))?;
    contents.write(&file, ground)?;
    Ok(file.close()?)
}

fn copy(contents: Contents, ground: &Ground) -> Result<Done> {
    let (from, to) = schemes(ground);
    let from_path = ground.file(&format!("from-{from}"));
    let to_path = ground.file(&format!("to-{to}-{}", std::process::id()));
    let (from_at, to_at) = (location(from, &from_path), location(to, &to_path));
    if from == MEMORY {
        let file = File::options().create().open(&*from_at)?;
        contents.write(&file, ground)?;
        file.close()?;
    }
    let opened = [LastOpenedStore::default(), LastOpenedStore::default()];
    let units = ground.times(contents.datasets) * if contents.chunk.is_some() { contents.len * 8 } else { 1 };
    let (done, (source, target)) = timed(units, || {
        let source = counting(&opened[0]).open(&*from_at)?;
        let target = counting(&opened[1]).create().open(&*to_at)?;
        let mut copier = Copier::new(&source, &target);
        copier.contents(&source.root(), &target.root())?;
        let report = copier.copy_data_and_finish()?;
        target.flush()?;
        if !report.is_clean() {
            return Err(Error::Other(format!("{from} to {to}: {report:?}")));
        }
        // They are closed afterwards: that waits for the disk.
        Ok((source, target))
    })?;
    let asked = opened.iter().filter_map(LastOpenedStore::last).map(|store| requests(&store));
    let requests = asked.reduce(|a, b| Requests { number: a.number + b.number, waves: a.waves + b.waves });
    target.close()?;
    drop(source);
    let total = contents.sum_of(&File::open(&*to_at)?, ground)?;
    // Thousands of files that were just removed make ext4 without a journal slow to make others: they stay to the end.
    if to != MEMORY && to != OBJECTS {
        super::kv::remove(&to_path)?;
    }
    match total == contents.expected_sum(ground) {
        true => Ok(Done { requests, ..done }.sum(total)),
        false => Err(Error::Differ(format!("what was copied from {from} to {to} has the sum {total:x}"))),
    }
}

fn requests(store: &HsdsStore) -> Requests {
    let found = store.request_counts();
    Requests { number: found.gets + found.puts + found.deletes + found.lists, waves: found.waves }
}

pub fn works() -> Vec<Work> {
    let large = Work {
        name: "copies",
        title: "64 datasets of 1 MiB in chunks of 64 KiB",
        unit: Unit::Bytes,
        budget: WRITING,
        pairs_of: &SCHEMES,
        sides: &[Side::H5live],
        prepare: |ground| prepare(LARGE, ground),
        run: |_, ground| copy(LARGE, ground),
        ..Work::PLAIN
    };
    vec![
        large,
        Work {
            name: "copies-small",
            title: "2,000 datasets of 800 bytes",
            unit: Unit::Things("datasets"),
            prepare: |ground| prepare(SMALL, ground),
            run: |_, ground| copy(SMALL, ground),
            ..large
        },
    ]
}
