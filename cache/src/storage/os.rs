//! What the operating system offers without a safe wrapper: files mapped into memory, faults in mappings, and leases.
//!
//! All unsafe code of the native store is here. Nothing here hands out a pointer or a reference to mapped memory: other
//! processes may change these bytes at any time, so they are copied in and out, within the bounds of the mapping.
//!
//! A file may be cut while it is mapped, and its disk may be full. The system ends a process that touches such a page
//! (SIGBUS). Here, the handler of the signal puts a page of zeros in its place, and the mapping counts as broken from
//! then on. All other faults are left to the handler that was there before.
#![allow(unsafe_code, reason = "the calls of the system and the instructions here have no safe wrapper")]

use std::{
    fs::File,
    io,
    sync::{Arc, OnceLock},
};

use h5live_model::{FileBackedBytes, MappedMemory};
use memmap2::{MmapOptions, MmapRaw};

use super::file_len::file_len;

#[cfg(target_os = "linux")]
pub use linux::{FileLeaseKind, probe_lease};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Mapping, VectorStore, WritableMapping};

/// The `len` bytes of `file` at `at`, which must be there now. They can be copied without care if `is_guarded`.
///
/// # Errors
/// Those of the system.
pub(crate) fn map_shared(file: &Arc<File>, at: u64, len: usize, is_guarded: bool) -> io::Result<FileBackedBytes> {
    let map = MmapOptions::new().offset(at).len(len).map_raw_read_only(&**file)?;
    Ok(FileBackedBytes::new(Arc::new(SharedMapping {
        map,
        copied: OnceLock::new(),
        file: file.clone(),
        at,
        is_guarded,
    })))
}

/// A mapping for [`FileBackedBytes`].
struct SharedMapping {
    /// Who looks at these bytes promises that nobody cuts the file.
    map: MmapRaw,
    /// The same bytes again, for copies: nobody promises anything. `None` in it if there can be none.
    copied: OnceLock<Option<Mapping>>,
    file: Arc<File>,
    /// Where they begin in the file.
    at: u64,
    is_guarded: bool,
}

// SAFETY: the mapping is readable, and stays at its place until it is dropped.
unsafe impl MappedMemory for SharedMapping {
    fn as_ptr(&self) -> *const u8 {
        self.map.as_ptr()
    }

    fn len(&self) -> usize {
        self.map.len()
    }

    fn copy_to(&self, at: usize, into: &mut [u8]) -> bool {
        let new = || Mapping::map_range(&self.file, self.at, self.map.len()).filter(|_| self.is_guarded);
        self.copied.get_or_init(new).as_ref().is_some_and(|mapping| mapping.copy_from_mapping(into, at))
    }

    fn has_faulted(&self) -> bool {
        self.copied.get().and_then(Option::as_ref).is_some_and(Mapping::has_faulted)
    }

    fn has_not_been_truncated(&self) -> bool {
        !self.has_faulted()
            && file_len(&self.file).is_ok_and(|len| len.saturating_sub(self.at) >= self.map.len() as u64)
    }
}

/// Elsewhere, a fault in a mapping cannot be caught, so nothing is copied of one.
#[cfg(not(target_os = "linux"))]
enum NoMapping {}

#[cfg(not(target_os = "linux"))]
use NoMapping as Mapping;

#[cfg(not(target_os = "linux"))]
impl NoMapping {
    fn map_range(_: &File, _: u64, _: usize) -> Option<Self> {
        None
    }

    fn copy_from_mapping(&self, _: &mut [u8], _: usize) -> bool {
        match *self {}
    }

    fn has_faulted(&self) -> bool {
        match *self {}
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        ffi::c_int,
        fs::File,
        io,
        ops::Range,
        os::fd::AsRawFd,
        ptr,
        sync::{
            OnceLock,
            atomic::{
                AtomicBool, AtomicUsize,
                Ordering::{Acquire, Release, SeqCst},
                compiler_fence,
            },
        },
    };

