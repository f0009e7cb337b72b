//! A SWMR writer of libhdf5 that does what it does not refuse, though it says that it cannot be followed: our reader
//! waits for what is published too early.

use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use h5live::{File, Object, Result};

use crate::script::Script;

/// How long it goes on (s). `make live` asks for a minute.
fn seconds() -> f64 {
    std::env::var("H5LIVE_RACE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4.0)
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    looks: u64,
    objects: u64,
    attributes: u64,
}

/// Looks at everything in the file that is not before the round `from`; how many rounds and rows there are.
fn look(file: &File, from: usize, seen: &mut Seen) -> Result<(usize, u64)> {
    seen.looks += 1;
    let [numbers, texts] = [file.dataset("numbers")?, file.dataset("texts")?];
    numbers.refresh()?;
    texts.refresh()?;
    let numbers: Vec<u64> = numbers.read()?;
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
    let found: Vec<String> = texts.read()?;
    assert!(found.iter().enumerate().all(|(n, text)| *text == format!("text-{n}")), "{found:?}");
    let root = file.root();
    let mut rounds = root.names()?.iter().filter(|name| name.to_string().starts_with("round-")).count();
    for round in from..rounds {
        let group = root.group(&format!("round-{round}"))?;
        for link in group.links()? {
            let name = link.name.to_string();
            let Object::Dataset(dataset) = group.object(&name)? else { panic!("{name} is no dataset") };
            seen.objects += 1;
            if let Some(n) = name.strip_prefix("text-") {
                let n: u64 = n.parse().unwrap();
                let found: Vec<String> = dataset.read()?;
                let right = found.iter().zip(n..).all(|(text, n)| *text == format!("text-{n}"));
                assert!(right, "round {round}, {name}: {found:?}");
            } else {
                let n: u64 = name.parse().unwrap();
                let found: Vec<u64> = dataset.read()?;
                assert!(found.iter().copied().eq(n..n + found.len() as u64), "round {round}, {name}: {found:?}");
            }
        }
        for attribute in group.attributes()? {
            let n: i64 = attribute.read_scalar()?;
            assert_eq!(attribute.name().to_string(), format!("attribute-{n}"));
            seen.attributes += 1;
        }
    }
    rounds = rounds.max(1);
    Ok((rounds, numbers.len() as u64))
}

#[test]
fn our_reader_follows_what_libhdf5_publishes_too_early() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("races.h5");
    let Some(mut writer) = Script::start("races.py", &[path.to_str().unwrap(), &seconds().to_string()]) else { return };
    assert_eq!(writer.line(), "writing");
    let (sender, end) = channel();
    let ends = std::thread::spawn(move || {
        sender.send(writer.line()).unwrap();
        writer.end();
    });
    let mut seen = Seen::default();
    let mut from = 0;
    let begin = Instant::now();
    let wrote = loop {
        let ended = end.try_recv();
        // Opened anew now and then: who comes late must see no less.
        let file = File::options().swmr_read().open(&path).unwrap();
        let until = Instant::now() + Duration::from_millis(500);
        loop {
            let (rounds, _) = look(&file, from, &mut seen).unwrap_or_else(|error| {
                let mut text = error.to_string();
                let mut cause = std::error::Error::source(&error);
                while let Some(error) = cause {
                    text = format!("{text}: {error}");
                    cause = error.source();
                }
                panic!("after {:?}: {text}", begin.elapsed())
            });
            // The round that is being written, and the one before.
            from = rounds.saturating_sub(2);
            if Instant::now() >= until || ended != Err(TryRecvError::Empty) {
                break;
            }
        }
        if let Ok(line) = ended {
            let (rounds, rows) = look(&file, 0, &mut seen).unwrap();
            break (line, format!("{rounds} {rows}"));
        }
    };
    ends.join().unwrap();
    assert_eq!(wrote.0, wrote.1, "rounds and rows, as written and as seen");
    println!("{seen:?} of {} (rounds and rows)", wrote.0);
    assert!(seen.looks > 10 && seen.attributes > 10);
}
