use super::*;

#[test]
fn a_base_address_moves_every_access() {
    let whole = MemoryStorage::from(vec![7; 512]);
    let based = BaseOffsetStorage::new(whole.clone(), 512);
    based.set_len(4).unwrap();
    based.write_at(b"ab", 1).unwrap();
    let mut read = [9; 8];
    assert_eq!(based.read_at(&mut read, 0).unwrap(), 4);
    assert_eq!(read[..4], *b"\0ab\0");
    assert_eq!(based.len().unwrap(), 4);
    assert_eq!(whole.to_vec()[..512], [7; 512]);
    assert_eq!(whole.to_vec().len(), 516);
}

#[test]
fn a_file_is_read_and_written_at_any_place() {
    let file = FileStorage::new(tempfile::tempfile().unwrap());
    file.write_at(b"tail", 10).unwrap();
    let mut read = [1; 20];
    assert_eq!(file.read_at(&mut read, 8).unwrap(), 6);
    assert_eq!(read[..6], *b"\0\0tail");
    assert_eq!(file.read_at(&mut read, 100).unwrap(), 0);
    read = [1; 20];
    file.read_zero_padded(&mut read, 8).unwrap();
    assert_eq!(read, *b"\0\0tail\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    read = [1; 20];
    MemoryStorage::from(b"head".to_vec()).read_zero_padded(&mut read, 2).unwrap();
    assert_eq!(read[..3], *b"ad\0");
    assert_eq!(read[3..], [0; 17]);
    file.set_len(3).unwrap();
    assert_eq!(file.len().unwrap(), 3);
    file.sync().unwrap();
}

#[test]
fn a_recorded_log_gives_the_same_bytes_again() {
    let storage = RecordingStorage::new(MemoryStorage::new());
    storage.write_at(b"hello", 3).unwrap();
    storage.log_mark("greeted");
    storage.set_len(6).unwrap();
    storage.sync().unwrap();
    let log = storage.log();
    assert_eq!(log.len(), 4);
    let mut image = Vec::new();
    replay_operations(&mut image, &log[..1]).unwrap();
    assert_eq!(image, b"\0\0\0hello");
    replay_operations(&mut image, &log[1..]).unwrap();
    assert_eq!(image, storage.inner().to_vec());
}

#[test]
fn an_injected_failure_hits_the_chosen_change() {
    let storage = FaultyStorage::new(MemoryStorage::new());
    storage.fail_after(1, InjectedFailure::PartialWrite(2), true);
    storage.write_at(b"abc", 0).unwrap();
    assert_eq!(storage.write_at(b"xyz", 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(storage.inner().to_vec(), b"xyc");
    assert!(storage.set_len(0).is_err());
    storage.clear_fault();
    storage.set_len(0).unwrap();
}

#[test]
fn a_write_that_ends_beyond_memory_is_refused() {
    let storage = MemoryStorage::new();
    assert!(storage.write_at(b"a", u64::MAX).is_err());
    assert!(storage.set_len(u64::MAX).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_finds_a_place_for_what_is_to_be_written_and_reads_as_before() {
    use std::os::unix::fs::MetadataExt;

    let (file, at) = (tempfile::tempfile().unwrap(), 1 << 20);
    let storage = FileStorage::new(file.try_clone().unwrap());
    storage.write_at(&[7; 100], at).unwrap();
    storage.set_len(2 * at).unwrap();
    match storage.reserve(at, 2 * at) {
        Ok(()) => assert!(file.metadata().unwrap().blocks() * 512 >= 2 * at),
        // Not every file system does so.
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported),
    }
    assert_eq!(storage.len().unwrap(), 2 * at, "the length stays");
    let mut read = [9; 200];
    storage.read_at(&mut read, at).unwrap();
    assert_eq!((&read[..100], &read[100..]), (&[7; 100][..], &[0; 100][..]));
}

#[test]
fn zeros_at_the_end_of_a_page_may_be_none_of_the_file() {
    use super::file::may_contain_zeros_past_eof;
    let mut bytes = vec![1; 10_000];
    assert!(!may_contain_zeros_past_eof(&bytes, 100));
    assert!(!may_contain_zeros_past_eof(&[], 0));
    // The last bytes of the pages that these bytes are in, and the last one of all.
    for last in [3995, 8091, 9999] {
        bytes[last] = 0;
        assert!(may_contain_zeros_past_eof(&bytes, 100), "{last}");
        assert!(last == 9999 || !may_contain_zeros_past_eof(&bytes, 101));
        bytes[last] = 1;
    }
    bytes[5000..5100].fill(0);
    assert!(!may_contain_zeros_past_eof(&bytes, 100), "a cut would have left zeros up to the end of the page");
}

#[test]
fn a_file_knows_where_data_begins_behind_a_hole() {
    let storage = BaseOffsetStorage::new(FileStorage::new(tempfile::tempfile().unwrap()), 512);
    let (at, len) = (8 << 20, 16 << 20);
    storage.set_len(len).unwrap();
    storage.write_at(&[7], at).unwrap();
    // Not every file system knows all of a hole, but none skips data.
    assert!(storage.next_data(0).unwrap().is_some_and(|found| found <= at));
    assert_eq!(storage.next_data(at).unwrap(), Some(at));
    assert_eq!(storage.next_data(len).unwrap(), None);
    assert_eq!(storage.next_data(u64::MAX - 600).unwrap(), None);
    let memory = MemoryStorage::from(vec![0; 4]);
    assert_eq!((memory.next_data(3).unwrap(), memory.next_data(4).unwrap()), (Some(3), None));
}

#[test]
fn a_block_that_is_larger_than_the_limit_is_not_read() {
    use h5live_format::Addr;
    use h5live_model::{AllocationError, AllocationLimit};

    let storage = FileStorage::new(tempfile::tempfile().unwrap());
    storage.set_len(1 << 35).unwrap();
    let settings = crate::CacheOptions { max_allocation: AllocationLimit::new(2 << 20), ..Default::default() };
    let cache = crate::Cache::new_read_only(Arc::new(storage), settings);
    assert_eq!(cache.read_block_uncached(Addr::new(8), 2 << 20).unwrap().len(), 2 << 20);
    let Err(crate::Error::MemoryAllocation { at, source }) = cache.read_block_uncached(Addr::new(8), 1 << 34) else {
        panic!("the block was read");
    };
    assert_eq!((at, source), (Addr::new(8), AllocationError::OverLimit { bytes: 1 << 34, limit: 2 << 20 }));
}

#[test]
fn memory_does_not_grow_by_more_than_what_is_written_and_the_limit() {
    let storage = MemoryStorage::new();
    assert_eq!(storage.set_len(1 << 40).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    assert_eq!(storage.write_at(b"a", 1 << 40).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    assert_eq!(storage.len().unwrap(), 0);
}
