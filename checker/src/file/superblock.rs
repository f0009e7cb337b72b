//! The superblock and its extension: where everything begins.

use h5live_cache::Storage;
use h5live_format::messages::{BtreeK, CacheImageInfo, DriverInfo, FileSpaceInfo, MessageType, SharedMessageTableInfo};
use h5live_format::{
    Addr, CacheImage, DriverInfoBlock, GenerationWord, Record, RedoRecord, SeqlockCounter, StatusFlags, Superblock,
    decode, encoded_len,
};

use super::FindingCause;
use super::file_bytes::FileBytes;
use super::space_map::ObjectIndex;
use super::walk::{FileWalk, MAX_STRUCTURE_BYTES};

const NAME: &str = Superblock::NAME;

impl<'a> FileWalk<'a> {
    /// Finds the superblock and what belongs to the file as a whole. `false` if there is nothing to follow.
    pub fn load_and_check_superblock(&mut self, storage: &'a dyn Storage) -> bool {
        let len = match storage.len() {
            Ok(len) => len,
            Err(error) => {
                self.report(NAME, Addr::new(0), FindingCause::Io(error.kind()));
                return false;
            }
        };
        self.source = FileBytes::new(storage, 0, len);
        let mut bytes = Vec::new();
        let at = Superblock::possible_offsets(len).find(|at| {
            bytes = self.source.read(*at, Superblock::MAX_SIZE as u64).unwrap_or_default();
            bytes.starts_with(&Superblock::SIGNATURE)
        });
        let Some(at) = at else {
            self.report(NAME, Addr::new(0), FindingCause::Missing("signature at 0, 512, 1024, ..."));
            return false;
        };
        self.report.is_hdf5 = true;
        self.source = FileBytes::new(storage, at, len);
        match Superblock::decode(&bytes) {
            Ok(superblock) => self.superblock = superblock,
            Err(error) => {
                self.report(NAME, Addr::new(0), error.into());
                return false;
            }
        }
        self.widths = self.superblock.widths;
        self.k = self.superblock.btree_k;
        self.check_end_of_file(len);
        self.check_redo_record();
        let size = encoded_len(&self.superblock, self.widths).unwrap_or_default();
        self.claim_metadata(NAME, Addr::new(0), size as u64);
        if self.superblock.version < 2 {
            self.add_unchecksummed_bytes(size as u64);
        }
        if self.superblock.version > 1 {
            if self.superblock.extension_or_free_space.is_defined() {
                self.check_superblock_extension();
            }
        } else {
            if self.superblock.extension_or_free_space.is_defined() {
                let rule = "nothing lies at the address of free space, which no program has ever written";
                self.report(NAME, Addr::new(0), FindingCause::BrokenRule(rule));
            }
            if self.superblock.driver_info.is_defined() {
                self.check_driver_info();
            }
        }
        true
    }

    /// The end of the space in use, and whether the file is closed.
    fn check_end_of_file(&mut self, len: u64) {
        let at = self.source.base;
        let (stated, announced) = (self.superblock.base, self.superblock.end_of_file.get().unwrap_or(0));
        if stated != Addr::new(at) {
            // A user block was put before the file, or taken away: libhdf5 corrects what it reads.
            self.add_note(
                NAME,
                Addr::new(0),
                FindingCause::NumberMismatch { what: "base address", stated: stated.get().unwrap_or(0), found: at },
            );
        }
        self.end = announced.saturating_sub(stated.get().unwrap_or(0));
        let status = self.superblock.status;
        let open = status.without(StatusFlags::OK) != StatusFlags::CLEAR;
        self.end_may_grow = self.options.may_be_live && open;
        let here = len.saturating_sub(at);
        if self.end > here {
            let cause =
                FindingCause::NumberMismatch { what: "end of file", stated: self.end.saturating_add(at), found: len };
            if self.options.may_be_live {
                self.add_note(NAME, Addr::new(0), cause)
            } else {
                self.report(NAME, Addr::new(0), cause)
            }
        } else if self.end < here {
            let cause =
                FindingCause::NumberMismatch { what: "end of file", stated: self.end.saturating_add(at), found: len };
            self.add_note(NAME, Addr::new(0), cause);
            if self.end_may_grow {
                self.end = here;
            }
        }
        if open {
            let cause = FindingCause::NotClosed(status.bits());
            // Before version 3 nobody looks at the flags.
            if self.superblock.version >= 3 && !self.options.may_be_live {
                self.report(NAME, Addr::new(0), cause);
            } else {
                self.add_note(NAME, Addr::new(0), cause);
            }
        }
    }

