//! Keys and values of a container, without input or output.
