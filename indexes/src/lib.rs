//! h5live indexes.
