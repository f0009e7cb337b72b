//! A server that fails at random: requests that it never got, requests whose answer was lost, half answers, and answers that
//! it could not now.

use std::time::Duration;

use h5live_model::{Mode, Store};
use h5live_objects::testing::{FaultyProxy, ProxyFaults, S3Server};
use h5live_objects::{ObjectClient, RequestLimits};

use crate::{BUCKET, DOMAIN, append, check_appended, client, create_seen, find, long_lease, open};

fn patient(client: &ObjectClient) -> ObjectClient {
    client.with_limits(RequestLimits {
        max_attempts: 14,
        first_pause: Duration::from_millis(2),
        ..RequestLimits::default()
    })
}

#[test]
fn nothing_wrong_is_read_or_written_on_a_server_that_fails_at_random() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket(BUCKET);
    let direct = client(&server.client_options());
    for seed in [1, 2, 3] {
        println!("seed {seed}");
        let faults = ProxyFaults { per_mille: 250, seed, ..ProxyFaults::default() };
        let proxy = FaultyProxy::start(server.address(), faults).unwrap();
        let faulty = patient(&client(&proxy.client_options()));
        let domain = format!("{DOMAIN}{seed}");
        // Each put arrives at last, some of them twice; the lease is not lost to itself.
        let store = open(&faulty, &domain, Mode::CreateNew, &long_lease()).unwrap();
        let data = create_seen(&store, "rows");
        append(&*data, 0).unwrap();
        let reader = open(&faulty, &domain, Mode::SwmrRead, &long_lease()).unwrap();
        let followed = reader.dataset(find(&reader, "rows").unwrap()).unwrap();
        for place in 1..20 {
            append(&*data, place).unwrap();
            followed.refresh().unwrap();
            assert_eq!(check_appended(&*followed), place + 1);
        }
        store.close().unwrap();
        let error = open(&faulty, &domain, Mode::CreateNew, &long_lease()).unwrap_err();
        assert!(error.to_string().contains("exists"), "{error}");
        let next = open(&faulty, &domain, Mode::Write, &long_lease()).unwrap();
        append(&*next.dataset(find(&next, "rows").unwrap()).unwrap(), 20).unwrap();
        next.close().unwrap();
        let plain = open(&direct, &domain, Mode::Read, &long_lease()).unwrap();
        assert_eq!(check_appended(&*plain.dataset(find(&plain, "rows").unwrap()).unwrap()), 21);
        assert!(
            proxy.injected_failure_count() > 20,
            "{} of {} requests failed",
            proxy.injected_failure_count(),
            proxy.request_count()
        );
    }
}
