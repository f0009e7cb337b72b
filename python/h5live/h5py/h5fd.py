"""Drivers of libhdf5, by number. Files are opened without them."""

(SEC2, STDIO, CORE, FAMILY, WINDOWS, MPIO, MPIPOSIX, ROS3D, DIRECT) = range(1, 10)
fileobj_driver = 20
MPIO_INDEPENDENT, MPIO_COLLECTIVE = 0, 1
BY_NAME = {"sec2": SEC2, "stdio": STDIO, "core": CORE, "family": FAMILY, "fileobj": fileobj_driver, "direct": DIRECT}
