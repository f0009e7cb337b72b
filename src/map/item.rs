//! What may be given to a map as a key or a value.

use crate::convert::ConvertError;
use crate::types::{ConversionContext, H5Type, H5Write, StringCodec};

/// A key or a value that is given to a map of such keys or values: every [`H5Write`], and `str`.
pub trait EncodeAs<T: H5Type> {
    #[doc(hidden)]
    fn encode_as(
        &self,
        encoder: &T::Encoder,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError>;
}

impl<T: H5Type, W: H5Write<Element = T>> EncodeAs<T> for W {
    fn encode_as(
        &self,
        encoder: &T::Encoder,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        self.encode_element(encoder, element, context)
    }
}

impl EncodeAs<String> for str {
    fn encode_as(
        &self,
        encoder: &StringCodec,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        self.encode_element(encoder, element, context)
    }
}
