//! Writers that append to one dataset: each row is there, in the order of the flushes.

use h5live_model::{ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, Mode, ObjectScope, PublishLevel, Store};

use super::files::{create, dataset, element, join, read};
use crate::random::Random;

/// Appends values behind `from` rows, as who writes has them: whole chunks before the extent, and the rest with it.
pub fn append(data: &dyn ChunkStore, from: u64, values: &[u16]) {
    let mut rest = values;
    let mut at = from;
    while !rest.is_empty() {
        let count = (4 - at % 4).min(rest.len() as u64);
        let (piece, behind) = rest.split_at(count as usize);
        let bytes: Vec<u8> = piece.iter().flat_map(|value| value.to_le_bytes()).collect();
        let coord = ChunkCoord::new(&[at / 4]);
        let (start, count) = ([at % 4], [count]);
        let writes = [match count[0] {
            4 => ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &bytes },
            _ => ChunkWrite::ElementBlock { coord: &coord, start: &start, count: &count, bytes: &bytes },
        }];
        let end = [at + count[0]];
        let extent = behind.is_empty().then_some(&end[..]);
        data.write(&ChunkBatch { writes: &writes, extent, ..ChunkBatch::default() }).unwrap();
        at = end[0];
        rest = behind;
    }
}

pub fn values(data: &dyn ChunkStore) -> Vec<u16> {
    let rows = data.spec().unwrap().dataspace.dims()[0];
    (0..rows).map(|at| element(data, at).unwrap()).collect()
}

pub fn rows(data: &dyn ChunkStore) -> u64 {
    data.spec().unwrap().dataspace.dims()[0]
}

#[test]
fn rows_that_several_writers_append_are_all_there_in_the_order_of_the_flushes() {
    for seed in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("run.h5");
        let writers = [join(&main, true), join(&main, false), join(&main, false)];
        create(&writers[0], "rows", 0);
        let open: Vec<_> = writers.iter().map(|writer| dataset(writer, "rows").unwrap()).collect();
        let (mut random, mut wanted, mut next) = (Random(seed), Vec::new(), 0u16);
        let mut pending = vec![Vec::new(); writers.len()];
        let follower = read(&main, Mode::SwmrRead);
        for _ in 0..60 {
            let writer = random.below(3) as usize;
            match random.below(8) {
                0..4 => {
                    let new: Vec<u16> = (0..1 + random.below(11) as u16).map(|n| next + n + 1).collect();
                    next += new.len() as u16;
                    append(&*open[writer], rows(&*open[writer]), &new);
                    pending[writer].extend(new);
                }
                4 | 5 => {
                    open[writer].publish(PublishLevel::Visible).unwrap();
                    wanted.append(&mut pending[writer]);
                }
                6 => {
                    // It publishes what was appended: the extent is another one then.
                    open[writer].refresh().unwrap();
                    wanted.append(&mut pending[writer]);
                    assert_eq!(values(&*open[writer]), wanted, "seed {seed}: what the writer finds");
                }
                _ => {
                    follower.refresh(ObjectScope::All).unwrap();
                    assert_eq!(values(&*dataset(&follower, "rows").unwrap()), wanted, "seed {seed}: what is followed");
                }
            }
        }
        for (writer, pending) in writers.iter().zip(&mut pending) {
            writer.close().unwrap();
            wanted.append(pending);
        }
        let reader = read(&main, Mode::Read);
        assert_eq!(values(&*dataset(&reader, "rows").unwrap()), wanted, "seed {seed}: at the end");
    }
}

#[test]
fn rows_that_were_never_flushed_leave_no_hole() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let (dead, other) = (join(&main, true), join(&main, false));
    create(&dead, "rows", 0);
    let (lost, kept) = (dataset(&dead, "rows").unwrap(), dataset(&other, "rows").unwrap());
    append(&*lost, 0, &[1; 9]);
    append(&*kept, 0, &[2, 3]);
    kept.publish(PublishLevel::Visible).unwrap();
    let reader = read(&main, Mode::SwmrRead);
    assert_eq!(values(&*dataset(&reader, "rows").unwrap()), [2, 3]);
    append(&*kept, 2, &[4]);
    kept.publish(PublishLevel::Visible).unwrap();
    reader.refresh(ObjectScope::All).unwrap();
    assert_eq!(values(&*dataset(&reader, "rows").unwrap()), [2, 3, 4]);
    // It does not come to its end: nothing of it is published.
    std::mem::forget((dead, lost));
}

/// Rows at places that a writer names itself stay there.
#[test]
fn elements_inside_of_the_extent_stay_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let (one, other) = (join(&main, true), join(&main, false));
    create(&one, "rows", 0);
    let (first, second) = (dataset(&one, "rows").unwrap(), dataset(&other, "rows").unwrap());
    for (data, at) in [(&first, 0), (&second, 4)] {
        data.set_extent(&[8]).unwrap();
        (at..at + 4).for_each(|at| super::files::put(&**data, at, 10 + at as u16));
        data.publish(PublishLevel::Visible).unwrap();
    }
    one.close().unwrap();
    other.close().unwrap();
    let reader = read(&main, Mode::Read);
    assert_eq!(values(&*dataset(&reader, "rows").unwrap()), (10..18).collect::<Vec<u16>>());
}
