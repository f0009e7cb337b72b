//! What comes back, by this decoder and another, and how large the streams are.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{compress, decompress};

/// Random numbers from a seed.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    pub(super) fn noise(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// A kind of data.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Noise,
    /// Few bytes of 256 are missing, or come again.
    NearlyNoise,
    Ramp(usize),
    Constant,
    /// Constant but for one byte in so many.
    Spots(u64),
    Text,
    /// The same so many bytes again and again.
    Rows(usize),
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        3 => Just(Piece::Noise),
        1 => Just(Piece::NearlyNoise),
        1 => (1..300usize).prop_map(Piece::Ramp),
        2 => Just(Piece::Constant),
        2 => (2..2000u64).prop_map(Piece::Spots),
        1 => Just(Piece::Text),
        2 => (1..40_000usize).prop_map(Piece::Rows),
    ]
}

impl Piece {
    fn bytes(self, length: usize, seed: u64) -> Vec<u8> {
        let mut numbers = Numbers::new(seed);
        match self {
            Piece::Noise => numbers.noise(length),
            Piece::NearlyNoise => {
                let mut bytes: Vec<u8> = (0..length).map(|_| (numbers.next() % 250) as u8).collect();
                if length > 1000 {
                    let at = numbers.next() as usize % (length - 900);
                    bytes.copy_within(at..at + 70, at + 800);
                }
                bytes
            }
            Piece::Ramp(step) => (0..length).map(|i| (i / step) as u8).collect(),
            Piece::Constant => vec![seed as u8; length],
            Piece::Spots(apart) => (0..length)
                .map(|_| if numbers.next().is_multiple_of(apart) { numbers.next() as u8 } else { 7 })
                .collect(),
            Piece::Text => {
                let words = ["chunk ", "dataset ", "is ", "the ", "a\n", "of ", "reader, ", "writer "];
                let word = |_| match numbers.next() % 12 {
                    i @ 0..8 => words[i as usize].to_owned(),
                    _ => format!("{} ", numbers.next() % 10_000),
                };
                (0..).map(word).flat_map(String::into_bytes).take(length).collect()
            }
            Piece::Rows(bytes) => numbers.noise(bytes).into_iter().cycle().take(length).collect(),
        }
    }
}

/// Pieces after each other, now and then one that was there before.
fn mixture() -> impl Strategy<Value = Vec<u8>> {
    let lengths =
        prop_oneof![0..100usize, 0..20_000usize, 0..100_000usize, (0..20usize).prop_map(|pages| pages * 4096)];
    let pieces =
        prop::collection::vec((piece(), lengths, any::<u64>(), prop::option::weighted(0.2, any::<Index>())), 0..7);
    pieces.prop_map(|pieces| {
        let mut all: Vec<u8> = Vec::new();
        for (piece, length, seed, again) in pieces {
            match again {
                Some(from) if !all.is_empty() => {
                    let from = from.index(all.len());
                    let length = length.min(all.len() - from);
                    all.extend_from_within(from..from + length);
                }
                _ => all.extend(piece.bytes(length, seed)),
            }
        }
        all.truncate(300_000);
        all
    })
}

/// The stream, after it came back by both decoders.
fn there_and_back(level: u32, data: &[u8]) -> Result<Vec<u8>, TestCaseError> {
    let mut stream = b"before".to_vec();
    compress(level, data, &mut stream).unwrap();
    let mut again = b"before".to_vec();
    compress(level, data, &mut again).unwrap();
    prop_assert!(stream == again, "two streams of the same data at level {}", level);
    prop_assert!(stream.starts_with(b"before"));
    let stream = stream.split_off(6);

    let mut ours = vec![0; data.len()];
    prop_assert_eq!(decompress(&stream, &mut ours).ok(), Some(data.len()));
    prop_assert!(ours == data, "level {}", level);

    let mut decoder = flate2::Decompress::new(true);
    let mut theirs = vec![0; data.len()];
    let status = decoder.decompress(&stream, &mut theirs, flate2::FlushDecompress::Finish);
    prop_assert!(matches!(status, Ok(flate2::Status::StreamEnd)), "{:?}", status);
    prop_assert_eq!((decoder.total_in(), decoder.total_out()), (stream.len() as u64, data.len() as u64));
    prop_assert!(theirs == data, "level {}", level);
    Ok(stream)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn mixtures_come_back_by_two_decoders(data in mixture(), level in select((0..=9).collect::<Vec<u32>>())) {
        there_and_back(level, &data)?;
    }
}

