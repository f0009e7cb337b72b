//! Parts of a file that are mapped into memory, through which small pieces are written without a call to the system.
//!
//! Whoever reads the file sees them at once, for a mapping and reads share the system's pages. What the system does not
//! do is tell those who listen for writes; so that they hear of something soon, every so often it is written once more
//! with a call.

use std::{
    collections::VecDeque,
    fs::File,
    ops::Range,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

use nix::sys::statfs::{EXT4_SUPER_MAGIC, FsType, TMPFS_MAGIC, XFS_SUPER_MAGIC, fstatfs};

use super::os::{VectorStore, WritableMapping};

/// Bytes of a window.
const WINDOW_BYTES: u64 = 1 << 20;
/// Windows of one file.
const MAX_OPEN_WINDOWS: usize = 16;
/// Where that many are open, so many places are remembered that had none: the second time, another one is closed for
/// it.
const MAX_REMEMBERED_MISSED_WINDOWS: usize = 16;
/// File systems of this machine whose mappings and reads share pages.
const COHERENT_FILE_SYSTEMS: [FsType; 3] = [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC];
/// What comes later than this after the piece before is told of at once: there is time for it.
const BURST_GAP: Duration = Duration::from_micros(100);
/// So often it is where they come sooner.
const NOTIFY_INTERVAL: Duration = Duration::from_micros(250);

/// Whether what is written by a call is seen in a mapping of the file at once, and the other way round.
pub(super) fn has_coherent_mappings(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| COHERENT_FILE_SYSTEMS.contains(&found.filesystem_type()))
}

/// The windows of one file.
#[derive(Debug, Default)]
pub(super) struct MmapWriter {
    /// The one that was used last is the last.
    open_windows: Vec<WriteWindow>,
    /// Where there was none last, from the start of the file (bytes).
    missed_offsets: VecDeque<u64>,
    /// Whether the file can be mapped; `None` before that was asked.
    is_mappable: Option<bool>,
    notify_throttle: NotifyThrottle,
}

/// When those who listen are told of what was written.
#[derive(Debug, Default)]
struct NotifyThrottle {
    /// When a burst would be over that goes on now, and when they are to be told in any case.
    due: Option<(Instant, Instant)>,
}

impl NotifyThrottle {
    /// Something is written now; whether they are to be told.
    fn is_due(&mut self, now: Instant) -> bool {
        let next = now + BURST_GAP;
        match &mut self.due {
            Some((burst_end, latest)) if now < *burst_end && now < *latest => {
                *burst_end = next;
                false
            }
            due => {
                *due = Some((next, now + NOTIFY_INTERVAL));
                true
            }
        }
    }
}

#[derive(Debug)]
struct WriteWindow {
    /// Bytes from the start of the file.
    at: u64,
    mapping: WritableMapping,
}

impl MmapWriter {
    /// Writes `bytes`; `false` if that cannot be done here: some of it may have been written then.
    pub fn try_store_mapped(&mut self, file: &File, bytes: &[u8], at: u64) -> bool {
        self.with_window(file, at, |mapping, offset| mapping.copy_to_mapping(bytes, offset))
    }

    /// As [`Storage::try_store_crash_atomic`](super::Storage::try_store_crash_atomic).
    pub fn try_store_crash_atomic(&mut self, file: &File, image: &[u8], changed: Range<usize>, at: u64) -> bool {
        let Some(store) = VectorStore::vector_covering(image, changed.clone()) else { return false };
        let start = at + store.offset_in_image() as u64;
        if !self.with_window(file, start, |mapping, offset| mapping.store_by_one_instruction(store, offset)) {
            return false;
        }
        // Who looks has it already: those who listen hear of it by a call that writes the same.
        let notify = || file.write_all_at(image.get(changed.clone())?, at + changed.start as u64).ok();
        !self.notify_throttle.is_due(Instant::now()) || notify().is_some()
    }

    /// Closes all windows.
    pub fn unmap_all_windows(&mut self) {
        self.open_windows.clear();
    }

