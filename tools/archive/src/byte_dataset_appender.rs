//! A dataset of bytes that grows at its end, which a thread of its own writes.

use std::sync::mpsc::{Receiver, sync_channel};

use h5live::Dataset;

use crate::error::Result;
use crate::worker_thread::WorkerThread;

/// The largest chunk that is gathered (bytes).
const MAX_BUFFERED_CHUNK_BYTES: u64 = 16 << 20;

/// Whole chunks are appended, so many at a time.
const CHUNKS_AT_ONCE: usize = 4;

/// Bytes on their way to the end of a dataset.
#[derive(Debug)]
struct PendingAppend {
    bytes: Vec<u8>,
    /// How many of them are to be appended, and how many were.
    filled: usize,
    done: usize,
    /// Bytes of the dataset before the first one of these.
    start: u64,
    chunk: usize,
}

impl PendingAppend {
    /// Appends what is not appended yet, without whole chunks of zeros: the file has holes there.
    fn run(&mut self, dataset: &Dataset) -> Result<()> {
        let mut end = self.done;
        while end < self.filled {
            let to_chunk = self.chunk - ((self.start + end as u64) % self.chunk as u64) as usize;
            let next = (end + to_chunk).min(self.filled);
            let piece = &self.bytes[end..next];
            if piece.len() == self.chunk && is_zero(piece) {
                self.append_to(end, dataset)?;
                dataset.resize(&[self.start + next as u64])?;
                self.done = next;
            }
            end = next;
        }
        self.append_to(end, dataset)
    }

    fn append_to(&mut self, end: usize, dataset: &Dataset) -> Result<()> {
        if end > self.done {
            dataset.append(&self.bytes[self.done..end])?;
            self.done = end;
        }
        Ok(())
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // Contents rarely begin with many zeros.
    let (head, rest) = bytes.split_at(bytes.len().min(64));
    head.iter().all(|byte| *byte == 0) && rest.chunks(4096).all(|part| part.iter().fold(0, |all, byte| all | byte) == 0)
}

/// The thread that appends.
#[derive(Debug)]
struct AppendThread {
    worker: WorkerThread<PendingAppend, ()>,
    results: Receiver<(PendingAppend, Result<()>)>,
}

impl AppendThread {
    /// `None` if the system has no thread.
    fn start(dataset: &Dataset) -> Option<Self> {
        let (done, results) = sync_channel(1);
        let dataset = dataset.clone();
        let append = move |jobs: Receiver<PendingAppend>| {
            for mut job in jobs {
                let result = job.run(&dataset);
                if done.send((job, result)).is_err() {
                    return;
                }
            }
        };
        Some(AppendThread { worker: WorkerThread::start("h5live-import", 1, append)?, results })
    }
}

/// A dataset of bytes in chunks. While a thread appends some chunks, the next ones are gathered.
#[derive(Debug)]
pub struct ByteDatasetAppender {
    dataset: Dataset,
    chunk: usize,
    /// Begins where the bytes end that were handed over, and ends with a chunk.
    buffer: Vec<u8>,
    filled: usize,
    /// Bytes in the dataset, with those that were handed over.
    written: u64,
    thread: Option<AppendThread>,
    is_under_way: bool,
    /// What could not be appended, to be tried again.
    failed: Option<PendingAppend>,
}

impl ByteDatasetAppender {
    /// The bytes of a dataset.
    ///
    /// # Errors
    /// If its description cannot be read.
    pub fn new(dataset: Dataset) -> Result<Self> {
        let spec = dataset.spec()?;
        let written = spec.dataspace.dims().first().copied().unwrap_or(0);
        let chunk = spec.chunk_dims_or_extent().and_then(|dims| dims.first().copied()).unwrap_or(1);
        // A file of others may have chunks of any size.
        let chunk = chunk.clamp(1, MAX_BUFFERED_CHUNK_BYTES) as usize;
        let thread = AppendThread::start(&dataset);
        let mut image = ByteDatasetAppender {
            dataset,
            chunk,
            buffer: Vec::new(),
            filled: 0,
            written,
            thread,
            is_under_way: false,
            failed: None,
        };
        image.restart();
        Ok(image)
    }

    fn restart(&mut self) {
        let over = (self.written % self.chunk as u64) as usize;
        self.filled = 0;
        self.buffer.resize(CHUNKS_AT_ONCE * self.chunk - over, 0);
    }

    /// How many bytes there are, with those that are not written yet.
    pub fn len(&self) -> u64 {
        self.written + self.filled as u64
    }

