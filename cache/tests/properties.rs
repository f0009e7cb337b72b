//! Random programs against a plain model: the order of all writes, what failed writes lose (nothing), and what is on
//! the storage in the end.
#![cfg(not(loom))]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use h5live_cache::{
    Cache, CacheOptions, ChunkProxy, DependencyKind, DependencyKinds, DependencyNode, Entry, FaultyStorage, FlushScope,
    Handle, InjectedFailure, MemoryStorage, Owner, RecordingStorage, ReusePolicy, SpaceKind, StorageOp,
    SuperblockEncoder, replay_operations,
};
use h5live_format::{Addr, EncodeError, Widths};
use proptest::{prelude::*, test_runner::RngSeed};

/// A structure of 16 bytes: a version, and how often it has been changed in vain.
#[derive(Debug, Clone, PartialEq)]
struct Block(u64);

const BLOCK: u64 = 16;

impl Entry for Block {
    fn encode_image(&self, _: Widths) -> Result<Vec<u8>, EncodeError> {
        let mut image = self.0.to_le_bytes().to_vec();
        image.extend((!self.0).to_le_bytes());
        Ok(image)
    }

    fn weight(&self) -> usize {
        1000
    }
}

impl Block {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, check) = bytes.split_at_checked(8)?;
        let version = u64::from_le_bytes(version.try_into().ok()?);
        (check == (!version).to_le_bytes()).then_some(Block(version))
    }
}

/// Sixteen bytes: the announced end, and its complement.
#[derive(Debug)]
struct CheckedEofSuperblock;

impl SuperblockEncoder for CheckedEofSuperblock {
    fn encode_with_eof(&self, end: u64) -> Result<(Addr, Vec<u8>), EncodeError> {
        Ok((Addr::new(0), Block(end).encode_image(Widths::default())?))
    }
}

type Disk = FaultyStorage<RecordingStorage<MemoryStorage>>;

#[derive(Debug, Clone)]
enum Act {
    Insert { owner: usize },
    Update(usize),
    Depend { parent: usize, child: usize },
    Undepend { parent: usize, child: usize },
    Raw { chunk: usize, offset: u8, len: u8, parent: usize },
    RawThrough { chunk: usize, offset: u8, len: u8, parent: usize },
    RawNew,
    RawDependsOn { chunk: usize, child: usize, parent: usize },
    Remove(usize),
    Free(usize),
    FlushAll,
    FlushOwner(usize),
    Trim,
    Evict,
    EvictOwner(usize),
    Fail { after: u64, failure: InjectedFailure },
}

fn act() -> impl Strategy<Value = Act> {
    let i = || 0usize..12;
    let failure = prop_oneof![
        Just(InjectedFailure::StorageFull),
        Just(InjectedFailure::Broken),
        (0usize..40).prop_map(InjectedFailure::PartialWrite)
    ];
    prop_oneof![
        4 => (0usize..3).prop_map(|owner| Act::Insert { owner }),
        6 => i().prop_map(Act::Update),
        8 => (i(), i()).prop_map(|(parent, child)| Act::Depend { parent, child }),
        1 => (i(), i()).prop_map(|(parent, child)| Act::Undepend { parent, child }),
        4 => (0usize..4, 0u8..60, 0u8..60, i()).prop_map(|(chunk, offset, len, parent)| Act::Raw { chunk, offset, len, parent }),
        2 => (0usize..4, 0u8..60, 0u8..60, i()).prop_map(|(chunk, offset, len, parent)| Act::RawThrough { chunk, offset, len: len + 9, parent }),
        2 => Just(Act::RawNew),
        2 => (0usize..4, i(), i()).prop_map(|(chunk, child, parent)| Act::RawDependsOn { chunk, child, parent }),
        1 => i().prop_map(Act::Remove),
        1 => i().prop_map(Act::Free),
        2 => Just(Act::FlushAll),
        3 => (0usize..3).prop_map(Act::FlushOwner),
        2 => Just(Act::Trim),
        1 => Just(Act::Evict),
        1 => (0usize..3).prop_map(Act::EvictOwner),
        2 => (0u64..8, failure).prop_map(|(after, failure)| Act::Fail { after, failure }),
    ]
}

