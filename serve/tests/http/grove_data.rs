//! h5grove's `/data` and `/stats`.

use h5live::model::{ArrayType, ByteOrder, CharacterSet, Datatype, FixedStringType, Sign, StringPadding};
use h5live::{H5Type, Value};
use serde_json::json;

use crate::client::{Served, make};

fn served_numbers() -> Served {
    let served = Served::new();
    make(&served.file("a.h5"), |file| {
        let image = file.new_dataset::<f64>().shape(&[3, 4]).create("image")?;
        image.write(&(0..12).map(f64::from).collect::<Vec<_>>())?;
        let big = Datatype::float(2, ByteOrder::Big).unwrap();
        let half = file.root().new_dataset_with_type(big).shape(&[2]).create("half")?;
        half.write_values(.., &[Value::Float64(1.5), Value::Float64(-2.0)])?;
        let int = Datatype::integer(8, ByteOrder::Big, Sign::Signed);
        file.root().new_dataset_with_type(int).shape(&[2]).create("int")?.write(&[i64::MIN, 7])?;
        file.new_dataset::<f32>().shape(&[3]).create("gaps")?.write(&[f32::NAN, f32::INFINITY, 0.5])?;
        file.new_dataset::<bool>().shape(&[2]).create("flags")?.write(&[true, false])?;
        file.new_dataset::<String>().shape(&[2]).create("texts")?.write(&["a\"b".to_owned(), "ä".to_owned()])?;
        file.new_dataset::<i32>().create("scalar")?.write_scalar(&5)?;
        file.new_dataset::<[u8; 2]>().shape(&[2]).create("pairs")?.write(&[[1, 2], [3, 4]])?;
        file.new_dataset::<Vec<u16>>().shape(&[2]).create("lists")?.write(&[vec![1, 2, 3], vec![]])?;
        Ok(())
    });
    served
}

#[test]
fn elements_are_lists_in_json() {
    let served = served_numbers();
    let data = |query: &str| served.json(&format!("/data?file=a.h5&path=/{query}"));
    assert_eq!(data("image"), json!([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]));
    assert_eq!(data("image&selection=1"), json!([4.0, 5.0, 6.0, 7.0]));
    assert_eq!(data("image&selection=1,-1"), json!(7.0));
    assert_eq!(data("image&selection=::2,1:3"), json!([[1.0, 2.0], [9.0, 10.0]]));
    assert_eq!(data("image&selection=0:2,1&flatten=true"), json!([1.0, 5.0]));
    assert_eq!(data("image&selection=5:,:"), json!([]));
    assert_eq!(data("gaps"), json!([null, null, 0.5]));
    assert_eq!(data("half"), json!([1.5, -2.0]));
    assert_eq!(data("int"), json!([i64::MIN, 7]));
    assert_eq!(data("flags"), json!([true, false]));
    assert_eq!(data("texts"), json!(["a\"b", "ä"]));
    assert_eq!(data("scalar"), json!(5));
    assert_eq!(data("scalar&flatten=true"), json!(5));
    assert_eq!(data("pairs"), json!([[1, 2], [3, 4]]));
    assert_eq!(data("pairs&flatten=true"), json!([1, 2, 3, 4]));
    assert_eq!(data("lists"), json!([[1, 2, 3], []]));
}

#[test]
fn texts_of_fixed_length_end_before_their_zeros() {
    let served = Served::new();
    let padded = |padding| Datatype::String(FixedStringType { size: 4, padding, character_set: CharacterSet::Ascii });
    make(&served.file("a.h5"), |file| {
        for (name, padding) in [("null", StringPadding::NullPadded), ("space", StringPadding::SpacePadded)] {
            let texts = file.root().new_dataset_with_type(padded(padding)).shape(&[3]).create(name)?;
            texts.write_raw(.., b"ab\0\0a\0c\0xyz ")?;
        }
        Ok(())
    });
    assert_eq!(served.json("/data?file=a.h5&path=/null"), json!(["ab", "a\0c", "xyz "]));
    assert_eq!(served.json("/data?file=a.h5&path=/space"), json!(["ab", "a\0c", "xyz"]));
}

#[test]
fn arrays_of_any_elements_are_lists_of_their_dimensions() {
    let served = Served::new();
    let square_of = |base| Datatype::Array(ArrayType { dims: vec![2, 2], base: Box::new(base) });
    make(&served.file("a.h5"), |file| {
        let texts = Datatype::fixed_string(1, CharacterSet::Ascii);
        let square = file.root().new_dataset_with_type(square_of(texts)).shape(&[2]).create("texts")?;
        square.write_raw(.., b"abcdefgh")?;
        let list = |numbers: &[i128]| Value::List(numbers.iter().copied().map(Value::Integer).collect());
        let pair = |a: &[i128], b: &[i128]| Value::List(vec![list(a), list(b)]);
        let lists = file.root().new_dataset_with_type(square_of(Vec::<u16>::datatype())).create("lists")?;
        lists.write_values(.., &[Value::List(vec![pair(&[1], &[]), pair(&[2, 3], &[4])])])
    });
    assert_eq!(served.json("/data?file=a.h5&path=/texts"), json!([[["a", "b"], ["c", "d"]], [["e", "f"], ["g", "h"]]]));
    assert_eq!(served.json("/data?file=a.h5&path=/lists"), json!([[[1], []], [[2, 3], [4]]]));
    let flat = |path: &str| served.json(&format!("/data?file=a.h5&path={path}&flatten=true"));
    assert_eq!(flat("/texts"), json!(["a", "b", "c", "d", "e", "f", "g", "h"]));
    assert_eq!(flat("/lists"), json!([[1], [], [2, 3], [4]]));
}

