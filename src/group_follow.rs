//! Iterators over new objects and links, as a writer publishes them.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use h5live_model::{self as model, Link, LinkTarget, Name, ObjectId, Watch, WatchEvent};

use crate::error::ErrorKind;
use crate::liveness_check::{LivenessCheck, MAX_WAIT};
use crate::path::{ResolvedObject, join_path};
use crate::{Error, File, Group, Object, Result, WalkItem};

/// Most groups that are followed by default.
const MAX_GROUPS: usize = 1024;

/// New links in a group and in the groups below it. [`Group::follow`] and [`File::follow`] make it.
///
/// Each item is a link by its path, with its object if it is a hard link. First come the links that exist, then those
/// that a writer adds. A group comes before its contents. A link that was removed and added again is new.
///
/// The iterator waits for more links. It ends when the writer has closed the file and all links were returned, or when
/// the timeout is over without a new link. An error ends it, too, also one that says that the file was deleted,
/// replaced or truncated while it was being written ([`Error::file_change`]). Such an error comes after all links that
/// could still be found.
///
/// New objects are complete when their links appear. Datasets are opened with the state of that moment.
#[derive(Debug)]
pub struct GroupFollower {
    file: File,
    groups: Vec<FollowedGroup>,
    /// Everything that the groups lead to as of the last look.
    pending: VecDeque<WalkItem>,
    watch: Option<Box<dyn Watch>>,
    /// Groups were added or removed since the watch was made.
    others: bool,
    visited: HashSet<ObjectId>,
    timeout: Option<Duration>,
    max_depth: usize,
    max_groups: usize,
    /// The error of the last look, which follows the links that it had found before.
    failure: Option<Error>,
    liveness: LivenessCheck,
    is_finished: bool,
}

#[derive(Debug)]
struct FollowedGroup {
    group: Group,
    /// Links between it and the start.
    depth: usize,
    known_links: BTreeMap<Name, LinkTarget>,
}

impl Group {
    /// Follows the group: an iterator over its links, those that are there and those that a writer adds from now on.
    ///
    /// ```
    /// use h5live::{File, WalkItem};
    /// # let store = h5live::model::memory::MemoryStore::new();
    /// # let writer = File::with_store(std::sync::Arc::new(store.clone()), "run.h5", File::options())?;
    /// # writer.create_group("runs")?;
    /// # let reader = File::with_store(std::sync::Arc::new(store.open_reader()), "run.h5", File::options())?;
    /// # writer.create_group("runs/1")?;
    /// # writer.create_group("runs/2")?;
    /// # writer.close()?;
    /// let runs = reader.group("runs")?.follow();
    /// let paths = runs.map(|new| new.map(|new| new.path().to_owned())).collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(paths, ["/runs/1", "/runs/2"]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn follow(&self) -> GroupFollower {
        GroupFollower::new(self.clone(), 1)
    }
}

impl File {
    /// Follows everything below the root group: an iterator over the existing links, and over those that a writer adds
    /// from now on in any group.
    pub fn follow(&self) -> GroupFollower {
        GroupFollower::new(self.root(), usize::MAX)
    }
}

impl GroupFollower {
    fn new(start: Group, max_depth: usize) -> Self {
        GroupFollower {
            file: start.file().clone(),
            visited: HashSet::from([start.id()]),
            groups: vec![FollowedGroup { group: start, depth: 0, known_links: BTreeMap::new() }],
            pending: VecDeque::new(),
            watch: None,
            others: false,
            timeout: None,
            max_depth,
            max_groups: MAX_GROUPS,
            failure: None,
            liveness: LivenessCheck::default(),
            is_finished: false,
        }
    }

    /// Ends the iterator when no new link has come for this long. Without a timeout, it ends only when the writer does.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Follows links down to this depth below the start.
    pub fn max_depth(mut self, links: usize) -> Self {
        self.max_depth = links.max(1);
        self
    }

    /// Follows at most this many groups (default: 1024). One more is [`ErrorKind::TooManyFollowedGroups`].
    pub fn max_groups(mut self, groups: usize) -> Self {
        self.max_groups = groups.max(1);
        self
    }

    /// Leaves out the links that exist now.
    ///
    /// # Errors
    /// If a group cannot be read.
    pub fn skip_existing(mut self) -> Result<Self> {
        self.poll()?;
        self.pending.clear();
        Ok(self)
    }

