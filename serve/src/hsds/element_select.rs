//! Selections as HSDS writes them: `[0:10:2,3,[1,5,7]]`. Each keeps its dimension.

use h5live::model::{Selection, SelectionError};
use h5live::{DimSelection, ResolvedSelection, Select};
use serde_json::Value as Json;

use super::faults::bad_request;
use crate::fault::Fault;

/// Elements that several lists select, at most.
const MAX_POINTS: u64 = 1 << 20;

/// What is selected of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ElementSelection {
    kind: SelectionKind,
    /// The shape of what is selected.
    pub shape: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SelectionKind {
    Dims(Vec<DimPart>),
    Points(Vec<Vec<u64>>),
}

impl Select for ElementSelection {
    fn resolve(&self, extent: &[u64]) -> Result<ResolvedSelection, SelectionError> {
        match &self.kind {
            SelectionKind::Dims(dims) if dims.is_empty() => Selection::All.resolve(extent),
            SelectionKind::Dims(parts) => {
                let dims: Vec<_> = parts.iter().map(DimPart::selected).collect();
                dims[..].resolve(extent)
            }
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
        let parts = extent.iter().map(|len| DimPart { start: 0, step: 1, count: *len, list: None }).collect();
        ElementSelection { kind: SelectionKind::Dims(parts), shape: extent.to_vec() }
    }

    pub fn element_count(&self) -> u64 {
        self.shape.iter().fold(1, |all, dim| all.saturating_mul(*dim))
    }

    /// Where in the dataset the element of this number of the selection lies.
    pub fn coordinates(&self, number: u64) -> Vec<u64> {
        match &self.kind {
            SelectionKind::Points(points) => points.get(number as usize).cloned().unwrap_or_default(),
            SelectionKind::Dims(parts) => {
                let (mut rest, mut places) = (number, Vec::with_capacity(parts.len()));
                for part in parts.iter().rev() {
                    places.push(part.place(rest % part.count.max(1)));
                    rest /= part.count.max(1);
                }
                places.reverse();
                places
            }
        }
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
        match body.get("select") {
            Some(Json::String(text)) if !text.is_empty() => {
                return ElementSelection::of_text(text, extent).map(Some);
            }
            // A list has what a text has, for each dimension.
            Some(Json::Array(parts)) => {
                let part = |part: &Json| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
                let parts: Vec<_> = parts.iter().map(part).collect();
                return ElementSelection::of_text(&format!("[{}]", parts.join(",")), extent).map(Some);
            }
            _ => {}
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
            return Ok(ElementSelection { kind: SelectionKind::Dims(parts), shape });
        }
        ElementSelection::of_lists(&parts)
    }

    /// As numpy takes several lists: they are gone through together, and are one dimension, where the first of them is.
    fn of_lists(parts: &[DimPart]) -> Result<Self, Fault> {
        let first = parts.iter().position(|part| part.list.is_some()).ok_or_else(invalid)?;
        let count = parts[first].count;
        if parts.iter().any(|part| part.list.is_some() && part.count != count) {
            return Err(invalid());
        }
        let is_own = |n: usize| n == first || parts[n].list.is_none();
        let own: Vec<usize> = (0..parts.len()).filter(|n| is_own(*n)).collect();
        let shape: Vec<u64> = own.iter().map(|n| parts[*n].count).collect();
        let all = shape.iter().try_fold(1u64, |all, dim| all.checked_mul(*dim)).filter(|all| *all <= MAX_POINTS);
        let all = all.ok_or_else(|| bad_request(format!("Several lists may select {MAX_POINTS} elements at most")))?;
        let point = |number: u64| {
            // Where in each dimension of the answer the element is, the last dimension first.
            let (mut rest, mut places) = (number, vec![0; parts.len()]);
            for n in own.iter().rev() {
                places[*n] = rest % parts[*n].count;
                rest /= parts[*n].count;
            }
            let number = |n: usize| if parts[n].list.is_some() { places[first] } else { places[n] };
            (0..parts.len()).map(|n| parts[n].place(number(n))).collect()
        };
        Ok(ElementSelection { kind: SelectionKind::Points((0..all).map(point).collect()), shape })
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
#[derive(Debug, Clone, PartialEq, Eq)]
struct DimPart {
    start: u64,
    step: u64,
    count: u64,
    list: Option<Vec<u64>>,
}

impl DimPart {
    fn of(part: &str, len: u64) -> Result<Self, Fault> {
        if let Some(list) = part.strip_prefix('[') {
            let list = list.strip_suffix(']').ok_or_else(invalid)?;
            let at = |text: &str| index(text).ok().filter(|at| *at < len).ok_or_else(invalid);
            let list = list.split(',').map(at).collect::<Result<Vec<_>, _>>()?;
            return Ok(DimPart { start: 0, step: 1, count: list.len() as u64, list: Some(list) });
        }
        let fields: Vec<_> = part.split(':').map(str::trim).collect();
        let or = |text: &str, default: u64| if text.is_empty() { Ok(default) } else { index(text) };
        match fields[..] {
            ["", ""] => Ok(DimPart { start: 0, step: 1, count: len, list: None }),
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
        Ok(DimPart { start, step, count, list: None })
    }

    fn selected(&self) -> DimSelection {
        match &self.list {
            Some(list) => DimSelection::list(list.clone()),
            None if self.step == 1 => DimSelection::range(self.start, self.count),
            None => DimSelection::steps(self.start, self.step, self.count),
        }
    }

    /// Where in the dimension the element of this number lies.
    fn place(&self, number: u64) -> u64 {
        match &self.list {
            Some(list) => list.get(number as usize).copied().unwrap_or_default(),
            None => self.start + self.step * number,
        }
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
            ("[[0,69],[2,3]]", vec![2]),
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
        let listed = ElementSelection::of_body(&json!({ "select": [[0, 1, 3], "2:5"] }), &[70, 50]);
        assert_eq!(listed.unwrap().unwrap().shape, [3, 3]);
        let body = ElementSelection::of_body(&json!({ "start": [1, 2], "stop": [5, 9], "step": [2, 1] }), &[70, 50]);
        assert_eq!(body.unwrap().unwrap().shape, [2, 7]);
        assert!(ElementSelection::of_points(vec![vec![0, 50]], &[70, 50]).is_err());
    }

    #[test]
    fn each_element_of_a_selection_has_its_place() {
        let places = |text: &str| {
            let selection = ElementSelection::of_text(text, &[70, 50]).unwrap();
            (0..selection.element_count()).map(|number| selection.coordinates(number)).collect::<Vec<_>>()
        };
        assert_eq!(places("[2:7:3,[4,1]]"), [[2, 4], [2, 1], [5, 4], [5, 1]]);
        assert_eq!(places("[[0,69],[2,3]]"), [[0, 2], [69, 3]]);
        assert_eq!(ElementSelection::all(&[2, 3]).coordinates(4), [1, 1]);
    }

    #[test]
    fn several_lists_are_one_dimension_where_the_first_is() {
        let points = |text: &str| match ElementSelection::of_text(text, &[4, 5, 6]) {
            Ok(ElementSelection { kind: SelectionKind::Points(points), shape }) => (points, shape),
            other => panic!("{text}: {other:?}"),
        };
        let (found, shape) = points("[0:4:3,[0,4],[1,5]]");
        assert_eq!(shape, [2, 2]);
        assert_eq!(found, [[0, 0, 1], [0, 4, 5], [3, 0, 1], [3, 4, 5]]);
        let (found, shape) = points("[[3,1],1:3,[0,5]]");
        assert_eq!(shape, [2, 2]);
        assert_eq!(found, [[3, 1, 0], [3, 2, 0], [1, 1, 5], [1, 2, 5]]);
        assert_eq!(points("[2,[0,1,3],[1,2,5]]").1, [1, 3]);
        assert!(ElementSelection::of_text("[0:4,[0,1],[1,2,5]]", &[4, 5, 6]).is_err());
        let large = ElementSelection::of_text("[:,[0,1],[0,1]]", &[1 << 40, 5, 6]);
        assert!(large.unwrap_err().message.contains("at most"));
    }
}
