//! Domains in buckets: on an S3 server of this machine, and in memory.

#[path = "../shared/mod.rs"]
mod shared;

mod conformance;
mod documents;
mod failures;
mod kills;
mod leases;
mod lost_domains;
mod processes;
mod requests;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use h5live_hsds::HsdsStore;
use h5live_hsds::engine::{BucketEngine, BucketOptions, LeaseOptions};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout, LinkTarget,
    Mode, NewObject, ObjectId, ObjectSpec, PublishLevel, Result, Shape, Sign, Store, UNLIMITED,
};
use h5live_objects::{Cloud, ListEntry, ObjectChangeTag, ObjectClient, ObjectOptions, ObjectStoreLocation};

use self::shared::request;

const BUCKET: &str = "bucket";
const DOMAIN: &str = "home/run";

fn client(options: &ObjectOptions) -> ObjectClient {
    ObjectStoreLocation::Bucket { cloud: Cloud::S3, bucket: BUCKET.to_owned() }.build_client(options).unwrap()
}

/// A lease that no test waits for.
fn long_lease() -> BucketOptions {
    with_lease(Duration::from_secs(600), false)
}

fn with_lease(period: Duration, takes_over: bool) -> BucketOptions {
    let lease = LeaseOptions { ttl: period, takes_over_unexpired: takes_over, is_unfenced: false };
    BucketOptions { lease, longest_poll_pause: Duration::from_millis(50) }
}

fn open(client: &ObjectClient, domain: &str, mode: Mode, how: &BucketOptions) -> Result<HsdsStore> {
    HsdsStore::open(BucketEngine::open(client, BUCKET, domain, mode, how)?, &request(mode, domain))
}

/// Numbers of eight bytes, two in a chunk.
fn numbers(dims: u64) -> ObjectSpec {
    DatasetSpec {
        datatype: Datatype::integer(8, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[dims], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![2]),
        ..DatasetSpec::default()
    }
    .into()
}

fn create(store: &HsdsStore, name: &str, dims: u64) -> ObjectId {
    let spec = numbers(dims);
    store.writer().unwrap().create(&NewObject::linked(store.session().root, &name.into(), &spec)).unwrap()
}

/// A new dataset that readers see.
fn create_seen(store: &HsdsStore, name: &str) -> Arc<dyn ChunkStore> {
    let id = create(store, name, 0);
    store.writer().unwrap().start_swmr().unwrap();
    store.dataset(id).unwrap()
}

fn find(store: &HsdsStore, name: &str) -> Option<ObjectId> {
    store.link(store.session().root, &name.into()).unwrap().map(|link| match link.target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    })
}

/// Appends a chunk with the number of its place, twice, and lets it be seen.
fn append(data: &dyn ChunkStore, place: u64) -> Result<()> {
    let (coord, extent) = (ChunkCoord::new(&[place]), [2 * place + 2]);
    let bytes = [place.to_le_bytes(), place.to_le_bytes()].concat();
    let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &bytes }];
    let publish = Some(PublishLevel::Visible);
    data.write(&ChunkBatch { writes: &writes, extent: Some(&extent), publish_after: &[], publish })
}

/// The number of chunks of a dataset, each of which has what was appended.
fn check_appended(data: &dyn ChunkStore) -> u64 {
    let chunks = data.spec().unwrap().dataspace.dims()[0] / 2;
    for place in 0..chunks {
        let chunk = data.locate(&ChunkCoord::new(&[place])).unwrap().expect("a chunk within the shape is there");
        let mut found = [0; 16];
        data.read(&chunk, 0, &mut found).unwrap();
        assert_eq!(found.as_slice(), [place.to_le_bytes(), place.to_le_bytes()].concat(), "chunk {place}");
    }
    chunks
}

/// All objects of a bucket with their states.
fn objects(client: &ObjectClient) -> Vec<(String, ObjectChangeTag)> {
    let mut found = Vec::new();
    client
        .list_objects_recursively("", &mut |entry| {
            if let ListEntry::Object { key, meta } = entry {
                found.push((key, meta.tag));
            }
            true
        })
        .unwrap();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}