    /// Looks at every group for links that are new.
    fn poll(&mut self) -> Result<()> {
        let mut next = 0;
        while let Some(followed) = self.groups.get_mut(next) {
            let mut links = match followed.group.links() {
                // It has been deleted, and the links that lead there with it.
                Err(error) if next > 0 && is_not_found(&error) => {
                    self.visited.remove(&followed.group.id());
                    self.groups.remove(next);
                    self.others = true;
                    continue;
                }
                links => links?,
            };
            let now = links.iter().map(|link| (link.name.clone(), link.target.clone())).collect();
            let before = std::mem::replace(&mut followed.known_links, now);
            links.retain(|link| before.get(&link.name) != Some(&link.target));
            let (path, depth) = (followed.group.path().to_owned(), followed.depth + 1);
            for link in links {
                let name = link.name.clone();
                match self.open_link(link, &path, depth) {
                    Ok(visit) => self.pending.push_back(visit),
                    // It is gone again.
                    Err(error) if is_not_found(&error) => {
                        self.groups.get_mut(next).map(|followed| followed.known_links.remove(&name));
                    }
                    Err(error) => return Err(error),
                }
            }
            next += 1;
        }
        Ok(())
    }

    fn open_link(&mut self, link: Link, group: &str, depth: usize) -> Result<WalkItem> {
        let path = join_path(group, &link.name.to_string());
        let LinkTarget::Hard(id) = link.target else {
            return Ok(WalkItem::UnfollowedLink { path, target: link.target });
        };
        if self.visited.contains(&id) {
            return Ok(WalkItem::AlreadyVisited { path, id });
        }
        let object = Object::open(ResolvedObject { file: self.file.clone(), id, path })?;
        if let Object::Group(group) = &object {
            self.visited.insert(id);
            if depth < self.max_depth {
                if self.groups.len() == self.max_groups {
                    return Err(self.file.error(Some(group.path()), ErrorKind::TooManyFollowedGroups(self.max_groups)));
                }
                self.groups.push(FollowedGroup { group: group.clone(), depth, known_links: BTreeMap::new() });
                self.others = true;
            }
        }
        Ok(WalkItem::Object(object))
    }

    /// Waits for something new; `None` at the end.
    fn wait_for_item(&mut self) -> Result<Option<WalkItem>> {
        let until = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut last = self.liveness.claim_due_check(&self.file.shared().found_live) && !self.is_live()?;
        loop {
            let looked = self.poll();
            if let Some(visit) = self.pending.pop_front() {
                self.failure = looked.err();
                return Ok(Some(visit));
            }
            if let Some(ending) = self.liveness.pending_error.take_if(|_| last) {
                return Err(ending);
            }
            looked?;
            if last {
                return Ok(None);
            }
            let store_error = |error: model::Error| self.file.error(None, error);
            if std::mem::take(&mut self.others) {
                self.watch = None;
            }
            let Some(watch) = &mut self.watch else {
                // Made before the look after which it is waited for more.
                let ids: Vec<_> = self.groups.iter().map(|followed| followed.group.id()).collect();
                self.watch = match self.file.store().watch(&ids) {
                    Ok(watch) => Some(watch),
                    // One of them has been deleted; the look will show which.
                    Err(model::Error::NoObject(_)) => None,
                    Err(error) => return Err(store_error(error)),
                };
                last = self.watch.is_some() && !self.is_live()?;
                continue;
            };
            let left = until.map_or(MAX_WAIT, |until| until.saturating_duration_since(Instant::now()));
            let woken = match watch.wait(left.min(MAX_WAIT)) {
                Err(model::Error::NoObject(_)) => {
                    self.others = true;
                    continue;
                }
                woken => woken.map_err(store_error)?,
            };
            let over = until.is_some_and(|until| Instant::now() >= until);
            // What is published before the end is still seen.
            last = over || woken != WatchEvent::Changed && !self.is_live()?;
        }
    }

    /// Whether a writer may still be at work on the file, which is what its path leads to.
    fn is_live(&mut self) -> Result<bool> {
        self.liveness.defer_file_change_error(self.file.is_live())
    }
}

fn is_not_found(error: &Error) -> bool {
    error.is_not_found_in_file() || matches!(error.kind(), ErrorKind::Store(model::Error::WrongKind { .. }))
}

impl Iterator for GroupFollower {
    type Item = Result<WalkItem>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(visit) = self.pending.pop_front() {
            return Some(Ok(visit));
        }
        if self.is_finished {
            return None;
        }
        let next = self.failure.take().map_or_else(|| self.wait_for_item(), Err).transpose();
        self.is_finished = !matches!(next, Some(Ok(_)));
        next
    }
}
