//! The `h5live` command.
fn main() {}
