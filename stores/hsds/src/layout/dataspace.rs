//! Dataspaces as JSON ("Dataspace").

use h5live_model::{Dataspace, MAX_RANK, Shape, UNLIMITED};
use serde_json::{Value, json};

use super::error::{LayoutError, Result};
use super::extras::{h5live_member, set_h5live_member};
use super::json::{Members, set_member};

const UNLIMITED_NAME: &str = "H5S_UNLIMITED";
const MAX_DIMS: &str = "maxdims";

/// Puts a dataspace into the object that has it. For the service, a maximum of 0 is no limit: such a maximum is kept as
/// ours.
pub fn put_shape(members: &mut Members, space: &Dataspace) {
    let mut shown = dataspace_to_json(space);
    let has_zero = space.max_dims().contains(&0);
    let max = shown.as_object_mut().filter(|_| has_zero).and_then(|shown| shown.shift_remove(MAX_DIMS));
    if let Some(max) = max.filter(|_| space.max_dims() != space.dims()) {
        set_h5live_member(members, MAX_DIMS, max);
    }
    members.insert("shape".to_owned(), shown);
}

/// The dataspace of an object.
///
/// # Errors
/// As [`dataspace_from_json`].
pub fn get_shape(members: &Members) -> Result<Dataspace> {
    const NO_SHAPE: LayoutError = LayoutError::MissingOrInvalidMember { member: "shape", expected: "a dataspace" };
    let shown = dataspace_from_json(members.get("shape").ok_or(NO_SHAPE)?)?;
    match (&shown, h5live_member(members, MAX_DIMS).and_then(Value::as_array)) {
        (Dataspace::Simple(shape), Some(list)) => {
            let max = list.iter().map(|max| if max == UNLIMITED_NAME { Ok(UNLIMITED) } else { dim(max) });
            let exact = Shape::with_max(shape.dims(), &max.collect::<Result<Vec<_>>>()?);
            // Somebody else has changed the shape.
            Ok(exact.map_or(shown, Dataspace::Simple))
        }
        _ => Ok(shown),
    }
}

/// The JSON of a dataspace.
fn dataspace_to_json(space: &Dataspace) -> Value {
    match space {
        Dataspace::Null => json!({"class": "H5S_NULL"}),
        Dataspace::Scalar => json!({"class": "H5S_SCALAR"}),
        Dataspace::Simple(shape) => {
            let mut found = json!({"class": "H5S_SIMPLE", "dims": shape.dims()});
            if shape.states_max_dims() {
                let max = |dim: &u64| if *dim == UNLIMITED { json!(UNLIMITED_NAME) } else { json!(dim) };
                set_member(&mut found, MAX_DIMS, shape.max_dims().iter().map(max).collect());
            }
            found
        }
    }
}

/// The dataspace that a JSON describes. Short forms are taken: a list is a shape, a number one dimension.
///
/// # Errors
/// [`LayoutError::MissingOrInvalidMember`], [`LayoutError::ValueIsNot`].
fn dataspace_from_json(json: &Value) -> Result<Dataspace> {
    const BAD_SHAPE: LayoutError = LayoutError::MissingOrInvalidMember { member: "shape", expected: "a dataspace" };
    let members: &Members = match json {
        Value::Object(members) => members,
        Value::String(name) if name == "H5S_NULL" => return Ok(Dataspace::Null),
        Value::String(name) if name == "H5S_SCALAR" => return Ok(Dataspace::Scalar),
        Value::Number(_) => return shape(&[dim(json)?], None),
        Value::Array(list) => return shape(&dims_from_json(list)?, None),
        _ => return Err(BAD_SHAPE),
    };
    match members.get("class").and_then(Value::as_str) {
        Some("H5S_NULL") => Ok(Dataspace::Null),
        Some("H5S_SCALAR") => Ok(Dataspace::Scalar),
        Some("H5S_SIMPLE") => {
            let list = members.get("dims").and_then(Value::as_array).ok_or(BAD_SHAPE)?;
            let dims = dims_from_json(list)?;
            let max = match members.get("maxdims") {
                Some(Value::Array(list)) => Some(max_dims(list)?),
                Some(Value::Null) | None => None,
                Some(_) => return Err(BAD_SHAPE),
            };
            shape(&dims, max.as_deref())
        }
        _ => Err(BAD_SHAPE),
    }
}

