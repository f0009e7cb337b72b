//! Datatypes as tuples that Python makes and takes apart.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use h5live::Datatype;
use h5live::model::{
    ArrayType, BitfieldType, ByteOrder, CharacterSet, ComplexType, CompoundMember, CompoundType, EnumMember, EnumType,
    FixedStringType, FloatType, IntegerType, Name, Normalization, OpaqueType, ReferenceKind, ReferenceType, Sign,
    StringPadding, TimeType, VarLenKind, VarLenType,
};
use pyo3::IntoPyObjectExt;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::links::name_object;

/// The type of elements.
#[pyclass(frozen, name = "Datatype", module = "h5live._h5live")]
#[derive(Clone)]
pub(crate) struct DatatypeHandle(pub(crate) Datatype);

#[pymethods]
impl DatatypeHandle {
    /// The datatype that a tuple describes: its class, and what belongs to the class.
    #[new]
    fn build(spec: &Bound<'_, PyTuple>) -> PyResult<Self> {
        from_spec(spec).map(DatatypeHandle)
    }

    /// The tuple that describes it.
    fn spec(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_spec(py, &self.0)
    }

    #[getter]
    fn size(&self) -> u32 {
        self.0.size()
    }

    #[getter]
    fn has_variable_length(&self) -> bool {
        self.0.has_vlen()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<DatatypeHandle>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<Datatype {}>", self.0)
    }
}

fn order_text(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "<",
        ByteOrder::Big => ">",
        ByteOrder::Vax => "V",
    }
}

fn padding_number(padding: StringPadding) -> u8 {
    match padding {
        StringPadding::NullTerminated => 0,
        StringPadding::NullPadded => 1,
        StringPadding::SpacePadded => 2,
        StringPadding::Reserved(n) => n,
    }
}

fn set_number(set: CharacterSet) -> u8 {
    match set {
        CharacterSet::Ascii => 0,
        CharacterSet::Utf8 => 1,
        CharacterSet::Reserved(n) => n,
    }
}

fn kind_name(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Object1 => "object",
        ReferenceKind::Region1 => "region",
        ReferenceKind::Object2 => "object2",
        ReferenceKind::Region2 => "region2",
        ReferenceKind::Attribute => "attribute",
    }
}

/// The kind of references of this name.
pub(crate) fn reference_kind(name: &str) -> PyResult<ReferenceKind> {
    use ReferenceKind::{Attribute, Object1, Object2, Region1, Region2};
    let kinds = [Object1, Region1, Object2, Region2, Attribute];
    kinds.into_iter().find(|kind| kind_name(*kind) == name).ok_or_else(|| unknown(name))
}

fn unknown(what: &str) -> PyErr {
    PyValueError::new_err(format!("{what:?} is no class of datatypes"))
}

/// The value of an enum as an integer.
fn enum_value(base: &Datatype, bytes: &[u8]) -> i128 {
    let Datatype::Integer(base) = base else { return 0 };
    let mut bytes = bytes.to_vec();
    if base.order == ByteOrder::Big {
        bytes.reverse();
    }
    let is_negative = base.sign == Sign::Signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if is_negative { 0xff } else { 0 }; 16];
    let len = bytes.len().min(16);
    wide[..len].copy_from_slice(&bytes[..len]);
    i128::from_le_bytes(wide)
}

fn enum_bytes(base: &Datatype, value: i128) -> Vec<u8> {
    let mut bytes = value.to_le_bytes()[..(base.size() as usize).min(16)].to_vec();
    if matches!(base, Datatype::Integer(IntegerType { order: ByteOrder::Big, .. })) {
        bytes.reverse();
    }
    bytes
}

