//! Rows that come right after the last ones, into the same chunk or as the whole of the next one: what most small
//! appends are.

use h5live_model::{ChunkCoord, DatasetSpec};
use parking_lot::MutexGuard;

use super::append_buffer::AppendBuffer;
use super::chunk_row::JoinResult;
use super::core::{CoreDims, DatasetCore, DatasetError};
use super::staged_chunks::MAX_STAGED_RUN_BYTES;

/// The place in a dataset without filters for rows that directly follow the last ones. The last ones were a short run
/// of a chunk, or all of one.
#[derive(Debug)]
pub(super) struct AppendCursor {
    pub(super) coord: ChunkCoord,
    /// Bytes from the start of the decoded chunk.
    pub(super) at: usize,
    /// Bytes of a row.
    pub(super) row: usize,
    /// The extent with the last rows; the first dimension is the one that grows.
    pub(super) extent: CoreDims,
    /// Rows of an extent with which the chunk is full, or the maximum is reached.
    pub(super) end: u64,
    /// Rows of a chunk.
    pub(super) side: u64,
    /// Rows of the largest extent.
    pub(super) max: u64,
}

impl AppendBuffer {
    /// Stages encoded rows if they directly follow the last ones and leave room for more in the chunk. `told` is the
    /// extent that the store knows. Returns whether the rows were staged.
    fn stage_at_cursor(&mut self, told: &[u64], rows: &[u8]) -> bool {
        let AppendBuffer { extent, chunks, cursor: next } = self;
        let Some(next) = next else { return false };
        let count = (rows.len() / next.row) as u64;
        let is_whole = rows.len().is_multiple_of(next.row);
        let before = extent.as_deref().unwrap_or(told);
        let is_short = !rows.is_empty() && rows.len() <= MAX_STAGED_RUN_BYTES;
        let fits = is_whole && is_short && *before == *next.extent && next.extent[0].saturating_add(count) < next.end;
        if !fits || !chunks.add_run(&next.coord, next.at, rows) {
            return false;
        }
        next.at += rows.len();
        next.extent[0] += count;
        match extent {
            Some(extent) => extent[0] += count,
            None => *extent = Some(CoreDims::from_slice(&next.extent)),
        }
        true
    }
}

impl AppendCursor {
    /// Whether rows are all of a chunk, up to its end.
    fn is_whole(&self, rows: &[u8]) -> bool {
        let left = self.end.saturating_sub(self.extent[0]);
        self.at == 0 && left == self.side && usize::try_from(left).is_ok_and(|left| left * self.row == rows.len())
    }

    /// The cursor after rows have filled the chunk; `None` if the maximum leaves no room for a row.
    fn next_chunk(mut self) -> Option<Self> {
        self.extent[0] = self.end;
        self.end = self.end.saturating_add(self.side).min(self.max);
        self.coord.advance();
        (self.extent[0] < self.end).then_some(self)
    }
}

impl DatasetCore {
    /// Appends rows, as `stored` gives them, if they are short and come right after the last ones into the same chunk,
    /// or are all of the next one. Returns whether it was so; if not, nothing was done.
    pub(super) fn append_at_cursor<'a>(
        &self,
        stored: impl FnOnce(&DatasetSpec) -> Option<&'a [u8]>,
    ) -> Result<bool, DatasetError> {
        let _alone = self.writer.lock();
        let mut stage = self.stage.lock();
        if stage.cursor.is_none() {
            return Ok(false);
        }
        let spec = self.chunks.spec()?;
        let Some(rows) = stored(&spec) else { return Ok(false) };
        let told = spec.dataspace.dims();
        let follows = stage.stage_at_cursor(told, rows);
        let done = if follows { Ok(true) } else { self.append_chunk(&mut stage, told, rows) };
        drop(stage);
        self.list_staged();
        done
    }

    /// Appends rows that are all of the next chunk; `told` is the extent that the store knows. Returns whether it was
    /// so.
    fn append_chunk(
        &self,
        stage: &mut MutexGuard<'_, AppendBuffer>,
        told: &[u64],
        rows: &[u8],
    ) -> Result<bool, DatasetError> {
        let AppendBuffer { extent, cursor: next, .. } = &mut **stage;
        let before = extent.as_deref().unwrap_or(told);
        let fits = |next: &mut AppendCursor| *before == *next.extent && next.is_whole(rows);
        let Some(mut next) = next.take_if(fits) else { return Ok(false) };
        let is_staged = self.appends.begin() && stage.chunks.add_run(&next.coord, 0, rows);
        let joined =
            if is_staged { JoinResult::Joined } else { stage.chunks.join_row(&next.coord, rows, self.staging) };
        if joined != JoinResult::Joined {
            MutexGuard::unlocked(stage, || self.store_appended_chunk(&next.coord, rows, joined))?;
        }
        match &mut stage.extent {
            Some(extent) => extent[0] = next.end,
            None => {
                next.extent[0] = next.end;
                stage.extent = Some(next.extent.clone());
            }
        }
        stage.cursor = next.next_chunk();
        Ok(true)
    }
}

impl DatasetCore {
    /// Stores a chunk, or those that are staged in a row if they leave no room for it.
    fn store_appended_chunk(&self, coord: &ChunkCoord, bytes: &[u8], joined: JoinResult) -> Result<(), DatasetError> {
        if joined == JoinResult::Full {
            self.store_row(true)?;
            if self.stage.lock().chunks.join_row(coord, bytes, self.staging) == JoinResult::Joined {
                return Ok(());
            }
        }
        self.chunks.write_whole(coord, 0, bytes).map_err(|error| DatasetError::in_chunk(coord, error))?;
        self.note_change();
        Ok(())
    }

    /// Stores the chunks that are staged in a row; `more` says that others are to come. The caller holds the writer's
    /// lock.
    pub(super) fn store_row(&self, more: bool) -> Result<(), DatasetError> {
        let row = self.stage.lock().chunks.row().map(|row| (row.first.clone(), row.size, row.bytes.clone()));
        if let Some((first, size, bytes)) = row {
            self.chunks.write_row(&first, size, &bytes).map_err(|error| DatasetError::in_chunk(&first, error))?;
            self.note_change();
        }
        self.stage.lock().chunks.clear_row(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
                assert_eq!(data.chunks().unwrap().len(), 5);
            }
        }
    }

    #[test]
    fn rows_that_are_not_whole_are_refused_among_others() {
        let (_dir, file) = live();
        let data = file.new_dataset::<u16>().unlimited_rows(&[3]).chunk_shape(&[50, 3]).create("data").unwrap();
        data.append(&[1u16, 2, 3]).unwrap();
        assert!(matches!(data.append(&[4u16, 5]).unwrap_err().kind(), ErrorKind::Rows { .. }));
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
}
