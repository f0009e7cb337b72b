//! Where the bytes of an archive come from: a file or a stream, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::error::{Error, Result};

/// How an archive is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    Plain,
    /// gzip, of one or several members.
    Gzip,
    /// xz.
    Xz,
    /// Zstandard.
    Zstd,
    /// bzip2.
    Bzip2,
    /// Frames of LZ4.
    Lz4,
    /// lzip.
    Lzip,
}

impl Compression {
    /// The kind that the first bytes tell.
    pub fn of(head: &[u8]) -> Compression {
        let magic: [(&[u8], Compression); 7] = [
            (&[0x1f, 0x8b], Compression::Gzip),
            (&[0xfd, b'7', b'z', b'X', b'Z', 0], Compression::Xz),
            (&[0x28, 0xb5, 0x2f, 0xfd], Compression::Zstd),
            (b"BZh", Compression::Bzip2),
            (&[0x04, 0x22, 0x4d, 0x18], Compression::Lz4),
            (&[0x02, 0x21, 0x4c, 0x18], Compression::Lz4),
            (b"LZIP", Compression::Lzip),
        ];
        // A frame that is to be skipped, as pzstd and others put one in front.
        if matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
            return Compression::Zstd;
        }
        let found = magic.iter().find(|(magic, _)| head.starts_with(magic));
        found.map_or(Compression::Plain, |(_, compression)| *compression)
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
            Compression::Lz4 => "lz4",
            Compression::Lzip => "lzip",
        }
    }
}

/// An open archive.
pub struct TarSource {
    /// The archive without its compression.
    pub decompressed: Box<dyn Read + Send>,
    /// What errors call it.
    pub name: String,
    /// How it is compressed.
    pub compression: Compression,
    /// Bytes of the file; `None` for a stream.
    pub file_len: Option<u64>,
    /// Bytes that were read of the file.
    pub file_bytes_read: Arc<AtomicU64>,
}

impl std::fmt::Debug for TarSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({}, {})", self.name, self.compression.name())
    }
}

/// Bytes of the start of an archive that tell its compression.
const HEAD_BYTES: u64 = 6;

impl TarSource {
    /// Opens the archive at a path; `-` is standard input.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open_file_or_stdin(path: &Path) -> Result<TarSource> {
        if path == Path::new("-") {
            return TarSource::new(Box::new(io::stdin()), "standard input", None);
        }
        let file = File::open(path).map_err(Error::io(path))?;
        let metadata = file.metadata().map_err(Error::io(path))?;
        if metadata.is_dir() {
            return Err(Error::io(path)(io::ErrorKind::IsADirectory.into()));
        }
        let bytes = metadata.is_file().then_some(metadata.len());
        TarSource::new(Box::new(file), &path.display().to_string(), bytes)
    }

    /// An archive that `input` has.
    ///
    /// # Errors
    /// [`Error::Io`] if its start cannot be read.
    pub fn new(mut input: Box<dyn Read + Send>, name: &str, file_len: Option<u64>) -> Result<TarSource> {
        let mut head = Vec::new();
        (&mut input).take(HEAD_BYTES).read_to_end(&mut head).map_err(Error::io(name))?;
        let compression = Compression::of(&head);
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counted = CountedReader { input: io::Cursor::new(head).chain(input), count: bytes_read.clone() };
        let buffered = |input| io::BufReader::with_capacity(256 << 10, input);
        let input: Box<dyn Read + Send> = match compression {
            Compression::Plain => Box::new(counted),
            Compression::Gzip => read_ahead(move || flate2::bufread::MultiGzDecoder::new(buffered(counted))),
            Compression::Xz => read_ahead(move || lzma_rust2::XzReader::new(buffered(counted), true)),
            Compression::Bzip2 => read_ahead(move || bzip2::bufread::MultiBzDecoder::new(buffered(counted))),
            Compression::Lz4 => read_ahead(move || Lz4Frames(lz4_flex::frame::FrameDecoder::new(buffered(counted)))),
            Compression::Lzip => read_ahead(move || lzma_rust2::LzipReader::new(buffered(counted))),
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(buffered(counted)).map_err(Error::io(name))?;
                read_ahead(move || decoder)
            }
        };
        Ok(TarSource { decompressed: input, name: name.to_owned(), compression, file_len, file_bytes_read: bytes_read })
    }
}

