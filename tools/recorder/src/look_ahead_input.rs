//! Input that can be looked at for a limited time before it is read, and that ends when the program is interrupted.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Most bytes that are taken from the source at once.
const BLOCK_BYTES: usize = 256 << 10;
/// Blocks that may be read ahead of who uses them.
const MAX_BLOCKS_AHEAD: usize = 8;
/// How often an input that rests looks whether the program was interrupted.
const INTERRUPT_POLL: Duration = Duration::from_millis(20);

/// What is to be done about the bytes that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookAheadDecision {
    /// Wait for more, however long it takes.
    Wait,
    /// Wait for more for a limited time, which begins when this is said first.
    WaitForLimitedTime,
    /// They are enough.
    Enough,
}

/// What a thread of its own has read from a source.
pub struct LookAheadInput {
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// Bytes that were read, of which those before `at` were used.
    ahead: Vec<u8>,
    at: usize,
    fault: Option<io::Error>,
    has_ended: bool,
    interrupted: Arc<AtomicBool>,
}

impl LookAheadInput {
    /// Starts to read `source`. When `interrupted` is set, an input that has no more bytes at once is an error: what came
    /// last may be a part of a row.
    pub fn start(mut source: impl Read + Send + 'static, interrupted: Arc<AtomicBool>) -> Self {
        let (sender, blocks) = sync_channel(MAX_BLOCKS_AHEAD);
        thread::spawn(move || {
            let mut block = vec![0; BLOCK_BYTES];
            loop {
                let read = match source.read(&mut block) {
                    Ok(0) => return,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.map(|bytes| block[..bytes].to_vec()),
                };
                let has_failed = read.is_err();
                if sender.send(read).is_err() || has_failed {
                    return;
                }
            }
        });
        LookAheadInput { blocks, ahead: Vec::new(), at: 0, fault: None, has_ended: false, interrupted }
    }

    /// The bytes that are there and were not used.
    pub fn buffered(&self) -> &[u8] {
        &self.ahead[self.at..]
    }

    /// Waits until the bytes that are there are enough, or the input ends, or the time is over. Returns when the time began.
    pub fn look_ahead(&mut self, time_limit: Duration, judge: impl Fn(&[u8]) -> LookAheadDecision) -> Option<Instant> {
        let mut begun = None;
        loop {
            match judge(self.buffered()) {
                LookAheadDecision::Enough => return begun,
                LookAheadDecision::WaitForLimitedTime => _ = begun.get_or_insert_with(Instant::now),
                LookAheadDecision::Wait => {}
            }
            if !self.take_block(begun.map(|begun: Instant| begun + time_limit)) {
                return begun;
            }
        }
    }

    /// Waits for more bytes, until `deadline` if there is one. Returns `false` if there are none.
    fn take_block(&mut self, deadline: Option<Instant>) -> bool {
        while !self.has_ended && self.fault.is_none() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match self.blocks.recv_timeout(left.unwrap_or(INTERRUPT_POLL).min(INTERRUPT_POLL)) {
                Ok(Ok(block)) => {
                    self.ahead.drain(..self.at);
                    self.at = 0;
                    self.ahead.extend(block);
                    return true;
                }
                Ok(Err(fault)) => self.fault = Some(fault),
                Err(RecvTimeoutError::Disconnected) => self.has_ended = true,
                Err(RecvTimeoutError::Timeout) if self.interrupted.load(Ordering::Acquire) => {
                    self.fault = Some(io::Error::other("the recording was interrupted"));
                }
                Err(RecvTimeoutError::Timeout) if left.is_some_and(|left| left.is_zero()) => return false,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        false
    }
}

impl BufRead for LookAheadInput {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.ahead.len() && !self.take_block(None) && !self.has_ended {
            // It stays an error.
            let fault = self.fault.as_ref().map_or(io::ErrorKind::Other, io::Error::kind);
            let text = self.fault.as_ref().map(ToString::to_string).unwrap_or_default();
            return Err(io::Error::new(fault, text));
        }
        Ok(self.buffered())
    }

    fn consume(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.ahead.len());
    }
}

impl Read for LookAheadInput {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(to)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that yields each of its texts when it is sent.
    struct Sent(Receiver<&'static str>);

    impl Read for Sent {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let Ok(text) = self.0.recv() else { return Ok(0) };
            to[..text.len()].copy_from_slice(text.as_bytes());
            Ok(text.len())
        }
    }

    fn judge(start: &[u8]) -> LookAheadDecision {
        match start.len() {
            0..2 => LookAheadDecision::Wait,
            2..6 => LookAheadDecision::WaitForLimitedTime,
            _ => LookAheadDecision::Enough,
        }
    }

    #[test]
    fn more_is_waited_for_until_it_is_enough_or_the_time_is_over() {
        let (send, sent) = sync_channel(9);
        let mut input = LookAheadInput::start(Sent(sent), Arc::default());
        send.send("a").unwrap();
        // Before the other thread begins: however late it or this one runs, it has slept since then.
        let from = Instant::now();
        let sending = thread::spawn(move || {
            thread::sleep(Duration::from_millis(150));
            send.send("bc").unwrap();
            send
        });
        // One byte is waited for longer than the time, two are not.
        let begun = input.look_ahead(Duration::from_millis(60), judge).unwrap();
        assert!(begun - from >= Duration::from_millis(100) && from.elapsed() >= Duration::from_millis(210));
        assert_eq!(input.buffered(), b"abc");
        let send = sending.join().unwrap();
        send.send("def").unwrap();
        assert!(input.look_ahead(Duration::from_secs(60), judge).is_some());
        assert_eq!(input.buffered(), b"abcdef");
        input.consume(2);
        drop(send);
        let mut rest = String::new();
        input.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "cdef");
        assert_eq!(input.fill_buf().unwrap(), b"");
    }

    #[test]
    fn an_interruption_is_an_error_behind_what_is_there() {
        let (send, sent) = sync_channel(9);
        let interrupted = Arc::<AtomicBool>::default();
        let mut input = LookAheadInput::start(Sent(sent), interrupted.clone());
        send.send("ab").unwrap();
        assert_eq!(input.fill_buf().unwrap(), b"ab");
        interrupted.store(true, Ordering::Release);
        let mut rest = Vec::new();
        assert!(input.read_to_end(&mut rest).is_err());
        assert_eq!(rest, b"ab");
        assert!(input.fill_buf().is_err());
    }
}
