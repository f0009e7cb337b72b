use h5live_model::Datatype;

use super::*;
use crate::convert::NumberPlan;
use crate::{Dataset, ErrorKind, File, FixedStr, H5Type, UNLIMITED, Value};

/// Whether a value is kept, in every byte order on both sides.
fn is_kept<S: Number, D: Number>(value: S) -> bool {
    let orders = [ByteOrder::Little, ByteOrder::Big];
    let pairs = orders.into_iter().flat_map(|from| orders.map(|to| (from, to)));
    let mut kept = pairs.map(|(from, to)| {
        let (stored, target) = (S::NATIVE.datatype(from), D::NATIVE.datatype(to));
        let (mut element, mut out) = (vec![0; size_of::<S>()], vec![0; size_of::<D>()]);
        let store = NumberPlan::new(&S::NATIVE.datatype(ByteOrder::NATIVE), &stored).unwrap().unwrap();
        store.convert_values(bytemuck::bytes_of(&value), &mut element);
        let plan = NumberPlan::new(&stored, &target).unwrap().unwrap();
        plan.convert(&element, &mut out, ConversionPolicy::Checked).is_ok()
    });
    let first = kept.next().unwrap();
    assert!(kept.all(|kept| kept == first));
    first
}

#[test]
fn integers_are_kept_where_they_are_in_range() {
    assert!(is_kept::<i32, u16>(65535) && is_kept::<u64, i8>(127) && is_kept::<i64, u64>(0));
    assert!(!is_kept::<i32, u16>(65536) && !is_kept::<i32, u16>(-1) && !is_kept::<u64, i8>(128));
    assert!(!is_kept::<i32, u32>(-1) && !is_kept::<u32, i32>(u32::MAX) && !is_kept::<i64, u64>(i64::MIN));
    assert!(is_kept::<u32, i64>(u32::MAX) && is_kept::<u8, u8>(255));
}

#[test]
fn integers_are_kept_in_floats_that_do_not_round_them() {
    assert!(is_kept::<i64, f64>(1 << 53) && is_kept::<i64, f64>(i64::MIN) && is_kept::<u64, f32>(1 << 63));
    assert!(!is_kept::<i64, f64>((1 << 53) + 1) && !is_kept::<i64, f64>(i64::MAX) && !is_kept::<u64, f64>(u64::MAX));
    assert!(!is_kept::<u32, f32>(u32::MAX) && !is_kept::<i32, f32>(16_777_217) && is_kept::<i32, f64>(i32::MAX));
}

#[test]
fn floats_are_kept_in_integers_only_without_a_fraction() {
    assert!(is_kept::<f64, u16>(7.0) && is_kept::<f64, i8>(-0.0) && is_kept::<f32, i64>(-9e18));
    assert!(!is_kept::<f64, u16>(1.5) && !is_kept::<f64, u16>(-1.0) && !is_kept::<f64, i32>(f64::NAN));
    assert!(!is_kept::<f64, i64>(9_223_372_036_854_775_808.0) && !is_kept::<f32, u32>(4_294_967_296.0));
    assert!(!is_kept::<f64, u64>(f64::INFINITY));
}

#[test]
fn floats_are_rounded_but_do_not_become_infinite() {
    assert!(is_kept::<f64, f32>(0.1) && is_kept::<f64, f32>(f64::INFINITY) && is_kept::<f64, f32>(f64::NAN));
    assert!(!is_kept::<f64, f32>(1e300) && is_kept::<f32, f64>(f32::MAX));
}

#[test]
fn numbers_of_other_layouts_are_compared_as_well() {
    let odd =
        Datatype::Integer(IntegerType { size: 2, precision: 10, offset: 3, sign: Sign::Signed, ..Default::default() });
    let half = Datatype::float(2, ByteOrder::Big).unwrap();
    let kept = |from: &Datatype, to: &Datatype, bytes: &[u8]| {
        let plan = NumberPlan::new(from, to).unwrap().unwrap();
        plan.convert(bytes, &mut vec![0; plan.output_size()], ConversionPolicy::Checked)
            .map_err(|error| error.to_string())
    };
    let wide = i32::datatype();
    assert_eq!(kept(&wide, &odd, &511i32.to_le_bytes()), Ok(()));
    let error = "512 does not fit i10 (it would become 511)";
    assert_eq!(kept(&wide, &odd, &512i32.to_le_bytes()), Err(error.into()));
    assert_eq!(
        kept(&wide, &half, &2049i32.to_le_bytes()),
        Err("2049 does not fit f16 (it would become 2048.0)".into())
    );
    assert_eq!(kept(&f64::datatype(), &half, &0.1f64.to_le_bytes()), Ok(()));
    let error = "70000.0 does not fit f16 (it would become inf)";
    assert_eq!(kept(&f64::datatype(), &half, &7e4f64.to_le_bytes()), Err(error.into()));
}

