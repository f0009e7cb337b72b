//! What a store in a folder has: keys and bytes by kind of record, and the room that it takes.

use h5live_model::{Location, Mode, OpenError};

use crate::connector::folder;
use crate::engine::{Engine, EngineError, KeySpan, LmdbEngine, LmdbOptions, LmdbStat, LongKeyEngine, ViewWithEdits};
use crate::layout::{EngineKey, RecordKey};
use crate::session::container_format;

/// The kinds of records, as they are counted.
const KINDS: [&str; 7] =
    ["object metadata", "attributes", "links", "chunks", "variable-length data", "map pairs", "other"];

/// The records of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordKindStat {
    /// The kind.
    pub kind: &'static str,
    /// The number of keys.
    pub key_count: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// What a store in a folder has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvStat {
    /// The name of the engine.
    pub engine: &'static str,
    /// Whether values end with checksums.
    pub has_checksums: bool,
    /// The records by kind. Kinds of which there are none are among them.
    pub records: Vec<RecordKindStat>,
    /// The room that the engine takes, and who uses it.
    pub lmdb: LmdbStat,
}

/// The place of a record's kind in [`KINDS`].
fn kind_of(key: &[u8]) -> usize {
    match EngineKey::parse(key) {
        Ok((_, RecordKey::Metadata(_))) => 0,
        Ok((
            _,
            RecordKey::AttributeCount
            | RecordKey::NextAttributeOrder
            | RecordKey::AttributeNameAtRank(_)
            | RecordKey::Attribute(..),
        )) => 1,
        Ok((
            _,
            RecordKey::LinkCount
            | RecordKey::NextLinkOrder
            | RecordKey::LinkNameAtRank(_)
            | RecordKey::LinkTargetAtRank(_)
            | RecordKey::Link(_)
            | RecordKey::LinkOrder(_),
        )) => 2,
        Ok((_, RecordKey::ChunkPiece { .. } | RecordKey::FilteredChunk { .. })) => 3,
        Ok((_, RecordKey::Blob(_))) => 4,
        Ok((_, RecordKey::MapRecord(_))) => 5,
        Ok((_, RecordKey::Unknown { .. })) | Err(_) => 6,
    }
}

impl KvStat {
    /// Counts the records of the store at a location. All keys are read; values are not.
    ///
    /// # Errors
    /// As the connector's when it opens the store for reading.
    pub fn scan(at: &Location) -> Result<Self, OpenError> {
        let failed = |error: EngineError| OpenError::Store(error.into());
        let engine = LmdbEngine::open(&folder(at)?, Mode::Read, &LmdbOptions::default()).map_err(failed)?;
        let engine = LongKeyEngine::new(engine);
        // Before this process reads a state itself.
        let lmdb = engine.inner().stat().map_err(failed)?;
        let view = engine.view().map_err(failed)?;
        let form = container_format(&ViewWithEdits::without_edits(&view)).map_err(OpenError::Store)?;
        let mut records: Vec<_> = KINDS.map(|kind| RecordKindStat { kind, key_count: 0, bytes: 0 }).into();
        let counted = view.scan(&KeySpan::all(), &mut |key, value| {
            if let Some(count) = records.get_mut(kind_of(key)) {
                count.key_count += 1;
                count.bytes += (key.len() + value.len()) as u64;
            }
            true
        });
        counted.map_err(failed)?;
        Ok(KvStat { engine: "LMDB", has_checksums: form.has_checksums, records, lmdb })
    }
}
