"""Settings of the process."""

from .. import _config

INDEX_NAME, INDEX_CRT_ORDER = 0, 1
ITER_INC, ITER_DEC, ITER_NATIVE = 0, 1, 2


class H5PYConfig:
    """The settings of h5py that have a meaning here."""

    mpi = False
    ros3 = False
    direct_vfd = False
    has_native_complex = True
    vfd_SWMR = False
    swmr_min_hdf5_version = (1, 9, 178)
    vds_min_hdf5_version = (1, 9, 233)

    @property
    def track_order(self):
        return _config.track_order

    @track_order.setter
    def track_order(self, value):
        _config.track_order = bool(value)

    @property
    def complex_names(self):
        return _config.complex_names

    @complex_names.setter
    def complex_names(self, value):
        real, imaginary = _pair(value)
        _config.complex_names = (_text(real), _text(imaginary))

    @property
    def bool_names(self):
        return _config.bool_names

    @bool_names.setter
    def bool_names(self, value):
        false, true = _pair(value)
        _config.bool_names = (_text(false), _text(true))

    _r_name = property(lambda self: _config.complex_names[0].encode())
    _i_name = property(lambda self: _config.complex_names[1].encode())
    _f_name = property(lambda self: _config.bool_names[0].encode())
    _t_name = property(lambda self: _config.bool_names[1].encode())


def _pair(value):
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError("two names are needed")
    return value


def _text(name):
    if isinstance(name, bytes):
        return name.decode()
    if not isinstance(name, str):
        raise TypeError("names are strings")
    return name


_the_config = H5PYConfig()


def get_config():
    """The settings."""
    return _the_config


def get_libversion():
    """The version of HDF5 whose files are read and written."""
    return 2, 0, 0