#[test]
fn every_level_takes_every_kind() {
    let pieces =
        [Piece::Noise, Piece::Constant, Piece::Text, Piece::Noise, Piece::Rows(300), Piece::Spots(500), Piece::Noise];
    let orders: [&[usize]; 5] = [&[0, 2, 1, 5], &[1, 2, 0], &[2, 3, 4, 1, 2], &[5, 0, 1, 6], &[4, 5, 2]];
    for order in orders {
        let all: Vec<u8> = order.iter().flat_map(|i| pieces[*i].bytes(40_000 + 4096 * i, *i as u64)).collect();
        for level in 0..=9 {
            there_and_back(level, &all).unwrap();
        }
    }
}

#[cfg(feature = "native")]
mod native {
    use libdeflater::{CompressionLvl, Compressor};

    use super::super::block_scan::last_block_bits;
    use super::super::piece::SegmentKind;
    use super::super::segment::split_into_segments;
    use super::*;
    use crate::transpose::shuffle;

    fn shuffled<const N: usize>(values: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
        let values: Vec<u8> = values.flatten().collect();
        let mut planes = vec![0; values.len()];
        shuffle(N, &values, &mut planes);
        planes
    }

    /// The signal of the benchmarks: a slow sine and six bits of noise.
    fn signal(length: usize) -> impl Iterator<Item = i64> {
        let mut numbers = Numbers::new(3);
        (0..length).map(move |i| ((i as f64 / 500.0).sin() * 20_000.0) as i64 + (numbers.next() % 64) as i64)
    }

    fn sine(length: usize) -> impl Iterator<Item = f64> {
        let mut numbers = Numbers::new(4);
        (0..length).map(move |i| (i as f64 / 500.0).sin() * 20_000.0 + (numbers.next() % 1000) as f64 / 17.0)
    }

