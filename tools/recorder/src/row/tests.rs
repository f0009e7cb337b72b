use super::*;

fn dims_text(dims: &[u32]) -> String {
    let dims: Vec<_> = dims.iter().map(ToString::to_string).collect();
    if dims.is_empty() { String::new() } else { format!("[{}]", dims.join("x")) }
}

fn plain(cells: &[&str]) -> Vec<InputCell> {
    cells.iter().map(|c| if c.is_empty() { InputCell::Empty } else { InputCell::Untyped((*c).to_owned()) }).collect()
}

fn inferred(rows: &[Vec<InputCell>]) -> Vec<String> {
    let names: Vec<_> = (0..rows[0].len()).map(|i| format!("c{i}")).collect();
    let rows: Vec<&[InputCell]> = rows.iter().map(Vec::as_slice).collect();
    let columns = RowType::infer_columns(&names, &rows, &InferRules::default());
    columns.iter().map(|c| format!("{}{}", c.kind, dims_text(&c.dims))).collect()
}

#[test]
fn a_column_is_of_the_narrowest_type_that_holds_all_its_cells() {
    let rows = [plain(&["1", "1", "true", "a", "1"]), plain(&["-2", "1e3", "false", "twelve bytes", "true"])];
    assert_eq!(inferred(&rows), ["i64", "f64", "bool", "str", "str"]);
}

#[test]
fn empty_cells_make_integers_floats_and_truth_values_optional() {
    let rows = [plain(&["1", "true", ""]), plain(&["", "", ""])];
    assert_eq!(inferred(&rows), ["f64", "bool3", "f64"]);
}

#[test]
fn the_cell_that_makes_numbers_texts_is_found() {
    let found = |cells: &[&str]| {
        let cells: Vec<_> = plain(cells).into_iter().zip(1..).map(|(cell, row)| (row, cell)).collect();
        let all: Vec<_> = cells.iter().map(|(_, cell)| cell).collect();
        let column = RecordColumn::infer("c", &all, &InferRules::default());
        let odd = column.text_type_cause(&cells, &InferRules::default());
        odd.map(|odd| (odd.row_number, odd.text.unwrap_or_default().to_owned()))
    };
    assert_eq!(found(&["", "1", "2", "n/a", "3", "4", "5"]), Some((4, "n/a".to_owned())));
    assert_eq!(found(&["1", "x"]), Some((2, "x".to_owned())));
    assert_eq!(found(&["0.5", "1e400", "y"]), Some((2, "1e400".to_owned())));
    assert_eq!(found(&["n/a", "1"]), Some((1, "n/a".to_owned())));
    assert_eq!(found(&["", "1e400", "0.5"]), Some((2, "1e400".to_owned())));
    assert_eq!(found(&["9007199254740993", ""]), Some((2, String::new())));
    assert_eq!(found(&["a", "1", "b"]), None);
    assert_eq!(found(&["1", "2"]), None);
    assert_eq!(found(&["true", "maybe"]), Some((2, "maybe".to_owned())));
    assert_eq!(found(&["true", "", "1"]), Some((3, "1".to_owned())));
    assert_eq!(found(&[]), None);
}

#[test]
fn integers_that_no_float_has_are_not_floats() {
    let rows = [plain(&["18446744073709551615", "9007199254740993", "1e400", "1e999999999999999999999"])];
    assert_eq!(inferred(&rows), ["u64", "i64", "str", "str"]);
    let rows =
        [plain(&["18446744073709551615", "9007199254740993", "-1"]), plain(&["-1", "0.5", "18446744073709551616"])];
    assert_eq!(inferred(&rows), ["str", "str", "f64"]);
}

#[test]
fn texts_that_are_all_times_are_times() {
    let text = |text: &str| InputCell::Text(text.to_owned());
    assert_eq!(inferred(&[plain(&["2026-11-24", "2026-11-24"]), plain(&["2026-11-24T19:40Z", "soon"])])[0], "time");
    assert_eq!(inferred(&[plain(&["2026-11-24", "2026-11-24"]), plain(&["2026-11-24T19:40Z", "soon"])])[1], "str");
    assert_eq!(inferred(&[vec![text("2026-11-24 12:00:00.5")], vec![InputCell::Empty]]), ["time"]);
}

