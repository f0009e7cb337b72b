//! This machine's metrics from /proc: counters as the kernel keeps them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The counters of the kernel at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineSample {
    /// Time that all processors were busy (ticks of 10 ms, summed over processors).
    pub cpu_busy_ticks: u64,
    /// Time that all processors were idle (ticks of 10 ms, summed over processors).
    pub cpu_idle_ticks: u64,
    /// Switches from one task to another.
    pub context_switches: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Tasks that could run at this moment.
    pub runnable_tasks: u64,
    /// Memory that a new program could have (KiB).
    pub memory_available_kib: u64,
    /// Read from disks (sectors of 512 bytes).
    pub disk_read_sectors: u64,
    /// Written to disks (sectors of 512 bytes).
    pub disk_written_sectors: u64,
    /// Received from networks (bytes).
    pub net_received_bytes: u64,
    /// Sent to networks (bytes).
    pub net_sent_bytes: u64,
}

/// How busy the processors are between two samples.
#[derive(Debug, Default)]
pub struct ProcessorLoadMeter {
    busy: u64,
    idle: u64,
    percent: f32,
}

impl ProcessorLoadMeter {
    /// The share of the time since the last sample that the processors were busy (percent). The kernel counts in ticks: if
    /// none is over, it is as before.
    pub fn percent_since_last(&mut self, sample: &MachineSample) -> f32 {
        let busy = sample.cpu_busy_ticks.saturating_sub(self.busy);
        let all = busy + sample.cpu_idle_ticks.saturating_sub(self.idle);
        if all > 0 {
            self.percent = 100.0 * busy as f32 / all as f32;
        }
        (self.busy, self.idle) = (sample.cpu_busy_ticks, sample.cpu_idle_ticks);
        self.percent
    }
}

/// The names and units of the metrics, in the order of [`MachineSample::values`].
pub const METRIC_NAMES_AND_UNITS: [(&str, &str); 10] = [
    ("cpu_busy", "ticks"),
    ("cpu_idle", "ticks"),
    ("context_switches", ""),
    ("interrupts", ""),
    ("running", "tasks"),
    ("memory_available", "KiB"),
    ("disk_read", "sectors"),
    ("disk_written", "sectors"),
    ("net_received", "bytes"),
    ("net_sent", "bytes"),
];

impl MachineSample {
    /// The values in the order of [`METRIC_NAMES_AND_UNITS`].
    pub fn values(&self) -> [u64; 10] {
        [
            self.cpu_busy_ticks,
            self.cpu_idle_ticks,
            self.context_switches,
            self.interrupts,
            self.runnable_tasks,
            self.memory_available_kib,
            self.disk_read_sectors,
            self.disk_written_sectors,
            self.net_received_bytes,
            self.net_sent_bytes,
        ]
    }

    fn take_stat(&mut self, text: &str) {
        for line in text.lines() {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            match name {
                "cpu" => {
                    let ticks = |i| field(rest, i);
                    self.cpu_idle_ticks = ticks(3) + ticks(4);
                    self.cpu_busy_ticks = [0, 1, 2, 5, 6, 7].into_iter().map(ticks).sum();
                }
                "intr" => self.interrupts = field(rest, 0),
                "ctxt" => self.context_switches = field(rest, 0),
                "procs_running" => self.runnable_tasks = field(rest, 0),
                _ => {}
            }
        }
    }

    fn take_meminfo(&mut self, text: &str) {
        if let Some(rest) = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")) {
            self.memory_available_kib = field(rest, 0);
        }
    }

    /// Takes whole disks only: partitions would be counted twice, and other lines are not disks.
    fn take_diskstats(&mut self, text: &str) {
        let (mut read, mut written) = (0, 0);
        let mut disk = "";
        for line in text.lines() {
            let name = line.split_whitespace().nth(2).unwrap_or("");
            let partition = !disk.is_empty() && name.starts_with(disk);
            if partition || ["loop", "ram", "zram", "dm-", "md"].iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            disk = name;
            read += field(line, 5);
            written += field(line, 9);
        }
        (self.disk_read_sectors, self.disk_written_sectors) = (read, written);
    }

    fn take_net_dev(&mut self, text: &str) {
        let cards = text.lines().filter_map(|line| line.split_once(':')).filter(|(name, _)| name.trim() != "lo");
        (self.net_received_bytes, self.net_sent_bytes) =
            cards.fold((0, 0), |(received, sent), (_, rest)| (received + field(rest, 0), sent + field(rest, 8)));
    }
}

