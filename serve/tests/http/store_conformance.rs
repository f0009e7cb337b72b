//! The suite that every store runs, on files that are written here and read through a server.

use h5live::model::conformance;

use crate::paired_store::ServedLab;

mod native {
    use super::*;

    conformance::suite!(ServedLab::new(""));
}

mod kv {
    use super::*;

    conformance::suite!(ServedLab::new("kv:"));
}
