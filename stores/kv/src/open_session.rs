//! Opens a session for a connector, on an engine of any kind.

use h5live_model::{DurabilitySupport, Location, OpenError, OpenRequest};

use crate::engine::Engine;
use crate::random::random;
use crate::session::{KvOpenRequest, KvSession};

/// What the options of a connector say of a session, whatever its engine is.
#[derive(Debug, Clone, Copy)]
pub struct KvSessionOptions {
    /// Whether commits are durable.
    pub durability: DurabilitySupport,
    /// Most bytes of changes that are not committed, before a further change is refused.
    pub max_uncommitted_bytes: u64,
    /// Whether values of a new container get checksums.
    pub checksum_new_container: bool,
}

/// Opens the session of a connector.
///
/// # Errors
/// [`OpenError::Store`].
pub fn open_session_on(
    engine: Box<dyn Engine>,
    at: &Location,
    how: &OpenRequest<'_>,
    choices: KvSessionOptions,
) -> Result<KvSession, OpenError> {
    let KvSessionOptions { durability, max_uncommitted_bytes: max_uncommitted, checksum_new_container: checksums } =
        choices;
    let request = KvOpenRequest {
        mode: how.mode,
        root: how.root.clone(),
        durability,
        max_allocation: how.max_allocation,
        filter_engine: how.filter_engine.clone(),
        max_uncommitted_bytes: max_uncommitted,
        blob_id_seed: random()?,
        checksum_new_container: checksums,
    };
    let mut session = KvSession::open(engine, &request).map_err(OpenError::Store)?;
    session.info.location = Some(at.clone());
    Ok(session)
}
