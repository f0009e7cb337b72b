//! Booleans, as h5py keeps them: an enum FALSE, TRUE of one byte.

use h5live_model::{ByteOrder, Datatype, EnumMember, EnumType, Sign};

use super::{ConversionContext, H5Type};
use crate::convert::{ConversionPolicy, ConvertError};

impl H5Type for bool {
    type Decoder = <u64 as H5Type>::Decoder;
    type Encoder = <u8 as H5Type>::Encoder;

    fn datatype() -> Datatype {
        let member = |name: &str, value| EnumMember { name: name.into(), value: vec![value] };
        Datatype::Enum(EnumType {
            base: Box::new(Datatype::integer(1, ByteOrder::Little, Sign::Signed)),
            members: vec![member("FALSE", 0), member("TRUE", 1)],
        })
    }

    fn placeholder() -> Self {
        false
    }

    fn decoder(file: &Datatype) -> Result<Self::Decoder, ConvertError> {
        u64::decoder(file).map_err(named)
    }

    fn decode(
        decoder: &Self::Decoder,
        element: &[u8],
        into: &mut Self,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let mut value = 0;
        u64::decode(decoder, element, &mut value, context.with_conversion(ConversionPolicy::Lossy))?;
        // A negative value saturates to zero as a u64; the bytes tell.
        *into = value != 0 || element.iter().any(|byte| *byte != 0);
        Ok(())
    }

    fn encoder(file: &Datatype) -> Result<Self::Encoder, ConvertError> {
        u8::encoder(file).map_err(named)
    }

    fn encode(
        &self,
        encoder: &Self::Encoder,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        u8::from(*self).encode(encoder, element, context)
    }

    fn may_refuse(_encoder: &Self::Encoder) -> bool {
        false
    }
}

fn named(error: ConvertError) -> ConvertError {
    match error {
        ConvertError::Class { file, .. } => ConvertError::Class { file, memory: "bool" },
        other => other,
    }
}