impl TarSource {
    /// The first bytes of the archive, at most so many. They come again when it is read.
    ///
    /// # Errors
    /// None: what cannot be read is an error when it is read again.
    pub fn peek_decompressed(&mut self, limit: u64) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        let mut input = std::mem::replace(&mut self.decompressed, Box::new(io::empty()));
        let read = (&mut input).take(limit).read_to_end(&mut head);
        let head_again = io::Cursor::new(head.clone());
        self.decompressed = match read {
            Ok(_) => Box::new(head_again.chain(input)),
            Err(error) => Box::new(head_again.chain(FailedReader(Some(error)))),
        };
        Ok(head)
    }
}

/// All frames of LZ4, one after another.
struct Lz4Frames<R: BufRead>(lz4_flex::frame::FrameDecoder<R>);

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.0.read(into)?;
            // At the end of each frame there is nothing to read, also if others follow.
            if read > 0 || into.is_empty() || self.0.get_mut().fill_buf()?.is_empty() {
                return Ok(read);
            }
        }
    }
}

/// Counts what is read.
struct CountedReader<R> {
    input: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Bytes of a block that is decompressed ahead, and how many such blocks wait at most.
const AHEAD_BYTES: usize = 1 << 20;
const AHEAD_BLOCKS: usize = 4;

/// Runs a decoder in a thread of its own.
fn read_ahead<R: Read>(decoder: impl FnOnce() -> R + Send + 'static) -> Box<dyn Read + Send> {
    let (sender, receiver) = sync_channel(AHEAD_BLOCKS);
    let run = move || decode_blocks(decoder(), &sender);
    match thread::Builder::new().name("decompress".to_owned()).spawn(run) {
        Ok(_) => Box::new(ReadAheadPredictor { receiver, block: io::Cursor::default(), is_done: false }),
        Err(error) => Box::new(FailedReader(Some(error))),
    }
}

/// Sends blocks until the input ends, or nobody wants them any more. An empty block is the end.
fn decode_blocks(mut decoder: impl Read, sender: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut block = Vec::with_capacity(AHEAD_BYTES);
        let read = (&mut decoder).take(AHEAD_BYTES as u64).read_to_end(&mut block);
        let is_end = block.is_empty();
        // What was decoded before an error comes first.
        let sent = match read {
            Ok(_) => sender.send(Ok(block)),
            Err(error) if is_end => sender.send(Err(error)),
            Err(error) => sender.send(Ok(block)).and_then(|()| sender.send(Err(error))),
        };
        if sent.is_err() || is_end {
            return;
        }
    }
}

/// Blocks that a thread decodes.
struct ReadAheadPredictor {
    receiver: Receiver<io::Result<Vec<u8>>>,
    block: io::Cursor<Vec<u8>>,
    is_done: bool,
}

impl Read for ReadAheadPredictor {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || self.is_done {
            return Ok(0);
        }
        if self.block.position() as usize == self.block.get_ref().len() {
            // The thread ends without a word if the decoder panics.
            let ended = || Err(io::Error::other("the decoder has ended"));
            let block = self.receiver.recv().unwrap_or_else(|_| ended())?;
            self.is_done = block.is_empty();
            self.block = io::Cursor::new(block);
        }
        self.block.read(into)
    }
}

/// Says why there is no thread.
struct FailedReader(Option<io::Error>);

impl Read for FailedReader {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.0.take().unwrap_or_else(|| io::ErrorKind::Other.into()))
    }
}
