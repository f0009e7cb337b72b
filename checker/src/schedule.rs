//! The schedule explorer: every schedule of a reader against a writer.
//!
//! The writer is a [`Trace`](crate::trace::Trace). The reader runs on its real code, over a [`ReaderView`] of the file.
//! At each of its reads, the writer may have gone further: by any number of whole operations, or into the middle of a
//! write. Two such positions may show the same bytes. They differ only in what later reads may see, and the earlier one
//! leaves more choices open. So a read has one branch for each content that it can find, at the first position that
//! shows it. No outcome is missed. If no later operation touches the bytes of the read, there is only one branch.
//!
//! The tree of branches is visited depth first. Each run of the reader starts again, and repeats the reads that led to
//! its branch. So the reader must do the same whenever it sees the same.

mod answers;
mod counterexample_file;
mod counterexample_log;
mod explore;
mod position;
mod query;
mod svg;
mod timeline;
mod view;

pub use counterexample_log::{CounterexampleEvent, CounterexampleLog};
pub use explore::{
    Counterexample, ExploreBounds, ExploreReport, Verdict, explore_schedules, find_counterexample_with_fewest_moves,
    replay_reader,
};
pub use position::{AllowedTears, OS_PAGE_BYTES, Tear, WriterPosition};
pub use query::ReaderQuery;
pub(crate) use timeline::visible;
pub use view::{QueryAtPosition, ReaderHistory, ReaderView};

#[cfg(test)]
mod tests;
