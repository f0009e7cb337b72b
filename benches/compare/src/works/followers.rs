//! What followers in processes of their own cost the writer of a live file.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use h5live::{File, Mode};

use super::bare_frames;
use crate::work::{Done, Ground, Unit, WRITING, Work, bytes, peak, sum};
use crate::{Error, Result, Side};

/// Elements of 8 bytes of a frame: 64 KiB.
pub(super) const FRAME: u64 = 8 << 10;
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
pub(super) fn add(total: u64, frame: &[u64]) -> u64 {
    total.wrapping_mul(3).wrapping_add(sum(bytes(frame)))
}

/// Waits for frames. Returns how many it has seen, and their sum.
fn follow_dataset(path: &Path, frames: u64) -> Result<(u64, u64)> {
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
    Ok((seen, total))
}

/// What a follower does: prints how many frames it has seen, and their sum.
fn follow(side: Side, path: &Path, frames: u64) -> Result<()> {
    let (seen, total) = match side {
        Side::Bare => bare_frames::follow(path, frames)?,
        _ => follow_dataset(path, frames)?,
    };
    println!("{seen} {total}");
    // The parent reads these lines, not measures.
    std::process::exit(0);
}

/// A follower in a process of its own.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(work: &str, side: Side, part: u64, ground: &Ground) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--child", work, &side.to_string(), "--scale", &ground.scale.to_string()])
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
fn write(work: &str, followers: u64, side: Side, ground: &Ground) -> Result<Done> {
    let (path, frames) = (ground.file(&format!("{work}-{side}")), ground.times(4_000));
    if ground.part.is_some() {
        follow(side, &path, frames)?;
    }
    let start_followers = || {
        let started = (0..followers).map(|part| Follower::start(work, side, part, ground));
        let mut started = started.collect::<Result<Vec<_>>>()?;
        started.iter_mut().try_for_each(|follower| follower.line().map(drop))?;
        Ok::<_, Error>(started)
    };
    let (done, followers) = match side {
        Side::Bare => {
            let file = fs::File::create(&path)?;
            let followers = start_followers()?;
            (paced(frames, |n, values| bare_frames::write(&file, n, values))?, followers)
        }
        _ => {
            let file = File::options().mode(Mode::Create).open(&path)?;
            let new = file.new_dataset::<u64>().unlimited_rows(&[FRAME]).chunk_shape(&[1, FRAME]);
            let data = new.create("data")?;
            file.start_swmr()?;
            let followers = start_followers()?;
            let done = paced(frames, |_, values| {
                data.append(values)?;
                Ok(data.flush()?)
            })?;
            // It stays open until all have seen everything.
            check(followers, frames, done.sum)?;
            (done, Vec::new())
        }
    };
    check(followers, frames, done.sum)?;
    fs::remove_file(path)?;
    Ok(done)
}

fn check(followers: Vec<Follower>, frames: u64, total: u64) -> Result<()> {
    followers.into_iter().try_for_each(|follower| follower.check(frames, total))
}

/// Writes frames by `write` at a steady pace. The time is the processor's for one of them, and the sum is over all.
fn paced(frames: u64, mut write: impl FnMut(u64, &[u64]) -> Result<()>) -> Result<Done> {
    let mut values: Vec<u64> = (0..FRAME).collect();
    let (begin, before) = (Instant::now(), processor_time());
    for n in 0..frames {
        std::thread::sleep((begin + PAUSE * n as u32).saturating_duration_since(Instant::now()));
        values[0] = n;
        write(n, &values)?;
    }
    let seconds = (processor_time() - before) / frames as f64;
    let done = Done { seconds, units: frames, peak: peak(), ..Done::default() };
    let total = (0..frames).fold(0, |total, n| {
        values[0] = n;
        add(total, &values)
    });
    Ok(done.sum(total))
}

pub fn works() -> Vec<Work> {
    let alone = Work {
        name: "followers-0",
        title: "processor time of a writer for a frame of 64 KiB with its flush, 1,000/s, nobody follows (bare: a call for the frame, and one for the number of frames)",
        unit: Unit::Latency,
        budget: WRITING,
        sides: &[Side::H5live, Side::Bare],
        run: |side, ground| write("followers-0", 0, side, ground),
        ..Work::PLAIN
    };
    vec![
        alone,
        Work {
            name: "followers-8",
            title: "the same while eight processes wait for each frame and read it, all on the cores of this machine (bare: they wait with inotify)",
            within: Some((alone.name, 1.05)),
            bare_is_bound: true,
            run: |side, ground| write("followers-8", 8, side, ground),
            ..alone
        },
    ]
}
