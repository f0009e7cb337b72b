//! The links that a file had before an import, so that it can be taken back ([`super::Importer::roll_back`]).
//!
//! In the layouts with one dataset for each content, they are known by a list of their paths, which the import makes before it adds
//! anything. All others are removed, and their objects with them.

use std::collections::HashSet;

use h5live::File;
use h5live::archive::layout::{LINK_HASHES_BEFORE_IMPORT, TABLE_GROUP, UNPLACED_CONTENT_GROUP};
use h5live::model::{LinkTarget, Name, ObjectId, ObjectKind};
use twox_hash::XxHash3_128;

use crate::count_with_examples::CountWithExamples;
use crate::error::{Error, Result, UnsuitableFileReason};
use crate::tables::read_byte_rows;

/// Bytes of the hash of a path.
const HASH_BYTES: usize = 16;

/// A link of a file.
struct FoundLink {
    group: ObjectId,
    name: Name,
    path: Vec<u8>,
    hash: [u8; HASH_BYTES],
}

/// All links of a file but those of the tables; a link to a group comes before those in it.
fn all_links(file: &File) -> Result<Vec<FoundLink>> {
    let error = |source| Error::Store { file: file.name().to_owned(), source };
    let root = file.session().root;
    let mut groups = vec![(root, Vec::new())];
    if let Ok(group) = file.group(UNPLACED_CONTENT_GROUP) {
        groups.push((group.id(), UNPLACED_CONTENT_GROUP.as_bytes().to_vec()));
    }
    let mut known: HashSet<ObjectId> = groups.iter().map(|(id, _)| *id).collect();
    let mut found = Vec::new();
    while let Some((group, path)) = groups.pop() {
        let mut links = Vec::new();
        let mut take = |link: h5live::model::Link| {
            links.push((link.name, link.target));
            true
        };
        file.store().for_each_link(group, &mut take).map_err(error)?;
        for (name, target) in links {
            if group == root && name.as_bytes() == TABLE_GROUP.as_bytes() {
                continue;
            }
            let path = [&path[..], b"/", name.as_bytes()].concat();
            let hash = XxHash3_128::oneshot(&path).to_le_bytes();
            found.push(FoundLink { group, name, path: path.clone(), hash });
            if let LinkTarget::Hard(id) = target
                && file.store().kind(id).map_err(error)? == ObjectKind::Group
                && known.insert(id)
            {
                groups.push((id, path));
            }
        }
    }
    Ok(found)
}

/// Keeps the list of all links of a file, until [`delete_saved_link_hashes`].
///
/// # Errors
/// [`Error::File`].
pub fn save_link_hashes_before_import(file: &File) -> Result<()> {
    delete_saved_link_hashes(file)?;
    let hashes: Vec<[u8; HASH_BYTES]> = all_links(file)?.into_iter().map(|link| link.hash).collect();
    if !hashes.is_empty() {
        let shape = [hashes.len() as u64, HASH_BYTES as u64];
        file.new_dataset::<u8>()
            .shape(&shape)
            .contiguous()
            .create_with_data(LINK_HASHES_BEFORE_IMPORT, hashes.as_flattened())?;
    }
    Ok(())
}

/// Drops the list of links.
///
/// # Errors
/// [`Error::File`].
pub fn delete_saved_link_hashes(file: &File) -> Result<()> {
    match file.root().unlink(LINK_HASHES_BEFORE_IMPORT) {
        Err(error) if error.is_not_found_in_file() => Ok(()),
        done => Ok(done?),
    }
}

/// Removes all links that were not there before the import, and returns which: other programs may have made some of them
/// since. `archive_count_before`: how many the file had then.
///
/// # Errors
/// [`UnsuitableFileReason::NoSavedLinkHashes`]; [`Error::File`].
pub fn remove_new_links(file: &File, archive_count_before: u64) -> Result<CountWithExamples> {
    let before: HashSet<[u8; HASH_BYTES]> = match file.dataset(LINK_HASHES_BEFORE_IMPORT) {
        Ok(dataset) => read_byte_rows(&dataset, HASH_BYTES)?.as_chunks().0.iter().copied().collect(),
        Err(error) if error.is_not_found_in_file() && archive_count_before == 0 => HashSet::new(),
        Err(error) if error.is_not_found_in_file() => {
            return Err(Error::unsuitable_file(file, UnsuitableFileReason::NoSavedLinkHashes));
        }
        Err(error) => return Err(error.into()),
    };
    let new: Vec<FoundLink> = all_links(file)?.into_iter().filter(|link| !before.contains(&link.hash)).collect();
    let mut removed_links = CountWithExamples::default();
    new.iter().for_each(|link| removed_links.add(&link.path));
    for link in new.iter().rev() {
        let removed = file.writer().and_then(|writer| writer.remove_link(link.group, &link.name));
        removed.map_err(|source| Error::Store { file: file.name().to_owned(), source })?;
    }
    Ok(removed_links)
}
