//! h5live format.
