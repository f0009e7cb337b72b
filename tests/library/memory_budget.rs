//! A limit of memory that all files share: nothing is refused, and what is staged stays below it.

use h5live::{File, Result};

/// The limit. No other test takes this number, so that nobody else shares it.
const MEMORY: u64 = (4 << 20) + 4096;
/// Elements of a chunk, 128 KiB each: all unfinished chunks together are four times the limit.
const CHUNK: u64 = 32 << 10;
const DATASETS: u64 = 128;

fn rows(number: u64, round: u64) -> Vec<u32> {
    (0..CHUNK / 2 + 7).map(|row| (number * 1_000_000 + round * 100_000 + row) as u32).collect()
}

/// Two rounds of appends, each of half a chunk and a bit, the first without a flush behind each dataset.
fn write(file: &File) -> Result<()> {
    let new = |number: u64| {
        let new = file.new_dataset::<u32>().unlimited_rows(&[]).chunk_shape(&[CHUNK]);
        let new = if number.is_multiple_of(2) { new.shuffle().deflate(1) } else { new };
        new.create(&format!("{number}"))
    };
    let all = (0..DATASETS).map(new).collect::<Result<Vec<_>>>()?;
    for round in 0..2 {
        for (number, dataset) in (0..).zip(&all) {
            dataset.append(&rows(number, round))?;
            let newest = CHUNK / 2 * (round + 1)..CHUNK / 2 * (round + 1) + 7 * (round + 1);
            assert_eq!(dataset.read_slice::<u32>(newest)?.len() as u64, 7 * (round + 1));
        }
        file.flush()?;
    }
    Ok(())
}

fn check(file: &File) -> Result<()> {
    for number in 0..DATASETS {
        let read = file.dataset(&format!("{number}"))?.read::<u32>()?;
        assert_eq!(read, [rows(number, 0), rows(number, 1)].concat(), "dataset {number}");
    }
    Ok(())
}

#[test]
fn files_that_share_a_limit_stage_and_keep_no_more_and_lose_nothing() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let [free, limited] = ["free.h5", "limited.h5"].map(|name| folder.path().join(name));
    let without = File::create(&free)?;
    write(&without)?;
    assert_eq!((without.stats().early_stores, without.stats().staged_bytes), (0, 0));
    without.close()?;

    let file = File::options().memory(MEMORY).create().open(&limited)?;
    write(&file)?;
    let stats = file.stats();
    assert!(stats.early_stores > 0, "the limit was never reached");
    // One write may take more than is left.
    assert!(stats.staged_bytes <= MEMORY / 4 + 4 * CHUNK, "{} bytes are staged", stats.staged_bytes);
    check(&file)?;
    file.close()?;
    assert!(File::options().memory(MEMORY).open(&limited)?.stats().staged_bytes == 0, "a closed file stages nothing");

    // Chunks that were decoded are kept for all files together.
    let readers = [&free, &limited].map(|path| File::options().memory(MEMORY).open(path));
    for reader in readers.into_iter().collect::<Result<Vec<_>>>()? {
        for number in 0..DATASETS {
            reader.dataset(&format!("{number}"))?.read_slice::<u32>(3..9)?;
        }
        assert!(reader.stats().chunk_cache_bytes <= MEMORY / 4, "{}", reader.stats().chunk_cache_bytes);
        check(&reader)?;
    }
    Ok(())
}

/// The same by a location, which every command and Python take, in every store of this machine.
#[test]
fn a_location_can_limit_the_memory_in_every_store() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for store in ["native", "log", "kv"] {
        let at = format!("{store}:{}?memory=4MiB", folder.path().join(store).display());
        let file = File::create(at.as_str())?;
        write(&file)?;
        file.close()?;
        check(&File::open(at.as_str())?)?;
    }
    Ok(())
}

/// What a thread does with a dataset of its own: it appends, flushes at times its dataset, at times the file, and reads.
fn write_by_thread(file: &File, number: u64) -> Result<()> {
    let new = file.new_dataset::<u32>().unlimited_rows(&[]).chunk_shape(&[CHUNK / 4]);
    let new = if number.is_multiple_of(2) { new.shuffle().deflate(1) } else { new };
    let dataset = new.create(&format!("by thread {number}"))?;
    let (mut written, mut count) = (Vec::new(), 0);
    for round in 0..30 {
        count = (count * 31 + number * 7919 + 1013) % (CHUNK as usize / 3) as u64;
        let rows: Vec<u32> = (0..count).map(|row| (number << 24 | round << 16) as u32 ^ row as u32).collect();
        dataset.append(&rows)?;
        written.extend(rows);
        match round % 5 {
            1 => dataset.flush()?,
            3 => file.flush()?,
            _ => {}
        }
        let from = written.len() as u64 / 2;
        assert_eq!(dataset.read_slice::<u32>(from..)?, written[from as usize..], "dataset {number}, round {round}");
    }
    dataset.set_attribute("rows", &(written.len() as u64))?;
    assert_eq!(dataset.read::<u32>()?, written, "dataset {number}");
    Ok(())
}

#[test]
fn threads_that_share_a_limit_lose_nothing_in_every_store() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for store in ["native", "log", "kv", "hsds"] {
        let at = format!("{store}:{}?memory=1MiB", folder.path().join(format!("threads-{store}")).display());
        let file = File::create(at.as_str())?;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6)
                .map(|number| {
                    scope.spawn({
                        let file = &file;
                        move || write_by_thread(file, number)
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap())
        })?;
        file.close()?;
        let file = File::open(at.as_str())?;
        for number in 0..6 {
            let dataset = file.dataset(&format!("by thread {number}"))?;
            let count: u64 = dataset.attribute("rows")?.read_scalar()?;
            let rows = dataset.read::<u32>()?;
            assert_eq!(rows.len() as u64, count, "{store}, dataset {number}");
            assert!(rows.iter().all(|row| row >> 24 == number as u32), "{store}, dataset {number}");
        }
    }
    Ok(())
}
