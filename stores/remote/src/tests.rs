//! Files in memory and in folders, read as objects.

use std::sync::Arc;

use h5live_cache::Storage;
use h5live_objects::{ObjectClient, ObjectErrorKind, PutCondition};

use crate::{ObjectBackedStorage, Remote};

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
        let storage = ObjectBackedStorage::open(client, "a", &options()).unwrap();
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
    let storage = ObjectBackedStorage::open(client.clone(), "a", &options()).unwrap();
    let before = client.request_counts().gets;
    let mut into = vec![0; 17 << 20];
    assert_eq!(storage.read_at(&mut into, 5).unwrap(), into.len());
    assert!(into == all[5..5 + into.len()]);
    assert_eq!(client.request_counts().gets - before, 3, "of 8 MiB at most");
}

#[test]
fn ranges_come_each_once_and_near_ones_by_one_request() {
    let (client, all) = object(12 << 20);
    let storage = ObjectBackedStorage::open(client.clone(), "a", &options()).unwrap();
    assert_eq!(client.request_counts().gets, 2, "the first and the last part");
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
    assert_eq!(client.request_counts().gets, 2 + 2 + 1 + 1);
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
    let storage = Arc::new(ObjectBackedStorage::open(client.clone(), "a", &options()).unwrap());
    let before = client.request_counts().gets;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut into = [0; 100];
                storage.read_at(&mut into, 400_000).unwrap();
                assert_eq!(into, all[400_000..400_100]);
            });
        }
    });
    assert_eq!(client.request_counts().gets - before, 1);
    // In order, each time more is read ahead.
    let before = client.request_counts().gets;
    for at in (40_000..900_000).step_by(1000) {
        let mut into = [0; 1000];
        storage.read_at(&mut into, at).unwrap();
        assert_eq!(into, all[at as usize..at as usize + 1000]);
    }
    let requests = client.request_counts().gets - before;
    assert!(requests < 60, "{requests} requests for 210 blocks");
}

#[test]
fn an_object_that_was_replaced_is_an_error_and_never_other_bytes() {
    let (client, _) = object(1 << 20);
    let storage = ObjectBackedStorage::open(client.clone(), "a", &options()).unwrap();
    client.put("a", vec![1; 1 << 20], &PutCondition::Always).unwrap();
    let error = storage.read_at(&mut [0; 10], 500_000).unwrap_err();
    assert!(error.to_string().contains("memory/a: the object has been replaced"), "{error}");
    let kind = h5live_model::StoreErrorKind::from(&error);
    assert!(matches!(kind, h5live_model::StoreErrorKind::Changed(_)), "{kind:?}");
    let range = 300_000..300_010;
    assert!(storage.read_ranges(std::slice::from_ref(&range), 1 << 20, &mut |_, _| panic!("nothing comes")).is_err());
    // What was read before is still there.
    storage.read_at(&mut [0; 10], 0).unwrap();
    let error = ObjectBackedStorage::open(client, "none", &options()).unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::NotThere);
}

/// Options with a folder of blocks.
fn cached(folder: &std::path::Path) -> Remote {
    Remote { disk_cache: folder.to_str().unwrap().to_owned(), ..options() }
}

fn block_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let objects = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = objects.flat_map(|object| std::fs::read_dir(object).unwrap().map(|entry| entry.unwrap().path()));
    files.collect()
}

/// Reads by blocks, directly, and by ranges, and says how many requests that took, with those of opening.
fn read_in_all_ways(client: &ObjectClient, all: &[u8], options: &Remote) -> u64 {
    let before = client.request_counts().total_requests();
    let storage = ObjectBackedStorage::open(client.clone(), "a", options).unwrap();
    let mut into = vec![0; 100];
    storage.read_at(&mut into, 50_000).unwrap();
    assert_eq!(into, all[50_000..50_100]);
    let mut into = vec![0; 3 << 20];
    storage.read_at(&mut into, 100_001).unwrap();
    assert!(into == all[100_001..100_001 + into.len()]);
    let ranges =
        [(9 << 20)..(9 << 20) + 77, (6 << 20) + 4000..(6 << 20) + 4200, all.len() as u64 - 5..all.len() as u64];
    let read = &mut |number: usize, found: &[u8]| {
        let range: &std::ops::Range<u64> = &ranges[number];
        assert_eq!(found, &all[range.start as usize..range.end as usize]);
        true
    };
    storage.read_ranges(&ranges, 1 << 20, read).unwrap();
    client.request_counts().total_requests() - before
}

