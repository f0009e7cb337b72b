//! Selections as HSDS writes them: `[0:10:2,3,[1,5,7]]`. Each keeps its dimension.

use h5live::model::{Selection, SelectionError};
use h5live::{DimSelection, ResolvedSelection, Select};
use serde_json::Value as Json;

use super::bad_request;
use crate::fault::Fault;

/// What is selected of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ElementSelection {
    kind: SelectionKind,
    /// The shape of what is selected.
    pub shape: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SelectionKind {
    Dims(Vec<DimSelection>),
    Points(Vec<Vec<u64>>),
}

impl Select for ElementSelection {
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        match &self.kind {
            SelectionKind::Dims(dims) if dims.is_empty() => Selection::All.resolve(extent),
            SelectionKind::Dims(dims) => dims[..].resolve(extent),
            SelectionKind::Points(points) => {
                let points = points.iter().map(|point| point.iter().copied().collect());
                Selection::Points(points.collect()).resolve(extent)
            }
        }
    }
}

fn invalid() -> Fault {
    bad_request("Invalid selection")
}

impl ElementSelection {
    /// All elements.
    pub fn all(extent: &[u64]) -> Self {
        let dims = extent.iter().map(|len| DimSelection::range(0, *len)).collect();
        ElementSelection { kind: SelectionKind::Dims(dims), shape: extent.to_vec() }
    }

    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |all, dim| all.saturating_mul(*dim))
    }

    /// What a text selects.
    ///
    /// # Errors
    /// If it is no selection, or does not fit.
    pub fn of_text(text: &str, extent: &[u64]) -> Result<Self, Fault> {
        let inner = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']')).ok_or_else(invalid)?;
        let parts = split(inner);
        if parts.len() != extent.len() {
            return Err(invalid());
        }
        let dims = parts.iter().zip(extent).map(|(part, len)| DimPart::of(part.trim(), *len));
        ElementSelection::of_parts(dims.collect::<Result<_, _>>()?)
    }

    /// What a member of a body selects: a text, or `start`, `stop` and `step`.
    ///
    /// # Errors
    /// If it is no selection, or does not fit.
    pub fn of_body(body: &Json, extent: &[u64]) -> Result<Option<Self>, Fault> {
        if let Some(text) = body.get("select").and_then(Json::as_str).filter(|text| !text.is_empty()) {
            return ElementSelection::of_text(text, extent).map(Some);
        }
        let (Some(start), Some(stop)) = (body.get("start"), body.get("stop")) else { return Ok(None) };
        let numbers = |json: &Json| match json {
            Json::Array(list) => list.iter().map(Json::as_u64).collect::<Option<Vec<_>>>().ok_or_else(invalid),
            json => Ok(vec![json.as_u64().ok_or_else(invalid)?]),
        };
        let (start, stop) = (numbers(start)?, numbers(stop)?);
        let step = body.get("step").map_or_else(|| Ok(vec![1; start.len()]), numbers)?;
        if [start.len(), stop.len(), step.len()] != [extent.len(); 3] {
            return Err(invalid());
        }
        let dims = start.iter().zip(&stop).zip(&step).zip(extent);
        let parts = dims.map(|(((start, stop), step), len)| DimPart::range(*start, *stop, *step, *len));
        ElementSelection::of_parts(parts.collect::<Result<_, _>>()?).map(Some)
    }

    fn of_parts(parts: Vec<DimPart>) -> Result<Self, Fault> {
        let lists = parts.iter().filter(|part| part.list.is_some()).count();
        if lists < 2 {
            let shape = parts.iter().map(|part| part.count).collect();
            let kind = SelectionKind::Dims(parts.into_iter().map(|part| part.dim).collect());
            return Ok(ElementSelection { kind, shape });
        }
        // As numpy takes several lists: one element for each place in them.
        let lists: Option<Vec<_>> = parts.into_iter().map(|part| part.list).collect();
        let lists =
            lists.ok_or_else(|| bad_request("Lists for some dimensions, but not for all, are not supported"))?;
        let count = lists.first().map_or(0, Vec::len);
        if lists.iter().any(|list| list.len() != count) {
            return Err(invalid());
        }
        let point = |n: usize| lists.iter().filter_map(|list| list.get(n).copied()).collect();
        Ok(ElementSelection { kind: SelectionKind::Points((0..count).map(point).collect()), shape: vec![count as u64] })
    }

    /// Single elements.
    ///
    /// # Errors
    /// If one lies outside of the extent, or there are none.
    pub fn of_points(points: Vec<Vec<u64>>, extent: &[u64]) -> Result<Self, Fault> {
        let fits = |point: &Vec<u64>| point.len() == extent.len() && point.iter().zip(extent).all(|(at, len)| at < len);
        if let Some(outside) = points.iter().find(|point| !fits(point)) {
            return Err(bad_request(format!("POST Value point: {outside:?} is not within the bounds of the dataset")));
        }
        let shape = vec![points.len() as u64];
        Ok(ElementSelection { kind: SelectionKind::Points(points), shape })
    }
}

