//! `#[derive(H5Type)]`.
