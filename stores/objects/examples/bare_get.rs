//! Reads an object by requests of the library alone, and says how many seconds that took and how many bytes came. It is what
//! reading a file is compared with.
//!
//! `bare_get BUCKET KEY ENDPOINT` reads all of it by parallel requests. `bare_get BUCKET KEY ENDPOINT WAVES` reads ranges as
//! `slow_proxy` lists them: those of a wave at a time, and each wave when the one before has come.

use std::time::Instant;

use futures::StreamExt;
use h5live_objects::{Cloud, ObjectOptions, ObjectStoreLocation};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};

/// Bytes of a request.
const REQUEST_BYTES: u64 = 8 << 20;
/// Requests at a time.
const IN_FLIGHT: usize = 64;

type Failure = Box<dyn std::error::Error>;

/// `0-99`, or `-100` for the last 100 bytes.
fn parse_range(text: &str) -> Result<GetRange, Failure> {
    Ok(match text.split_once('-').ok_or("a range is FIRST-LAST or -COUNT")? {
        ("", count) => GetRange::Suffix(count.parse()?),
        (first, last) => GetRange::Bounded(first.parse()?..last.parse::<u64>()? + 1),
    })
}

/// Reads ranges at a time, and returns how many bytes came.
async fn read(store: &dyn ObjectStore, key: &Path, ranges: Vec<GetRange>) -> object_store::Result<usize> {
    let read = async |range| {
        let options = GetOptions { range: Some(range), ..GetOptions::default() };
        store.get_opts(key, options).await?.bytes().await.map(|bytes| bytes.len())
    };
    let sizes = futures::stream::iter(ranges).map(read).buffer_unordered(IN_FLIGHT).collect::<Vec<_>>().await;
    sizes.into_iter().sum()
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("bare_get BUCKET KEY ENDPOINT [WAVES]");
    let (bucket, key, endpoint) = (next()?, Path::parse(next()?)?, next()?);
    let waves = arguments.next().unwrap_or_default();
    let waves = waves.split('/').filter(|wave| !wave.is_empty());
    let waves = waves.map(|wave| wave.split(',').map(parse_range).collect::<Result<Vec<_>, _>>());
    let mut waves = waves.collect::<Result<Vec<_>, _>>()?;
    let options =
        ObjectOptions { endpoint, region: "us-east-1".to_owned(), allow_http: true, ..ObjectOptions::default() };
    let store = ObjectStoreLocation::Bucket { cloud: Cloud::S3, bucket }.build_retrying_store(&options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let begin = Instant::now();
    if waves.is_empty() {
        let size = runtime.block_on(store.head(&key))?.size;
        let ranges = (0..size).step_by(REQUEST_BYTES as usize);
        waves.push(ranges.map(|at| GetRange::Bounded(at..(at + REQUEST_BYTES).min(size))).collect());
    }
    let mut bytes = 0;
    for wave in waves {
        bytes += runtime.block_on(read(&store, &key, wave))?;
    }
    println!("{} {bytes}", begin.elapsed().as_secs_f64());
    Ok(())
}
