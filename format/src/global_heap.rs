//! Global heaps: variable-length data, region references, mappings of virtual datasets (format specification 4.0,
//! III.E).

use crate::{Addr, Fault, Record, Result, Widths, Wire};

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
    pub references: u16,
    /// The bytes.
    pub data: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CollectionEntry {
    index: u16,
    references: u16,
    /// Where the bytes of the object begin in `data`.
    start: usize,
    /// Bytes of the object; of free space, all but its header.
    len: usize,
}

/// A collection of objects, and its free space. It has no checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalHeapCollection {
    size: u64,
    /// In the order of the file. Entry 0 is free space.
    entries: Vec<CollectionEntry>,
    /// The bytes of all objects, one after another.
    data: Vec<u8>,
    /// Index and entry of each object, by index.
    by_index: Vec<(u16, usize)>,
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
        let mut heap = GlobalHeapCollection { size, entries: Vec::new(), data: Vec::new(), by_index: Vec::new() };
        heap.set_free_object(size.saturating_sub(Self::object_header_bytes(widths)), widths);
        heap
    }

    /// Bytes of a collection in which an object of `len` bytes fits.
    pub fn collection_bytes_for(len: u64, widths: Widths) -> u64 {
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
    pub fn object_bytes(&self, index: u32) -> Option<&[u8]> {
        let of = |(index, _): &(u16, usize)| u32::from(*index);
        // Most collections have the objects 1, 2, 3 and so on.
        let usual = usize::try_from(index).ok()?.checked_sub(1)?;
        let found = match self.by_index.get(usual) {
            Some(at) if of(at) == index => usual,
            _ => self.by_index.binary_search_by_key(&index, of).ok()?,
        };
        let (_, entry) = self.by_index.get(found)?;
        self.entries.get(*entry).map(|entry| self.bytes_of(entry))
    }

    /// All objects, in the order of the file.
    pub fn objects(&self) -> impl Iterator<Item = GlobalHeapObject<'_>> {
        self.entries.iter().filter(|entry| entry.index != 0).map(|entry| GlobalHeapObject {
            index: entry.index,
            references: entry.references,
            data: self.bytes_of(entry),
        })
    }

    /// Adds an object, and returns its number. `None` if there is no space for it.
    pub fn insert_object(&mut self, data: &[u8], widths: Widths) -> Option<u16> {
        let need = Self::object_space_bytes(data.len() as u64, widths);
        let left = self.free_bytes(widths).checked_sub(need)?;
        let index = match self.by_index.last() {
            None => 1,
            Some((last, _)) => last.checked_add(1)?,
        };
        self.entries.pop_if(|entry| entry.index == 0);
        self.by_index.push((index, self.entries.len()));
        self.entries.push(CollectionEntry { index, references: 0, start: self.data.len(), len: data.len() });
        self.data.extend_from_slice(data);
        self.set_free_object(left, widths);
        Some(index)
    }

    /// Removes objects; those behind them move forward. Returns how many there were.
    pub fn remove_objects(&mut self, is_removed: impl Fn(u32) -> bool, widths: Widths) -> usize {
        let before = self.by_index.len();
        let (entries, data) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.data));
        let mut used = Self::object_header_bytes(widths);
        for entry in entries.into_iter().filter(|entry| entry.index != 0 && !is_removed(entry.index.into())) {
            let bytes = data.get(entry.start..).and_then(|rest| rest.get(..entry.len)).unwrap_or_default();
            self.entries.push(CollectionEntry { start: self.data.len(), ..entry });
            self.data.extend_from_slice(bytes);
            used = used.saturating_add(Self::object_space_bytes(entry.len as u64, widths));
        }
        self.set_free_object(self.size.saturating_sub(used), widths);
        self.sort_by_index();
        before.saturating_sub(self.by_index.len())
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.by_index.is_empty()
    }

    /// Whether there are room and a number for an object of `len` bytes.
    pub fn has_room_for(&self, len: u64, widths: Widths) -> bool {
        let has_number = self.by_index.last().is_none_or(|(last, _)| *last < u16::MAX);
        has_number && self.free_bytes(widths) >= Self::object_space_bytes(len, widths)
    }

    /// Bytes behind the last object in which another fits, its header included.
    pub fn free_bytes(&self, widths: Widths) -> u64 {
        match self.entries.last() {
            Some(CollectionEntry { index: 0, len, .. }) => {
                (*len as u64).saturating_add(Self::object_header_bytes(widths))
            }
            _ => 0,
        }
    }

    fn bytes_of(&self, entry: &CollectionEntry) -> &[u8] {
        self.data.get(entry.start..).and_then(|rest| rest.get(..entry.len)).unwrap_or_default()
    }

    /// Bytes before the first object.
    fn object_header_bytes(widths: Widths) -> u64 {
        (widths.length.bytes() as u64).saturating_add(8).next_multiple_of(8)
    }

    /// Bytes that an object of `len` bytes takes, with header and padding.
    pub fn object_space_bytes(len: u64, widths: Widths) -> u64 {
        Self::object_header_bytes(widths).saturating_add(len.checked_next_multiple_of(8).unwrap_or(u64::MAX))
    }

    /// Makes `free` bytes free, unless they are too few for a header.
    fn set_free_object(&mut self, free: u64, widths: Widths) {
        if let Some(len) = free.checked_sub(Self::object_header_bytes(widths)) {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            self.entries.push(CollectionEntry { index: 0, references: 0, start: 0, len });
        }
    }

    fn sort_by_index(&mut self) {
        self.by_index.clear();
        let objects = self.entries.iter().enumerate().filter(|(_, entry)| entry.index != 0);
        self.by_index.extend(objects.map(|(at, entry)| (entry.index, at)));
        self.by_index.sort_unstable();
    }

    /// One object: header, bytes, padding.
    fn wire_object(
        &mut self,
        w: &mut impl Wire,
        entry: &mut CollectionEntry,
        room: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let header = Self::object_header_bytes(w.widths());
        w.u16("object", &mut entry.index)?;
        w.u16("references", &mut entry.references)?;
        w.reserved(4)?;
        let free = entry.index == 0;
        let stored = if free { (entry.len as u64).saturating_add(header) } else { entry.len as u64 };
        let stored = w.derived("object size", w.widths().length, stored)?;
        wire_padding(w, w.widths().length.bytes())?;
        let room = (room as u64).saturating_sub(header);
        let len = if free { stored.checked_sub(header) } else { Some(stored) };
        let fault = Fault::Value { found: stored, rule: "free space holds its own header" };
        let len = len.ok_or_else(|| w.fault("object size", fault))?;
        let padded = if free { Some(len) } else { len.checked_next_multiple_of(8) };
        let padded = padded.filter(|padded| *padded <= room);
        let padded = padded.ok_or_else(|| w.fault("object size", Fault::TooLarge { found: stored, limit: room }))?;
        let (len, padded) = (usize::try_from(len).unwrap_or(usize::MAX), usize::try_from(padded).unwrap_or(usize::MAX));
        if free {
            entry.len = len;
            return w.reserved(padded);
        }
        if w.is_decoding() {
            w.bytes("object data", len, bytes)?;
            (entry.start, entry.len) = (self.data.len(), len);
            self.data.append(bytes);
        } else {
            bytes.clear();
            bytes.extend_from_slice(self.bytes_of(entry));
            w.bytes("object data", len, bytes)?;
        }
        match padded.saturating_sub(len) {
            0 => Ok(()),
            padding => w.reserved(padding),
        }
    }
}

