//! What becomes of a store into a mapped file where the file has no such bytes any more, or the system no place for them.
//!
//! The system ends the process then (SIGBUS). Instead, memory is put in the place of that page of a mapping that is
//! [watched](Watch), and the mapping counts as broken. All other faults are left to whoever cared for them before.

use std::{
    ffi::c_int,
    ptr,
    sync::{
        OnceLock,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Release},
        },
    },
};

use nix::libc;

/// Mappings that can be watched at a time. There are few, and beyond them files are written as always.
const MAX_GUARDED_MAPPINGS: usize = 256;

static GUARDED_RANGES: [GuardedRange; MAX_GUARDED_MAPPINGS] = [const { GuardedRange::new() }; MAX_GUARDED_MAPPINGS];
/// What was to be done at such faults before.
static PREVIOUS_HANDLER: OnceLock<libc::sigaction> = OnceLock::new();

/// A watched mapping: its addresses, from `start` (0: none) to `end`.
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

/// Watches a mapping as long as it is there.
#[derive(Debug)]
pub(super) struct SigbusGuard(&'static GuardedRange);

impl SigbusGuard {
    /// Watches the `len` bytes at `start`, which must be mapped as long as this is there; `None` if that is not possible.
    pub fn guard(start: *mut u8, len: usize) -> Option<Self> {
        let _before = PREVIOUS_HANDLER.get_or_init(install_handler);
        let place = GUARDED_RANGES.iter().find(|place| !place.taken.swap(true, Acquire))?;
        place.broken.store(false, Release);
        place.end.store(start.addr() + len, Release);
        place.start.store(start.addr(), Release);
        Some(SigbusGuard(place))
    }

    /// Whether there was a fault: some of what was stored is lost.
    pub fn is_broken(&self) -> bool {
        self.0.broken.load(Acquire)
    }
}

impl Drop for SigbusGuard {
    fn drop(&mut self) {
        self.0.start.store(0, Release);
        self.0.taken.store(false, Release);
    }
}

#[allow(unsafe_code, reason = "signals are the system's")]
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
#[allow(unsafe_code, reason = "signals are the system's")]
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

/// Puts memory in the place of the page at `addr`.
#[allow(unsafe_code, reason = "mappings are the system's")]
fn replace_page(addr: usize) -> bool {
    // SAFETY: `errno` is the thread's, and is left as it was; the page belongs to a mapping of ours.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096);
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
        let start = ptr::without_provenance_mut(addr - addr % page);
        let found = libc::mmap(start, page, access, kind, -1, 0);
        *errno = before;
        found != libc::MAP_FAILED
    }
}
