//! h5live filters.
