//! The caller's side of a transfer: buffers of values, or of elements as the file has them.

use std::ops::Range;

use h5live_model::BoundSelection;

use crate::Value;
use crate::convert::{ConversionPolicy, ConvertError, ElementPlan};
use crate::error::ErrorKind;
use crate::types::{ConversionContext, H5Type, H5Write};
use crate::value::{DecodePlan, EncodePlan, ValueBudget};

/// Converts values one by one, after the conversion of all at once has failed. So the error says which value it is, and
/// a read of variable-length data that its writer has completed meanwhile succeeds.
///
/// # Errors
/// The error of the first value that `convert_next` fails to convert, with its position. The first value is the one at
/// `first`.
fn convert_one_by_one(
    first: usize,
    mut convert_next: impl FnMut() -> Option<Result<(), ConvertError>>,
) -> Result<(), ConvertError> {
    let mut index = first as u64;
    while let Some(converted) = convert_next() {
        converted.map_err(|source| ConvertError::Element { index, source: Box::new(source) })?;
        index += 1;
    }
    Ok(())
}

/// The destination of a read.
pub(crate) trait ElementSink: Send + Sized {
    /// Whether elements stay in the file's form, with places in the heap of the file.
    const KEEPS_HEAP_IDS: bool;

    /// Converts elements, whose variable-length data is in `context`, into a range of places.
    fn put_elements(
        &mut self,
        places: Range<usize>,
        elements: &[u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError>;

    /// Converts one element into every place of a range.
    fn fill_with(
        &mut self,
        places: Range<usize>,
        element: &[u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError>;

    /// The memory of a range of places, if elements are stored there without conversion.
    fn direct_bytes_mut(&mut self, places: Range<usize>) -> Option<&mut [u8]>;

    /// Two sinks: for the first `n` places, and for the rest.
    fn split(self, n: usize) -> (Self, Self);
}

/// The source of a write.
pub(crate) trait ElementSource: Sync {
    /// Converts a range of values into elements.
    fn get_elements(&self, places: Range<usize>, elements: &mut [u8]) -> Result<(), ConvertError>;

    /// The memory of a range of values, if they need no conversion.
    fn direct_bytes(&self, places: Range<usize>) -> Option<&[u8]>;

    /// Refuses values of which some cannot be converted, before any is written.
    fn check(&self) -> Result<(), ConvertError>;
}

/// Bytes of elements that are looked at together before they are written.
const MAX_CHECKED_BYTES: usize = 1 << 16;
/// Values that are looked at together before they are written.
const CHECKED_VALUES: usize = 1 << 10;

/// Converts all values to nowhere. `convert` converts those at some places.
fn check_all(
    values: usize,
    size: usize,
    mut convert: impl FnMut(Range<usize>, &mut [u8]) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    let step = (MAX_CHECKED_BYTES / size.max(1)).clamp(1, CHECKED_VALUES);
    let mut elements = vec![0; step.min(values).saturating_mul(size)];
    (0..values).step_by(step).try_for_each(|at| {
        let places = at..values.min(at + step);
        let len = places.len().saturating_mul(size);
        convert(places, &mut elements[..len])
    })
}

/// Values of a type.
pub(crate) struct TypedSink<'a, T: H5Type> {
    pub(crate) values: &'a mut [T],
    pub(crate) decoder: &'a T::Decoder,
    pub(crate) size: usize,
    pub(crate) conversion: ConversionPolicy,
    /// The position of the first value among those of the caller.
    pub(crate) first: usize,
}

impl<T: H5Type> ElementSink for TypedSink<'_, T> {
    const KEEPS_HEAP_IDS: bool = false;

    fn put_elements(
        &mut self,
        places: Range<usize>,
        elements: &[u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let (context, first) = (context.with_conversion(self.conversion), self.first + places.start);
        let values = &mut self.values[places];
        if let [value] = values {
            let index = first as u64;
            return T::decode(self.decoder, elements, value, context)
                .map_err(|source| ConvertError::Element { index, source: Box::new(source) });
        }
        T::decode_slice(self.decoder, elements, self.size, values, context).or_else(|_| {
            let mut pairs = values.iter_mut().zip(elements.chunks_exact(self.size.max(1)));
            convert_one_by_one(first, || pairs.next().map(|(value, one)| T::decode(self.decoder, one, value, context)))
        })
    }

    fn fill_with(
        &mut self,
        places: Range<usize>,
        element: &[u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let mut value = T::placeholder();
        T::decode(self.decoder, element, &mut value, context.with_conversion(self.conversion))?;
        self.values[places].fill(value);
        Ok(())
    }

    fn direct_bytes_mut(&mut self, places: Range<usize>) -> Option<&mut [u8]> {
        T::as_stored_mut(self.decoder, &mut self.values[places])
    }

    fn split(self, n: usize) -> (Self, Self) {
        let TypedSink { values, decoder, size, conversion, first } = self;
        let (before, after) = values.split_at_mut(n);
        let part = |values, first| TypedSink { values, decoder, size, conversion, first };
        (part(before, first), part(after, first + n))
    }
}

/// Elements as the file has them.
pub(crate) struct RawSink<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) size: usize,
}

impl RawSink<'_> {
    fn range_mut(&mut self, places: Range<usize>) -> &mut [u8] {
        &mut self.bytes[places.start * self.size..places.end * self.size]
    }
}

impl ElementSink for RawSink<'_> {
    const KEEPS_HEAP_IDS: bool = true;

