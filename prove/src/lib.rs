//! What the model checker explores: [`Lab`] records h5live's writer at work, and [`Follower`] and [`Survivor`] are
//! h5live's reader, which know what it may see while the writer works, and after a crash.

mod announced;
mod checked;
mod content;
mod follower;
mod growing;
mod kept;
mod lab;
pub mod mutants;
pub mod names;
mod passing;
mod series;
pub mod suite;
mod survivor;
pub mod workloads;

use h5live_model::{LinkTarget, ObjectId, Objects};
use h5live_swmr::NativeFile;

pub use announced::announced;
pub use checked::{FAILED_AT_REST, WAITED_IN_VAIN};
pub use follower::{Follower, Look};
pub use growing::{attributes, links, ordered, strings};
pub use lab::{Lab, Setup, Workload};
pub use passing::passing;
pub use series::{Kind, Series};
pub use survivor::Survivor;

/// The object that a name in the root group leads to.
pub(crate) fn find(file: &NativeFile, name: &str) -> h5live_model::Result<Option<ObjectId>> {
    let link = file.link(file.root(), &name.into())?;
    Ok(link.and_then(|link| match link.target {
        LinkTarget::Hard(id) => Some(id),
        _ => None,
    }))
}
