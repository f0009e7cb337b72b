//! The metadata of one object: where its structures are read, cached, allocated and ordered.

use std::collections::HashMap;
use std::sync::Arc;

use h5live_cache::{Cache, DependencyKind, DependencyNode, Entry, Handle, Owner, SpaceKind};
use h5live_format::{Addr, Record, Width, Widths, decode_with};

use crate::Result;

/// The way from one object to its structures.
#[derive(Debug, Clone)]
pub struct ObjectMetadataAccess {
    cache: Arc<Cache>,
    owner: Owner,
}

/// A structure that was looked at.
#[derive(Debug)]
pub(crate) enum MaybeCached<R: Entry> {
    Cached(Handle<R>),
    Uncached(R),
}

impl<R: Entry> MaybeCached<R> {
    pub(crate) fn with<T>(&self, look: impl FnOnce(&R) -> T) -> T {
        match self {
            MaybeCached::Cached(handle) => look(&handle.read()),
            MaybeCached::Uncached(value) => look(value),
        }
    }
}

impl ObjectMetadataAccess {
    /// The structures of `owner` in the file of `cache`.
    pub fn new(cache: Arc<Cache>, owner: Owner) -> Self {
        ObjectMetadataAccess { cache, owner }
    }

    /// The file.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// The object.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// The widths of the file.
    pub fn widths(&self) -> Widths {
        self.cache.widths()
    }

    /// The width of addresses.
    pub fn addr_width(&self) -> Width {
        self.widths().offset
    }

    /// The structure of `len` bytes at `addr`, from the cache or the file; `blank` holds the context that its bytes
    /// do not carry.
    ///
    /// # Errors
    /// If the bytes cannot be read or are not such a structure.
    pub fn load<R: Record + Entry>(&self, addr: Addr, len: u64, blank: impl FnOnce() -> R) -> Result<Handle<R>> {
        let decode = |bytes: &[u8]| self.decode(addr, bytes, blank());
        Ok(self.cache.load_block(addr, self.owner, usize::try_from(len).unwrap_or(usize::MAX), decode)?)
    }

    /// As [`ObjectMetadataAccess::load`], where also the length follows from the shape.
    ///
    /// # Errors
    /// As [`ObjectMetadataAccess::load`].
    pub(crate) fn load_with_computed_len<R: Record + Entry>(
        &self,
        addr: Addr,
        shape: impl FnOnce() -> (R, u64),
    ) -> Result<Handle<R>> {
        let read = || {
            let (shape, len) = shape();
            self.read(addr, len, || shape)
        };
        Ok(self.cache.load(addr, self.owner, read)?)
    }

    /// As [`ObjectMetadataAccess::load`], of a structure that is not worth keeping: it is cached only if it was before.
    ///
    /// # Errors
    /// As [`ObjectMetadataAccess::load`].
    pub(crate) fn read_once<R: Record + Entry>(
        &self,
        addr: Addr,
        len: u64,
        shape: impl FnOnce() -> R,
    ) -> Result<MaybeCached<R>> {
        if self.cache.get_cached::<R>(addr)?.is_some() {
            return self.load(addr, len, shape).map(MaybeCached::Cached);
        }
        Ok(MaybeCached::Uncached(self.read(addr, len, shape)?))
    }

    fn read<R: Record>(&self, addr: Addr, len: u64, shape: impl FnOnce() -> R) -> h5live_cache::Result<R> {
        let bytes = self.cache.read_block_uncached(addr, usize::try_from(len).unwrap_or(usize::MAX))?;
        self.decode(addr, &bytes, shape())
    }

    fn decode<R: Record>(&self, addr: Addr, bytes: &[u8], shape: R) -> h5live_cache::Result<R> {
        decode_with(shape, bytes, self.widths()).map_err(|source| h5live_cache::Error::Decode { at: addr, source })
    }

    /// A new structure of `len` bytes in newly allocated space.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create<R: Entry>(&self, len: u64, value: R) -> Result<Handle<R>> {
        let addr = self.cache.space().alloc(len, SpaceKind::Metadata)?;
        Ok(self.cache.insert_entry(addr, self.owner, value))
    }

    /// As [`ObjectMetadataAccess::create`], for a length that the file states. `value` is called only if the length is within
    /// the limit of allocations.
    ///
    /// # Errors
    /// As [`ObjectMetadataAccess::create`]; if the length is larger than what may be allocated at once.
    pub(crate) fn create_with_stated_len<R: Entry>(&self, len: u64, value: impl FnOnce() -> R) -> Result<Handle<R>> {
        self.cache.check_memory_allocation(self.owner.object_header_addr(), len)?;
        self.create(len, value())
    }

    /// Finds space before `limit` (bytes from the base address) for structures that lie at or behind it. Each is given
    /// with its length (bytes). The last ones come first, so that the file becomes shorter. Returns the new addresses.
    pub(crate) fn alloc_all_before(
        &self,
        limit: u64,
        structures: impl Iterator<Item = (Addr, u64)>,
    ) -> HashMap<Addr, Addr> {
        let mut behind: Vec<_> = structures.filter(|(addr, _)| addr.get().is_some_and(|at| at >= limit)).collect();
        behind.sort_unstable_by(|a, b| b.cmp(a));
        let space = self.cache.space();
        let place = |(addr, len)| Some((addr, space.alloc_before(len, SpaceKind::Metadata, limit)?));
        behind.into_iter().filter_map(place).collect()
    }

    /// Forgets the structure of `len` bytes at `addr`, and gives its space back.
    pub fn free_structure(&self, addr: Addr, len: u64) {
        self.cache.free_structure(addr, len);
    }

    /// As [`ObjectMetadataAccess::free_structure`], of a structure to which only others of the same object lead, which stays.
    pub fn free_after_owner_flush(&self, addr: Addr, len: u64) {
        self.cache.forget_entry(addr);
        self.cache.space().free_metadata_after_owner_flush(self.owner, addr, len);
    }

    /// Orders two structures: `parent` is never written while `child` is dirty.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    pub fn add_dependency(
        &self,
        parent: &(impl DependencyNode + ?Sized),
        child: &(impl DependencyNode + ?Sized),
        kind: DependencyKind,
    ) -> Result<()> {
        Ok(self.cache.add_dependency(parent, child, kind).map_err(h5live_cache::Error::from)?)
    }

    /// Makes `parent` wait for the structures in `before`, to which it leads. If that would close a circle, as between
    /// groups that link to each other, the file led to the child before, and has it already.
    pub(crate) fn add_prerequisites(&self, parent: &dyn DependencyNode, before: &[Prerequisite<'_>]) {
        for (child, kind) in before {
            let _circle = match kind {
                // The object is new, and there from then on.
                DependencyKind::Link => self.cache.add_dependency_until_first_write(parent, *child, *kind),
                _ => self.cache.add_dependency_until_clean(parent, *child, *kind),
            };
        }
    }
}

/// A structure that must be written before the one that leads to it, and the kind of dependency. The child of a
/// [link](DependencyKind::Link) is new.
pub type Prerequisite<'a> = (&'a dyn DependencyNode, DependencyKind);
