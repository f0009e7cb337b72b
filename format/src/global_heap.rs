//! Global heaps: variable-length data, region references, mappings of virtual datasets (format specification 4.0,
//! III.E).

use std::ops::Range;

use crate::{Addr, Encoder, Fault, Record, Result, Widths, Wire};

/// The place of an object in a global heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GlobalHeapId {
    /// The collection; undefined or 0 for no object.
    pub collection: Addr,
    /// The object in the collection.
    pub index: u32,
}

impl GlobalHeapId {
    /// The place of no object, as libhdf5 writes it for elements without bytes.
    pub const NOWHERE: GlobalHeapId = GlobalHeapId { collection: Addr::new(0), index: 0 };

    /// Whether the place is one where an object can be.
    pub fn is_defined(&self) -> bool {
        self.collection.get().is_some_and(|at| at != 0)
    }
}

impl Record for GlobalHeapId {
    const NAME: &'static str = "global heap ID";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.addr("collection", &mut self.collection)?;
        w.u32("object", &mut self.index)
    }
}

/// An object of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalHeapObject<'a> {
    /// Its number, unique in the collection.
    pub index: u16,
    /// How often it is referred to, where programs count that.
    pub reference_count: u16,
    /// The bytes.
    pub data: &'a [u8],
}

/// Where the bytes of an object are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ObjectPlace {
    index: u16,
    references: u16,
    /// Where the bytes of the object begin in the image.
    start: usize,
    /// Bytes of the object.
    len: usize,
}

/// A collection of objects, and its free space. It has no checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalHeapCollection {
    size: u64,
    /// All objects as the file has them, with headers and padding, up to the free space at the end.
    image: Vec<u8>,
    /// The objects, in the order of the file.
    objects: Vec<ObjectPlace>,
    /// The index of each object, and its number in `objects`, by index. Empty if `objects` are in this order.
    by_index: Vec<(u16, usize)>,
    /// Bytes of the free space at the end, its header included; 0 if there is none.
    free: u64,
}

impl Default for GlobalHeapCollection {
    fn default() -> Self {
        GlobalHeapCollection::new(Self::MIN_SIZE, Widths::default())
    }
}

impl GlobalHeapCollection {
    /// Bytes of the smallest collection.
    pub const MIN_SIZE: u64 = 4096;

    /// Bytes from the start of a collection that say how large it is.
    pub const PREFIX_BYTES: usize = 16;

    /// A collection of `size` bytes without objects.
    pub fn new(size: u64, widths: Widths) -> Self {
        let (image, objects, by_index) = (Vec::new(), Vec::new(), Vec::new());
        let mut heap = GlobalHeapCollection { size, image, objects, by_index, free: 0 };
        heap.set_free_bytes(size.saturating_sub(Self::object_header_bytes(widths)), widths);
        heap
    }

    /// Bytes of a collection in which an object of `len` bytes fits.
    pub fn collection_size_for(len: u64, widths: Widths) -> u64 {
        Self::object_space_bytes(len, widths).saturating_add(Self::object_header_bytes(widths)).max(Self::MIN_SIZE)
    }

    /// Bytes of the whole collection, as the file states them at its beginning.
    ///
    /// # Errors
    /// [`crate::DecodeError`] if the bytes do not begin with a collection.
    pub fn stated_size(bytes: &[u8], widths: Widths) -> Result<u64> {
        crate::decode_prefix::<GlobalHeapPrefix>(bytes, widths).map(|(prefix, _)| prefix.size)
    }

    /// Bytes of the whole collection.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The bytes of an object.
    #[inline]
    pub fn object_bytes(&self, index: u32) -> Option<&[u8]> {
        // Most collections have the objects 1, 2, 3 and so on.
        let usual = usize::try_from(index).ok()?.checked_sub(1)?;
        match self.objects.get(usual) {
            Some(object) if u32::from(object.index) == index => self.bytes_of(object),
            _ => self.bytes_of(self.objects.get(self.find_object(index)?)?),
        }
    }

    /// The number of an object in `objects`.
    fn find_object(&self, index: u32) -> Option<usize> {
        if self.by_index.is_empty() {
            return self.objects.binary_search_by_key(&index, |object| object.index.into()).ok();
        }
        let found = self.by_index.binary_search_by_key(&index, |(known, _)| u32::from(*known)).ok()?;
        self.by_index.get(found).map(|(_, number)| *number)
    }

