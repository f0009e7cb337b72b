//! The tables, on the terminal and as Markdown.

use std::fmt::Write as _;
use std::path::Path;

use crate::found::Found;
use crate::row::{Row, Verdict};
use crate::work::Unit;
use crate::{Result, Side, grid, machine, other_machines, others, plot};

pub fn rate(unit: Unit, value: f64) -> String {
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
        format!("{} ±{:.0} %{tail}", rate(row.work.unit, median), spread * 100.0)
    })
}

/// `yes`, or which aims are missed.
fn conclusion(verdicts: &[Verdict]) -> String {
    let missed: Vec<_> = verdicts.iter().filter(|verdict| !verdict.is_reached).map(|verdict| verdict.aim).collect();
    if missed.is_empty() { "yes".to_owned() } else { format!("**no**: {}", missed.join(", ")) }
}

/// What is said of the aims, `memory` apart or all but that.
fn texts(verdicts: &[Verdict], memory: bool) -> String {
    let chosen = verdicts.iter().filter(|verdict| (verdict.aim == "memory") == memory);
    chosen.map(|verdict| &*verdict.text).collect::<Vec<_>>().join("; ")
}

/// Prints what was found of one work; `rows` are the earlier ones.
pub fn print(row: &Row, rows: &[Row]) {
    let verdicts = row.verdicts(rows);
    println!("{} ({})", row.work.title, row.work.name);
    if row.chunk > 0 {
        println!("    chunks of {}", plot::size(row.chunk));
    }
    if let Some((from, to)) = grid::pair(row) {
        println!("    {from} to {to}: {}", grid::cell(row));
        return;
    }
    let rates = row.runs.iter().map(|(whose, _)| format!("{whose} {}", side(row, *whose)));
    println!("    {}", rates.collect::<Vec<_>>().join(", "));
    println!("    {}: {}; {}", conclusion(&verdicts), texts(&verdicts, false), texts(&verdicts, true));
    row.left_out.iter().for_each(|(side, why)| println!("    without {side}: {}", why.trim_end()));
}

/// How many times faster a work is than in the earlier build, if that was measured.
pub fn beside_earlier(row: &Row) -> Option<String> {
    let (now, earlier) = (side(row, Side::H5live), side(row, Side::Earlier));
    row.ratio(Side::Earlier).map(|ratio| format!("{}: {ratio:.2}x of earlier ({now}; {earlier})", row.work.name))
}

fn main_table(text: &mut String, rows: &[Row]) {
    text.push_str(
        "| work | h5live | libhdf5 | bare | found, and aim | memory | reached |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let (ours, theirs, bare) = (side(row, Side::H5live), side(row, Side::Libhdf5), side(row, Side::Bare));
        let verdicts = row.verdicts(rows);
        let (found, memory, reached) = (texts(&verdicts, false), texts(&verdicts, true), conclusion(&verdicts));
        let _ = writeln!(
            text,
            "| {} (`{}`) | {ours} | {theirs} | {bare} | {found} | {memory} | {reached} |",
            row.work.title, row.work.name
        );
    }
}

fn missed(text: &mut String, rows: &[Row]) {
    let missed = rows.iter().map(|row| (row, row.verdicts(rows)));
    let missed: Vec<_> = missed.filter(|(_, verdicts)| verdicts.iter().any(|verdict| !verdict.is_reached)).collect();
    let _ = writeln!(text, "\n{} of {} rows reach every aim.", rows.len() - missed.len(), rows.len());
    if !missed.is_empty() {
        text.push_str("These fall short:\n\n");
    }
    for (row, verdicts) in missed {
        let short: Vec<_> = verdicts.iter().filter(|verdict| !verdict.is_reached).map(|v| &*v.text).collect();
        let _ = writeln!(text, "- {} (`{}`): {}", row.work.title, row.work.name, short.join("; "));
    }
}