fn to_spec(py: Python<'_>, datatype: &Datatype) -> PyResult<Py<PyAny>> {
    match datatype {
        Datatype::Integer(t) => {
            ("int", t.size, order_text(t.order), t.sign == Sign::Signed, t.precision, t.offset).into_py_any(py)
        }
        Datatype::Float(t) => float_spec(py, t),
        Datatype::Time(t) => ("time", t.size, order_text(t.order), t.precision).into_py_any(py),
        Datatype::String(t) => {
            ("string", t.size, padding_number(t.padding), set_number(t.character_set)).into_py_any(py)
        }
        Datatype::Bitfield(t) => ("bitfield", t.size, order_text(t.order), t.precision, t.offset).into_py_any(py),
        Datatype::Opaque(t) => ("opaque", t.size, PyBytes::new(py, t.tag.as_bytes())).into_py_any(py),
        Datatype::Compound(t) => {
            let member = |m: &CompoundMember| -> PyResult<_> {
                Ok((name_object(py, &m.name), m.offset, to_spec(py, &m.datatype)?))
            };
            let members = t.members.iter().map(member).collect::<PyResult<Vec<_>>>()?;
            ("compound", t.size, PyTuple::new(py, members)?).into_py_any(py)
        }
        Datatype::Reference(t) => ("reference", kind_name(t.kind), t.size).into_py_any(py),
        Datatype::Enum(t) => {
            let members = t.members.iter().map(|m| (name_object(py, &m.name), enum_value(&t.base, &m.value)));
            ("enum", to_spec(py, &t.base)?, PyTuple::new(py, members.collect::<Vec<_>>())?).into_py_any(py)
        }
        Datatype::VarLen(VarLenType { kind: VarLenKind::String { padding, character_set }, size, .. }) => {
            ("vlen_string", padding_number(*padding), set_number(*character_set), *size).into_py_any(py)
        }
        Datatype::VarLen(t) => ("vlen", to_spec(py, &t.base)?, t.size).into_py_any(py),
        Datatype::Array(t) => ("array", PyTuple::new(py, &t.dims)?, to_spec(py, &t.base)?).into_py_any(py),
        Datatype::Complex(t) => ("complex", to_spec(py, &t.base)?).into_py_any(py),
    }
}

fn float_spec(py: Python<'_>, t: &FloatType) -> PyResult<Py<PyAny>> {
    let places = (t.sign_position, t.exponent_position, t.exponent_size, t.mantissa_position, t.mantissa_size);
    let normalization = match t.normalization {
        Normalization::None => 0,
        Normalization::MsbSet => 1,
        Normalization::Implied => 2,
    };
    ("float", t.size, order_text(t.order), t.precision, t.offset, places, t.exponent_bias, normalization)
        .into_py_any(py)
}

fn item<'py, T>(spec: &Bound<'py, PyTuple>, at: usize) -> PyResult<T>
where
    T: FromPyObjectOwned<'py>,
{
    spec.get_item(at)?.extract().map_err(Into::into)
}

fn order_item(spec: &Bound<'_, PyTuple>, at: usize) -> PyResult<ByteOrder> {
    Ok(match item::<String>(spec, at)?.as_str() {
        "<" => ByteOrder::Little,
        "V" => ByteOrder::Vax,
        _ => ByteOrder::Big,
    })
}

fn padding_item(spec: &Bound<'_, PyTuple>, at: usize) -> PyResult<StringPadding> {
    Ok(match item(spec, at)? {
        0 => StringPadding::NullTerminated,
        1 => StringPadding::NullPadded,
        2 => StringPadding::SpacePadded,
        n => StringPadding::Reserved(n),
    })
}

fn set_item(spec: &Bound<'_, PyTuple>, at: usize) -> PyResult<CharacterSet> {
    Ok(match item(spec, at)? {
        0 => CharacterSet::Ascii,
        1 => CharacterSet::Utf8,
        n => CharacterSet::Reserved(n),
    })
}

fn nested(spec: &Bound<'_, PyTuple>, at: usize) -> PyResult<Datatype> {
    from_spec(spec.get_item(at)?.cast::<PyTuple>()?)
}