    /// All objects, in the order of the file.
    pub fn objects(&self) -> impl Iterator<Item = GlobalHeapObject<'_>> {
        self.objects.iter().map(|object| GlobalHeapObject {
            index: object.index,
            reference_count: object.references,
            data: self.bytes_of(object).unwrap_or_default(),
        })
    }

    /// Adds an object, and returns its number. `None` if there is no space for it.
    pub fn insert_object(&mut self, data: &[u8], widths: Widths) -> Option<u16> {
        let mut inserted = None;
        self.insert_objects_while_room([data], widths, |index| inserted = Some(index));
        inserted
    }

    /// Adds objects up to the first for which there is no space, and calls `on_inserted` with the number of each.
    pub fn insert_objects_while_room<'a>(
        &mut self,
        objects: impl IntoIterator<Item = &'a [u8]>,
        widths: Widths,
        mut on_inserted: impl FnMut(u16),
    ) {
        let header = usize::try_from(Self::object_header_bytes(widths)).unwrap_or(usize::MAX);
        let mut image = std::mem::take(&mut self.image);
        // What comes later has a place already.
        image.reserve_exact(usize::try_from(self.free).unwrap_or(0));
        let mut encoder = Encoder::after(Self::NAME, image, widths);
        for data in objects {
            let len = data.len() as u64;
            let left = self.free.checked_sub(Self::object_space_bytes(len, widths));
            let (Some(index), Some(left), true) = (self.next_index(), left, len <= widths.length.max_value()) else {
                break;
            };
            let start = encoder.position().saturating_add(header);
            let padding = data.len().next_multiple_of(8).saturating_sub(data.len());
            let head = &mut ObjectHead { index, references: 0, size: len };
            if head
                .wire(&mut encoder)
                .and_then(|()| encoder.slice(data))
                .and_then(|()| encoder.reserved(padding))
                .is_err()
            {
                break;
            }
            if !self.by_index.is_empty() {
                self.by_index.push((index, self.objects.len()));
            }
            self.objects.push(ObjectPlace { index, references: 0, start, len: data.len() });
            self.set_free_bytes(left, widths);
            on_inserted(index);
        }
        self.image = encoder.into_bytes();
    }

    /// The number of the next object, if there is one more.
    fn next_index(&self) -> Option<u16> {
        let last = match self.by_index.last() {
            Some((last, _)) => Some(*last),
            None => self.objects.last().map(|object| object.index),
        };
        last.map_or(Some(1), |last| last.checked_add(1))
    }

    /// Removes objects; those behind them move forward. Returns how many there were.
    pub fn remove_objects(&mut self, is_removed: impl Fn(u32) -> bool, widths: Widths) -> usize {
        let before = self.objects.len();
        let image = std::mem::take(&mut self.image);
        let header = usize::try_from(Self::object_header_bytes(widths)).unwrap_or(usize::MAX);
        self.objects.retain_mut(|object| {
            let end = object.start.saturating_add(object.len.next_multiple_of(8));
            let Some(kept) = image.get(object.start.saturating_sub(header)..end) else { return false };
            if is_removed(object.index.into()) {
                return false;
            }
            object.start = self.image.len().saturating_add(header);
            self.image.extend_from_slice(kept);
            true
        });
        let used = Self::object_header_bytes(widths).saturating_add(self.image.len() as u64);
        self.set_free_bytes(self.size.saturating_sub(used), widths);
        self.sort_by_index();
        before.saturating_sub(self.objects.len())
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether there are room and a number for an object of `len` bytes.
    pub fn has_room_for(&self, len: u64, widths: Widths) -> bool {
        self.next_index().is_some() && self.free >= Self::object_space_bytes(len, widths)
    }

    /// Bytes behind the last object in which another fits, its header included.
    pub fn free_bytes_at_end(&self) -> u64 {
        self.free
    }

    #[inline]
    fn bytes_of(&self, object: &ObjectPlace) -> Option<&[u8]> {
        self.image.get(object.start..)?.get(..object.len)
    }

    /// Bytes before the first object, and before the bytes of each.
    fn object_header_bytes(widths: Widths) -> u64 {
        (widths.length.bytes() as u64).saturating_add(8).next_multiple_of(8)
    }

    /// Bytes that an object of `len` bytes takes, with header and padding.
    pub fn object_space_bytes(len: u64, widths: Widths) -> u64 {
        Self::object_header_bytes(widths).saturating_add(len.checked_next_multiple_of(8).unwrap_or(u64::MAX))
    }

    /// Makes `free` bytes free, unless they are too few for a header.
    fn set_free_bytes(&mut self, free: u64, widths: Widths) {
        self.free = if free < Self::object_header_bytes(widths) { 0 } else { free };
    }

    fn sort_by_index(&mut self) {
        self.by_index.clear();
        if !self.objects.is_sorted_by(|one, next| one.index < next.index) {
            self.by_index.extend(self.objects.iter().enumerate().map(|(number, object)| (object.index, number)));
            self.by_index.sort_unstable();
        }
    }

    /// Decodes the objects and the free space of the next `len` bytes.
    fn decode_objects(&mut self, w: &mut impl Wire, len: usize) -> Result<()> {
        let header = usize::try_from(Self::object_header_bytes(w.widths())).unwrap_or(usize::MAX);
        let begin = w.position();
        self.image = w.peek(len).to_vec();
        self.objects.clear();
        self.free = 0;
        loop {
            let at = w.position().saturating_sub(begin);
            let left = len.saturating_sub(at);
            if left < header {
                break;
            }
            let mut head = ObjectHead::default();
            head.wire(w)?;
            let (bytes, padded) = head.data_bytes(w, left.saturating_sub(header))?;
            let start = at.saturating_add(header);
            self.clear(at.saturating_add(4)..at.saturating_add(8));
            self.clear(at.saturating_add(8).saturating_add(w.widths().length.bytes())..start);
            self.clear(start.saturating_add(bytes)..start.saturating_add(padded));
            if head.index == 0 {
                self.free = head.size;
                w.reserved(padded)?;
                continue;
            }
            self.free = 0;
            if self.objects.is_empty() {
                // Others are often as long.
                self.objects.reserve_exact(len.checked_div(header.saturating_add(padded)).unwrap_or_default());
            }
            let ObjectHead { index, references, .. } = head;
            self.objects.push(ObjectPlace { index, references, start, len: bytes });
            w.skip("object data", bytes)?;
            match padded.saturating_sub(bytes) {
                0 => {}
                padding => w.reserved(padding)?,
            }
        }
        let free = usize::try_from(self.free).unwrap_or(usize::MAX);
        self.image.truncate(w.position().saturating_sub(begin).saturating_sub(free));
        self.shrink();
        self.sort_by_index();
        Ok(())
    }

    /// Has reserved bytes of the image written back as zeros.
    #[inline]
    fn clear(&mut self, reserved: Range<usize>) {
        if let Some(bytes) = self.image.get_mut(reserved) {
            bytes.fill(0);
        }
    }

    /// Gives back memory that was for other objects than there are.
    fn shrink(&mut self) {
        if self.image.capacity() > self.image.len().saturating_mul(2) {
            self.image.shrink_to_fit();
        }
        if self.objects.capacity() > self.objects.len().saturating_mul(2) {
            self.objects.shrink_to_fit();
        }
    }
}

