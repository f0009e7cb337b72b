//! Sequences of variable length as elements.

use h5live_model::{Datatype, VarLenKind, VarLenType};

use super::{ConversionContext, H5Type};
use crate::convert::{ConvertError, blank_elements, class};

/// How a sequence is converted, element by element.
#[derive(Debug, Clone)]
pub struct SequenceCodec<C> {
    element: C,
    /// Bytes of an element of the sequence in the file.
    size: usize,
}

fn base(file: &Datatype) -> Result<&Datatype, ConvertError> {
    match file {
        Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, base, .. }) => Ok(base),
        _ => Err(ConvertError::Class { file: class(file), memory: "sequence" }),
    }
}

impl<T: H5Type> H5Type for Vec<T> {
    type Decoder = SequenceCodec<T::Decoder>;
    type Encoder = SequenceCodec<T::Encoder>;

    fn datatype() -> Datatype {
        Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: 16, base: Box::new(T::datatype()) })
    }

    fn placeholder() -> Self {
        Vec::new()
    }

    fn decoder(file: &Datatype) -> Result<Self::Decoder, ConvertError> {
        let base = base(file)?;
        Ok(SequenceCodec { element: T::decoder(base)?, size: base.size().max(1) as usize })
    }

    fn decode(
        decoder: &Self::Decoder,
        element: &[u8],
        into: &mut Self,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let bytes = context.read_varlen(element)?;
        if !bytes.len().is_multiple_of(decoder.size) {
            return Err(ConvertError::Truncated { expected: decoder.size, found: bytes.len() % decoder.size });
        }
        into.clear();
        into.resize(bytes.len() / decoder.size, T::placeholder());
        T::decode_slice(&decoder.element, &bytes, decoder.size, into, context)
    }

    fn encoder(file: &Datatype) -> Result<Self::Encoder, ConvertError> {
        let base = base(file)?;
        Ok(SequenceCodec { element: T::encoder(base)?, size: base.size().max(1) as usize })
    }

    fn encode(
        &self,
        encoder: &Self::Encoder,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let mut bytes = blank_elements(self.len(), encoder.size)?;
        T::encode_slice(&encoder.element, self, &mut bytes, encoder.size, context)?;
        context.write_varlen(&bytes, self.len(), element)
    }
}
