//! Elements as bytes of another datatype than that of the file, both ways.

use h5live_model::{ByteOrder, Datatype, Sign};

use crate::{ConversionPolicy, ErrorKind, File};

fn int(size: u32) -> Datatype {
    Datatype::integer(size, ByteOrder::Little, Sign::Signed)
}

#[test]
fn elements_of_other_types_are_converted_both_ways() {
    let file = File::in_memory();
    let data = file.new_dataset::<i16>().unlimited_rows(&[2]).create("data").unwrap();
    data.append_as(&int(4), &[1, 0, 0, 0, 254, 255, 255, 255]).unwrap();
    data.append_as(&int(2), &[3, 0, 4, 0]).unwrap();
    assert_eq!(data.read::<i16>().unwrap(), [1, -2, 3, 4]);
    data.write_as((1, 0), &int(1), &[255]).unwrap();
    let mut bytes = [0; 4];
    data.read_as_into((.., 0), &int(2), &mut bytes).unwrap();
    assert_eq!(bytes, [1, 0, 255, 255]);
    let error = data.read_as_into(.., &int(2), &mut bytes).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ElementCount { expected: 4, found: 2 }), "{error}");
    assert!(data.append_as(&int(4), &[0, 0, 1, 0, 0, 0, 1, 0]).is_err(), "too large for 16 bits");
    let lossy = data.with_conversion(ConversionPolicy::Lossy);
    lossy.append_as(&int(4), &[0, 0, 1, 0, 0, 0, 255, 255]).unwrap();
    assert_eq!(data.read::<i16>().unwrap(), [1, -2, -1, 4, i16::MAX, i16::MIN]);
}

#[test]
fn members_that_are_not_given_keep_their_values() {
    let file = File::in_memory();
    let both = Datatype::compound([("a", int(1)), ("b", int(2))]);
    let data = file.new_dataset_with_type(both.clone()).unlimited_rows(&[]).create("data").unwrap();
    data.append_as(&both, &[1, 2, 0, 3, 4, 0]).unwrap();
    let one = Datatype::compound([("b", int(4))]);
    data.write_as(1, &one, &[9, 0, 0, 0]).unwrap();
    data.append_as(&one, &[5, 0, 0, 0]).unwrap();
    assert_eq!(data.read_raw(..).unwrap(), [1, 2, 0, 3, 9, 0, 0, 5, 0]);
}
