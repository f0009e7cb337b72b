//! Every schedule of a reader against a writer.
//!
//! The writer is a [`Trace`](crate::trace::Trace); the reader is run, on its real code, over a [`ReaderView`] of the
//! file. At each of its reads the writer may have come further: by any number of whole operations, or into the middle
//! of a write. Two such positions that show the same bytes differ only in what later reads may see, and the earlier one
//! leaves more of that open. So a read has one branch for each content that it can find, at the first position that
//! shows it, and nothing is lost; where nothing that is still to come touches what is read, there is one branch.
//!
//! The tree of branches is gone through depth first. Each run of the reader begins anew and repeats the reads that led
//! to the branch, so the reader must do the same whenever it sees the same.

mod answers;
mod counterexample_file;
mod explore;
mod position;
mod story;
mod svg;
mod timeline;
mod view;

pub use explore::{Counterexample, ExploreBounds, ExploreReport, Verdict, explore, find_shortest, replay};
pub use position::{OS_PAGE_BYTES, Position, Tear, Tearing};
pub use story::{Story, StoryLine};
pub(crate) use timeline::visible;
pub use view::{History, Observation, Query, ReaderView};

#[cfg(test)]
mod tests;
