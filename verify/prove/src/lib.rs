//! The workloads and readers of the model checker. [`WriterRecorder`] records h5live's writer. [`RowFollower`] and
//! [`CrashRecovery`] run h5live's reader; they know what it may see while the writer works, and after a crash.

mod content_checks;
mod count_readers;
mod crash_recovery;
pub mod entry_changes;
mod eof_reader;
mod follower;
mod generation_observer;
pub mod kv;
pub mod log;
pub mod mutants;
mod observer;
mod recorder;
mod series;
pub mod suite;
mod transient_reader;
pub mod workloads;

use h5live_model::{LinkTarget, ObjectId, Store};
use h5live_native::NativeFile;

pub use count_readers::{attribute_count_reader, link_count_reader, publish_order_reader, string_count_reader};
pub use crash_recovery::CrashRecovery;
pub use eof_reader::check_below_eof;
pub use follower::{ReadStrategy, RowFollower};
pub use observer::{FAILED_AT_REST, WAITED_IN_VAIN};
pub use recorder::{Workload, WriterRecorder, WriterSetup};
pub use series::{Series, SeriesKind};
pub use transient_reader::transient_dataset_reader;

/// The object that a name in the root group leads to.
pub(crate) fn find_in_root(file: &NativeFile, name: &str) -> h5live_model::Result<Option<ObjectId>> {
    let link = file.link(file.session().root, &name.into())?;
    Ok(link.and_then(|link| match link.target {
        LinkTarget::Hard(id) => Some(id),
        _ => None,
    }))
}
