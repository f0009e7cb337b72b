//! Parts that messages have in common.

use h5live_format::{Fault, Result, Width, Wire};
use h5live_model::{Name, ObjectId};

/// What each message begins with.
pub(super) fn wire_message_head(w: &mut impl Wire) -> Result<()> {
    w.magic("H5LM")?;
    w.version(1..=1, &mut 1)
}

/// A list behind its count. `each_bytes` are the fewest bytes of an item.
pub(super) fn wire_list<W: Wire, T>(
    w: &mut W,
    field: &'static str,
    each_bytes: usize,
    list: &mut Vec<T>,
    make: impl Fn() -> T,
    mut each: impl FnMut(&mut W, &mut T) -> Result<()>,
) -> Result<()> {
    let count = w.derived_uint(field, Width::EIGHT, list.len() as u64)?;
    if !w.is_decoding() {
        return list.iter_mut().try_for_each(|item| each(w, item));
    }
    let count = w.bounded_count(field, count, each_bytes)?;
    list.clear();
    // Items may take more memory than bytes: they are made as they come.
    for _ in 0..count {
        let mut item = make();
        each(w, &mut item)?;
        list.push(item);
    }
    Ok(())
}

/// A byte that says whether something follows, and what follows.
pub(super) fn wire_option<W: Wire, T>(
    w: &mut W,
    field: &'static str,
    option: &mut Option<T>,
    make: impl Fn() -> T,
    each: impl FnOnce(&mut W, &mut T) -> Result<()>,
) -> Result<()> {
    let mut is_there = option.is_some();
    wire_bool(w, field, &mut is_there)?;
    if w.is_decoding() {
        *option = is_there.then(make);
    }
    match option {
        Some(item) => each(w, item),
        None => Ok(()),
    }
}

/// 0 or 1.
pub(super) fn wire_bool(w: &mut impl Wire, field: &'static str, value: &mut bool) -> Result<()> {
    let byte = w.derived_u8(field, u8::from(*value))?;
    w.require(field, byte <= 1, byte.into(), "0 or 1")?;
    *value = byte == 1;
    Ok(())
}

/// One of the values of a type, by its place among them.
pub(super) fn wire_choice<T: Copy + PartialEq>(
    w: &mut impl Wire,
    field: &'static str,
    all: &[T],
    value: &mut T,
) -> Result<()> {
    let place = all.iter().position(|known| known == value).unwrap_or(usize::from(u8::MAX));
    let byte = w.derived_u8(field, u8::try_from(place).unwrap_or(u8::MAX))?;
    let fault = Fault::InvalidValue { found: byte.into(), rule: "one of the known values" };
    *value = all.get(usize::from(byte)).copied().ok_or_else(|| w.fault(field, fault))?;
    Ok(())
}

/// Bytes behind their number.
pub(super) fn wire_blob(w: &mut impl Wire, field: &'static str, bytes: &mut Vec<u8>) -> Result<()> {
    let len = w.derived_uint(field, Width::EIGHT, bytes.len() as u64)?;
    let len = w.bounded_count(field, len, 1)?;
    w.bytes(field, len, bytes)
}

/// A name behind the number of its bytes.
pub(super) fn wire_name(w: &mut impl Wire, field: &'static str, name: &mut Name) -> Result<()> {
    let len = w.derived_uint(field, Width::FOUR, name.as_bytes().len() as u64)?;
    let len = w.bounded_count(field, len, 1)?;
    w.name(field, len, name)
}

/// The identity of an object.
pub(super) fn wire_id(w: &mut impl Wire, field: &'static str, id: &mut ObjectId) -> Result<()> {
    let mut bytes = id.0.to_le_bytes();
    w.byte_array(field, &mut bytes)?;
    *id = ObjectId(u128::from_le_bytes(bytes));
    Ok(())
}

/// A count of dimensions, and a number for each.
pub(super) fn wire_dims(w: &mut impl Wire, field: &'static str, dims: &mut Vec<u64>) -> Result<()> {
    let count = w.derived_u8(field, u8::try_from(dims.len()).unwrap_or(u8::MAX))?;
    let rank = usize::from(count);
    w.require(field, rank <= h5live_model::MAX_RANK, count.into(), "at most 32 dimensions")?;
    if w.is_decoding() {
        dims.clear();
        dims.resize(rank, 0);
    }
    dims.iter_mut().try_for_each(|dim| w.u64(field, dim))
}