fn shape(dims: &[u64], max: Option<&[u64]>) -> Result<Dataspace> {
    if dims.is_empty() {
        return Ok(Dataspace::Scalar);
    }
    if dims.len() > MAX_RANK {
        return Err(LayoutError::ValueIsNot("a shape of at most 32 dimensions"));
    }
    let shape = match max {
        Some(max) => Shape::with_max(dims, max).ok_or(LayoutError::ValueIsNot("a maximum of the shape"))?,
        None => Shape::fixed(dims),
    };
    Ok(Dataspace::Simple(shape))
}

/// Dimensions, all numbers.
///
/// # Errors
/// [`LayoutError::ValueIsNot`].
pub fn dims_from_json(list: &[Value]) -> Result<Vec<u64>> {
    list.iter().map(dim).collect()
}

fn dim(value: &Value) -> Result<u64> {
    value.as_u64().filter(|dim| *dim != UNLIMITED).ok_or(LayoutError::ValueIsNot("the size of a dimension"))
}

/// A maximum of 0 is no limit, as the service takes it.
fn max_dims(list: &[Value]) -> Result<Vec<u64>> {
    let max = |value: &Value| match value {
        Value::String(name) if name == UNLIMITED_NAME => Ok(UNLIMITED),
        Value::Null => Ok(UNLIMITED),
        value => Ok(Some(dim(value)?).filter(|dim| *dim > 0).unwrap_or(UNLIMITED)),
    };
    list.iter().map(max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dataspaces_come_back_from_their_json() {
        let with_max = Shape::with_max(&[10, 10], &[20, UNLIMITED]).unwrap();
        let spaces = [
            Dataspace::Null,
            Dataspace::Scalar,
            Dataspace::Simple(Shape::fixed(&[3, 0])),
            Dataspace::Simple(with_max.clone()),
            Dataspace::Simple(Shape::with_max(&[2], &[2]).unwrap()),
        ];
        for space in spaces {
            assert_eq!(dataspace_from_json(&dataspace_to_json(&space)).unwrap(), space);
        }
        for (dims, max) in [([0, 3], [0, 3]), ([0, 3], [0, UNLIMITED]), ([2, 0], [UNLIMITED, 0])] {
            let (mut members, space) = (Members::new(), Dataspace::Simple(Shape::with_max(&dims, &max).unwrap()));
            put_shape(&mut members, &space);
            assert_eq!(get_shape(&members).unwrap().max_dims(), max);
        }
        let of_the_document = json!({"class": "H5S_SIMPLE", "dims": [10, 10], "maxdims": [20, "H5S_UNLIMITED"]});
        assert_eq!(dataspace_to_json(&Dataspace::Simple(with_max)), of_the_document);
        assert_eq!(dataspace_from_json(&json!([2, 3])).unwrap(), Dataspace::Simple(Shape::fixed(&[2, 3])));
    }

    #[test]
    fn shapes_that_contradict_themselves_are_refused() {
        let simple = |dims: Value, max: Value| json!({"class": "H5S_SIMPLE", "dims": dims, "maxdims": max});
        for bad in [
            json!(null),
            json!({"class": "H5S_SIMPLE"}),
            simple(json!([-1]), json!(null)),
            simple(json!([4]), json!([3])),
            simple(json!([4]), json!([4, 4])),
            simple(json!(vec![1; 33]), json!(null)),
            simple(json!([1.5]), json!(null)),
        ] {
            assert!(dataspace_from_json(&bad).is_err(), "{bad}");
        }
    }
}
