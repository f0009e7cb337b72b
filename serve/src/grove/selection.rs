//! Selections as numpy writes them: `5`, `1,2:5`, `0:10:5,2,3:`.

use h5live::model::{Selection, SelectionError};
use h5live::{DimSelection, ResolvedSelection, Select};

use crate::fault::Fault;

/// What is selected of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selected {
    /// For each dimension.
    pub dims: Vec<DimSelection>,
    /// The shape of what is selected: a single index drops its dimension.
    pub shape: Vec<u64>,
}

impl Select for Selected {
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        match &self.dims[..] {
            [] => Selection::All.resolve(extent),
            dims => dims.resolve(extent),
        }
    }
}

impl Selected {
    /// Elements that are selected.
    pub fn element_count(&self) -> u64 {
        self.shape.iter().fold(1, |all, dim| all.saturating_mul(*dim))
    }

    /// What a text selects in a dataset of this extent; everything without one.
    ///
    /// # Errors
    /// If it is no selection, or does not fit.
    pub fn parse(text: Option<&str>, extent: &[u64]) -> Result<Self, Fault> {
        let parts: Vec<_> = text.map_or(Vec::new(), |text| text.split(',').collect());
        if parts.len() > extent.len() {
            let (text, rank) = (text.unwrap_or_default(), extent.len());
            return Err(Fault::unprocessable(format!("{text} has too many members to slice {rank} dimensions")));
        }
        let mut selected = Selected { dims: Vec::new(), shape: Vec::new() };
        for (n, len) in extent.iter().enumerate() {
            match parts.get(n) {
                Some(part) => selected.push(part.trim(), *len)?,
                None => selected.push(":", *len)?,
            }
        }
        Ok(selected)
    }

    fn push(&mut self, part: &str, len: u64) -> Result<(), Fault> {
        if !part.contains(':') {
            let index = integer(part)?;
            let from_end = if index < 0 { index.saturating_add_unsigned(len) } else { index };
            let Some(at) = u64::try_from(from_end).ok().filter(|at| *at < len) else {
                let last = len.saturating_sub(1);
                return Err(Fault::unprocessable(format!("Index ({index}) out of range for (0-{last})")));
            };
            self.dims.push(DimSelection::index(at));
            return Ok(());
        }
        let numbers = part.split(':').map(|number| match number.trim() {
            "" => Ok(None),
            number => integer(number).map(Some),
        });
        let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        let (start, stop, step) = match numbers[..] {
            [start, stop] => (start, stop, None),
            [start, stop, step] => (start, stop, step),
            _ => return Err(Fault::unprocessable(format!("{part} is not a valid slice"))),
        };
        let step = step.unwrap_or(1);
        let Some(step) = u64::try_from(step).ok().filter(|step| *step > 0) else {
            return Err(Fault::unprocessable(format!("Step must be >= 1 (got {step})")));
        };
        let clip = |at: i64| match at < 0 {
            true => len.saturating_sub(at.unsigned_abs()),
            false => (at as u64).min(len),
        };
        let (start, stop) = (start.map_or(0, clip), stop.map_or(len, clip));
        let count = stop.saturating_sub(start).div_ceil(step);
        self.dims.push(match (count, step) {
            (0, _) => DimSelection::range(0, 0),
            (_, 1) => DimSelection::range(start, count),
            _ => DimSelection::steps(start, step, count),
        });
        self.shape.push(count);
        Ok(())
    }
}

fn integer(text: &str) -> Result<i64, Fault> {
    text.parse().map_err(|_| Fault::unprocessable(format!("{text:?} is not an integer of a selection")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str, extent: &[u64]) -> Option<Vec<u64>> {
        Selected::parse(Some(text), extent).ok().map(|selected| selected.shape)
    }

    #[test]
    fn selections_are_those_of_numpy() {
        for (text, expected) in [
            ("5", vec![20]),
            ("-1", vec![20]),
            ("1,2", vec![]),
            ("1,2:5", vec![3]),
            ("0:10:5,3:", vec![2, 17]),
            (":", vec![10, 20]),
            ("::3", vec![4, 20]),
            ("-3:", vec![3, 20]),
            ("2:-2", vec![6, 20]),
            ("5:100", vec![5, 20]),
            ("7:3", vec![0, 20]),
            ("-100:2, 4", vec![2]),
        ] {
            assert_eq!(shape(text, &[10, 20]), Some(expected), "{text}");
        }
        for wrong in ["10", "-11", "1,2,3", "a", "", "1:2:3:4", "::0", "::-1", "1.5", "99999999999999999999"] {
            assert_eq!(shape(wrong, &[10, 20]), None, "{wrong}");
        }
        assert_eq!(Selected::parse(None, &[]).unwrap().element_count(), 1);
        assert_eq!(shape(":", &[0]), Some(vec![0]));
        assert_eq!(shape("0", &[0]), None);
    }
}