#[test]
fn compounds_are_lists_and_enums_are_numbers() {
    let served = Served::new();
    let level = Datatype::Enum(h5live::model::EnumType {
        base: Datatype::integer(2, ByteOrder::Big, Sign::Signed).into(),
        members: vec![
            h5live::model::EnumMember { name: "low".into(), value: vec![0xff, 0xfe] },
            h5live::model::EnumMember { name: "high".into(), value: vec![1, 0] },
        ],
    });
    let row = Datatype::compound([("level", level.clone()), ("text", Datatype::fixed_string(3, Default::default()))]);
    make(&served.file("a.h5"), |file| {
        let levels = file.root().new_dataset_with_type(level).shape(&[2]).create("levels")?;
        levels.write_values(.., &[Value::EnumName("low".into()), Value::EnumName("high".into())])?;
        let rows = file.root().new_dataset_with_type(row).shape(&[1]).create("rows")?;
        let value = vec![Value::EnumName("high".into()), Value::Text("ab".into())];
        rows.write_values(.., &[Value::List(value)])
    });
    assert_eq!(served.json("/data?file=a.h5&path=/levels"), json!([-2, 256]));
    assert_eq!(served.get("/data?file=a.h5&path=/levels&format=bin&dtype=safe").body, [0xfe, 0xff, 0, 1]);
    assert_eq!(served.json("/data?file=a.h5&path=/rows"), json!([[256, "ab"]]));
    served.refused("/data?file=a.h5&path=/rows&format=npy", 422, "Unsupported encoding npy for non-numeric content");
}

#[test]
fn bytes_are_those_of_the_file_or_what_javascript_takes() {
    let served = served_numbers();
    let bytes = |query: &str| {
        let response = served.get(&format!("/data?file=a.h5&path=/{query}&format=bin"));
        assert_eq!((response.status, &*response.headers["content-type"]), (200, "application/octet-stream"));
        response.body
    };
    assert_eq!(bytes("image&selection=0,1:3"), [1.0f64.to_le_bytes(), 2.0f64.to_le_bytes()].concat());
    assert_eq!(bytes("half"), [0x3e, 0x00, 0xc0, 0x00]);
    assert_eq!(bytes("half&dtype=safe"), [1.5f32.to_le_bytes(), (-2.0f32).to_le_bytes()].concat());
    assert_eq!(bytes("int"), [i64::MIN.to_be_bytes(), 7i64.to_be_bytes()].concat());
    assert_eq!(bytes("int&dtype=safe"), [i64::MIN.to_le_bytes(), 7i64.to_le_bytes()].concat());
    assert_eq!(bytes("flags&dtype=safe"), [1, 0]);
    assert_eq!(bytes("scalar"), 5i32.to_le_bytes());
    assert_eq!(bytes("pairs"), [1, 2, 3, 4]);
    served.refused("/data?file=a.h5&path=/texts&format=bin", 422, "variable length");
    served.refused("/data?file=a.h5&path=/texts&dtype=safe", 422, "Unsupported dtype safe for non-numeric data");
}

#[test]
fn files_can_be_saved() {
    let served = served_numbers();
    let npy = served.get("/data?file=a.h5&path=/image&format=npy");
    assert_eq!(npy.headers["content-disposition"], "attachment; filename=\"data.npy\"");
    assert_eq!(npy.body[..8], *b"\x93NUMPY\x01\x00");
    assert_eq!(npy.body.len() % 64, 96 % 64);
    let csv = served.get("/data?file=a.h5&path=/image&format=csv&selection=:2,:2");
    assert_eq!((&*csv.headers["content-type"], csv.text().lines().count()), ("text/csv", 2));
    assert!(csv.text().starts_with("0.000000000000000000e+00,1.000000000000000000e+00\n4."), "{}", csv.text());
    let tiff = served.get("/data?file=a.h5&path=/image&format=tiff");
    assert_eq!((&*tiff.headers["content-type"], &tiff.body[..4]), ("image/tiff", &b"II*\0"[..]));
    assert_eq!(tiff.body[tiff.body.len() - 8..], 11.0f64.to_le_bytes());
    for format in ["csv", "tiff"] {
        let words = format!("Unsupported encoding {format}");
        served.refused(&format!("/data?file=a.h5&path=/scalar&format={format}"), 422, &words);
        served.refused(&format!("/data?file=a.h5&path=/texts&format={format}"), 422, &words);
    }
    assert_eq!(served.get("/data?file=a.h5&path=/scalar&format=npy").status, 200);
}

