"""Helpers of h5py that have no counterpart here."""
