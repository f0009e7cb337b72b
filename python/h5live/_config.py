"""Settings of the process, as h5py's ``get_config()`` has them."""

track_order = False
bool_names = ("FALSE", "TRUE")
complex_names = ("r", "i")
