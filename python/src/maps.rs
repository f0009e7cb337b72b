//! Maps: keys and values of any type.

use std::ops::Bound as RangeBound;

use h5live::{UntypedMap, Value};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::datatype::DatatypeHandle;
use crate::errors::raise;
use crate::links::name_object;
use crate::object_handle::object_handle;
use crate::process::run;

object_handle! {
    /// A map.
    MapHandle, "Map", UntypedMap, Map, map
}

/// A value of the engine as an object of Python.
fn to_python(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Unreadable | Value::Null => Ok(py.None()),
        Value::Integer(n) => n.into_py_any(py),
        Value::Float32(x) => x.into_py_any(py),
        Value::Float64(x) => x.into_py_any(py),
        Value::Text(text) => text.into_py_any(py),
        Value::EnumName(name) => Ok(name_object(py, name)),
        Value::Bool(truth) => truth.into_py_any(py),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_py_any(py),
        Value::Reference(reference) => PyBytes::new(py, reference.as_bytes()).into_py_any(py),
        Value::Complex(parts) => {
            let [real, imaginary] = parts.as_ref();
            PyComplex::from_doubles(py, real.number().unwrap_or(0.0), imaginary.number().unwrap_or(0.0)).into_py_any(py)
        }
        Value::Compound(members) => {
            let out = PyDict::new(py);
            for (name, value) in members {
                out.set_item(name_object(py, name), to_python(py, value)?)?;
            }
            out.into_py_any(py)
        }
        Value::List(values) => {
            let values = values.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values)?.into_py_any(py)
        }
        _ => Err(PyTypeError::new_err("the value has no form in Python")),
    }
}

/// An object of Python as a value of the engine.
fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    Ok(if object.is_none() {
        Value::Null
    } else if object.is_instance_of::<PyBool>() {
        Value::Bool(object.extract()?)
    } else if object.is_instance_of::<PyInt>() {
        Value::Integer(object.extract()?)
    } else if object.is_instance_of::<PyFloat>() {
        Value::Float64(object.extract()?)
    } else if let Ok(text) = object.cast::<PyString>() {
        Value::Text(text.to_str()?.to_owned())
    } else if let Ok(bytes) = object.cast::<PyBytes>() {
        Value::Bytes(bytes.as_bytes().to_vec())
    } else if let Ok(dict) = object.cast::<PyDict>() {
        let member = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| -> PyResult<_> {
            Ok((name.extract::<String>()?.as_str().into(), from_python(&value)?))
        };
        Value::Compound(dict.iter().map(member).collect::<PyResult<_>>()?)
    } else if object.hasattr("tolist")? {
        from_python(&object.call_method0("tolist")?)?
    } else {
        let items = object.try_iter().map_err(|_| PyTypeError::new_err("the object is no value of a map"))?;
        Value::List(items.map(|item| from_python(&item?)).collect::<PyResult<_>>()?)
    })
}

#[pymethods]
impl MapHandle {
    /// The types of keys and values.
    fn types(&self) -> PyResult<(DatatypeHandle, DatatypeHandle)> {
        let map = self.map()?;
        Ok((DatatypeHandle(map.key_type().clone()), DatatypeHandle(map.value_type().clone())))
    }

    fn len(&self, py: Python<'_>) -> PyResult<u64> {
        let map = self.map()?;
        run(py, || map.len())?.map_err(raise)
    }

    fn contains(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (map, key) = (self.map()?, from_python(key)?);
        run(py, || map.contains_key(&key))?.map_err(raise)
    }

    /// The value of a key, in a tuple; `None` if the key is not there.
    fn get(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<(Py<PyAny>,)>> {
        let (map, key) = (self.map()?, from_python(key)?);
        let found = run(py, || map.get_value(&key))?.map_err(raise)?;
        found.map(|value| Ok((to_python(py, &value)?,))).transpose()
    }

    fn put_many(&self, py: Python<'_>, pairs: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>) -> PyResult<()> {
        let map = self.map()?;
        let pair = |(key, value): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((from_python(key)?, from_python(value)?));
        let pairs = pairs.iter().map(pair).collect::<PyResult<Vec<_>>>()?;
        run(py, || map.put_pairs(&pairs))?.map_err(raise)
    }

    /// Removes keys, and says how many were there.
    fn remove_many(&self, py: Python<'_>, keys: Vec<Bound<'_, PyAny>>) -> PyResult<u64> {
        let map = self.map()?;
        let keys = keys.iter().map(from_python).collect::<PyResult<Vec<_>>>()?;
        run(py, || map.remove_keys(&keys))?.map_err(raise)
    }

    /// The pairs whose keys lie in a range, in the order of the keys; at most so many.
    #[pyo3(signature = (first, end, after, limit))]
    fn pairs(
        &self,
        py: Python<'_>,
        first: Option<Bound<'_, PyAny>>,
        end: Option<Bound<'_, PyAny>>,
        after: bool,
        limit: usize,
    ) -> PyResult<Vec<(Py<PyAny>, Py<PyAny>)>> {
        let map = self.map()?;
        let key = |key: Option<Bound<'_, PyAny>>| key.as_ref().map(from_python).transpose();
        let first = match key(first)? {
            None => RangeBound::Unbounded,
            Some(first) if after => RangeBound::Excluded(first),
            Some(first) => RangeBound::Included(first),
        };
        let end = key(end)?.map_or(RangeBound::Unbounded, RangeBound::Excluded);
        let found = run(py, || map.pairs((first, end))?.take(limit).collect::<h5live::Result<Vec<_>>>())?;
        let found = found.map_err(raise)?;
        found.iter().map(|(key, value)| Ok((to_python(py, key)?, to_python(py, value)?))).collect()
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let map = self.map()?;
        run(py, || map.flush())?.map_err(raise)
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let map = self.map()?;
        run(py, || map.refresh())?.map_err(raise)
    }
}
