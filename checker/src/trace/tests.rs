use h5live_cache::{MemoryStorage, RecordingStorage, Storage};
use proptest::prelude::*;

use super::*;

fn write(at: u64, bytes: &[u8]) -> StorageOp {
    StorageOp::Write { at, bytes: bytes.to_vec() }
}

fn sample() -> Trace {
    let operations = vec![
        write(2, b"abc"),
        StorageOp::Mark("issued 1".into()),
        StorageOp::SetLen(3),
        StorageOp::Sync,
        StorageOp::Mark("flushed 1".into()),
        write(9, b"z"),
        StorageOp::Mark("issued 7".into()),
    ];
    Trace::new(b"base".to_vec(), operations)
}

fn saved(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    trace.save(&mut bytes).unwrap();
    bytes
}

#[test]
fn comes_back_from_a_file() {
    assert_eq!(Trace::load(&*saved(&sample())).unwrap(), sample());
    assert_eq!(Trace::load(&*saved(&Trace::default())).unwrap(), Trace::default());
}

#[test]
fn refuses_every_truncation_and_every_flipped_bit() {
    let bytes = saved(&sample());
    for len in 0..bytes.len() {
        assert!(Trace::load(&bytes[..len]).is_err(), "cut at {len}");
    }
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Trace::load(&*damaged).is_err(), "bit {bit}");
    }
}

#[test]
fn counts_by_its_marks() {
    let trace = sample();
    let issued = MarkValues::new(&trace, "issued");
    assert_eq!(
        (issued.last_value_at(1), issued.last_value_at(2), issued.last_value_at(6), issued.last_value_at(7)),
        (None, Some(1), Some(1), Some(7))
    );
    assert_eq!(trace.prefix_ending_with_mark("flushed 1"), Some(5));
}

#[test]
fn shows_the_file_after_each_prefix() {
    let trace = sample();
    let images: Vec<_> = (0..=trace.len()).map(|prefix| trace.image_after(prefix).unwrap()).collect();
    assert_eq!(images[0], b"base");
    assert_eq!(images[1], b"baabc");
    assert_eq!(images[3], b"baa");
    assert_eq!(images[7], b"baa\0\0\0\0\0\0z");
}

#[test]
fn takes_the_calls_on_one_file_from_a_log_of_strace() {
    let log = r#"openat(AT_FDCWD, "\x2f\x61\x2e\x68\x35", O_RDWR|O_CREAT, 0666) = 3
openat(AT_FDCWD, "\x2f\x62\x2e\x68\x35", O_RDWR) = 4
[pid   17] pwrite64(3, "\x61\x62\x63", 3, 5) = 3
pwrite64(4, "\x61\x62\x63", 3, 5)       = 3
openat(AT_FDCWD, "\x61\x2e\x68\x35\x2e\x6d\x61\x72\x6b\x73", O_WRONLY|O_CREAT, 0666) = 5
write(5, "\x64\x20\x33\x0a", 4) = 4
17 ftruncate(3, 2048)                 = 0
fsync(3) = 0
pwrite64(3, "\x61", 1, 5) = -1 ENOSPC (No space left on device)
close(3) = 0
openat(AT_FDCWD, "\x2f\x63", O_RDWR) = 3
pwrite64(3, "\x61", 1, 5) = 1
+++ exited with 0 +++
"#;
    let mark = StorageOp::Mark("d 3".into());
    let expected = [write(5, b"abc"), mark, StorageOp::SetLen(2048), StorageOp::Sync];
    let trace = Trace::from_strace(Vec::new(), "a.h5", log.as_bytes()).unwrap();
    assert_eq!(trace.operations(), expected);
    let cut = "openat(3, \"\\x61\", 0) = 3\npwrite64(3, \"\\x61\"..., 3, 5) = 3\n";
    assert!(matches!(
        Trace::from_strace(Vec::new(), "a", cut.as_bytes()),
        Err(StraceError::UnusableCall { line: 2, .. })
    ));
}

proptest! {
    #[test]
    fn records_what_a_storage_becomes(changes in prop::collection::vec((0u64..64, 0usize..16, any::<bool>()), 0..20)) {
        let storage = RecordingStorage::new(MemoryStorage::from(vec![7; 10]));
        for (at, len, cut) in changes {
            if cut { storage.set_len(at).unwrap() } else { storage.write_at(&vec![at as u8; len], at).unwrap() }
        }
        let trace = Trace::new(vec![7; 10], storage.log());
        prop_assert_eq!(trace.image_after(trace.len()).unwrap(), storage.inner().to_vec());
        prop_assert_eq!(Trace::load(&*saved(&trace)).unwrap(), trace);
    }
}
