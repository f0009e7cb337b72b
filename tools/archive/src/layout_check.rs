//! What each layout will refuse of an archive, or keep in the tables alone, before an import is begun.

use std::collections::HashMap;

use twox_hash::XxHash3_128;

use crate::count_with_examples::CountWithExamples;
use crate::entry::TarEntry;
use crate::import::{ImportOptions, TarLayout, object_names, resolve_symlink_target, unusable_path_reason};

/// Why contents are refused: they are more than an import takes.
const TOO_LARGE: &str = "it has more contents than --max-bytes allows";
/// Why a path is refused.
const COLLISION: &str = "its path is taken by another entry";

/// What a layout makes of an archive.
#[derive(Debug)]
pub struct LayoutFindings {
    /// The layout.
    pub layout: TarLayout,
    /// What an import without options refuses: why, and which entries.
    pub refused_by_reason: Vec<(&'static str, CountWithExamples)>,
    /// Entries that have no object of their own, or are no samples. The tables have them.
    pub only_in_tables: CountWithExamples,
}

impl LayoutFindings {
    fn new(layout: TarLayout) -> Self {
        LayoutFindings { layout, refused_by_reason: Vec::new(), only_in_tables: CountWithExamples::default() }
    }

    fn refuse(&mut self, why: &'static str, path: &[u8]) {
        match self.refused_by_reason.iter_mut().find(|(known, _)| *known == why) {
            Some((_, findings)) => findings.add(path),
            None => {
                let mut findings = CountWithExamples::default();
                findings.add(path);
                self.refused_by_reason.push((why, findings));
            }
        }
    }
}

/// What a path of an object leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathUse {
    Group,
    Dataset,
    Link,
}

/// Looks at entries as each layout would take them.
#[derive(Debug)]
pub struct LayoutChecker {
    layouts: [LayoutFindings; 3],
    /// Paths of the layout `compactor`, by their hashes.
    places: HashMap<u128, PathUse>,
    content_bytes: u64,
}

impl LayoutChecker {
    /// Before the first entry.
    pub fn new() -> Self {
        let layouts = [TarLayout::Shredder, TarLayout::Compactor, TarLayout::Digest].map(LayoutFindings::new);
        LayoutChecker { layouts, places: HashMap::new(), content_bytes: 0 }
    }

    /// What was found.
    pub fn into_findings(self) -> Vec<LayoutFindings> {
        self.layouts.into()
    }

    /// Looks at an entry.
    pub fn check_entry(&mut self, entry: &TarEntry) {
        let has_object = self.place_object(entry);
        let is_large = entry.has_file_contents() && {
            self.content_bytes = self.content_bytes.saturating_add(entry.size);
            self.content_bytes > ImportOptions::default().max_total_content_bytes
        };
        for findings in &mut self.layouts {
            if is_large {
                findings.refuse(TOO_LARGE, &entry.path);
            }
            let is_in_tables_alone = match findings.layout {
                TarLayout::Compactor => has_object == Ok(false),
                _ => !entry.has_file_contents(),
            };
            if is_in_tables_alone {
                findings.only_in_tables.add(&entry.path);
            }
            if let (TarLayout::Compactor, Err(why)) = (findings.layout, has_object) {
                findings.refuse(why, &entry.path);
            }
        }
    }

    /// Gives an entry its object, as the layout `compactor` does. Whether it has one then.
    fn place_object(&mut self, entry: &TarEntry) -> Result<bool, &'static str> {
        let obstacle = unusable_path_reason(&entry.path);
        let is_folder = entry.kind == b'5' || entry.kind == 0 && entry.path.ends_with(b"/");
        if entry.has_file_contents() || entry.is_file() {
            return match obstacle {
                Some(why) => Err(why),
                None if self.place(&entry.path, PathUse::Dataset) => Ok(true),
                None => Err(COLLISION),
            };
        }
        if obstacle.is_some() {
            // The root is there.
            return Ok(is_folder && object_names(&entry.path).is_empty());
        }
        Ok(match entry.kind {
            _ if is_folder => {
                let is_group = self.places.get(&hash(&object_names(&entry.path))) == Some(&PathUse::Group);
                is_group || self.place(&entry.path, PathUse::Group)
            }
            b'1' => {
                let target = hash(&object_names(&entry.link_target));
                self.places.get(&target) == Some(&PathUse::Dataset) && self.place(&entry.path, PathUse::Dataset)
            }
            b'2' => {
                resolve_symlink_target(&entry.path, &entry.link_target).is_some()
                    && self.place(&entry.path, PathUse::Link)
            }
            _ => false,
        })
    }

    /// Whether the path was free. It is taken then.
    fn place(&mut self, path: &[u8], place: PathUse) -> bool {
        let names = object_names(path);
        for depth in 1..names.len() {
            if *self.places.entry(hash(&names[..depth])).or_insert(PathUse::Group) != PathUse::Group {
                return false;
            }
        }
        let is_free = !self.places.contains_key(&hash(&names));
        if is_free {
            self.places.insert(hash(&names), place);
        }
        is_free
    }
}

fn hash(names: &[&[u8]]) -> u128 {
    XxHash3_128::oneshot(&names.join(&b'/'))
}
