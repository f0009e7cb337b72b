//! From a flush to the moment at which another process has the value.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use h5live::{File, Mode};

use crate::peer::{self, Make, Slab, Type};
use crate::work::{Done, Ground, Unit, WRITING, Work, peak};
use crate::{Error, Result, Side};

const READER: &str = "H5LIVE_COMPARE_READER";
const EVERY: Duration = Duration::from_millis(1);

/// Nanoseconds of the clock that all processes share.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is ours, and the clock exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What publishes a row in a dataset: its extent and its maximum (8 bytes each), and a checksum (4 bytes).
const PUBLISHED_BYTES: usize = 20;

/// A file of so many words, mapped by each process that opens it: first, those that publish the others, as many as
/// [`PUBLISHED_BYTES`] are.
struct Words {
    file: fs::File,
    at: *mut AtomicU64,
    number: usize,
}

impl Words {
    fn open(path: &Path, rows: u64) -> Result<Self> {
        let file = fs::File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let number = PUBLISHED_BYTES.div_ceil(8) + rows as usize;
        file.set_len(number as u64 * 8)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the file is as long, and nobody makes it shorter.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), number * 8, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match at == libc::MAP_FAILED {
            true => Err(std::io::Error::last_os_error().into()),
            false => Ok(Words { file, at: at.cast(), number }),
        }
    }

    /// How many rows are published, and the rows.
    fn get(&self) -> (&AtomicU64, &[AtomicU64]) {
        // SAFETY: the mapping is as long, and lives as long as this does.
        let words = unsafe { std::slice::from_raw_parts(self.at, self.number) };
        (&words[0], &words[PUBLISHED_BYTES.div_ceil(8)..])
    }

    /// Publishes so many rows, by one call.
    fn publish(&self, rows: u64) -> Result<()> {
        let mut bytes = [0; PUBLISHED_BYTES];
        bytes[..8].copy_from_slice(&rows.to_le_bytes());
        Ok(self.file.write_all_at(&bytes, 0)?)
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and no reference is left.
        unsafe { libc::munmap(self.at.cast(), self.number * 8) };
    }
}

/// The reader: prints a line when it follows, then how long each row was under way, until `times` rows have come.
fn read(side: Side, (path, location): (&Path, &str), times: u64) -> Result<()> {
    let mut delays = Vec::new();
    match side {
        Side::H5live => {
            let file = File::options().swmr_read().open(location)?;
            let data = file.dataset("data")?;
            let follow = data.follow::<u64>().busy_poll().timeout(Duration::from_secs(10));
            println!("ready");
            for row in follow.into_rows() {
                let sent = row?[0];
                delays.push(now().saturating_sub(sent));
                if delays.len() as u64 == times {
                    break;
                }
            }
        }
        Side::Bare => {
            let words = Words::open(path, times)?;
            println!("ready");
            let (published, rows) = words.get();
            for (before, row) in rows.iter().enumerate() {
                while published.load(Ordering::Acquire) <= before as u64 {
                    std::hint::spin_loop();
                }
                delays.push(now().saturating_sub(row.load(Ordering::Acquire)));
            }
        }
        _ => {
            let file = peer::File::open_to_follow(path)?;
            let data = file.dataset("data", 0)?;
            println!("ready");
            while (delays.len() as u64) < times {
                data.refresh()?;
                let (seen, there) = (delays.len() as u64, data.dims()?[0]);
                if there > seen {
                    let mut values = vec![0u64; (there - seen) as usize];
                    let slab = Slab { start: &[seen], stride: &[], count: &[there - seen] };
                    data.read_slab(Type::U64, &slab, &mut values)?;
                    let now = now();
                    delays.extend(values.iter().map(|sent| now.saturating_sub(*sent)));
                }
            }
        }
    }
    delays.iter().for_each(|delay| println!("{delay}"));
    Ok(())
}

/// Measures a work of this name, in files or in stores whose location `locate` makes of a path.
fn measure(work: &str, locate: fn(&Path) -> String, side: Side, ground: &Ground) -> Result<Done> {
    let (path, times) = (ground.file(&format!("{work}-{side}")), ground.times(3_000));
    let location = &*locate(&path);
    if std::env::var_os(READER).is_some() {
        read(side, (&path, location), times)?;
        // The parent reads delays, not measures.
        std::process::exit(0);
    }
    let start_reader = || -> Result<_> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--child", work, &side.to_string(), "--scale", &ground.scale.to_string(), "--folder"])
            .arg(&ground.folder)
            .env(READER, "1")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        match lines.next() {
            Some(Ok(line)) if line == "ready" => Ok((child, lines)),
            _ => Err(Error::Child("the reader did not start".to_owned())),
        }
    };
    // Each row has the time at which its flush began; rows come at a steady rate.
    let pace = |append: &mut dyn FnMut(u64) -> Result<()>| -> Result<()> {
        let begin = Instant::now();
        for i in 0..times {
            let due = begin + EVERY * i as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            append(now())?;
        }
        Ok(())
    };
    let (mut child, lines) = match side {
        Side::H5live => {
            let file = File::options().mode(Mode::Create).open(location)?;
            let data = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[1024]).create("data")?;
            file.start_swmr()?;
            let reader = start_reader()?;
            pace(&mut |time| {
                data.append(&[time])?;
                Ok(data.flush()?)
            })?;
            reader
        }
        Side::Bare => {
            let words = Words::open(&path, times)?;
            let reader = start_reader()?;
            let mut rows = words.get().1.iter().zip(1..);
            pace(&mut |time| match rows.next() {
                Some((row, number)) => {
                    row.store(time, Ordering::Release);
                    words.publish(number)
                }
                None => Ok(()),
            })?;
            reader
        }
        _ => {
            let file = peer::File::create(&path)?;
            let make = Make { dims: &[0], max: &[u64::MAX], chunk: &[1024], ..Make::default() };
            let data = file.create_dataset("data", Type::U64, &make)?;
            file.start_swmr()?;
            let reader = start_reader()?;
            let mut row = 0;
            pace(&mut |time| {
                data.extend(&[row + 1])?;
                data.write_block(Type::U64, &[row], &[1], &[time])?;
                row += 1;
                data.flush()
            })?;
            reader
        }
    };
    let mut delays: Vec<u64> = lines.map_while(|line| line.ok()?.parse().ok()).collect();
    child.wait()?;
    super::kv::remove(&path)?;
    delays.sort_unstable();
    if delays.len() as u64 != times {
        return Err(Error::Child(format!("{} of {times} rows were seen", delays.len())));
    }
    let at = |part: f64| delays[((delays.len() - 1) as f64 * part) as usize] as f64 / 1e9;
    Ok(Done { seconds: at(0.5), units: times, tail: Some(at(0.99)), peak: peak(), ..Done::default() })
}

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "latency",
        title: "flush to visible in another process, 1,000/s; readers look without a pause (bare: one call writes the extent)",
        unit: Unit::Latency,
        aim: 10.0,
        budget: WRITING,
        sides: &[Side::H5live, Side::Libhdf5, Side::Bare],
        run: |side, ground| measure("latency", |path| path.display().to_string(), side, ground),
        ..Work::PLAIN
    };
    vec![
        work,
        Work {
            name: "kv-latency",
            title: "flush to visible in another process in a key-value store, 1,000/s (libhdf5: in a file)",
            aim: 1.0,
            sides: &[Side::H5live, Side::Libhdf5],
            run: |side, ground| measure("kv-latency", super::kv::kv, side, ground),
            ..work
        },
    ]
}
