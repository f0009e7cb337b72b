//! Samples in memory and in files: order, shards, workers, reading ahead.

use proptest::prelude::*;

use h5live::archive::{Archive, ArchiveFault, EpochSamples, NameIndex, Permutation, layout, normalized_path};
use h5live::{ErrorKind, File, UNLIMITED};

/// An archive of samples whose contents tell their number: `n` samples of 0 to `most` bytes, without empty ones.
fn archive_of(file: &File, n: u64) -> Archive {
    let image: Vec<u8> = (0..n).flat_map(|sample| vec![sample as u8; 1 + sample as usize % 7]).collect();
    let mut offsets = vec![0];
    for sample in 0..n {
        offsets.push(offsets[sample as usize] + 1 + sample % 7);
    }
    let bytes = file.new_dataset::<u8>().shape(&[image.len() as u64]).max_shape(&[UNLIMITED]).chunk_shape(&[16]);
    bytes.create_with_data("image", &image).unwrap();
    let dataset = file.new_dataset::<u64>().create_with_data("image_offset", &offsets).unwrap();
    dataset.set_attribute(layout::HAS_SENTINEL_ATTRIBUTE, &1u8).unwrap();
    Archive::open(file).unwrap()
}

#[test]
fn samples_are_read_from_a_mapping_and_from_calls_alike() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples.h5");
    let file = File::create(&path).unwrap();
    let written = archive_of(&file, 300);
    let in_memory: Vec<_> = (0..300).map(|sample| written.read(sample).unwrap()).collect();
    assert!(written.view(0).unwrap().is_none(), "a file that is written is not mapped");
    drop(written);
    file.close().unwrap();
    let archive = Archive::open(&File::open(&path).unwrap()).unwrap();
    assert!(archive.mapped_piece_count().is_some_and(|pieces| pieces > 0));
    let mut viewed = 0;
    for (sample, wanted) in (0..).zip(&in_memory) {
        assert_eq!(&archive.read(sample).unwrap(), wanted);
        assert_eq!(archive.sample_len(sample).unwrap(), wanted.len() as u64);
        if let Some(view) = archive.view(sample).unwrap() {
            assert_eq!(view.len(), wanted.len());
            viewed += 1;
        }
    }
    assert!(viewed > 0);
    let error = archive.read(300).unwrap_err();
    let no_sample = ArchiveFault::SampleOutOfRange { sample: 300, samples: 300 };
    assert!(matches!(error.kind(), ErrorKind::Archive(fault) if *fault == no_sample), "{error}");
}

#[test]
fn offsets_that_are_not_in_order_are_refused() {
    for offsets in [&[0, 5, 3, 10][..], &[0, 11], &[11]] {
        let file = File::in_memory();
        file.new_dataset::<u8>().create_with_data("image", &[0u8; 10]).unwrap();
        file.new_dataset::<u64>().create_with_data("image_offset", offsets).unwrap();
        let error = Archive::open(&file).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Archive(ArchiveFault::InconsistentTables(_))), "{error}");
    }
    let error = Archive::open(&File::in_memory()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Archive(ArchiveFault::NoArchive)), "{error}");
}

#[test]
fn samples_that_are_read_ahead_come_in_order_and_within_the_memory() {
    let archive = archive_of(&File::in_memory(), 500);
    let samples = archive.samples().shuffled(3).epoch(1);
    let wanted: Vec<_> = samples.contents().unwrap().map(Result::unwrap).collect();
    for (threads, memory) in [(1, 0), (3, 20), (4, 1 << 20)] {
        let mut ahead = samples.prefetch(threads, memory).unwrap();
        let first: Vec<_> = ahead.by_ref().take(123).map(Result::unwrap).collect();
        assert_eq!(first, wanted[..123]);
        assert_eq!(ahead.next_position_in_epoch(), 123);
        let rest: Vec<_> = ahead.map(Result::unwrap).collect();
        assert_eq!(rest, wanted[123..]);
    }
    // One that nobody empties ends, too.
    drop(samples.prefetch(2, 100).unwrap());
}

#[test]
fn parts_that_cannot_be_are_refused() {
    let archive = archive_of(&File::in_memory(), 5);
    let samples = || archive.samples();
    for wrong in [
        samples().shard(2, 2),
        samples().worker(0, 0),
        samples().shuffle_block_size(3),
        samples().shuffled(1).shuffle_block_size(0),
    ] {
        let error = wrong.numbers().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Archive(ArchiveFault::InvalidEpochOptions(_))), "{error}");
    }
    assert!(samples().shard(u64::MAX - 1, u64::MAX).worker(3, 9).numbers().is_err());
}

/// What a program in Python that follows docs/tar.md gives.
const TEN_WITH_SEED_7_EPOCH_3: [u64; 10] = [7, 6, 3, 4, 0, 2, 8, 9, 1, 5];
const LARGE_WITH_SEED_1_EPOCH_0: [u64; 3] = [310361006, 403501831, 307005681];

#[test]
fn the_permutation_is_the_one_that_the_document_gives() {
    let of_ten: Vec<u64> = (0..10).map(|at| Permutation::new(10, Permutation::epoch_key(7, 3)).at(at)).collect();
    assert_eq!(of_ten, TEN_WITH_SEED_7_EPOCH_3);
    let large = Permutation::new(1_000_000_007, Permutation::epoch_key(1, 0));
    assert_eq!([0, 1, 999_999_999].map(|at| large.at(at)), LARGE_WITH_SEED_1_EPOCH_0);
}

