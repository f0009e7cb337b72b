//! The last step of a write: what was stored of a dataset becomes visible to other processes.
//!
//! Here is the publication of one dataset. That of the file, with all its datasets, is in `src/publish`.
//!
//! In comes a flush. It has everything staged stored, first that of datasets whose rows are to be seen before. Out goes
//! one publication of the store, and which rows are known to be published.

mod dataset_publish;
mod publish_order;
mod publish_state;
mod write_out;

pub(super) use self::publish_order::{InPublishOrder, PublishOrder};
pub(super) use self::publish_state::PublishState;
