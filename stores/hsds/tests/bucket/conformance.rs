//! The suite that every store runs, on buckets.

use h5live_hsds::HsdsStore;
use h5live_model::conformance::{self, StoreFixture};
use h5live_model::{Mode, Store};
use h5live_objects::ObjectClient;
use h5live_objects::testing::S3Server;
use parking_lot::Mutex;

use crate::{client, long_lease, open};

/// Domains in a bucket.
struct Domains {
    client: ObjectClient,
    made: Mutex<u64>,
}

impl Domains {
    fn new(client: ObjectClient) -> Self {
        Domains { client, made: Mutex::new(0) }
    }

    fn open(&self, mode: Mode) -> HsdsStore {
        open(&self.client, &format!("home/run{}", self.made.lock()), mode, &long_lease()).unwrap()
    }
}

impl StoreFixture for Domains {
    type Store = HsdsStore;

    fn create(&self) -> HsdsStore {
        *self.made.lock() += 1;
        self.open(Mode::CreateNew)
    }

    fn reopen(&self, closed: HsdsStore) -> HsdsStore {
        closed.close().unwrap();
        drop(closed);
        self.open(Mode::Write)
    }

    fn open_reader(&self, _: &HsdsStore) -> Option<HsdsStore> {
        Some(self.open(Mode::SwmrRead))
    }
}

/// In memory, each group by itself.
mod memory {
    use super::*;

    conformance::suite!(Domains::new(ObjectClient::memory()));
}

#[test]
fn a_bucket_of_an_s3_server_passes_the_whole_suite() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket(crate::BUCKET);
    let lab = Domains::new(client(&server.client_options()));
    conformance::suite!(called lab);
    println!("{:?}", lab.client.request_counts());
}
