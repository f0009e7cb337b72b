//! Threads of one process read a dataset with a filter while another one overwrites it and flushes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use h5live::{Dataset, File};

const CHUNKS: usize = 8;
const CHUNK: usize = 20_000;
const ROUNDS: u64 = 400;

/// The elements of a chunk in a round. They compress to another length in each.
fn elements(round: u64) -> Vec<u64> {
    let noise = round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    (0..CHUNK as u64).map(|n| (round << 32) | (n.wrapping_mul(noise) % (1 + noise % 5000))).collect()
}

/// Reads chunks until the writer is done. Returns how many.
fn read_until(done: &AtomicBool, data: &Dataset, written: &AtomicU64) -> u64 {
    let mut reads = 0;
    while !done.load(Ordering::Acquire) {
        for chunk in 0..CHUNKS {
            let least = written.load(Ordering::Acquire);
            let found: Vec<u64> = data.read_slice(chunk * CHUNK..(chunk + 1) * CHUNK).unwrap();
            let round = found[0] >> 32;
            assert!(round >= least, "chunk {chunk} goes back in time: {round} after {least}");
            assert!(found == elements(round), "chunk {chunk} of round {round} has other elements");
            reads += 1;
        }
    }
    reads
}

#[test]
fn threads_read_whole_chunks_while_another_overwrites_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("run.h5")).unwrap();
    let data = file
        .new_dataset::<u64>()
        .shape(&[(CHUNKS * CHUNK) as u64])
        .chunk_shape(&[CHUNK as u64])
        .deflate(1)
        .create("data");
    let data = data.unwrap();
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let write = |round: u64| {
        for chunk in 0..CHUNKS {
            data.write_slice(chunk * CHUNK..(chunk + 1) * CHUNK, &elements(round)).unwrap();
        }
        file.flush().unwrap();
        written.store(round, Ordering::Release);
    };
    write(0);
    let reads = thread::scope(|threads| {
        let readers = [(); 2].map(|()| threads.spawn(|| read_until(&done, &data, &written)));
        (1..=ROUNDS).for_each(write);
        done.store(true, Ordering::Release);
        readers.map(|reader| reader.join().unwrap())
    });
    assert!(reads.iter().all(|reads| *reads > 0), "{reads:?}");
}