fn grows<T: H5Type>(file: &File, path: &str) -> Dataset {
    file.new_dataset::<T>().shape(&[0]).max_shape(&[UNLIMITED]).create(path).unwrap()
}

fn said<T: std::fmt::Debug>(result: crate::Result<T>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Convert(_)), "{error}");
    error.to_string()
}

#[test]
fn a_value_that_does_not_fit_is_refused_by_every_way_to_write() {
    let file = File::in_memory();
    let data = grows::<u16>(&file, "data");
    assert!(said(data.append(&[1.0, 1.5])).ends_with("data: values[1]: 1.5 does not fit u16 (it would become 1)"));
    assert!(said(data.append(&[-1i32])).ends_with("values[0]: -1 does not fit u16 (it would become 0)"));
    assert!(
        said(data.append_values(&[Value::Integer(65536)]))
            .ends_with("values[0]: 65536 does not fit u16 (it would become 65535)")
    );
    assert_eq!(data.shape().unwrap(), [0]);
    data.append(&[1.0, 2.0]).unwrap();
    assert!(said(data.write(&[3i64, 1 << 40])).contains("values[1]: 1099511627776"));
    assert!(said(data.write_values(1.., &[Value::Float64(0.5)])).contains("values[0]: 0.5"));
    let root = file.root();
    assert!(said(root.new_attribute("a").datatype(u8::datatype()).write(&[256])).contains("256 does not fit u8"));
    let set = root.new_attribute("a").datatype(u8::datatype()).write_values(&[Value::Integer(-1)]);
    assert!(said(set).contains("-1 does not fit u8"));
    let float = grows::<f64>(&file, "float");
    assert!(said(float.append_values(&[Value::Integer((1 << 53) + 1)])).contains("9007199254740993 does not fit f64"));
    assert!(said(float.append(&[u64::MAX])).contains("18446744073709551615 does not fit f64"));
    assert!(file.new_dataset::<u8>().fill(256i32).shape(&[1]).create("fill").is_err());
}

#[test]
fn a_value_that_does_not_fit_is_refused_by_every_way_to_read() {
    let file = File::in_memory();
    let values = [1.0, 2.5, 300.0];
    let data = file.new_dataset::<f64>().create_with_data("data", &values).unwrap();
    assert!(said(data.read::<u8>()).ends_with("values[1]: 2.5 does not fit u8 (it would become 2)"));
    assert!(said(data.read_slice::<u8>(2..)).contains("values[0]: 300.0 does not fit u8 (it would become 255)"));
    assert!(said(data.read_as(0.., &u8::datatype())).contains("2.5 does not fit u8"));
    file.root().new_attribute("a").shape(&[3]).write(&values).unwrap();
    assert!(said(file.root().attribute("a").unwrap().read::<i8>()).contains("2.5 does not fit i8"));
    let texts = file.new_dataset::<String>().create_with_data("texts", &["four".to_owned()]).unwrap();
    assert!(said(texts.read::<FixedStr<3>>()).contains("a string of 4 bytes does not fit 3"));
    let short = Datatype::fixed_string(3, h5live_model::CharacterSet::Utf8);
    assert!(said(texts.read_as(0.., &short)).contains("a string of 4 bytes does not fit 3"));
}

#[test]
fn a_lossy_handle_takes_the_nearest_values() {
    let file = File::in_memory();
    let data = grows::<u16>(&file, "data").with_conversion(ConversionPolicy::Lossy);
    data.append(&[1.5, -1.0, 1e9]).unwrap();
    data.append_values(&[Value::Integer(-7), Value::Float64(2.9)]).unwrap();
    assert_eq!(data.read::<u16>().unwrap(), [1, 0, 65535, 0, 2]);
    assert_eq!(data.read::<u8>().unwrap(), [1, 0, 255, 0, 2]);
    assert!(file.dataset("data").unwrap().read::<u8>().is_err());
}

#[test]
fn a_file_can_be_lossy_as_a_whole() {
    let file = File::options().conversion(ConversionPolicy::Lossy).create().open_image(Vec::new()).unwrap();
    grows::<u8>(&file, "data").append(&[300]).unwrap();
    assert_eq!(file.dataset("data").unwrap().read::<u8>().unwrap(), [255]);
    file.root().new_attribute("a").datatype(u8::datatype()).write(&[-5]).unwrap();
    file.root().new_attribute("b").datatype(u8::datatype()).write_values(&[Value::Float64(7.7)]).unwrap();
    assert_eq!(file.root().attribute("a").unwrap().read::<u8>().unwrap(), [0]);
    assert_eq!(file.root().attribute("b").unwrap().read::<u8>().unwrap(), [7]);
}
