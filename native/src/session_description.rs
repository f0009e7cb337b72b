//! The properties and capabilities of a session on an HDF5 file, in the terms of the contract.

use h5live_cache::{ATOMIC_READ_WINDOW_BYTES, BatchReadHints};
use h5live_model::{
    Capabilities, ChunkEncodedBy, ChunkReadStrategy, ConsistencyScope, DurabilitySupport, Location, ObjectId,
    PartialWrites, SessionInfo, Settings, SmallWritesStagedBy, StoreFeatures, StoreSizeLimits, VlenAndReferenceSizes,
};

use crate::LibVer;
use crate::session::NativeSession;

/// The name of this kind of store.
pub(crate) const CONNECTOR: &str = "native";

/// Describes a session that was opened.
pub(crate) fn describe_session(session: &NativeSession) -> SessionInfo {
    let root = ObjectId(session.superblock.root.header().get().unwrap_or(u64::MAX).into());
    let offset_size = session.cache.widths().offset.bytes() as u32;
    let mut session_description = SessionInfo::new(CONNECTOR, session.mode, root, capabilities(session));
    session_description.location = Some(session.hold.path())
        .filter(|path| !path.as_os_str().is_empty())
        .map(|path| Location::Path(path.to_owned()));
    session_description.vlen_and_reference_sizes = VlenAndReferenceSizes::with_offset_size(offset_size);
    session_description.creation_settings = settings(session, offset_size);
    session_description
}

fn capabilities(session: &NativeSession) -> Capabilities {
    let reads = session.is_follower().then_some((ATOMIC_READ_WINDOW_BYTES as u64, ConsistencyScope::Object));
    // A reader of a file at rest sees all of it.
    let (atomic, view) = reads.unwrap_or((0, ConsistencyScope::Store));
    let batched = session.batch_read_hints().map(
        |BatchReadHints { preferred_reads_in_flight: in_flight, max_gap_bytes: gap }| ChunkReadStrategy::Batched {
            preferred_reads_in_flight: in_flight,
            max_gap_bytes: gap,
        },
    );
    let limits = if session.profile < LibVer::V200 {
        StoreSizeLimits::NONE.with_max_chunk_bytes(u32::MAX.into())
    } else {
        StoreSizeLimits::NONE
    };
    Capabilities {
        reads: batched.unwrap_or(ChunkReadStrategy::Direct { atomic_read_bytes: atomic }),
        view,
        supports_live_reads: session.superblock.version != 1,
        limits,
        ..MAX_CAPABILITIES
    }
}

/// The most that a session can do.
pub(crate) const MAX_CAPABILITIES: Capabilities = Capabilities {
    features: StoreFeatures::all().without(StoreFeatures::MAPS),
    partial_writes: PartialWrites::Bytes { multiple_of: 1 },
    staging: SmallWritesStagedBy::Caller,
    encoding: ChunkEncodedBy::Pipeline,
    reads: ChunkReadStrategy::Direct { atomic_read_bytes: 0 },
    commit: ConsistencyScope::Object,
    view: ConsistencyScope::Store,
    durability: DurabilitySupport::OnRequest,
    supports_live_reads: true,
    limits: StoreSizeLimits::NONE,
};

fn settings(session: &NativeSession, offset_size: u32) -> Settings {
    let mut settings = Settings::default();
    settings.set("offset_size", offset_size);
    session.extension.space.write_to(&mut settings);
    settings
}
