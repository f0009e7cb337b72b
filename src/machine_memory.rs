//! How much memory this machine has.

use std::fs;
use std::sync::OnceLock;

/// The least default of [`Options::max_allocation`](crate::Options::max_allocation) (bytes).
const MIN_DEFAULT_ALLOCATION: u64 = 256 << 20;

/// The default of [`Options::max_allocation`](crate::Options::max_allocation): a quarter of the machine's memory (bytes).
pub(crate) fn default_max_allocation() -> u64 {
    static DEFAULT: OnceLock<u64> = OnceLock::new();
    *DEFAULT.get_or_init(|| memory().map_or(MIN_DEFAULT_ALLOCATION, quarter_of))
}

fn quarter_of(memory: u64) -> u64 {
    (memory / 4).max(MIN_DEFAULT_ALLOCATION)
}

/// The memory that this process may have, if the system says it: that of the machine, of the container, or of the process
/// (`ulimit -v`).
fn memory() -> Option<u64> {
    let machine = total_in(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse().ok());
    let process = fs::read_to_string("/proc/self/limits").ok().and_then(|limits| address_space_in(&limits));
    Some(machine.min(container.unwrap_or(u64::MAX)).min(process.unwrap_or(u64::MAX)))
}

/// The memory in the text of `/proc/meminfo` (bytes).
fn total_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The largest address space in the text of `/proc/self/limits` (bytes); `None` if it has no limit.
fn address_space_in(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_a_quarter_of_the_memory_and_not_too_little() {
        assert_eq!(total_in("MemTotal:       24000000 kB\nMemFree: 1 kB\n"), Some(24_576_000_000));
        assert_eq!(total_in("MemFree: 1 kB\n"), None);
        assert_eq!(total_in("MemTotal: x kB\n"), None);
        let limits = "Limit   Soft Limit   Hard Limit   Units\nMax address space   2147483648   unlimited   bytes\n";
        assert_eq!(address_space_in(limits), Some(2 << 30));
        assert_eq!(address_space_in("Max address space   unlimited   unlimited   bytes\n"), None);
        assert_eq!(quarter_of(16 << 30), 4 << 30);
        assert_eq!(quarter_of(512 << 20), 256 << 20);
        assert!(default_max_allocation() >= MIN_DEFAULT_ALLOCATION);
    }
}
