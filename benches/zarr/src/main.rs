//! Writes an array to a bucket, or reads it, as a domain of HSDS or as an array of Zarr version 3:
//! `h5live-zarr-speed h5live|zarrs write|read|slices ENDPOINT CHUNKS`. Prints how many seconds that took, and the sum of
//! some elements. Chunks have 1 MiB, and are frames of Blosc with LZ4 in both. `benches/zarr.py` runs it.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use h5live::model::FilterSpec;
use object_store::aws::AmazonS3Builder;
use zarrs::array::codec::bytes_to_bytes::blosc::{BloscCodec, BloscCompressor, BloscShuffleMode};
use zarrs::array::{Array, ArrayBuilder, ArraySubset, data_type};
use zarrs::storage::AsyncReadableWritableListableStorageTraits;
use zarrs_object_store::AsyncObjectStore;

/// Elements of a chunk, each of 8 bytes.
const CHUNK: u64 = 1 << 17;
/// Chunks that are written or read at a time.
const BATCH: u64 = 64;
/// Slices, and elements of each.
const SLICES: u64 = 100;
const SLICE: u64 = 1000;
const LEVEL: u8 = 5;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Elements from `first` on, which compress to about half.
fn elements(first: u64, count: u64) -> Vec<f64> {
    let random = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
    (first..first + count).map(|at| random(at) as f64).collect()
}

fn batches(chunks: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    (0..chunks).step_by(BATCH as usize).map(move |first| first * CHUNK..chunks.min(first + BATCH) * CHUNK)
}

fn slices(chunks: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    let last = chunks * CHUNK - SLICE;
    (1..=SLICES).map(move |slice| {
        let first = slice.wrapping_mul(0x9e37_79b9_7f4a_7c15) % last;
        first..first + SLICE
    })
}

fn sum(elements: &[f64]) -> f64 {
    elements.iter().step_by(SLICE as usize / 2).sum()
}

fn of_h5live(what: &str, endpoint: &str, chunks: u64) -> Result<f64> {
    // Garage does not keep the conditions by which two writers exclude each other.
    let options = "region=us-east-1&allow_http=yes&unfenced=yes";
    let location = format!("hsds+s3://bucket/home/speed?endpoint={endpoint}&{options}");
    if what == "write" {
        let file = h5live::File::options().create().open(&*location)?;
        let lz4 = FilterSpec { id: 32004, ..FilterSpec::default() };
        let data =
            file.new_dataset::<f64>().shape(&[chunks * CHUNK]).chunk_shape(&[CHUNK]).filter(lz4).create("data")?;
        for batch in batches(chunks) {
            data.write_slice(batch.clone(), &elements(batch.start, batch.end - batch.start))?;
        }
        file.close()?;
        return Ok(0.0);
    }
    let data = h5live::File::open(&*location)?.dataset("data")?;
    let read = |range| Ok::<_, h5live::Error>(sum(&data.read_slice::<f64>(range)?));
    Ok(match what {
        "read" => batches(chunks).map(read).sum::<std::result::Result<f64, _>>()?,
        _ => slices(chunks).map(read).sum::<std::result::Result<f64, _>>()?,
    })
}

async fn of_zarrs(what: &str, endpoint: &str, chunks: u64) -> Result<f64> {
    let builder = AmazonS3Builder::from_env().with_bucket_name("bucket").with_region("us-east-1");
    let s3 = builder.with_endpoint(endpoint).with_allow_http(true).build()?;
    let store: Arc<dyn AsyncReadableWritableListableStorageTraits> = Arc::new(AsyncObjectStore::new(s3));
    let at = |range: std::ops::Range<u64>| ArraySubset::new_with_ranges(&[range]);
    if what == "write" {
        let codec = BloscCodec::new(
            BloscCompressor::LZ4,
            LEVEL.try_into().map_err(|level| format!("Blosc has no level {level}"))?,
            None,
            BloscShuffleMode::NoShuffle,
            Some(1),
        )?;
        let mut builder = ArrayBuilder::new(vec![chunks * CHUNK], vec![CHUNK], data_type::float64(), 0f64);
        let array = builder.bytes_to_bytes_codecs(vec![Arc::new(codec)]).build(store, "/speed/data")?;
        array.async_store_metadata().await?;
        for batch in batches(chunks) {
            let values = elements(batch.start, batch.end - batch.start);
            array.async_store_array_subset(&at(batch), values).await?;
        }
        return Ok(0.0);
    }
    let array = Array::async_open(store, "/speed/data").await?;
    let ranges: Vec<_> = if what == "read" { batches(chunks).collect() } else { slices(chunks).collect() };
    let mut total = 0.0;
    for range in ranges {
        total += sum(&array.async_retrieve_array_subset::<Vec<f64>>(&at(range)).await?);
    }
    Ok(total)
}

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [side, what, endpoint, chunks] = &arguments[..] else {
        return Err("h5live-zarr-speed h5live|zarrs write|read|slices ENDPOINT CHUNKS".into());
    };
    let chunks = chunks.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let begin = Instant::now();
    let total = match &**side {
        "h5live" => of_h5live(what, endpoint, chunks)?,
        _ => runtime.block_on(of_zarrs(what, endpoint, chunks))?,
    };
    println!("{} {total}", begin.elapsed().as_secs_f64());
    Ok(())
}
