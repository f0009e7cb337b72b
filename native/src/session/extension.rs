//! The superblock extension while a session writes the file.

use h5live_cache::FlushScope;
use h5live_format::messages::{BtreeK, CacheImageInfo, FileSpaceInfo, FileSpaceStrategy, MessageType};
use h5live_format::{Addr, MessageFlags};
use h5live_model::{FileSpaceSettings, ObjectSpec};

use super::NativeSession;
use crate::header::ReservedHeaderSpace;
use crate::superblock_extension::{load_extension_header, load_file_space_info};
use crate::{Error, Result};

/// The message is not to be shared, and is marked by programs that do not know it and change the header.
const SPACE_INFO_FLAGS: MessageFlags = MessageFlags(0x14);

impl NativeSession {
    /// Removes the parts of the superblock extension that are valid only while nobody changes the file: the metadata
    /// cache image, and the list of free space.
    ///
    /// # Errors
    /// If the extension cannot be changed.
    pub fn adopt_free_space_drop_image(&self) -> Result<()> {
        let Some(mut header) = load_extension_header(&self.cache, &self.superblock)? else { return Ok(()) };
        if header.has_message(MessageType::DRIVER_INFO) {
            let what = "changing a file that is cut into several";
            return Err(Error::Model(h5live_model::Error::Unsupported(what)));
        }
        let mut space = load_file_space_info(&header)?;
        let mut free = Vec::new();
        if let Some(info) = &mut space {
            if info.strategy == FileSpaceStrategy::Paged && info.version > 0 {
                self.cache.space().set_page_size_and_align_end(info.page_size)?;
            }
            free = self.take_managed_sections(info)?;
        }
        let operation = self.cache.begin_atomic_change();
        if let Some((spot, message)) = header.find_message(|message| message.kind == MessageType::CACHE_IMAGE) {
            let image: CacheImageInfo = header.decode_message(&message)?;
            self.cache.space().free_metadata_after_full_flush(image.addr, image.size);
            header.remove_message(spot)?;
        }
        if let Some(info) = space.filter(|info| info.managers.is_some()) {
            header.set_message(&info)?;
        }
        drop(operation);
        self.cache.flush(FlushScope::All)?;
        if self.durable_flushes.is_always() && !free.is_empty() {
            self.cache.sync_flushed()?;
        }
        // Only now does the file no longer say that this is free.
        free.into_iter().for_each(|(at, len, kind)| self.cache.space().adopt_unreachable_range(at, len, kind));
        Ok(())
    }

    /// Creates a superblock extension that says how the file allocates its space, and the sizes of its B-tree nodes.
    /// Allocates like that from here on. Returns its address.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create_superblock_extension(&mut self, space: FileSpaceSettings) -> Result<Addr> {
        if space.strategy == FileSpaceStrategy::Paged {
            self.cache.space().set_page_size_and_align_end(space.page_size)?;
        }
        let mut messages = Vec::new();
        if self.extension.btree_k != BtreeK::default() {
            messages.push(self.encode_message(self.extension.btree_k, MessageFlags(0))?);
        }
        if space != FileSpaceSettings::default() {
            messages.push(self.encode_message(FileSpaceInfo::from(space), SPACE_INFO_FLAGS)?);
        }
        let spec = ObjectSpec::group();
        let header =
            self.create_header(&spec, self.new_header_prefix(&spec), messages, ReservedHeaderSpace::AtEnd(0))?;
        self.extension.space = space;
        Ok(header.addr())
    }
}