    use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};
    use nix::libc;

    /// A part of a file that is mapped to be read.
    #[derive(Debug)]
    pub(crate) struct Mapping {
        /// Ends before the mapping does: fields are dropped in order.
        guard: SigbusGuard,
        map: MmapRaw,
    }

    impl Mapping {
        /// The first `len` bytes of `file`, which may be shorter; `None` if it cannot be mapped, or the fault of a page
        /// that is not there cannot be caught.
        pub fn map_from_start(file: &File, len: usize) -> Option<Self> {
            Mapping::map_range(file, 0, len)
        }

        /// As [`Mapping::map_from_start`], the `len` bytes at `at`.
        pub fn map_range(file: &File, at: u64, len: usize) -> Option<Self> {
            Mapping::guarded(MmapOptions::new().offset(at).len(len).map_raw_read_only(file).ok()?)
        }

        fn guarded(map: MmapRaw) -> Option<Self> {
            // A process that is forked must not keep the file open by what is mapped.
            map.advise(Advice::DontFork).ok()?;
            let guard = SigbusGuard::new(&map)?;
            Some(Mapping { guard, map })
        }

        /// Bytes that are mapped.
        pub fn len(&self) -> usize {
            self.map.len()
        }

        /// Whether the file did not have a byte that was read or written here: that byte was lost, or was not the
        /// file's.
        pub fn has_faulted(&self) -> bool {
            // The handler of the fault has run within this thread.
            compiler_fence(SeqCst);
            self.guard.is_broken()
        }

        /// Where `len` bytes at `at` are, if the mapping has them.
        fn place(&self, at: usize, len: usize) -> Option<*mut u8> {
            let is_inside = at.checked_add(len).is_some_and(|end| end <= self.map.len());
            is_inside.then(|| self.map.as_mut_ptr().wrapping_add(at))
        }

        /// Fills `into` with the bytes at `at`; `false` if the mapping does not have them all.
        pub fn copy_from_mapping(&self, into: &mut [u8], at: usize) -> bool {
            let Some(place) = self.place(at, into.len()) else { return false };
            // SAFETY: the mapping has so many bytes there. Others may change them meanwhile, and any bytes will do.
            unsafe { place.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
            true
        }

        /// For each page of memory from `at` on, whether the system has it in memory: the lowest bit of a byte of
        /// `pages`. Asks about `len` bytes; `false` if that is not known, `at` does not begin a page, or the mapping
        /// does not have them.
        pub fn query_residency(&self, at: usize, len: usize, pages: &mut [u8]) -> bool {
            let (Some(place), Some(page)) = (self.place(at, len), page_bytes()) else { return false };
            // SAFETY: the bytes are mapped, and there is a byte for each of their pages.
            len.div_ceil(page) <= pages.len() && unsafe { libc::mincore(place.cast(), len, pages.as_mut_ptr()) } == 0
        }

        /// Gives back the memory that maps the file; what is read next is found in the file again.
        pub fn release_mapped_pages(&self) {
            // SAFETY: the bytes are the file's, and are found there again.
            let _as_before = unsafe { self.map.unchecked_advise(UncheckedAdvice::DontNeed) };
        }
    }

    /// A part of a file that is mapped to be read and written.
    #[derive(Debug)]
    pub(crate) struct WritableMapping(Mapping);

    impl WritableMapping {
        /// The `len` bytes of `file` at `at`, which may lie beyond its end; `None` as for [`Mapping::map_from_start`].
        pub fn map_writable_range(file: &File, at: u64, len: usize) -> Option<Self> {
            let map = MmapOptions::new().offset(at).len(len).map_raw(file).ok()?;
            Some(WritableMapping(Mapping::guarded(map)?))
        }

        /// As [`Mapping::has_faulted`].
        pub fn has_faulted(&self) -> bool {
            self.0.has_faulted()
        }

        /// Stores `bytes` at `at`, in any order; `false`, without a store, if they do not fit into the mapping.
        pub fn copy_to_mapping(&self, bytes: &[u8], at: usize) -> bool {
            let Some(place) = self.0.place(at, bytes.len()) else { return false };
            // SAFETY: the mapping has so many bytes there, may be written, and is known to nobody else of this program.
            unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            true
        }

        /// Stores the bytes of `store` at `at` by one instruction; `false`, without a store, if they do not fit.
        pub fn store_by_one_instruction(&self, store: VectorStore<'_>, at: usize) -> bool {
            let Some(place) = self.0.place(at, store.len()) else { return false };
            // SAFETY: the mapping has so many bytes there, and may be written.
            unsafe { store.store(place) };
            true
        }
    }

    /// Bytes that one instruction stores, so that a process does not end in the middle of it.
    #[derive(Clone, Copy)]
    pub(crate) struct VectorStore<'a> {
        /// Where they begin in the image that they were taken of (bytes).
        offset: usize,
        bytes: VectorBytes<'a>,
    }

    /// 32 bytes where the processor has AVX, and 64 where it has AVX-512.
    #[derive(Clone, Copy)]
    enum VectorBytes<'a> {
        Bytes32(&'a [u8; 32]),
        Bytes64(&'a [u8; 64]),
    }

    impl<'a> VectorStore<'a> {
        /// Whether the processor has such an instruction.
        pub fn has_vector_instruction() -> bool {
            has_avx()
        }

        /// The bytes of `image` up to the end of `changed` that one instruction stores, if they hold all of `changed`.
        pub fn vector_covering(image: &'a [u8], changed: Range<usize>) -> Option<Self> {
            let before = image.get(..changed.end)?;
            if changed.len() <= 32 && has_avx() {
                let (rest, bytes) = before.split_last_chunk()?;
                Some(VectorStore { offset: rest.len(), bytes: VectorBytes::Bytes32(bytes) })
            } else if changed.len() <= 64 && has_avx512() {
                let (rest, bytes) = before.split_last_chunk()?;
                Some(VectorStore { offset: rest.len(), bytes: VectorBytes::Bytes64(bytes) })
            } else {
                None
            }
        }

        /// Where they begin in the image (bytes).
        pub fn offset_in_image(self) -> usize {
            self.offset
        }

        fn len(self) -> usize {
            match self.bytes {
                VectorBytes::Bytes32(bytes) => bytes.len(),
                VectorBytes::Bytes64(bytes) => bytes.len(),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn has_avx() -> bool {
        is_x86_feature_detected!("avx")
    }

    #[cfg(target_arch = "x86_64")]
    fn has_avx512() -> bool {
        is_x86_feature_detected!("avx512f")
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn has_avx() -> bool {
        false
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn has_avx512() -> bool {
        false
    }

    /// Loads the bytes at one place and stores them at another, each by `$moves` and through the register `$register`.
    /// No function of the standard library promises that it stores by one instruction.
    #[cfg(target_arch = "x86_64")]
    macro_rules! move_vector {
        ($moves:literal, $register:literal, $from:expr, $to:expr) => {
            std::arch::asm!(
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

    impl VectorStore<'_> {
        /// Stores them at `place`.
        ///
        /// # Safety
        /// `place` has so many bytes that may be written.
        #[cfg(target_arch = "x86_64")]
        unsafe fn store(self, place: *mut u8) {
            // SAFETY: the processor has the instructions, as `vector_covering` has seen; the caller promises the place.
            match self.bytes {
                VectorBytes::Bytes32(bytes) => unsafe { move_vector!("vmovdqu", "ymm0", bytes.as_ptr(), place) },
                VectorBytes::Bytes64(bytes) => unsafe { move_vector!("vmovdqu64", "zmm0", bytes.as_ptr(), place) },
            }
        }

        /// There is no such instruction here, and so no such value.
        ///
        /// # Safety
        /// None.
        #[cfg(not(target_arch = "x86_64"))]
        unsafe fn store(self, _: *mut u8) {
            unreachable!("VectorStore::covering makes none")
        }
    }

    /// Mappings that can be guarded at a time. There are few, and beyond them files are read and written by calls.
    const MAX_GUARDED_MAPPINGS: usize = 256;

    static GUARDED_RANGES: [GuardedRange; MAX_GUARDED_MAPPINGS] = [const { GuardedRange::new() }; MAX_GUARDED_MAPPINGS];
    /// What was to be done at such faults before.
    static PREVIOUS_HANDLER: OnceLock<libc::sigaction> = OnceLock::new();

    /// A guarded mapping: its addresses, from `start` (0: none) to `end`.
    #[derive(Debug)]
    struct GuardedRange {
        taken: AtomicBool,
        start: AtomicUsize,
        end: AtomicUsize,
        broken: AtomicBool,
    }

    impl GuardedRange {
        const fn new() -> Self {
            GuardedRange {
                taken: AtomicBool::new(false),
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                broken: AtomicBool::new(false),
            }
        }

        fn contains(&self, addr: usize) -> bool {
            let start = self.start.load(Acquire);
            start != 0 && addr >= start && addr < self.end.load(Acquire)
        }
    }

    /// While this is there, a fault in its mapping breaks the mapping and not the process.
    #[derive(Debug)]
    struct SigbusGuard(&'static GuardedRange);

    impl SigbusGuard {
        /// Guards `map`, which must outlive this; `None` if too many are guarded.
        fn new(map: &MmapRaw) -> Option<Self> {
            let _before = PREVIOUS_HANDLER.get_or_init(install_handler);
            let place = GUARDED_RANGES.iter().find(|place| !place.taken.swap(true, Acquire))?;
            let start = map.as_ptr().addr();
            place.broken.store(false, Release);
            place.end.store(start + map.len(), Release);
            place.start.store(start, Release);
            Some(SigbusGuard(place))
        }

        fn is_broken(&self) -> bool {
            self.0.broken.load(Acquire)
        }
    }

    impl Drop for SigbusGuard {
        fn drop(&mut self) {
            self.0.start.store(0, Release);
            self.0.taken.store(false, Release);
        }
    }

    fn install_handler() -> libc::sigaction {
        // SAFETY: a structure of numbers, which the calls fill.
        let (mut ours, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle_sigbus;
        ours.sa_sigaction = handler as *const () as libc::sighandler_t;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler does only what a handler may.
        unsafe {
            libc::sigemptyset(&raw mut ours.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const ours, &raw mut before);
        }
        before
    }

    /// Runs within a fault: may do nothing but look at atomics and call the system.
    extern "C" fn handle_sigbus(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: the system gives both, and what is done with them is what a handler may do.
        unsafe {
            let of_kernel = (*info).si_code > 0;
            let addr = (*info).si_addr().addr();
            if of_kernel
                && let Some(place) = GUARDED_RANGES.iter().find(|place| place.contains(addr))
                && replace_page(addr)
            {
                place.broken.store(true, Release);
                return;
            }
            match PREVIOUS_HANDLER.get() {
                Some(before) if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN => {
                    if before.sa_flags & libc::SA_SIGINFO != 0 {
                        type Full = extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void);
                        std::mem::transmute::<libc::sighandler_t, Full>(before.sa_sigaction)(signal, info, context);
                    } else {
                        std::mem::transmute::<libc::sighandler_t, extern "C" fn(c_int)>(before.sa_sigaction)(signal);
                    }
                }
                _ => {
                    libc::signal(signal, libc::SIG_DFL);
                    libc::raise(signal);
                }
            }
        }
    }

    /// Puts memory in the place of the page at `addr`, which belongs to a guarded mapping.
    ///
    /// # Safety
    /// The page is no memory of Rust's.
    unsafe fn replace_page(addr: usize) -> bool {
        // SAFETY: `errno` is the thread's, and is left as it was; the caller promises the page.
        unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            let page = page_bytes().unwrap_or(4096);
            let (access, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
            let start = ptr::without_provenance_mut(addr - addr % page);
            let found = libc::mmap(start, page, access, kind, -1, 0);
            *errno = before;
            found != libc::MAP_FAILED
        }
    }

    /// Bytes of a page of memory.
    fn page_bytes() -> Option<usize> {
        // SAFETY: looks up a number. A signal handler may do so.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok().filter(|page| *page > 0)
    }

    /// What a lease says of the file while it is held.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FileLeaseKind {
        /// No process has it open for writing.
        Read,
        /// No other handle has it open.
        Write,
    }

    /// Not in the libc crate; 10 on every architecture of Linux but PA-RISC, where leases then count as unavailable.
    const F_SETSIG: c_int = 10;

    /// Takes a lease on `file`, and gives it back at once.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the file is open otherwise; others if there are no leases on this file.
    pub fn probe_lease(file: &File, kind: FileLeaseKind) -> io::Result<()> {
        let fd = file.as_raw_fd();
        let kind = match kind {
            FileLeaseKind::Read => libc::F_RDLCK,
            FileLeaseKind::Write => libc::F_WRLCK,
        };
        // A process that opens the file during the moment of the lease makes the kernel signal this one, by default
        // with SIGIO, which kills; SIGURG is ignored by default. SAFETY: F_SETSIG on an open descriptor takes an
        // integer and touches no memory.
        if unsafe { libc::fcntl(fd, F_SETSIG, libc::SIGURG) } != 0 {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        // SAFETY: F_SETLEASE on an open descriptor takes an integer and touches no memory.
        if unsafe { libc::fcntl(fd, libc::F_SETLEASE, kind) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above; the lease is this descriptor's own.
        unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use std::{io::Write, ops::Range, os::unix::fs::FileExt};

    use super::*;

    fn file(len: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; len]).unwrap();
        file
    }

    #[test]
    fn a_mapping_reads_what_lies_within_it_and_nothing_else() {
        let mapping = Mapping::map_from_start(&file(8192), 8192).unwrap();
        let mut bytes = [0; 100];
        assert!(mapping.copy_from_mapping(&mut bytes, 8092) && bytes == [7; 100]);
        for at in [8093, 8192, usize::MAX - 50, usize::MAX] {
            assert!(!mapping.copy_from_mapping(&mut bytes, at), "{at}");
        }
        assert!(mapping.copy_from_mapping(&mut [], 8192) && !mapping.copy_from_mapping(&mut [], 8193));
        let mut pages = [0; 2];
        assert!(!mapping.query_residency(4096, 8192, &mut pages), "beyond the end");
        assert!(!mapping.query_residency(0, 8192, &mut []), "no room for the answer");
        assert!(!mapping.has_faulted());
    }

    #[test]
    fn a_mapping_is_written_within_its_bounds_only() {
        let file = file(8192);
        let mapping = WritableMapping::map_writable_range(&file, 4096, 4096).unwrap();
        assert!(mapping.copy_to_mapping(&[1; 10], 4086) && mapping.copy_to_mapping(&[2; 10], 0));
        for at in [4087, 4096, usize::MAX - 3] {
            assert!(!mapping.copy_to_mapping(&[3; 10], at), "{at}");
        }
        let image = [4; 64];
        if let Some(store) = VectorStore::vector_covering(&image, 60..64) {
            assert_eq!(store.offset_in_image(), 32);
            assert!(mapping.store_by_one_instruction(store, 4000));
            for at in [4096 - 31, 4096, usize::MAX] {
                assert!(!mapping.store_by_one_instruction(store, at), "{at}");
            }
        }
        let mut found = vec![0; 8192];
        file.read_exact_at(&mut found, 0).unwrap();
        let mut wanted = vec![7; 8192];
        wanted[8182..].fill(1);
        wanted[4096..4106].fill(2);
        if VectorStore::has_vector_instruction() {
            wanted[8096..8128].fill(4);
        }
        assert!(found == wanted);
    }

    #[test]
    fn no_store_covers_bytes_that_the_image_does_not_have() {
        let image = [0; 40];
        for changed in [30..41, 41..42, usize::MAX..usize::MAX, Range { start: 20, end: 10 }, 0..31, 10..30] {
            assert!(VectorStore::vector_covering(&image, changed.clone()).is_none(), "{changed:?}");
        }
    }

    #[test]
    fn a_lease_is_had_only_while_nobody_has_the_file_open_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let writer = File::create(&path).unwrap();
        let reader = File::open(&path).unwrap();
        let refused = match probe_lease(&reader, FileLeaseKind::Read) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
            other => other,
        };
        assert!(refused.is_err(), "a writer has it");
        drop(writer);
        assert!(probe_lease(&reader, FileLeaseKind::Read).is_ok());
        let both = File::options().read(true).write(true).open(&path).unwrap();
        assert!(probe_lease(&both, FileLeaseKind::Write).is_err(), "a reader has it");
        drop(reader);
        assert!(probe_lease(&both, FileLeaseKind::Write).is_ok() && probe_lease(&both, FileLeaseKind::Write).is_ok());
    }
}