fn crates_table(text: &mut String, rows: &[Row]) {
    let with_crates: Vec<_> = rows.iter().filter(|row| row.work.sides.iter().any(|side| side.is_crate())).collect();
    if with_crates.is_empty() {
        return;
    }
    text.push_str("\n## Other crates\n\n");
    text.push_str(others::LEFT_OUT);
    text.push_str("\n| work | h5live | rust-hdf5 | hdf5-pure | hdf5-reader |\n|---|---|---|---|---|\n");
    for row in &with_crates {
        let _ = write!(text, "| {} | {} |", row.work.title, side(row, Side::H5live));
        for other in Side::CRATES {
            let ratio = row.ratio(other).map_or_else(String::new, |ratio| format!(" (ours {ratio:.1}x)"));
            let _ = write!(text, " {}{ratio} |", side(row, other));
        }
        text.push('\n');
    }
    for row in with_crates {
        for (side, why) in &row.left_out {
            let why = why.lines().next().unwrap_or_default();
            let _ = writeln!(text, "\n{side} did not do `{}`: {why}", row.work.name);
        }
    }
}

/// The folder of the plots, beside `BENCHMARKS.md`.
const PLOTS: &str = "benchmarks";

fn plots(text: &mut String, curves: &[Vec<Row>], folder: &Path) -> Result<()> {
    if !curves.is_empty() {
        text.push_str("\n## Throughput against the size of chunks\n");
    }
    for curve in curves {
        let Some(Row { work, .. }) = curve.first() else { continue };
        let name = format!("{PLOTS}/{}.svg", work.name);
        plot::draw(curve, &folder.join(&name))?;
        let _ = writeln!(text, "\n![{}]({name})\n", work.title);
        text.push_str("| chunk | h5live | libhdf5 | bare |\n|---|---|---|---|\n");
        for row in curve {
            let sides = [Side::H5live, Side::Libhdf5, Side::Bare].map(|whose| side(row, whose)).join(" | ");
            let _ = writeln!(text, "| {} | {sides} |", plot::size(row.chunk));
        }
    }
    Ok(())
}

/// The page of this machine.
const PAGE: &str = "BENCHMARKS.md";

/// Writes `BENCHMARKS.md` and the plots into `folder`. What it says of another processor stays on a page of its own.
pub fn write(found: &Found, folder: &Path) -> Result<()> {
    let Found { rounds, rows, curves, grids, failed, .. } = found;
    std::fs::create_dir_all(folder.join(PLOTS))?;
    let others = other_machines::keep(folder, PAGE, PLOTS)?;
    let mut text = String::from("# Benchmarks\n\n");
    let _ = writeln!(
        text,
        "h5live beside libhdf5 2.2.0 (C interface), linked into the same program. {} `make bench` wrote this: \
         `h5live-compare --rounds {rounds} --out docs` after `cargo build --release`; \
         `make bench BENCH=append-4k` prints one row.\n",
        machine::description()
    );
    text.push_str(
        "Each side does the same work in a process of its own, in turns; the median of the rounds (three times as many where\n\
         a run takes less than 0.3 s), and half of what lies between the quartiles. *Bare* is what the machine does with the\n\
         same bytes: `memcpy`, `pread`, `pwrite`, the codec or the conversion alone, copies of a mapping, one call that\n\
         another process sees; for objects one `pwrite` of the bytes that each takes, and three `pread` of 512 bytes for each that is\n\
         opened; in rows of *live* files, h5live in a file that is not live. What the sides read and wrote is compared. The settings of\n\
         libhdf5 stand in `benches/compare`; nobody waits for the disk (`fsync`). Filters beside deflate are hdf5plugin's,\n\
         loaded by libhdf5. *Cold* rows begin with nothing of the file in the page cache; there the disk is the limit, and\n\
         the aim is not to be slower. *Memory* is the most that each process had, without mapped pages of files, and what ours may have more: the sizes\n\
         that `Options` states (32 MiB of decoded chunks or 64 MiB until the next flush, and 64 MiB while threads decode or\n\
         encode). Where *bare* does the same calls with the same bytes and does not reach the aim itself, it is the *bound*, and\n\
         nine tenths of it are the aim.\n\n",
    );
    text.push_str(&others);
    main_table(&mut text, rows);
    missed(&mut text, rows);
    for (work, why) in failed {
        let _ = writeln!(text, "\nNot measured: {} (`{}`): {why}", work.title, work.name);
    }
    crates_table(&mut text, rows);
    grid::tables(&mut text, grids);
    plots(&mut text, curves, folder)?;
    std::fs::write(folder.join(PAGE), text)?;
    Ok(())
}
