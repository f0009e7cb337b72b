//! Rows that are recorded into datasets that other programs have made, and `set` with values from elsewhere.

use crate::common::{h5py, new_file, python, run, run_with, text};
use h5live::model::{BitfieldType, Padding};
use h5live::{ByteOrder, Datatype, File};

/// A table with types that `record` does not choose by itself, as pandas, PyTables and others have them.
const MAKE: &str = "
state = h5py.enum_dtype({'OFF': 0, 'ON': 1, 'BROKEN': 7}, basetype='u1')
types = [('index', '<i8'), ('values_block_0', '<f8', (2,)), ('name', h5py.string_dtype('ascii', 6)),
         ('half', '<f2'), ('flag', '?'), ('state', state), ('long', np.longdouble), ('big', '>u2'),
         ('sequence', h5py.vlen_dtype('<i4')), ('text', h5py.string_dtype('ascii'))]
with h5py.File(path, 'w') as file:
    file.create_dataset('table', (0,), maxshape=(None,), chunks=(8,), dtype=types)
    file.create_dataset('words', (0,), maxshape=(None,), chunks=(8,), dtype='S4')
    aligned = np.dtype([('a', 'i1'), ('b', '<f8')], align=True)
    file.create_dataset('aligned', (0,), maxshape=(None,), chunks=(8,), dtype=aligned)
";
const ROWS: &str = r#"{"index": 1, "values_block_0": [0.5, NaN], "name": "abc", "half": 1.5, "flag": true, "state": "ON", "long": 0.25, "big": 258, "sequence": [1, 2, 3], "text": "x"}
{"state": 7, "index": 2, "values_block_0": [-Infinity, 2], "name": "", "half": -2, "flag": false, "long": 1e300, "big": 0, "sequence": [], "text": ""}
"#;
const SEEN: &str = "
with h5py.File(path) as file:
    for row in file['table'][...]:
        print([float(value) if isinstance(value, np.longdouble) else value.tolist() if hasattr(value, 'tolist') else value for value in row])
";

#[test]
fn rows_are_recorded_into_tables_of_other_programs() {
    let Some(python) = python() else { return };
    let (_folder, path, name) = new_file();
    h5py(&python, MAKE, &path);
    text(&run_with(&["record", &name, "table"], ROWS.as_bytes()));
    let expected = "[1, [0.5, nan], b'abc', 1.5, True, 1, 0.25, 258, [1, 2, 3], b'x']\n\
                    [2, [-inf, 2.0], b'', -2.0, False, 7, 1e+300, 0, [], b'']\n";
    assert_eq!(h5py(&python, SEEN, &path), expected);
    text(&run_with(&["record", &name, "words"], b"word\nabcd\n"));
    text(&run_with(&["record", &name, "aligned"], b"b,a\n0.5,-3\n"));
    assert_eq!(text(&run(&["dump", &name, "aligned"])), "0: {a: -3, b: 0.5}\n");
    let words = h5py(&python, "print(h5py.File(path)['words'][...])", &path);
    assert_eq!(words, "[b'abcd']\n");
    text(&run(&["check", &name]));
}

/// A table with columns in columns, as PyTables makes them.
const NESTED: &str = "
place = np.dtype([('x', '<f8'), ('deep', [('y', 'i1'), ('z', 'S3')])])
with h5py.File(path, 'w') as file:
    file.create_dataset('table', (0,), maxshape=(None,), chunks=(8,), dtype=[('n', '<i4'), ('place', place), ('m', '<u2')])
";

