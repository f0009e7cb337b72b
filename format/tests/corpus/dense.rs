//! Heaps and version 2 B-trees: dense links and attributes, shared messages, free space.

use std::collections::BTreeMap;
use std::fmt::Debug;

use h5live_format::messages::*;
use h5live_format::*;

use crate::walk::Walk;

/// The direct blocks of a fractal heap, by offset in heap space.
#[derive(Default)]
pub struct Heap {
    shape: Option<FractalHeapIdFormat>,
    blocks: BTreeMap<u64, FractalHeapDirectBlock>,
    huge: BTreeMap<u64, (Addr, u64)>,
}

impl Walk<'_> {
    /// A fractal heap with all its blocks.
    pub fn fractal_heap(&mut self, addr: Addr) -> Heap {
        let mut heap = Heap::default();
        let Some(header) = self.compare_at(FractalHeapHeader::default(), addr) else { return heap };
        heap.shape = Some(header.id_format(self.widths));
        match header.root_rows {
            0 => self.direct_block(&header, &mut heap, header.root, header.table.start_block_bytes),
            rows => self.indirect_block(&header, &mut heap, header.root, rows),
        }
        if header.free_space_manager.is_defined() {
            self.free_space(header.free_space_manager);
        }
        if header.filter_info.is_some() {
            self.btree2(header.huge_index, HugeIndirectFilteredRecord::default());
        } else {
            for record in self.btree2(header.huge_index, HugeIndirectRecord::default()) {
                heap.huge.insert(record.id, (record.addr, record.length));
            }
        }
        heap
    }

    fn direct_block(&mut self, header: &FractalHeapHeader, heap: &mut Heap, addr: Addr, size: u64) {
        if header.filter_info.is_some() || !self.first_visit(addr) {
            return;
        }
        if let Some(block) = self.compare_at(header.blank_direct_block(size), addr) {
            heap.blocks.insert(block.offset_in_heap, block);
        }
    }

    fn indirect_block(&mut self, header: &FractalHeapHeader, heap: &mut Heap, addr: Addr, rows: u16) {
        if !self.first_visit(addr) {
            return;
        }
        let Some(block) = self.compare_at(header.blank_indirect_block(rows, self.widths), addr) else { return };
        let width = usize::from(header.table.column_count);
        for (i, child) in block.direct.iter().enumerate() {
            let size = header.table.row_block_size((i / width) as u16).unwrap();
            self.direct_block(header, heap, child.addr, size);
        }
        for (i, child) in block.indirect.iter().enumerate() {
            let row = header.table.direct_rows() + (i / width) as u16;
            self.indirect_block(header, heap, child, header.table.child_rows(row).unwrap());
        }
    }

    /// The bytes of an object of a heap, where they are not behind a filter.
    fn object(&mut self, heap: &Heap, id: &[u8]) -> Option<(usize, Vec<u8>)> {
        let shape = heap.shape?;
        let id = self.compare(shape.id_of(HeapObjectLocation::default()), 0, id)?;
        match id.location {
            HeapObjectLocation::Managed { offset, length } => {
                let (_, block) = heap.blocks.range(..=offset).next_back()?;
                Some((offset as usize, block.object(offset, length)?.to_vec()))
            }
            HeapObjectLocation::HugeIndirect(number) => {
                let (addr, length) = *heap.huge.get(&number)?;
                let (at, bytes) = self.at(addr)?;
                Some((at, bytes.get(..usize::try_from(length).ok()?)?.to_vec()))
            }
            HeapObjectLocation::HugeDirect { addr, length, .. } => {
                let (at, bytes) = self.at(addr)?;
                Some((at, bytes.get(..usize::try_from(length).ok()?)?.to_vec()))
            }
            HeapObjectLocation::Tiny(data) => Some((0, data)),
        }
    }

    /// All records of a version 2 B-tree, in order.
    pub fn btree2<R: Btree2Record + Debug>(&mut self, addr: Addr, blank: R) -> Vec<R> {
        let mut records = Vec::new();
        let Some(header) = self.compare_at(Btree2Header::default(), addr) else { return records };
        self.agree(header.kind == R::KIND, "record type of a B-tree");
        let geometry = Btree2Geometry::from_header(&header, self.widths).unwrap();
        let root = Btree2ChildPointer {
            addr: header.root,
            record_count: header.root_record_count,
            subtree_record_count: header.total_record_count,
        };
        self.btree2_node(&geometry, root, header.depth, &blank, &mut records);
        self.agree(records.len() as u64 == header.total_record_count, "records of a B-tree");
        records
    }

    fn btree2_node<R: Btree2Record + Debug>(
        &mut self,
        geometry: &Btree2Geometry,
        node: Btree2ChildPointer,
        depth: u16,
        blank: &R,
        out: &mut Vec<R>,
    ) {
        if !self.first_visit(node.addr) {
            return;
        }
        if depth == 0 {
            let Some(leaf) = self.compare_at(geometry.blank_leaf(node.record_count), node.addr) else { return };
            out.extend(leaf.records.iter().filter_map(|bytes| self.compare(blank.clone(), 0, bytes)));
            return;
        }
        let Some(inner) = self.compare_at(geometry.blank_internal(depth, node.record_count), node.addr) else { return };
        let below = inner
            .children
            .iter()
            .fold(u64::from(node.record_count), |n, child| n.saturating_add(child.subtree_record_count));
        self.agree(below == node.subtree_record_count, "records below a node");
        for (i, child) in inner.children.iter().enumerate() {
            self.btree2_node(geometry, *child, depth - 1, blank, out);
            out.extend(inner.records.bytes_at(i).and_then(|bytes| self.compare(blank.clone(), 0, bytes)));
        }
    }

    /// The links of a dense group.
    pub fn dense_links(&mut self, info: &LinkInfo) {
        if !self.first_visit(info.heap) {
            return;
        }
        let heap = self.fractal_heap(info.heap);
        for record in self.btree2(info.name_index, LinkNameRecord::default()) {
            let Some((at, bytes)) = self.object(&heap, &record.heap_id) else { continue };
            let Some(link) = self.compare(LinkMessage::default(), at, &bytes) else { continue };
            self.agree(lookup3(link.name.as_bytes(), 0) == record.hash, "hash of a name");
            if let LinkValue::Hard(addr) = link.value {
                self.header(addr);
            }
        }
        if let Some(order) = info.order_index {
            self.btree2(order, LinkOrderRecord::default());
        }
    }

    /// The attributes of an object with dense attributes.
    pub fn dense_attributes(&mut self, info: &AttributeInfo) {
        if !self.first_visit(info.heap) {
            return;
        }
        let heap = self.fractal_heap(info.heap);
        for record in self.btree2(info.name_index, AttributeNameRecord::default()) {
            if record.message_flags & 0x02 != 0 {
                continue;
            }
            let Some((at, bytes)) = self.object(&heap, &record.heap_id) else { continue };
            let Some(attribute) = self.compare(AttributeMessage::default(), at, &bytes) else { continue };
            self.agree(lookup3(attribute.name.as_bytes(), 0) == record.hash, "hash of a name");
            self.attribute(&attribute);
        }
        if let Some(order) = info.order_index {
            self.btree2(order, AttributeOrderRecord::default());
        }
    }

    /// The table of shared messages, its indexes and their heaps.
    pub fn shared_messages(&mut self, info: &SharedMessageTableInfo) {
        let Some(table) = self.compare_at(SharedMessageTable::blank(info.index_count), info.table) else { return };
        for index in table.indexes {
            let heap = self.fractal_heap(index.heap);
            let records = match index.kind {
                SharedMessageIndexKind::List => {
                    self.compare_at(index.blank_list(), index.index).map(|list| list.messages)
                }
                SharedMessageIndexKind::Btree => Some(self.btree2(index.index, SharedMessageRecord::default())),
            };
            for record in records.unwrap_or_default() {
                if let SharedMessageLocation::Heap { heap_id, .. } = record.place {
                    let Some((_, body)) = self.object(&heap, &heap_id) else { continue };
                    let kinds = (0..16).filter(|kind| index.message_type_flags >> kind & 1 != 0);
                    let mut hashes = kinds.map(|kind| lookup3(&body, kind));
                    self.agree(hashes.any(|hash| hash == record.hash), "hash of a shared message");
                }
            }
        }
    }

    /// A free-space manager with its sections.
    pub fn free_space(&mut self, addr: Addr) {
        let Some(header) = self.compare_at(FreeSpaceHeader::default(), addr) else { return };
        if let Some(sections) = self.compare_at(header.blank_section_list(), header.section_list_addr) {
            self.agree(sections.header == addr, "header of free sections");
        }
    }
}