#[test]
fn positions_are_spread_evenly() {
    // Where the first number of 16 goes, over many keys: a chi-squared test with 15 degrees of freedom.
    let mut counts = [0u32; 16];
    for seed in 0..16_000 {
        counts[Permutation::new(16, Permutation::epoch_key(seed, 0)).at(0) as usize] += 1;
    }
    let chi: f64 = counts.iter().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi < 45.0, "{counts:?}");
}

#[test]
fn names_lead_to_their_last_entry() {
    let paths: Vec<String> = (0..5000).map(|n| format!("./d/{}.jpg", n % 4000)).collect();
    let path = |entry: u64| paths[entry as usize].as_bytes();
    let index = NameIndex::build(5000, path).unwrap();
    let find = |name: &str| {
        index.find_entry(name.as_bytes(), |entry| normalized_path(path(entry)) == normalized_path(name.as_bytes()))
    };
    assert_eq!(find("d/3999.jpg"), Some(3999));
    assert_eq!(find("./d/17.jpg"), Some(4017));
    assert_eq!(find("d/4000.jpg"), None);
    let damaged = NameIndex::from_slots(vec![u64::MAX; 7]);
    assert_eq!(damaged.find_entry(b"x", |_| false), None);
    assert_eq!(NameIndex::from_slots(Vec::new()).find_entry(b"x", |_| true), None);
}

#[test]
fn files_with_one_key_are_a_group() {
    let names = ["a.b/0001.seg.png", "a.b/0001.cls", "a.b/0002.cls", "plain", ".hidden", "a.b/0001.json"];
    let file = File::in_memory();
    let bytes: Vec<u8> = names.iter().flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect();
    let starts: Vec<u64> =
        names.iter().scan(0, |end, name| Some(std::mem::replace(end, *end + name.len() as u64 + 1))).collect();
    file.new_dataset::<u8>().create_with_data("name", &bytes).unwrap();
    file.new_dataset::<u64>().create_with_data("name_offset", &starts).unwrap();
    file.new_dataset::<u8>().create_with_data("image", b"012345").unwrap();
    file.new_dataset::<u64>().create_with_data("image_offset", &[0u64, 1, 2, 3, 4, 5]).unwrap();
    let archive = Archive::open(&file).unwrap();
    let groups = archive.groups().unwrap();
    let keys: Vec<_> = groups.iter().map(|group| (&*group.key, group.members.len())).collect();
    assert_eq!(keys, [(&b"a.b/0001"[..], 2), (b"a.b/0002", 1), (b"a.b/0001", 1)]);
    assert_eq!((groups[0].get("seg.png"), groups[0].get("cls"), groups[0].get("png")), (Some(0), Some(1), None));
    assert_eq!(archive.read_by_name("a.b/0002.cls").unwrap(), b"2");
    assert_eq!(archive.glob("a.b/*.cls").unwrap(), [1, 2]);
    assert_eq!(archive.glob("**/*.{json,png}").unwrap(), [0, 5]);
}

proptest! {
    #[test]
    fn every_number_has_one_position(n in 1u64..3000, key: u64) {
        let permutation = Permutation::new(n, key);
        let mut seen = vec![false; n as usize];
        for position in 0..n {
            let number = permutation.at(position);
            prop_assert!(!std::mem::replace(&mut seen[number as usize], true));
            prop_assert_eq!(permutation.position_of(number), position);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn the_parts_of_an_epoch_are_disjoint_complete_the_same_again_and_resumable(
        n in 0u64..400, seed: u64, epoch in 0u64..5, world in 1u64..6, workers in 1u64..5, block in 0u64..50, cut in 0u64..450,
    ) {
        let archive = archive_of(&File::in_memory(), n);
        let order = |samples: EpochSamples| match block {
            0 => samples.shuffled(seed).epoch(epoch),
            block => samples.shuffled(seed).epoch(epoch).shuffle_block_size(block),
        };
        let whole: Vec<u64> = order(archive.samples()).numbers().unwrap().collect();
        let mut sorted = whole.clone();
        sorted.sort_unstable();
        prop_assert!(sorted.into_iter().eq(0..n), "an epoch has every sample once");
        let mut placed = vec![None; n as usize];
        let mut behind_cut = 0;
        for rank in 0..world {
            let shard: Vec<u64> = order(archive.samples()).shard(rank, world).numbers().unwrap().collect();
            let mut of_workers = vec![Vec::new(); workers as usize];
            for worker in 0..workers {
                let part = || order(archive.samples()).shard(rank, world).worker(worker, workers);
                let mut numbers = part().numbers().unwrap();
                loop {
                    let position = numbers.next_position_in_epoch();
                    let Some(sample) = numbers.next() else { break };
                    prop_assert_eq!(placed[position as usize].replace(sample), None, "nobody else has it");
                    of_workers[worker as usize].push(sample);
                }
                let rest: Vec<u64> = part().start_at(cut).numbers().unwrap().collect();
                prop_assert!(of_workers[worker as usize].ends_with(&rest), "it goes on with the rest");
                behind_cut += rest.len() as u64;
            }
            // The workers in turn give the order of the shard, however many they are.
            let in_turn: Vec<u64> =
                (0..shard.len()).map(|at| of_workers[at % workers as usize][at / workers as usize]).collect();
            prop_assert_eq!(in_turn, shard);
        }
        prop_assert_eq!(behind_cut, n.saturating_sub(cut));
        prop_assert!(placed.into_iter().map(Option::unwrap).eq(whole));
    }
}