    /// Data of a kind, about so many bytes.
    fn kinds(bytes: usize) -> Vec<(&'static str, Vec<u8>)> {
        let frame = |_: usize| [0u8; 2];
        let mut numbers = Numbers::new(7);
        let digits: Vec<u8> = (0..12_000).map(|_| b'0' + (numbers.next() % 10) as u8).collect();
        let between = |seed| Numbers::new(seed).noise(8192);
        let again = [&digits[..], &between(1), &digits, &between(2), &digits, &between(3)].concat();
        vec![
            ("zeros", vec![0; bytes]),
            ("ones", vec![0xff; bytes]),
            ("empty frames", shuffled((0..bytes / 2).map(frame))),
            ("bytes of a ramp", Piece::Ramp(1).bytes(bytes, 0)),
            ("ramp", shuffled((0..bytes as u32 / 4).map(u32::to_le_bytes))),
            ("rows of 10,000", Piece::Rows(10_000).bytes(bytes, 1)),
            ("rows of 20,000", Piece::Rows(20_000).bytes(bytes, 1)),
            ("rows of 32,768", Piece::Rows(32_768).bytes(bytes, 1)),
            ("text", Piece::Text.bytes(bytes, 2)),
            ("noise", Piece::Noise.bytes(bytes, 3)),
            ("nearly noise", Piece::NearlyNoise.bytes(bytes, 4)),
            ("noise of 200 values", (0..bytes).map(|_| (numbers.next() % 200) as u8).collect()),
            ("noise of 240 values", (0..bytes).map(|_| (numbers.next() % 240) as u8).collect()),
            ("noise and zeros", [Numbers::new(8).noise(bytes & !0xfff), vec![0; 4000]].concat()),
            ("digits, noise, the same digits", again.iter().copied().cycle().take(bytes).collect()),
            ("marks", (0..bytes).map(|i| [7, 9, 0, 0, 0, 3].get(i % 700).copied().unwrap_or(0)).collect()),
            ("spots", Piece::Spots(700).bytes(bytes, 5)),
            ("signal i8", signal(bytes).map(|value| value as u8).collect()),
            ("signal i16 LE", shuffled(signal(bytes / 2).map(|value| (value as i16).to_le_bytes()))),
            ("signal i16 BE", shuffled(signal(bytes / 2).map(|value| (value as i16).to_be_bytes()))),
            ("signal i32 LE", shuffled(signal(bytes / 4).map(|value| (value as i32).to_le_bytes()))),
            ("signal i32 BE", shuffled(signal(bytes / 4).map(|value| (value as i32).to_be_bytes()))),
            ("signal i64 LE", shuffled(signal(bytes / 8).map(i64::to_le_bytes))),
            ("signal i64 BE", shuffled(signal(bytes / 8).map(i64::to_be_bytes))),
            ("sine f32", shuffled(sine(bytes / 4).map(|value| (value as f32).to_le_bytes()))),
            ("sine f64", shuffled(sine(bytes / 8).map(f64::to_le_bytes))),
            ("sine f64 BE", shuffled(sine(bytes / 8).map(f64::to_be_bytes))),
            ("signal i32, not shuffled", signal(bytes / 4).flat_map(|value| (value as i32).to_le_bytes()).collect()),
        ]
    }

    fn plain(level: u32, data: &[u8], raw: bool) -> Vec<u8> {
        let mut compressor = Compressor::new(CompressionLvl::new(level as i32).unwrap());
        let mut stream = vec![0; compressor.zlib_compress_bound(data.len())];
        let written = match raw {
            true => compressor.deflate_compress(data, &mut stream),
            false => compressor.zlib_compress(data, &mut stream),
        };
        stream.truncate(written.unwrap());
        stream
    }

    #[test]
    fn streams_are_not_larger_than_those_of_libdeflate() {
        for bytes in [9_000, 64 << 10, 100_003, 256 << 10] {
            for (name, data) in kinds(bytes) {
                for level in [1, 2, 4, 6, 7, 9] {
                    let (ours, theirs) =
                        (there_and_back(level, &data).unwrap().len(), plain(level, &data, false).len());
                    let max_bytes = theirs + theirs / 100 + 64;
                    assert!(
                        ours <= max_bytes,
                        "{name}, {bytes} bytes, level {level}: {ours} bytes, of libdeflate {theirs}"
                    );
                }
            }
        }
    }

    #[test]
    fn empty_frames_are_hardly_larger_than_those_of_libdeflate() {
        for bytes in [4096, 5000, 64 << 10, 256 << 10, 4 << 20] {
            for level in 1..=9 {
                let (ours, theirs) =
                    (there_and_back(level, &vec![0; bytes]).unwrap().len(), plain(level, &vec![0; bytes], false).len());
                assert!(ours <= theirs + 2, "{bytes} bytes, level {level}: {ours} bytes, of libdeflate {theirs}");
            }
        }
    }

    fn kinds_of(data: &[u8]) -> Vec<SegmentKind> {
        let stretches = split_into_segments(data);
        let mut ends = stretches.iter().map(|stretch| stretch.bytes.end);
        assert!(
            stretches
                .iter()
                .map(|stretch| stretch.bytes.start)
                .eq([0].into_iter().chain(ends.clone()).take(stretches.len()))
        );
        assert_eq!(ends.next_back().unwrap_or(0), data.len());
        stretches.iter().map(|stretch| stretch.kind).collect()
    }