    fn put_elements(
        &mut self,
        places: Range<usize>,
        elements: &[u8],
        _heap: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        self.range_mut(places).copy_from_slice(elements);
        Ok(())
    }

    fn fill_with(
        &mut self,
        places: Range<usize>,
        element: &[u8],
        _heap: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let size = self.size;
        self.range_mut(places).chunks_exact_mut(size).for_each(|place| place.copy_from_slice(element));
        Ok(())
    }

    fn direct_bytes_mut(&mut self, places: Range<usize>) -> Option<&mut [u8]> {
        Some(self.range_mut(places))
    }

    fn split(self, n: usize) -> (Self, Self) {
        let (first, rest) = self.bytes.split_at_mut(n * self.size);
        (RawSink { bytes: first, size: self.size }, RawSink { bytes: rest, size: self.size })
    }
}

/// Values of types that the program does not know.
pub(crate) struct ValueSink<'a> {
    pub(crate) values: &'a mut [Value],
    pub(crate) plan: &'a DecodePlan,
    pub(crate) memory: &'a ValueBudget,
}

impl ElementSink for ValueSink<'_> {
    const KEEPS_HEAP_IDS: bool = false;

    fn put_elements(
        &mut self,
        places: Range<usize>,
        elements: &[u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let elements = elements.chunks_exact(self.plan.size());
        let values = self.values[places].iter_mut();
        for (value, element) in values.zip(elements) {
            *value = self.plan.value_within(element, Some(context.store()), self.memory, 1)?;
        }
        Ok(())
    }

    fn fill_with(
        &mut self,
        places: Range<usize>,
        element: &[u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let copies = places.len();
        self.values[places].fill(self.plan.value_within(element, Some(context.store()), self.memory, copies)?);
        Ok(())
    }

    fn direct_bytes_mut(&mut self, _places: Range<usize>) -> Option<&mut [u8]> {
        None
    }

    fn split(self, n: usize) -> (Self, Self) {
        let ValueSink { values, plan, memory } = self;
        let (first, rest) = values.split_at_mut(n);
        (ValueSink { values: first, plan, memory }, ValueSink { values: rest, plan, memory })
    }
}

/// Elements in the form of another datatype.
pub(crate) struct ConvertedSink<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) plan: &'a ElementPlan,
    pub(crate) conversion: ConversionPolicy,
}

