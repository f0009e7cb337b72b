//! Rows that are appended in all sizes, after all kinds of changes.

use crate::{ErrorKind, File, UNLIMITED};

fn live() -> (Option<tempfile::TempDir>, File) {
    let dir = tempfile::tempdir().unwrap();
    let file = File::options().mode(crate::Mode::Create).open(dir.path().join("live.h5")).unwrap();
    (Some(dir), file)
}

fn in_memory() -> (Option<tempfile::TempDir>, File) {
    (None, File::in_memory())
}

/// Appends rows one by one, with a flush after each `flushed`.
fn append_all(file: &File, flushed: usize) {
    let rows: Vec<[u16; 3]> = (0..13).map(|i| [i, 100 + i, 200 + i]).collect();
    let data =
        file.new_dataset::<u16>().shape(&[0, 3]).max_shape(&[13, 3]).chunk_shape(&[5, 3]).create("data").unwrap();
    file.start_swmr().unwrap();
    let other = file.dataset("data").unwrap();
    for (n, row) in rows.iter().enumerate() {
        let of = if n % 2 == 0 { &data } else { &other };
        let too_many = of.append(&[0u16; 3 * 14][n * 3..]).unwrap_err();
        assert!(matches!(too_many.kind(), ErrorKind::InvalidExtent { .. }));
        match n % 3 {
            0 => of.append(row).unwrap(),
            1 => of.append_raw(&row.map(u16::to_le_bytes).concat()).unwrap(),
            _ => of.append(&row.map(i32::from)).unwrap(),
        }
        if (n + 1) % flushed == 0 {
            data.flush().unwrap();
        }
        assert_eq!(data.read::<u16>().unwrap(), rows[..=n].concat());
    }
    assert!(matches!(data.append(&[0u16; 3]).unwrap_err().kind(), ErrorKind::CannotGrow));
    assert_eq!(data.shape().unwrap(), [13, 3]);
}

#[test]
fn rows_come_where_the_ones_before_end() {
    for flushed in 1..6 {
        append_all(&live().1, flushed);
        append_all(&in_memory().1, flushed);
    }
}

#[test]
fn rows_that_are_all_of_a_chunk_follow_each_other() {
    let rows: Vec<u16> = (0..23 * 3).collect();
    for flushed in 1..6 {
        for (_dir, file) in [in_memory(), live()] {
            let new = file.new_dataset::<u16>().shape(&[0, 3]).max_shape(&[23, 3]).chunk_shape(&[5, 3]);
            let data = new.create("data").unwrap();
            file.start_swmr().unwrap_or_default();
            // Whole chunks, one in two parts, whole ones, and one that the maximum cuts off.
            let ends = [5, 10, 12, 15, 20, 23].map(|end| end * 3);
            let mut begin = 0;
            for (n, end) in ends.into_iter().enumerate() {
                assert!(data.append(&rows[begin..begin + 4]).is_err());
                data.append(&rows[begin..end]).unwrap();
                if (n + 1) % flushed == 0 {
                    data.flush().unwrap();
                }
                assert_eq!(data.read::<u16>().unwrap(), rows[..end], "flushed every {flushed}");
                begin = end;
            }
            assert!(matches!(data.append(&rows[..15]).unwrap_err().kind(), ErrorKind::CannotGrow));
            assert_eq!(data.stored_chunks().unwrap().len(), 5);
        }
    }
}

#[test]
fn rows_that_are_not_whole_are_refused_among_others() {
    let (_dir, file) = live();
    let data = file.new_dataset::<u16>().unlimited_rows(&[3]).chunk_shape(&[50, 3]).create("data").unwrap();
    data.append(&[1u16, 2, 3]).unwrap();
    assert!(matches!(data.append(&[4u16, 5]).unwrap_err().kind(), ErrorKind::NotWholeRows { .. }));
    assert!(matches!(data.append_raw(&[4, 0, 5]).unwrap_err().kind(), ErrorKind::Convert(_)));
    data.append::<u16>(&[]).unwrap();
    data.append(&[4u16, 5, 6]).unwrap();
    data.flush().unwrap();
    assert_eq!(data.read::<u16>().unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn rows_find_their_place_after_other_changes() {
    let (_dir, file) = live();
    let data = file
        .new_dataset::<u16>()
        .shape(&[0, 2])
        .max_shape(&[UNLIMITED; 2])
        .chunk_shape(&[8, 2])
        .create("data")
        .unwrap();
    let read = |rows: std::ops::Range<u64>| data.read_slice::<u16>(rows).unwrap();
    data.append(&[1u16, 1]).unwrap();
    data.append(&[2u16, 2]).unwrap();
    // Over a row that is staged, and one that is not any more.
    data.write_slice(1..2, &[3u16, 3]).unwrap();
    data.flush().unwrap();
    data.write_slice(0..1, &[4u16, 4]).unwrap();
    data.append(&[5u16, 5]).unwrap();
    assert_eq!(data.read::<u16>().unwrap(), [4, 4, 3, 3, 5, 5]);
    data.flush().unwrap();
    // Fewer rows, and more of them.
    data.resize(&[1, 2]).unwrap();
    data.append(&[6u16, 6]).unwrap();
    data.resize(&[4, 2]).unwrap();
    data.append(&[7u16, 7]).unwrap();
    assert_eq!(read(0..5), [4, 4, 6, 6, 0, 0, 0, 0, 7, 7]);
    // Longer rows.
    data.resize(&[5, 3]).unwrap();
    data.append(&[8u16, 8, 8]).unwrap();
    data.append(&[9u16, 9, 9]).unwrap();
    data.flush().unwrap();
    assert_eq!(data.shape().unwrap(), [7, 3]);
    assert_eq!(read(4..7), [7, 7, 0, 8, 8, 8, 9, 9, 9]);
    // A store that is told an extent by somebody else.
    file.store().dataset(data.id()).unwrap().set_extent(&[8, 3]).unwrap();
    data.append(&[10u16, 10, 10]).unwrap();
    assert_eq!(read(6..9), [9, 9, 9, 0, 0, 0, 10, 10, 10]);
}