fn owner(n: usize) -> Owner {
    Owner::new(Addr::new(1 << 40 | n as u64))
}

const CHUNK: usize = 128;

/// Shorter pieces of new chunks are gathered.
const GATHERED: usize = 8;

/// What can be joined: blocks by their address, chunks by theirs.
type Key = u64;

struct Model {
    cache: Cache,
    disk: Disk,
    /// The blocks that there are, in order of their making.
    blocks: Vec<(Addr, usize)>,
    versions: BTreeMap<Key, u64>,
    chunks: Vec<(Addr, Vec<u8>)>,
    /// Bytes of new chunks, which must be there before any block that is written later.
    gathered: Vec<(usize, [u8; GATHERED])>,
    /// The latest proxy of each chunk.
    proxies: BTreeMap<Key, ChunkProxy>,
    /// Child to parents.
    edges: BTreeSet<(Key, Key)>,
    /// Edges of chunks that were written by a flush that failed later: the cache may or may not keep them.
    stale: BTreeSet<(Key, Key)>,
    next: u64,
    /// The storage as the log has it so far.
    image: Vec<u8>,
    announced: u64,
}

impl Model {
    fn new(disabled: DependencyKinds) -> Self {
        let disk = FaultyStorage::new(RecordingStorage::new(MemoryStorage::from(vec![0; 48])));
        let mut settings = CacheOptions::default();
        settings.dirty_metadata_budget_bytes = 4000;
        settings.dirty_raw_budget_bytes = 100;
        settings.max_buffered_piece_bytes = GATHERED;
        settings.metadata_budget_bytes = 64 * 1500;
        settings.mutant.violated_edges = disabled;
        let cache = Cache::new_writable(Arc::new(disk.clone()), settings, 48, Arc::new(CheckedEofSuperblock));
        let mut model = Model {
            cache,
            disk,
            blocks: Vec::new(),
            versions: BTreeMap::new(),
            chunks: Vec::new(),
            gathered: Vec::new(),
            proxies: BTreeMap::new(),
            edges: BTreeSet::new(),
            stale: BTreeSet::new(),
            next: 1,
            image: vec![0; 48],
            announced: 48,
        };
        for _ in 0..4 {
            let at = model.cache.space().alloc(CHUNK as u64, SpaceKind::Raw).unwrap();
            model.chunks.push((at, vec![0; CHUNK]));
        }
        model
    }

