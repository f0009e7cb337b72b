//! Walks over a file from its superblock, without a store: decodes every structure that it can reach, and writes each
//! back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use h5live_format::messages::*;
use h5live_format::*;

/// What a walk found.
#[derive(Default)]
pub struct Findings {
    /// Structures decoded and written back to the same bytes, by name.
    pub same: BTreeMap<&'static str, usize>,
    /// Structures that came back as other bytes.
    pub different: Vec<String>,
    /// Structures that could not be decoded.
    pub refused: Vec<String>,
    /// Message bodies by type and widths, and structures with a signature (type 0xff).
    pub bytes: BTreeSet<(u8, u8, Vec<u8>)>,
}

impl Findings {
    /// Adds what another walk found.
    pub fn add(&mut self, other: Findings) {
        for (name, count) in other.same {
            *self.same.entry(name).or_default() += count;
        }
        self.different.extend(other.different);
        self.refused.extend(other.refused);
        self.bytes.extend(other.bytes);
    }
}

/// A file that is being walked over.
pub struct Walk<'a> {
    pub name: String,
    pub bytes: &'a [u8],
    pub widths: Widths,
    pub k: BtreeK,
    pub seen: BTreeSet<u64>,
    pub found: Findings,
    pub collections: BTreeMap<Addr, GlobalHeapCollection>,
    image: Option<CacheImageInfo>,
}

impl<'a> Walk<'a> {
    /// Finds the superblock, and follows the root group.
    pub fn over(name: &str, file: &'a [u8]) -> Findings {
        let mut places = Superblock::possible_offsets(file.len() as u64);
        let at = places.find(|at| file[*at as usize..].starts_with(&Superblock::SIGNATURE));
        let bytes = &file[at.map_or(file.len(), |at| at as usize)..];
        let mut bytes = bytes.to_vec();
        let (found, image) = Walk::once(name, &bytes);
        let Some(image) = image else { return found };
        for entry in image.entries.iter().filter(|entry| entry.dirty) {
            let at = entry.addr.get().unwrap() as usize;
            bytes.resize(bytes.len().max(at + entry.image.len()), 0);
            bytes[at..at + entry.image.len()].copy_from_slice(&entry.image);
        }
        Walk::once(name, &bytes).0
    }

    fn once(name: &str, bytes: &[u8]) -> (Findings, Option<CacheImage>) {
        let mut walk = Walk {
            name: name.to_owned(),
            bytes,
            widths: Widths::default(),
            k: BtreeK::default(),
            seen: BTreeSet::new(),
            found: Findings::default(),
            collections: BTreeMap::new(),
            image: None,
        };
        if !bytes.is_empty() {
            walk.superblock();
        }
        let image = walk.image.and_then(|info| walk.compare_at(CacheImage::default(), info.addr));
        (walk.found, image)
    }

    fn superblock(&mut self) {
        let Some(superblock) = self.compare(Superblock::default(), 0, self.bytes) else { return };
        self.widths = superblock.widths;
        self.k = superblock.btree_k;
        if superblock.version > 1 {
            self.header(superblock.extension_or_free_space);
        }
        if let Some((btree, heap)) = superblock.root.cached_symbol_table() {
            self.symbol_table(btree, heap);
        }
        self.header(superblock.root.header());
    }

    /// The bytes from an address to the end of the file.
    pub fn at(&self, addr: Addr) -> Option<(usize, &'a [u8])> {
        let at = usize::try_from(addr.get()?).ok()?;
        Some((at, self.bytes.get(at..).filter(|rest| !rest.is_empty())?))
    }

    /// Whether this is the first visit to an address.
    pub fn first_visit(&mut self, addr: Addr) -> bool {
        addr.get().is_some_and(|at| self.seen.insert(at))
    }

