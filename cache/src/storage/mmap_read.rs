//! A file that is mapped into memory, in which small pieces are read without a call to the system.
//!
//! What is copied from the mapping is what a call would have read, also while others write. What the system would have
//! to fetch from the disk is left to a call, which fetches all of it at once. A file that is cut meanwhile is read by
//! calls from then on, as is one on a file system of other machines, or of which the system does not tell what of it is
//! in memory.

use std::{
    fs::File,
    ops::Range,
    sync::atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{Acquire, Relaxed, SeqCst},
        fence,
    },
};

use parking_lot::RwLock;

use super::file_len::file_len;
use super::mmap_write;
use super::os::Mapping;

/// The longest piece that is read so (bytes).
pub(super) const MAX_MMAP_READ_BYTES: usize = 4 << 10;
/// Calls after which it is worth mapping the file, or finding out how long it is now.
const CALLS_BEFORE_MMAP: usize = 64;
/// The system maps what is around a byte as well: about so many bytes, from a multiple of that on.
const FAULT_AROUND_BYTES: u64 = 256 << 10;
/// About so many bytes are kept mapped at a time.
const MAX_MAPPED_BYTES: usize = 64 << 20;
/// Mapping a part costs as much as so many calls, about. What is read less often is left to calls...
const MIN_READS_PER_PART: usize = 16;
/// ...so many times at first, and longer if it is so again.
const MIN_PAUSE_CALLS: usize = 4 << 10;
const MAX_PAUSE_CALLS: usize = 1 << 20;
/// The least that is mapped of a file that may grow (bytes).
const MIN_MAPPED_BYTES: u64 = 1 << 20;
/// No page of memory is smaller (bytes).
const MIN_PAGE_BYTES: u64 = 4 << 10;
/// Pages at the growing end of a file, or near to it, of which it is known that they are in memory.
const MAX_TRACKED_PAGES: usize = 64;

/// The mapping of one file.
#[derive(Debug, Default)]
pub(super) struct MmapReader {
    mapped: RwLock<ReadMappingState>,
    /// Calls since the file was mapped, or its length was found out.
    calls: AtomicUsize,
}

#[derive(Debug, Default)]
enum ReadMappingState {
    #[default]
    Unmapped,
    Mapped(ReadMapping),
    /// It cannot be mapped.
    Unmappable,
}

#[derive(Debug)]
struct ReadMapping {
    map: Mapping,
    /// Bytes that the file has had at least since it was mapped.
    len: AtomicU64,
    /// One bit for each part of [`FAULT_AROUND_BYTES`] bytes that may be in memory, and how many of them are set.
    touched: Box<[AtomicU64]>,
    /// Where parts are not: the number of a page that is in memory and 1, at a place by its number.
    pages: Box<[AtomicU64]>,
    count: AtomicUsize,
    /// Reads since nothing was mapped. Threads may miss each other's.
    reads: AtomicUsize,
    /// Reads that are still left to calls, and how many there were of them the last time.
    paused: AtomicUsize,
    pause: AtomicUsize,
    /// Bytes of a page of memory.
    page: usize,
}

impl MmapReader {
    /// Fills `into` with the bytes from `at` on; `false` if a call is needed for that.
    pub fn try_read_resident(&self, file: &File, into: &mut [u8], at: u64) -> bool {
        self.read_below((|len| len, false), file, into, at)
    }

    /// As [`MmapReader::try_read_resident`], with zeros for what lies beyond the end: the system has them there, up to the end of
    /// the page.
    pub fn try_read_zero_padded(&self, file: &File, into: &mut [u8], at: u64) -> bool {
        self.read_below((|len: u64| len.next_multiple_of(MIN_PAGE_BYTES), true), file, into, at)
    }

    /// Reads what ends where `limit` says for a file of so many bytes, or before; if it `is_padded`, the file may end
    /// before.
    fn read_below(
        &self,
        (limit, is_padded): (impl Fn(u64) -> u64, bool),
        file: &File,
        into: &mut [u8],
        at: u64,
    ) -> bool {
        let done = match &*self.mapped.read() {
            ReadMappingState::Mapped(mapping) => {
                let read = mapping.read_below(limit(mapping.len.load(Relaxed)), into, at);
                read.filter(|is_read| !is_read || is_padded || mapping.was_read_within_file(file, into, at))
            }
            ReadMappingState::Unmapped => Some(false),
            ReadMappingState::Unmappable => return false,
        };
        match done {
            Some(true) => return true,
            Some(false) if (self.calls.fetch_add(1, Relaxed) + 1).is_multiple_of(CALLS_BEFORE_MMAP) => self.remap(file),
            Some(false) => {}
            None => *self.mapped.write() = ReadMappingState::Unmappable,
        }
        false
    }

