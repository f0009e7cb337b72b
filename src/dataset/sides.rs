//! The caller's side of a transfer: buffers of values, or of elements as the file has them.

use std::ops::Range;

use crate::Value;
use crate::convert::{ConvertError, ElementPlan};
use crate::types::{H5Type, Heap};
use crate::value::{EncodePlan, ValuePlan};

/// What elements are read into.
pub(crate) trait Sink: Send + Sized {
    /// Whether elements stay in the file's form, with places in the heap of the file.
    const KEEPS_PLACES: bool;

    /// Converts elements, whose variable-length data is in `heap`, into a range of places.
    fn put(&mut self, places: Range<usize>, elements: &[u8], heap: Heap<'_>) -> Result<(), ConvertError>;

    /// Converts one element into every place of a range.
    fn fill(&mut self, places: Range<usize>, element: &[u8], heap: Heap<'_>) -> Result<(), ConvertError>;

    /// The memory of a range of places, if elements go there as they are.
    fn direct(&mut self, places: Range<usize>) -> Option<&mut [u8]>;

    /// Two sinks: for the first `n` places, and for the rest.
    fn split(self, n: usize) -> (Self, Self);
}

/// What elements are written from.
pub(crate) trait Source: Sync {
    /// Converts a range of values into elements.
    fn get(&self, places: Range<usize>, elements: &mut [u8]) -> Result<(), ConvertError>;

    /// The memory of a range of values, if they are elements as they are.
    fn direct(&self, places: Range<usize>) -> Option<&[u8]>;
}

/// Values of a type.
pub(crate) struct Values<'a, T: H5Type> {
    pub(crate) values: &'a mut [T],
    pub(crate) decoder: &'a T::Decoder,
    pub(crate) size: usize,
}

impl<T: H5Type> Sink for Values<'_, T> {
    const KEEPS_PLACES: bool = false;

    fn put(&mut self, places: Range<usize>, elements: &[u8], heap: Heap<'_>) -> Result<(), ConvertError> {
        match &mut self.values[places] {
            [value] => T::decode(self.decoder, elements, value, heap),
            values => T::decode_slice(self.decoder, elements, self.size, values, heap),
        }
    }

    fn fill(&mut self, places: Range<usize>, element: &[u8], heap: Heap<'_>) -> Result<(), ConvertError> {
        let mut value = T::placeholder();
        T::decode(self.decoder, element, &mut value, heap)?;
        self.values[places].fill(value);
        Ok(())
    }

    fn direct(&mut self, places: Range<usize>) -> Option<&mut [u8]> {
        T::decode_in_place(self.decoder, &mut self.values[places])
    }

    fn split(self, n: usize) -> (Self, Self) {
        let Values { values, decoder, size } = self;
        let (first, rest) = values.split_at_mut(n);
        (Values { values: first, decoder, size }, Values { values: rest, decoder, size })
    }
}

/// Elements as the file has them.
pub(crate) struct RawMut<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) size: usize,
}

impl RawMut<'_> {
    fn at(&mut self, places: Range<usize>) -> &mut [u8] {
        &mut self.bytes[places.start * self.size..places.end * self.size]
    }
}

impl Sink for RawMut<'_> {
    const KEEPS_PLACES: bool = true;

    fn put(&mut self, places: Range<usize>, elements: &[u8], _heap: Heap<'_>) -> Result<(), ConvertError> {
        self.at(places).copy_from_slice(elements);
        Ok(())
    }

    fn fill(&mut self, places: Range<usize>, element: &[u8], _heap: Heap<'_>) -> Result<(), ConvertError> {
        let size = self.size;
        self.at(places).chunks_exact_mut(size).for_each(|place| place.copy_from_slice(element));
        Ok(())
    }

    fn direct(&mut self, places: Range<usize>) -> Option<&mut [u8]> {
        Some(self.at(places))
    }

    fn split(self, n: usize) -> (Self, Self) {
        let (first, rest) = self.bytes.split_at_mut(n * self.size);
        (RawMut { bytes: first, size: self.size }, RawMut { bytes: rest, size: self.size })
    }
}

/// Values of types that the program does not know.
pub(crate) struct Dynamic<'a> {
    pub(crate) values: &'a mut [Value],
    pub(crate) plan: &'a ValuePlan,
}

