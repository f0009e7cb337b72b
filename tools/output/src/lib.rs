//! Files that appear when they are complete, and files that exist only while a process runs.
//!
//! ```
//! use h5live_output::TempOutputFile;
//!
//! # let folder = tempfile::tempdir()?;
//! let place = folder.path().join("run.h5");
//! let output = TempOutputFile::reserve_for(&place, false)?;
//! let file = h5live::File::create(output.temp_path())?;
//! file.new_dataset::<i32>().shape(&[3]).create("values")?.write(&[1, 2, 3])?;
//! file.close()?;
//! assert!(!place.exists());
//! output.persist()?;
//! assert!(place.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Their names say which process makes them. They are removed when they are dropped, and when a signal ends the process. The
//! files of a killed process are removed by the next one that writes in the same folder ([`remove_stale_temps_beside`]). A file that is there
//! is replaced only if the caller says so, and never while a process writes it.

mod creator_process;
mod error;
#[cfg(feature = "kv")]
mod folder;
mod scratch;
mod signals;
mod temp_output_file;
mod unfinished;

pub use error::{Error, Result};
#[cfg(feature = "kv")]
pub use folder::TempStoreFolder;
pub use scratch::ScratchFolder;
pub use signals::{SignalActionGuard, on_termination_signal, without_ignored_signals};
pub use temp_output_file::{TempOutputFile, claim_existing_file};
pub use unfinished::{remove_stale_temps_beside, replace_temp_names};
