//! A follower that sees a million flushes: what it keeps in memory, and whether it becomes slower.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use h5live::{File, Mode};

use crate::work::{Done, Ground, Growth, Unit, Work, anonymous_memory, peak};
use crate::{Error, Result, Side};

const NAME: &str = "follower-memory";
/// Elements of 8 bytes of a chunk, which one flush publishes.
const CHUNK: u64 = 8;
const FLUSHES: u64 = 1_000_000;
/// Each of so many flushes the follower waits for, asleep. The others are there when it looks.
const WAIT_EVERY: u64 = 100;
/// Parts of the run, of which the first and the last are compared.
const PARTS: u64 = 10;
/// What the follower may keep of the chunk index, of which there is more after a tenth of the run.
const METADATA_CACHE_BYTES: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// The writer: appends a chunk and flushes for each byte that it reads, and then writes one.
fn write(path: &Path) -> Result<()> {
    let file = File::options().mode(Mode::Create).open(path)?;
    let data = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[CHUNK]).create("data")?;
    file.start_swmr()?;
    let (mut requests, mut answers) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut answer = || -> Result<()> {
        answers.write_all(&[0])?;
        Ok(answers.flush()?)
    };
    answer()?;
    let mut flushes = 0;
    while requests.read(&mut [0])? == 1 {
        data.append(&[flushes; CHUNK as usize])?;
        data.flush()?;
        flushes += 1;
        answer()?;
    }
    drop(data);
    file.close()?;
    // The parent reads answers, not measures.
    std::process::exit(0);
}

/// The writer in a process of its own.
struct Writer {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

impl Writer {
    fn start(ground: &Ground) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--child", NAME, &Side::H5live.to_string(), "--part", "0", "--folder"])
            .arg(&ground.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (requests, answers) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut writer = Writer { child, requests, answers };
        writer.await_flush()?;
        Ok(writer)
    }

    fn request_flush(&mut self) -> Result<()> {
        Ok(self.requests.write_all(&[0])?)
    }

    fn await_flush(&mut self) -> Result<()> {
        Ok(self.answers.read_exact(&mut [0])?)
    }

    fn end(mut self) -> Result<()> {
        drop(self.requests);
        self.child.wait()?;
        Ok(())
    }
}

/// Sees each flush by itself.
fn follow(ground: &Ground) -> Result<Done> {
    let (path, flushes) = (ground.file(NAME), ground.times(FLUSHES));
    if ground.part.is_some() {
        write(&path)?;
    }
    let mut writer = Writer::start(ground)?;
    let data = File::options().metadata_cache_bytes(METADATA_CACHE_BYTES).swmr_read().open(&path)?.dataset("data")?;
    let mut follower = data.follow::<u64>().timeout(PATIENCE);
    // After each part: the time, and the memory.
    let mut marks = vec![(Instant::now(), anonymous_memory())];
    let mut total = 0u64;
    for flush in 0..flushes {
        let is_asleep = flush % WAIT_EVERY == 0;
        writer.request_flush()?;
        if !is_asleep {
            writer.await_flush()?;
        }
        let rows = follower.next().transpose()?.unwrap_or_default();
        if rows != [flush; CHUNK as usize] {
            return Err(Error::Differ(format!("flush {flush} showed {rows:?}")));
        }
        if is_asleep {
            writer.await_flush()?;
        }
        total = total.wrapping_mul(3).wrapping_add(rows[0]);
        if (flush + 1) % (flushes / PARTS).max(1) == 0 {
            marks.push((Instant::now(), anonymous_memory()));
        }
    }
    let seconds = marks[0].0.elapsed().as_secs_f64();
    let time = |part: usize| (marks[part].0 - marks[part - 1].0).as_secs_f64();
    let last = marks.len() - 1;
    let growth = Growth { memory: marks[last].1 as f64 / marks[1].1 as f64, time: time(last) / time(1) };
    let done = Done { seconds, units: flushes, growth: Some(growth), peak: peak(), ..Done::default() };
    drop((follower, data));
    writer.end()?;
    std::fs::remove_file(path)?;
    Ok(done.sum(total))
}

pub fn works() -> Vec<Work> {
    vec![Work {
        name: NAME,
        title: "a follower sees a million flushes of a chunk of 64 bytes each, one by one, with a metadata cache of 1 MiB: its memory and its time, the last tenth against the first",
        unit: Unit::Things("flushes"),
        sides: &[Side::H5live],
        peak_aim: Some(8 << 20),
        growth_aim: Some(1.1),
        run: |_, ground| follow(ground),
        ..Work::PLAIN
    }]
}
