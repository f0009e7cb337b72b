//! Previews of images: two rows of pixels to a line of half blocks in shades of grey.

use std::fmt::Write;

/// An image of `columns` x `rows` pixels in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    rows: usize,
    columns: usize,
    pixels: Vec<f64>,
}

impl Image {
    /// An image of `rows` x `columns` pixels (row-major); `None` if the number of pixels is another one.
    pub fn new(rows: usize, columns: usize, pixels: Vec<f64>) -> Option<Self> {
        (rows.checked_mul(columns) == Some(pixels.len()) && !pixels.is_empty()).then_some(Image {
            rows,
            columns,
            pixels,
        })
    }

    /// The image shrunk, with its proportions kept, to at most `rows` x `columns` pixels: means of boxes.
    pub fn shrink_to_at_most(&self, rows: usize, columns: usize) -> Image {
        let factor = (self.rows.div_ceil(rows.max(1))).max(self.columns.div_ceil(columns.max(1))).max(1);
        let (small_rows, small_columns) = (self.rows.div_ceil(factor), self.columns.div_ceil(factor));
        let mut pixels = Vec::with_capacity(small_rows * small_columns);
        for r in 0..small_rows {
            for c in 0..small_columns {
                pixels.push(self.mean(r * factor, c * factor, factor));
            }
        }
        Image { rows: small_rows, columns: small_columns, pixels }
    }

    fn mean(&self, row: usize, column: usize, size: usize) -> f64 {
        let rows = row..(row + size).min(self.rows);
        let columns = column..(column + size).min(self.columns);
        let pixels = rows.flat_map(|r| columns.clone().map(move |c| (r, c))).map(|(r, c)| self.at(r, c));
        let (sum, count) = pixels.filter(|p| p.is_finite()).fold((0.0, 0u32), |(sum, n), p| (sum + p, n + 1));
        sum / f64::from(count)
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.pixels.get(row * self.columns + column).copied().unwrap_or(f64::NAN)
    }

    /// The smallest and the largest finite pixel.
    pub fn range(&self) -> (f64, f64) {
        let finite = self.pixels.iter().copied().filter(|p| p.is_finite());
        (finite.clone().fold(f64::INFINITY, f64::min), finite.fold(f64::NEG_INFINITY, f64::max))
    }

    /// Lines of half blocks in the 24 greys of a 256-colour terminal, the darkest for the smallest pixel.
    pub fn half_block_lines(&self) -> Vec<String> {
        let (low, high) = self.range();
        let grey = |pixel: f64| match (pixel - low) / (high - low) {
            part if part.is_finite() => 232 + (part * 23.0).round() as u8,
            _ => 232,
        };
        let line = |upper: usize| {
            let mut line = String::new();
            for c in 0..self.columns {
                let lower = if upper + 1 < self.rows { grey(self.at(upper + 1, c)) } else { 232 };
                let _ = write!(line, "\x1b[38;5;{}m\x1b[48;5;{lower}m▀", grey(self.at(upper, c)));
            }
            line + "\x1b[0m"
        };
        (0..self.rows).step_by(2).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rows_of_pixels_make_a_line() {
        let image = Image::new(3, 1, vec![0.0, 23.0, 12.0]).unwrap();
        assert_eq!(
            image.half_block_lines(),
            ["\x1b[38;5;232m\x1b[48;5;255m▀\x1b[0m", "\x1b[38;5;244m\x1b[48;5;232m▀\x1b[0m"]
        );
    }

    #[test]
    fn shrinking_keeps_the_proportions() {
        let image = Image::new(4, 8, (0..32).map(f64::from).collect()).unwrap();
        let small = image.shrink_to_at_most(10, 4);
        assert_eq!((small.rows, small.columns), (2, 4));
        assert_eq!(small.pixels.first(), Some(&4.5), "the mean of 0, 1, 8 and 9");
        assert_eq!(image.shrink_to_at_most(10, 10), image);
    }

    #[test]
    fn an_image_of_one_value_is_dark() {
        assert_eq!(Image::new(1, 1, vec![3.0]).unwrap().half_block_lines(), ["\x1b[38;5;232m\x1b[48;5;232m▀\x1b[0m"]);
        assert_eq!(Image::new(2, 2, vec![3.0]), None);
        assert_eq!(Image::new(0, 2, vec![]), None);
    }
}
