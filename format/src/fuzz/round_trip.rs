//! That decoder, describer and encoder of a structure agree.

use std::fmt::Debug;

use crate::{Record, Width, Widths, decode_prefix_with, describe, encode};

/// The widths that a byte stands for.
pub fn widths_from_byte(byte: u8) -> Widths {
    const ALL: [Width; 3] = [Width::EIGHT, Width::FOUR, Width::TWO];
    Widths { offset: ALL[usize::from(byte % 3)], length: ALL[usize::from(byte / 3 % 3)] }
}

/// Decodes, describes and encodes. Whether `bytes` begin with such a structure.
///
/// # Panics
/// If the three do not agree with each other.
pub fn assert_round_trip_if_sound<R: Record + Clone + Debug>(blank: &R, bytes: &[u8], widths: Widths) -> bool {
    let decoded = decode_prefix_with(blank.clone(), bytes, widths);
    let (fields, described) = describe(blank.clone(), bytes, widths);
    assert_eq!(decoded.as_ref().err(), described.as_ref().err(), "the describer disagrees with the decoder");
    let mut at = 0;
    for field in &fields {
        assert_eq!(
            field.offset_in_structure, at,
            "{} {} is not where the field before it ends",
            field.record, field.field
        );
        at += field.size;
    }
    let Ok((record, used)) = decoded else { return false };
    assert_eq!(at, used, "fields do not cover {}", R::NAME);
    let Ok(once) = encode(&record, widths) else { panic!("{record:?} was decoded, and cannot be encoded") };
    let (again, len) = decode_prefix_with(blank.clone(), &once, widths)
        .unwrap_or_else(|error| panic!("{record:?} cannot be decoded from its own bytes: {error}"));
    assert_eq!(len, once.len(), "{} encodes more than it decodes", R::NAME);
    assert_eq!(encode(&again, widths).as_deref(), Ok(&once[..]), "{} does not settle", R::NAME);
    true
}
