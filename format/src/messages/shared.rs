//! Messages that are stored elsewhere (format specification 4.0, IV.A.2, "Shared Message").

use super::Message;
use crate::{Addr, Fault, Record, Result, Widths, Wire, decode_prefix};

/// The place of a shared message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SharedMessageTarget {
    /// In the header of a committed datatype, at this address.
    Committed(Addr),
    /// In the heap of shared messages, under this heap ID.
    Heap([u8; 8]),
}

/// Stands in an object header for a shared message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedMessageReference {
    /// 1 to 3.
    pub version: u8,
    /// Where the message is.
    pub place: SharedMessageTarget,
}

impl Default for SharedMessageReference {
    fn default() -> Self {
        SharedMessageReference::new(SharedMessageTarget::Committed(Addr::UNDEFINED))
    }
}

const IN_HEAP: u8 = 1;
const COMMITTED: u8 = 2;

impl SharedMessageReference {
    /// The reference to a message at `place`, in the version that libhdf5 writes.
    pub fn new(place: SharedMessageTarget) -> Self {
        let version = match place {
            SharedMessageTarget::Committed(_) => 2,
            SharedMessageTarget::Heap(_) => 3,
        };
        SharedMessageReference { version, place }
    }
}

impl Record for SharedMessageReference {
    const NAME: &'static str = "shared message";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(1..=3, &mut self.version)?;
        let kind = match (self.version, self.place) {
            (1, _) => 0,
            (_, SharedMessageTarget::Committed(_)) => COMMITTED,
            (_, SharedMessageTarget::Heap(_)) => IN_HEAP,
        };
        let kind = w.derived_u8("type", kind)?;
        if w.is_decoding() {
            self.place = match (self.version, kind) {
                (3, IN_HEAP) => SharedMessageTarget::Heap([0; 8]),
                _ => SharedMessageTarget::Committed(Addr::UNDEFINED),
            };
        }
        if self.version == 1 {
            w.reserved(6)?;
            w.reserved(w.widths().length.bytes())?;
        }
        match &mut self.place {
            SharedMessageTarget::Committed(addr) => w.addr("object header", addr),
            SharedMessageTarget::Heap(_) if self.version < 3 => {
                Err(w.fault("version", Fault::UnsupportedVersion { allowed: 3..=3, found: self.version }))
            }
            SharedMessageTarget::Heap(id) => w.byte_array("heap ID", id),
        }
    }
}

/// A message that is here, or says where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shareable<M> {
    /// The message itself.
    Inline(M),
    /// The place of the shared message.
    Shared(SharedMessageReference),
}

impl<M: Default> Default for Shareable<M> {
    fn default() -> Self {
        Shareable::Inline(M::default())
    }
}

impl<M> Shareable<M> {
    /// The message, if it is here.
    pub fn inline(&self) -> Option<&M> {
        match self {
            Shareable::Inline(message) => Some(message),
            Shareable::Shared(_) => None,
        }
    }

    /// Where the message is, if it is elsewhere.
    pub fn shared(&self) -> Option<&SharedMessageReference> {
        match self {
            Shareable::Inline(_) => None,
            Shareable::Shared(shared) => Some(shared),
        }
    }
}

impl<M: Message + Default> Shareable<M> {
    /// Decodes the body of a message. `shared` is its flag. Bytes after the body are padding.
    ///
    /// # Errors
    /// A [`crate::DecodeError`] if the body is not such a message, or not a reference to one.
    pub fn decode(body: &[u8], shared: bool, widths: Widths) -> Result<Self> {
        if shared {
            decode_prefix(body, widths).map(|(shared, _)| Shareable::Shared(shared))
        } else {
            decode_prefix(body, widths).map(|(message, _)| Shareable::Inline(message))
        }
    }
}

/// The context that the bytes do not carry, which of the two it is, is put into the value before decoding.
impl<M: Record> Record for Shareable<M> {
    const NAME: &'static str = M::NAME;

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        match self {
            Shareable::Inline(message) => message.wire(w),
            Shareable::Shared(shared) => w.record(shared),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode, encode};

    #[test]
    fn comes_back_from_bytes() {
        let committed = SharedMessageTarget::Committed(Addr::new(800));
        let heap = SharedMessageTarget::Heap([1, 2, 3, 4, 5, 6, 7, 8]);
        for (version, place) in [(1, committed), (2, committed), (3, committed), (3, heap)] {
            let shared = SharedMessageReference { version, place };
            let bytes = encode(&shared, Widths::default()).unwrap();
            assert_eq!(decode::<SharedMessageReference>(&bytes, Widths::default()).unwrap(), shared);
        }
    }

    #[test]
    fn cannot_write_a_heap_id_before_version_3() {
        let shared = SharedMessageReference { version: 2, place: SharedMessageTarget::Heap([0; 8]) };
        assert!(encode(&shared, Widths::default()).is_err());
    }
}