/// What stands before the bytes of an object, and before free space.
#[derive(Debug, Default)]
struct ObjectHead {
    /// 0 for free space.
    index: u16,
    references: u16,
    /// Bytes of the object; of free space, with this header.
    size: u64,
}

impl ObjectHead {
    /// Bytes of data behind the header, and with what is reserved behind them, if these fit `room` bytes.
    #[inline]
    fn data_bytes(&self, w: &impl Wire, room: usize) -> Result<(usize, usize)> {
        let (found, header) = (self.size, GlobalHeapCollection::object_header_bytes(w.widths()));
        let (len, padded) = if self.index == 0 {
            let fault =
                || w.fault("object size", Fault::InvalidValue { found, rule: "free space holds its own header" });
            (0, Some(found.checked_sub(header).ok_or_else(fault)?))
        } else {
            (found, found.checked_next_multiple_of(8))
        };
        let padded = padded.and_then(|padded| usize::try_from(padded).ok()).filter(|padded| *padded <= room);
        let too_large = || w.fault("object size", Fault::TooLarge { found, limit: room as u64 });
        let padded = padded.ok_or_else(too_large)?;
        Ok((usize::try_from(len).unwrap_or(padded), padded))
    }
}

impl Record for ObjectHead {
    const NAME: &'static str = GlobalHeapCollection::NAME;

