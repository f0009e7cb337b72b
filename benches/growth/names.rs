//! Many names: links, attributes, groups in groups.

use h5live::File;

use crate::axes::Outcome;
use crate::phases::Phases;

/// Numbers below `count`, each once, in an order that jumps. No count that is grown here has the factor 7919.
pub fn jumping(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |n| n * 7919 % count)
}

/// Links of one group of a live file, which are looked up, listed and removed.
pub fn links(phases: &mut Phases, count: u64) -> Outcome {
    let path = phases.path("links.h5");
    let file = File::create(&path)?;
    let target = file.create_group("target")?.id();
    let group = file.create_group("all")?;
    file.start_swmr()?;
    phases.phase("link", count, || {
        jumping(count).try_for_each(|n| group.link_hard(&format!("{n:09}"), target))?;
        file.flush()
    })?;
    let reader = File::options().swmr_read().open(&path)?;
    let seen = reader.group("all")?;
    phases.phase("look up", count, || jumping(count).try_for_each(|n| seen.link(&format!("{n:09}")).map(drop)))?;
    phases.phase("list", count, || seen.links())?;
    phases.phase("unlink half", count / 2, || {
        jumping(count).filter(|n| n % 2 == 0).try_for_each(|n| group.unlink(&format!("{n:09}")))?;
        file.flush()
    })?;
    phases.phase("close", count, || file.close())
}

/// Attributes of one group, which are read and changed.
pub fn attributes(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("attributes.h5"))?;
    let group = file.create_group("all")?;
    phases.phase("set", count, || jumping(count).try_for_each(|n| group.set_attribute(&format!("{n:09}"), &n)))?;
    phases.phase("read", count, || jumping(count).try_for_each(|n| group.attribute(&format!("{n:09}")).map(drop)))?;
    phases
        .phase("change", count, || jumping(count).try_for_each(|n| group.set_attribute(&format!("{n:09}"), &1u64)))?;
    phases.phase("list", count, || group.attributes())?;
    phases.phase("close", count, || file.close())
}

/// Groups, each in the one before. A path has at most a few thousand names, so that each is opened from the one above.
pub fn depth(phases: &mut Phases, count: u64) -> Outcome {
    let file = File::create(phases.path("depth.h5"))?;
    phases.phase("create", count, || (0..count).try_fold(file.root(), |group, _| group.create_group("g")))?;
    phases.phase("walk", count, || file.walk().max_depth(usize::MAX).try_for_each(|item| item.map(drop)))?;
    phases.phase("close", count, || file.close())
}
