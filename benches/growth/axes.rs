//! What can be grown.

use crate::phases::Phases;
use crate::{chunks, datasets, followers, names, pieces, stores};

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// One thing of which there may be many.
pub struct Axis {
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// The count from which on a run is long enough to show what each costs.
    pub smallest: u64,
    pub run: fn(&mut Phases, u64) -> Outcome,
}

const fn axis(name: &'static str, unit: &'static str, smallest: u64, run: fn(&mut Phases, u64) -> Outcome) -> Axis {
    Axis { name, unit, smallest, run }
}

pub const AXES: &[Axis] = &[
    axis("datasets", "live datasets", 1000, datasets::live),
    axis("open", "datasets that are only open, in a writer and in a follower", 1000, datasets::open),
    axis("unlinked", "live datasets that are made and unlinked", 1000, datasets::unlinked),
    axis("typed", "datasets of one committed datatype, each with a text", 1000, datasets::typed),
    axis("published-after", "datasets that are published one after the other", 1000, datasets::published_after),
    axis("links", "links of a group", 1000, names::links),
    axis("attributes", "attributes of an object", 1000, names::attributes),
    axis("depth", "groups, each in the one before", 1000, names::depth),
    axis("chunks", "chunks of a dataset that grows", 1000, chunks::appended),
    axis("chunks-fixed", "chunks of a dataset of fixed shape", 1000, chunks::fixed),
    axis("chunks-spread", "chunks of two unlimited dimensions, far apart", 1000, chunks::spread),
    axis("chunks-old", "chunks in an old B-tree, far apart", 2000, chunks::old),
    axis("dirty", "elements written between two flushes", 1000, chunks::dirty),
    axis("rewritten", "texts of a live file that are written again", 1000, chunks::rewritten),
    axis("keys", "keys of a map", 1000, stores::keys),
    axis("entries", "entries of a log", 1000, stores::entries),
    axis("joined", "writers that join a log and append by turns", 2, stores::joined),
    axis("joined-idle", "writers that join a log, of which one appends", 4, stores::joined_idle),
    axis("objects", "datasets of an object store", 100, stores::objects),
    axis("object-chunks", "chunks of an object store that are read one by one", 500, stores::object_chunks),
    axis("object-texts", "texts of an object store", 500, stores::object_texts),
    axis("followers", "followers of one file", 2, followers::of_one_file),
    axis("followed", "datasets that one reader follows", 100, followers::of_many_datasets),
    axis("sources", "sources of a virtual dataset", 400, pieces::sources),
    axis("columns", "columns of a table", 100, pieces::columns),
    axis("enum-names", "names of an enum", 100, pieces::enum_names),
];
