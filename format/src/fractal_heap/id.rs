//! Fractal heap IDs: where an object of a heap is (format specification 4.0, III.G, "Fractal Heap ID").

use crate::{Addr, Fault, Record, Result, Width, Widths, Wire};

/// The shape of the IDs of a heap. It follows from the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FractalHeapIdFormat {
    /// Bytes of an ID.
    pub id_len: u16,
    /// The width of offsets in heap space.
    pub offset_width: Width,
    /// The width of lengths of managed objects.
    pub length_width: Width,
    /// Whether the heap has filters.
    pub has_filters: bool,
    /// The widths of the file.
    pub widths: Widths,
}

/// The longest tiny object whose length fits into the first byte of an ID.
const MAX_SHORT_TINY_BYTES: usize = 16;

impl FractalHeapIdFormat {
    /// Bytes of an ID after the first.
    fn body_bytes(&self) -> usize {
        usize::from(self.id_len).saturating_sub(1)
    }

    /// Whether IDs of huge objects hold their address, and not a number.
    pub fn has_direct_huge_ids(&self) -> bool {
        let plain = self.widths.offset.bytes().saturating_add(self.widths.length.bytes());
        let filtered = if self.has_filters { self.widths.length.bytes().saturating_add(4) } else { 0 };
        plain.saturating_add(filtered) <= self.body_bytes()
    }

    /// The width of numbers of huge objects.
    pub fn huge_object_number_width(&self) -> Width {
        u8::try_from(self.body_bytes()).ok().and_then(Width::new).unwrap_or(Width::EIGHT)
    }

    /// Whether lengths of tiny objects take a second byte.
    fn is_extended(&self) -> bool {
        self.body_bytes() > MAX_SHORT_TINY_BYTES.saturating_add(1)
    }

    /// Bytes of the largest tiny object.
    pub fn max_tiny_object_bytes(&self) -> usize {
        if self.is_extended() {
            self.body_bytes().saturating_sub(1).min(0x1000)
        } else {
            self.body_bytes().min(MAX_SHORT_TINY_BYTES)
        }
    }

    /// An ID of this shape: context for decoding.
    pub fn id_of(self, place: HeapObjectLocation) -> FractalHeapId {
        FractalHeapId { shape: self, location: place }
    }
}

/// The place of an object of a heap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HeapObjectLocation {
    /// In a direct block.
    Managed {
        /// From the start of heap space (bytes).
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Outside the heap, under a number in the B-tree of huge objects.
    HugeIndirect(u64),
    /// Outside the heap, at an address.
    HugeDirect {
        /// The object.
        addr: Addr,
        /// Stored bytes, after the filters.
        length: u64,
        /// Bit `i` set: filter `i` was skipped. 0 in heaps without filters.
        filter_mask: u32,
        /// Bytes of the object; the same as `length` in heaps without filters.
        size: u64,
    },
    /// In the ID itself.
    Tiny(Vec<u8>),
}

impl Default for HeapObjectLocation {
    fn default() -> Self {
        HeapObjectLocation::Managed { offset: 0, length: 0 }
    }
}

/// The ID of an object of a heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FractalHeapId {
    shape: FractalHeapIdFormat,
    /// Where the object is.
    pub location: HeapObjectLocation,
}

const MANAGED: u8 = 0;
const HUGE: u8 = 1;
const TINY: u8 = 2;

impl FractalHeapId {
    fn kind_bits(&self) -> u8 {
        match self.location {
            HeapObjectLocation::Managed { .. } => MANAGED,
            HeapObjectLocation::HugeIndirect(_) | HeapObjectLocation::HugeDirect { .. } => HUGE,
            HeapObjectLocation::Tiny(_) => TINY,
        }
    }

    /// A tiny object. `low` holds the low bits of the ID's first byte.
    fn wire_tiny_object(shape: FractalHeapIdFormat, w: &mut impl Wire, low: u8, data: &mut Vec<u8>) -> Result<()> {
        let mut len = usize::from(low);
        if shape.is_extended() {
            let written = data.len().saturating_sub(1) & 0xff;
            let second = w.derived_u8("length", u8::try_from(written).unwrap_or(u8::MAX))?;
            len = (len << 8) | usize::from(second);
        }
        let len = len.saturating_add(1);
        if len > shape.max_tiny_object_bytes() {
            return Err(
                w.fault("length", Fault::TooLarge { found: len as u64, limit: shape.max_tiny_object_bytes() as u64 })
            );
        }
        w.bytes("data", len, data)
    }

    /// The low four bits of the first byte, which tiny objects have for their length.
    fn low_bits(&self) -> u8 {
        let len = match &self.location {
            HeapObjectLocation::Tiny(data) => data.len().saturating_sub(1),
            _ => 0,
        };
        let low = if self.shape.is_extended() { (len >> 8) & 0x0f } else { len & 0x0f };
        u8::try_from(low).unwrap_or(0)
    }
}

impl Record for FractalHeapId {
    const NAME: &'static str = "heap ID";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let start = w.position();
        let shape = self.shape;
        let first = w.derived_u8("version and type", (self.kind_bits() << 4) | self.low_bits())?;
        if first >> 6 != 0 {
            return Err(w.fault("version", Fault::UnsupportedVersion { allowed: 0..=0, found: first >> 6 }));
        }
        if w.is_decoding() {
            self.location = match (first >> 4) & 0x03 {
                MANAGED => HeapObjectLocation::default(),
                HUGE if shape.has_direct_huge_ids() => {
                    HeapObjectLocation::HugeDirect { addr: Addr::UNDEFINED, length: 0, filter_mask: 0, size: 0 }
                }
                HUGE => HeapObjectLocation::HugeIndirect(0),
                TINY => HeapObjectLocation::Tiny(Vec::new()),
                found => {
                    let rule = "a type is 0 (managed), 1 (huge) or 2 (tiny)";
                    return Err(w.fault("type", Fault::InvalidValue { found: found.into(), rule }));
                }
            };
        }
        match &mut self.location {
            HeapObjectLocation::Managed { offset, length } => {
                w.uint("offset", shape.offset_width, offset)?;
                w.uint("length", shape.length_width, length)?;
            }
            HeapObjectLocation::HugeIndirect(number) => w.uint("number", shape.huge_object_number_width(), number)?,
            HeapObjectLocation::HugeDirect { addr, length, filter_mask, size } => {
                w.addr("address", addr)?;
                w.length("length", length)?;
                if shape.has_filters {
                    w.u32("filter mask", filter_mask)?;
                    w.length("object size", size)?;
                } else {
                    *size = *length;
                }
            }
            HeapObjectLocation::Tiny(data) => Self::wire_tiny_object(shape, w, first & 0x0f, data)?,
        }
        let used = w.position().saturating_sub(start);
        let fault = Fault::TooLarge { found: used as u64, limit: shape.id_len.into() };
        match usize::from(shape.id_len).checked_sub(used).ok_or_else(|| w.fault("heap ID", fault))? {
            0 => Ok(()),
            rest => w.reserved(rest),
        }
    }
}
