//! Numbers as files: NPY, CSV and TIFF.

use std::fmt::Write as _;

use super::numeric::{Number, NumberKind, NumberType};
use crate::fault::Fault;
use h5live::model::ByteOrder;

/// The header of an NPY file is a multiple of this (bytes).
const NPY_ALIGNMENT: usize = 64;

/// A file of numpy, version 1.0.
pub(super) fn npy(dtype: &str, dims: &[u64], bytes: &[u8]) -> Vec<u8> {
    let dims: Vec<_> = dims.iter().map(u64::to_string).collect();
    let shape = match &dims[..] {
        [only] => format!("({only},)"),
        dims => format!("({})", dims.join(", ")),
    };
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}");
    let unpadded = 10 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(NPY_ALIGNMENT) - unpadded));
    header.push('\n');
    let mut file = Vec::with_capacity(10 + header.len() + bytes.len());
    file.extend(b"\x93NUMPY\x01\x00");
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    file
}

/// A float as C prints it with `%.18e`.
fn push_scientific(text: &mut String, value: f64, plus: &str) {
    if !value.is_finite() {
        let sign = if value.is_nan() || value > 0.0 { plus } else { "-" };
        text.push_str(sign);
        text.push_str(if value.is_nan() { "nan" } else { "inf" });
        return;
    }
    let digits = format!("{value:.18e}");
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    if !mantissa.starts_with('-') {
        text.push_str(plus);
    }
    let _ = write!(text, "{mantissa}e{sign}{exponent:0>2}");
}

/// A text of comma-separated values, as `numpy.savetxt` writes it.
pub(super) fn csv(number: &NumberType, dims: &[u64], bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    let columns = match dims {
        [_] => 1,
        [_, columns] => *columns,
        _ => return Err(Fault::unprocessable(format!("CSV has one or two dimensions, not {}", dims.len()))),
    };
    let float = |number| match number {
        Number::Integer(value) => value as f64,
        Number::Float32(value) => value.into(),
        Number::Float64(value) => value,
    };
    let mut text = String::new();
    let mut parts = number.numbers(bytes).map(float);
    let mut column = 0;
    while let Some(value) = parts.next() {
        match number.kind {
            NumberKind::Complex => {
                text.push_str(" (");
                push_scientific(&mut text, value, "");
                push_scientific(&mut text, parts.next().unwrap_or_default(), "+");
                text.push_str("j)");
            }
            _ => push_scientific(&mut text, value, ""),
        }
        column += 1;
        text.push(if column == columns { '\n' } else { ',' });
        column %= columns.max(1);
    }
    Ok(text.into_bytes())
}

/// An entry of a TIFF directory: the tag, the type (3: 16 bits, 4: 32 bits), the value.
fn tiff_entry(file: &mut Vec<u8>, tag: u16, kind: u16, value: u32) {
    file.extend(tag.to_le_bytes());
    file.extend(kind.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    file.extend(value.to_le_bytes());
}

/// A TIFF file of grey pixels, uncompressed. Dimensions before the last two are pages.
pub(super) fn tiff(number: &NumberType, for_javascript: bool, dims: &[u64], bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    let (size, order) = number.number_size_and_byte_order(for_javascript);
    let sample_format = match number.kind {
        NumberKind::Unsigned | NumberKind::Bool => 1,
        NumberKind::Signed => 2,
        NumberKind::Float => 3,
        NumberKind::Complex => return Err(Fault::unprocessable("TIFF is not for complex numbers")),
    };
    let (height, width) = match dims {
        [width] => (1, *width),
        [.., height, width] => (*height, *width),
        [] => return Err(Fault::unprocessable("Unsupported encoding tiff for empty and scalar datasets")),
    };
    let page = height.saturating_mul(width).saturating_mul(size) as usize;
    let too_large = || Fault::unprocessable("A TIFF file has pixels, and less than 4 GiB of them");
    if page == 0 || u32::try_from(bytes.len()).is_err() {
        return Err(too_large());
    }
    let mut little = bytes.to_vec();
    if order == ByteOrder::Big {
        little.chunks_exact_mut(size as usize).for_each(<[u8]>::reverse);
    }
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    let pages = little.chunks_exact(page);
    let last = pages.len().saturating_sub(1);
    for (n, pixels) in pages.enumerate() {
        let directory_end = file.len() + 2 + 10 * 12 + 4;
        let next = if n == last { 0 } else { (directory_end + page).next_multiple_of(2) };
        let number = |value: usize| u32::try_from(value).map_err(|_| too_large());
        file.extend(10u16.to_le_bytes());
        tiff_entry(&mut file, 256, 4, number(width as usize)?);
        tiff_entry(&mut file, 257, 4, number(height as usize)?);
        tiff_entry(&mut file, 258, 3, number(8 * size as usize)?);
        tiff_entry(&mut file, 259, 3, 1);
        tiff_entry(&mut file, 262, 3, 1);
        tiff_entry(&mut file, 273, 4, number(directory_end)?);
        tiff_entry(&mut file, 277, 3, 1);
        tiff_entry(&mut file, 278, 4, number(height as usize)?);
        tiff_entry(&mut file, 279, 4, number(page)?);
        tiff_entry(&mut file, 339, 3, sample_format);
        file.extend(number(next)?.to_le_bytes());
        file.extend(pixels);
        file.extend(std::iter::repeat_n(0, next.saturating_sub(file.len())));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_c_writes_them() {
        let text = |value: f64, plus: &str| {
            let mut text = String::new();
            push_scientific(&mut text, value, plus);
            text
        };
        assert_eq!(text(1.0, ""), "1.000000000000000000e+00");
        assert_eq!(text(-2.5e-7, "+"), "-2.499999999999999887e-07");
        assert_eq!(text(1e200, "+"), "+9.999999999999999697e+199");
        assert_eq!((text(f64::NAN, ""), text(f64::NEG_INFINITY, "+")), ("nan".into(), "-inf".into()));
    }

    #[test]
    fn the_header_of_npy_is_aligned() {
        let file = npy("<f8", &[2, 3], &[0; 48]);
        assert_eq!((file.len() - 48) % NPY_ALIGNMENT, 0);
        assert!(String::from_utf8_lossy(&file).contains("'shape': (2, 3)"));
        assert!(String::from_utf8_lossy(&npy("<f8", &[1], &[])).contains("'shape': (1,)"));
        assert!(String::from_utf8_lossy(&npy("<f8", &[], &[])).contains("'shape': ()"));
    }
}