    #[inline]
    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.u16("object", &mut self.index)?;
        w.u16("references", &mut self.references)?;
        w.reserved(4)?;
        w.length("object size", &mut self.size)?;
        wire_padding(w, w.widths().length.bytes())
    }
}

/// Padding after a length of `width` bytes, up to a multiple of 8 bytes.
#[inline]
fn wire_padding(w: &mut impl Wire, width: usize) -> Result<()> {
    match width.next_multiple_of(8).saturating_sub(width) {
        0 => Ok(()),
        padding => w.reserved(padding),
    }
}

#[derive(Default)]
struct GlobalHeapPrefix {
    size: u64,
}

impl Record for GlobalHeapPrefix {
    const NAME: &'static str = GlobalHeapCollection::NAME;

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.magic("GCOL")?;
        w.version(1..=1, &mut 1)?;
        w.reserved(3)?;
        w.length("collection size", &mut self.size)?;
        let smallest = GlobalHeapCollection::MIN_SIZE;
        w.require("collection size", self.size >= smallest, self.size, "at least 4096 bytes")
    }
}

impl Record for GlobalHeapCollection {
    const NAME: &'static str = "global heap collection";

    fn size_hint(&self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX)
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self)
            .saturating_add(self.image.capacity())
            .saturating_add(size_of_val(&self.objects[..]))
            .saturating_add(size_of_val(&self.by_index[..]))
    }

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let start = w.position();
        let mut prefix = GlobalHeapPrefix { size: self.size };
        prefix.wire(w)?;
        wire_padding(w, w.widths().length.bytes())?;
        self.size = prefix.size;
        let passed = w.position().saturating_sub(start);
        let left = w.bounded_count("collection size", self.size.saturating_sub(passed as u64), 1)?;
        let end = w.position().saturating_add(left);
        if w.is_decoding() {
            self.decode_objects(w, left)?;
        } else {
            w.bytes("objects", self.image.len(), &mut self.image)?;
            if self.free > 0 {
                ObjectHead { index: 0, references: 0, size: self.free }.wire(w)?;
            }
        }
        match end.saturating_sub(w.position()) {
            0 => Ok(()),
            rest => w.reserved(rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Width, decode, encode};

    #[test]
    fn comes_back_from_bytes_in_every_width() {
        for widths in [Widths::default(), Widths { offset: Width::FOUR, length: Width::FOUR }] {
            let mut heap = GlobalHeapCollection::new(4096, widths);
            let objects = [vec![1; 5], vec![], vec![3; 16], vec![4; 100]];
            for (i, object) in objects.iter().enumerate() {
                assert_eq!(heap.insert_object(object, widths), Some(i as u16 + 1));
            }
            let bytes = encode(&heap, widths).unwrap();
            assert_eq!(bytes.len(), 4096);
            assert_eq!(GlobalHeapCollection::stated_size(&bytes, widths).unwrap(), 4096);
            let decoded = decode::<GlobalHeapCollection>(&bytes, widths).unwrap();
            assert_eq!(decoded, heap);
            assert_eq!(decoded.objects().map(|o| o.data.to_vec()).collect::<Vec<_>>(), objects);
            assert_eq!(
                (decoded.object_bytes(3), decoded.object_bytes(0), decoded.object_bytes(5)),
                (Some(&[3u8; 16][..]), None, None)
            );
        }
    }

    #[test]
    fn removed_objects_leave_their_room_and_the_others_keep_their_numbers() {
        let widths = Widths::default();
        let mut heap = GlobalHeapCollection::new(4096, widths);
        let before = heap.free_bytes_at_end();
        for len in [10u8, 20, 30, 40] {
            heap.insert_object(&vec![len; len.into()], widths).unwrap();
        }
        assert_eq!(heap.remove_objects(|index| index == 1 || index == 3 || index == 9, widths), 2);
        let decoded = decode::<GlobalHeapCollection>(&encode(&heap, widths).unwrap(), widths).unwrap();
        assert_eq!(decoded, heap);
        let kept: Vec<_> = decoded.objects().map(|object| (object.index, object.data.len())).collect();
        assert_eq!(kept, [(2, 20), (4, 40)]);
        assert_eq!(decoded.object_bytes(4), Some(&[40; 40][..]));
        assert_eq!(decoded.object_bytes(1), None);
        assert_eq!(heap.insert_object(&[5; 5], widths), Some(5));
        assert_eq!(heap.remove_objects(|_| true, widths), 3);
        assert!(heap.is_empty() && heap.free_bytes_at_end() == before);
    }

    #[test]
    fn fills_up_to_the_last_byte() {
        let widths = Widths::default();
        for left in [0u64, 8, 16, 24] {
            let mut heap = GlobalHeapCollection::new(4096, widths);
            let len = 4096 - 16 - 16 - left;
            assert_eq!(heap.insert_object(&vec![9; len as usize], widths), Some(1));
            assert_eq!(heap.free_bytes_at_end(), if left < 16 { 0 } else { left });
            assert_eq!(heap.insert_object(&[], widths).is_some(), left >= 16);
            let bytes = encode(&heap, widths).unwrap();
            assert_eq!(decode::<GlobalHeapCollection>(&bytes, widths).unwrap(), heap);
        }
        assert_eq!(GlobalHeapCollection::collection_size_for(5000, widths), 5032);
        assert_eq!(GlobalHeapCollection::new(4096, widths).insert_object(&[0; 4065], widths), None);
    }

    #[test]
    fn reserved_bytes_are_written_back_as_zeros() {
        for widths in [Widths::default(), Widths { offset: Width::FOUR, length: Width::FOUR }] {
            let mut heap = GlobalHeapCollection::new(4096, widths);
            for len in [1, 3, 8, 0] {
                heap.insert_object(&vec![7; len], widths).unwrap();
            }
            let clean = encode(&heap, widths).unwrap();
            let mut bytes = clean.clone();
            let (fields, _) = crate::describe(GlobalHeapCollection::default(), &bytes, widths);
            for reserved in fields.iter().filter(|field| field.field == "reserved") {
                bytes[reserved.offset_in_structure..reserved.offset_in_structure + reserved.size].fill(0xee);
            }
            assert_ne!(bytes, clean);
            let decoded = decode::<GlobalHeapCollection>(&bytes, widths).unwrap();
            assert_eq!(encode(&decoded, widths).unwrap(), clean);
        }
    }

    #[test]
    fn objects_are_found_in_any_order_and_with_free_space_between_them() {
        let widths = Widths::default();
        let mut heap = GlobalHeapCollection::new(4096, widths);
        for len in [10u8, 20, 30, 40] {
            heap.insert_object(&vec![len; len.into()], widths).unwrap();
        }
        let mut bytes = encode(&heap, widths).unwrap();
        let (fields, _) = crate::describe(GlobalHeapCollection::default(), &bytes, widths);
        let places: Vec<usize> =
            fields.iter().filter(|field| field.field == "object").map(|field| field.offset_in_structure).collect();
        for (place, index) in places.iter().zip([7, 0, 2, 5]) {
            bytes[*place] = index;
        }
        // Free space states its header, too.
        bytes[places[1] + 8] = 16 + 24;
        let mut heap = decode::<GlobalHeapCollection>(&bytes, widths).unwrap();
        let lens = |heap: &GlobalHeapCollection| [1, 2, 5, 7, 8].map(|index| heap.object_bytes(index).map(<[u8]>::len));
        assert_eq!(lens(&heap), [None, Some(30), Some(40), Some(10), None]);
        assert_eq!(decode::<GlobalHeapCollection>(&encode(&heap, widths).unwrap(), widths).unwrap(), heap);
        assert_eq!(heap.insert_object(&[8; 8], widths), Some(8));
        let free = heap.free_bytes_at_end();
        assert_eq!(heap.remove_objects(|index| index == 2, widths), 1);
        assert_eq!(lens(&heap), [None, None, Some(40), Some(10), Some(8)]);
        assert_eq!(heap.free_bytes_at_end(), free + 16 + 32 + 16 + 24, "what was free between them is so behind them");
        let decoded = decode::<GlobalHeapCollection>(&encode(&heap, widths).unwrap(), widths).unwrap();
        assert_eq!((&decoded, lens(&decoded)), (&heap, lens(&heap)));
    }

    #[test]
    fn refuses_free_space_without_its_header() {
        let widths = Widths::default();
        let mut bytes = encode(&GlobalHeapCollection::new(4096, widths), widths).unwrap();
        bytes[24..32].fill(0);
        assert_eq!(decode::<GlobalHeapCollection>(&bytes, widths).unwrap_err().field, "object size");
    }
}
