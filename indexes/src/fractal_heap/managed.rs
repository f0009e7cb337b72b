//! Objects in the direct blocks of a fractal heap.

use h5live_format::{FractalHeapHeader, HeapPlace};

use super::place::{Direct, Place};
use super::space::Sections;
use super::{FractalHeap, Header};
use crate::{Before, Error, Result};

impl FractalHeap {
    pub(super) fn misplaced(&self) -> Error {
        self.contradiction(self.addr, "heap ID", "an object lies inside a direct block")
    }

    pub(super) fn managed(&self, header: &FractalHeapHeader, offset: u64, length: u64) -> Result<Vec<u8>> {
        let place = self.place(header, offset)?;
        let object = match &header.filtered {
            None => self.direct_block(header, &place)?.read().object(offset, length).map(<[u8]>::to_vec),
            Some(filtered) => {
                let stored = self.stored_block(header, filtered, &place)?;
                stored.read().block.object(offset, length).map(<[u8]>::to_vec)
            }
        };
        object.ok_or_else(|| self.misplaced())
    }

    pub(super) fn insert_managed(
        &self,
        header: &Header,
        sections: &mut Sections,
        object: &[u8],
        before: &[Before<'_>],
    ) -> Result<HeapPlace> {
        let len = object.len() as u64;
        let offset = match sections.take(len) {
            Some(offset) => offset,
            None => {
                self.add_block(header, sections, len)?;
                sections.take(len).ok_or(Error::HeapFull { at: self.addr })?
            }
        };
        self.write_managed(header, offset, object, before)?;
        header.update(|header| {
            header.free = header.free.saturating_sub(len);
            header.managed_objects = header.managed_objects.saturating_add(1);
        });
        Ok(HeapPlace::Managed { offset, length: len })
    }

    pub(super) fn write_managed(
        &self,
        header: &Header,
        offset: u64,
        object: &[u8],
        before: &[Before<'_>],
    ) -> Result<()> {
        let shape = header.read().clone();
        let place = self.place(&shape, offset)?;
        if let Some(filtered) = &shape.filtered {
            let mut block = self.stored_block(&shape, filtered, &place)?.read().block.clone();
            let room = block.object_mut(offset, object.len() as u64);
            room.map(|room| room.copy_from_slice(object)).ok_or_else(|| self.misplaced())?;
            // The block is stored anew with each change; the header waits for what all of them tell of.
            self.metadata.order(header, before);
            return self.replace_block(header, &filtered.filters.filters, &place, block);
        }
        let block: Direct = self.direct_block(&shape, &place)?;
        self.depend_along(header, &place, &block)?;
        self.metadata.order(&block, before);
        block.update(|block| {
            let room = block.object_mut(offset, object.len() as u64);
            room.map(|room| room.copy_from_slice(object)).ok_or_else(|| self.misplaced())
        })
    }

    pub(super) fn remove_managed(
        &self,
        header: &Header,
        sections: &mut Sections,
        offset: u64,
        length: u64,
    ) -> Result<()> {
        let shape = header.read().clone();
        let (start, room) = self.room_in(&shape, self.place(&shape, offset)?.slot);
        let inside = offset.checked_sub(start).and_then(|before| before.checked_add(length));
        if length == 0 || inside.is_none_or(|end| end > room) {
            return Err(self.misplaced());
        }
        sections.remove(self.metadata.cache().space(), offset, length);
        header.update(|header| {
            header.free = header.free.saturating_add(length);
            header.managed_objects = header.managed_objects.saturating_sub(1);
        });
        Ok(())
    }

    /// Makes what removed objects took free, as far as nothing in the file tells of them; gives up blocks in which
    /// nothing is left.
    pub(super) fn reuse(&self, header: &Header, sections: &mut Sections) -> Result<()> {
        for place in sections.settled_huge(self.metadata.cache().space()) {
            self.remove_huge(header, &place)?;
        }
        for (offset, len) in sections.settled(self.metadata.cache().space()) {
            let section = sections.give(offset, len);
            self.drop_if_empty(header, sections, section)?;
        }
        Ok(())
    }

    fn drop_if_empty(&self, header: &Header, sections: &mut Sections, (offset, len): (u64, u64)) -> Result<()> {
        let shape = header.read().clone();
        let place: Place = self.place(&shape, offset)?;
        if (offset, len) != self.room_in(&shape, place.slot) {
            return Ok(());
        }
        sections.forget(offset, len);
        self.drop_block(header, sections, place)
    }

    /// Learns what is free: all that is in direct blocks but the objects `taken`, and the places of blocks that do not
    /// exist.
    pub(super) fn learn(&self, header: &FractalHeapHeader, taken: &[(u64, u64)]) -> Result<()> {
        let mut sections = self.space.lock();
        let waiting = sections.waiting();
        let mut learned = Vec::new();
        self.each_block(header, &mut |block| learned.push(block))?;
        for block in learned.into_iter().filter(|block| block.slot.size > 0) {
            if block.addr.is_defined() {
                let (offset, len) = self.room_in(header, block.slot);
                sections.give(offset, len);
            } else {
                sections.give_room(block.slot);
            }
        }
        for (offset, len) in taken.iter().chain(&waiting) {
            sections.occupy(*offset, *len);
        }
        sections.known = true;
        Ok(())
    }
}