    fn version(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn block(&self, n: usize) -> Option<(Addr, usize)> {
        (!self.blocks.is_empty()).then(|| self.blocks[n % self.blocks.len()])
    }

    fn load(&self, (at, of): (Addr, usize)) -> Handle<Block> {
        let read = || {
            let bytes = self.cache.read_block_uncached(at, BLOCK as usize)?;
            Ok::<_, h5live_cache::Error>(Block::decode(&bytes).expect("what was evicted is on the storage"))
        };
        let handle = self.cache.load(at, owner(of), read).unwrap();
        assert_eq!(handle.read().0, self.versions[&at.get().unwrap()], "an entry came back with another value");
        handle
    }

    /// Changes a block and declares all edges above it, as whoever changes an entry must.
    fn update(&mut self, block: (Addr, usize)) -> Handle<Block> {
        let version = self.version();
        let handle = self.load(block);
        handle.update(|block| block.0 = version);
        let key = block.0.get().unwrap();
        self.versions.insert(key, version);
        self.declare_above(key, &handle);
        handle
    }

    fn declare_above(&self, key: Key, child: &dyn DependencyNode) {
        for (_, up) in self.edges.iter().filter(|(child, _)| *child == key) {
            let parent: Box<dyn DependencyNode> = match self.blocks.iter().find(|(at, _)| at.get() == Some(*up)) {
                Some(parent) => Box::new(self.load(*parent)),
                None => Box::new(self.proxies[up]),
            };
            self.cache.add_dependency(&*parent, child, DependencyKind::BTree2HeaderToNode).unwrap();
            self.declare_above(*up, &*parent);
        }
    }

    fn is_below(&self, lower: Key, upper: Key) -> bool {
        let mut open = vec![lower];
        let mut seen = BTreeSet::new();
        while let Some(key) = open.pop() {
            if key == upper {
                return true;
            }
            if seen.insert(key) {
                let edges = self.edges.union(&self.stale);
                open.extend(edges.filter(|(child, _)| *child == key).map(|(_, parent)| *parent));
            }
        }
        false
    }

    fn raw(&mut self, chunk: usize, offset: u8, len: u8, through: bool) -> Option<(Key, ChunkProxy)> {
        let version = self.version();
        let (at, now) = &mut self.chunks[chunk];
        let bytes: Vec<u8> = (0..len).map(|n| (version as u8).wrapping_mul(31).wrapping_add(n)).collect();
        let proxy = if through {
            match self.cache.write_or_enqueue_new_raw(owner(0), *at, offset.into(), &bytes) {
                Ok(proxy) => proxy,
                // Any part may have been written: make the model certain again.
                Err(_) => Some(self.cache.enqueue_raw_write(owner(0), *at, offset.into(), bytes.clone())),
            }
        } else {
            Some(self.cache.enqueue_raw_write(owner(0), *at, offset.into(), bytes.clone()))
        };
        now[usize::from(offset)..usize::from(offset) + bytes.len()].copy_from_slice(&bytes);
        // Only flushes are checked for their order: a write-through comes by itself, before what points to it.
        replay_operations(&mut self.image, &self.disk.inner().take_log()).unwrap();
        let mut read = vec![0; usize::from(len)];
        self.cache.read_raw(*at, offset.into(), &mut read).unwrap();
        assert_eq!(read, bytes, "raw data is read as it was written");
        let key = at.get().unwrap();
        self.proxies.insert(key, proxy?);
        Some((key, proxy?))
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Insert { owner: of } => {
                let at = self.cache.space().alloc(BLOCK, SpaceKind::Metadata).unwrap();
                let version = self.version();
                self.cache.insert_entry(at, owner(of), Block(version));
                self.blocks.push((at, of));
                self.versions.insert(at.get().unwrap(), version);
            }
            Act::Update(n) => {
                if let Some(block) = self.block(n) {
                    self.update(block);
                }
            }
            Act::Depend { parent, child } => {
                let (Some(parent), Some(child)) = (self.block(parent), self.block(child)) else { return };
                let (up, down) = (parent.0.get().unwrap(), child.0.get().unwrap());
                let handle = self.update(child);
                let above = self.update(parent);
                let cyclic = self.is_below(up, down);
                let joined = self.cache.add_dependency(&above, &handle, DependencyKind::BTree2HeaderToNode);
                // The cache forgets edges of clean entries that were evicted: it may miss a circle, never invent one.
                assert!(cyclic || joined.is_ok(), "an edge was refused without reason");
                if joined.is_ok() && cyclic {
                    self.cache.remove_dependencies(&above, &handle);
                } else if joined.is_ok() {
                    self.edges.insert((down, up));
                }
            }
            Act::Undepend { parent, child } => {
                let (Some(parent), Some(child)) = (self.block(parent), self.block(child)) else { return };
                self.cache.remove_dependencies(&self.load(parent), &self.load(child));
                self.edges.remove(&(child.0.get().unwrap(), parent.0.get().unwrap()));
            }
            Act::Raw { chunk, offset, len, parent } | Act::RawThrough { chunk, offset, len, parent } => {
                let through = matches!(act, Act::RawThrough { .. });
                let (Some((key, proxy)), Some(parent)) = (self.raw(chunk, offset, len, through), self.block(parent))
                else {
                    return;
                };
                let up = parent.0.get().unwrap();
                if self.is_below(up, key) {
                    return;
                }
                let handle = self.update(parent);
                self.cache.add_dependency(&handle, &proxy, DependencyKind::BTree2Chunk).unwrap();
                self.edges.insert((key, up));
            }
            Act::RawNew => {
                let at = self.cache.space().alloc(GATHERED as u64, SpaceKind::Raw).unwrap();
                let bytes = self.version().to_le_bytes();
                assert_eq!(self.cache.write_or_enqueue_new_raw(owner(0), at, 0, &bytes).unwrap(), None);
                self.gathered.push((at.get().unwrap() as usize, bytes));
                for (at, bytes) in &self.gathered {
                    let mut read = [0; GATHERED];
                    self.cache.read_raw(Addr::new(*at as u64), 0, &mut read).unwrap();
                    assert_eq!(read, *bytes, "gathered raw data is read as it was written");
                }
            }
            Act::RawDependsOn { chunk, child, parent } => {
                let (Some(child), Some(parent)) = (self.block(child), self.block(parent)) else { return };
                let (down, up) = (child.0.get().unwrap(), parent.0.get().unwrap());
                let key = self.chunks[chunk].0.get().unwrap();
                // What was joined to the chunk before was for bytes that may be written already.
                if down == up || self.is_below(key, down) || self.is_below(up, down) || self.is_below(up, key) {
                    return;
                }
                let handle = self.update(child);
                let Some((_, proxy)) = self.raw(chunk, 0, 8, false) else { return };
                self.cache.add_dependency(&proxy, &handle, DependencyKind::ChunkGlobalHeap).unwrap();
                let above = self.update(parent);
                self.cache.add_dependency(&above, &proxy, DependencyKind::BTree2Chunk).unwrap();
                self.edges.extend([(down, key), (key, up)]);
            }
            Act::Remove(n) | Act::Free(n) => {
                let Some((at, _)) = self.block(n) else { return };
                let key = at.get().unwrap();
                self.cache.forget_entry(at);
                if matches!(act, Act::Free(_)) {
                    self.cache.space().free_metadata_after_full_flush(at, BLOCK);
                }
                self.blocks.retain(|(there, _)| *there != at);
                self.versions.remove(&key);
                self.edges.retain(|(child, parent)| *child != key && *parent != key);
            }
            Act::FlushAll => {
                let done = self.cache.flush(FlushScope::All).is_ok();
                self.check_log();
                if done {
                    self.check_storage(|_| true);
                }
            }
            Act::FlushOwner(n) => {
                let done = self.cache.flush(FlushScope::Owner(owner(n))).is_ok();
                self.check_log();
                if done {
                    self.check_storage(|of| of == n);
                }
            }
            Act::Trim => {
                let _ = self.cache.flush_over_budget();
                self.check_log();
            }
            Act::Evict => self.cache.evict_all(),
            Act::EvictOwner(n) => self.cache.evict_owner(owner(n)),
            Act::Fail { after, failure } => self.disk.fail_after(after, failure, false),
        }
    }