#[test]
fn wrong_arguments_are_told() {
    let served = served_numbers();
    for (query, words) in [
        ("image&selection=1,2,3", "has too many members to slice 2 dimensions"),
        ("image&selection=3", "Index (3) out of range for (0-2)"),
        ("image&selection=a", "is not an integer of a selection"),
        ("image&selection=::-1", "Step must be >= 1"),
        ("image&format=foo", "Unsupported encoding foo"),
        ("image&dtype=foo", "Unsupported dtype foo"),
        ("image&flatten=maybe", "maybe"),
    ] {
        served.refused(&format!("/data?file=a.h5&path=/{query}"), 422, words);
    }
}

#[test]
fn statistics_are_of_finite_numbers() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| {
        let values = [-10.0, -5.0, -1.0, 0.0, 1.0, 5.0, 10.0, f64::NAN, f64::INFINITY];
        file.new_dataset::<f64>().shape(&[9]).create("data")?.write(&values)?;
        file.new_dataset::<i64>().create("scalar")?.write_scalar(&-10)?;
        file.new_dataset::<f64>().shape(&[0]).create("empty")?;
        file.new_dataset::<String>().shape(&[1]).create("texts")?;
        Ok(())
    });
    let stats = |path: &str| served.json(&format!("/stats?file=a.h5&path=/{path}"));
    let expected =
        json!({ "strict_positive_min": 1.0, "positive_min": 0.0, "min": -10.0, "max": 10.0, "mean": 0.0, "std": 6.0 });
    assert_eq!(stats("data"), expected);
    let scalar =
        json!({ "strict_positive_min": null, "positive_min": null, "min": -10, "max": -10, "mean": -10, "std": 0 });
    assert_eq!(stats("scalar"), scalar);
    assert!(stats("empty").as_object().unwrap().values().all(serde_json::Value::is_null));
    assert_eq!(stats("data&selection=4:6")["mean"], 3.0);
    served.refused("/stats?file=a.h5&path=/texts", 422, "numbers");
}

#[test]
fn a_client_that_has_the_answer_is_told_so() {
    let served = served_numbers();
    let path = "/data?file=a.h5&path=/image&format=bin";
    let first = served.get(path);
    let etag = &first.headers["etag"];
    let again = served.get_with(path, &[("if-none-match", etag)]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    // The session of the request ends by itself, and lets the writer in.
    let file = loop {
        match h5live::File::options().write().open(served.file("a.h5")) {
            Err(error) if error.is_in_use() => std::thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    file.dataset("image").unwrap().write_slice((0, 0..1), &[7.0]).unwrap();
    file.close().unwrap();
    let changed = served.get_with(path, &[("if-none-match", etag)]);
    assert_eq!((changed.status, &changed.body[..8]), (200, &7.0f64.to_le_bytes()[..]));
    let head = crate::client::request(served.address(), "HEAD", path, &[]);
    assert_eq!((head.status, &*head.headers["content-length"]), (200, "96"));
}

#[test]
fn integers_that_do_not_use_all_their_bits_are_numbers() {
    let served = Served::new();
    let integer = |order| h5live::model::IntegerType {
        size: 8,
        order,
        sign: Sign::Signed,
        precision: 33,
        ..h5live::model::IntegerType::default()
    };
    make(&served.file("a.h5"), |file| {
        for (name, order) in [("big", ByteOrder::Big), ("little", ByteOrder::Little)] {
            let mut bytes = [0xa5, 0xa5, 0xa5, 0xa4, 0, 0, 0, 7, 0x5a, 0x5a, 0x5a, 0x5b, 0xff, 0xff, 0xff, 0xfe];
            if order == ByteOrder::Little {
                bytes.chunks_mut(8).for_each(<[u8]>::reverse);
            }
            let data = file.root().new_dataset_with_type(Datatype::Integer(integer(order))).shape(&[2]).create(name)?;
            data.write_raw(.., &bytes)?;
        }
        Ok(())
    });
    for name in ["big", "little"] {
        let data = |query: &str| served.get(&format!("/data?file=a.h5&path=/{name}{query}"));
        assert_eq!(data("").json(), json!([7, -2]), "{name}");
        assert_eq!(
            data("&format=bin&dtype=safe").body,
            [[7, 0, 0, 0, 0, 0, 0, 0], [0xfe, 255, 255, 255, 255, 255, 255, 255]].concat()
        );
        let origin = data("&format=bin").body;
        let mut wanted = data("&format=bin&dtype=safe").body;
        if name == "big" {
            wanted.chunks_mut(8).for_each(<[u8]>::reverse);
        }
        assert_eq!(origin, wanted, "{name}");
    }
}
