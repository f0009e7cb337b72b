//! The passes of a check, in order.

use h5live_cache::Storage;
use h5live_format::Addr;

use super::cause::{FileRange, FindingCause};
use super::options::CheckOptions;
use super::report::FileCheckReport;
use super::space_map::ObjectIndex;
use super::walk::FileWalk;

/// Checks a file.
pub(super) fn check_file(storage: &dyn Storage, options: CheckOptions<'_>) -> FileCheckReport {
    let mut walk = FileWalk::new(storage, options);
    if walk.load_and_check_superblock(storage) {
        walk.check_all_objects();
    }
    walk.report
}

impl FileWalk<'_> {
    fn check_all_objects(&mut self) {
        self.enqueue_root_group();
        while let Some(next) = self.objects.pop_unvisited().filter(|_| !self.report.has_max_findings()) {
            self.owner = next;
            self.check_object(next);
        }
        self.owner = ObjectIndex::FILE;
        self.check_shared_message_uses();
        self.check_link_counts();
        self.note_unused_global_objects();
        self.report_overlaps_and_leaks();
        self.report.object_count = self.objects.visited_count();
        self.report.has_followed_everything = !self.incomplete && !self.unseen_values && self.space.skipped_uses == 0;
    }

    /// Reports what overlaps, and what nobody uses.
    fn report_overlaps_and_leaks(&mut self) {
        let (metadata, raw, free) = self.space.metadata_raw_and_free_bytes();
        (self.report.metadata_bytes, self.report.raw_bytes, self.report.tracked_free_bytes) = (metadata, raw, free);
        let mut space = std::mem::take(&mut self.space);
        let (mut overlaps, mut gaps) = (Vec::new(), Vec::new());
        let room = FileCheckReport::MAX_FINDINGS.saturating_sub(self.report.findings.len());
        let (skipped, max_ranges) = (space.skipped_uses, space.max_ranges);
        // What was left out is no gap, though nothing known lies there.
        let leaks = self.options.reports_leaks && skipped == 0;
        space.for_each_overlap_and_gap(
            self.end,
            |piece, before| {
                overlaps.push((*piece, *before));
                overlaps.len() < room
            },
            |from, to| {
                if leaks && gaps.len() < FileCheckReport::MAX_FINDINGS {
                    gaps.push((from, to));
                }
            },
        );
        self.space = space;
        if self.options.builds_space_map {
            self.report.space_map =
                self.space.used_and_free_by_start().iter().map(|piece| self.to_file_range(piece)).collect();
        }
        for (piece, before) in overlaps {
            let cause = FindingCause::Overlap { len: piece.len, with: self.to_file_range(&before) };
            self.report_for(piece.owner, self.space.structure_name(&piece), Addr::new(piece.start), cause);
        }
        if skipped > 0 {
            let cause = FindingCause::UncomparedRanges { ranges: skipped, max_ranges };
            self.report_for(ObjectIndex::FILE, "space", Addr::new(0), cause);
        }
        let base = self.source.base;
        let unreachable = self.unreachable_headers(&gaps).into_iter().filter_map(Addr::get);
        self.report.unreachable_header_offsets = unreachable.map(|addr| base.saturating_add(addr)).collect();
        let leak = |(from, to): (u64, u64)| {
            let offset = base.saturating_add(from);
            FileRange { object_path: String::new(), structure: "nothing", offset, len: to - from }
        };
        self.report.leaks = gaps.into_iter().map(leak).collect();
    }
}

#[cfg(test)]
mod tests {
    use h5live_cache::MemoryStorage;

    use super::*;

    #[test]
    fn ranges_that_are_not_compared_are_told_and_are_no_leaks() {
        let storage = MemoryStorage::default();
        let found = |max_ranges: usize| {
            let mut walk = FileWalk::new(&storage, CheckOptions { reports_leaks: true, ..CheckOptions::default() });
            (walk.end, walk.space.max_ranges) = (40, max_ranges);
            for start in [0, 20, 30] {
                walk.space.add_raw_data(start, 10, ObjectIndex::FILE, "chunk");
            }
            walk.report_overlaps_and_leaks();
            let findings: Vec<_> = walk.report.findings.iter().map(|finding| finding.cause.to_string()).collect();
            (findings, walk.report.leaks.len())
        };
        assert_eq!(found(2), (vec![], 1));
        let told = "2 of the ranges of raw data and free space were not compared: only 1 of each are";
        assert_eq!(found(1), (vec![told.to_owned()], 0));
    }
}
