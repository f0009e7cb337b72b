//! Conversions against those of libhdf5.

use std::collections::HashMap;

use h5live_model::{ByteOrder, Datatype, FloatType, IntegerType, Normalization, Sign};

use super::NumberPlan;

fn datatype(words: &[&str]) -> Datatype {
    let n = |i: usize| words[i].parse::<u32>().unwrap();
    let order = if words[2] == "be" { ByteOrder::Big } else { ByteOrder::Little };
    let (size, precision, offset) = (n(1), n(3) as u16, n(4) as u16);
    if words[0] == "int" {
        let sign = if words[5] == "s" { Sign::Signed } else { Sign::Unsigned };
        return Datatype::Integer(IntegerType { size, order, sign, offset, precision, ..IntegerType::default() });
    }
    Datatype::Float(FloatType {
        size,
        order,
        offset,
        precision,
        sign_position: n(5) as u8,
        exponent_position: n(6) as u8,
        exponent_size: n(7) as u8,
        mantissa_position: n(8) as u8,
        mantissa_size: n(9) as u8,
        exponent_bias: n(10),
        normalization: [Normalization::Implied, Normalization::MsbSet, Normalization::None][n(11) as usize],
        ..FloatType::default()
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// `tests/data/conversions.txt` is what `H5Tconvert` of HDF5 2.0 makes of values at the edges of each type: lines
/// `type NAME class size order precision offset (sign | sign exponent+size mantissa+size bias normalisation)`, and
/// `conv FROM TO bytes bytes`.
///
/// Not in it is what libhdf5 leaves to the undefined behaviour of C (floats that are not numbers, or just one above the
/// largest integer, to integers), and where it errs: negative fractions between -0.5 and 0 become the smallest integer
/// when it converts them itself, the infinite become nothing in integers with an offset, and what is not a number has
/// other bits.
#[test]
fn converts_as_libhdf5_does() {
    let text = include_str!("../../tests/data/conversions.txt");
    let mut types = HashMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "type" {
            types.insert(words[1].to_owned(), datatype(&words[2..]));
            continue;
        }
        let (from, to) = (&types[words[1]], &types[words[2]]);
        let plan = NumberPlan::new(from, to).unwrap().unwrap();
        let (input, want) = (bytes(words[3]), bytes(words[4]));
        let mut got = vec![0; want.len()];
        plan.convert_values(&input, &mut got);
        assert_eq!(got, want, "{} to {}: {input:02x?}", words[1], words[2]);
    }
}
