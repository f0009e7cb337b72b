//! Walks: every object below a group, once.

use std::collections::HashSet;

use h5live_model::{Link, LinkTarget, ObjectId};

use crate::path::{ResolvedObject, join_path};
use crate::{File, Group, Object, Result};

/// An item of a walk.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WalkItem {
    /// An object, by the first path that leads to it.
    Object(Object),
    /// A further hard link to an object that was met before.
    AlreadyVisited {
        /// The path of the link.
        path: String,
        /// The identity of the object.
        id: ObjectId,
    },
    /// A link that is not followed: soft, external, or user-defined.
    UnfollowedLink {
        /// The path of the link.
        path: String,
        /// The target of the link.
        target: LinkTarget,
    },
}

impl WalkItem {
    /// The path at which this was met.
    pub fn path(&self) -> &str {
        match self {
            WalkItem::Object(object) => object.path(),
            WalkItem::AlreadyVisited { path, .. } | WalkItem::UnfollowedLink { path, .. } => path,
        }
    }
}

/// A walk over a group and everything below it to which hard links lead: depth first, names sorted bytewise.
/// [`Group::walk`] makes it.
///
/// An object that cannot be read is an error in its place, and the walk continues after it. Groups may be nested
/// without limit, and in cycles. The walk needs memory for the links of the groups on the path to its present place,
/// and for the identities of the objects that it has met.
///
/// ```
/// use h5live::{File, WalkItem};
///
/// let file = File::in_memory();
/// file.create_group("run/raw")?;
/// file.root().link_soft("newest", "/run")?;
/// let paths: Vec<_> = file.walk().map(|visit| visit.map(|visit| visit.path().to_owned())).collect::<Result<_, _>>()?;
/// assert_eq!(paths, ["/", "/newest", "/run", "/run/raw"]);
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Walk {
    file: File,
    start: Option<Group>,
    /// The path of the innermost group. One for all levels: a long chain of groups must not fill the memory.
    path: String,
    /// The groups that are not done with, outermost first.
    levels: Vec<WalkLevel>,
    visited: HashSet<ObjectId>,
    max_depth: usize,
}

#[derive(Debug, Clone)]
struct WalkLevel {
    /// Bytes of its path.
    path: usize,
    /// Links that are still to be looked at, the next one last.
    links: Vec<Link>,
}

impl Walk {
    pub(crate) fn new(start: Group) -> Self {
        let file = start.file().clone();
        let (path, levels, visited) = (String::new(), Vec::new(), HashSet::new());
        Walk { file, start: Some(start), path, levels, visited, max_depth: usize::MAX }
    }

    /// Goes no deeper than this many links below the start (default: no limit). 0 is the start alone.
    pub fn max_depth(mut self, links: usize) -> Self {
        self.max_depth = links;
        self
    }

    /// Puts a group's links next in the walk, unless the group is too deep.
    fn push_group_links(&mut self, group: &Group) -> Result<()> {
        if self.levels.len() < self.max_depth {
            let mut links = group.links()?;
            links.reverse();
            group.path().clone_into(&mut self.path);
            self.levels.push(WalkLevel { path: self.path.len(), links });
        }
        Ok(())
    }

    fn open_link(&mut self, link: Link) -> Result<WalkItem> {
        let path = join_path(&self.path, &link.name.to_string());
        let id = match link.target {
            LinkTarget::Hard(id) => id,
            target => return Ok(WalkItem::UnfollowedLink { path, target }),
        };
        if !self.visited.insert(id) {
            return Ok(WalkItem::AlreadyVisited { path, id });
        }
        let object = Object::open(ResolvedObject { file: self.file.clone(), id, path })?;
        if let Object::Group(group) = &object {
            self.push_group_links(group)?;
        }
        Ok(WalkItem::Object(object))
    }
}

impl Iterator for Walk {
    type Item = Result<WalkItem>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(start) = self.start.take() {
            self.visited.insert(start.id());
            return Some(self.push_group_links(&start).map(|()| WalkItem::Object(Object::Group(start))));
        }
        loop {
            let level = self.levels.last_mut()?;
            if let Some(link) = level.links.pop() {
                self.path.truncate(level.path);
                return Some(self.open_link(link));
            }
            self.levels.pop();
        }
    }
}

impl Group {
    /// A walk over this group and everything below it, each object once.
    pub fn walk(&self) -> Walk {
        Walk::new(self.clone())
    }
}

impl File {
    /// A walk over everything in the file, each object once.
    pub fn walk(&self) -> Walk {
        self.root().walk()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::File;

    fn shown(walk: Walk) -> Vec<String> {
        let text = |visit: Result<WalkItem>| match visit.unwrap() {
            WalkItem::Object(object) => object.path().to_owned(),
            WalkItem::AlreadyVisited { path, .. } => format!("{path} again"),
            WalkItem::UnfollowedLink { path, target } => format!("{path} to {target:?}"),
        };
        walk.map(text).collect()
    }

    #[test]
    fn meets_every_object_once_also_in_rings() {
        let file = File::in_memory();
        let inner = file.create_group("b/inner").unwrap();
        inner.link_hard("ring", file.root().id()).unwrap();
        inner.link_hard("outer", file.group("b").unwrap().id()).unwrap();
        file.new_dataset::<u8>().create("a").unwrap();
        file.root().link_hard("c", file.dataset("a").unwrap().id()).unwrap();
        file.root().link_soft("d", "nowhere").unwrap();
        let want = ["/", "/a", "/b", "/b/inner", "/b/inner/outer again", "/b/inner/ring again", "/c again"];
        let found = shown(file.walk());
        assert_eq!(found[..7], want);
        assert_eq!(found[7..], ["/d to Soft(\"nowhere\")"]);
        assert_eq!(shown(file.walk().max_depth(0)), ["/"]);
        assert_eq!(shown(file.group("b").unwrap().walk().max_depth(1)), ["/b", "/b/inner"]);
    }

    #[test]
    fn nesting_has_no_limit() {
        let file = File::in_memory();
        let mut group = file.root();
        for _ in 0..20_000 {
            let id = file
                .writer()
                .unwrap()
                .create(&h5live_model::NewObject::linked(group.id(), &"g".into(), &h5live_model::ObjectSpec::group()))
                .unwrap();
            group = Group::new(file.clone(), id, "deep");
        }
        assert_eq!(file.walk().map(|visit| visit.is_ok()).filter(|ok| *ok).count(), 20_001);
    }
}
