//! The superblock extension: what versions 2 and 3 of the superblock say elsewhere.

use std::sync::Arc;

use h5live_cache::{Cache, Owner};
use h5live_format::messages::{BtreeK, CacheImageInfo, FileSpaceInfo, MessageType, SharedMessageTableInfo};
use h5live_format::{Addr, CacheImage, SharedMessageTable, Superblock, Widths, decode_with};
use h5live_indexes::ObjectMetadataAccess;
use h5live_model::FileSpaceSettings;

use crate::header::CachedHeader;
use crate::{Error, Result};

/// The contents of the superblock extension.
#[derive(Debug, Clone, Default)]
pub(crate) struct SuperblockExtension {
    /// The sizes of version 1 B-tree nodes.
    pub btree_k: BtreeK,
    /// The table of shared messages.
    pub shared: Option<SharedMessageTable>,
    /// Where the table is.
    pub shared_addr: Addr,
    /// How space is handed out.
    pub space: FileSpaceSettings,
}

/// Most bytes of a metadata cache image.
const MAX_CACHE_IMAGE_BYTES: u64 = 1 << 30;

/// The structures that the program that closed a file left in one block, and not in their places.
///
/// # Errors
/// If the image cannot be read.
pub(crate) fn load_cache_image(cache: &Arc<Cache>, superblock: &Superblock) -> Result<Vec<(u64, Vec<u8>)>> {
    let Some(header) = load_extension_header(cache, superblock)? else { return Ok(Vec::new()) };
    let Some(info) = header.get_message::<CacheImageInfo>()?.filter(|info| info.addr.is_defined()) else {
        return Ok(Vec::new());
    };
    let len = usize::try_from(info.size.min(MAX_CACHE_IMAGE_BYTES)).unwrap_or(usize::MAX);
    let bytes = cache.read_block_uncached(info.addr, len)?;
    let blank = CacheImage { size: info.size, ..CacheImage::default() };
    let image = decode_with(blank, &bytes, cache.widths());
    let image = image.map_err(|source| h5live_cache::Error::Decode { at: info.addr, source })?;
    Ok(image.entries.into_iter().filter_map(|entry| Some((entry.addr.get()?, entry.image))).collect())
}

/// Puts the structures of a metadata cache image into their places. If that is interrupted, the image is still there.
///
/// # Errors
/// If they cannot be written.
pub(crate) fn apply_cache_image(cache: &Cache, image: Vec<(u64, Vec<u8>)>) -> Result<()> {
    let write = |(at, bytes): (u64, Vec<u8>)| cache.storage().write_at(&bytes, at);
    image.into_iter().try_for_each(write).map_err(Error::io("put the structures of a metadata cache image in place"))
}

/// The object header of the superblock extension, if there is one.
pub(crate) fn load_extension_header(cache: &Arc<Cache>, superblock: &Superblock) -> Result<Option<CachedHeader>> {
    if superblock.version < 2 || !superblock.extension_or_free_space.is_defined() {
        return Ok(None);
    }
    CachedHeader::load_header(
        &ObjectMetadataAccess::new(cache.clone(), Owner::new(superblock.extension_or_free_space)),
        false,
    )
    .map(Some)
}

/// How the file's space is managed, as its extension says; nothing if a program that did not know the message has
/// changed the file since, as libhdf5 does.
///
/// # Errors
/// If the message cannot be decoded.
pub(crate) fn load_file_space_info(header: &CachedHeader) -> Result<Option<FileSpaceInfo>> {
    match header
        .find_message(|message| message.kind == MessageType::FILE_SPACE_INFO && !message.flags.was_unknown_to_writer())
    {
        None => Ok(None),
        Some((_, message)) => header.decode_message(&message).map(Some),
    }
}

impl SuperblockExtension {
    /// Reads the extension to which the superblock leads.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(cache: &Arc<Cache>, superblock: &Superblock) -> Result<Self> {
        let none = SuperblockExtension { btree_k: superblock.btree_k, ..SuperblockExtension::default() };
        let Some(header) = load_extension_header(cache, superblock)? else { return Ok(none) };
        let btree_k = header.get_message::<BtreeK>()?.unwrap_or(none.btree_k);
        let (shared, shared_addr) = match header.get_message::<SharedMessageTableInfo>()? {
            Some(info) if info.table.is_defined() => {
                let metadata = ObjectMetadataAccess::new(cache.clone(), Owner::FILE);
                let table = || SharedMessageTable::blank(info.index_count);
                let table =
                    metadata.load(info.table, shared_message_table_bytes(info.index_count, cache.widths()), table)?;
                let table = table.read().clone();
                (Some(table), info.table)
            }
            _ => (None, Addr::UNDEFINED),
        };
        let space = load_file_space_info(&header)?.map_or(none.space, |info| (&info).into());
        Ok(SuperblockExtension { btree_k, shared, shared_addr, space })
    }
}

/// Bytes of the table of shared messages: signature, indexes, checksum.
pub(crate) fn shared_message_table_bytes(indexes: u8, widths: Widths) -> u64 {
    let index = 14 + 2 * widths.offset.bytes() as u64;
    8 + u64::from(indexes) * index
}
