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
