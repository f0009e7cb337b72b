//! Stores of which a byte was changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::claims::has_claimed_features;
use super::maps::{make_map, put};
use super::store_fixture::{StoreFixture, make, name, number, u16le, unlimited_spec};
use super::types::rows;
use crate::{
    CharacterSet, ChunkCoord, Datatype, LinkTarget, MapScan, NewObject, ObjectId, ObjectKind, ObjectScope, ObjectSpec,
    PublishLevel, Result, Store, StoreFeatures, StringPadding, VarLenKind, VarLenType,
};

/// Bytes of a file that are changed, one after the other.
const CHANGES_IN_A_FILE: u64 = 200;

/// What is covered by checksums, so that a changed byte cannot be read as something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumCoverage {
    /// Everything.
    All,
    /// What says which objects there are and where they lie, but not values.
    Structures,
    /// Nothing.
    None,
}

/// A [`StoreFixture`] whose stores lie in files, which can be damaged. [`damage_suite!`](super::damage_suite) makes the test.
pub trait DamageableStoreFixture: StoreFixture {
    /// The files of the store that was closed last: each kind of object that it stores is in one of them.
    fn closed_store_files(&self) -> Vec<PathBuf>;

    /// Opens the store that was closed last, to be read.
    ///
    /// # Errors
    /// If it is damaged.
    fn reopen_read_only(&self) -> Result<Self::Store>;

    /// What has checksums.
    fn checksum_coverage(&self) -> ChecksumCoverage;

    /// Whether the check of the store finds something wrong with the one that was closed last.
    fn closed_store_fails_check(&self) -> bool {
        false
    }
}

/// What a store holds: what there is, and the values in it.
#[derive(Debug, Default, PartialEq, Eq)]
struct StoreContent {
    structures: Vec<String>,
    values: Vec<Vec<u8>>,
}

impl StoreContent {
    fn read(store: &impl Store) -> Result<Self> {
        let (mut content, mut seen) = (StoreContent::default(), BTreeSet::new());
        content.add_object(store, store.session().root, &mut seen)?;
        Ok(content)
    }

    fn add_object(&mut self, store: &impl Store, id: ObjectId, seen: &mut BTreeSet<ObjectId>) -> Result<()> {
        if !seen.insert(id) {
            return Ok(());
        }
        self.structures.push(format!("{:?}", store.spec(id)?));
        for name in store.attribute_names(id)?.into_iter().collect::<BTreeSet<_>>() {
            let found = store.attribute(id, &name)?;
            let found = found.ok_or(crate::Error::NotFound("an attribute that is listed".into()))?;
            self.structures.push(format!("{name:?} {:?} {:?}", found.datatype, found.dataspace));
            self.add_elements(store, &found.datatype, &found.value)?;
        }
        let kind = store.kind(id)?;
        if kind == ObjectKind::Dataset {
            let data = store.dataset(id)?;
            let datatype = data.spec()?.datatype.clone();
            let mut chunks = Vec::new();
            data.for_each_chunk(&mut |chunk| {
                chunks.push(chunk);
                chunks.len() < 100
            })?;
            chunks.sort_by_key(|chunk| format!("{:?}", chunk.coord));
            for chunk in chunks {
                self.structures.push(format!("{:?} {}", chunk.coord, chunk.size));
                let mut bytes = vec![0; chunk.size.min(1 << 20) as usize];
                data.read(&chunk, 0, &mut bytes)?;
                self.add_elements(store, &datatype, &bytes)?;
            }
        }
        if let (Some(maps), ObjectKind::Map) = (store.maps(), kind) {
            maps.for_each(id, &MapScan::default(), &mut |key, value| {
                self.values.push([format!("{key:?}").as_bytes(), value].concat());
                self.values.len() < 1000
            })?;
        }
        let mut links = Vec::new();
        if kind == ObjectKind::Group {
            store.for_each_link(id, &mut |link| {
                links.push(link);
                links.len() < 100
            })?;
        }
        links.sort_by(|a, b| a.name.cmp(&b.name));
        for link in links {
            self.structures.push(format!("{:?}", link.name));
            match link.target {
                LinkTarget::Hard(below) => self.add_object(store, below, seen)?,
                other => self.structures.push(format!("{other:?}")),
            }
        }
        Ok(())
    }

