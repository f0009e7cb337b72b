//! What a writer does step by step, and what a reader must find at any time.
//!
//! Step `n` makes a dataset, or deletes one; then it overwrites the number of steps; then it appends row `n`. A writer that
//! was killed within a step leaves it to the next one. So the rows that a reader sees tell it what else is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use h5live_hsds::HsdsStore;
use h5live_model::{
    AttributeData, ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, Dataspace, Datatype, Error, LinkTarget,
    Mode, NewObject, ObjectId, ObjectScope, ObjectSpec, PublishLevel, Result, Sign, Store,
};
use h5live_objects::ObjectClient;

use crate::{DOMAIN, append, create, find, long_lease, numbers, open};

/// A step whose number is a multiple of this makes a dataset.
const PERIOD: u64 = 4;
/// A dataset is deleted so many steps after it was made.
const LIFE: u64 = PERIOD + 2;
/// The chunks of a dataset that a step makes.
const MADE_CHUNKS: u64 = 2;
/// Rows that were read before, of which each look reads so many again.
const REREAD: u64 = 3;

/// A writer of steps.
pub struct StepWriter {
    store: HsdsStore,
    rows: Arc<dyn ChunkStore>,
    steps: Arc<dyn ChunkStore>,
    made: ObjectId,
}

fn put(data: &dyn ChunkStore, place: u64, value: u64) -> Result<()> {
    let bytes = [value.to_le_bytes(), value.to_le_bytes()].concat();
    let writes = [ChunkWrite::Whole { coord: &ChunkCoord::new(&[place]), filter_mask: 0, bytes: &bytes }];
    data.write(&ChunkBatch { writes: &writes, extent: None, publish_after: &[], publish: None })
}

fn last_row(number: u64) -> AttributeData {
    AttributeData {
        name: "last".into(),
        datatype: Datatype::integer(8, ByteOrder::Little, Sign::Unsigned),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: number.to_le_bytes().to_vec(),
        creation_order: None,
    }
}

impl StepWriter {
    /// Makes a domain before its first step.
    pub fn create_domain(client: &ObjectClient) -> Result<()> {
        let store = open(client, DOMAIN, Mode::CreateNew, &long_lease())?;
        create(&store, "rows", 0);
        create(&store, "steps", 2);
        let root = store.session().root;
        store.writer()?.create(&NewObject::linked(root, &"made".into(), &ObjectSpec::group()))?;
        store.close()
    }

    /// Goes on with a domain.
    pub fn new(store: HsdsStore) -> Result<Self> {
        let dataset = |name| store.dataset(find(&store, name).unwrap());
        let (rows, steps, made) = (dataset("rows")?, dataset("steps")?, find(&store, "made").unwrap());
        Ok(StepWriter { store, rows, steps, made })
    }

    /// The number of the next step.
    pub fn next(&self) -> Result<u64> {
        Ok(self.rows.spec()?.dataspace.dims()[0] / 2)
    }

    /// Does the next step, of which everything is committed then.
    pub fn step(&self, number: u64) -> Result<()> {
        let writer = self.store.writer()?;
        if number.is_multiple_of(PERIOD) {
            self.make(number)?;
        }
        if let Some(made) = number.checked_sub(LIFE).filter(|made| made.is_multiple_of(PERIOD)) {
            let name = made.to_string().as_str().into();
            // The writer before may have deleted it.
            if self.store.link(self.made, &name)?.is_some() {
                writer.remove_link(self.made, &name)?;
                writer.commit(ObjectScope::All, PublishLevel::Visible)?;
            }
        }
        put(&*self.steps, 0, number + 1)?;
        writer.set_attribute(self.rows.id(), &last_row(number))?;
        append(&*self.rows, number)
    }

    fn make(&self, number: u64) -> Result<()> {
        let (writer, name) = (self.store.writer()?, number.to_string().as_str().into());
        if self.store.link(self.made, &name)?.is_none() {
            let id = writer.create(&NewObject::linked(self.made, &name, &numbers(2 * MADE_CHUNKS)))?;
            let data = self.store.dataset(id)?;
            (0..MADE_CHUNKS).try_for_each(|place| put(&*data, place, number))?;
            writer.commit(ObjectScope::All, PublishLevel::Visible)?;
        }
        Ok(())
    }
}

/// What a reader has found so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Found {
    pub looks: u64,
    /// Rows that it has seen.
    pub rows: u64,
    /// Chunks that were read.
    pub chunks: u64,
    /// Links that led to an object, and those whose object was deleted since they were read.
    pub links: u64,
    pub deleted: u64,
    steps: u64,
}

/// A reader that looks again and again, and says what is wrong.
pub struct StepReader {
    store: HsdsStore,
    rows: Arc<dyn ChunkStore>,
    steps: Arc<dyn ChunkStore>,
    made: ObjectId,
    /// The first row that was not read.
    next_row: u64,
    /// The links of the look before: some lead to what was deleted since.
    old_links: BTreeMap<u64, ObjectId>,
    pub found: Found,
}

/// What is wrong.
pub type Fault = String;

fn failed(error: Error) -> Fault {
    format!("an error: {error}")
}

/// The two elements of a chunk, which are the same.
fn chunk_value(data: &dyn ChunkStore, place: u64) -> Result<Option<u64>> {
    let Some(chunk) = data.locate(&ChunkCoord::new(&[place]))? else { return Ok(None) };
    let mut bytes = [0; 16];
    data.read(&chunk, 0, &mut bytes)?;
    let [one, other] = [0, 8].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
    Ok(Some(one).filter(|one| *one == other))
}

