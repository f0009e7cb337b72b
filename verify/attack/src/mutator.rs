//! Mutants: files with a few changed bytes and right checksums.

use h5live_cache::MemoryStorage;
use h5live_checker::file::{CheckOptions, check_storage_with};
use h5live_format::lookup3;

use h5live_lab::mix;

/// Structures of more bytes are searched for a checksum at their end only.
const MAX_SCAN_BYTES: usize = 8 << 10;
/// Bytes of a checksum.
const SUM: usize = 4;

/// A sound file, and the bytes of it that steer a reader.
pub struct Seed {
    bytes: Vec<u8>,
    /// Structures of metadata: first byte and length.
    structures: Vec<(usize, usize)>,
    sums: Vec<Sum>,
}

/// A checksum in a file. It covers the bytes from `start` to `end`; its own bytes among them count as zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sum {
    start: usize,
    end: usize,
    at: usize,
}

/// Random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (mix(self.0) >> 16) as usize % end.max(1)
    }
}

impl Sum {
    fn of(self, bytes: &[u8]) -> Option<[u8; SUM]> {
        let mut covered = bytes.get(self.start..self.end)?.to_vec();
        if let Some(own) = self.at.checked_sub(self.start).and_then(|at| covered.get_mut(at..at + SUM)) {
            own.fill(0);
        }
        Some(lookup3(&covered, 0).to_le_bytes())
    }

    fn is_right(self, bytes: &[u8]) -> bool {
        self.of(bytes).is_some_and(|sum| bytes.get(self.at..self.at + SUM) == Some(&sum))
    }
}

impl Seed {
    /// Looks at a file.
    pub fn new(bytes: Vec<u8>) -> Self {
        let options = CheckOptions { builds_space_map: true, ..CheckOptions::default() };
        let map = check_storage_with(&MemoryStorage::from(bytes.clone()), options).space_map;
        let is_metadata = |name: &str| !["chunk", "chunks", "data"].contains(&name) && !name.contains("free");
        let pieces = map.iter().filter(|piece| is_metadata(piece.structure));
        let inside = |(start, len): &(usize, usize)| *len > 0 && start.saturating_add(*len) <= bytes.len();
        let mut structures: Vec<_> =
            pieces.map(|piece| (piece.offset as usize, piece.len as usize)).filter(inside).collect();
        structures.sort_unstable();
        structures.dedup();
        let sums = structures.iter().filter_map(|&(start, len)| find_sum(&bytes, start, len)).collect();
        Seed { bytes, structures, sums }
    }

    /// The mutant of a number, with right checksums in nine of ten. The same number gives the same mutant.
    pub fn mutant(&self, number: u64) -> Vec<u8> {
        let mut random = Random(mix(number));
        let mut bytes = self.bytes.clone();
        for _ in 0..=random.below(5) {
            self.change(&mut bytes, &mut random);
        }
        if random.below(10) > 0 {
            for sum in &self.sums {
                if let Some(right) = sum.of(&bytes)
                    && let Some(place) = bytes.get_mut(sum.at..sum.at + SUM)
                {
                    place.copy_from_slice(&right);
                }
            }
        }
        bytes
    }

    fn change(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        let whole = (0, bytes.len());
        let (start, len) = match random.below(8) {
            0 => whole,
            _ => *self.structures.get(random.below(self.structures.len())).unwrap_or(&whole),
        };
        let at = start + random.below(len);
        let size = bytes.len() as u64;
        let width = [1, 2, 4, 8][random.below(4)];
        let word = |random: &mut Random| -> u64 {
            let numbers = [0, 1, 7, 255, 0x7fff, 0xffff, 1 << 31, 1 << 33, 1 << 35, 1 << 40, 1 << 63, u64::MAX, size];
            numbers[random.below(numbers.len())].wrapping_sub(random.below(2) as u64)
        };
        let new: Vec<u8> = match random.below(20) {
            0 => return bytes.truncate(at.max(1)),
            1..=4 => vec![random.below(256) as u8],
            5..=8 => vec![bytes.get(at).copied().unwrap_or(0) ^ 1 << random.below(8)],
            9..=11 => vec![bytes.get(at).copied().unwrap_or(0).wrapping_add([1, 255][random.below(2)])],
            12 => vec![[0, 0xff][random.below(2)]; random.below(9)],
            13..=14 => {
                let (from, len) = self.structures.get(random.below(self.structures.len())).copied().unwrap_or(whole);
                let from = from + random.below(len);
                bytes.get(from..(from + width).min(bytes.len())).unwrap_or_default().to_vec()
            }
            _ => word(random).to_le_bytes()[..width].to_vec(),
        };
        for (old, new) in bytes.iter_mut().skip(at).zip(new) {
            *old = new;
        }
    }
}

/// The checksum of the structure that begins at `start` and has at most `len` bytes.
fn find_sum(bytes: &[u8], start: usize, len: usize) -> Option<Sum> {
    let end = start + len;
    let found = |sum: Sum| sum.is_right(bytes).then_some(sum);
    let at_end = |at: usize| found(Sum { start, end: at, at });
    if bytes.get(start..start + SUM) == Some(b"FHDB") {
        // Signature, version, address of the heap, and an offset of 1 to 8 bytes.
        return (1..=8).find_map(|width| found(Sum { start, end, at: start + 13 + width }));
    }
    let last = end.checked_sub(SUM).filter(|last| *last > start + SUM)?;
    at_end(last).or_else(|| {
        let from = start + SUM..last;
        if len <= MAX_SCAN_BYTES { from.rev().find_map(at_end) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seed.h5");
        let file = h5live::File::create(&path).unwrap();
        for name in 0..20 {
            file.root().set_attribute(&format!("a{name}"), &name).unwrap();
            file.create_group(&format!("g{name}")).unwrap();
        }
        file.new_dataset::<i32>().shape(&[100]).max_shape(&[h5live::UNLIMITED]).chunk_shape(&[4]).create("d").unwrap();
        file.dataset("d").unwrap().write(&[1; 100]).unwrap();
        file.close().unwrap();
        std::fs::read(&path).unwrap()
    }

    #[test]
    fn most_structures_of_a_file_have_a_checksum_that_is_found() {
        let seed = Seed::new(file());
        assert!(seed.sums.len() * 10 > seed.structures.len() * 8, "{:?}, {:?}", seed.sums, seed.structures);
        let blocks = seed.structures.iter().filter(|(start, _)| seed.bytes.get(*start..start + 4) == Some(b"FHDB"));
        for (start, _) in blocks {
            assert!(seed.sums.iter().any(|sum| sum.start == *start), "the heap block at {start}");
        }
    }

    #[test]
    fn mutants_have_right_checksums_and_follow_from_their_number() {
        let seed = Seed::new(file());
        let mut right = 0;
        for number in 0..100 {
            let mutant = seed.mutant(number);
            assert_eq!(mutant, seed.mutant(number));
            assert_ne!(mutant, seed.mutant(number + 1000));
            let changed = mutant != seed.bytes;
            right += u32::from(changed && seed.sums.iter().all(|sum| sum.is_right(&mutant)));
        }
        assert!(right > 60, "{right} of 100");
    }
}
