//! A write of which some value does not fit changes nothing.

use h5live::{ConversionPolicy, Dataset, ErrorKind, File, H5Type, UNLIMITED, Value};

fn u16s(file: &File, name: &str, chunk: u64) -> Dataset {
    let new = file.new_dataset::<u16>().shape(&[6]).max_shape(&[UNLIMITED]).chunk_shape(&[chunk]);
    let data = new.create(name).unwrap();
    data.write(&[1u16, 2, 3, 4, 5, 6]).unwrap();
    data
}

#[derive(H5Type, Clone, Debug, PartialEq)]
struct Row {
    number: i64,
    text: String,
}

fn is_refused(result: h5live::Result<()>) {
    let error = result.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Convert(_)), "{error}");
}

#[test]
fn chunks_before_the_value_keep_their_elements() {
    let file = File::in_memory();
    for (name, chunk) in [("ones", 1), ("twos", 2), ("all", 6)] {
        let data = u16s(&file, name, chunk);
        is_refused(data.write(&[7i64, 8, 9, 10, 70_000, 12]));
        is_refused(data.write_values(.., &[7, 8, 9, 10, 70_000, 12].map(Value::Integer)));
        is_refused(data.write_slice(1..4, &[7.0, 8.0, 8.5]));
        file.flush().unwrap();
        assert_eq!(data.read::<u16>().unwrap(), [1, 2, 3, 4, 5, 6], "{name}");
        data.with_conversion(ConversionPolicy::Lossy).write(&[7i64, 8, 9, 10, 70_000, 12]).unwrap();
        assert_eq!(data.read::<u16>().unwrap(), [7, 8, 9, 10, u16::MAX, 12], "{name}");
    }
}

#[test]
fn rows_that_are_refused_leave_nothing_behind_the_extent() {
    let file = File::in_memory();
    let data = u16s(&file, "data", 2);
    is_refused(data.append(&[7i64, 8, 9, 10, -1]));
    is_refused(data.append_values(&[7, 8, 9, 10, -1].map(Value::Integer)));
    data.resize(&[11]).unwrap();
    assert_eq!(data.read::<u16>().unwrap(), [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0]);
}

#[test]
fn compounds_with_texts_are_all_written_or_none() {
    let file = File::in_memory();
    let rows: Vec<Row> = (0..6).map(|n| Row { number: n, text: format!("row {n}") }).collect();
    let data = file.new_dataset::<Row>().shape(&[6]).chunk_shape(&[2]).create("rows").unwrap();
    data.write(&rows).unwrap();
    let other = |number: i64| {
        Value::Compound(vec![
            ("number".into(), Value::Integer(number.into())),
            ("text".into(), Value::Text("new".into())),
        ])
    };
    let mut values: Vec<Value> = (0..5).map(other).collect();
    values.push(Value::Text("no compound".into()));
    assert!(data.write_values(.., &values).is_err());
    file.flush().unwrap();
    assert_eq!(data.read::<Row>().unwrap(), rows);
}
