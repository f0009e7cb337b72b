//! Rows and values for `serde`.

use std::collections::BTreeMap;

use serde::Deserialize;

use h5live::{ErrorKind, File, H5Type, Value};

#[derive(H5Type, Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Stored {
    Off = 0,
    On = 1,
}

#[derive(H5Type, Clone)]
struct Inner {
    x: i16,
    y: f32,
}

#[derive(H5Type, Clone)]
struct Sample {
    time: f64,
    id: u64,
    state: Stored,
    is_valid: bool,
    name: String,
    inner: Inner,
    counts: [u16; 3],
}

#[derive(Deserialize, Debug, PartialEq)]
enum State {
    Off,
    On,
}

#[derive(Deserialize, Debug, PartialEq)]
struct Point {
    x: i64,
    y: f64,
}

#[derive(Deserialize, Debug, PartialEq)]
struct Row {
    #[serde(rename = "time")]
    seconds: f64,
    id: u64,
    state: State,
    is_valid: bool,
    name: Option<String>,
    inner: Point,
    counts: (u8, u16, u32),
    #[serde(default)]
    missing: Vec<u8>,
}

fn samples() -> (File, h5live::Dataset) {
    let file = File::in_memory();
    let data = file.new_dataset::<Sample>().unlimited_rows(&[]).create("data").unwrap();
    let sample = |time, id, state, name: &str| Sample {
        time,
        id,
        state,
        is_valid: true,
        name: name.into(),
        inner: Inner { x: -2, y: 0.5 },
        counts: [1, 2, 3],
    };
    data.append(&[sample(0.25, 1, Stored::Off, "a"), sample(0.5, u64::MAX, Stored::On, "b")]).unwrap();
    (file, data)
}

#[test]
fn rows_become_structs_by_the_names_of_their_members() {
    let (_file, data) = samples();
    let rows: Vec<Row> = data.read_rows(1..).unwrap();
    let want = Row {
        seconds: 0.5,
        id: u64::MAX,
        state: State::On,
        is_valid: true,
        name: Some("b".into()),
        inner: Point { x: -2, y: 0.5 },
        counts: (1, 2, 3),
        missing: vec![],
    };
    assert_eq!(rows, [want]);
}

#[test]
fn what_a_type_cannot_hold_is_an_error_with_the_element() {
    #[derive(Deserialize, Debug)]
    struct Small {
        #[allow(dead_code)]
        id: u8,
    }
    let (_file, data) = samples();
    let error = data.read_rows::<Small>(..).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Deserialize { element: 1, .. }), "{error:?}");
    assert!(data.read_rows::<BTreeMap<String, u32>>(..).is_err());
    let file = File::in_memory();
    let data = file.new_dataset::<f64>().shape(&[2]).create("data").unwrap();
    data.write(&[0.5, 0.1]).unwrap();
    assert_eq!(data.read_rows::<f32>(..1).unwrap(), [0.5]);
    assert!(data.read_rows::<f32>(1..).is_err());
    let large = file.new_dataset::<u64>().shape(&[2]).create("large").unwrap();
    large.write(&[1u64 << 53, (1 << 53) + 1]).unwrap();
    assert_eq!(large.read_rows::<f64>(..1).unwrap(), [9007199254740992.0]);
    assert!(large.read_rows::<f64>(1..).is_err());
}

#[test]
fn values_are_serialized_as_json_has_them() {
    let (_file, data) = samples();
    let json = serde_json::to_value(data.read_values(1..).unwrap()).unwrap();
    let want = serde_json::json!([{
        "time": 0.5, "id": u64::MAX, "state": "On", "is_valid": true, "name": "b",
        "inner": { "x": -2, "y": 0.5 }, "counts": [1, 2, 3],
    }]);
    assert_eq!(json, want);
    let complex = Value::Complex(Box::new([Value::Integer(1), Value::Float32(-0.5)]));
    let values = [Value::Unreadable, Value::Bytes(vec![1, 2]), complex];
    assert_eq!(serde_json::to_value(values).unwrap(), serde_json::json!([null, [1, 2], [1, -0.5]]));
}
