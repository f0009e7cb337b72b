//! h5live swmr.