    fn on_storage(&self, key: Key) -> bool {
        let at = key as usize;
        match self.chunks.iter().find(|(chunk, _)| chunk.get() == Some(key)) {
            // Bytes that were never written need not exist.
            Some((_, now)) => (0..CHUNK).all(|n| self.image.get(at + n).copied().unwrap_or(0) == now[n]),
            None => {
                let bytes = self.image.get(at..at + BLOCK as usize).unwrap_or_default();
                Block::decode(bytes).map(|block| block.0) == self.versions.get(&key).copied()
            }
        }
    }

    /// Goes through what a flush wrote: at each write, all that the written entry depends on is on the storage.
    fn check_log(&mut self) {
        for operation in self.disk.inner().take_log() {
            replay_operations(&mut self.image, [&operation]).unwrap();
            let StorageOp::Write { at, bytes } = &operation else { continue };
            if let (0, Some(superblock)) = (*at, Block::decode(&self.image[..16])) {
                self.announced = superblock.0;
            }
            assert!(self.image.len() as u64 >= self.announced, "the file is shorter than announced");
            let written = *at..*at + bytes.len() as u64;
            if self.versions.contains_key(at) {
                let missing =
                    self.gathered.iter().find(|(at, bytes)| self.image.get(*at..at + GATHERED) != Some(&bytes[..]));
                assert_eq!(missing, None, "a block was written before gathered raw data");
                assert!(at + BLOCK <= self.announced, "an entry was written beyond the announced end");
                self.check_below(*at);
            }
            for chunk in self.chunks.iter().filter_map(|(chunk, _)| chunk.get()) {
                if written.start < chunk + CHUNK as u64 && chunk < written.end {
                    self.check_below(chunk);
                }
            }
        }
        // A proxy ends when its data has been written, and its edges with it.
        let written: Vec<Key> =
            self.chunks.iter().filter_map(|c| c.0.get()).filter(|key| self.on_storage(*key)).collect();
        let (gone, kept) = self.edges.iter().partition(|(child, up)| written.contains(child) || written.contains(up));
        self.edges = kept;
        self.stale.extend::<BTreeSet<_>>(gone);
        assert!(self.image == self.disk.inner().inner().to_vec(), "the log does not give the same bytes");
    }