    /// Decodes a structure from the beginning of `bytes`, which lie at `at`, and writes it back.
    pub fn compare<R: Record + Clone + Debug>(&mut self, context: R, at: usize, bytes: &[u8]) -> Option<R> {
        let (fields, _) = describe(context.clone(), bytes, self.widths);
        let (record, used) = match decode_prefix_with(context, bytes, self.widths) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.found.refused.push(format!("{} at {at:#x}: {error}", self.name));
                return None;
            }
        };
        let mut meant = bytes[..used].to_vec();
        for unused in fields.iter().filter(|field| field.field == "reserved") {
            meant[unused.offset_in_structure..unused.offset_in_structure + unused.size].fill(0);
        }
        match encode(&record, self.widths) {
            Ok(again) if again == meant => {
                *self.found.same.entry(R::NAME).or_default() += 1;
                self.keep(0xff, &bytes[..used]);
            }
            Ok(again) => {
                let place = again.iter().zip(&meant).position(|(a, b)| a != b).unwrap_or(used);
                let near = |bytes: &[u8]| format!("{:02x?}", &bytes[place..(place + 24).min(bytes.len())]);
                let note = format!(
                    "{} at {at:#x}: {}, {used} bytes, now {}: byte {place} was {}, now {}",
                    self.name,
                    R::NAME,
                    again.len(),
                    near(&meant),
                    near(&again)
                );
                self.found.different.push(note);
            }
            Err(error) => self.found.different.push(format!("{} at {at:#x}: {error}", self.name)),
        }
        Some(record)
    }

    /// Notes what does not agree with what other structures say.
    pub fn agree(&mut self, agrees: bool, what: &str) {
        if !agrees {
            self.found.refused.push(format!("{}: {what}", self.name));
        }
    }

    /// As [`Walk::compare`], at an address.
    pub fn compare_at<R: Record + Clone + Debug>(&mut self, context: R, addr: Addr) -> Option<R> {
        let (at, bytes) = self.at(addr)?;
        self.compare(context, at, bytes)
    }

    /// An object header, and all that it leads to.
    pub fn header(&mut self, addr: Addr) {
        if !self.first_visit(addr) {
            return;
        }
        let Some(header) = self.compare_at(FirstHeaderChunk::default(), addr) else { return };
        let mut messages = header.messages;
        let mut next = 0;
        while let Some(message) = messages.get(next) {
            if message.kind == MessageType::CONTINUATION {
                let continuation: ContinuationMessage = message.decode(self.widths).unwrap_or_default();
                let chunk = ContinuationChunk {
                    version: header.prefix.version,
                    attribute_order_tracked: header.prefix.attribute_order_tracked,
                    chunk_len: continuation.length,
                    messages: Vec::new(),
                };
                if let Some(chunk) =
                    self.first_visit(continuation.addr).then(|| self.compare_at(chunk, continuation.addr)).flatten()
                {
                    messages.extend(chunk.messages);
                }
            }
            next += 1;
        }
        let at = addr.get().unwrap_or(0) as usize;
        for message in &messages {
            self.message(message, at, &messages);
        }
    }

    /// Keeps the bytes of a structure to be damaged.
    fn keep(&mut self, kind: u8, bytes: &[u8]) {
        let widths = (0..9).find(|byte| fuzz::widths_from_byte(*byte) == self.widths);
        let signed = bytes.first_chunk::<4>().is_some_and(|start| start.iter().all(u8::is_ascii_uppercase));
        if let Some(widths) = widths.filter(|_| bytes.len() < 300 && (kind != 0xff || signed)) {
            self.found.bytes.insert((kind, widths, bytes.to_vec()));
        }
    }

    /// A message whose body is a structure of its own.
    fn body<M: Message + Clone + Default + Debug>(&mut self, message: &RawMessage, at: usize) -> Option<M> {
        self.keep(u8::try_from(M::TYPE.number()).unwrap(), &message.body);
        self.compare(M::default(), at, &message.body)
    }

    fn message(&mut self, message: &RawMessage, at: usize, messages: &[RawMessage]) {
        let unknown_to_its_writer = message.flags.0 & 0x20 != 0;
        if unknown_to_its_writer {
            return;
        }
        if message.flags.is_shared() {
            self.compare(SharedMessageReference::default(), at, &message.body);
            return;
        }
        match message.kind {
            MessageType::DATASPACE => drop(self.body::<DataspaceMessage>(message, at)),
            MessageType::DATATYPE => drop(self.body::<DatatypeMessage>(message, at)),
            MessageType::FILL_VALUE_OLD => drop(self.body::<FillValueOldMessage>(message, at)),
            MessageType::FILL_VALUE => drop(self.body::<FillValueMessage>(message, at)),
            MessageType::EXTERNAL_FILES => {
                if let Some(files) = self.body::<ExternalFiles>(message, at) {
                    self.local_heap(files.heap);
                }
            }
            MessageType::GROUP_INFO => drop(self.body::<GroupInfo>(message, at)),
            MessageType::FILTER_PIPELINE => drop(self.body::<FilterPipelineMessage>(message, at)),
            MessageType::ATTRIBUTE => {
                if let Some(info) = self.body::<AttributeMessage>(message, at) {
                    self.attribute(&info);
                }
            }
            MessageType::COMMENT => drop(self.body::<Comment>(message, at)),
            MessageType::MODIFICATION_TIME_OLD => drop(self.body::<OldModificationTime>(message, at)),
            MessageType::CONTINUATION => drop(self.body::<ContinuationMessage>(message, at)),
            MessageType::MODIFICATION_TIME => drop(self.body::<ModificationTime>(message, at)),
            MessageType::DRIVER_INFO => drop(self.body::<DriverInfo>(message, at)),
            MessageType::REFERENCE_COUNT => drop(self.body::<ReferenceCount>(message, at)),
            MessageType::FILE_SPACE_INFO => {
                if let Some(info) = self.body::<FileSpaceInfo>(message, at) {
                    for manager in info.managers.iter().flatten() {
                        self.free_space(*manager);
                    }
                }
            }
            MessageType::CACHE_IMAGE => {
                if let Some(info) = self.body::<CacheImageInfo>(message, at) {
                    self.image = Some(info);
                }
            }
            MessageType::SHARED_MESSAGE_TABLE => {
                if let Some(info) = self.body::<SharedMessageTableInfo>(message, at) {
                    self.shared_messages(&info);
                }
            }
            MessageType::ATTRIBUTE_INFO => {
                if let Some(info) = self.body::<AttributeInfo>(message, at) {
                    self.dense_attributes(&info);
                }
            }
            MessageType::LINK_INFO => {
                if let Some(info) = self.body::<LinkInfo>(message, at) {
                    self.dense_links(&info);
                }
            }
            MessageType::BTREE_K => {
                if let Some(k) = self.body::<BtreeK>(message, at) {
                    self.k = k;
                }
            }
            MessageType::LINK => {
                if let Some(LinkMessage { value: LinkValue::Hard(addr), .. }) = self.body(message, at) {
                    self.header(addr);
                }
            }
            MessageType::SYMBOL_TABLE => {
                if let Some(table) = self.body::<SymbolTableMessage>(message, at) {
                    self.symbol_table(table.btree, table.heap);
                }
            }
            MessageType::LAYOUT => {
                if let Some(layout) = self.body::<LayoutMessage>(message, at) {
                    self.layout(&layout, messages);
                }
            }
            _ => {}
        }
    }

    fn layout(&mut self, layout: &LayoutMessage, messages: &[RawMessage]) {
        let unshared = |kind| messages.iter().find(move |m| m.kind == kind && !m.flags.is_shared());
        let datatype = unshared(MessageType::DATATYPE).and_then(|m| m.decode::<DatatypeMessage>(self.widths).ok());
        let filtered = messages.iter().any(|message| message.kind == MessageType::FILTER_PIPELINE);
        match &layout.storage {
            LayoutClass::Chunked(chunks) => self.chunks(chunks, layout.version, filtered),
            LayoutClass::Virtual { heap, index } => {
                let place = GlobalHeapId { collection: *heap, index: *index };
                if let Some(object) = self.heap_object(place) {
                    self.compare(VirtualLayout::default(), 0, &object);
                }
            }
            LayoutClass::Compact { data, .. } => {
                if let Some(message) = datatype {
                    self.elements(&message.datatype, data);
                }
            }
            LayoutClass::Contiguous { addr, size, .. } => {
                let data = self.at(*addr).and_then(|(_, bytes)| bytes.get(..usize::try_from(*size).ok()?));
                if let (Some(message), Some(data)) = (datatype, data) {
                    self.elements(&message.datatype, data);
                }
            }
        }
    }

    fn chunks(&mut self, chunks: &ChunkedStorage, version: u8, filtered: bool) {
        let rank = chunks.chunk_dims.len();
        match chunks.index {
            ChunkIndexType::Btree1 => {
                drop(self.btree1::<Btree1ChunkKey>(chunks.addr, self.k.chunk, Btree1ChunkRank(rank as u8)))
            }
            ChunkIndexType::FixedArray { .. } => drop(self.compare_at(FixedArrayHeader::default(), chunks.addr)),
            ChunkIndexType::ExtensibleArray(_) => drop(self.compare_at(ExtensibleArrayHeader::default(), chunks.addr)),
            ChunkIndexType::Btree2 { .. } if filtered => {
                let format = ChunkEntryFormat::filtered(chunks.chunk_bytes().unwrap(), version, self.widths.length);
                let ChunkEntryFormat::Filtered(width) = format else { return };
                self.btree2(chunks.addr, FilteredChunkRecord::blank(rank, width));
            }
            ChunkIndexType::Btree2 { .. } => drop(self.btree2(chunks.addr, ChunkRecord::blank(rank))),
            _ => {}
        }
    }

    fn symbol_table(&mut self, btree: Addr, heap: Addr) {
        for leaf in self.btree1::<Btree1GroupKey>(btree, self.k.group_internal, ()) {
            if let Some(node) = self.compare_at(SymbolTableNode::for_k(self.k), leaf) {
                for entry in node.entries {
                    self.header(entry.header);
                }
            }
        }
        self.local_heap(heap);
    }

    fn local_heap(&mut self, addr: Addr) {
        if !self.first_visit(addr) {
            return;
        }
        let Some(heap) = self.compare_at(LocalHeapPrefix::default(), addr) else { return };
        let Some((_, bytes)) = self.at(heap.data) else { return };
        let Some(bytes) = bytes.get(..usize::try_from(heap.data_size).unwrap()) else { return };
        let mut data = LocalHeapData { bytes: bytes.to_vec() };
        match data.free_ranges(heap.free_list_head, self.widths.length) {
            Ok(blocks) => {
                let head = data.write_free_list(&blocks, self.widths.length);
                assert_eq!(
                    (head, &data.bytes[..]),
                    (heap.free_list_head, bytes),
                    "{}: free blocks of a local heap",
                    self.name
                );
                *self.found.same.entry("free blocks").or_default() += blocks.len();
            }
            Err(error) => self.found.refused.push(format!("{}: {error}", self.name)),
        }
    }

    /// The children of all leaves of a B-tree.
    fn btree1<K: Btree1Key>(&mut self, root: Addr, k: u16, shape: K::Shape) -> Vec<Addr> {
        let mut leaves = Vec::new();
        if !self.first_visit(root) {
            return leaves;
        }
        let Some(node) = self.compare_at(Btree1Node::<K>::empty(k, shape, self.widths), root) else { return leaves };
        let children: Vec<_> = (0..node.len()).map(|i| node.child(i).unwrap()).collect();
        let keys: Vec<_> = (0..=node.len()).filter_map(|i| node.key(i)).collect();
        let mut again = node.clone();
        assert!(again.set_entries(&keys, &children));
        assert_eq!(again, node);
        if node.level == 0 {
            return children;
        }
        for child in children {
            leaves.extend(self.btree1::<K>(child, k, shape));
        }
        leaves
    }
}
