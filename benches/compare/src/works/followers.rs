//! What followers in processes of their own cost the writer of a live file.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use h5live::{File, Mode};

use crate::work::{Done, Ground, Unit, WRITING, Work, bytes, peak, sum};
use crate::{Error, Result, Side};

/// Elements of 8 bytes of a frame: 64 KiB.
const FRAME: u64 = 8 << 10;
const PAUSE: Duration = Duration::from_millis(1);
/// A follower that sees nothing for so long has missed what was written.
const PATIENCE: Duration = Duration::from_secs(10);

/// Processor time of this process, with that of the system for it (s).
fn processor_time() -> f64 {
    // SAFETY: zeros are a value of this struct of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the struct is ours.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// The sum over frames, after the next one.
fn add(total: u64, frame: &[u64]) -> u64 {
    total.wrapping_mul(3).wrapping_add(sum(bytes(frame)))
}

/// What a follower does: waits for frames, and prints how many it has seen and their sum.
fn follow(path: &Path, frames: u64) -> Result<()> {
    let data = File::options().swmr_read().open(path)?.dataset("data")?;
    println!("ready");
    let (mut seen, mut total) = (0, 0);
    for batch in data.follow::<u64>().timeout(PATIENCE) {
        for frame in batch?.chunks(FRAME as usize) {
            total = add(total, frame);
            seen += 1;
        }
        if seen >= frames {
            break;
        }
    }
    println!("{seen} {total}");
    // The parent has what it reads: not measures.
    std::process::exit(0);
}

/// A follower in a process of its own.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(work: &str, part: u64, ground: &Ground) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--child", work, &Side::H5live.to_string(), "--scale", &ground.scale.to_string()])
            .args(["--part", &part.to_string(), "--folder"])
            .arg(&ground.folder)
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Ok(Follower { child, lines })
    }

    fn line(&mut self) -> Result<String> {
        let line = self.lines.next().transpose()?;
        line.ok_or_else(|| Error::Child("a follower has ended".to_owned()))
    }

    /// Waits for its end. It must have seen all frames.
    fn check(mut self, frames: u64, total: u64) -> Result<()> {
        let (found, expected) = (self.line()?, format!("{frames} {total}"));
        self.child.wait()?;
        match found == expected {
            true => Ok(()),
            false => Err(Error::Differ(format!("a follower saw frames and their sum: {found}, not {expected}"))),
        }
    }
}

/// Writes frames at a steady pace while so many processes follow.
fn write(work: &str, followers: u64, ground: &Ground) -> Result<Done> {
    let (path, frames) = (ground.file(work), ground.times(4_000));
    if ground.part.is_some() {
        follow(&path, frames)?;
    }
    let file = File::options().mode(Mode::Create).open(&path)?;
    let data = file.new_dataset::<u64>().unlimited_rows(&[FRAME]).chunk_shape(&[1, FRAME]).create("data")?;
    file.start_swmr()?;
    let started = (0..followers).map(|part| Follower::start(work, part, ground)).collect::<Result<Vec<_>>>();
    let mut followers = started?;
    followers.iter_mut().try_for_each(|follower| follower.line().map(drop))?;
    let mut values: Vec<u64> = (0..FRAME).collect();
    let (begin, before) = (Instant::now(), processor_time());
    for i in 0..frames {
        std::thread::sleep((begin + PAUSE * i as u32).saturating_duration_since(Instant::now()));
        values[0] = i;
        data.append(&values)?;
        data.flush()?;
    }
    let seconds = (processor_time() - before) / frames as f64;
    let done = Done { seconds, units: frames, peak: peak(), ..Done::default() };
    let total = (0..frames).fold(0, |total, i| {
        values[0] = i;
        add(total, &values)
    });
    followers.into_iter().try_for_each(|follower| follower.check(frames, total))?;
    drop(data);
    file.close()?;
    std::fs::remove_file(path)?;
    Ok(done.sum(total))
}

pub fn works() -> Vec<Work> {
    let alone = Work {
        name: "followers-0",
        title: "processor time of a writer for a frame of 64 KiB with its flush, 1,000/s, nobody follows",
        unit: Unit::Latency,
        budget: WRITING,
        sides: &[Side::H5live],
        run: |_, ground| write("followers-0", 0, ground),
        ..Work::PLAIN
    };
    vec![
        alone,
        Work {
            name: "followers-8",
            title: "the same while eight processes wait for each frame and read it, all on the cores of this machine",
            within: Some((alone.name, 1.05)),
            run: |_, ground| write("followers-8", 8, ground),
            ..alone
        },
    ]
}
