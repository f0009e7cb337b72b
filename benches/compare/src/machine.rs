//! The machine that the figures are of.

use std::fs;

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The kind of processor.
pub fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    field(&text, "model name").unwrap_or_else(|| "an unknown processor".to_owned())
}

/// Processor, memory and system, as a sentence.
pub fn description() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processor = processor();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let memory = memory.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) >> 20;
    let (kind, release) = (read("/proc/sys/kernel/ostype"), read("/proc/sys/kernel/osrelease"));
    format!("{cores} cores of {processor}, {memory} GiB of memory, {} {}.", kind.trim(), release.trim())
}