#[test]
fn columns_in_columns_take_objects_of_json_and_their_own_names() {
    let Some(python) = python() else { return };
    let (_folder, path, name) = new_file();
    h5py(&python, NESTED, &path);
    let record = |rows: &str| run_with(&["record", &name, "table"], rows.as_bytes());
    text(&record(r#"{"m": 3, "place": {"deep": {"z": "ab", "y": 2}, "x": 0.5}, "n": 1}"#));
    text(&record("place.deep.y,n,place.x,m,place.deep.z\n-1,2,1.5,4,cd\n"));
    let seen = h5py(&python, "print(h5py.File(path)['table'][...].tolist())", &path);
    assert_eq!(seen, "[(1, (0.5, (2, b'ab')), 3), (2, (1.5, (-1, b'cd')), 4)]\n");
    let said = |rows: &str| String::from_utf8(record(rows).stderr).unwrap();
    let missing = said(r#"{"n": 1, "place": {"x": 1, "q": 2}, "m": 1}"#);
    assert!(missing.contains("/table has no column \"place.q\"; its columns are"), "{missing}");
    let unfit = said(r#"{"n": 1, "place": {"x": 1, "deep": {"y": 300, "z": ""}}, "m": 1}"#);
    assert!(unfit.contains("column \"place.deep.y\": ") && unfit.contains("300"), "{unfit}");
    text(&run(&["check", &name]));
}

#[test]
fn a_cell_that_does_not_fit_is_named_with_its_column() {
    let Some(python) = python() else { return };
    let (_folder, path, name) = new_file();
    h5py(&python, MAKE, &path);
    for (column, cell, cause) in [
        ("name", "\"abcdefg\"", "a text of 7 bytes is too long for str6"),
        ("name", "\"\u{e4}\"", "\"\u{e4}\" is not ASCII, as texts of type str(6,nullpad,ascii) are"),
        ("text", "\"\u{e4}\"", "is not ASCII"),
        ("half", "2049", "2049 does not fit f16 (it would become 2048.0"),
        ("half", "1e6", "does not fit f16 (it would become inf"),
        ("flag", "2", "\"2\" is not a value of type bool"),
        ("state", "3", "\"3\" is not a value of type enum<u8>{OFF=0,ON=1,BROKEN=7}"),
        ("state", "\"MAYBE\"", "\"MAYBE\" is not a value of type enum"),
        ("big", "65536", "65536 does not fit u16be"),
        ("sequence", "[1, 2147483648]", "2147483648 does not fit i32"),
        ("sequence", "7", "\"7\" is not a value of type vlen<i32le>"),
        ("long", "\"x\"", "\"x\" is not a value of type f64"),
        ("values_block_0", "[1]", "an array of shape [1] is not an array of f64 of shape [2]"),
    ] {
        let row: String = ROWS.lines().next().unwrap().to_owned();
        let at = row.find(&format!("\"{column}\": ")).unwrap() + column.len() + 4;
        let end = at + row[at..].find(", \"").unwrap_or(row.len() - 1 - at);
        let row = format!("{}{cell}{}\n", &row[..at], &row[end..]);
        let output = run_with(&["record", &name, "table"], row.as_bytes());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{column}: {said}");
        assert!(said.contains(&format!("column {column:?}: ")) && said.contains(cause), "{column}: {said}");
        assert_eq!(File::open(&path).unwrap().dataset("table").unwrap().shape().unwrap(), [0]);
    }
    let output = run_with(&["record", &name, "table"], b"index,other\n1,2\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("\"other\""), "{said}");
}

#[test]
fn bits_are_recorded_as_numbers_and_truth_values() {
    let (_folder, path, name) = new_file();
    let bits = Datatype::Bitfield(BitfieldType {
        size: 1,
        order: ByteOrder::Little,
        offset: 0,
        precision: 8,
        low_padding: Padding::Zero,
        high_padding: Padding::Zero,
    });
    let file = File::create(&path).unwrap();
    file.new_dataset_with_type(bits).unlimited_rows(&[]).chunk_shape(&[8]).create("bits").unwrap();
    file.close().unwrap();
    text(&run_with(&["record", &name, "bits"], b"bit\n1\ntrue\n0\n255\n"));
    assert_eq!(text(&run(&["dump", &name, "bits"])).lines().count(), 4);
    let output = run_with(&["record", &name, "bits"], b"bit\n256\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("256 does not fit"), "{said}");
}

#[test]
fn numbers_that_json_has_not_are_read_as_python_writes_them() {
    let (_folder, _path, name) = new_file();
    text(&run_with(&["record", &name, "lines"], b"{\"a\": NaN, \"b\": \"NaN\"}\n{\"a\": -Infinity, \"b\": \"x\"}\n"));
    assert_eq!(text(&run(&["dump", &name, "lines"])), "0: {a: NaN, b: \"NaN\"}\n1: {a: -inf, b: \"x\"}\n");
    text(&run_with(&["record", &name, "array"], b"[{\"a\": Infinity},\n {\"a\": 1}]"));
    assert_eq!(text(&run(&["dump", &name, "array"])), "0: {a: inf}\n1: {a: 1.0}\n");
    text(&run_with(&["record", &name, "lists"], b"[NaN, 1]\n[2, 3]\n"));
    assert_eq!(text(&run(&["dump", &name, "lists"])).lines().count(), 2);
    for row in ["{\"\": 1}\n", "{\"a\": {\"\": 1}}\n", "{\"a\": nan}\n"] {
        let output = run_with(&["record", &name, "wrong"], row.as_bytes());
        assert_eq!(output.status.code(), Some(1), "{row}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_row_that_is_rejected_is_kept_as_it_came() {
    let (folder, _path, name) = new_file();
    let bad = folder.path().join("bad.ndjson");
    let rows = b"{\"a\": 1, \"b\": NaN}\n{\"a\": \"x\", \"b\": NaN, \"c\": \"\\\\ NaN\"}\n";
    let output = run_with(
        &["record", &name, "rows", "--types", "a=i64,b=f64", "--on-error", "reject-to", bad.to_str().unwrap()],
        rows,
    );
    assert!(output.status.code() != Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let kept = std::fs::read_to_string(&bad).unwrap();
    assert!(kept.contains("\"b\": NaN") && !kept.contains("u0000"), "{kept}");
}

#[test]
fn values_are_set_from_a_file_and_from_standard_input() {
    let (folder, path, name) = new_file();
    File::create(&path).unwrap().new_dataset::<i32>().create_with_data("data", &[0, 0, 0]).unwrap();
    text(&run_with(&["set", &name, "data", "--from", "-"], b"[1, 2,\n 3]\n"));
    let values = folder.path().join("note.txt");
    std::fs::write(&values, "two\nlines\n").unwrap();
    text(&run(&["set", &name, "data@note", "--from", values.to_str().unwrap()]));
    let file = File::open(&path).unwrap();
    let data = file.dataset("data").unwrap();
    assert_eq!(data.read::<i32>().unwrap(), [1, 2, 3]);
    assert_eq!(data.attribute("note").unwrap().read_scalar::<String>().unwrap(), "two\nlines");
    drop((data, file));
    for words in [
        &["set", &name, "data"][..],
        &["set", &name, "data", "1", "--from", "-"],
        &["set", &name, "data", "--from", "nowhere"],
    ] {
        assert_eq!(run(words).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn rows_of_nested_lists_go_to_datasets_of_several_dimensions() {
    let Some(python) = python() else { return };
    let (_folder, path, name) = new_file();
    let make = "
with h5py.File(path, 'w') as file:
    for name, row, kind in [('two', (3,), '<f8'), ('three', (2, 2), '>i2'), ('text', (2,), 'S3'), ('deep', (2,), ('u1', (2,)))]:
        file.create_dataset(name, (0,) + row, maxshape=(None,) + row, chunks=(4,) + row, dtype=kind)
";
    h5py(&python, make, &path);
    let record = |at: &str, rows: &str| run_with(&["record", &name, at], rows.as_bytes());
    text(&record("two", "[1, 2.5, NaN]\n[4, 5, 6]\n"));
    text(&record("two", "[[7, 8, 9],\n [10, 11, 12]]\n"));
    text(&record("two", "{\"any\": [13, 14, 15]}\n"));
    text(&record("three", "[[1, 2], [3, 4]]\n[[5, 6], [7, -8]]\n"));
    text(&record("three", "[[[9, 10], [11, 12]]]"));
    text(&record("three", "[{\"v\": [[13, 14], [15, 16]]}]"));
    text(&record("two", "16,17,18\n"));
    let named = record("two", "x,y,z\n19,20.5,21\n");
    text(&named);
    let said = String::from_utf8_lossy(&named.stderr);
    assert!(said.contains("the names of the header are left out: \"x\", \"y\", \"z\""), "{said}");
    text(&record("text", "[\"ab\", \"c\"]\n"));
    text(&record("deep", "[[1, 2], [3, 4]]\n"));
    let seen = "
with h5py.File(path) as file:
    for name in ['two', 'three', 'text', 'deep']:
        print(file[name][...].tolist())
";
    let wanted = "[[1.0, 2.5, nan], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [10.0, 11.0, 12.0], [13.0, 14.0, 15.0], [16.0, 17.0, 18.0], [19.0, 20.5, 21.0]]\n\
                  [[[1, 2], [3, 4]], [[5, 6], [7, -8]], [[9, 10], [11, 12]], [[13, 14], [15, 16]]]\n\
                  [[b'ab', b'c']]\n[[[1, 2], [3, 4]]]\n";
    assert_eq!(h5py(&python, seen, &path), wanted);
    // Wrong lengths name the row and the field.
    for (at, rows, what) in [
        ("two", "[1, 2, 3]\n[1, 2]\n", "row 2: column \"value\": the array has 2 instead of 3 elements"),
        ("two", "[1, 2, 3]\n[1, 2, 3, 4]\n", "row 2: column \"value\": the array has 4 instead of 3 elements"),
        ("two", "{\"v\": [1, 2]}", "row 1: column \"v\": the array has 2 instead of 3 elements"),
        ("two", "{\"v\": 5}", "row 1: column \"v\": the array is no array of shape [3]"),
        ("two", "1,2,3\n4,5\n", "row 2: column \"value\": the array has 2 instead of 3 elements"),
        ("two", "1,2,3\n4,five,6\n", "row 2: column \"value\": \"five\" is not a value of type f64"),
        ("three", "[[1, 2], [3]]\n", "row 1: column \"value\": the element [1] has 1 instead of 2 elements"),
        ("three", "[[1, 2], 3]\n", "row 1: column \"value\": the element [1] is no array of shape [2]"),
        ("three", "[[1, 2], [3, 40000]]\n", "row 1: column \"value\": "),
    ] {
        let failed = record(at, rows);
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(failed.status.code() == Some(1) && said.contains(what), "{rows}: {said}");
    }
    let rows = h5py(&python, "print([h5py.File(path)[name].shape[0] for name in ['two', 'three']])", &path);
    assert_eq!(rows, "[11, 4]\n");
    text(&run(&["check", "--data", &name]));
}
