//! The paths to which references lead.

use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};

use h5live::{File, Reference};
use serde_json::Value as Json;

use crate::reference_json;
use crate::value::hex;
use h5live::model::escape;
use h5live::model::{Block, Hyperslab, LinkTarget, ObjectId, ObjectKind, Referent, ReferentPart, Selection};

/// Finds the objects to which references lead by the shortest of their paths. For the first reference, all groups of the
/// file are listed.
pub struct ReferenceFormatter<'a> {
    file: &'a File,
    paths: OnceCell<HashMap<ObjectId, String>>,
}

impl<'a> ReferenceFormatter<'a> {
    /// The references of a file.
    pub fn new(file: &'a File) -> Self {
        ReferenceFormatter { file, paths: OnceCell::new() }
    }

    /// The file.
    pub fn file(&self) -> &'a File {
        self.file
    }

    /// A reference for people: the path in quotes, with the slice of a region behind it, or as OBJECT@NAME. `null`, if
    /// it leads nowhere; its bytes, if nothing is known of where it leads.
    pub fn display_text(&self, reference: &Reference) -> String {
        match self.known(reference) {
            Some(text) => format!("{text:?}"),
            None if reference.is_null() => "null".to_owned(),
            None => format!("0x{}", hex(reference.as_bytes())),
        }
    }

    /// The same without quotes, and nothing for null.
    pub fn csv_text(&self, reference: &Reference) -> String {
        match self.known(reference) {
            Some(text) => text,
            None if reference.is_null() => String::new(),
            None => format!("0x{}", hex(reference.as_bytes())),
        }
    }

    /// A reference for programs, as in descriptions; its bytes, if nothing is known of where it leads.
    pub fn json(&self, reference: &Reference) -> Json {
        let path = |id| self.path(id);
        let described = reference_json::reference_to_json(self.file.store(), reference, &path);
        described.unwrap_or_else(|| hex(reference.as_bytes()).into())
    }

    fn known(&self, reference: &Reference) -> Option<String> {
        if reference.is_null() {
            return None;
        }
        let Referent { file, object, part } =
            self.file.store().referent(reference.kind(), reference.as_bytes()).ok()??;
        let path = self.path(object).filter(|_| file.is_none())?;
        match part {
            ReferentPart::Whole => Some(path),
            ReferentPart::Region(region) => Some(format!("{path}{}", slice_text(&region))),
            ReferentPart::Attribute(name) => Some(format!("{path}@{}", escape(name.as_bytes()))),
        }
    }

    fn path(&self, id: ObjectId) -> Option<String> {
        self.paths.get_or_init(|| paths(self.file)).get(&id).cloned()
    }
}

/// The shortest path of each object of a file. What cannot be read is left out.
fn paths(file: &File) -> HashMap<ObjectId, String> {
    let store = file.store();
    let mut paths = HashMap::from([(file.root().id(), "/".to_owned())]);
    let mut groups = VecDeque::from([(file.root().id(), String::new())]);
    while let Some((group, prefix)) = groups.pop_front() {
        let mut found = Vec::new();
        let listed = store.for_each_link(group, &mut |link| {
            if let LinkTarget::Hard(id) = link.target {
                found.push((id, format!("{prefix}/{}", escape(link.name.as_bytes()))));
            }
            true
        });
        // What was listed before an error is there.
        let _ = listed;
        for (id, path) in found {
            if paths.contains_key(&id) {
                continue;
            }
            if matches!(store.kind(id), Ok(ObjectKind::Group)) {
                groups.push_back((id, path.clone()));
            }
            paths.insert(id, path);
        }
    }
    paths
}

/// Blocks or points of a region that are shown.
const MAX_BLOCKS: usize = 4;

/// A region as slices, as `dump --slice` takes them.
fn slice_text(region: &Selection) -> String {
    let point = |at: &u64| Some(at.to_string());
    let several = |number: usize, each: Vec<Option<String>>| {
        let more = if number > MAX_BLOCKS { format!(" and {} more", number - MAX_BLOCKS) } else { String::new() };
        each.into_iter().collect::<Option<Vec<_>>>().map(|each| each.join(" ") + &more)
    };
    let text = match region {
        Selection::Hyperslab(Hyperslab { start, stride, count, block }) => {
            let dims = start.iter().zip(stride).zip(count).zip(block);
            bracketed(dims.map(|(((start, stride), count), block)| dim_text(*start, *stride, *count, *block)))
        }
        Selection::Blocks(blocks) => {
            let block = |block: &Block| {
                bracketed(block.start.iter().zip(&block.count).map(|(start, count)| dim_text(*start, 1, 1, *count)))
            };
            several(blocks.len(), blocks.iter().take(MAX_BLOCKS).map(block).collect())
        }
        Selection::Points(points) => {
            let each = points.iter().take(MAX_BLOCKS).map(|at| bracketed(at.iter().map(point)));
            several(points.len(), each.collect())
        }
        _ => None,
    };
    text.unwrap_or_else(|| reference_json::selection_to_json(region).to_string())
}

fn bracketed(dims: impl Iterator<Item = Option<String>>) -> Option<String> {
    let dims: Vec<_> = dims.collect::<Option<_>>()?;
    Some(format!("[{}]", dims.join(", ")))
}

/// What is taken of a dimension; `None` if no slice says it.
fn dim_text(start: u64, stride: u64, count: u64, block: u64) -> Option<String> {
    let end = |length: u64| start.saturating_add(length);
    match (count, block) {
        (1, 1) => Some(start.to_string()),
        (1, block) => Some(format!("{start}:{}", end(block))),
        (count, block) if stride == block => Some(format!("{start}:{}", end(count.saturating_mul(block)))),
        (count, 1) => {
            let last = stride.saturating_mul(count.saturating_sub(1));
            Some(format!("{start}:{}:{stride}", end(last.saturating_add(1))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_slices() {
        let text = |start, stride, count, block| {
            let dims = |n: u64| std::iter::once(n).collect();
            slice_text(&Selection::Hyperslab(Hyperslab {
                start: dims(start),
                stride: dims(stride),
                count: dims(count),
                block: dims(block),
            }))
        };
        assert_eq!(text(3, 1, 1, 1), "[3]");
        assert_eq!(text(3, 1, 1, 4), "[3:7]");
        assert_eq!(text(3, 1, 4, 1), "[3:7]");
        assert_eq!(text(3, 2, 4, 1), "[3:10:2]");
        assert!(text(3, 4, 2, 2).contains("stride"));
        let points = (0..6).map(|at| [at, 7].into_iter().collect()).collect();
        assert_eq!(slice_text(&Selection::Points(points)), "[0, 7] [1, 7] [2, 7] [3, 7] and 2 more");
    }
}
