//! Committed datatypes.

use h5live::NamedType;
use pyo3::prelude::*;

use crate::datatype::DatatypeHandle;
use crate::errors::closed;
use crate::object_handle::object_handle;

object_handle! {
    /// A committed datatype.
    NamedTypeHandle, "NamedType", NamedType, Datatype, named
}

#[pymethods]
impl NamedTypeHandle {
    #[getter]
    fn datatype(&self) -> PyResult<DatatypeHandle> {
        Ok(DatatypeHandle(self.named()?.datatype().clone()))
    }

    fn check(&self) -> PyResult<()> {
        if self.slot.is_open() { Ok(()) } else { Err(closed()) }
    }
}
