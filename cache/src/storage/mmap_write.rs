//! Parts of a file that are mapped into memory, through which small pieces are written without a call to the system.
//!
//! Whoever reads the file sees them at once, for a mapping and reads share the system's pages. What the system does not do
//! is tell those who listen for writes; so that they hear of something soon, every so often it is written once more with a
//! call.

use std::{
    collections::VecDeque,
    fs::File,
    ops::Range,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

use memmap2::{Advice, MmapOptions, MmapRaw};
use nix::sys::statfs::{EXT4_SUPER_MAGIC, FsType, TMPFS_MAGIC, XFS_SUPER_MAGIC, fstatfs};

use super::{changed_range, sigbus::SigbusGuard};

/// Bytes of a window.
const WINDOW_BYTES: u64 = 1 << 20;
/// Windows of one file.
const MAX_WINDOWS: usize = 16;
/// Where that many are open, so many places are remembered that had none: the second time, another one is closed for it.
const MAX_REMEMBERED_MISSES: usize = 16;
/// The longest image of which is found out what of it has changed (bytes).
const MAX_DIFF_BYTES: usize = 256;
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
    open: Vec<WriteWindow>,
    /// Where there was none last, from the start of the file (bytes).
    wanted: VecDeque<u64>,
    /// Whether the file can be mapped; `None` before that was asked.
    suits: Option<bool>,
    telling: NotifyThrottle,
}

/// When those who listen are told of what was written.
#[derive(Debug, Default)]
struct NotifyThrottle {
    /// When something was last written, and when they were last told.
    last: Option<(Instant, Instant)>,
}

impl NotifyThrottle {
    /// Something is written now; whether they are to be told.
    fn is_due(&mut self, now: Instant) -> bool {
        let due = self.last.is_none_or(|(last, told)| now - last >= BURST_GAP || now - told >= NOTIFY_INTERVAL);
        let told = if due { now } else { self.last.map_or(now, |(_, told)| told) };
        self.last = Some((now, told));
        due
    }
}

#[derive(Debug)]
struct WriteWindow {
    /// Bytes from the start of the file.
    at: u64,
    /// Ends before the mapping does: fields are dropped in order.
    watch: SigbusGuard,
    map: MmapRaw,
}

impl MmapWriter {
    /// Writes `bytes`; `false` if that cannot be done here: some of it may have been written then.
    pub fn store_mapped(&mut self, file: &File, bytes: &[u8], at: u64) -> bool {
        self.with_window(file, at, bytes.len(), |place| {
            // SAFETY: the window has so many bytes there, none of which Rust knows otherwise.
            #[allow(unsafe_code, reason = "mapped memory is written through a pointer")]
            unsafe {
                place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        })
    }

    /// As [`Storage::store_atomic`](super::Storage::store_atomic).
    pub fn store_atomic(&mut self, file: &File, image: &[u8], changed: Range<usize>, at: u64) -> bool {
        let Some(piece) = whole::VectorStore::covering(image, changed.clone()) else { return false };
        if !self.with_window(file, at + piece.offset() as u64, piece.len(), |place| piece.store(place)) {
            return false;
        }
        // Who looks has it already: those who listen hear of it by a call that writes the same.
        let told = || file.write_all_at(image.get(changed.clone())?, at + changed.start as u64).ok();
        !self.telling.is_due(Instant::now()) || told().is_some()
    }

    /// As [`Storage::store_diff_atomic`](super::Storage::store_diff_atomic).
    pub fn store_diff_atomic(&mut self, file: &File, image: &[u8], at: u64) -> bool {
        let mut there = [0; MAX_DIFF_BYTES];
        let Some(there) = there.get_mut(..image.len()) else { return false };
        let is_read = self.with_window(file, at, image.len(), |place| {
            // SAFETY: the window has so many bytes there, and nobody but this process writes any of them.
            #[allow(unsafe_code, reason = "mapped memory is read through a pointer")]
            unsafe {
                place.copy_to_nonoverlapping(there.as_mut_ptr(), there.len());
            }
        });
        is_read && changed_range(image, there).is_some_and(|changed| self.store_atomic(file, image, changed, at))
    }

    /// Closes all windows.
    pub fn close(&mut self) {
        self.open.clear();
    }

    /// Has `write` write `len` bytes at `at`, and says whether it could.
    fn with_window(&mut self, file: &File, at: u64, len: usize, write: impl FnOnce(*mut u8)) -> bool {
        let Some(window) = self.window(file, at - at % WINDOW_BYTES) else { return false };
        let offset = (at % WINDOW_BYTES) as usize;
        if offset + len > WINDOW_BYTES as usize {
            return false;
        }
        write(window.map.as_mut_ptr().wrapping_add(offset));
        if window.watch.is_broken() {
            // Somebody has cut the file, or the disk is full: a call says what is the matter.
            self.close();
            self.suits = Some(false);
            return false;
        }
        true
    }

    fn window(&mut self, file: &File, at: u64) -> Option<&WriteWindow> {
        if self.open.last().is_none_or(|last| last.at != at) {
            let window = match self.open.iter().position(|window| window.at == at) {
                Some(found) => self.open.remove(found),
                None => self.map(file, at)?,
            };
            self.open.push(window);
        }
        self.open.last()
    }

    fn map(&mut self, file: &File, at: u64) -> Option<WriteWindow> {
        if !*self.suits.get_or_insert_with(|| whole::is_supported() && has_coherent_mappings(file)) {
            return None;
        }
        if self.open.len() == MAX_WINDOWS {
            // To open one takes longer than several calls.
            if !self.was_missed_recently(at) {
                return None;
            }
            self.open.remove(0);
        }
        let mapped = MmapOptions::new().offset(at).len(WINDOW_BYTES as usize).map_raw(file).ok();
        // A process that is forked must not keep the file open by what is mapped.
        let mapped = mapped.filter(|map| map.advise(Advice::DontFork).is_ok());
        let window = mapped.and_then(|map| {
            let watch = SigbusGuard::guard(map.as_mut_ptr(), map.len())?;
            Some(WriteWindow { at, map, watch })
        });
        self.suits = Some(window.is_some());
        window
    }

    /// Whether a window there was wanted a short while ago.
    fn was_missed_recently(&mut self, at: u64) -> bool {
        if let Some(found) = self.wanted.iter().position(|wanted| *wanted == at) {
            self.wanted.remove(found);
            return true;
        }
        if self.wanted.len() == MAX_REMEMBERED_MISSES {
            self.wanted.pop_front();
        }
        self.wanted.push_back(at);
        false
    }
}

/// Stores that a process does not end in the middle of: of one instruction each.
#[cfg(target_arch = "x86_64")]
mod whole {
    use std::{arch::asm, ops::Range};

