//! `h5live watch`: follows a dataset that another process is writing.

mod image;
mod spark;