impl Sink for Dynamic<'_> {
    const KEEPS_PLACES: bool = false;

    fn put(&mut self, places: Range<usize>, elements: &[u8], heap: Heap<'_>) -> Result<(), ConvertError> {
        let elements = elements.chunks_exact(self.plan.size());
        let values = self.values[places].iter_mut();
        values.zip(elements).for_each(|(value, element)| *value = self.plan.value(element, Some(heap.0)));
        Ok(())
    }

    fn fill(&mut self, places: Range<usize>, element: &[u8], heap: Heap<'_>) -> Result<(), ConvertError> {
        self.values[places].fill(self.plan.value(element, Some(heap.0)));
        Ok(())
    }

    fn direct(&mut self, _places: Range<usize>) -> Option<&mut [u8]> {
        None
    }

    fn split(self, n: usize) -> (Self, Self) {
        let Dynamic { values, plan } = self;
        let (first, rest) = values.split_at_mut(n);
        (Dynamic { values: first, plan }, Dynamic { values: rest, plan })
    }
}

/// Elements in the form of another datatype.
pub(crate) struct Converted<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) plan: &'a ElementPlan,
}

impl Converted<'_> {
    fn at(&mut self, places: Range<usize>) -> &mut [u8] {
        let size = self.plan.output_size();
        &mut self.bytes[places.start * size..places.end * size]
    }
}

impl Sink for Converted<'_> {
    const KEEPS_PLACES: bool = true;

    fn put(&mut self, places: Range<usize>, elements: &[u8], heap: Heap<'_>) -> Result<(), ConvertError> {
        let plan = self.plan;
        plan.run(elements, self.at(places), heap)
    }

    fn fill(&mut self, places: Range<usize>, element: &[u8], heap: Heap<'_>) -> Result<(), ConvertError> {
        let plan = self.plan;
        let mut converted = vec![0; plan.output_size()];
        plan.run(element, &mut converted, heap)?;
        self.at(places).chunks_exact_mut(converted.len()).for_each(|place| place.copy_from_slice(&converted));
        Ok(())
    }

    fn direct(&mut self, places: Range<usize>) -> Option<&mut [u8]> {
        self.plan.is_copy().then(|| self.at(places))
    }

    fn split(self, n: usize) -> (Self, Self) {
        let Converted { bytes, plan } = self;
        let (first, rest) = bytes.split_at_mut(n * plan.output_size());
        (Converted { bytes: first, plan }, Converted { bytes: rest, plan })
    }
}

/// Values of a type to be written.
pub(crate) struct Input<'a, T: H5Type> {
    pub(crate) values: &'a [T],
    pub(crate) encoder: &'a T::Encoder,
    pub(crate) size: usize,
    pub(crate) heap: Heap<'a>,
}

impl<T: H5Type> Source for Input<'_, T> {
    fn get(&self, places: Range<usize>, elements: &mut [u8]) -> Result<(), ConvertError> {
        T::encode_slice(self.encoder, &self.values[places], elements, self.size, self.heap)
    }

    fn direct(&self, places: Range<usize>) -> Option<&[u8]> {
        T::encode_in_place(self.encoder, &self.values[places])
    }
}

/// Values of types that the program does not know, to be written.
pub(crate) struct DynamicInput<'a> {
    pub(crate) values: &'a [Value],
    pub(crate) plan: &'a EncodePlan,
    pub(crate) heap: Heap<'a>,
}

impl Source for DynamicInput<'_> {
    fn get(&self, places: Range<usize>, elements: &mut [u8]) -> Result<(), ConvertError> {
        self.plan.run_all(&self.values[places], elements, self.heap)
    }

    fn direct(&self, _places: Range<usize>) -> Option<&[u8]> {
        None
    }
}

/// Elements to be written as they are.
pub(crate) struct Raw<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) size: usize,
}

impl Source for Raw<'_> {
    fn get(&self, places: Range<usize>, elements: &mut [u8]) -> Result<(), ConvertError> {
        elements.copy_from_slice(&self.bytes[places.start * self.size..places.end * self.size]);
        Ok(())
    }

    fn direct(&self, places: Range<usize>) -> Option<&[u8]> {
        Some(&self.bytes[places.start * self.size..places.end * self.size])
    }
}
