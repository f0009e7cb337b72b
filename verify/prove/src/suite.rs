//! The explored cases: workloads, and the readers of each.

mod cases;
pub mod changes;
mod name_cases;
mod reuse_cases;

use std::sync::Arc;

use h5live_checker::schedule::{
    AllowedTears, Counterexample, ExploreBounds, ExploreReport, OS_PAGE_BYTES, ReaderView, Verdict, explore_schedules,
    find_counterexample_with_fewest_moves,
};

pub use self::cases::all_cases;
use crate::{
    ReadStrategy, RowFollower, Workload, WriterRecorder, WriterSetup, attribute_count_reader, check_below_eof,
    link_count_reader, publish_order_reader, string_count_reader, transient_dataset_reader,
};

/// Records a writer that breaks the flush dependencies of some kinds.
pub type RecordFn = fn(WriterSetup) -> Workload;

/// A workload by name.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Records it, with the flush dependencies of some kinds broken.
    pub record: RecordFn,
    /// The readers beside the writer.
    pub readers: &'static [ReaderKind],
    /// Passes over the whole, every write being seen whole.
    pub passes: usize,
    /// The workload for torn writes, and the number of passes.
    pub torn: Option<(RecordFn, usize)>,
    /// The workload for writes that are cut between two pages for ever, and the number of passes.
    pub cut: Option<(RecordFn, usize)>,
}

impl Case {
    /// A case without readers, apart from recoveries. With readers, writes are seen whole.
    const PLAIN: Case = Case {
        name: "",
        record: |setup| WriterRecorder::new(setup).finish(),
        readers: &[],
        passes: 0,
        torn: None,
        cut: None,
    };

    /// Whether there is something to be looked for after a crash.
    pub fn may_crash(&self) -> bool {
        !matches!(self.readers, [ReaderKind::EndOfFile])
    }
}

/// A reader by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderKind {
    /// Reads rows.
    Rows(ReadStrategy),
    /// Reads attributes.
    Attributes,
    /// Reads links and their targets.
    Links,
    /// Reads rows of variable length.
    Strings,
    /// Reads datasets that come and go.
    Transient,
    /// Reads the extents of two datasets, one of which is published before the other.
    Ordered,
    /// Reads the announced end of file, and the places of chunks.
    EndOfFile,
}

impl ReaderKind {
    /// Calls `run` with this reader of a workload.
    pub fn with_reader<R>(
        self,
        workload: &Workload,
        passes: usize,
        run: impl FnOnce(&(dyn Fn(&Arc<ReaderView>) -> Verdict + Sync)) -> R,
    ) -> R {
        match self {
            ReaderKind::Rows(look) => {
                let follower = RowFollower::new(workload, look, passes);
                run(&|view: &Arc<ReaderView>| follower.run(view))
            }
            ReaderKind::Attributes => run(&attribute_count_reader(&workload.trace, passes)),
            ReaderKind::Links => run(&link_count_reader(&workload.trace, passes)),
            ReaderKind::Ordered => run(&publish_order_reader(passes)),
            ReaderKind::Transient => run(&transient_dataset_reader(passes)),
            ReaderKind::Strings => run(&string_count_reader(&workload.trace, passes)),
            ReaderKind::EndOfFile => run(&|view: &Arc<ReaderView>| check_below_eof(view, passes)),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ReaderKind::Rows(ReadStrategy::Rows) => "rows",
            ReaderKind::Rows(ReadStrategy::IndexFirst) => "index first",
            ReaderKind::Rows(ReadStrategy::BeyondExtent) => "beyond the extent",
            ReaderKind::Attributes => "attributes",
            ReaderKind::Links => "links",
            ReaderKind::Strings => "texts",
            ReaderKind::Ordered => "order",
            ReaderKind::Transient => "coming and going",
            ReaderKind::EndOfFile => "announced end",
        }
    }

    /// Explores all schedules of this reader.
    pub fn explore(self, workload: &Workload, passes: usize, bounds: &ExploreBounds) -> ExploreReport {
        let bounds = &ExploreBounds { start_prefix: workload.start, ..bounds.clone() };
        self.with_reader(workload, passes, |reader| explore_schedules(&workload.trace, bounds, &reader))
    }

    /// Looks for the shortest counterexample.
    pub fn shortest(
        self,
        workload: &Workload,
        passes: usize,
        bounds: &ExploreBounds,
    ) -> (Option<Counterexample>, ExploreReport) {
        let bounds = &ExploreBounds { start_prefix: workload.start, ..bounds.clone() };
        self.with_reader(workload, passes, |reader| {
            find_counterexample_with_fewest_moves(&workload.trace, bounds, &reader)
        })
    }
}

/// Writes cut off between two pages, by the death of the writer if need be.
pub fn page_tears() -> AllowedTears {
    AllowedTears { torn_writes_may_last: true, ..AllowedTears::cut_at_multiples_of(OS_PAGE_BYTES as u32) }
}

/// Writes seen in part, cut at multiples of 8 bytes.
pub fn small_tears() -> AllowedTears {
    AllowedTears::cut_at_multiples_of(8)
}
