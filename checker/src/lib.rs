//! The checker: checks HDF5 files, and explores what writers and readers do with them.
//!
//! It shares no code with the parts that decide what is written, in which order, and what a reader takes for true. It
//! depends on neither `indexes`, `swmr` nor the facade, so it cannot repeat their mistakes. It shares this:
//!
//! - The explorers ([`schedule`], [`crash`]) judge byte traces, and know no structure of HDF5. They share the trait
//!   `Storage`, and the recording and the replay of writes in `cache`. The text of a counterexample uses
//!   `format::dump`.
//! - The file checker ([`mod@file`]) shares the decoders of `format` and the types of `model` that they return, and
//!   reads files by `cache::FileStorage`. The walk, the map of the used space, and each rule about what must agree with
//!   what are its own.
//!
//! A mistake in a decoder is common to the writer, the reader and the file checker. It is found elsewhere. The tests of
//! the corpus decode the files of libhdf5, encode them again and compare the bytes (`format/tests/corpus`). They
//! compare all names, types and values with what libhdf5 says of the same files (`tools/cli/tests/program/corpus.rs`), and expect
//! every file that libhdf5 opens to be sound (`checker/tests/corpus.rs`). And libhdf5 reads the files of h5live
//! (`verify/prove/libhdf5`, `tests/interop`). `docs/design/checker.md` lists every shared name with its tests.
//!
//! [`mod@file`] checks one file. [`trace`] is the record of what a writer did to a file, in order. From it follow every
//! schedule of a reader beside the writer ([`schedule`]), and every state that a crash may leave ([`crash`]). The real
//! code of the reader runs through all of them.

pub mod crash;
pub mod file;
pub mod schedule;
pub mod trace;
