//! Sparklines: numbers as a line of blocks.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Numbers as a line of at most `width` characters, from the smallest to the largest of them. A number that is not
/// finite is a blank. Several numbers that share a character are shown by their mean.
pub fn sparkline(numbers: &[f64], width: usize) -> String {
    let columns = downsample(numbers, width);
    let finite = columns.iter().copied().filter(|c| c.is_finite());
    let low = finite.clone().fold(f64::INFINITY, f64::min);
    let high = finite.fold(f64::NEG_INFINITY, f64::max);
    columns.iter().map(|c| block(*c, low, high)).collect()
}

fn block(value: f64, low: f64, high: f64) -> char {
    if !value.is_finite() {
        return ' ';
    }
    let part = if high > low { (value - low) / (high - low) } else { 0.0 };
    let step = (part * (BLOCKS.len() - 1) as f64).round() as usize;
    BLOCKS.get(step).copied().unwrap_or('█')
}

/// The means of `width` groups of neighbours, or the numbers themselves if there are fewer.
pub fn downsample(numbers: &[f64], width: usize) -> Vec<f64> {
    let groups = width.min(numbers.len());
    let bound = |i: usize| i * numbers.len() / groups.max(1);
    let mean = |i| {
        let group: Vec<_> = numbers.iter().take(bound(i + 1)).skip(bound(i)).filter(|n| n.is_finite()).collect();
        if group.is_empty() { f64::NAN } else { group.iter().copied().sum::<f64>() / group.len() as f64 }
    };
    (0..groups).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_from_the_smallest_to_the_largest() {
        assert_eq!(sparkline(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 8), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[-1.0, 1.0], 10), "▁█");
    }

    #[test]
    fn equal_numbers_lie_flat_and_missing_ones_are_blank() {
        assert_eq!(sparkline(&[5.0, 5.0], 4), "▁▁");
        assert_eq!(sparkline(&[0.0, f64::NAN, f64::INFINITY, 1.0], 4), "▁  █");
        assert_eq!(sparkline(&[], 4), "");
        assert_eq!(sparkline(&[1.0], 0), "");
    }

    #[test]
    fn many_numbers_are_averaged() {
        assert_eq!(downsample(&[1.0, 3.0, 5.0, 7.0], 2), [2.0, 6.0]);
        assert_eq!(downsample(&[1.0, 2.0, 6.0], 2), [1.0, 4.0]);
    }
}
