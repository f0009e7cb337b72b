"""The modules of h5py's high level, by name."""