impl ConvertedSink<'_> {
    fn range_mut(&mut self, places: Range<usize>) -> &mut [u8] {
        let size = self.plan.output_size();
        &mut self.bytes[places.start * size..places.end * size]
    }
}

impl ElementSink for ConvertedSink<'_> {
    const KEEPS_HEAP_IDS: bool = true;

    fn put_elements(
        &mut self,
        places: Range<usize>,
        elements: &[u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let plan = self.plan;
        let context = context.with_conversion(self.conversion);
        plan.convert_elements(elements, self.range_mut(places), context)
    }

    fn fill_with(
        &mut self,
        places: Range<usize>,
        element: &[u8],
        context: ConversionContext<'_>,
    ) -> Result<(), ConvertError> {
        let plan = self.plan;
        let mut converted = vec![0; plan.output_size()];
        plan.convert_elements(element, &mut converted, context.with_conversion(self.conversion))?;
        self.range_mut(places).chunks_exact_mut(converted.len()).for_each(|place| place.copy_from_slice(&converted));
        Ok(())
    }

    fn direct_bytes_mut(&mut self, places: Range<usize>) -> Option<&mut [u8]> {
        self.plan.is_copy().then(|| self.range_mut(places))
    }

    fn split(self, n: usize) -> (Self, Self) {
        let ConvertedSink { bytes, plan, conversion } = self;
        let (first, rest) = bytes.split_at_mut(n * plan.output_size());
        (ConvertedSink { bytes: first, plan, conversion }, ConvertedSink { bytes: rest, plan, conversion })
    }
}

/// Values of a type to be written.
pub(crate) struct TypedSource<'a, T: H5Write> {
    pub(crate) values: &'a [T],
    pub(crate) encoder: &'a <T::Element as H5Type>::Encoder,
    pub(crate) size: usize,
    pub(crate) context: ConversionContext<'a>,
}

impl<T: H5Write> ElementSource for TypedSource<'_, T> {
    fn get_elements(&self, places: Range<usize>, elements: &mut [u8]) -> Result<(), ConvertError> {
        let (first, values) = (places.start, &self.values[places]);
        T::encode_elements(self.encoder, values, elements, self.size, self.context).or_else(|_| {
            let mut pairs = values.iter().zip(elements.chunks_exact_mut(self.size.max(1)));
            convert_one_by_one(first, || {
                pairs.next().map(|(value, one)| value.encode_element(self.encoder, one, self.context))
            })
        })
    }

    fn direct_bytes(&self, places: Range<usize>) -> Option<&[u8]> {
        T::as_stored_elements_with_encoder(self.encoder, &self.values[places])
    }

    fn check(&self) -> Result<(), ConvertError> {
        if !T::Element::may_refuse(self.encoder) {
            return Ok(());
        }
        let source = TypedSource { context: self.context.for_check(), ..*self };
        check_all(self.values.len(), self.size, |places, elements| source.get_elements(places, elements))
    }
}

/// Values of types that the program does not know, to be written.
pub(crate) struct ValueSource<'a> {
    pub(crate) values: &'a [Value],
    pub(crate) plan: &'a EncodePlan,
    pub(crate) context: ConversionContext<'a>,
}

impl ElementSource for ValueSource<'_> {
    fn get_elements(&self, places: Range<usize>, elements: &mut [u8]) -> Result<(), ConvertError> {
        let (first, values) = (places.start, &self.values[places]);
        self.plan.encode_slice(values, elements, self.context).or_else(|_| {
            let mut pairs = values.iter().zip(elements.chunks_exact_mut(self.plan.size().max(1)));
            convert_one_by_one(first, || pairs.next().map(|(value, one)| self.plan.encode(value, one, self.context)))
        })
    }

    fn direct_bytes(&self, _places: Range<usize>) -> Option<&[u8]> {
        None
    }

    fn check(&self) -> Result<(), ConvertError> {
        let source = ValueSource { context: self.context.for_check(), ..*self };
        check_all(self.values.len(), self.plan.size(), |places, elements| source.get_elements(places, elements))
    }
}