    /// Maps nothing any more for now.
    pub fn unmap(&self) {
        let mut mapped = self.mapped.write();
        if let ReadMappingState::Mapped(_) = *mapped {
            *mapped = ReadMappingState::Unmapped;
        }
    }

    /// Maps the file if it is not, and makes known how long it is now.
    fn remap(&self, file: &File) {
        let Ok(len) = file_len(file) else { return };
        if let ReadMappingState::Mapped(mapping) = &*self.mapped.read()
            && len <= mapping.map.len() as u64
        {
            mapping.len.fetch_max(len, Relaxed);
            return;
        }
        if len == 0 {
            return;
        }
        let mapping =
            if mmap_write::has_coherent_mappings(file) && has_large_address_space() && can_query_residency(file) {
                ReadMapping::new(file, len)
            } else {
                None
            };
        *self.mapped.write() = mapping.map_or(ReadMappingState::Unmappable, ReadMappingState::Mapped);
    }
}

impl ReadMapping {
    fn new(file: &File, len: u64) -> Option<Self> {
        // Beyond its end a file is mapped, too, so that this need not be done each time that it grows.
        let room = len.saturating_mul(2).max(MIN_MAPPED_BYTES);
        let map = Mapping::map_from_start(file, usize::try_from(room).ok()?)?;
        let parts = usize::try_from(room.div_ceil(FAULT_AROUND_BYTES).div_ceil(64)).ok()?;
        let touched = (0..parts).map(|_| AtomicU64::new(0)).collect();
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten()?;
        let page = usize::try_from(page).ok().filter(|page| *page >= 4096)?;
        let pages = (0..MAX_TRACKED_PAGES).map(|_| AtomicU64::new(0)).collect();
        let [count, reads, paused, pause] = [const { AtomicUsize::new(0) }; 4];
        Some(ReadMapping { map, len: len.into(), touched, pages, count, reads, paused, pause, page })
    }

    /// Whether it has read, which it does before `limit` alone; `None` if nothing more can be read here.
    fn read_below(&self, limit: u64, into: &mut [u8], at: u64) -> Option<bool> {
        let end = at.checked_add(into.len() as u64).filter(|end| *end <= limit);
        let Some(end) = end else { return Some(false) };
        let paused = self.paused.load(Relaxed);
        if paused > 0 {
            self.paused.store(paused - 1, Relaxed);
            return Some(false);
        }
        self.reads.store(self.reads.load(Relaxed).wrapping_add(1), Relaxed);
        let (first, last) = (at / FAULT_AROUND_BYTES, end.saturating_sub(1) / FAULT_AROUND_BYTES);
        if !self.is_resident(first, at..end) || (last != first && !self.is_resident(last, at..end)) {
            return Some(false);
        }
        if !self.map.copy_from_mapping(into, at as usize) {
            return Some(false);
        }
        // What is read from now on is at least as new.
        fence(Acquire);
        (!self.map.has_faulted()).then_some(true)
    }

    /// Whether the file has the bytes that were just read at `at`. Of a file that was cut, the system has zeros up to
    /// the end of the page; on the pages behind that, there is a fault.
    fn was_read_within_file(&self, file: &File, read: &[u8], at: u64) -> bool {
        let end = at + read.len() as u64;
        let may_be_cut_before = |end: u64| {
            let last = end.checked_sub(at + 1).and_then(|last| read.get(last as usize));
            last == Some(&0) && !self.ends_in_data(end)
        };
        // A short piece lies in two pages at most.
        if !may_be_cut_before(end) && !may_be_cut_before(end.saturating_sub(1) / MIN_PAGE_BYTES * MIN_PAGE_BYTES) {
            return true;
        }
        file_len(file).is_ok_and(|len| len >= end)
    }

    /// Whether the page that has the byte before `end` ends in bytes that are not zero: the file has all of that page.
    fn ends_in_data(&self, end: u64) -> bool {
        const WORD: usize = size_of::<u64>();
        let page_end = end.next_multiple_of(MIN_PAGE_BYTES) as usize;
        let mut word = [0; WORD];
        self.map.copy_from_mapping(&mut word, page_end - WORD) && word != [0; WORD] && !self.map.has_faulted()
    }

