//! What is in files of h5live, whatever store they are in: a text of everything, and the differences between two files.
//!
//! ```
//! use h5live::File;
//! use h5live_compare::diff::{DiffOptions, DiffSide, FileDiff};
//!
//! # let folder = tempfile::tempdir()?;
//! let side = |name: &str, values: &[i32]| {
//!     let path = folder.path().join(name);
//!     let file = File::create(&path)?;
//!     file.new_dataset::<i32>().shape(&[3]).create("values")?.write(values)?;
//!     file.close()?;
//!     let file = File::open(&path)?;
//!     let root = file.root().id();
//!     Ok::<_, h5live::Error>(DiffSide::new(file, root, b"/"))
//! };
//! let (a, b) = (side("a.h5", &[1, 2, 3])?, side("b.h5", &[1, 2, 4])?);
//! let diff = FileDiff::new(&a, &b, DiffOptions::default());
//! let differences = diff.differences("/values");
//! assert_eq!(differences[0].text("/values"), "/values[2]: 3 and 4");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`manifest`] lists everything in a file, in an order of its own, and renders a line for each object and attribute:
//! its type, its shape, how it is stored, and a hash of its values. Two files with the same objects and values have the same
//! lines, but for the column of the storage. [`diff`] compares two such listings, and the values with a tolerance.

pub mod block;
pub mod diff;
pub mod manifest;
