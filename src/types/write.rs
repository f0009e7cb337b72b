//! Types whose values can be written.

use h5live_model::Datatype;

use super::strings::StringCodec;
use super::{ConversionContext, H5Type, strings};
use crate::convert::ConvertError;

/// The way from values of a type to elements of a datatype.
type ElementEncoder<W> = <<W as H5Write>::Element as H5Type>::Encoder;

/// A type whose values can be written: every [`H5Type`], and `&str`, which is read as [`String`].
///
/// ```
/// use h5live::File;
///
/// let file = File::in_memory();
/// let names = file.new_dataset::<String>().unlimited_rows(&[]).create("names")?;
/// names.append(&["Ada", "Grace"])?;
/// names.set_attribute("language", "en")?;
/// assert_eq!(names.read::<String>()?, ["Ada", "Grace"]);
/// # Ok::<(), h5live::Error>(())
/// ```
pub trait H5Write: Clone + Sync {
    /// The type that reads what was written. It says which datatype a file gets, and what can be converted.
    type Element: H5Type;

    #[doc(hidden)]
    fn encode_element(
        &self,
        encoder: &ElementEncoder<Self>,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError>;

    #[doc(hidden)]
    fn encode_elements(
        encoder: &ElementEncoder<Self>,
        values: &[Self],
        elements: &mut [u8],
        size: usize,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let elements = elements.chunks_exact_mut(size.max(1));
        values.iter().zip(elements).try_for_each(|(value, element)| value.encode_element(encoder, element, context))
    }

    #[doc(hidden)]
    fn as_stored_elements_with_encoder<'a>(encoder: &ElementEncoder<Self>, values: &'a [Self]) -> Option<&'a [u8]> {
        let _ = (encoder, values);
        None
    }

    #[doc(hidden)]
    fn as_stored_elements<'a>(file: &Datatype, values: &'a [Self]) -> Option<&'a [u8]> {
        let _ = (file, values);
        None
    }
}

impl<T: H5Type> H5Write for T {
    type Element = T;

    #[inline]
    fn encode_element(
        &self,
        encoder: &T::Encoder,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        self.encode(encoder, element, context)
    }

    fn encode_elements(
        encoder: &T::Encoder,
        values: &[T],
        elements: &mut [u8],
        size: usize,
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        T::encode_slice(encoder, values, elements, size, context)
    }

    fn as_stored_elements_with_encoder<'a>(encoder: &T::Encoder, values: &'a [T]) -> Option<&'a [u8]> {
        T::as_stored_with_encoder(encoder, values)
    }

    fn as_stored_elements<'a>(file: &Datatype, values: &'a [T]) -> Option<&'a [u8]> {
        T::as_stored(file, values)
    }
}

impl H5Write for &str {
    type Element = String;

    fn encode_element(
        &self,
        encoder: &StringCodec,
        element: &mut [u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        strings::encode(encoder, self.as_bytes(), element, context)
    }
}

#[cfg(test)]
mod tests {
    use crate::{ConversionPolicy, ErrorKind, File, FixedStr, H5Type};

    #[test]
    fn texts_are_written_as_they_are() {
        let file = File::in_memory();
        let owned = String::from("borrowed");
        let borrowed: &str = &owned;
        let fixed = file.new_dataset::<FixedStr<9>>().shape(&[3]).fill("none").create("fixed").unwrap();
        fixed.write_slice(1.., &["two", borrowed]).unwrap();
        assert_eq!(fixed.read::<String>().unwrap(), ["none", "two", "borrowed"]);
        assert!(matches!(fixed.write_slice(0, &["ten letters"]).unwrap_err().kind(), ErrorKind::Convert(_)));
        let data = file.new_dataset::<String>().create_with_data("data", &["a", "b"]).unwrap();
        data.write_slice(1, &["c"]).unwrap();
        assert_eq!(data.read::<String>().unwrap(), ["a", "c"]);
        data.set_attribute("unit", "counts").unwrap();
        data.set_attribute("borrowed", &borrowed).unwrap();
        data.set_attribute_array("axes", &["y", "x"], &[2]).unwrap();
        assert_eq!(data.attribute("unit").unwrap().datatype(), &String::datatype());
        assert_eq!(data.attribute("axes").unwrap().read::<String>().unwrap(), ["y", "x"]);
        assert!(file.new_dataset::<f64>().create_with_data("numbers", &["1"]).is_err());
    }

    #[test]
    fn a_text_that_would_end_at_a_nul_is_refused_unless_it_may_be_cut() {
        let file = File::in_memory();
        let any = file.new_dataset::<String>().shape(&[1]).create("any").unwrap();
        let fixed = file.new_dataset::<FixedStr<3>>().shape(&[1]).create("fixed").unwrap();
        for (data, text, kept) in
            [(&any, "a\0b", "a"), (&fixed, "ab\0", "ab"), (&fixed, "aü€", "aü"), (&fixed, "ab€", "ab")]
        {
            assert!(matches!(data.write(&[text]).unwrap_err().kind(), ErrorKind::Convert(_)), "{text:?}");
            assert_eq!(data.read::<String>().unwrap(), [""], "{text:?}");
            data.with_conversion(ConversionPolicy::Lossy).write(&[text]).unwrap();
            assert_eq!(data.read::<String>().unwrap(), [kept], "{text:?}");
            data.write(&[""]).unwrap();
        }
        assert!(any.set_attribute("note", "a\0b").is_err());
    }
}
