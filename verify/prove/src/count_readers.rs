//! The readers of what grows in number: attributes, links, texts.

use std::sync::Arc;

use h5live::{File, Options};
use h5live_checker::schedule::{ReaderHistory, ReaderView, Verdict};
use h5live_checker::trace::{MarkValues, Trace};

use h5live_model::Store;

use crate::follower::refresh;
use crate::generation_observer::GenerationsInTrace;
use crate::observer::{ConcurrentObserver, Observer, RunEnd, run_verdict};
use crate::{content_checks, find_in_root};

fn issued_and_flushed(trace: &Trace, what: &str) -> (MarkValues, MarkValues) {
    (MarkValues::new(trace, &format!("{what}.issued")), MarkValues::new(trace, &format!("{what}.flushed")))
}

/// What the trace counts, at the place where a reader is.
struct TracedCounts<'a> {
    issued: &'a MarkValues,
    flushed: &'a MarkValues,
    view: &'a ReaderView,
}

impl TracedCounts<'_> {
    /// Looks `passes` times, each time anew, with `look`, which gets the number of the pass and how many there must be at
    /// least and may be at most, and returns how many there are: never fewer than before.
    fn for_each_pass(
        &self,
        observer: &ConcurrentObserver<'_>,
        (passes, opened): (usize, ReaderHistory),
        mut look: impl FnMut(usize, u64, &dyn Fn() -> u64) -> Result<u64, RunEnd>,
    ) -> Result<(), RunEnd> {
        let TracedCounts { issued, flushed, view } = self;
        let mut before = 0;
        for pass in 0..passes {
            // Each look at an object reads its header again.
            observer.reset((pass, before, opened))?;
            let min_count = flushed.last_value_at(view.writer_op_count()).unwrap_or(0).max(before);
            observer.add_to_history(min_count);
            before = look(pass, min_count, &|| issued.last_value_at(view.writer_op_count()).unwrap_or(0))?;
        }
        Ok(())
    }
}

/// A reader of the attributes `a0`, `a1`, ... of the dataset `d`, which the trace counts as `a`. Each holds its number,
/// or its text.
pub fn attribute_count_reader(trace: &Trace, passes: usize) -> impl Fn(&Arc<ReaderView>) -> Verdict + Sync + use<> {
    let ((issued, flushed), generations) = (issued_and_flushed(trace, "a"), GenerationsInTrace::from_trace(trace));
    move |view| {
        let follow = || {
            let observer = &ConcurrentObserver::new(view, &generations);
            let file = observer.open()?;
            let id = observer.observe("find the dataset", || find_in_root(&file, "d"))?;
            let id = id.ok_or_else(|| "there is no link d".to_owned())?;
            let opened = observer.set_history(ReaderHistory::NONE);
            let counts = TracedCounts { issued: &issued, flushed: &flushed, view };
            counts.for_each_pass(observer, (passes, opened), |pass, min_count, max_count| {
                content_checks::check_attributes(&file, id, observer, min_count, max_count, (pass, opened))
            })
        };
        run_verdict(follow())
    }
}

/// A reader of the datasets `o0`, `o1`, ... in the root group, which the trace counts as `o`: each holds two rows when
/// it appears.
pub fn link_count_reader(trace: &Trace, passes: usize) -> impl Fn(&Arc<ReaderView>) -> Verdict + Sync + use<> {
    let ((issued, flushed), generations) = (issued_and_flushed(trace, "o"), GenerationsInTrace::from_trace(trace));
    move |view| {
        let follow = || {
            let observer = &ConcurrentObserver::new(view, &generations);
            let file = observer.open()?;
            let opened = observer.set_history(ReaderHistory::NONE);
            let counts = TracedCounts { issued: &issued, flushed: &flushed, view };
            counts.for_each_pass(observer, (passes, opened), |pass, min_count, max_count| {
                content_checks::check_links(&file, observer, min_count, max_count, (pass, opened))
            })
        };
        run_verdict(follow())
    }
}

/// A reader of the rows of the dataset `s`, which are of variable length, and which the trace counts as `s`.
pub fn string_count_reader(trace: &Trace, passes: usize) -> impl Fn(&Arc<ReaderView>) -> Verdict + Sync + use<> {
    let ((issued, flushed), generations) = (issued_and_flushed(trace, "s"), GenerationsInTrace::from_trace(trace));
    move |view| {
        let follow = || {
            let observer = &ConcurrentObserver::new(view, &generations);
            let file =
                File::with_store(Arc::new(observer.open()?), "prove", Options::default()).expect("no option is unused");
            let opened = observer.set_history(ReaderHistory::NONE);
            let counts = TracedCounts { issued: &issued, flushed: &flushed, view };
            counts.for_each_pass(observer, (passes, opened), |_, min_count, max_count| {
                content_checks::check_strings(&file, observer, min_count, max_count)
            })
        };
        run_verdict(follow())
    }
}

/// A reader of `e` and `d`. `d` never has fewer rows than `e` had.
pub fn publish_order_reader(passes: usize) -> impl Fn(&Arc<ReaderView>) -> Verdict + Sync + use<> {
    move |view| {
        let follow = || {
            let observer = &ConcurrentObserver::new(view, &Arc::default());
            let file = observer.open()?;
            let opened = observer.set_history(ReaderHistory::NONE);
            let open = |name: &str| {
                let id = observer.observe("find a dataset", || find_in_root(&file, name))?;
                let id = id.ok_or_else(|| format!("there is no link {name}"))?;
                // Of the group nothing is kept but where the dataset is.
                observer.set_history(ReaderHistory::NONE);
                let dataset = observer.observe("open a dataset", || file.dataset(id))?;
                Ok::<_, RunEnd>((dataset, observer.set_history(ReaderHistory::NONE)))
            };
            let ((later, first), (earlier, second)) = (open("e")?, open("d")?);
            let mut known = [first, second];
            for pass in 0..passes {
                let mut rows = [0; 2];
                for (n, dataset) in [&later, &earlier].into_iter().enumerate() {
                    observer.set_history(known[n]);
                    refresh(observer, &**dataset)?;
                    known[n] = observer.set_history(ReaderHistory::NONE);
                    let spec =
                        dataset.spec().map_err(|error| format!("a description that was read is gone: {error}"))?;
                    rows[n] = spec.dataspace.dims().first().copied().unwrap_or(0);
                    observer.checkpoint((pass, n, opened, known, rows))?;
                }
                let [e, d] = rows;
                if d < e {
                    return Err(format!("e has {e} rows, and d, which is published before it, {d}").into());
                }
            }
            Ok(())
        };
        run_verdict(follow())
    }
}