fn from_spec(spec: &Bound<'_, PyTuple>) -> PyResult<Datatype> {
    let class: String = item(spec, 0)?;
    Ok(match class.as_str() {
        "int" => {
            let sign = if item(spec, 3)? { Sign::Signed } else { Sign::Unsigned };
            let (size, order) = (item(spec, 1)?, order_item(spec, 2)?);
            let (precision, offset) = (item(spec, 4)?, item(spec, 5)?);
            Datatype::Integer(IntegerType { size, order, sign, precision, offset, ..IntegerType::default() })
        }
        "float" => float_from(spec)?,
        "time" => {
            Datatype::Time(TimeType { size: item(spec, 1)?, order: order_item(spec, 2)?, precision: item(spec, 3)? })
        }
        "string" => {
            let (padding, character_set) = (padding_item(spec, 2)?, set_item(spec, 3)?);
            Datatype::String(FixedStringType { size: item(spec, 1)?, padding, character_set })
        }
        "bitfield" => {
            let (size, order) = (item(spec, 1)?, order_item(spec, 2)?);
            let (precision, offset) = (item(spec, 3)?, item(spec, 4)?);
            Datatype::Bitfield(BitfieldType { size, order, precision, offset, ..BitfieldType::default() })
        }
        "opaque" => {
            Datatype::Opaque(OpaqueType { size: item(spec, 1)?, tag: Name::from(&item::<Vec<u8>>(spec, 2)?[..]) })
        }
        "compound" => compound_from(spec)?,
        "reference" => Datatype::Reference(ReferenceType {
            kind: reference_kind(&item::<String>(spec, 1)?)?,
            size: item(spec, 2)?,
        }),
        "enum" => {
            let base = nested(spec, 1)?;
            let members: Vec<(String, i128)> = item(spec, 2)?;
            let member = |(name, value): (String, i128)| EnumMember {
                name: name.as_str().into(),
                value: enum_bytes(&base, value),
            };
            let members = members.into_iter().map(member).collect();
            Datatype::Enum(EnumType { base: Box::new(base), members })
        }
        "vlen_string" => {
            let kind = VarLenKind::String { padding: padding_item(spec, 1)?, character_set: set_item(spec, 2)? };
            let base = Datatype::integer(1, ByteOrder::Little, Sign::Unsigned);
            Datatype::VarLen(VarLenType { kind, size: item(spec, 3)?, base: Box::new(base) })
        }
        "vlen" => {
            let (base, size) = (Box::new(nested(spec, 1)?), item(spec, 2)?);
            Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size, base })
        }
        "array" => Datatype::Array(ArrayType { dims: item(spec, 1)?, base: Box::new(nested(spec, 2)?) }),
        "complex" => Datatype::Complex(ComplexType { base: Box::new(nested(spec, 1)?) }),
        other => return Err(unknown(other)),
    })
}

fn compound_from(spec: &Bound<'_, PyTuple>) -> PyResult<Datatype> {
    let mut members = Vec::new();
    for member in spec.get_item(2)?.try_iter()? {
        let member = member?;
        let member = member.cast::<PyTuple>()?;
        let name: String = item(member, 0)?;
        members.push(CompoundMember {
            name: name.as_str().into(),
            offset: item(member, 1)?,
            datatype: nested(member, 2)?,
        });
    }
    Ok(Datatype::Compound(CompoundType { size: item(spec, 1)?, members }))
}

fn float_from(spec: &Bound<'_, PyTuple>) -> PyResult<Datatype> {
    let (sign_position, exponent_position, exponent_size, mantissa_position, mantissa_size) = item(spec, 5)?;
    Ok(Datatype::Float(FloatType {
        size: item(spec, 1)?,
        order: order_item(spec, 2)?,
        precision: item(spec, 3)?,
        offset: item(spec, 4)?,
        sign_position,
        exponent_position,
        exponent_size,
        mantissa_position,
        mantissa_size,
        exponent_bias: item(spec, 6)?,
        normalization: match item(spec, 7)? {
            0 => Normalization::None,
            1 => Normalization::MsbSet,
            _ => Normalization::Implied,
        },
        ..FloatType::default()
    }))
}
