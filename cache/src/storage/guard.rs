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
const MOST: usize = 256;

static PLACES: [Place; MOST] = [const { Place::new() }; MOST];
/// What was to be done at such faults before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A watched mapping: its addresses, from `start` (0: none) to `end`.
#[derive(Debug)]
struct Place {
    taken: AtomicBool,
    start: AtomicUsize,
    end: AtomicUsize,
    broken: AtomicBool,
}

impl Place {
    const fn new() -> Self {
        Place {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    fn holds(&self, addr: usize) -> bool {
        let start = self.start.load(Acquire);
        start != 0 && addr >= start && addr < self.end.load(Acquire)
    }
}

/// Watches a mapping as long as it is there.
#[derive(Debug)]
pub(super) struct Watch(&'static Place);

impl Watch {
    /// Watches the `len` bytes at `start`, which must be mapped as long as this is there; `None` if that is not possible.
    pub fn over(start: *mut u8, len: usize) -> Option<Self> {
        let _before = BEFORE.get_or_init(begin);
        let place = PLACES.iter().find(|place| !place.taken.swap(true, Acquire))?;
        place.broken.store(false, Release);
        place.end.store(start.addr() + len, Release);
        place.start.store(start.addr(), Release);
        Some(Watch(place))
    }

    /// Whether there was a fault: some of what was stored is lost.
    pub fn is_broken(&self) -> bool {
        self.0.broken.load(Acquire)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.start.store(0, Release);
        self.0.taken.store(false, Release);
    }
}

#[allow(unsafe_code, reason = "signals are the system's")]
fn begin() -> libc::sigaction {
    // SAFETY: a structure of numbers, which the calls fill.
    let (mut ours, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) = at_fault;
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
extern "C" fn at_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system gives both, and what is done with them is what a handler may do.
    unsafe {
        let of_kernel = (*info).si_code > 0;
        let addr = (*info).si_addr().addr();
        if of_kernel
            && let Some(place) = PLACES.iter().find(|place| place.holds(addr))
            && replace(addr)
        {
            place.broken.store(true, Release);
            return;
        }
        match BEFORE.get() {
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
fn replace(addr: usize) -> bool {
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