    /// Whether what of `wanted` lies in a part is in memory, as it is about to be read.
    fn is_resident(&self, part: u64, wanted: Range<u64>) -> bool {
        let Some(bits) = self.touched.get((part / 64) as usize) else { return false };
        let bit = 1 << (part % 64);
        if bits.load(Relaxed) & bit != 0 {
            return true;
        }
        let start = part * FAULT_AROUND_BYTES;
        let (from, to) = (wanted.start.max(start), wanted.end.min(start + FAULT_AROUND_BYTES));
        let pages = from / MIN_PAGE_BYTES..to.div_ceil(MIN_PAGE_BYTES);
        let slot = |page: u64| self.pages.get(page as usize % MAX_TRACKED_PAGES);
        if pages.clone().all(|page| slot(page).is_some_and(|slot| slot.load(Relaxed) == page + 1)) {
            return true;
        }
        let Some(there) = self.page_residency(part) else { return false };
        let len = self.len.load(Relaxed).saturating_sub(start).min(FAULT_AROUND_BYTES);
        // A byte for each page, from the beginning of the part on.
        let is_there = |page: u64| {
            let byte = (page * MIN_PAGE_BYTES - start) as usize / self.page;
            there.get(byte).is_some_and(|residency| residency & 1 != 0)
        };
        if (start / MIN_PAGE_BYTES..(start + len).div_ceil(MIN_PAGE_BYTES)).all(is_there) {
            if bits.fetch_or(bit, Relaxed) & bit != 0 {
                return true;
            }
        } else if pages.clone().all(is_there) {
            pages.for_each(|page| slot(page).into_iter().for_each(|slot| slot.store(page + 1, Relaxed)));
        } else {
            return false;
        }
        if self.count.fetch_add(1, Relaxed) + 1 >= MAX_MAPPED_BYTES / FAULT_AROUND_BYTES as usize {
            self.unmap_cold();
        }
        true
    }

    /// Maps nothing for now but what is read next. That may be nothing for some time: of a large file of which a little
    /// is read here and there, pages would be mapped for one read each.
    fn unmap_cold(&self) {
        let parts = self.count.swap(0, SeqCst);
        let pause = match self.reads.swap(0, Relaxed) < parts.saturating_mul(MIN_READS_PER_PART) {
            true => self.pause.load(Relaxed).saturating_mul(2).clamp(MIN_PAUSE_CALLS, MAX_PAUSE_CALLS),
            false => 0,
        };
        self.pause.store(pause, Relaxed);
        self.paused.store(pause, Relaxed);
        self.touched.iter().chain(&*self.pages).for_each(|known| known.store(0, Relaxed));
        self.map.release_mapped_pages();
    }

    /// For each page of a part, whether the system has it in memory: in the lowest bit.
    fn page_residency(&self, part: u64) -> Option<[u8; (FAULT_AROUND_BYTES / MIN_PAGE_BYTES) as usize]> {
        let (start, len) = (part * FAULT_AROUND_BYTES, self.len.load(Relaxed));
        let len = len.saturating_sub(start).min(FAULT_AROUND_BYTES) as usize;
        let mut pages = [0_u8; (FAULT_AROUND_BYTES / MIN_PAGE_BYTES) as usize];
        self.map.query_residency(start as usize, len, &mut pages).then_some(pages)
    }
}

/// Whether mappings cost nothing but themselves: where addresses are few, others need them.
fn has_large_address_space() -> bool {
    use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
    usize::BITS >= 64 && getrlimit(Resource::RLIMIT_AS).is_ok_and(|(limit, _)| limit == RLIM_INFINITY)
}