impl StepReader {
    /// A reader that reads rows from this one on.
    pub fn open(client: &ObjectClient, first: u64) -> Result<Self> {
        let store = open(client, DOMAIN, Mode::SwmrRead, &long_lease())?;
        let dataset = |name| store.dataset(find(&store, name).unwrap());
        let (rows, steps, made) = (dataset("rows")?, dataset("steps")?, find(&store, "made").unwrap());
        Ok(StepReader {
            store,
            rows,
            steps,
            made,
            next_row: first,
            old_links: BTreeMap::new(),
            found: Found::default(),
        })
    }

    /// Takes up what is there, and reads it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn look(&mut self) -> std::result::Result<(), Fault> {
        self.store.refresh(ObjectScope::All).map_err(failed)?;
        for (number, id) in std::mem::take(&mut self.old_links) {
            self.check_made(number, id)?;
        }
        let before = self.rows()?;
        self.check_rows(before)?;
        self.check_steps(before)?;
        let links = self.links()?;
        for (number, id) in &links {
            self.check_made(*number, *id)?;
        }
        self.rows.refresh().map_err(failed)?;
        let after = self.rows()?;
        // Of the steps between the two, it is not known what was done when links were read.
        for number in (0..=after).filter(|number| number.is_multiple_of(PERIOD)) {
            let is_there = links.contains_key(&number);
            let must_be = number < before && number + LIFE > after;
            let may_be = number + LIFE >= before;
            if must_be && !is_there || is_there && !may_be {
                return Err(format!("dataset {number} with {before} to {after} rows: {is_there}"));
            }
        }
        match links.keys().find(|number| !number.is_multiple_of(PERIOD) || **number > after) {
            Some(number) => return Err(format!("dataset {number} with {after} rows")),
            None => self.found.looks += 1,
        }
        self.old_links = links;
        Ok(())
    }

    /// The rows that it sees, by their extent and by an attribute, which change together.
    fn rows(&mut self) -> std::result::Result<u64, Fault> {
        let rows = self.rows.spec().map_err(failed)?.dataspace.dims()[0] / 2;
        let last = self.store.attribute(self.rows.id(), &"last".into()).map_err(failed)?;
        let stated = last.map_or(0, |last| u64::from_le_bytes(last.value.try_into().unwrap()) + 1);
        if rows != stated || rows < self.found.rows {
            return Err(format!("{rows} rows, {stated} by the attribute, after {}", self.found.rows));
        }
        self.found.rows = rows;
        Ok(rows)
    }

    /// Reads the new rows, and some of the others again.
    fn check_rows(&mut self, rows: u64) -> std::result::Result<(), Fault> {
        let again = (0..REREAD.min(self.next_row)).map(|at| (self.found.looks * 7919 + at * 104_729) % self.next_row);
        for place in again.chain(self.next_row..rows) {
            match chunk_value(&*self.rows, place).map_err(failed)? {
                Some(value) if value == place => self.found.chunks += 1,
                other => return Err(format!("row {place} of {rows} is {other:?}")),
            }
        }
        self.next_row = self.next_row.max(rows);
        Ok(())
    }

    /// Reads the chunk that is overwritten, before the row of its step is appended.
    fn check_steps(&mut self, rows: u64) -> std::result::Result<(), Fault> {
        let steps = chunk_value(&*self.steps, 0).map_err(failed)?;
        let found = steps.unwrap_or(0);
        if found < rows || found < self.found.steps || steps.is_none() && rows > 0 {
            return Err(format!("{steps:?} steps with {rows} rows, after {}", self.found.steps));
        }
        self.found.steps = found;
        self.found.chunks += 1;
        Ok(())
    }

    fn links(&self) -> std::result::Result<BTreeMap<u64, ObjectId>, Fault> {
        let mut found = BTreeMap::new();
        let mut strange = None;
        let each = &mut |link: h5live_model::Link| {
            match (link.name.as_str().and_then(|name| name.parse().ok()), &link.target) {
                (Some(number), LinkTarget::Hard(id)) => drop(found.insert(number, *id)),
                _ => strange = Some(link),
            }
            true
        };
        self.store.for_each_link(self.made, each).map_err(failed)?;
        strange.map_or(Ok(found), |link| Err(format!("a link that nobody has made: {link:?}")))
    }

    /// Follows the link to a dataset, which may have been deleted since the link was read; then the link is gone, too.
    fn check_made(&mut self, number: u64, id: ObjectId) -> std::result::Result<(), Fault> {
        let store = &self.store;
        let read = || {
            let data = store.dataset(id)?;
            let values = (0..MADE_CHUNKS).map(|place| chunk_value(&*data, place)).collect::<Result<Vec<_>>>()?;
            Ok((data.spec()?.dataspace.dims()[0], values))
        };
        match read() {
            Ok((extent, values)) => {
                if extent != 2 * MADE_CHUNKS || values.iter().any(|value| *value != Some(number)) {
                    return Err(format!("dataset {number} has the extent {extent} and {values:?}"));
                }
                self.found.links += 1;
                self.found.chunks += MADE_CHUNKS;
            }
            Err(Error::NoObject(_) | Error::Moved) => {
                store.refresh(ObjectScope::Objects(&[self.made])).map_err(failed)?;
                if store.link(self.made, &number.to_string().as_str().into()).map_err(failed)?.is_some() {
                    return Err(format!("the link {number} leads to {id:?}, which is not there"));
                }
                self.found.deleted += 1;
            }
            Err(error) => return Err(format!("dataset {number}: {error}")),
        }
        Ok(())
    }
}
