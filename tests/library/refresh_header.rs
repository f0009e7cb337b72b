//! A reader that is told of a new extent, and of whatever else a header may come to say.

use std::path::Path;

use h5live::{Dataset, File, Mode, UNLIMITED};

const WIDTH: usize = 4;
/// An extensible array, a fixed array, and a version 2 B-tree.
const MOST: [[u64; 2]; 3] = [[UNLIMITED, WIDTH as u64], [500, WIDTH as u64], [UNLIMITED; 2]];

/// Numbers that follow from a seed (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A dataset that is written, and what it holds.
struct Written {
    data: Dataset,
    rows: Vec<[u32; WIDTH]>,
    next: u32,
}

impl Written {
    fn change(&mut self, numbers: &mut Numbers) {
        match numbers.below(8) {
            0..=3 => {
                for _ in 0..numbers.below(12) {
                    if self.rows.len() == 500 {
                        break;
                    }
                    self.next += 1;
                    let row = std::array::from_fn(|at| self.next * 10 + at as u32);
                    self.data.append(&row).unwrap();
                    self.rows.push(row);
                }
            }
            4 => {
                let kept = if numbers.below(2) == 0 { 0 } else { numbers.below(self.rows.len() as u64 + 1) };
                self.data.resize(&[kept, WIDTH as u64]).unwrap();
                self.rows.truncate(kept as usize);
            }
            5 if !self.rows.is_empty() => {
                let row = numbers.below(self.rows.len() as u64);
                self.next += 1;
                self.rows[row as usize] = [self.next; WIDTH];
                self.data.write_slice((row, ..), &[self.next; WIDTH]).unwrap();
            }
            6 => {
                let value = vec![7_u64; numbers.below(40) as usize + 1];
                self.data
                    .set_attribute_array(&format!("a{}", numbers.below(6)), &value, &[value.len() as u64])
                    .unwrap();
            }
            _ => {}
        }
    }
}

fn follow(path: &Path, max_shape: &[u64; 2], seed: u64) {
    println!("{max_shape:?}, seed {seed}");
    let mut numbers = Numbers(seed);
    let file = File::options().mode(Mode::Create).open(path).unwrap();
    let new = file.new_dataset::<u32>().shape(&[0, WIDTH as u64]).max_shape(max_shape).chunk_shape(&[3, WIDTH as u64]);
    let mut written = Written { data: new.create("data").unwrap(), rows: Vec::new(), next: 0 };
    file.start_swmr().unwrap();
    let reading = File::options().mode(Mode::SwmrRead).open(path).unwrap();
    let read = reading.dataset("data").unwrap();
    let mut seen = 0;
    for step in 0..120 {
        written.change(&mut numbers);
        written.data.flush().unwrap();
        if numbers.below(3) == 0 {
            continue;
        }
        let changed = read.refresh().unwrap();
        assert_eq!(read.shape().unwrap(), [written.rows.len() as u64, WIDTH as u64], "step {step}");
        assert_eq!(changed, seen != written.rows.len(), "step {step}");
        assert!(!read.refresh().unwrap(), "step {step}");
        seen = written.rows.len();
        assert_eq!(read.read::<u32>().unwrap(), written.rows.concat(), "step {step}");
        // That reads the header anew.
        if numbers.below(4) == 0 {
            let names = |data: &Dataset| data.attribute_names().unwrap();
            assert_eq!(names(&read), names(&written.data), "step {step}");
        }
    }
}

#[test]
fn a_reader_knows_what_the_header_says_whatever_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 1..=12 {
        for max_shape in &MOST {
            follow(&folder.path().join("live.h5"), max_shape, 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        }
    }
}
