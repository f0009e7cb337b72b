//! h5live beside libhdf5: the same work, in the same run, each in a process of its own, in turns.
//!
//! `compare` prints what it finds and, with `--out FOLDER`, writes it as Markdown. `compare --list` names the works,
//! `compare NAME...` does only those. `--earlier PROGRAM` measures the h5live of another build of this program in the
//! same run, and prints how much faster each work is now; `--alone` leaves other libraries out. `--rounds N` and
//! `--scale F` make runs longer or shorter. `--keep` leaves what was read, for a profiler of `--child NAME SIDE`.

mod cold;
mod found;
mod grid;
mod lmdb;
mod machine;
mod measure;
mod other_machines;
mod others;
mod peer;
mod plot;
mod report;
mod row;
mod side;
mod work;
mod works;

use std::path::PathBuf;

use found::Found;
use side::Side;
use work::Ground;

/// Why a work could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("libhdf5: {0} failed")]
    Call(&'static str),
    #[error(transparent)]
    H5live(#[from] h5live::Error),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Child(String),
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Other(String),
    #[error("a plot: {0}")]
    Plot(String),
    #[error("the sides do not agree: {0}")]
    Differ(String),
}

pub type Result<T> = std::result::Result<T, Error>;

/// What the command line asks for.
struct Arguments {
    names: Vec<String>,
    rounds: usize,
    ground: Ground,
    out: Option<PathBuf>,
    list: bool,
    keep: bool,
    /// One side of one work, in this process: what the parent asks of its children.
    child: Option<(String, Side)>,
}

fn arguments() -> Result<Arguments> {
    let mut found = Arguments {
        names: Vec::new(),
        rounds: 5,
        ground: Ground {
            folder: std::env::temp_dir().join("h5live-compare"),
            scale: 1.0,
            chunk: 0,
            part: None,
            earlier: None,
            alone: false,
        },
        out: None,
        list: false,
        keep: false,
        child: None,
    };
    let mut rest = std::env::args().skip(1);
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| Error::Usage(format!("{argument} needs a value")));
        let number = |text: String| text.parse::<f64>().map_err(|_| Error::Usage(format!("{text} is not a number")));
        match argument.as_str() {
            "--list" => found.list = true,
            "--keep" => found.keep = true,
            "--rounds" => found.rounds = number(value()?)?.max(1.0) as usize,
            "--scale" => found.ground.scale = number(value()?)?,
            "--chunk" => found.ground.chunk = number(value()?)? as u64,
            "--part" => found.ground.part = Some(number(value()?)? as u64),
            "--alone" => found.ground.alone = true,
            "--earlier" => found.ground.earlier = Some(value()?.into()),
            "--folder" => found.ground.folder = value()?.into(),
            "--out" => found.out = Some(value()?.into()),
            "--child" => {
                let (name, side) = (value()?, value()?);
                found.child = Some((name, side.parse()?));
            }
            _ if argument.starts_with('-') => return Err(Error::Usage(format!("{argument} is not known"))),
            _ => found.names.push(argument),
        }
    }
    Ok(found)
}

fn run() -> Result<()> {
    let arguments = arguments()?;
    let works = works::all();
    if arguments.list {
        works.iter().for_each(|work| println!("{:24} {}", work.name, work.title));
        return Ok(());
    }
    if let Some((name, side)) = &arguments.child {
        let work = works.iter().find(|work| work.name == name);
        let work = work.ok_or_else(|| Error::Usage(format!("there is no work {name}")))?;
        let measure = measure::here(work, *side, &arguments.ground)?;
        println!("{}", serde_json::to_string(&measure).expect("plain numbers"));
        return Ok(());
    }
    if let Some(unknown) = arguments.names.iter().find(|name| !works.iter().any(|work| work.name == **name)) {
        return Err(Error::Usage(format!("there is no work {unknown}; --list names them")));
    }
    let is_wanted = |name: &str| arguments.names.is_empty() || arguments.names.iter().any(|wanted| wanted == name);
    let mut found = Found { rounds: arguments.rounds, keep: arguments.keep, ..Found::default() };
    works.iter().filter(|work| is_wanted(work.name)).try_for_each(|work| found.add(work, &arguments.ground))?;
    found.rows.iter().filter_map(report::beside_earlier).for_each(|line| println!("{line}"));
    if let Some(folder) = arguments.out {
        report::write(&found, &folder)?;
    }
    match found.failed.len() {
        0 => Ok(()),
        number => Err(Error::Other(format!("{number} works failed"))),
    }
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            std::process::ExitCode::from(2)
        }
    }
}