    fn check_below(&self, written: Key) {
        let mut open = vec![written];
        let mut seen = BTreeSet::new();
        while let Some(key) = open.pop() {
            let there = key == written || self.on_storage(key);
            assert!(there, "{written:#x} was written before {key:#x}, on which it depends");
            let below = self.edges.iter().filter(|(_, parent)| *parent == key).map(|(child, _)| *child);
            open.extend(below.filter(|child| seen.insert(*child)));
        }
    }

    fn check_storage(&self, of: impl Fn(usize) -> bool) {
        for (at, owner) in &self.blocks {
            assert!(!of(*owner) || self.on_storage(at.get().unwrap()), "{at} was not flushed");
        }
        for (at, _) in &self.chunks {
            assert!(!of(0) || self.on_storage(at.get().unwrap()), "raw data at {at} was not flushed");
        }
    }

    fn end(&mut self) {
        self.disk.clear_fault();
        self.act(&Act::FlushAll);
        let is_there = |(at, bytes): &(usize, [u8; GATHERED])| self.image[*at..at + GATHERED] == *bytes;
        assert!(self.gathered.iter().all(is_there), "a flush writes what was gathered");
        assert!(self.cache.begin_flush(FlushScope::All).unwrap().steps().is_empty(), "a flush leaves nothing");
        self.cache.finalize_and_truncate(true).unwrap();
        self.disk.inner().take_log();
        let whole = self.disk.inner().inner().to_vec();
        assert_eq!(whole.len() as u64, self.cache.space().allocated_end());
        assert_eq!(Block::decode(&whole[..16]).unwrap().0, whole.len() as u64);
        self.cache.evict_all();
        assert_eq!(self.cache.metadata_memory_bytes(), 0, "nothing keeps clean entries");
        for block in self.blocks.clone() {
            self.load(block);
        }
    }
}

fn run(acts: &[Act]) {
    let mut model = Model::new(DependencyKinds::NONE);
    for act in acts {
        model.act(act);
    }
    model.end();
}

/// The same cases each time, unless `PROPTEST_RNG_SEED` (and `PROPTEST_CASES`) ask for others.
fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    let seed = if asked.rng_seed == RngSeed::Random { RngSeed::Fixed(0x5eed) } else { asked.rng_seed };
    println!("seed {seed:?}");
    ProptestConfig { cases: asked.cases.max(1500), rng_seed: seed, failure_persistence: None, ..asked }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_is_written_before_what_it_depends_on_and_nothing_is_lost(acts in prop::collection::vec(act(), 0..60)) {
        run(&acts);
    }
}

#[test]
fn a_broken_edge_is_noticed() {
    for (kind, acts) in [
        (DependencyKind::BTree2HeaderToNode, vec![Act::Depend { parent: 0, child: 1 }]),
        (DependencyKind::BTree2Chunk, vec![Act::Raw { chunk: 0, offset: 0, len: 8, parent: 0 }]),
        (DependencyKind::ChunkGlobalHeap, vec![Act::RawDependsOn { chunk: 0, child: 1, parent: 0 }]),
        (DependencyKind::SuperblockEof, vec![]),
        (DependencyKind::FileLength, vec![]),
    ] {
        let violated = std::panic::catch_unwind(|| {
            let mut model = Model::new(DependencyKinds::only(kind));
            let before = [Act::Insert { owner: 0 }, Act::Insert { owner: 0 }];
            before.iter().chain(&acts).for_each(|act| model.act(act));
            model.end();
        });
        println!("{kind:?}: {violated:?}");
        assert!(violated.is_err(), "{kind:?} can be broken unnoticed");
    }
}

