//! h5live cache.