/// The parts between commas that are in no brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0u32);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// What is selected of a dimension.
struct DimPart {
    dim: DimSelection,
    count: u64,
    list: Option<Vec<u64>>,
}

impl DimPart {
    fn of(part: &str, len: u64) -> Result<Self, Fault> {
        if let Some(list) = part.strip_prefix('[') {
            let list = list.strip_suffix(']').ok_or_else(invalid)?;
            let at = |text: &str| index(text).ok().filter(|at| *at < len).ok_or_else(invalid);
            let list = list.split(',').map(at).collect::<Result<Vec<_>, _>>()?;
            return Ok(DimPart { dim: DimSelection::list(list.clone()), count: list.len() as u64, list: Some(list) });
        }
        let fields: Vec<_> = part.split(':').map(str::trim).collect();
        let or = |text: &str, default: u64| if text.is_empty() { Ok(default) } else { index(text) };
        match fields[..] {
            ["", ""] => Ok(DimPart { dim: DimSelection::range(0, len), count: len, list: None }),
            [only] => {
                let at = index(only)?;
                DimPart::range(at, at.checked_add(1).ok_or_else(invalid)?, 1, len)
            }
            [start, stop] => DimPart::range(or(start, 0)?, or(stop, len)?, 1, len),
            [start, stop, step] => DimPart::range(or(start, 0)?, or(stop, len)?, or(step, 1)?, len),
            _ => Err(invalid()),
        }
    }

    fn range(start: u64, stop: u64, step: u64, len: u64) -> Result<Self, Fault> {
        if start >= len || stop > len || stop <= start || step == 0 {
            return Err(invalid());
        }
        let count = (stop - start).div_ceil(step);
        let dim = if step == 1 { DimSelection::range(start, count) } else { DimSelection::steps(start, step, count) };
        Ok(DimPart { dim, count, list: None })
    }
}

fn index(text: &str) -> Result<u64, Fault> {
    text.trim().parse().map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shape(text: &str) -> Option<Vec<u64>> {
        ElementSelection::of_text(text, &[70, 50]).ok().map(|selection| selection.shape)
    }

    #[test]
    fn selections_are_those_of_hsds() {
        // What HSDS 1.0.2 says of each.
        for (text, expected) in [
            ("[0:2,3]", vec![2, 1]),
            ("[0:70:30,[1,3,7]]", vec![3, 3]),
            ("[[0,1],[2,3]]", vec![2]),
            ("[:,1]", vec![70, 1]),
            ("[[5,3],0]", vec![2, 1]),
            ("[[3,3],0]", vec![2, 1]),
            ("[0:10:3,0:1]", vec![4, 1]),
            ("[5:,:7:]", vec![65, 7]),
        ] {
            assert_eq!(shape(text), Some(expected), "{text}");
        }
        for bad in [
            "",
            "[]",
            "[1]",
            "[0:100,0]",
            "[a,0]",
            "[-1,0]",
            "[0:0,0]",
            "[70,0]",
            "[1,2,3]",
            "1,2",
            "[[0,1,2],[2,3]]",
            "[0:5:0,0]",
            "[[70],0]",
        ] {
            assert_eq!(shape(bad), None, "{bad}");
        }
        let body = ElementSelection::of_body(&json!({ "start": [1, 2], "stop": [5, 9], "step": [2, 1] }), &[70, 50]);
        assert_eq!(body.unwrap().unwrap().shape, [2, 7]);
        assert!(ElementSelection::of_points(vec![vec![0, 50]], &[70, 50]).is_err());
    }
}
