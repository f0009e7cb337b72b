//! The bytes of a message.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

use crate::{Result, Wire};

/// Bytes that take no memory of their own: as many as fit beside the length of the rest.
const MAX_INLINE_BODY_BYTES: usize = 22;

/// Zeros that take no memory of their own.
const MAX_ZERO_BODY_BYTES: usize = 512;

static ZEROS: [u8; MAX_ZERO_BODY_BYTES] = [0; MAX_ZERO_BODY_BYTES];

/// The body of a message, as a header keeps it in memory. Short ones, and zeros, have no allocation.
#[derive(Clone)]
pub struct MessageBody(BodyBytes);

#[derive(Clone)]
enum BodyBytes {
    Short { len: u8, bytes: [u8; MAX_INLINE_BODY_BYTES] },
    Zeros { len: u16 },
    Long(Box<[u8]>),
}

impl MessageBody {
    /// A body of `len` zeros.
    pub fn zeros(len: usize) -> Self {
        match u16::try_from(len) {
            Ok(short) if len <= MAX_ZERO_BODY_BYTES => MessageBody(BodyBytes::Zeros { len: short }),
            _ => MessageBody(BodyBytes::Long(vec![0; len].into())),
        }
    }

    /// Makes the body `len` bytes long. New bytes are zero.
    pub fn resize(&mut self, len: usize) {
        if len == self.len() {
            return;
        }
        let mut bytes = self.to_vec();
        bytes.resize(len, 0);
        *self = bytes.into();
    }

    /// Bytes of memory outside of the structure itself.
    pub fn extra_memory_bytes(&self) -> usize {
        match &self.0 {
            BodyBytes::Long(bytes) => bytes.len(),
            BodyBytes::Short { .. } | BodyBytes::Zeros { .. } => 0,
        }
    }

    /// The field of a message that holds the body, of `len` bytes.
    pub(super) fn wire(&mut self, w: &mut impl Wire, len: usize) -> Result<()> {
        const FIELD: &str = "body";
        if w.is_decoding() {
            *self = MessageBody::from(w.peek(len));
            return w.skip(FIELD, len);
        }
        match &mut self.0 {
            BodyBytes::Zeros { len } => w.reserved(usize::from(*len)),
            BodyBytes::Short { len, bytes } => {
                w.byte_array(FIELD, bytes.get_mut(..usize::from(*len)).unwrap_or_default())
            }
            BodyBytes::Long(bytes) => w.byte_array(FIELD, bytes),
        }
    }
}

impl From<&[u8]> for MessageBody {
    fn from(bytes: &[u8]) -> Self {
        let mut short = [0; MAX_INLINE_BODY_BYTES];
        if let (Some(place), Ok(len)) = (short.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            place.copy_from_slice(bytes);
            return MessageBody(BodyBytes::Short { len, bytes: short });
        }
        match ZEROS.get(..bytes.len()) == Some(bytes) {
            true => MessageBody::zeros(bytes.len()),
            false => MessageBody(BodyBytes::Long(bytes.into())),
        }
    }
}

impl From<Vec<u8>> for MessageBody {
    fn from(bytes: Vec<u8>) -> Self {
        match bytes.len() {
            0..=MAX_ZERO_BODY_BYTES => MessageBody::from(bytes.as_slice()),
            _ => MessageBody(BodyBytes::Long(bytes.into())),
        }
    }
}

impl Default for MessageBody {
    fn default() -> Self {
        MessageBody::zeros(0)
    }
}

impl Deref for MessageBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            BodyBytes::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            BodyBytes::Zeros { len } => ZEROS.get(..usize::from(*len)).unwrap_or_default(),
            BodyBytes::Long(bytes) => bytes,
        }
    }
}

impl DerefMut for MessageBody {
    fn deref_mut(&mut self) -> &mut [u8] {
        if let BodyBytes::Zeros { len } = self.0 {
            self.0 = BodyBytes::Long(vec![0; usize::from(len)].into());
        }
        match &mut self.0 {
            BodyBytes::Short { len, bytes } => bytes.get_mut(..usize::from(*len)).unwrap_or_default(),
            BodyBytes::Zeros { .. } => &mut [],
            BodyBytes::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for MessageBody {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for MessageBody {}

impl Hash for MessageBody {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for MessageBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_however_they_are_kept() {
        assert_eq!(size_of::<MessageBody>(), size_of::<Vec<u8>>());
        for len in [
            0,
            1,
            MAX_INLINE_BODY_BYTES,
            MAX_INLINE_BODY_BYTES + 1,
            MAX_ZERO_BODY_BYTES,
            MAX_ZERO_BODY_BYTES + 1,
            70_000,
        ] {
            let zeros = vec![0; len];
            let mut ones = vec![1; len];
            for (bytes, mut body) in [
                (&zeros, MessageBody::zeros(len)),
                (&zeros, MessageBody::from(zeros.clone())),
                (&ones, MessageBody::from(ones.clone())),
                (&ones, MessageBody::from(ones.as_slice())),
            ] {
                assert_eq!(*body, **bytes);
                assert_eq!(body, MessageBody::from(bytes.clone()));
                body.iter_mut().for_each(|byte| *byte ^= 3);
                assert!(body.len() == len && body.iter().zip(bytes.iter()).all(|(new, old)| *new == old ^ 3));
            }
            let mut body = MessageBody::from(ones.clone());
            for longer in [len, len + 7, len / 2] {
                ones.resize(longer, 0);
                body.resize(longer);
                assert_eq!(*body, *ones);
            }
        }
    }

    #[test]
    fn only_long_bodies_that_are_not_zeros_take_memory() {
        for (body, weight) in [
            (MessageBody::zeros(MAX_ZERO_BODY_BYTES), 0),
            (MessageBody::from(vec![0; 160]), 0),
            (MessageBody::from(vec![7; MAX_INLINE_BODY_BYTES]), 0),
            (MessageBody::from(vec![7; MAX_INLINE_BODY_BYTES + 1]), MAX_INLINE_BODY_BYTES + 1),
        ] {
            assert_eq!(body.extra_memory_bytes(), weight);
        }
    }
}
