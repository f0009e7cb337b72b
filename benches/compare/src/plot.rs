//! Throughput against the size of chunks, as SVG.

use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;

use crate::report::rate;
use crate::row::Row;
use crate::work::Unit;
use crate::{Error, Result, Side};

const SIZE: (u32, u32) = (760, 440);
/// Each side's colour, told apart also without red and green.
const LINES: [(Side, RGBColor); 3] = [
    (Side::H5live, RGBColor(0, 90, 181)),
    (Side::Libhdf5, RGBColor(220, 90, 20)),
    (Side::Bare, RGBColor(130, 130, 130)),
];

/// `64 KiB`, `4 MiB`.
pub fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

fn points(curve: &[Row], side: Side) -> Vec<(f64, f64)> {
    curve.iter().filter_map(|row| Some((row.chunk as f64, row.rate(side)?.0))).collect()
}

/// 1, 2 and 5 times the powers of ten within a range.
fn steps(range: &Range<f64>) -> Vec<f64> {
    let all = (0..12).flat_map(|power| [1.0, 2.0, 5.0].map(|times| times * 10f64.powi(power)));
    all.filter(|step| range.contains(step)).collect()
}

/// Draws the rows of one work, one line for each side, both axes logarithmic.
pub fn draw(curve: &[Row], path: &Path) -> Result<()> {
    draw_on(curve, path).map_err(|error| Error::Plot(error.to_string()))
}

fn draw_on(curve: &[Row], path: &Path) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let Some(first) = curve.first() else { return Ok(()) };
    let all: Vec<_> = LINES.iter().flat_map(|(side, _)| points(curve, *side)).collect();
    let range = |of: fn(&(f64, f64)) -> f64, room: f64| {
        let values = || all.iter().map(of);
        values().fold(f64::INFINITY, f64::min) / room..values().fold(0.0, f64::max) * room
    };
    let (sizes, rates) = (range(|p| p.0, 1.2), range(|p| p.1, 1.3));
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(first.work.title, ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(88)
        .build_cartesian_2d(
            sizes.log_scale().with_key_points(curve.iter().map(|row| row.chunk as f64).collect()),
            rates.clone().log_scale().with_key_points(steps(&rates)),
        )?;
    chart
        .configure_mesh()
        .x_desc("bytes of a chunk")
        .label_style(("sans-serif", 14))
        .x_label_formatter(&|bytes| size(bytes.round() as u64))
        .y_label_formatter(&|value| rate(Unit::Bytes, *value))
        .bold_line_style(RGBColor(220, 220, 220))
        .draw()?;
    for (side, colour) in LINES {
        let points = points(curve, side);
        if points.is_empty() {
            continue;
        }
        chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(3)))?
            .label(side.to_string())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(3)));
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 4, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .label_font(("sans-serif", 15))
        .background_style(WHITE)
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    area.present()?;
    Ok(())
}
