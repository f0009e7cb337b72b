//! The properties and capabilities of a session on an HDF5 file, in the terms of the contract.

use h5live_cache::{BatchReadHints, MAX_ATOMIC_READ_BYTES};
use h5live_model::{
    AtomicScope, Capabilities, Durability, ElementSizes, Encoding, Features, Limits, Location, ObjectId, PartialWrites,
    Reads, Session, Settings, Staging,
};

use crate::LibVer;
use crate::session::NativeSession;

/// The name of this kind of store.
pub(crate) const CONNECTOR: &str = "native";

/// Describes a session that was opened.
pub(crate) fn describe_session(session: &NativeSession) -> Session {
    let root = ObjectId(session.superblock.root.header().get().unwrap_or(u64::MAX).into());
    let offset_size = session.cache.widths().offset.bytes() as u32;
    let mut session_description = Session::new(CONNECTOR, session.mode, root, capabilities(session));
    session_description.location = Some(session.hold.path())
        .filter(|path| !path.as_os_str().is_empty())
        .map(|path| Location::Path(path.to_owned()));
    session_description.element_sizes = ElementSizes::with_offset_size(offset_size);
    session_description.settings = settings(session, offset_size);
    session_description
}

fn capabilities(session: &NativeSession) -> Capabilities {
    let reads = session.is_follower().then_some((MAX_ATOMIC_READ_BYTES as u64, AtomicScope::Object));
    // A reader of a file at rest sees all of it.
    let (atomic, view) = reads.unwrap_or((0, AtomicScope::Store));
    let batched = session.batched_reads().map(|BatchReadHints { in_flight, gap }| Reads::Batched { in_flight, gap });
    let limits = if session.profile < LibVer::V200 { Limits::NONE.with_chunk(u32::MAX.into()) } else { Limits::NONE };
    Capabilities {
        reads: batched.unwrap_or(Reads::Direct { atomic }),
        view,
        live: session.superblock.version != 1,
        limits,
        ..MAX_CAPABILITIES
    }
}

/// The most that a session can do.
pub(crate) const MAX_CAPABILITIES: Capabilities = Capabilities {
    features: Features::all().without(Features::MAPS),
    partial_writes: PartialWrites::Bytes { multiple_of: 1 },
    staging: Staging::Caller,
    encoding: Encoding::Pipeline,
    reads: Reads::Direct { atomic: 0 },
    commit: AtomicScope::Object,
    view: AtomicScope::Store,
    durability: Durability::OnRequest,
    live: true,
    limits: Limits::NONE,
};

fn settings(session: &NativeSession, offset_size: u32) -> Settings {
    let mut settings = Settings::default();
    settings.set("offset_size", offset_size);
    session.extension.space.write_to(&mut settings);
    settings
}