    /// Loads the bytes at one place and stores them at another, each by `$moves` and through the register `$register`.
    macro_rules! by_one {
        ($moves:literal, $register:literal, $from:expr, $to:expr) => {
            asm!(
                concat!($moves, " ", $register, ", [{from}]"),
                concat!($moves, " [{to}], ", $register),
                "vzeroupper",
                from = in(reg) $from, to = in(reg) $to,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(nostack, preserves_flags),
            )
        };
    }

    /// Bytes that one instruction stores, of which there are 32 where the processor has AVX, and 64 where it has AVX-512.
    #[derive(Clone, Copy)]
    pub enum VectorStore<'a> {
        Bytes32(usize, &'a [u8; 32]),
        Bytes64(usize, &'a [u8; 64]),
    }

    pub fn is_supported() -> bool {
        is_x86_feature_detected!("avx")
    }

    impl<'a> VectorStore<'a> {
        /// The piece of `image` with all that has changed in it, if there is one.
        pub fn covering(image: &'a [u8], changed: Range<usize>) -> Option<Self> {
            let before = image.get(..changed.end)?;
            if changed.len() <= 32 && is_supported() {
                let (rest, piece) = before.split_last_chunk()?;
                Some(VectorStore::Bytes32(rest.len(), piece))
            } else if changed.len() <= 64 && is_x86_feature_detected!("avx512f") {
                let (rest, piece) = before.split_last_chunk()?;
                Some(VectorStore::Bytes64(rest.len(), piece))
            } else {
                None
            }
        }

        /// Where it begins in the image (bytes).
        pub fn offset(self) -> usize {
            match self {
                VectorStore::Bytes32(at, _) | VectorStore::Bytes64(at, _) => at,
            }
        }

        pub fn len(self) -> usize {
            match self {
                VectorStore::Bytes32(_, bytes) => bytes.len(),
                VectorStore::Bytes64(_, bytes) => bytes.len(),
            }
        }

        /// Stores it at `place`, which has so many bytes.
        #[allow(unsafe_code, reason = "one instruction, which nothing but assembly promises")]
        pub fn store(self, place: *mut u8) {
            // SAFETY: the processor has the instructions, as `covering` has seen; the bytes and the place are there.
            match self {
                VectorStore::Bytes32(_, bytes) => unsafe { by_one!("vmovdqu", "ymm0", bytes.as_ptr(), place) },
                VectorStore::Bytes64(_, bytes) => unsafe { by_one!("vmovdqu64", "zmm0", bytes.as_ptr(), place) },
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod whole {
    use std::ops::Range;

    /// There is none.
    #[derive(Clone, Copy)]
    pub enum VectorStore {}

    pub fn is_supported() -> bool {
        false
    }

    impl VectorStore {
        pub fn covering(_: &[u8], _: Range<usize>) -> Option<Self> {
            None
        }

        pub fn offset(self) -> usize {
            match self {}
        }

        pub fn len(self) -> usize {
            match self {}
        }

        pub fn store(self, _: *mut u8) {
            match self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, time::SystemTime};

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
        MmapWriter::default().store_mapped(&file(10), &[1], 0)
    }

    #[test]
    fn what_is_stored_is_read_from_the_file() {
        if !is_supported() {
            return;
        }
        let (file, mut windows) = (file(3 << 20), MmapWriter::default());
        for (at, byte) in [(0, 1), (5000, 2), (2_500_000, 3), (1_500_000, 4), (5000, 5)] {
            assert!(windows.store_mapped(&file, &[byte; 100], at));
            assert_eq!(read(&file, at, 100), [byte; 100]);
            assert_eq!(read(&file, at + 100, 1), [7]);
        }
        assert!(!windows.store_mapped(&file, &[1; 100], WINDOW_BYTES - 50), "no window has all of it");
        assert!(windows.open.len() <= MAX_WINDOWS);
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
            if windows.store_atomic(&file, &image, changed.clone(), 1001) {
                assert_eq!(read(&file, 1001, len), image);
                assert_ne!(modified(&file), SystemTime::UNIX_EPOCH, "the first one is told of");
            } else {
                assert!(changed.end < 32 || changed.len() > 32, "{changed:?} of {len}");
                assert!(windows.telling.last.is_none());
            }
            // As if no time went by.
            let soon = Instant::now() + NOTIFY_INTERVAL * 10_000;
            windows.telling.last = Some((soon, soon));
            file.write_all_at(&vec![7; len], 1001).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
            if windows.store_atomic(&file, &image, changed.clone(), 1001) {
                assert_eq!(read(&file, 1001, len), image);
                assert_eq!(modified(&file), SystemTime::UNIX_EPOCH, "one that follows soon is not");
            }
            assert_eq!(read(&file, 1000, 1), [7]);
            assert_eq!(read(&file, 1001 + len as u64, 50), [7; 50]);
            file.write_all_at(&vec![7; len], 1001).unwrap();
        }
        let mut windows = MmapWriter::default();
        assert!(!windows.store_atomic(&file, &[7; 300], 0..65, 0), "too much for one instruction");
        assert!(!windows.store_atomic(&file, &[7; 300], 0..5, 0), "there is nothing before it");
        assert!(windows.telling.last.is_none());
    }

    #[test]
    fn what_has_changed_of_an_image_is_stored_by_one_instruction() {
        if !is_supported() {
            return;
        }
        let file = file(10_000);
        let mut windows = MmapWriter::default();
        for (changed, fits) in [(16..38, true), (37..38, true), (0..38, false), (0..0, false)] {
            let mut image = vec![7; 38];
            image[changed.clone()].fill(9);
            file.write_all_at(&[7; 38], 680).unwrap();
            assert_eq!(windows.store_diff_atomic(&file, &image, 680), fits, "{changed:?}");
            assert_eq!(read(&file, 680, 38), if fits { image } else { vec![7; 38] });
            assert_eq!((read(&file, 679, 1), read(&file, 718, 50)), (vec![7], vec![7; 50]));
        }
        assert!(!windows.store_diff_atomic(&file, &[9; MAX_DIFF_BYTES + 1], 0));
    }

    #[test]
    fn where_many_places_are_written_a_window_is_opened_for_those_that_come_again() {
        if !is_supported() {
            return;
        }
        let tmp = file(0);
        tmp.set_len(100 * WINDOW_BYTES).unwrap();
        let mut windows = MmapWriter::default();
        let mut store = |place: u64| windows.store_mapped(&tmp, &[1; 10], place * WINDOW_BYTES);
        assert!((0..MAX_WINDOWS as u64).all(&mut store));
        assert!(!(20..20 + MAX_REMEMBERED_MISSES as u64).any(&mut store), "none of them came before");
        assert!((20..20 + MAX_REMEMBERED_MISSES as u64).all(&mut store));
        assert!(!(0..=MAX_REMEMBERED_MISSES as u64).any(&mut store) && !store(0), "that is longer ago");
        assert!(store(0));
    }

    #[test]
    fn those_who_listen_are_told_every_so_often() {
        let (begin, mut telling) = (Instant::now(), NotifyThrottle::default());
        let mut due = |micros| telling.is_due(begin + Duration::from_micros(micros));
        assert!(due(0), "of the first one");
        let told = (1..=20).map(|n| due(n * 50)).filter(|told| *told).count();
        assert_eq!(told, 4, "of some, where they follow each other");
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
        assert!(windows.store_mapped(&file, &[1; 10], 1_100_000));
        file.set_len(1000).unwrap();
        assert!(!windows.store_mapped(&file, &[2; 10], 1_100_000));
        assert!(!windows.store_mapped(&file, &[2; 10], 10), "and no window is opened any more");
        assert_eq!(file.metadata().unwrap().len(), 1000);
    }

    /// In a process of its own, which it ends.
    #[test]
    fn a_fault_that_is_none_of_ours_ends_the_process_as_before() {
        const CHILD: &str = "H5LIVE_OTHER_FAULT";
        if std::env::var_os(CHILD).is_some() {
            let (file, mut windows) = (file(8192), MmapWriter::default());
            let other = MmapOptions::new().len(8192).map_raw(&file).unwrap();
            windows.store_mapped(&file, &[1], 0);
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