/// Elements that are written without conversion.
pub(crate) struct RawSource<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) size: usize,
}

impl ElementSource for RawSource<'_> {
    fn get_elements(&self, places: Range<usize>, elements: &mut [u8]) -> Result<(), ConvertError> {
        elements.copy_from_slice(&self.bytes[places.start * self.size..places.end * self.size]);
        Ok(())
    }

    fn direct_bytes(&self, places: Range<usize>) -> Option<&[u8]> {
        Some(&self.bytes[places.start * self.size..places.end * self.size])
    }

    fn check(&self) -> Result<(), ConvertError> {
        Ok(())
    }
}

/// The number of elements of `size` bytes that bytes are.
pub(super) fn raw_element_count(bytes: &[u8], size: usize) -> Result<usize, ErrorKind> {
    match bytes.len() % size {
        0 => Ok(bytes.len() / size),
        found => Err(ConvertError::Truncated { expected: size, found }.into()),
    }
}

/// Checks that there are as many values as elements are selected.
pub(super) fn check_length(selected: &BoundSelection, found: usize) -> Result<(), ErrorKind> {
    let (expected, found) = (selected.element_count(), found as u64);
    if expected == found { Ok(()) } else { Err(ErrorKind::ElementCount { expected, found }) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use h5live_model::Datatype;
    use h5live_model::memory::MemoryStore;

    use super::*;

    /// A number whose elements cannot be decoded some times: a writer is about to write what they lead to.
    #[derive(Clone, Debug, PartialEq)]
    struct Late(u8);

    /// How often elements of 9 cannot be decoded.
    struct Failures(AtomicU32);

    impl H5Type for Late {
        type Decoder = Failures;
        type Encoder = ();

        fn datatype() -> Datatype {
            u8::datatype()
        }

        fn placeholder() -> Self {
            Late(0)
        }

        fn decoder(_file: &Datatype) -> Result<Failures, ConvertError> {
            Ok(Failures(AtomicU32::new(0)))
        }

        fn decode(
            failures: &Failures,
            element: &[u8],
            into: &mut Self,
            _heap: ConversionContext<'_>,
        ) -> Result<(), ConvertError> {
            let fails = element[0] == 9
                && failures.0.try_update(Ordering::Relaxed, Ordering::Relaxed, |times| times.checked_sub(1)).is_ok();
            if fails {
                return Err(ConvertError::Truncated { expected: 2, found: 1 });
            }
            *into = Late(element[0]);
            Ok(())
        }

        fn encoder(_file: &Datatype) -> Result<(), ConvertError> {
            Ok(())
        }

        fn encode(&self, (): &(), element: &mut [u8], _heap: ConversionContext<'_>) -> Result<(), ConvertError> {
            element[0] = self.0;
            Ok(())
        }
    }

    /// Reads the elements 3, 9 and 5 when the second cannot be decoded this often.
    fn read(times: u32) -> Result<Vec<Late>, ConvertError> {
        let (store, decoder) = (MemoryStore::new(), Failures(AtomicU32::new(times)));
        let mut values = vec![Late::placeholder(); 3];
        let conversion = ConversionPolicy::Checked;
        let mut sink = TypedSink { values: &mut values, decoder: &decoder, size: 1, conversion, first: 10 };
        sink.put_elements(0..3, &[3, 9, 5], ConversionContext::new(&store)).map(|()| values)
    }

    #[test]
    fn values_that_become_readable_during_the_read_are_read() {
        assert_eq!(read(1).unwrap(), [Late(3), Late(9), Late(5)]);
    }

    #[test]
    fn a_value_that_stays_unreadable_is_named_with_its_position() {
        assert!(read(2).unwrap_err().to_string().starts_with("values[11]: "));
    }
}
