//! How many requests an operation takes on the object store, and how many waves of them.

use h5live_hsds::HsdsStore;
use h5live_hsds::engine::RequestCounts;
use h5live_model::{ChunkCoord, ChunkReadRequest, Link, Mode, Store, WatchEvent};
use h5live_objects::ObjectClient;
use h5live_objects::testing::{FaultyProxy, ProxyFaults, S3Server};

use crate::{BUCKET, DOMAIN, append, client, create, create_seen, find, long_lease, open};

/// Gets, puts, deletions, listings and waves.
type Requests = (u64, u64, u64, u64, u64);

fn requests(counts: &RequestCounts) -> Requests {
    (counts.gets, counts.puts, counts.deletes, counts.lists, counts.waves)
}

/// What an operation adds to the requests of a session.
fn added(store: &HsdsStore, operation: impl FnOnce()) -> Requests {
    let before = requests(&store.request_counts());
    operation();
    let after = requests(&store.request_counts());
    (after.0 - before.0, after.1 - before.1, after.2 - before.2, after.3 - before.3, after.4 - before.4)
}

/// A domain with a dataset of ten chunks, by a writer that is still there.
fn domain() -> (ObjectClient, HsdsStore) {
    let client = ObjectClient::memory();
    let store = open(&client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap();
    let data = create_seen(&store, "rows");
    (0..10).for_each(|place| append(&*data, place).unwrap());
    (client, store)
}

fn reader(client: &ObjectClient) -> HsdsStore {
    open(client, DOMAIN, Mode::SwmrRead, &long_lease()).unwrap()
}

#[test]
fn opening_a_domain_and_listing_its_root_takes_two_requests() {
    let (client, _store) = domain();
    let before = client.request_counts().total_requests();
    let reader = reader(&client);
    let mut names = 0;
    let count = &mut |_: Link| {
        names += 1;
        true
    };
    reader.for_each_link(reader.session().root, count).unwrap();
    assert_eq!((requests(&reader.request_counts()), names), ((2, 0, 0, 0, 2), 1));
    assert_eq!(client.request_counts().total_requests() - before, 2, "each is one request of the object store");
}

#[test]
fn a_slice_takes_one_request_for_the_dataset_and_its_chunks_in_one_wave() {
    let (client, _store) = domain();
    let reader = reader(&client);
    let id = find(&reader, "rows").unwrap();
    let before = client.request_counts().total_requests();
    let read = added(&reader, || {
        let data = reader.dataset(id).unwrap();
        let coords: Vec<ChunkCoord> = (2..9).map(|at| ChunkCoord::new(&[at])).collect();
        let wanted: Vec<ChunkReadRequest<'_>> =
            coords.iter().map(|coord| ChunkReadRequest { coord, byte_range: None }).collect();
        data.read_many(&wanted, 1 << 20, &|_, found| {
            assert!(found.is_some());
            Ok(())
        })
        .unwrap();
    });
    assert_eq!((read, client.request_counts().total_requests() - before), ((1 + 7, 0, 0, 0, 2), 8));
}

#[test]
fn appended_rows_take_their_chunks_and_one_put_and_two_questions_for_the_lease() {
    let (_, store) = domain();
    let data = store.dataset(find(&store, "rows").unwrap()).unwrap();
    assert_eq!(added(&store, || append(&*data, 10).unwrap()), (2, 2, 0, 0, 4));
}

#[test]
fn an_s3_server_gets_the_requests_that_are_counted() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket(BUCKET);
    let proxy = FaultyProxy::start(server.address(), ProxyFaults::default()).unwrap();
    let client = client(&proxy.client_options());
    let arrived = |operation: &mut dyn FnMut()| {
        let before = proxy.request_count();
        operation();
        proxy.request_count() - before
    };
    let mut store = None;
    let made = arrived(&mut || store = Some(open(&client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap()));
    // The lease: a look, a put, and three that try conditions. The domain: a look, two deletions of summaries, its root, its
    // folder (a look and a put), its object. Each of the four waves of changes comes after a question for the lease.
    assert_eq!(made, 5 + 1 + 3 + 2 + 3 + 2);
    let store = store.unwrap();
    let data = create_seen(&store, "rows");
    append(&*data, 0).unwrap();
    assert_eq!(arrived(&mut || append(&*data, 1).unwrap()), 4);
    assert_eq!(arrived(&mut || drop(open(&client, DOMAIN, Mode::SwmrRead, &long_lease()).unwrap())), 2);
    assert_eq!(
        arrived(&mut || store.close().unwrap()),
        1 + 1 + 1,
        "the object of the domain, and the end of the lease"
    );
}

#[test]
fn following_a_dataset_that_has_not_changed_transfers_nothing() {
    let (client, store) = domain();
    let reader = reader(&client);
    let id = find(&reader, "rows").unwrap();
    let data = reader.dataset(id).unwrap();
    let before = client.request_counts();
    assert_eq!(added(&reader, || assert!(!data.refresh().unwrap())), (1, 0, 0, 0, 1));
    let after = client.request_counts();
    assert_eq!((after.gets - before.gets, after.bytes_read - before.bytes_read), (1, 0));
    // Of the lease and the dataset, the first look reads the lease.
    let mut watch = reader.watch(&[id]).unwrap();
    let before = client.request_counts().bytes_read;
    let zero = std::time::Duration::ZERO;
    assert_eq!(watch.wait(zero).unwrap(), WatchEvent::Timeout);
    assert_eq!(client.request_counts().bytes_read, before);
    // A reader that asks again at once makes no request until its pause is over.
    let begin = std::time::Instant::now();
    let ask = || (0..1000).for_each(|_| assert_eq!(watch.wait(zero).unwrap(), WatchEvent::Timeout));
    let (gets, _, _, _, waves) = added(&reader, ask);
    let looks = 1 + u64::try_from(begin.elapsed().as_millis()).unwrap() / 20;
    assert!(gets == waves && gets <= 2 * looks, "{gets} requests in {looks} pauses");
    append(&*store.dataset(find(&store, "rows").unwrap()).unwrap(), 10).unwrap();
    while watch.wait(zero).unwrap() != WatchEvent::Changed {}
}

#[test]
fn a_thousand_datasets_are_described_in_few_waves() {
    let client = ObjectClient::memory();
    let store = open(&client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap();
    for number in 0..1000 {
        create(&store, &format!("{number:04}"), number);
    }
    let committed = added(&store, || store.close().unwrap());
    assert_eq!(committed, (3, 1002, 0, 0, 6), "datasets, the root, the domain, each with a question for the lease");
    let reader = reader(&client);
    let listed = added(&reader, || {
        let mut ids = Vec::new();
        let root = reader.session().root;
        reader
            .for_each_link(root, &mut |link| {
                ids.push(link.name);
                true
            })
            .unwrap();
        for name in ids {
            let id = reader.link(root, &name).unwrap().unwrap();
            let h5live_model::LinkTarget::Hard(id) = id.target else { panic!("a hard link") };
            drop(reader.dataset(id).unwrap());
        }
    });
    assert!(listed.0 == 1000 && listed.4 <= 12, "{listed:?}");
}
