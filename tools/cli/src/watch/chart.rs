//! Charts of datasets: numbers along their rows.

use crate::model::{DatasetSpec, Datatype};
use crate::value::Value;

use super::image::Image;
use super::spark::sparkline;

/// Lines that the image of a frame may take.
const IMAGE_LINES: usize = 16;
/// Names of members are cut to this (characters).
const NAME_WIDTH: usize = 18;

/// The form of a dataset in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chart {
    /// A line of blocks for the numbers, or for each numeric member, of the newest rows.
    SparklinePerMember,
    /// A line of blocks across the newest row.
    NewestRowSparkline,
    /// The newest row as an image of this many rows and columns.
    ImageOfNewestRow(usize, usize),
}

impl Chart {
    /// The picture that suits a dataset.
    pub fn for_spec(spec: &DatasetSpec) -> Chart {
        match spec.dataspace.dims() {
            [_, .., rows, columns] if is_number(&spec.datatype) => {
                Chart::ImageOfNewestRow(*rows as usize, *columns as usize)
            }
            [_, columns] if is_number(&spec.datatype) && *columns > 8 => Chart::NewestRowSparkline,
            _ => Chart::SparklinePerMember,
        }
    }

    /// Rows that are needed for a picture of `width` characters.
    pub fn rows_needed(self, width: usize) -> u64 {
        match self {
            Chart::SparklinePerMember => width as u64 * 4,
            Chart::NewestRowSparkline | Chart::ImageOfNewestRow(..) => 1,
        }
    }

    /// The lines of the picture of `rows`, which are the stored bytes of rows of `elements_per_row` elements each.
    pub fn draw(self, datatype: &Datatype, elements_per_row: usize, rows: &[u8], width: usize) -> Vec<String> {
        let row_bytes = (datatype.size() as usize).saturating_mul(elements_per_row).max(1);
        let newest = rows.chunks_exact(row_bytes).next_back().unwrap_or_default();
        match self {
            Chart::SparklinePerMember => lines(datatype, elements_per_row, rows, width),
            Chart::NewestRowSparkline => vec![sparkline(&numbers(datatype, newest), width)],
            Chart::ImageOfNewestRow(rows, columns) => {
                // Of a row of several images, the first.
                let pixels = numbers(
                    datatype,
                    newest
                        .get(..rows.saturating_mul(columns).saturating_mul(datatype.size() as usize))
                        .unwrap_or_default(),
                );
                let Some(image) = Image::new(rows, columns, pixels) else {
                    return Vec::new();
                };
                let (low, high) = image.range();
                let mut lines = image.shrink_to_at_most(2 * IMAGE_LINES, width).half_block_lines();
                lines.push(format!("{rows} x {columns} pixels from {low} (dark) to {high} (light)"));
                lines
            }
        }
    }
}

fn is_number(datatype: &Datatype) -> bool {
    matches!(datatype, Datatype::Integer(_) | Datatype::Float(_) | Datatype::Enum(_))
}

fn numbers(datatype: &Datatype, bytes: &[u8]) -> Vec<f64> {
    let values = Value::decode_all(datatype, bytes, None).unwrap_or_default();
    values.iter().map(|value| value.number().unwrap_or(f64::NAN)).collect()
}

/// A line for the first element of the rows, or for each of its numeric members.
fn lines(datatype: &Datatype, row_elements: usize, rows: &[u8], width: usize) -> Vec<String> {
    let size = datatype.size() as usize;
    let firsts = || rows.chunks_exact(size.saturating_mul(row_elements).max(1)).filter_map(|row| row.get(..size));
    match datatype {
        Datatype::Compound(compound) => {
            let numeric = compound.members.iter().filter(|m| is_number(&m.datatype));
            let line = |member: &crate::model::CompoundMember| {
                let start = member.offset as usize;
                let end = start + member.datatype.size() as usize;
                let part: Vec<_> = firsts().filter_map(|row| row.get(start..end)).flatten().copied().collect();
                labelled_sparkline(&member.name.to_string(), &numbers(&member.datatype, &part), width)
            };
            numeric.map(line).collect()
        }
        _ if is_number(datatype) => {
            let part: Vec<_> = firsts().flatten().copied().collect();
            vec![labelled_sparkline("", &numbers(datatype, &part), width)]
        }
        _ => Vec::new(),
    }
}

/// A name, the newest number, and the way there.
pub fn labelled_sparkline(name: &str, numbers: &[f64], width: usize) -> String {
    let name: String = name.chars().take(NAME_WIDTH).collect();
    let newest = numbers.last().map_or(String::new(), |n| short(*n));
    let label = if name.is_empty() { format!("{newest:>10}  ") } else { format!("{name:NAME_WIDTH$} {newest:>10}  ") };
    let left = width.saturating_sub(label.chars().count());
    label + &sparkline(numbers, left)
}

/// A number in at most ten characters.
fn short(number: f64) -> String {
    let plain = format!("{number}");
    if plain.len() <= 10 {
        return plain;
    }
    let fixed = format!("{number:.3}");
    if fixed.len() <= 10 && number.abs() >= 0.001 { fixed } else { format!("{number:.3e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ByteOrder, CompoundMember, CompoundType, Dataspace, Shape, Sign};

    fn u8_type() -> Datatype {
        Datatype::integer(1, ByteOrder::Little, Sign::Unsigned)
    }

    fn spec(datatype: Datatype, dims: &[u64]) -> DatasetSpec {
        DatasetSpec { datatype, dataspace: Dataspace::Simple(Shape::fixed(dims)), ..Default::default() }
    }

    #[test]
    fn the_picture_suits_the_dataset() {
        assert_eq!(Chart::for_spec(&spec(u8_type(), &[5])), Chart::SparklinePerMember);
        assert_eq!(Chart::for_spec(&spec(u8_type(), &[5, 3])), Chart::SparklinePerMember);
        assert_eq!(Chart::for_spec(&spec(u8_type(), &[5, 64])), Chart::NewestRowSparkline);
        assert_eq!(Chart::for_spec(&spec(u8_type(), &[5, 2, 64])), Chart::ImageOfNewestRow(2, 64));
        assert_eq!(Chart::for_spec(&spec(u8_type(), &[])), Chart::SparklinePerMember);
    }

    #[test]
    fn every_numeric_member_has_a_line() {
        let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
        let text = Datatype::fixed_string(1, Default::default());
        let members = vec![member("a", 0, u8_type()), member("s", 1, text), member("b", 2, u8_type())];
        let datatype = Datatype::Compound(CompoundType { size: 3, members });
        let lines = Chart::SparklinePerMember.draw(&datatype, 1, &[0, 65, 9, 7, 65, 9], 40);
        assert_eq!(lines, ["a                           7  ▁█", "b                           9  ▁▁"]);
    }

    #[test]
    fn frames_are_drawn_with_their_range() {
        let lines = Chart::ImageOfNewestRow(2, 2).draw(&u8_type(), 4, &[9, 9, 9, 9, 0, 1, 2, 3], 40);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1], "2 x 2 pixels from 0 (dark) to 3 (light)");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(Chart::ImageOfNewestRow(2, 2).draw(&u8_type(), 4, &[], 40), Vec::<String>::new());
        assert_eq!(Chart::NewestRowSparkline.draw(&u8_type(), 4, &[], 40), [""]);
    }

    #[test]
    fn numbers_take_ten_characters_at_most() {
        let text = [7.0, 0.1, 123456.123456, 1e-12, 123456789012.0].map(short);
        assert_eq!(text, ["7", "0.1", "123456.123", "1.000e-12", "1.235e11"]);
    }
}
