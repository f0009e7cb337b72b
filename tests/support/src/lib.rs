//! What the tests of several crates need: where their material is, and running programs.
//!
//! What is not there skips what needs it, with a line that says so.

pub mod material;
pub mod program;

pub use material::{corpus, corpus_files, files_below, made_corpus, python, shared, workspace};
