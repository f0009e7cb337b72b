//! Owners and extended attributes of what is extracted: of open files, and of links by their folder, so that no link is followed.

use std::fs::File;
use std::io;

use cap_std::fs::Dir;
use h5live::archive::layout::EntryRow;

use crate::owner_and_xattrs::OwnerAndXattrs;

/// What is set beside contents, times and permissions. Nothing is by default, as GNU tar does it for who is not root.
#[derive(Debug, Clone, Default)]
pub struct ExtractOptions {
    /// Owner and group, by their names if the system has them, else by their numbers.
    pub same_owner: bool,
    /// Owner and group by their numbers alone.
    pub numeric_owner: bool,
    /// Extended attributes whose names match one of these patterns; none without patterns.
    pub xattr_patterns: Vec<String>,
}

impl ExtractOptions {
    /// Whether the headers of entries are needed.
    pub fn needs_headers(&self) -> bool {
        self.same_owner || !self.xattr_patterns.is_empty()
    }

    /// The extended attributes that are to be set.
    fn wanted<'a>(&self, found: &'a OwnerAndXattrs) -> impl Iterator<Item = &'a (Vec<u8>, Vec<u8>)> {
        let is_wanted =
            |name: &[u8]| self.xattr_patterns.iter().any(|pattern| h5live::archive::is_glob_match(pattern, name));
        let wanted: Vec<_> = found.xattrs.iter().filter(|(name, _)| is_wanted(name)).collect();
        wanted.into_iter()
    }

    /// Sets owner and extended attributes of an open file or folder. `on_error` is told what cannot be set, and why.
    pub fn apply_owner_and_xattrs(
        &self,
        file: &File,
        row: &EntryRow,
        found: &OwnerAndXattrs,
        on_error: &mut dyn FnMut(String, io::Error),
    ) {
        for (name, value) in self.wanted(found) {
            if let Err(error) = set_xattr(file, name, value) {
                on_error(xattr_text(name), error);
            }
        }
        if self.same_owner
            && let Err(error) = self.owner(row, found).and_then(|owner| change_owner(file, owner))
        {
            on_error(owner_text(row, found), error);
        }
    }

    /// As [`ExtractOptions::apply_owner_and_xattrs`], of the symbolic link `name` in `folder`.
    pub fn apply_owner_to_symlink(
        &self,
        (folder, name): (&Dir, &std::ffi::OsStr),
        row: &EntryRow,
        found: &OwnerAndXattrs,
        on_error: &mut dyn FnMut(String, io::Error),
    ) {
        for (xattr, _) in self.wanted(found) {
            on_error(xattr_text(xattr), io::Error::other("a symbolic link has none here"));
        }
        if self.same_owner
            && let Err(error) = self.owner(row, found).and_then(|owner| change_link_owner(folder, name, owner))
        {
            on_error(owner_text(row, found), error);
        }
    }

    /// The numbers of the owner and of the group.
    fn owner(&self, row: &EntryRow, found: &OwnerAndXattrs) -> io::Result<(u32, u32)> {
        // The last number stands for no change.
        let number = |number: u64| {
            let number = u32::try_from(number).ok().filter(|number| *number != u32::MAX);
            number.ok_or_else(|| io::Error::other("its number is too large"))
        };
        let (user, group) = match self.numeric_owner {
            true => (None, None),
            false => (user_number(&found.user), group_number(&found.group)),
        };
        Ok((user.map_or_else(|| number(row.uid), Ok)?, group.map_or_else(|| number(row.gid), Ok)?))
    }
}

fn xattr_text(name: &[u8]) -> String {
    format!("the extended attribute {}", crate::shown_name::escaped(name))
}

fn owner_text(row: &EntryRow, found: &OwnerAndXattrs) -> String {
    let name = |name: &[u8], number: u64| match name {
        b"" => number.to_string(),
        name => crate::shown_name::escaped(name),
    };
    format!("the owner {}:{}", name(&found.user, row.uid), name(&found.group, row.gid))
}

#[cfg(unix)]
fn user_number(name: &[u8]) -> Option<u32> {
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    nix::unistd::User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
}

#[cfg(unix)]
fn group_number(name: &[u8]) -> Option<u32> {
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    nix::unistd::Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw())
}

#[cfg(unix)]
fn change_owner(file: &File, (user, group): (u32, u32)) -> io::Result<()> {
    std::os::unix::fs::fchown(file, Some(user), Some(group))
}

#[cfg(unix)]
fn change_link_owner(folder: &Dir, name: &std::ffi::OsStr, (user, group): (u32, u32)) -> io::Result<()> {
    use rustix::fs::{AtFlags, Gid, Uid, chownat};
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    Ok(chownat(folder, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn set_xattr(file: &File, name: &[u8], value: &[u8]) -> io::Result<()> {
    Ok(rustix::fs::fsetxattr(file, name, value, rustix::fs::XattrFlags::empty())?)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn set_xattr(_: &File, _: &[u8], _: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn user_number(_: &[u8]) -> Option<u32> {
    None
}

#[cfg(not(unix))]
fn group_number(_: &[u8]) -> Option<u32> {
    None
}

#[cfg(not(unix))]
fn change_owner(_: &File, _: (u32, u32)) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn change_link_owner(_: &Dir, _: &std::ffi::OsStr, _: (u32, u32)) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
