//! How large log datasets are made: enough for what is to come, and not much more than there is.

use h5live::model::Url;
use h5live::{File, Location, Log, Selection};

const MIB: u64 = 1 << 20;
/// Bytes of a block.
const BLOCK: u64 = 64 << 10;

/// Writes the first `blocks` blocks of a dataset of so many bytes, each by a call of its own, and returns the sizes of the
/// log datasets (bytes).
fn sizes(options: Log, extent: u64, blocks: u64) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let location: Location = Url::literal("log", path.to_str().unwrap()).into();
    let file = File::options().create().with(options).open(location).unwrap();
    let data = file.new_dataset::<u8>().shape(&[extent]).contiguous().create("data").unwrap();
    let values = vec![7; BLOCK as usize];
    for block in 0..blocks {
        data.write_slice(Selection::block(&[block * BLOCK], &[BLOCK]), &values).unwrap();
    }
    file.close().unwrap();
    let plain = File::open(Url::literal("native", path.to_str().unwrap())).unwrap();
    let size = |number: usize| plain.dataset(&format!("_LOG/log_{number}")).ok().map(|log| log.shape().unwrap()[0]);
    (1..).map_while(size).collect()
}

#[test]
fn a_dataset_that_is_written_as_a_whole_has_one_log_dataset_with_little_more() {
    let sizes = sizes(Log::default(), 8 * MIB, 8 * MIB / BLOCK);
    assert!(sizes.len() == 1 && (8 * MIB..9 * MIB).contains(&sizes[0]), "{sizes:?}");
}

#[test]
fn what_may_never_be_written_has_no_room_of_its_own() {
    let written = 6 * MIB;
    let sizes = sizes(Log::default(), 1 << 40, written / BLOCK);
    // Each has at most eight times what there was; all but the last are full.
    let mut before = 0;
    for size in &sizes {
        assert!(*size <= (before + 2 * MIB) * 8, "{sizes:?}");
        before += size;
    }
    assert!(sizes.iter().sum::<u64>() < written * 9, "{sizes:?}");
}

#[test]
fn the_options_bound_the_room_and_the_most_wins() {
    let blocks = 4 * MIB / BLOCK;
    let most = sizes(Log { max_log_size: 2 * MIB, ..Log::default() }, 4 * MIB, blocks);
    assert!(most.len() >= 2 && most.iter().all(|size| *size <= 2 * MIB), "{most:?}");
    let least = sizes(Log { min_log_size: 16 * MIB, ..Log::default() }, 4 * MIB, blocks);
    assert_eq!(least, [16 * MIB]);
    let contradictory = sizes(Log { min_log_size: 16 * MIB, max_log_size: 3 * MIB, ..Log::default() }, 4 * MIB, blocks);
    assert!(contradictory.len() >= 2 && contradictory.iter().all(|size| *size <= 3 * MIB), "{contradictory:?}");
    // A flush that has more goes into one log dataset.
    let none = sizes(Log { max_log_size: 0, min_log_size: 0, staging: 64 * MIB, ..Log::default() }, 4 * MIB, blocks);
    assert!(none.len() == 1 && none[0] > 4 * MIB, "{none:?}");
}