#[test]
fn arrays_of_one_shape_are_arrays() {
    let list = |cells: &[&str]| InputCell::List(plain(cells));
    assert_eq!(inferred(&[vec![list(&["1", "2"])], vec![list(&["3", "0.5"])]]), ["f64[2]"]);
    assert_eq!(inferred(&[vec![list(&["1", "2"])], vec![InputCell::Empty]]), ["f64[2]"]);
    let grid = InputCell::List(vec![list(&["1"]), list(&["2"]), list(&["3"])]);
    assert_eq!(inferred(&[vec![grid.clone()]]), ["i64[3x1]"]);
    let column = RecordColumn { name: "a".into(), kind: "u8".parse().unwrap(), dims: vec![3, 1], stored: None };
    let value = |cell: &InputCell, empty| column.value(cell, empty, ConversionPolicy::Checked);
    assert_eq!(value(&grid, None).unwrap().to_string(), "[[1], [2], [3]]");
    assert_eq!(value(&InputCell::Empty, Some("7")).unwrap().to_string(), "[[7], [7], [7]]");
    let said = |cell: &InputCell| value(cell, None).unwrap_err().to_string();
    assert_eq!(said(&InputCell::Empty), "an empty cell is not a value of type u8");
    assert_eq!(said(&list(&["1", "2"])), "an array of shape [2] is not an array of u8 of shape [3, 1]");
    assert_eq!(said(&plain(&["1"])[0]), "a single value is not an array of u8 of shape [3, 1]");
    let ragged = InputCell::List(vec![list(&["1"]), list(&["2", "3"])]);
    assert!(said(&ragged).starts_with("an array has numbers"));
    assert!(said(&InputCell::List(vec![InputCell::Object("{}".into())])).starts_with("an array has numbers"));
}

#[test]
fn arrays_of_several_shapes_or_of_objects_are_texts_of_json() {
    let list = |cells: &[&str]| InputCell::List(plain(cells));
    let object = InputCell::List(vec![InputCell::Object("{\"a\":1}".into()), InputCell::Text("\"".into())]);
    for (cells, irregular) in [
        (vec![list(&["1", "2"]), InputCell::Empty, list(&["1"])], 2),
        (vec![InputCell::Empty, list(&[]), list(&["1"])], 1),
        (vec![object.clone()], 0),
        (vec![InputCell::Untyped("1".into()), list(&["1"])], 1),
    ] {
        let all: Vec<_> = cells.iter().collect();
        assert_eq!(first_array_shape_mismatch(&all), Some(irregular), "{cells:?}");
        assert_eq!(inferred(&cells.into_iter().map(|cell| vec![cell]).collect::<Vec<_>>()), ["str"]);
    }
    let column = RecordColumn::single("a", ColumnKind::VarText);
    let text = |cell: &InputCell| column.value(cell, None, ConversionPolicy::Checked).unwrap();
    assert_eq!(text(&object), Value::Text("[{\"a\":1},\"\\\"\"]".into()));
    assert_eq!(text(&InputCell::List(plain(&["1.50", ""]))), Value::Text("[1.50,null]".into()));
}

#[test]
fn text_that_looks_like_a_number_stays_text() {
    assert_eq!(inferred(&[vec![InputCell::Text("12".into())]]), ["str"]);
}

#[test]
fn rows_are_packed_in_the_order_of_their_columns() {
    let column = |name: &str, kind: &str| RecordColumn::single(name, kind.parse().unwrap());
    let table = RowType::new(vec![column("t", "u16"), column("v", "f32"), column("s", "str3")]);
    let Datatype::Compound(t) = table.datatype() else { panic!("not a compound") };
    assert_eq!(t.size, 9);
    assert_eq!(t.members.iter().map(|m| m.offset).collect::<Vec<_>>(), [0, 2, 6]);
    let row = table.row_value(&plain(&["258", "1", "ab"]), ConversionPolicy::Checked).unwrap();
    assert_eq!(row.to_string(), "[258, 1.0, \"ab\"]");
}

#[test]
fn a_number_that_may_have_a_point_or_thousands_is_no_number() {
    let ambiguous = InputCell::AmbiguousPoint("1.234".into());
    let half = InputCell::DecimalComma("0,5".into(), "0.5".into());
    assert_eq!(inferred(&[vec![half.clone()], vec![ambiguous.clone()]]), ["str"]);
    let table = RowType::new(vec![RecordColumn::single("a", ColumnKind::F64)]);
    assert_eq!(table.row_value(&[half], ConversionPolicy::Checked).unwrap().to_string(), "[0.5]");
    let error = table.row_value(&[ambiguous], ConversionPolicy::Checked).unwrap_err().to_string();
    assert!(error.starts_with("column \"a\": \"1.234\" is not clear"), "{error}");
}

#[test]
fn a_row_that_does_not_fit_says_why() {
    let column = |name: &str| RecordColumn::single(name, ColumnKind::I64);
    let table = RowType::new(vec![column("a"), column("b")]);
    let error = table.row_value(&plain(&["1"]), ConversionPolicy::Checked).unwrap_err();
    assert_eq!(error.to_string(), "1 field instead of 2");
    let error = table.row_value(&plain(&["1", "x"]), ConversionPolicy::Checked).unwrap_err();
    assert_eq!(error.to_string(), "column \"b\": \"x\" is not a value of type i64");
}