    #[test]
    fn planes_of_the_signal_are_told_apart() {
        let planes = shuffled(signal(64 << 10).map(|value| (value as i32).to_le_bytes()));
        assert_eq!(kinds_of(&planes), [SegmentKind::Noise, SegmentKind::Other]);
        let planes = shuffled(signal(64 << 10).map(|value| (value as i32).to_be_bytes()));
        assert_eq!(kinds_of(&planes), [SegmentKind::Other, SegmentKind::Noise]);
        let planes = shuffled(sine(32 << 10).map(f64::to_le_bytes));
        assert_eq!(kinds_of(&planes), [SegmentKind::Noise, SegmentKind::Other]);
    }

    #[test]
    fn noise_ends_where_the_rest_begins() {
        let (noise, text) = (Piece::Noise.bytes(50_000, 1), Piece::Text.bytes(50_000, 2));
        for data in [[&noise[..], &text].concat(), [&text[..], &noise].concat()] {
            let edges: Vec<_> = split_into_segments(&data).iter().map(|stretch| stretch.bytes.end).collect();
            assert!(edges.len() == 2 && edges[0].abs_diff(50_000) < 256, "{edges:?}");
        }
    }

    #[test]
    fn what_is_repeated_is_not_noise() {
        for seed in 0..20 {
            assert_eq!(kinds_of(&Piece::Noise.bytes(256 << 10, seed)), [SegmentKind::Noise]);
        }
        for step in 1..20 {
            assert_eq!(kinds_of(&Piece::Ramp(step).bytes(256 << 10, 0)), [SegmentKind::Other]);
        }
        for row in [256, 1000, 4096, 10_000, 20_000, 32_768] {
            assert_eq!(kinds_of(&Piece::Rows(row).bytes(256 << 10, 0)), [SegmentKind::Other], "{row}");
        }
        // Too far back for deflate.
        assert_eq!(kinds_of(&Piece::Rows(40_000).bytes(256 << 10, 0)), [SegmentKind::Noise]);
    }

    #[test]
    fn noise_that_comes_again_is_not_stored_before_it_does() {
        let noise = Piece::Noise.bytes(20_000, 1);
        let text = Piece::Text.bytes(8 << 10, 2);
        let data = [&noise[..], &text, &noise, &text].concat();
        assert_eq!(kinds_of(&data), [SegmentKind::Other]);
    }

    #[test]
    fn the_last_block_ends_where_the_stream_does() {
        for (name, data) in kinds(200_000).into_iter().chain([("nothing", vec![]), ("little", b"little".to_vec())]) {
            for level in [0, 1, 4, 9] {
                let stream = plain(level, &data, true);
                let block = last_block_bits(&stream).unwrap();
                assert_eq!(block.end.div_ceil(8), stream.len(), "{name}, level {level}");
                assert_eq!(stream[block.start / 8] >> (block.start % 8) & 1, 1, "{name}, level {level}");
                for missing in [1, 2, stream.len() / 2, stream.len()] {
                    let cut = stream.len().saturating_sub(missing);
                    assert_eq!(last_block_bits(&stream[..cut]), None, "{name}, level {level}, cut at {cut}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        #[test]
        fn the_walk_ends_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600), kind in 0..4u8) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = *first & !6 | kind << 1;
            }
            if let Some(block) = last_block_bits(&bytes) {
                prop_assert!(block.start < block.end && block.end <= bytes.len() * 8);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

        #[test]
        fn the_walk_ends_in_damaged_streams(data in mixture(), level in 1..=9u32, flips in prop::collection::vec((any::<Index>(), any::<u8>()), 1..30)) {
            let stream = plain(level, &data, true);
            prop_assert!(last_block_bits(&stream).is_some());
            for (at, value) in flips {
                let mut damaged = stream.clone();
                let at = at.index(damaged.len().min(400));
                damaged[at] = value;
                if let Some(block) = last_block_bits(&damaged) {
                    prop_assert!(block.start < block.end && block.end <= damaged.len() * 8);
                }
            }
        }
    }
}
