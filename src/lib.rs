//! HDF5 files that stay readable while they are being written.
