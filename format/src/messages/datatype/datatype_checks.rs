//! The rules that the parts of a datatype keep together, as libhdf5 checks them.

use h5live_model::{CompoundType, Datatype, FloatType};

use crate::{Fault, Result, Wire};

/// The significant bits of a number lie inside its bytes.
pub(super) fn check_bit_range(w: &impl Wire, size: u32, offset: u16, precision: u16) -> Result<()> {
    w.require("bit precision", precision != 0, 0, "must not be 0")?;
    let end = u64::from(offset).saturating_add(precision.into());
    w.require("bit precision", end <= bit_count(size), end, "the significant bits lie inside the element")
}

fn bit_count(size: u32) -> u64 {
    u64::from(size).saturating_mul(8)
}

/// The sign, exponent and mantissa of a float lie inside its bytes and beside each other.
pub(super) fn check_float(w: &impl Wire, t: &FloatType) -> Result<()> {
    let parts = [
        ("sign position", t.sign_position, 1),
        ("exponent size", t.exponent_position, t.exponent_size),
        ("mantissa size", t.mantissa_position, t.mantissa_size),
    ];
    for (field, at, len) in parts {
        w.require(field, len != 0, 0, "must not be 0")?;
        let end = u64::from(at).saturating_add(len.into());
        w.require(field, end <= bit_count(t.size), end, "all parts lie inside the element")?;
    }
    for (i, (_, at, len)) in parts.iter().enumerate() {
        for (field, other, other_len) in parts.iter().skip(i.saturating_add(1)) {
            let overlap = at < &other.saturating_add(*other_len) && other < &at.saturating_add(*len);
            w.require(field, !overlap, (*other).into(), "sign, exponent and mantissa do not overlap")?;
        }
    }
    Ok(())
}

/// The size of an array type.
pub(super) fn checked_array_size(w: &impl Wire, dims: &[u32], base: &Datatype) -> Result<u32> {
    let size = dims.iter().try_fold(u64::from(base.size()), |n, dim| n.checked_mul((*dim).into()));
    let size = size.unwrap_or(u64::MAX);
    let limit = u32::MAX.into();
    u32::try_from(size).map_err(|_| w.fault("dimension", Fault::TooLarge { found: size, limit }))
}

/// The members of a compound type have different names, lie inside it, and do not overlap.
pub(super) fn check_members(w: &impl Wire, t: &CompoundType) -> Result<()> {
    let mut names: Vec<_> = t.members.iter().map(|member| &member.name).collect();
    names.sort_unstable();
    let twice = names.windows(2).position(|pair| matches!(pair, [a, b] if a == b));
    w.require("member name", twice.is_none(), twice.unwrap_or(0) as u64, "no two members have the same name")?;
    let mut places: Vec<(u64, u64)> = t
        .members
        .iter()
        .map(|member| (member.offset.into(), u64::from(member.offset).saturating_add(member.datatype.size().into())))
        .collect();
    places.sort_unstable();
    if let Some((_, end)) = places.iter().find(|(_, end)| *end > t.size.into()) {
        return w.require("member offset", false, *end, "members lie inside the compound");
    }
    let overlap = places.windows(2).find_map(|pair| match pair {
        [(_, end), (start, _)] if start < end => Some(*start),
        _ => None,
    });
    w.require("member offset", overlap.is_none(), overlap.unwrap_or(0), "members do not overlap")
}
