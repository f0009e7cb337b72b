//! The reference store: maps and vectors, with which every other store is compared.