    /// Values; of those of variable length, what the elements lead to.
    fn add_elements(&mut self, store: &impl Store, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
        if !datatype.has_vlen() {
            self.values.push(bytes.to_vec());
            return Ok(());
        }
        let elements: Vec<&[u8]> = bytes.chunks_exact((datatype.size() as usize).max(1)).collect();
        store.read_blobs(&elements, &mut |_, bytes| self.values.push(bytes.to_vec()))
    }
}

/// A store with an object of each kind, which is closed.
fn write_each_kind<L: DamageableStoreFixture>(lab: &L) {
    let store = lab.create();
    let writer = store.writer().unwrap();
    let root = store.session().root;
    let group = writer.create(&NewObject::linked(root, &name("group"), &ObjectSpec::group())).unwrap();
    writer.set_attribute(group, &number(name("number"), 7)).unwrap();
    let data = make(&store, "data", unlimited_spec(&[20], &[4]));
    (0..5).for_each(|at| data.write_whole_chunk(&ChunkCoord::new(&[at]), 0, &[at as u8 + 1; 8]).unwrap());
    data.publish(PublishLevel::Visible).unwrap();
    if has_claimed_features(&store, StoreFeatures::COMMITTED_TYPES) {
        writer.create(&NewObject::linked(root, &name("type"), &u16le().into())).unwrap();
    }
    if has_claimed_features(&store, StoreFeatures::VARIABLE_LENGTH) {
        let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
        let text = Datatype::VarLen(VarLenType {
            kind,
            size: store.session().vlen_and_reference_sizes.vlen,
            base: Box::default(),
        });
        let texts = make(&store, "texts", rows(text, 2));
        let element = |text: &str| writer.put_blob(text.as_bytes(), text.len() as u32).unwrap();
        let elements = [element("the first text"), element("another one")].concat();
        texts.write_whole_chunk(&ChunkCoord::new(&[0]), 0, &elements).unwrap();
        texts.publish(PublishLevel::Visible).unwrap();
    }
    if has_claimed_features(&store, StoreFeatures::MAPS) {
        let map = make_map(&store, "map", u16le(), u16le());
        put(&store, map, &[(&[1, 0], &[2, 0]), (&[3, 0], &[4, 0])]).unwrap();
    }
    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    store.close().unwrap();
}

/// A changed byte of whatever is stored is an error, or is read as what was written, or the check of the store finds it; where
/// no checksum covers it, it may be read as another value. It never ends the process, and never takes for ever.
pub fn test_damaged_bytes(lab: &impl DamageableStoreFixture) {
    write_each_kind(lab);
    let sound = StoreContent::read(&lab.reopen_read_only().unwrap()).unwrap();
    assert!(sound.structures.len() > 5 && sound.values.len() > 5, "{sound:?}");
    let (mut refused, mut found_by_check, mut others) = (0, 0, 0);
    for file in lab.closed_store_files() {
        let bytes = fs::read(&file).unwrap();
        let step = (bytes.len() as u64).div_ceil(CHANGES_IN_A_FILE).max(1);
        for at in (0..bytes.len()).step_by(step as usize) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(&file, &changed).unwrap();
            match lab.reopen_read_only().and_then(|store| StoreContent::read(&store)) {
                Err(_) => refused += 1,
                Ok(found) if found == sound => {}
                Ok(_) if lab.closed_store_fails_check() => found_by_check += 1,
                Ok(found) => {
                    let is_covered = match lab.checksum_coverage() {
                        ChecksumCoverage::All => true,
                        ChecksumCoverage::Structures => found.structures != sound.structures,
                        ChecksumCoverage::None => false,
                    };
                    assert!(!is_covered, "{}, byte {at}: {found:?} instead of {sound:?}", file.display());
                    others += 1;
                }
            }
        }
        fs::write(&file, &bytes).unwrap();
    }
    println!("{refused} changes are errors, {found_by_check} are found by the check, {others} are other values");
    assert!(refused > 0);
    assert_eq!(StoreContent::read(&lab.reopen_read_only().unwrap()).unwrap(), sound, "all is as it was");
}