    /// Checks the redo record of a writer that has died. Readers take its changes as made, and the next writer makes
    /// them.
    fn check_redo_record(&mut self) {
        let end = self.superblock.end_of_file.get().and_then(|end| end.checked_sub(self.superblock.base.get()?));
        let Some(end) = end else { return };
        // Where readers go by generations, these come first.
        let generations = self.superblock.version < 3 && self.superblock.status.contains(StatusFlags::SWMR);
        let end_at = Addr::new(end);
        let place =
            if generations { GenerationWord::redo_record_addr(end_at) } else { SeqlockCounter::word_addr(end_at) };
        let Some(place) = place.and_then(Addr::get) else { return };
        let head = self.source.read(place, RedoRecord::HEAD_BYTES as u64).unwrap_or_default();
        let Some(bytes) = RedoRecord::stated_size(&head)
            .filter(|size| *size <= MAX_STRUCTURE_BYTES)
            .and_then(|size| self.source.read(place, size).ok())
        else {
            return;
        };
        let Ok(record) = decode::<RedoRecord>(&bytes, self.widths) else { return };
        if record.addr != Addr::new(place) {
            return;
        }
        self.add_note(NAME, Addr::new(0), FindingCause::UnfinishedRedo { writes: record.writes.len() as u64 });
        for write in record.writes {
            let len = write.bytes.len() as u64;
            if let Some(at) = write.at.get().filter(|at| at.checked_add(len).is_some_and(|last| last <= end)) {
                self.source.overlay(at, write.bytes);
            }
        }
    }

    fn check_superblock_extension(&mut self) {
        let addr = self.superblock.extension_or_free_space;
        let Some(header) = self.check_object_header(addr) else {
            self.incomplete = true;
            return;
        };
        self.check_equal(header.structure_name(), addr, "hard links", header.stated_link_count().into(), 1);
        // The image lies over other structures, and node sizes decide how they are read.
        if let Some(info) = self.load_message::<CacheImageInfo>(&header) {
            self.check_cache_image(&info);
        }
        if let Some(k) = self.load_message::<BtreeK>(&header) {
            self.k = k;
        }
        self.load_message::<DriverInfo>(&header);
        if let Some(info) = self.load_message::<SharedMessageTableInfo>(&header) {
            self.check_shared_message_table(&info);
        }
        if let Some(info) = self.load_message::<FileSpaceInfo>(&header) {
            self.check_file_free_space(&info, addr);
        }
        for message in &header.messages {
            let belongs = [
                MessageType::NIL,
                MessageType::CONTINUATION,
                MessageType::CACHE_IMAGE,
                MessageType::BTREE_K,
                MessageType::DRIVER_INFO,
                MessageType::SHARED_MESSAGE_TABLE,
                MessageType::FILE_SPACE_INFO,
                MessageType::REFERENCE_COUNT,
            ];
            if message.kind.is_known() && !belongs.contains(&message.kind) {
                self.add_note(
                    header.structure_name(),
                    addr,
                    FindingCause::BrokenRule("a superblock extension holds messages about the file"),
                );
            }
        }
    }

    /// The image of a metadata cache: structures that are newer than those at their addresses.
    fn check_cache_image(&mut self, info: &CacheImageInfo) {
        let context = CacheImage { size: info.size, entries: Vec::new() };
        let Some(image) = self.claim_and_decode(context, info.addr, info.size) else { return };
        self.check_equal(CacheImage::NAME, info.addr, "size", info.size, image.size);
        for entry in image.entries {
            let len = entry.image.len() as u64;
            let Some(at) = self.check_and_report_range("metadata cache entry", entry.addr, len) else { continue };
            if entry.dirty {
                self.source.overlay(at, entry.image);
            }
        }
    }

    fn check_driver_info(&mut self) {
        let addr = self.superblock.driver_info;
        let Some(bytes) = self.read_up_to(DriverInfoBlock::NAME, addr, 4096) else { return };
        if let Some(block) = self.decode(DriverInfoBlock::default(), addr, &bytes) {
            self.claim_metadata(DriverInfoBlock::NAME, addr, (block.data.len() as u64).saturating_add(16));
        }
    }

    /// Begins with the root group.
    pub fn enqueue_root_group(&mut self) {
        let header = self.superblock.root.header();
        let Some(at) = header.get() else {
            self.report(NAME, Addr::new(0), FindingCause::UndefinedAddr("root group"));
            return;
        };
        let root = self.objects.add_link(ObjectIndex::FILE, b"", at);
        if let Some(cached) = self.superblock.root.cached_symbol_table() {
            self.objects.set_cached_symbol_table(root, cached);
        }
    }
}