/// The number in a column of a line; 0 if there is none.
fn field(line: &str, column: usize) -> u64 {
    line.split_whitespace().nth(column).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Where the metrics come from: the files stay open, and are read from the start each time.
#[derive(Debug)]
pub struct MachineSampler {
    stat: ProcFile,
    meminfo: ProcFile,
    diskstats: Option<ProcFile>,
    net_dev: Option<ProcFile>,
}

#[derive(Debug)]
struct ProcFile {
    file: File,
    buffer: Vec<u8>,
}

impl ProcFile {
    fn open(path: &str) -> io::Result<Self> {
        Ok(ProcFile { file: File::open(path)?, buffer: vec![0; 64 << 10] })
    }

    fn read(&mut self) -> io::Result<&str> {
        let mut filled = 0;
        while let Some(rest) = self.buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, filled as u64)? {
                0 => break,
                n => filled += n,
            }
        }
        let bytes = self.buffer.get(..filled).unwrap_or_default();
        std::str::from_utf8(bytes).map_err(io::Error::other)
    }
}

impl MachineSampler {
    /// Opens the files in /proc. A machine without disks or networks has none of their counters.
    ///
    /// # Errors
    /// An I/O error if there is no /proc.
    pub fn open() -> io::Result<Self> {
        Ok(MachineSampler {
            stat: ProcFile::open("/proc/stat")?,
            meminfo: ProcFile::open("/proc/meminfo")?,
            diskstats: ProcFile::open("/proc/diskstats").ok(),
            net_dev: ProcFile::open("/proc/net/dev").ok(),
        })
    }

    /// Reads all counters.
    ///
    /// # Errors
    /// An I/O error if a file cannot be read any more.
    pub fn sample(&mut self) -> io::Result<MachineSample> {
        let mut sample = MachineSample::default();
        sample.take_stat(self.stat.read()?);
        sample.take_meminfo(self.meminfo.read()?);
        if let Some(source) = &mut self.diskstats {
            sample.take_diskstats(source.read()?);
        }
        if let Some(source) = &mut self.net_dev {
            sample.take_net_dev(source.read()?);
        }
        Ok(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_in_the_kernel_s_text() {
        let mut sample = MachineSample::default();
        sample.take_stat("cpu  10 1 20 300 4 5 6 7 0 0\ncpu0 9 9 9\nintr 42 0 1\nctxt 77\nprocs_running 3\n");
        assert_eq!((sample.cpu_busy_ticks, sample.cpu_idle_ticks), (49, 304));
        assert_eq!((sample.interrupts, sample.context_switches, sample.runnable_tasks), (42, 77, 3));
        sample.take_meminfo("MemTotal:  100 kB\nMemAvailable:   60 kB\n");
        assert_eq!(sample.memory_available_kib, 60);
    }

    #[test]
    fn disks_are_counted_without_their_partitions() {
        let mut sample = MachineSample::default();
        sample.take_diskstats(concat!(
            "   7  0 loop0 1 1 1000 1 1 1 1000 1\n",
            " 254  0 vda 1 1 10 1 1 1 20 1\n",
            " 254  1 vda1 1 1 9 1 1 1 9 1\n",
            "   8  0 sdb 1 1 100 1 1 1 200 1\n",
        ));
        assert_eq!((sample.disk_read_sectors, sample.disk_written_sectors), (110, 220));
    }

    #[test]
    fn networks_are_counted_without_the_loop_back() {
        let mut sample = MachineSample::default();
        let text = "Inter-| Receive\n face |bytes\n    lo: 5 0 0 0 0 0 0 0 6 0\n  eth0:7 0 0 0 0 0 0 0 8 0\n  eth1: 70 0 0 0 0 0 0 0 80\n";
        sample.take_net_dev(text);
        assert_eq!((sample.net_received_bytes, sample.net_sent_bytes), (77, 88));
    }

    #[test]
    fn a_kernel_without_a_counter_has_zero() {
        let mut sample = MachineSample::default();
        sample.take_stat("cpu  1\n");
        sample.take_meminfo("");
        assert_eq!((sample.cpu_busy_ticks, sample.memory_available_kib), (1, 0));
    }

    #[test]
    fn this_machine_has_memory() {
        let sample = MachineSampler::open().unwrap().sample().unwrap();
        assert!(sample.memory_available_kib > 0 && sample.cpu_busy_ticks + sample.cpu_idle_ticks > 0, "{sample:?}");
    }
}