#[test]
fn a_second_session_reads_what_the_first_has_left_in_a_folder_and_asks_for_the_state_only() {
    let folder = tempfile::tempdir().unwrap();
    let (client, all) = object((12 << 20) + 77);
    let plain = read_in_all_ways(&client, &all, &options());
    assert_eq!(read_in_all_ways(&client, &all, &cached(folder.path())), plain);
    let before = client.request_counts();
    assert_eq!(read_in_all_ways(&client, &all, &cached(folder.path())), 1);
    let after = client.request_counts();
    assert_eq!((after.heads - before.heads, after.bytes_read - before.bytes_read), (1, 0));
    // Blocks of another length are others.
    let other = Remote { block_size: 8 << 10, ..cached(folder.path()) };
    assert!(read_in_all_ways(&client, &all, &other) > 1);
    // Of a new state, nothing old is shown.
    let changed: Vec<u8> = all.iter().map(|byte| byte ^ 1).collect();
    client.put("a", changed.clone(), &PutCondition::Always).unwrap();
    assert!(read_in_all_ways(&client, &changed, &cached(folder.path())) > 1);
    assert_eq!(read_in_all_ways(&client, &changed, &cached(folder.path())), 1);
}

#[test]
fn a_damaged_block_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (client, all) = object((12 << 20) + 77);
    read_in_all_ways(&client, &all, &cached(folder.path()));
    let damages: [fn(&mut Vec<u8>); 5] = [
        |bytes| *bytes.last_mut().unwrap() ^= 1,
        |bytes| bytes[20] ^= 0x80,
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes.push(0),
        Vec::clear,
    ];
    for damage in damages {
        for file in block_files(folder.path()) {
            let mut bytes = std::fs::read(&file).unwrap();
            damage(&mut bytes);
            std::fs::write(&file, bytes).unwrap();
        }
        assert!(read_in_all_ways(&client, &all, &cached(folder.path())) > 1);
        assert_eq!(read_in_all_ways(&client, &all, &cached(folder.path())), 1);
    }
    // The file of another block, and one of another state.
    let files = block_files(folder.path());
    for pair in files.chunks_exact(2) {
        std::fs::copy(&pair[0], &pair[1]).unwrap();
    }
    assert!(read_in_all_ways(&client, &all, &cached(folder.path())) > 1);
}

#[test]
fn the_folder_stays_within_its_size_and_keeps_what_was_used_last() {
    let folder = tempfile::tempdir().unwrap();
    let (client, all) = object(4 << 20);
    let most = 256 << 10;
    let options = Remote { disk_cache_size: most, ..cached(folder.path()) };
    let storage = ObjectBackedStorage::open(client.clone(), "a", &options).unwrap();
    for at in (0..all.len()).step_by(4096) {
        let mut into = [0; 4096];
        storage.read_at(&mut into, at as u64).unwrap();
        assert_eq!(into, all[at..at + 4096]);
        let used: u64 = block_files(folder.path()).iter().map(|file| file.metadata().unwrap().len()).sum();
        assert!(used <= most, "{used} bytes");
    }
    assert!(block_files(folder.path()).len() > 32);
    // Several sessions at a time make it too large by a part each, until one of them looks.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let storage = ObjectBackedStorage::open(client.clone(), "a", &options).unwrap();
                for at in (0..all.len()).step_by(4096) {
                    let mut into = [0; 4096];
                    storage.read_at(&mut into, at as u64).unwrap();
                    assert_eq!(into, all[at..at + 4096]);
                }
            });
        }
    });
    let used: u64 = block_files(folder.path()).iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(used <= most + 4 * most / 16 + 4 * 8192, "{used} bytes");
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_and_one_that_is_full_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (client, all) = object((12 << 20) + 77);
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = ObjectBackedStorage::open(client.clone(), "a", &cached(&file.join("x"))).unwrap_err();
    assert!(error.to_string().contains("file/x"), "{error}");
    let options = Remote { disk_cache_size: 100, ..cached(folder.path()) };
    let plain = read_in_all_ways(&client, &all, &self::options());
    assert_eq!(read_in_all_ways(&client, &all, &options), plain);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(block_files(folder.path()).len(), 0);
}
