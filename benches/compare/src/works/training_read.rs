//! Samples of training sets, read at random. What a row is beside stands in its title, as its bare side.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use h5live::File;
use h5live::archive::Archive;
use h5live_archive::TarLayout;

use super::training::{LARGE, SMALL, TrainingSet, failed, file_name};
use crate::lmdb::Lmdb;
use crate::peer::{self, Slab, Type};
use crate::work::{Done, Ground, Numbers, Unit, Work, bytes, timed};
use crate::{Error, Result, Side};

/// Samples that a run reads.
fn times(set: TrainingSet, ground: &Ground) -> u64 {
    set.len(ground).min(ground.times(20_000))
}

/// What was read, as one number: the length of each sample, and its first and its last 8 bytes.
#[derive(Default)]
struct Seen(u64);

impl Seen {
    fn note(&mut self, contents: &[u8]) {
        let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let value = contents.len() as u64 ^ word(contents.first_chunk()) ^ word(contents.last_chunk());
        self.0 = self.0.wrapping_mul(3).wrapping_add(value);
    }
}

/// Who else reads samples.
#[derive(Clone, Copy)]
enum Other {
    /// Copies from a mapping of all contents, one after another.
    Mapping,
    /// `pread` from the same file.
    Pread,
    /// A file for each sample.
    Files,
    /// A table of SQLite, by number.
    Sqlite,
    /// LMDB, by number.
    Lmdb,
    /// LMDB, by name.
    LmdbNames,
    /// `training.py`.
    Python(&'static str),
}

impl Other {
    fn path(self, set: TrainingSet, ground: &Ground) -> PathBuf {
        let kind = match self {
            Other::Mapping | Other::Pread => "contents",
            Other::Files => "files",
            Other::Sqlite => "sqlite",
            Other::Lmdb => "lmdb",
            Other::LmdbNames => "lmdb-names",
            Other::Python("h5py") => "shredder",
            Other::Python("h5py-names") => "compactor",
            Other::Python(_) => "tar",
        };
        set.path(ground, kind)
    }

