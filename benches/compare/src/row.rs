//! What was found of one work, and whether it is what was aimed at.

use crate::Side;
use crate::measure::Measure;
use crate::work::{BOUND_PART, Growth, Unit, Work};

/// All runs of a work.
pub struct Row {
    pub work: Work,
    /// Bytes of a chunk, if the work is done with several sizes.
    pub chunk: u64,
    /// Which pair, if the work is done with several.
    pub pair: Option<u64>,
    pub runs: Vec<(Side, Vec<Measure>)>,
    /// Sides that did not do it, and why.
    pub left_out: Vec<(Side, String)>,
}

/// One aim: what was found and whether it will do.
pub struct Verdict {
    /// A word for it.
    pub aim: &'static str,
    pub text: String,
    pub is_reached: bool,
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

impl Row {
    pub fn of(&self, side: Side) -> Option<&[Measure]> {
        self.runs.iter().find(|(whose, _)| *whose == side).map(|(_, runs)| &**runs)
    }

    /// Whether our runs, libhdf5's and the bare machine's are all shorter than this (s).
    pub fn is_short(&self, seconds: f64) -> bool {
        let main = self.runs.iter().filter(|(side, _)| !side.is_crate());
        main.flat_map(|(_, runs)| runs).all(|run| run.seconds < seconds)
    }

    /// The median rate of a side, and half the distance between its quartiles, as a part of it.
    pub fn rate(&self, side: Side) -> Option<(f64, f64)> {
        let mut rates: Vec<f64> = self.of(side)?.iter().map(|run| run.rate(self.work.unit)).collect();
        rates.sort_by(f64::total_cmp);
        let at = |part: f64| rates[((rates.len() - 1) as f64 * part).round() as usize];
        Some((at(0.5), (at(0.75) - at(0.25)) / 2.0 / at(0.5)))
    }

    /// How many times faster than `side` we are.
    pub fn ratio(&self, side: Side) -> Option<f64> {
        let (ours, theirs) = (self.rate(Side::H5live)?.0, self.rate(side)?.0);
        Some(if self.work.unit == Unit::Latency { theirs / ours } else { ours / theirs })
    }

    /// How many times faster than libhdf5 the bare machine is, if that is less than what is aimed at and nobody can do better.
    fn bound(&self) -> Option<f64> {
        let bound = self.ratio(Side::Libhdf5)? / self.ratio(Side::Bare)?;
        Some(bound).filter(|bound| self.work.bare_is_bound && *bound < self.work.aim)
    }

    /// How many times as long as in `other` a unit takes on a side.
    fn times_of(&self, other: &Row, side: Side) -> Option<f64> {
        let (here, there) = (self.rate(side)?.0, other.rate(side)?.0);
        Some(if self.work.unit == Unit::Latency { here / there } else { there / here })
    }

    /// The most memory of all runs (bytes).
    pub fn peak(&self, side: Side) -> Option<u64> {
        self.of(side)?.iter().map(|run| run.peak).max()
    }

    pub fn size(&self, side: Side) -> Option<f64> {
        self.of(side)?.last()?.size
    }

    /// The medians of how our memory and time have grown.
    pub fn growth(&self) -> Option<Growth> {
        let grown = || self.of(Side::H5live).into_iter().flatten().filter_map(|run| run.growth);
        let [memory, time] =
            [grown().map(|growth| growth.memory).collect(), grown().map(|growth| growth.time).collect()];
        Some(Growth { memory: median(memory)?, time: median(time)? })
    }

    /// The median of the 99th percentiles (s).
    pub fn tail(&self, side: Side) -> Option<f64> {
        median(self.of(side)?.iter().filter_map(|run| run.tail).collect())
    }

    /// How many times shorter our 99th percentile is.
    pub fn tail_ratio(&self) -> Option<f64> {
        Some(self.tail(Side::Libhdf5)? / self.tail(Side::H5live)?)
    }

    /// Every aim. `rows` are those that this one may be measured against.
    pub fn verdicts(&self, rows: &[Row]) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let mut note = |aim, text, is_reached| verdicts.push(Verdict { aim, text, is_reached });
        let Work { aim, bare_aim, bare_is_bound, size_aim, within, budget, peak_aim, growth_aim, .. } = self.work;
        if let Some(ratio) = self.ratio(Side::Libhdf5) {
            match self.bound() {
                Some(bound) => {
                    let text = format!("{ratio:.2}x (aim {aim:.1}; the bound is {bound:.2}x)");
                    note("speed", text, ratio >= BOUND_PART * bound);
                }
                None => note("speed", format!("{ratio:.2}x (aim {aim:.1})"), ratio >= aim),
            }
        }
        if let Some(ratio) = self.tail_ratio() {
            note("99 %", format!("99 %: {ratio:.2}x (aim {aim:.1})"), ratio >= aim);
        }
        if let (Some(aim), Some(ratio)) = (bare_aim, self.ratio(Side::Bare)) {
            note("bare", format!("{ratio:.2} of bare (aim {aim:.1})"), ratio >= aim);
        } else if let Some(ratio) = self.ratio(Side::Bare) {
            note("bare", format!("{ratio:.2} of bare"), true);
        }
        if let Some(size) = self.size(Side::H5live) {
            let theirs = self.size(Side::Libhdf5).map_or_else(String::new, |size| format!(", libhdf5's {size:.2}x"));
            let aim = size_aim.map_or_else(String::new, |aim| format!(" (aim {aim:.1})"));
            note("size", format!("file {size:.2}x data{aim}{theirs}"), size_aim.is_none_or(|aim| size <= aim));
        }
        if let Some((name, limit)) = within
            && let Some(other) = rows.iter().find(|row| row.work.name == name)
            && let Some(times) = self.times_of(other, Side::H5live)
        {
            let bound = self.times_of(other, Side::Bare).filter(|bound| bare_is_bound && *bound > limit);
            let of_bound = bound.map_or_else(String::new, |bound| format!("; the bound is {bound:.2}x"));
            let text = format!("takes {times:.2}x of {name} (aim {limit:?}{of_bound})");
            note("pair", text, times <= bound.map_or(limit, |bound| bound / BOUND_PART));
        }
        if let (Some(aim), Some(Growth { memory, time })) = (growth_aim, self.growth()) {
            let text = format!("{memory:.2}x the memory (aim {aim:.1}) and {time:.2}x the time in the last tenth");
            note("growth", text, memory <= aim);
        }
        if let (Some(ours), Some(theirs)) = (self.peak(Side::H5live), self.peak(Side::Libhdf5)) {
            let [ours, theirs, budget] = [ours, theirs, budget].map(|bytes| bytes >> 20);
            note("memory", format!("{ours} MiB / {theirs} + {budget}"), ours <= theirs + budget);
        }
        if let (Some(ours), Some(aim)) = (self.peak(Side::H5live), peak_aim) {
            note("memory", format!("{} MiB (aim {})", ours >> 20, aim >> 20), ours <= aim);
        }
        verdicts
    }
}