#[test]
fn threads_that_write_and_flush_keep_the_order() {
    let disk = RecordingStorage::new(MemoryStorage::from(vec![0; 48]));
    let cache = Arc::new(Cache::new_writable(
        Arc::new(disk.clone()),
        CacheOptions::default(),
        48,
        Arc::new(CheckedEofSuperblock),
    ));
    let pairs: Vec<_> = (0..3)
        .map(|n| {
            let [parent, child] = [(); 2].map(|()| cache.space().alloc(BLOCK, SpaceKind::Metadata).unwrap());
            let chunk = cache.space().alloc(BLOCK, SpaceKind::Raw).unwrap();
            (n, parent, child, chunk)
        })
        .collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for &(n, parent, child, chunk) in &pairs {
            let (cache, stop) = (&cache, &stop);
            scope.spawn(move || {
                let of = owner(n);
                let parent = cache.insert_entry(parent, of, Block(0));
                let child = cache.insert_entry(child, of, Block(0));
                for version in 1..=300 {
                    {
                        let _operation = cache.begin_atomic_change();
                        let proxy = cache.enqueue_raw_write(
                            of,
                            chunk,
                            0,
                            Block(version).encode_image(Widths::default()).unwrap(),
                        );
                        child.update(|block| block.0 = version);
                        parent.update(|block| block.0 = version);
                        cache.add_dependency(&parent, &child, DependencyKind::BTree2HeaderToNode).unwrap();
                        cache.add_dependency(&child, &proxy, DependencyKind::BTree2Chunk).unwrap();
                    }
                    cache.flush(FlushScope::Owner(of)).unwrap();
                }
                stop.store(true, Relaxed);
            });
        }
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                cache.flush(FlushScope::All).unwrap();
            }
        });
    });
    let mut image = vec![0; 48];
    let at = |image: &[u8], at: Addr| {
        let at = at.get().unwrap() as usize;
        image.get(at..at + BLOCK as usize).and_then(Block::decode).map_or(0, |block| block.0)
    };
    for operation in disk.log() {
        replay_operations(&mut image, [&operation]).unwrap();
        for &(_, parent, child, chunk) in &pairs {
            let versions = [parent, child, chunk].map(|addr| at(&image, addr));
            assert!(versions.is_sorted(), "parent, child, chunk are at {versions:?}");
        }
    }
    for &(_, parent, child, chunk) in &pairs {
        assert_eq!([parent, child, chunk].map(|addr| at(&image, addr)), [300; 3]);
    }
}

#[test]
fn freed_space_is_used_again_only_when_nothing_on_the_storage_points_to_it() {
    let cache = Cache::new_writable(
        Arc::new(MemoryStorage::new()),
        CacheOptions::default(),
        48,
        Arc::new(CheckedEofSuperblock),
    );
    let space = cache.space();
    let freed = space.alloc(BLOCK, SpaceKind::Metadata).unwrap();
    cache.insert_entry(freed, owner(0), Block(1));
    cache.flush(FlushScope::All).unwrap();
    cache.forget_entry(freed);
    space.free_metadata_after_full_flush(freed, BLOCK);
    assert_ne!(space.alloc(BLOCK, SpaceKind::Metadata).unwrap(), freed);
    cache.flush(FlushScope::All).unwrap();
    assert_eq!(space.alloc(BLOCK, SpaceKind::Metadata).unwrap(), freed);
    space.set_reuse_policy(ReusePolicy::Never);
    space.free_metadata_after_full_flush(freed, BLOCK);
    cache.flush(FlushScope::All).unwrap();
    assert_ne!(space.alloc(BLOCK, SpaceKind::Metadata).unwrap(), freed);
}
