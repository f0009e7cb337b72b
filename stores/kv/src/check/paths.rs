//! The paths that lead to objects.

use std::collections::VecDeque;

use h5live_model::{LinkTarget, Name, ObjectId, ObjectKind, Result};

use super::CheckedContainer;
use crate::engine::KeySpan;
use crate::layout::value::decode_link_target;
use crate::layout::{EngineKey, RecordKey, key, oid};

impl CheckedContainer<'_> {
    /// Finds the objects to which paths from the root group lead. The shortest ones are found.
    pub(super) fn find_paths(&mut self) -> Result<()> {
        let mut waiting = VecDeque::new();
        self.reach(self.objects.position(oid::ROOT), None, &mut waiting);
        while let Some(group) = waiting.pop_front() {
            let Some(id) = self.objects.get(group).map(|object| object.id) else { continue };
            self.for_each_hard_link(id, &mut |container, _, target| {
                let parent = u32::try_from(group).ok();
                container.reach(container.objects.position(target), parent, &mut waiting);
                true
            })?;
        }
        Ok(())
    }

    fn reach(&mut self, number: Option<usize>, parent: Option<u32>, waiting: &mut VecDeque<usize>) {
        if let Some(number) = number
            && let Some(object) = self.objects.get_mut(number)
            && !std::mem::replace(&mut object.is_reachable, true)
        {
            object.parent_table_index = parent;
            if oid::kind(object.id) == ObjectKind::Group {
                waiting.push_back(number);
            }
        }
    }

    fn for_each_hard_link(
        &mut self,
        group: ObjectId,
        each: &mut dyn FnMut(&mut Self, &[u8], ObjectId) -> bool,
    ) -> Result<()> {
        let state = self.state;
        state.for_each_pair_reentrant(&KeySpan::from(&key::links(group)), |key, value| -> Result<bool> {
            if let (Ok((_, RecordKey::Link(name))), Ok(LinkTarget::Hard(target))) =
                (EngineKey::parse(key), decode_link_target(value))
            {
                return Ok(each(self, &name, target));
            }
            Ok(true)
        })
    }

    /// A path to an object; `None` if none was found.
    pub(super) fn path_of(&mut self, id: ObjectId) -> Result<Option<String>> {
        let Some(mut number) = self.objects.position(id) else { return Ok(None) };
        if !self.objects.get(number).is_some_and(|object| object.is_reachable) {
            return Ok(None);
        }
        let mut names = Vec::new();
        // Each parent was reached before, so this ends at the root group.
        while let Some(object) = self.objects.get(number)
            && let Some(parent) = object.parent_table_index
        {
            let (child, mut name) = (object.id, None);
            let Some(group) = self.objects.get(parent as usize).map(|group| group.id) else { break };
            self.for_each_hard_link(group, &mut |_, found, target| {
                if target == child {
                    name = Some(Name::from(found).to_string());
                }
                target != child
            })?;
            names.push(name.unwrap_or_default());
            number = parent as usize;
        }
        let path: String = names.iter().rev().map(|name| format!("/{name}")).collect();
        Ok(Some(if path.is_empty() { "/".to_owned() } else { path }))
    }
}
