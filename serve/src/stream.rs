//! Bodies of answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

use crate::pool::MemoryReservation;

/// Bytes that are handed to the connection at a time.
const PART_BYTES: usize = 256 << 10;

/// The bytes of an answer, with the memory that they take.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    pub bytes: Bytes,
    pub memory: Option<MemoryReservation>,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.bytes.is_empty() {
            self.memory = None;
            return Poll::Ready(None);
        }
        let part = self.bytes.len().min(PART_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.bytes.split_to(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// Parts of a body that a task makes, for a client that may go away.
#[derive(Debug)]
pub(crate) struct ReceiverStream(pub Receiver<Bytes>);

impl Stream for ReceiverStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|part| part.map(Ok))
    }
}