    fn prepare(self, set: TrainingSet, ground: &Ground) -> Result<()> {
        let path = self.path(set, ground);
        if path.exists() {
            return Ok(());
        }
        match self {
            Other::Mapping | Other::Pread => write_contents(set, ground, &path),
            Other::Files => set.for_each(ground, |number, contents| {
                let file = path.join(file_name(number));
                fs::create_dir_all(file.parent().unwrap_or(&path))?;
                Ok(fs::write(file, contents)?)
            }),
            Other::Sqlite => write_sqlite(set, ground, &path).map_err(failed),
            Other::Lmdb | Other::LmdbNames => {
                let lmdb = Lmdb::open(&path)?;
                lmdb.write(|to| {
                    set.for_each(ground, |number, contents| match self {
                        Other::Lmdb => to.put(&number.to_be_bytes(), contents),
                        _ => to.put(file_name(number).as_bytes(), contents),
                    })
                })
            }
            Other::Python("h5py" | "h5py-names") => Ok(()),
            Other::Python(_) => set.tar(ground).map(drop),
        }
    }
}

/// The contents of all files, one after another, and behind them where each begins and the last one ends, and how many
/// files there are.
fn write_contents(set: TrainingSet, ground: &Ground, path: &Path) -> Result<()> {
    use std::io::Write;
    let mut file = std::io::BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
    let mut offsets = vec![0u64];
    set.for_each(ground, |_, contents| {
        offsets.push(offsets.last().copied().unwrap_or(0) + contents.len() as u64);
        Ok(file.write_all(contents)?)
    })?;
    file.write_all(bytes(&offsets))?;
    Ok(file.flush()?)
}

fn read_offsets(path: &Path, files: u64) -> Result<Vec<u64>> {
    let file = fs::File::open(path)?;
    let mut offsets = vec![0u64; files as usize + 1];
    let start = file.metadata()?.len() - offsets.len() as u64 * 8;
    file.read_exact_at(bytemuck::cast_slice_mut(&mut offsets), start)?;
    Ok(offsets)
}

fn write_sqlite(set: TrainingSet, ground: &Ground, path: &Path) -> Result<()> {
    let mut database = rusqlite::Connection::open(path).map_err(failed)?;
    database.execute("CREATE TABLE file (number INTEGER PRIMARY KEY, data BLOB)", ()).map_err(failed)?;
    let transaction = database.transaction().map_err(failed)?;
    {
        let mut insert = transaction.prepare("INSERT INTO file VALUES (?1, ?2)").map_err(failed)?;
        set.for_each(ground, |number, contents| insert.execute((number as i64, contents)).map(drop).map_err(failed))?;
    }
    transaction.commit().map_err(failed)
}

/// The samples of a run: so many numbers at random.
fn chosen(set: TrainingSet, ground: &Ground) -> impl Iterator<Item = u64> {
    let (mut numbers, files) = (Numbers::new(), set.len(ground));
    (0..times(set, ground)).map(move |_| numbers.below(files))
}

fn python(mode: &str, set: TrainingSet, ground: &Ground, path: &Path) -> Result<Done> {
    let program = std::env::var_os("H5LIVE_PYTHON").unwrap_or_else(|| "python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("training.py");
    let (files, times) = (set.len(ground), times(set, ground));
    let output =
        Command::new(program).arg(script).arg(mode).arg(path).args([files.to_string(), times.to_string()]).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let mut words = said.split_whitespace().map(str::parse::<f64>);
    match (output.status.success(), words.next(), words.next()) {
        (true, Some(Ok(seconds)), Some(Ok(units))) => Ok(Done { seconds, units: units as u64, ..Done::default() }),
        _ => Err(Error::Child(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

fn read_other(other: Other, set: TrainingSet, ground: &Ground) -> Result<Done> {
    let (path, number, mut seen) = (other.path(set, ground), times(set, ground), Seen::default());
    let mut copy: Vec<u8> = Vec::new();
    let (done, ()) = match other {
        Other::Mapping => {
            // SAFETY: nobody changes the file, nor makes it shorter.
            let contents = unsafe { memmap2::Mmap::map(&fs::File::open(&path)?) }?;
            let offsets = read_offsets(&path, set.len(ground))?;
            timed(number, || {
                for sample in chosen(set, ground).map(|sample| sample as usize) {
                    copy.clear();
                    copy.extend_from_slice(&contents[offsets[sample] as usize..offsets[sample + 1] as usize]);
                    seen.note(&copy);
                }
                Ok(())
            })?
        }
        Other::Pread => {
            let (contents, offsets) = (fs::File::open(&path)?, read_offsets(&path, set.len(ground))?);
            timed(number, || {
                for sample in chosen(set, ground).map(|sample| sample as usize) {
                    copy.resize((offsets[sample + 1] - offsets[sample]) as usize, 0);
                    contents.read_exact_at(&mut copy, offsets[sample])?;
                    seen.note(&copy);
                }
                Ok(())
            })?
        }
        Other::Files => timed(number, || {
            chosen(set, ground).try_for_each(|sample| {
                seen.note(&fs::read(path.join(file_name(sample)))?);
                Ok(())
            })
        })?,
        Other::Sqlite => {
            let database = rusqlite::Connection::open(&path).map_err(failed)?;
            let mut select = database.prepare("SELECT data FROM file WHERE number = ?1").map_err(failed)?;
            database.execute_batch("BEGIN").map_err(failed)?;
            timed(number, || {
                chosen(set, ground).try_for_each(|sample| {
                    let found: Vec<u8> = select.query_row([sample as i64], |row| row.get(0)).map_err(failed)?;
                    seen.note(&found);
                    Ok(())
                })
            })?
        }
        Other::Lmdb | Other::LmdbNames => {
            let lmdb = Lmdb::open(&path)?;
            timed(number, || {
                let state = lmdb.read()?;
                chosen(set, ground).try_for_each(|sample| {
                    let found = match other {
                        Other::Lmdb => state.get(&sample.to_be_bytes())?,
                        _ => state.get(file_name(sample).as_bytes())?,
                    };
                    copy.clear();
                    copy.extend_from_slice(found.unwrap_or_default());
                    seen.note(&copy);
                    Ok(())
                })
            })?
        }
        Other::Python(mode) => return python(mode, set, ground, &path),
    };
    Ok(done.sum(seen.0))
}

/// How h5live reads.
#[derive(Clone, Copy)]
enum How {
    Number,
    View,
    Name,
    Epoch,
}

fn read_ours(how: How, layout: TarLayout, set: TrainingSet, ground: &Ground) -> Result<Done> {
    let archive = Archive::open(&File::open(set.path(ground, layout.name()))?)?;
    let (mut seen, mut copy) = (Seen::default(), Vec::new());
    let number = if matches!(how, How::Epoch) { set.len(ground) } else { times(set, ground) };
    let (done, ()) = timed(number, || {
        match how {
            How::Number => {
                for sample in chosen(set, ground) {
                    archive.read_into(sample, &mut copy)?;
                    seen.note(&copy);
                }
            }
            How::View => {
                for sample in chosen(set, ground) {
                    match archive.view(sample)? {
                        // SAFETY: nobody writes the file.
                        Some(view) => seen.note(unsafe { view.as_slice() }),
                        // It lies in two pieces.
                        None => {
                            archive.read_into(sample, &mut copy)?;
                            seen.note(&copy);
                        }
                    }
                }
            }
            How::Name => {
                for sample in chosen(set, ground) {
                    seen.note(&archive.read_by_name(file_name(sample))?);
                }
            }
            How::Epoch => {
                for sample in archive.samples().shuffled(42).epoch(1).prefetch(2, 256 << 20)? {
                    seen.note(&sample?.1);
                }
            }
        }
        Ok(())
    })?;
    Ok(done.sum(seen.0))
}

/// libhdf5 reads by number from the shredder's datasets, and by name from the compactor's.
fn read_libhdf5(layout: TarLayout, set: TrainingSet, ground: &Ground) -> Result<Done> {
    let file = peer::File::open(&set.path(ground, layout.name()))?;
    let (mut seen, mut copy) = (Seen::default(), Vec::new());
    let number = times(set, ground);
    let (done, ()) = if layout == TarLayout::Shredder {
        let mut offsets = vec![0u64; set.len(ground) as usize + 1];
        file.dataset("image_offset", 0)?.read_all(Type::U64.id(), &mut offsets)?;
        let image = file.dataset("image", peer::NO_CACHE)?;
        timed(number, || {
            chosen(set, ground).map(|sample| sample as usize).try_for_each(|sample| {
                let count = [offsets[sample + 1] - offsets[sample]];
                copy.resize(count[0] as usize, 0u8);
                image.read_slab(
                    Type::U8,
                    &Slab { start: &[offsets[sample]], stride: &[], count: &count },
                    &mut copy,
                )?;
                seen.note(&copy);
                Ok(())
            })
        })?
    } else {
        timed(number, || {
            chosen(set, ground).try_for_each(|sample| {
                let data = file.dataset(&file_name(sample), 0)?;
                copy.resize(data.dims()?[0] as usize, 0u8);
                data.read_all(Type::U8.id(), &mut copy)?;
                seen.note(&copy);
                Ok(())
            })
        })?
    };
    Ok(done.sum(seen.0))
}

/// A row: how we read, of which layout, and beside whom.
macro_rules! row {
    ($how:expr, $layout:expr, $other:expr, $set:expr) => {
        Work {
            prepare: |ground| {
                $set.imported(ground, $layout)?;
                $other.prepare($set, ground)
            },
            run: |side, ground| match side {
                Side::H5live => read_ours($how, $layout, $set, ground),
                Side::Libhdf5 => read_libhdf5($layout, $set, ground),
                _ => read_other($other, $set, ground),
            },
            unit: Unit::Things("samples"),
            sides: &[Side::H5live, Side::Bare],
            ..Work::PLAIN
        }
    };
}

const SHREDDER: TarLayout = TarLayout::Shredder;
const COMPACTOR: TarLayout = TarLayout::Compactor;
const WITH_LIBHDF5: &[Side] = &[Side::H5live, Side::Libhdf5, Side::Bare];

/// The rows by number.
fn by_number() -> Vec<Work> {
    vec![
        Work {
            name: "sample-read",
            title: "20,000 samples of 16 to 64 KiB at random, copied to the caller (bare: from a mapping of the same bytes)",
            aim: 1.0,
            bare_aim: Some(0.9),
            sides: WITH_LIBHDF5,
            ..row!(How::Number, SHREDDER, Other::Mapping, LARGE)
        },
        Work {
            name: "sample-read-cold",
            title: "the same, cold (bare: pread of the same bytes)",
            aim: 1.0,
            bare_aim: Some(0.9),
            cold: true,
            ..row!(How::Number, SHREDDER, Other::Pread, LARGE)
        },
        Work {
            name: "sample-read-4k",
            title: "20,000 of 200,000 samples of 4 KiB at random (bare: from a mapping of the same bytes)",
            aim: 1.0,
            bare_aim: Some(0.9),
            sides: WITH_LIBHDF5,
            ..row!(How::Number, SHREDDER, Other::Mapping, SMALL)
        },
        Work {
            name: "sample-read-pread",
            title: "samples of 16 to 64 KiB (bare: pread of the same bytes)",
            bare_aim: Some(1.5),
            ..row!(How::Number, SHREDDER, Other::Pread, LARGE)
        },
        Work {
            name: "sample-read-h5py",
            title: "samples of 4 KiB (bare: h5py, slices of the same file)",
            bare_aim: Some(5.0),
            ..row!(How::Number, SHREDDER, Other::Python("h5py"), SMALL)
        },
        Work {
            name: "sample-read-sqlite",
            title: "samples of 4 KiB (bare: SQLite, a table by number)",
            bare_aim: Some(4.0),
            ..row!(How::Number, SHREDDER, Other::Sqlite, SMALL)
        },
        Work {
            name: "sample-read-files",
            title: "samples of 4 KiB (bare: a file for each)",
            bare_aim: Some(5.0),
            ..row!(How::Number, SHREDDER, Other::Files, SMALL)
        },
        Work {
            name: "sample-read-lmdb",
            title: "samples of 4 KiB (bare: LMDB by number, copied)",
            bare_aim: Some(1.2),
            ..row!(How::Number, SHREDDER, Other::Lmdb, SMALL)
        },
        Work {
            name: "sample-read-tar",
            title: "samples of 4 KiB (bare: ratarmount's library, on the archive)",
            bare_aim: Some(8.0),
            ..row!(How::Number, SHREDDER, Other::Python("ratarmount"), SMALL)
        },
        Work {
            name: "sample-view",
            title: "samples of 16 to 64 KiB as views (bare: the same bytes copied from a mapping)",
            bare_aim: Some(3.0),
            ..row!(How::View, SHREDDER, Other::Mapping, LARGE)
        },
    ]
}

pub fn works() -> Vec<Work> {
    let others = vec![
        Work {
            name: "sample-name",
            title: "samples of 4 KiB by name, layout shredder (bare: LMDB by name, copied)",
            bare_aim: Some(1.0),
            ..row!(How::Name, SHREDDER, Other::LmdbNames, SMALL)
        },
        Work {
            name: "sample-name-compactor",
            title: "the same, layout compactor (bare: h5py by name, the same file)",
            aim: 1.0,
            bare_aim: Some(10.0),
            sides: WITH_LIBHDF5,
            ..row!(How::Name, COMPACTOR, Other::Python("h5py-names"), SMALL)
        },
        Work {
            name: "epoch",
            title: "one shuffled epoch of 20,000 samples of 16 to 64 KiB, two threads (bare: WebDataset, shuffle buffer of 1,000)",
            bare_aim: Some(5.0),
            ..row!(How::Epoch, SHREDDER, Other::Python("webdataset"), LARGE)
        },
        Work {
            name: "epoch-cold",
            title: "the same, cold",
            bare_aim: Some(1.0),
            cold: true,
            ..row!(How::Epoch, SHREDDER, Other::Python("webdataset"), LARGE)
        },
    ];
    by_number().into_iter().chain(others).collect()
}
