//! The layer as the seam has it: reading.

use std::sync::Arc;

use h5live_model::{
    AttributeData, ChunkStore, Error, Link, MapStore, Name, ObjectId, ObjectInfo, ObjectKind, ObjectKindSpec,
    ObjectScope, ObjectSpec, ReferenceKind, ReferenceType, Referent, Result, SessionInfo, Stats, Store, StoreFeatures,
    StoreWriter, Watch, WriterLiveness,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::layout;
use crate::table::{MapTable, scope_with_tables};

/// The number of no group.
const NO_GROUP: u64 = u64::MAX;

/// A session on a store without maps, which holds maps as tables.
#[derive(Debug)]
pub struct MapTableStore {
    inner: Arc<dyn Store>,
    described: SessionInfo,
    tables: RwLock<FxHashMap<ObjectId, Arc<MapTable>>>,
    /// Whether a table was ever opened. Most sessions have none, and look no further.
    has_tables: AtomicBool,
    mark: Name,
    /// The group that was last found to be no map.
    plain_group: AtomicU64,
}

impl MapTableStore {
    /// The same session, with maps.
    pub fn over(inner: Arc<dyn Store>) -> Self {
        let mut described = inner.session().clone();
        described.capabilities.features = described.capabilities.features.with(StoreFeatures::MAPS);
        MapTableStore {
            inner,
            described,
            tables: RwLock::default(),
            has_tables: AtomicBool::new(false),
            mark: layout::MARK_ATTRIBUTE.into(),
            plain_group: AtomicU64::new(NO_GROUP),
        }
    }

    /// The store below.
    pub fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    /// Whether an object is a map.
    pub(crate) fn is_map(&self, id: ObjectId) -> Result<bool> {
        Ok(self.inner.kind(id)? == ObjectKind::Group && self.inner.attribute(id, &self.mark)?.is_some())
    }

    /// Refuses to change the links of a map, which is no group for those who see maps.
    #[inline]
    pub(crate) fn check_not_map(&self, group: ObjectId) -> Result<()> {
        // Nothing has the number of no group, and no store that holds tables has numbers of more than 64 bits.
        let number = group.0 as u64;
        if self.plain_group.load(Ordering::Acquire) == number {
            return Ok(());
        }
        if self.is_map(group)? {
            return Err(Error::WrongKind { expected: "group" });
        }
        self.plain_group.store(number, Ordering::Release);
        Ok(())
    }

    /// Whether an attribute is the mark of a map.
    pub(crate) fn is_mark(&self, id: ObjectId, name: &Name) -> Result<bool> {
        Ok(*name == self.mark && self.inner.kind(id)? == ObjectKind::Group)
    }

    /// The table of a map.
    pub(crate) fn table(&self, map: ObjectId) -> Result<Arc<MapTable>> {
        if let Some(open) = self.tables.read().get(&map) {
            return if open.is_deleted() { Err(Error::NoObject(map)) } else { Ok(open.clone()) };
        }
        if !self.is_map(map)? {
            return Err(Error::WrongKind { expected: "map" });
        }
        let mut tables = self.tables.write();
        if let Some(open) = tables.get(&map) {
            return Ok(open.clone());
        }
        let opened = Arc::new(MapTable::open(&*self.inner, map)?);
        tables.insert(map, opened.clone());
        self.has_tables.store(true, Ordering::Release);
        Ok(opened)
    }

    /// The open tables that a scope names.
    pub(crate) fn open_tables(&self, scope: ObjectScope<'_>) -> Vec<Arc<MapTable>> {
        if !self.has_tables.load(Ordering::Acquire) {
            return Vec::new();
        }
        let tables = self.tables.read();
        match scope {
            ObjectScope::All => tables.values().cloned().collect(),
            ObjectScope::Objects(objects) => objects.iter().filter_map(|id| tables.get(id).cloned()).collect(),
        }
    }

    /// Gives up the memory of maps that this session has deleted. They stay known, so that nobody writes to them.
    pub(crate) fn drop_deleted_indexes(&self) {
        self.plain_group.store(NO_GROUP, Ordering::Release);
        self.tables
            .read()
            .values()
            .filter(|table| table.is_deleted())
            .for_each(|table| table.free_state_after_delete());
    }

    /// Whether a table was ever opened.
    #[inline]
    pub(crate) fn has_tables(&self) -> bool {
        self.has_tables.load(Ordering::Acquire)
    }

    /// Forgets what was known of an object that had this identity before. Which group is none is forgotten when an object
    /// is deleted.
    #[inline]
    pub(crate) fn forget(&self, map: ObjectId) {
        if self.has_tables.load(Ordering::Acquire) {
            self.tables.write().remove(&map);
        }
    }

    pub(crate) fn forget_all(&self) {
        self.tables.write().clear();
    }

    /// Whether rows of some table are not in the store.
    pub(crate) fn has_pending(&self) -> bool {
        self.has_tables.load(Ordering::Acquire) && self.tables.read().values().any(|table| table.is_dirty())
    }

    /// An attribute as the user sees it; `None` if it is the mark.
    fn user_attribute(&self, id: ObjectId, found: AttributeData) -> Result<Option<AttributeData>> {
        if self.is_mark(id, &found.name)? {
            return Ok(None);
        }
        let own = u16::from(found.creation_order.is_some() && self.is_map(id)?);
        let creation_order = found.creation_order.map(|order| order.saturating_sub(own));
        Ok(Some(AttributeData { creation_order, ..found }))
    }
}

impl Store for MapTableStore {
    fn session(&self) -> &SessionInfo {
        &self.described
    }

    fn kind(&self, id: ObjectId) -> Result<ObjectKind> {
        match self.inner.kind(id)? {
            ObjectKind::Group if self.inner.attribute(id, &self.mark)?.is_some() => Ok(ObjectKind::Map),
            kind => Ok(kind),
        }
    }

    fn spec(&self, id: ObjectId) -> Result<ObjectSpec> {
        let found = self.inner.spec(id)?;
        match found.body {
            ObjectKindSpec::Group(_) if self.is_map(id)? => {
                let table = self.inner.dataset(layout::find_table(&*self.inner, id)?)?;
                let body = ObjectKindSpec::Map(Box::new(layout::map_spec(&*table.spec()?)?));
                Ok(ObjectSpec { body, ..found })
            }
            _ => Ok(found),
        }
    }

    fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        self.inner.info(id)
    }

    /// A path through a map leads to its table, as it does for every other program.
    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>> {
        self.inner.link(group, name)
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        self.inner.for_each_link(group, each)
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<AttributeData>> {
        let found = self.inner.attribute(id, name)?;
        found.map_or(Ok(None), |found| self.user_attribute(id, found))
    }

    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>> {
        let mut names = self.inner.attribute_names(id)?;
        if names.contains(&self.mark) && self.is_mark(id, &self.mark)? {
            names.retain(|name| *name != self.mark);
        }
        Ok(names)
    }

    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> Result<()> {
        // The store may hold a lock while it lists, so what it is asked is asked before.
        let own = u16::from(self.is_map(id)?);
        self.inner.for_each_attribute(id, &mut |found| {
            if own == 1 && found.name == self.mark {
                return true;
            }
            let creation_order = found.creation_order.map(|order| order.saturating_sub(own));
            each(AttributeData { creation_order, ..found })
        })
    }

    #[inline]
    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn ChunkStore>> {
        self.inner.dataset(id)
    }

    fn read_blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        self.inner.read_blobs(elements, each)
    }

    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        self.inner.referent(kind, element)
    }

    fn encode_reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        self.inner.encode_reference(form, to)
    }

    fn refresh(&self, scope: ObjectScope<'_>) -> Result<()> {
        let (mut tables, mut objects) = (self.open_tables(scope), Vec::new());
        self.inner.refresh(scope_with_tables(scope, &tables, &mut objects))?;
        if scope == ObjectScope::All && !tables.is_empty() {
            // Maps that the writer has deleted.
            self.tables.write().retain(|_, table| table.is_still_table_of_map(&*self.inner));
            tables = self.open_tables(scope);
        }
        tables.iter().try_for_each(|table| table.read_new_rows(&*self.inner))
    }

    fn liveness(&self) -> Result<WriterLiveness> {
        self.inner.liveness()
    }

    fn is_abandoned(&self) -> Result<bool> {
        self.inner.is_abandoned()
    }

    fn watch(&self, objects: &[ObjectId]) -> Result<Box<dyn Watch>> {
        let mut watched = Vec::with_capacity(objects.len());
        for id in objects {
            watched.push(match self.is_map(*id)? {
                true => layout::find_table(&*self.inner, *id)?,
                false => *id,
            });
        }
        self.inner.watch(&watched)
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    fn close(&self) -> Result<()> {
        let written = match self.inner.writer() {
            Ok(_) => self.write_out(ObjectScope::All),
            Err(_) => Ok(()),
        };
        // It is closed in any case.
        let closed = self.inner.close();
        self.forget_all();
        written.and(closed)
    }

    fn writer(&self) -> Result<&dyn StoreWriter> {
        self.inner.writer().map(|_| self as &dyn StoreWriter)
    }

    fn maps(&self) -> Option<&dyn MapStore> {
        Some(self)
    }
}
