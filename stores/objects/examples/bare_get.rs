//! Reads an object by parallel requests of the library alone, and says how many seconds that took and how many bytes came:
//! `bare_get BUCKET KEY ENDPOINT`. It is what reading a file is compared with.

use std::time::Instant;

use futures::StreamExt;
use h5live_objects::{Cloud, ObjectOptions, ObjectPlace};
use object_store::ObjectStoreExt;
use object_store::path::Path;

/// Bytes of a request.
const REQUEST_BYTES: u64 = 8 << 20;
/// Requests at a time.
const IN_FLIGHT: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("bare_get BUCKET KEY ENDPOINT");
    let (bucket, key, endpoint) = (next()?, Path::parse(next()?)?, next()?);
    let options =
        ObjectOptions { endpoint, region: "us-east-1".to_owned(), allow_http: true, ..ObjectOptions::default() };
    let store = ObjectPlace::Bucket { cloud: Cloud::S3, bucket }.library_store(&options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let begin = Instant::now();
    let bytes = runtime.block_on(async {
        let size = store.head(&key).await?.size;
        let ranges = (0..size).step_by(REQUEST_BYTES as usize).map(|at| at..(at + REQUEST_BYTES).min(size));
        let reads = futures::stream::iter(ranges).map(|range| store.get_range(&key, range)).buffer_unordered(IN_FLIGHT);
        let sizes = reads.map(|bytes| bytes.map(|bytes| bytes.len())).collect::<Vec<_>>().await;
        sizes.into_iter().sum::<object_store::Result<usize>>()
    })?;
    println!("{} {bytes}", begin.elapsed().as_secs_f64());
    Ok(())
}