    /// Calls `action` with the window that has the byte `at` of the file, and where in it that byte is. Says whether
    /// `action` has done what it was to do.
    fn with_window(&mut self, file: &File, at: u64, action: impl FnOnce(&WritableMapping, usize) -> bool) -> bool {
        let Some(window) = self.window(file, at - at % WINDOW_BYTES) else { return false };
        if !action(&window.mapping, (at % WINDOW_BYTES) as usize) {
            return false;
        }
        if window.mapping.has_faulted() {
            // Somebody has cut the file, or the disk is full: a call says what is the matter.
            self.unmap_all_windows();
            self.is_mappable = Some(false);
            return false;
        }
        true
    }

    fn window(&mut self, file: &File, at: u64) -> Option<&WriteWindow> {
        if self.open_windows.last().is_none_or(|last| last.at != at) {
            let window = match self.open_windows.iter().position(|window| window.at == at) {
                Some(found) => self.open_windows.remove(found),
                None => self.map(file, at)?,
            };
            self.open_windows.push(window);
        }
        self.open_windows.last()
    }

    fn map(&mut self, file: &File, at: u64) -> Option<WriteWindow> {
        if !*self
            .is_mappable
            .get_or_insert_with(|| VectorStore::has_vector_instruction() && has_coherent_mappings(file))
        {
            return None;
        }
        if self.open_windows.len() == MAX_OPEN_WINDOWS {
            // To open one takes longer than several calls.
            if !self.was_missed_recently(at) {
                return None;
            }
            self.open_windows.remove(0);
        }
        let window = WritableMapping::map_writable_range(file, at, WINDOW_BYTES as usize)
            .map(|mapping| WriteWindow { at, mapping });
        self.is_mappable = Some(window.is_some());
        window
    }

    /// Whether a window there was wanted a short while ago.
    fn was_missed_recently(&mut self, at: u64) -> bool {
        if let Some(found) = self.missed_offsets.iter().position(|missed| *missed == at) {
            self.missed_offsets.remove(found);
            return true;
        }
        if self.missed_offsets.len() == MAX_REMEMBERED_MISSED_WINDOWS {
            self.missed_offsets.pop_front();
        }
        self.missed_offsets.push_back(at);
        false
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, time::SystemTime};

    use memmap2::MmapOptions;

    use super::*;