/// Whether the system tells this process what of the file is in memory. Of others' files it says that all of it is.
fn can_query_residency(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let me = nix::unistd::geteuid();
    me.is_root() || file.metadata().is_ok_and(|found| found.uid() == me.as_raw())
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::unix::fs::FileExt};

    use super::*;

    fn file(len: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&(0..len).map(|at| (at % 251) as u8).collect::<Vec<_>>()).unwrap();
        file
    }

    /// Reads until the file is mapped; `false` if that cannot be.
    fn is_mapped(glance: &MmapReader, file: &File) -> bool {
        let mut byte = [0];
        (0..=CALLS_BEFORE_MMAP).any(|_| glance.try_read_resident(file, &mut byte, 0))
    }

    fn read(glance: &MmapReader, file: &File, at: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        glance.try_read_resident(file, &mut bytes, at).then_some(bytes)
    }

    fn bytes(at: usize, len: usize) -> Vec<u8> {
        (at..at + len).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn what_is_read_is_what_the_file_has() {
        let (file, glance) = (file(300_000), MmapReader::default());
        assert_eq!(read(&glance, &file, 0, 10), None, "the first ones are read by calls");
        if !is_mapped(&glance, &file) {
            return;
        }
        for at in [0, 1, 4095, 65_530, 299_000] {
            assert_eq!(read(&glance, &file, at, 1000).unwrap(), bytes(at as usize, 1000));
        }
        assert_eq!(read(&glance, &file, 299_500, 1000), None, "not beyond the end");
        assert_eq!(read(&glance, &file, u64::MAX, 1000), None);
        file.write_all_at(&[9; 10], 70_000).unwrap();
        assert_eq!(read(&glance, &file, 70_000, 10).unwrap(), [9; 10], "what others write is seen");
    }

    #[test]
    fn what_lies_beyond_the_end_is_zeros_up_to_the_end_of_the_page() {
        let (file, glance) = (file(10_000), MmapReader::default());
        if !is_mapped(&glance, &file) {
            return;
        }
        let padded = |at: u64| {
            let mut into = [1; 16];
            glance.try_read_zero_padded(&file, &mut into, at).then_some(into)
        };
        let (mut across, end) = ([0; 16], bytes(9_992, 8));
        across[..8].copy_from_slice(&end);
        assert_eq!(padded(9_992).unwrap(), across);
        assert_eq!(padded(10_000).unwrap(), [0; 16]);
        assert_eq!(padded(12_288 - 16).unwrap(), [0; 16]);
        assert_eq!(padded(12_288 - 15), None, "the next page is not there");
        assert_eq!(padded(u64::MAX), None);
        file.write_all_at(&[9; 16], 10_000).unwrap();
        assert_eq!(padded(10_000).unwrap(), [9; 16], "what comes there is seen");
    }

    #[test]
    fn what_a_file_has_grown_by_is_read_after_some_calls() {
        let (file, glance) = (file(10_000), MmapReader::default());
        if !is_mapped(&glance, &file) {
            return;
        }
        for (at, what) in [(20_000, "within what is mapped"), (3 << 20, "beyond")] {
            file.write_all_at(&[7; 100], at).unwrap();
            assert_eq!(read(&glance, &file, at, 100), None, "{what}");
            let found = (0..=CALLS_BEFORE_MMAP).find_map(|_| read(&glance, &file, at, 100));
            assert_eq!(found.unwrap(), [7; 100], "{what}");
        }
    }

    #[test]
    fn what_is_in_memory_is_read_where_its_surroundings_are_not() {
        let (file, glance) = (file(10_000), MmapReader::default());
        file.set_len(1 << 20).unwrap();
        if !is_mapped(&glance, &file) {
            return;
        }
        for at in [5000, 4090, 9000, 5001] {
            assert_eq!(read(&glance, &file, at, 500).unwrap(), bytes(at as usize, 500));
        }
        for at in [500_000, 12_200, 40_000] {
            assert_eq!(read(&glance, &file, at, 500), None, "nothing is there to be in memory");
        }
        file.write_all_at(&[5; 100], 500_000).unwrap();
        assert_eq!(read(&glance, &file, 500_010, 50).unwrap(), [5; 50]);
    }

    #[test]
    fn what_lies_behind_the_new_end_of_a_file_that_was_cut_is_not_read_from_the_rest_of_its_page() {
        for (at, len) in [(9000, 100), (9050, 1), (9090, 4000), (8000, 1090), (6000, 3090)] {
            let file = file(100_000);
            let glance = MmapReader::default();
            if !is_mapped(&glance, &file) {
                return;
            }
            assert_eq!(read(&glance, &file, at, len).unwrap(), bytes(at as usize, len));
            file.set_len(9040).unwrap();
            assert_eq!(read(&glance, &file, at, len), None, "{len} bytes at {at}");
        }
    }

    #[test]
    fn zeros_that_a_file_has_are_read() {
        let (file, glance) = (file(20_000), MmapReader::default());
        file.write_all_at(&[0; 9000], 4000).unwrap();
        if !is_mapped(&glance, &file) {
            return;
        }
        for (at, len) in [(4000, 96), (4090, 10), (8000, 4000), (12_900, 200)] {
            let found = read(&glance, &file, at, len).unwrap();
            let wanted = (at as usize..at as usize + len).map(|at| if at < 13_000 { 0 } else { (at % 251) as u8 });
            assert!(found.into_iter().eq(wanted), "{len} bytes at {at}");
        }
    }

    #[test]
    fn a_file_that_is_cut_is_read_by_calls_from_then_on() {
        let (file, glance) = (file(200_000), MmapReader::default());
        if !is_mapped(&glance, &file) {
            return;
        }
        assert!(read(&glance, &file, 150_000, 100).is_some());
        file.set_len(1000).unwrap();
        assert_eq!(read(&glance, &file, 150_000, 100), None);
        assert!(!is_mapped(&glance, &file));
    }

    /// In a process of its own.
    #[test]
    fn a_process_with_few_addresses_keeps_them() {
        const CHILD: &str = "H5LIVE_FEW_ADDRESSES";
        if std::env::var_os(CHILD).is_some() {
            assert!(!is_mapped(&MmapReader::default(), &file(10_000)));
            return;
        }
        let module = module_path!().split_once("::").unwrap().1;
        let name = format!("{module}::a_process_with_few_addresses_keeps_them");
        let child = std::process::Command::new("sh")
            .args(["-c", "ulimit -v 8000000; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args([&name, "--exact"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"), "{child:?}");
    }

    #[test]
    fn what_is_read_here_and_there_is_left_to_calls_for_some_time() {
        let (file, glance) = (file(10_000), MmapReader::default());
        let parts = MAX_MAPPED_BYTES as u64 / FAULT_AROUND_BYTES;
        for at in (10_000..2 * MAX_MAPPED_BYTES as u64).step_by(1 << 20) {
            file.write_all_at(&vec![0; 1 << 20], at).unwrap();
        }
        if !is_mapped(&glance, &file) {
            return;
        }
        let is_read = |part: u64| read(&glance, &file, part % (2 * parts) * FAULT_AROUND_BYTES + 5000, 8).is_some();
        assert!((1..parts).all(is_read), "there is room for these");
        for pause in [MIN_PAUSE_CALLS, 2 * MIN_PAUSE_CALLS] {
            let calls = (parts..).skip_while(|part| is_read(*part)).take_while(|part| !is_read(*part));
            // One was asked for to see where it begins, and one to see where it ends.
            assert_eq!(calls.count() + 1, pause);
        }
    }

    #[test]
    fn only_so_much_is_kept_mapped() {
        let (file, glance) = (file(10_000), MmapReader::default());
        let len = (MAX_MAPPED_BYTES as u64) + (16 << 20);
        for at in (10_000..len).step_by(1 << 20) {
            file.write_all_at(&vec![0; 1 << 20], at).unwrap();
        }
        if !is_mapped(&glance, &file) {
            return;
        }
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("Rss:")?.trim().strip_suffix(" kB"));
            line.and_then(|text| text.trim().parse::<usize>().ok()).unwrap_or(0) << 10
        };
        let (before, mut peak_bytes) = (resident(), 0);
        for part in 0..len / FAULT_AROUND_BYTES {
            let wanted = if part == 0 { bytes(5000, 8) } else { vec![0; 8] };
            for _ in 0..=MIN_READS_PER_PART {
                assert_eq!(read(&glance, &file, part * FAULT_AROUND_BYTES + 5000, 8).unwrap(), wanted);
            }
            peak_bytes = peak_bytes.max(if part % 50 == 0 { resident() } else { 0 });
        }
        let ReadMappingState::Mapped(mapping) = &*glance.mapped.read() else { panic!("it is mapped") };
        assert!(mapping.count.load(Relaxed) * (FAULT_AROUND_BYTES as usize) <= MAX_MAPPED_BYTES);
        assert!(mapping.count.load(Relaxed) < (len / FAULT_AROUND_BYTES) as usize, "some of it was given back");
        // Other tests take memory, too.
        assert!(peak_bytes <= before + MAX_MAPPED_BYTES + (100 << 20), "{before} {peak_bytes}");
    }
}
