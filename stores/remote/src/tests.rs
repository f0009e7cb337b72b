//! Files in memory and in folders, read as objects.

use std::sync::Arc;

use h5live_cache::Storage;
use h5live_objects::{ObjectClient, ObjectErrorKind, PutCondition};

use crate::{ObjectStorage, Remote};

fn options() -> Remote {
    Remote { block_size: 4 << 10, first_read: 8 << 10, cache_size: 64 << 10, ..Remote::default() }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 251) as u8).collect()
}

fn object(len: usize) -> (ObjectClient, Vec<u8>) {
    let (client, bytes) = (ObjectClient::memory(), bytes(len));
    client.put("a", bytes.clone(), &PutCondition::Always).unwrap();
    (client, bytes)
}

#[test]
fn an_object_is_read_as_it_is_at_any_place() {
    for len in [0, 1, 4095, 4096, 4097, 8192, 8193, 20_000, 300_000] {
        let (client, all) = object(len);
        let storage = ObjectStorage::open(client, "a", &options()).unwrap();
        assert_eq!(storage.len().unwrap(), len as u64);
        let mut at = 0;
        while at < len + 5000 {
            for wanted in [1, 100, 4096, 9000, 70_000] {
                let mut into = vec![9; wanted];
                let found = storage.read_at(&mut into, at as u64).unwrap();
                let end = (at + wanted).min(len);
                assert_eq!(into[..found], all[at.min(end)..end], "{len} {at} {wanted}");
            }
            at += 1 + len / 13;
        }
        assert_eq!(storage.read_at(&mut [0; 8], u64::MAX - 3).unwrap(), 0);
        assert!(storage.write_at(&[1], 0).is_err() && storage.set_len(1).is_err());
    }
}

#[test]
fn large_reads_are_made_by_requests_of_their_own() {
    let (client, all) = object(20 << 20);
    let storage = ObjectStorage::open(client.clone(), "a", &options()).unwrap();
    let before = client.counts().gets;
    let mut into = vec![0; 17 << 20];
    assert_eq!(storage.read_at(&mut into, 5).unwrap(), into.len());
    assert!(into == all[5..5 + into.len()]);
    assert_eq!(client.counts().gets - before, 3, "of 8 MiB at most");
}

#[test]
fn ranges_come_each_once_and_near_ones_by_one_request() {
    let (client, all) = object(12 << 20);
    let storage = ObjectStorage::open(client.clone(), "a", &options()).unwrap();
    assert_eq!(client.counts().gets, 2, "the first and the last part");
    let near = (0..100u64).map(|n| (2 << 20) + n * 9000..(2 << 20) + n * 9000 + 500);
    let far = [0..100, (6 << 20)..(6 << 20) + 5, 7..7, (12 << 20) - 10..(12 << 20) + 10, (13 << 20)..(14 << 20)];
    let large = std::iter::once((1 << 20)..(11 << 20));
    let ranges: Vec<_> = near.chain(far).chain(large).collect();
    let mut seen = vec![0; ranges.len()];
    storage
        .read_ranges(&ranges, 1 << 20, &mut |number, found| {
            let range = &ranges[number];
            let (start, end) = ((range.start as usize).min(all.len()), (range.end as usize).min(all.len()));
            assert!(found == &all[start..end], "{range:?}");
            seen[number] += 1;
            true
        })
        .unwrap();
    assert!(seen.iter().all(|count| *count == 1), "{seen:?}");
    // Two for the large one; one for the near ones, one for the one that is far; what is kept needs none.
    assert_eq!(client.counts().gets, 2 + 2 + 1 + 1);
    let mut count = 0;
    storage
        .read_ranges(&ranges, 1 << 20, &mut |_, _| {
            count += 1;
            count < 3
        })
        .unwrap();
    assert_eq!(count, 3, "it stops when it is told to");
}

#[test]
fn blocks_are_read_once_by_many_threads_and_dropped_when_there_are_too_many() {
    let (client, all) = object(1 << 20);
    let storage = Arc::new(ObjectStorage::open(client.clone(), "a", &options()).unwrap());
    let before = client.counts().gets;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut into = [0; 100];
                storage.read_at(&mut into, 400_000).unwrap();
                assert_eq!(into, all[400_000..400_100]);
            });
        }
    });
    assert_eq!(client.counts().gets - before, 1);
    // In order, each time more is read ahead.
    let before = client.counts().gets;
    for at in (40_000..900_000).step_by(1000) {
        let mut into = [0; 1000];
        storage.read_at(&mut into, at).unwrap();
        assert_eq!(into, all[at as usize..at as usize + 1000]);
    }
    let requests = client.counts().gets - before;
    assert!(requests < 60, "{requests} requests for 210 blocks");
}

#[test]
fn an_object_that_was_replaced_is_an_error_and_never_other_bytes() {
    let (client, _) = object(1 << 20);
    let storage = ObjectStorage::open(client.clone(), "a", &options()).unwrap();
    client.put("a", vec![1; 1 << 20], &PutCondition::Always).unwrap();
    let error = storage.read_at(&mut [0; 10], 500_000).unwrap_err();
    assert!(error.to_string().contains("memory/a: the object has been replaced"), "{error}");
    let kind = h5live_model::StoreErrorKind::from(&error);
    assert!(matches!(kind, h5live_model::StoreErrorKind::Changed(_)), "{kind:?}");
    let range = 300_000..300_010;
    assert!(storage.read_ranges(std::slice::from_ref(&range), 1 << 20, &mut |_, _| panic!("nothing comes")).is_err());
    // What was read before is still there.
    storage.read_at(&mut [0; 10], 0).unwrap();
    let error = ObjectStorage::open(client, "none", &options()).unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::NotThere);
}
