//! Types of elements in memory.

mod array;
mod boolean;
mod column;
#[cfg(feature = "half")]
mod half;
mod number;
mod strings;
mod varlen;
mod write;

use std::sync::Arc;

use h5live_model::{Datatype, Error as ModelError, Store};
use parking_lot::Mutex;

pub use column::MemberColumn;
pub use strings::FixedStr;
pub(crate) use strings::{StringCodec, cut_text, kept_text, pad, trim};
pub use write::H5Write;

use crate::convert::{ConversionPolicy, ConvertError};

/// A Rust type whose values are elements of datasets and attributes.
///
/// It is implemented for integers, floats, `bool`, [`String`], [`FixedStr`], arrays `[T; N]`, and `Vec<T>` (sequences
/// of variable length). [`derive`](macro@crate::H5Type) implements it for structs (compound types) and for enums
/// without data (enum types).
///
/// Texts are also written from `&str` ([`H5Write`]).
///
/// A conversion plan is made once for a type in the file, and then used for many elements. [`H5Type::decoder`] and
/// [`H5Type::encoder`] make it. They fail if there is no conversion between the two types.
pub trait H5Type: Clone + Send + Sync + 'static {
    /// The way from a type in the file to this one.
    type Decoder: Send + Sync;
    /// The way from this type to one in the file.
    type Encoder: Send + Sync;

    /// The type that a file gets for this one.
    fn datatype() -> Datatype;

    /// Any value: what a buffer holds before it is read into.
    fn placeholder() -> Self;

    /// A buffer of `n` values; `None` if there is no memory for it.
    fn try_alloc_buffer(n: usize) -> Option<Vec<Self>> {
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(n).ok()?;
        buffer.resize(n, Self::placeholder());
        Some(buffer)
    }

    /// The way from a type in the file to this one.
    ///
    /// # Errors
    /// [`ConvertError`] if there is none.
    fn decoder(file: &Datatype) -> Result<Self::Decoder, ConvertError>;

    /// Replaces `into` by the value of an element.
    ///
    /// # Errors
    /// [`ConvertError`] if the element has no value of this type.
    fn decode(
        decoder: &Self::Decoder,
        element: &[u8],
        into: &mut Self,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError>;

    /// Replaces `into` by the values of elements of `size` bytes, one after another.
    ///
    /// # Errors
    /// As [`H5Type::decode`].
    fn decode_slice(
        decoder: &Self::Decoder,
        elements: &[u8],
        size: usize,
        into: &mut [Self],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let elements = elements.chunks_exact(size.max(1));
        elements.zip(into).try_for_each(|(element, into)| Self::decode(decoder, element, into, context))
    }

    /// Replaces each of `into` by the value of a member of compounds.
    ///
    /// # Errors
    /// As [`H5Type::decode`].
    #[doc(hidden)]
    fn decode_column<'a>(
        decoder: &Self::Decoder,
        column: MemberColumn<'_>,
        mut into: impl Iterator<Item = &'a mut Self>,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        column
            .member_slices()
            .zip(&mut into)
            .try_for_each(|(element, into)| Self::decode(decoder, element, into, context))
    }

    /// The bytes of values whose memory has exactly the form of the file.
    fn as_stored_mut<'a>(decoder: &Self::Decoder, into: &'a mut [Self]) -> Option<&'a mut [u8]> {
        let _ = (decoder, into);
        None
    }

    /// The way from this type to one in the file.
    ///
    /// # Errors
    /// [`ConvertError`] if there is none.
    fn encoder(file: &Datatype) -> Result<Self::Encoder, ConvertError>;

    /// Overwrites an element by this value. Members of a compound that this type does not have stay.
    ///
    /// # Errors
    /// [`ConvertError`] if the element cannot hold the value.
    fn encode(
        &self,
        encoder: &Self::Encoder,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError>;

    /// Overwrites elements of `size` bytes, one after another.
    ///
    /// # Errors
    /// As [`H5Type::encode`].
    fn encode_slice(
        encoder: &Self::Encoder,
        values: &[Self],
        elements: &mut [u8],
        size: usize,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let elements = elements.chunks_exact_mut(size.max(1));
        values.iter().zip(elements).try_for_each(|(value, element)| value.encode(encoder, element, context))
    }

    /// The bytes of values whose memory has exactly the form of the file.
    fn as_stored_with_encoder<'a>(encoder: &Self::Encoder, values: &'a [Self]) -> Option<&'a [u8]> {
        let _ = (encoder, values);
        None
    }

    /// The bytes of values, if it is plain from the datatype alone that they are what the file is to hold: as
    /// [`H5Type::as_stored_with_encoder`], but without an encoder, which takes longer to make than a few values to write.
    fn as_stored<'a>(file: &Datatype, values: &'a [Self]) -> Option<&'a [u8]> {
        let _ = (file, values);
        None
    }

    /// Whether an encoder refuses some values of this type.
    #[doc(hidden)]
    fn may_refuse(encoder: &Self::Encoder) -> bool {
        let _ = encoder;
        true
    }

    /// Whether encoding leaves some bytes of an element unchanged.
    fn leaves_bytes_unchanged(encoder: &Self::Encoder) -> bool {
        let _ = encoder;
        false
    }
}

/// What a conversion uses beside the elements: the place of variable-length data, and whether values may change.
#[derive(Debug, Clone, Copy)]
pub struct ConversionContext<'a> {
    store: &'a dyn Store,
    conversion: ConversionPolicy,
    plain: Option<PlainElement<'a>>,
    /// Whether nothing is stored: values are only looked at.
    is_check: bool,
    /// Whether members to which nothing is converted keep their values.
    keeps_members: bool,
}

