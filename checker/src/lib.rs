//! Checks HDF5 files, and what writers and readers make of them.
//!
//! It shares no code with what decides what is written, in which order, and what a reader takes for true: it depends on
//! neither `indexes`, `swmr` nor the facade, so a mistake of theirs cannot hide itself. What it shares:
//!
//! - The explorers ([`schedule`], [`crash`]) judge byte traces, and know no structure of HDF5. They share the trait
//!   `Storage`, and the recording and the replay of writes in `cache`; the text of a counterexample uses `format::dump`.
//! - The file checker ([`mod@file`]) shares the decoders of `format` and the types of `model` that they return, and reads
//!   files by `cache::FileStorage`. The walk, the map of the used space, and each rule about what must agree with what
//!   are its own.
//!
//! A mistake in a decoder is common to the writer, the reader and the file checker. It is found elsewhere: the tests of
//! the corpus decode what libhdf5 wrote, encode it again and compare the bytes (`format/tests/corpus`), compare all
//! names, types and values with what libhdf5 says of the same files (`cli/tests/corpus.rs`), and expect every file that
//! libhdf5 opens to be sound (`checker/tests/corpus.rs`); and libhdf5 reads what h5live wrote (`prove/libhdf5`,
//! `tests/interop`). `docs/design/checker.md` lists every shared name with its tests.
//!
//! [`mod@file`] looks at one file. [`trace`] is what a writer did to a file, in order: every schedule of a reader that
//! runs meanwhile ([`schedule`]), and every state that a crash may leave ([`crash`]), follows from it, and is gone
//! through on the real code of the reader.

pub mod crash;
pub mod file;
pub mod schedule;
pub mod trace;