    /// Room for the next bytes, at least one and at most `limit`. [`ByteDatasetAppender::advance`] says how many there are.
    ///
    /// # Errors
    /// As [`Dataset::append`]: those of earlier bytes.
    pub fn spare_capacity_mut(&mut self, limit: u64) -> Result<&mut [u8]> {
        if self.filled == self.buffer.len() {
            self.hand_over()?;
        }
        let end = self.buffer.len().min(self.filled.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)));
        Ok(&mut self.buffer[self.filled..end])
    }

    /// Takes so many bytes of the room as the next ones.
    pub fn advance(&mut self, bytes: usize) {
        self.filled = (self.filled + bytes).min(self.buffer.len());
    }

    /// Adds zeros.
    ///
    /// # Errors
    /// As [`ByteDatasetAppender::spare_capacity_mut`].
    pub fn push_zeros(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            if self.filled == 0 && self.written.is_multiple_of(self.chunk as u64) && count >= self.chunk as u64 {
                let whole = count - count % self.chunk as u64;
                self.finish()?;
                self.dataset.resize(&[self.written + whole])?;
                self.written += whole;
                count -= whole;
                continue;
            }
            let rest = self.chunk - ((self.written + self.filled as u64) % self.chunk as u64) as usize;
            let space = self.spare_capacity_mut(count.min(rest as u64))?;
            space.fill(0);
            let len = space.len();
            self.advance(len);
            count -= len as u64;
            if count >= self.chunk as u64 && self.len().is_multiple_of(self.chunk as u64) {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    /// Waits until everything that was handed over is in the dataset. Returns memory for the next bytes. What failed is
    /// tried again by the next call.
    fn finish(&mut self) -> Result<Vec<u8>> {
        let mut last = None;
        if std::mem::take(&mut self.is_under_way) {
            let done = self.thread.as_ref().and_then(|thread| thread.results.recv().ok());
            match done {
                Some((job, Ok(()))) => last = Some(job),
                Some((job, Err(error))) => {
                    self.failed = Some(job);
                    return Err(error);
                }
                None => self.panic_as_thread(),
            }
        }
        if let Some(mut job) = self.failed.take() {
            if let Err(error) = job.run(&self.dataset) {
                self.failed = Some(job);
                return Err(error);
            }
            last = Some(job);
        }
        Ok(last.map(|job| job.bytes).unwrap_or_default())
    }

    /// A panic in the thread is one of its caller, as it would be without the thread.
    #[cold]
    fn panic_as_thread(&mut self) -> ! {
        if let Some(thread) = self.thread.take() {
            thread.worker.join();
        }
        unreachable!("a thread ends after its last job, or by a panic")
    }

    /// Hands what was gathered to the thread.
    fn hand_over(&mut self) -> Result<()> {
        let spare = self.finish()?;
        let job = PendingAppend {
            bytes: std::mem::replace(&mut self.buffer, spare),
            filled: self.filled,
            done: 0,
            start: self.written,
            chunk: self.chunk,
        };
        self.written += job.filled as u64;
        self.restart();
        let refused = match &self.thread {
            Some(thread) => thread.worker.send(job).err(),
            None => Some(job),
        };
        self.is_under_way = refused.is_none();
        // Without a thread, it is done at once.
        self.failed = refused;
        if self.failed.is_some() { self.finish().map(drop) } else { Ok(()) }
    }

    /// Publishes all bytes.
    ///
    /// # Errors
    /// As [`Dataset::append`], [`Dataset::flush`].
    pub fn commit(&mut self) -> Result<()> {
        if self.filled > 0 {
            self.hand_over()?;
        }
        self.finish()?;
        Ok(self.dataset.flush()?)
    }

    /// Drops bytes at the end.
    ///
    /// # Errors
    /// As [`Dataset::resize`], and as [`ByteDatasetAppender::spare_capacity_mut`].
    pub fn drop_pending_and_truncate(&mut self, len: u64) -> Result<()> {
        self.finish()?;
        self.dataset.resize(&[len])?;
        self.written = len;
        self.restart();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use h5live::File;

    use super::*;

    const CHUNK: usize = 16;

    fn image(file: &File) -> ByteDatasetAppender {
        let new = file.new_dataset::<u8>().unlimited_rows(&[]).chunk_shape(&[CHUNK as u64]);
        ByteDatasetAppender::new(new.create("image").unwrap()).unwrap()
    }

    fn push(image: &mut ByteDatasetAppender, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let space = image.spare_capacity_mut(bytes.len() as u64)?;
            let (now, later) = bytes.split_at(space.len());
            space.copy_from_slice(now);
            image.advance(now.len());
            bytes = later;
        }
        Ok(())
    }

    #[test]
    fn bytes_and_zeros_come_in_order_and_chunks_of_zeros_are_holes() {
        let file = File::in_memory();
        let (mut image, mut expected) = (image(&file), Vec::new());
        for n in 0..60 {
            let (bytes, zeros) = (vec![n as u8 + 1; n * 7 % 41], n * 13 % 50);
            push(&mut image, &bytes).unwrap();
            image.push_zeros(zeros as u64).unwrap();
            expected.extend(bytes);
            expected.extend(vec![0; zeros]);
            if n % 17 == 0 {
                image.commit().unwrap();
            }
        }
        image.commit().unwrap();
        assert_eq!(image.len(), expected.len() as u64);
        let data = file.dataset("image").unwrap();
        assert_eq!(data.read::<u8>().unwrap(), expected);
        let holes = expected.chunks_exact(CHUNK).filter(|chunk| **chunk == [0; CHUNK]).count();
        assert_eq!(data.stored_chunks().unwrap().len(), expected.len().div_ceil(CHUNK) - holes);
        assert!(holes > 10);
        image.drop_pending_and_truncate(100).unwrap();
        push(&mut image, b"end").unwrap();
        image.commit().unwrap();
        assert_eq!(data.read::<u8>().unwrap(), [&expected[..100], b"end"].concat());
    }

    /// It was a panic: the memory of what could not be appended was gone.
    #[test]
    fn what_cannot_be_appended_is_an_error_each_time() {
        let file = File::in_memory();
        let mut image = image(&file);
        push(&mut image, &[1; 40]).unwrap();
        file.close().unwrap();
        let errors = (0..1000).filter(|_| push(&mut image, &[2; 40]).is_err()).count();
        assert!(errors > 900, "{errors}");
        assert!(image.commit().is_err() && image.commit().is_err());
        assert!(image.drop_pending_and_truncate(0).is_err());
    }
}