/// A variable-length element whose bytes are not in the heap, but with the caller: the key or the value of a map. What
/// lies within it is in the heap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainElement<'a> {
    /// Where the element is in memory. No other element of the same conversion can be there.
    address: usize,
    bytes: PlainBytes<'a>,
}

#[derive(Debug, Clone, Copy)]
enum PlainBytes<'a> {
    /// What is read of the element.
    Read(&'a [u8]),
    /// Where what is written of the element goes: behind so many bytes of it.
    Written(&'a Mutex<Vec<u8>>, usize),
}

impl<'a> PlainElement<'a> {
    /// An element that has these bytes.
    pub(crate) fn with_bytes(element: &[u8], bytes: &'a [u8]) -> Self {
        PlainElement { address: element.as_ptr().addr(), bytes: PlainBytes::Read(bytes) }
    }

    /// An element that is to be written. Its bytes go to `written`, behind the first `start` bytes.
    pub(crate) fn to_write(element: &[u8], written: &'a Mutex<Vec<u8>>, start: usize) -> Self {
        PlainElement { address: element.as_ptr().addr(), bytes: PlainBytes::Written(written, start) }
    }
}

impl<'a> ConversionContext<'a> {
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        ConversionContext {
            store,
            conversion: ConversionPolicy::Checked,
            plain: None,
            is_check: false,
            keeps_members: false,
        }
    }

    /// The same heap, for another conversion.
    pub(crate) fn with_conversion(self, conversion: ConversionPolicy) -> Self {
        ConversionContext { conversion, ..self }
    }

    /// The same heap, for values that are converted only to see whether they can be: nothing is stored.
    pub(crate) fn for_check(self) -> Self {
        ConversionContext { is_check: true, ..self }
    }

    /// The same heap, for a conversion after which members of compounds to which nothing is converted are as before.
    pub(crate) fn keep_members(self) -> Self {
        ConversionContext { keeps_members: true, ..self }
    }

    pub(crate) fn keeps_members(&self) -> bool {
        self.keeps_members
    }

    /// The same heap, with an element that is not in it.
    pub(crate) fn with_plain(self, plain: PlainElement<'a>) -> Self {
        ConversionContext { plain: Some(plain), ..self }
    }

    /// The bytes of an element that is not in the heap.
    fn plain_bytes(&self, element: &[u8]) -> Option<PlainBytes<'a>> {
        self.plain.filter(|plain| plain.address == element.as_ptr().addr()).map(|plain| plain.bytes)
    }

    /// What is to be done with values that change.
    pub fn conversion(&self) -> ConversionPolicy {
        self.conversion
    }

    pub(crate) fn store(&self) -> &'a dyn Store {
        self.store
    }

    /// The bytes of a variable-length element.
    ///
    /// # Errors
    /// [`ConvertError::Heap`].
    pub fn read_varlen(&self, element: &[u8]) -> Result<Vec<u8>, ConvertError> {
        self.with(element, <[u8]>::to_vec)
    }

    /// What `look` makes of the bytes of a variable-length element. It must not use the file.
    ///
    /// # Errors
    /// [`ConvertError::Heap`].
    pub(crate) fn with<T>(&self, element: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<T, ConvertError> {
        if let Some(PlainBytes::Read(bytes)) = self.plain_bytes(element) {
            return Ok(look(bytes));
        }
        let (mut look, mut found) = (Some(look), None);
        let read = self.store.read_blobs(&[element], &mut |_, bytes| found = look.take().map(|look| look(bytes)));
        let missing = || ModelError::Invalid("the store has no bytes for the element".into());
        read.and_then(|()| found.ok_or_else(missing)).map_err(|error| ConvertError::Heap(Arc::new(error)))
    }

    /// Stores `bytes`, which are `count` elements of the base type, and writes their place into `element`.
    ///
    /// # Errors
    /// [`ConvertError::Heap`].
    pub fn write_varlen(&self, bytes: &[u8], count: usize, element: &mut [u8]) -> Result<(), ConvertError> {
        if let Some(PlainBytes::Written(written, start)) = self.plain_bytes(element) {
            let mut written = written.lock();
            written.truncate(start);
            written.extend_from_slice(bytes);
            return Ok(());
        }
        let count = u32::try_from(count).map_err(|_| ConvertError::StringTooLong { length: count, space: 1 << 32 })?;
        if self.is_check {
            return Ok(());
        }
        let place = self
            .store
            .writer()
            .and_then(|writer| writer.put_blob(bytes, count))
            .map_err(|error| ConvertError::Heap(Arc::new(error)))?;
        if place.len() != element.len() {
            return Err(ConvertError::Truncated { expected: place.len(), found: element.len() });
        }
        element.copy_from_slice(&place);
        Ok(())
    }
}

/// Part of an element.
///
/// # Errors
/// [`ConvertError::Truncated`].
#[doc(hidden)]
pub fn part(element: &[u8], at: usize, size: usize) -> Result<&[u8], ConvertError> {
    let found = element.len().saturating_sub(at);
    let end = at.saturating_add(size);
    element.get(at..end).ok_or(ConvertError::Truncated { expected: size, found })
}

/// Part of an element, to be overwritten.
///
/// # Errors
/// [`ConvertError::Truncated`].
#[doc(hidden)]
pub fn part_mut(element: &mut [u8], at: usize, size: usize) -> Result<&mut [u8], ConvertError> {
    let found = element.len().saturating_sub(at);
    let end = at.saturating_add(size);
    element.get_mut(at..end).ok_or(ConvertError::Truncated { expected: size, found })
}