/// Padding after a length of `width` bytes, up to a multiple of 8 bytes.
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

    fn weight(&self) -> usize {
        size_of_val(self)
            .saturating_add(self.data.len())
            .saturating_add(size_of_val(&self.entries[..]))
            .saturating_add(size_of_val(&self.by_index[..]))
    }

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        let start = w.position();
        let mut prefix = GlobalHeapPrefix { size: self.size };
        prefix.wire(w)?;
        wire_padding(w, w.widths().length.bytes())?;
        self.size = prefix.size;
        let passed = w.position().saturating_sub(start);
        let left = w.bounded("collection size", self.size.saturating_sub(passed as u64), 1)?;
        let end = w.position().saturating_add(left);
        let header = usize::try_from(Self::object_header_bytes(w.widths())).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        if w.is_decoding() {
            self.entries.clear();
            self.data.clear();
            while end.saturating_sub(w.position()) >= header {
                let mut entry = CollectionEntry { index: 0, references: 0, start: 0, len: 0 };
                let room = end.saturating_sub(w.position());
                self.wire_object(w, &mut entry, room, &mut bytes)?;
                self.entries.push(entry);
            }
            self.sort_by_index();
        } else {
            let mut entries = std::mem::take(&mut self.entries);
            let written = entries.iter_mut().try_for_each(|entry| {
                let room = end.saturating_sub(w.position());
                self.wire_object(w, entry, room, &mut bytes)
            });
            self.entries = entries;
            written?;
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
        let before = heap.free_bytes(widths);
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
        assert!(heap.is_empty() && heap.free_bytes(widths) == before);
    }

    #[test]
    fn fills_up_to_the_last_byte() {
        let widths = Widths::default();
        for left in [0u64, 8, 16, 24] {
            let mut heap = GlobalHeapCollection::new(4096, widths);
            let len = 4096 - 16 - 16 - left;
            assert_eq!(heap.insert_object(&vec![9; len as usize], widths), Some(1));
            assert_eq!(heap.free_bytes(widths), if left < 16 { 0 } else { left });
            assert_eq!(heap.insert_object(&[], widths).is_some(), left >= 16);
            let bytes = encode(&heap, widths).unwrap();
            assert_eq!(decode::<GlobalHeapCollection>(&bytes, widths).unwrap(), heap);
        }
        assert_eq!(GlobalHeapCollection::collection_bytes_for(5000, widths), 5032);
        assert_eq!(GlobalHeapCollection::new(4096, widths).insert_object(&[0; 4065], widths), None);
    }

    #[test]
    fn refuses_free_space_without_its_header() {
        let widths = Widths::default();
        let mut bytes = encode(&GlobalHeapCollection::new(4096, widths), widths).unwrap();
        bytes[24..32].fill(0);
        assert_eq!(decode::<GlobalHeapCollection>(&bytes, widths).unwrap_err().field, "object size");
    }
}