    fn file(len: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; len]).unwrap();
        file
    }

    fn read(file: &File, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    fn modified(file: &File) -> SystemTime {
        file.metadata().unwrap().modified().unwrap()
    }

    /// Whether the temporary folder is where files can be mapped.
    fn is_supported() -> bool {
        MmapWriter::default().try_store_mapped(&file(10), &[1], 0)
    }

    #[test]
    fn what_is_stored_is_read_from_the_file() {
        if !is_supported() {
            return;
        }
        let (file, mut windows) = (file(3 << 20), MmapWriter::default());
        for (at, byte) in [(0, 1), (5000, 2), (2_500_000, 3), (1_500_000, 4), (5000, 5)] {
            assert!(windows.try_store_mapped(&file, &[byte; 100], at));
            assert_eq!(read(&file, at, 100), [byte; 100]);
            assert_eq!(read(&file, at + 100, 1), [7]);
        }
        assert!(!windows.try_store_mapped(&file, &[1; 100], WINDOW_BYTES - 50), "no window has all of it");
        assert!(windows.open_windows.len() <= MAX_OPEN_WINDOWS);
        assert_eq!(file.metadata().unwrap().len(), 3 << 20);
    }

    #[test]
    fn a_whole_piece_changes_what_it_says_and_nothing_else() {
        if !is_supported() {
            return;
        }
        let file = file(10_000);
        for (changed, len) in [(40..60, 300), (280..300, 300), (236..300, 300), (0..10, 32), (100..101, 200)] {
            let mut image = vec![7; len];
            image[changed.clone()].fill(9);
            let mut windows = MmapWriter::default();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
            if windows.try_store_crash_atomic(&file, &image, changed.clone(), 1001) {
                assert_eq!(read(&file, 1001, len), image);
                assert_ne!(modified(&file), SystemTime::UNIX_EPOCH, "the first one is told of");
            } else {
                assert!(changed.end < 32 || changed.len() > 32, "{changed:?} of {len}");
                assert!(windows.notify_throttle.due.is_none());
            }
            // As if no time went by.
            let soon = Instant::now() + NOTIFY_INTERVAL * 10_000;
            windows.notify_throttle.due = Some((soon, soon));
            file.write_all_at(&vec![7; len], 1001).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
            if windows.try_store_crash_atomic(&file, &image, changed.clone(), 1001) {
                assert_eq!(read(&file, 1001, len), image);
                assert_eq!(modified(&file), SystemTime::UNIX_EPOCH, "one that follows soon is not");
            }
            assert_eq!(read(&file, 1000, 1), [7]);
            assert_eq!(read(&file, 1001 + len as u64, 50), [7; 50]);
            file.write_all_at(&vec![7; len], 1001).unwrap();
        }
        let mut windows = MmapWriter::default();
        assert!(!windows.try_store_crash_atomic(&file, &[7; 300], 0..65, 0), "too much for one instruction");
        assert!(!windows.try_store_crash_atomic(&file, &[7; 300], 0..5, 0), "there is nothing before it");
        assert!(windows.notify_throttle.due.is_none());
    }

    #[test]
    fn where_many_places_are_written_a_window_is_opened_for_those_that_come_again() {
        if !is_supported() {
            return;
        }
        let tmp = file(0);
        tmp.set_len(100 * WINDOW_BYTES).unwrap();
        let mut windows = MmapWriter::default();
        let mut store = |place: u64| windows.try_store_mapped(&tmp, &[1; 10], place * WINDOW_BYTES);
        assert!((0..MAX_OPEN_WINDOWS as u64).all(&mut store));
        assert!(!(20..20 + MAX_REMEMBERED_MISSED_WINDOWS as u64).any(&mut store), "none of them came before");
        assert!((20..20 + MAX_REMEMBERED_MISSED_WINDOWS as u64).all(&mut store));
        assert!(!(0..=MAX_REMEMBERED_MISSED_WINDOWS as u64).any(&mut store) && !store(0), "that is longer ago");
        assert!(store(0));
    }

    #[test]
    fn those_who_listen_are_told_every_so_often() {
        let (begin, mut notify_throttle) = (Instant::now(), NotifyThrottle::default());
        let mut due = |micros| notify_throttle.is_due(begin + Duration::from_micros(micros));
        assert!(due(0), "of the first one");
        let due_count = (1..=20).map(|n| due(n * 50)).filter(|is_due| *is_due).count();
        assert_eq!(due_count, 4, "of some, where they follow each other");
        assert!(!due(1050));
        assert!(due(1150), "of one that comes alone");
        assert!(due(1250) && due(1350));
        assert!(!due(1360));
    }

    #[test]
    fn a_file_that_somebody_cuts_is_written_by_calls_from_then_on() {
        if !is_supported() {
            return;
        }
        let (file, mut windows) = (file(2 << 20), MmapWriter::default());
        assert!(windows.try_store_mapped(&file, &[1; 10], 1_100_000));
        file.set_len(1000).unwrap();
        assert!(!windows.try_store_mapped(&file, &[2; 10], 1_100_000));
        assert!(!windows.try_store_mapped(&file, &[2; 10], 10), "and no window is opened any more");
        assert_eq!(file.metadata().unwrap().len(), 1000);
    }

    /// In a process of its own, which it ends.
    #[test]
    fn a_fault_that_is_none_of_ours_ends_the_process_as_before() {
        const CHILD: &str = "H5LIVE_OTHER_FAULT";
        if std::env::var_os(CHILD).is_some() {
            let (file, mut windows) = (file(8192), MmapWriter::default());
            let other = MmapOptions::new().len(8192).map_raw(&file).unwrap();
            windows.try_store_mapped(&file, &[1], 0);
            file.set_len(0).unwrap();
            // SAFETY: the fault is what is asked for.
            #[allow(unsafe_code, reason = "a fault is made")]
            unsafe {
                other.as_mut_ptr().add(5000).write_volatile(1);
            }
            return;
        }
        let module = module_path!().split_once("::").unwrap().1;
        let name = format!("{module}::a_fault_that_is_none_of_ours_ends_the_process_as_before");
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([&name, "--exact", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(child.status.signal(), Some(nix::libc::SIGBUS), "{child:?}");
    }
}
