//! The table, on the terminal and as Markdown.

use std::fmt::Write as _;
use std::path::Path;

use crate::measure::Row;
use crate::work::Unit;
use crate::{Result, Side};

fn rate(unit: Unit, value: f64) -> String {
    let scaled = |value: f64| match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.1} M", v / 1e6),
        v if v >= 1e4 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0} "),
    };
    match unit {
        Unit::Things(what) => format!("{}{what}/s", scaled(value)),
        Unit::Bytes => format!("{}B/s", scaled(value)),
        Unit::Latency => format!("{:.1} µs", value * 1e6),
    }
}

fn side(row: &Row, side: Side) -> String {
    row.rate(side).map_or_else(String::new, |(median, spread)| {
        let tail = row.tail(side).map_or_else(String::new, |tail| format!(" (99 %: {:.1} µs)", tail * 1e6));
        format!("{} ±{:.0} %{tail}", rate(row.unit, median), spread * 100.0)
    })
}

fn aims(row: &Row) -> String {
    let mut text = format!("{:.1}x", row.aim);
    if let Some(aim) = row.bare_aim {
        let _ = write!(text, ", {aim:.1} of bare");
    }
    if let Some(aim) = row.size_aim {
        let _ = write!(text, ", file {aim:.2}x data");
    }
    text
}

fn ratios(row: &Row) -> String {
    let mut text = row.ratio(Side::Libhdf5).map_or_else(String::new, |ratio| format!("{ratio:.2}x"));
    if let Some(ratio) = row.ratio(Side::Bare) {
        let _ = write!(text, ", {ratio:.2} of bare");
    }
    if let Some(size) = row.size(Side::H5live) {
        let theirs = row.size(Side::Libhdf5).map_or_else(String::new, |size| format!(" ({size:.2}x)"));
        let _ = write!(text, ", file {size:.2}x{theirs}");
    }
    text
}

fn memory(row: &Row) -> String {
    let of = |side| row.peak(side).map_or(0, |bytes| bytes >> 20);
    format!("{} / {}", of(Side::H5live), of(Side::Libhdf5))
}

fn verdict(row: &Row) -> &'static str {
    if row.is_reached() { "yes" } else { "no" }
}

/// Prints what was found of one work.
pub fn print(row: &Row) {
    println!("{} ({})", row.title, row.name);
    println!(
        "    h5live {}, libhdf5 {}, bare {}",
        side(row, Side::H5live),
        side(row, Side::Libhdf5),
        side(row, Side::Bare)
    );
    println!("    ratio {} (aim {}): {}; memory {} MiB", ratios(row), aims(row), verdict(row), memory(row));
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{count} cores of {}", name.unwrap_or("an unknown processor"))
}

/// Writes `BENCHMARKS.md` into `folder`.
pub fn write(rows: &[Row], folder: &Path) -> Result<()> {
    let mut text = String::from("# Benchmarks\n\n");
    let _ = writeln!(text, "h5live beside libhdf5 2.2.0 (C interface), {}. Written by `make bench`.\n", processor());
    text.push_str(
        "Each side does the same work in a process of its own, in turns; the median of the rounds, and half of what lies\n\
         between the quartiles. *Bare* is what the machine does with the same bytes: `memcpy`, `pread`, `pwrite`, the codec\n\
         alone. What the sides read and wrote is compared. The settings of libhdf5 stand in `benches/compare`.\n\n\
         | work | h5live | libhdf5 | bare | ratio | aim | reached | memory, MiB |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let (ours, theirs, bare) = (side(row, Side::H5live), side(row, Side::Libhdf5), side(row, Side::Bare));
        let (ratios, aims, verdict, memory) = (ratios(row), aims(row), verdict(row), memory(row));
        let _ =
            writeln!(text, "| {} | {ours} | {theirs} | {bare} | {ratios} | {aims} | {verdict} | {memory} |", row.title);
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("BENCHMARKS.md"), text)?;
    Ok(())
}
