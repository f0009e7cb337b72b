//! What a reader may see of datasets that come into groups and leave them.

use h5live::File;
use h5live::model::Link;

use h5live_cli::live::message::StressInvariant;

use super::link_names::{GROUPS, link_path};
use super::plan::{CellChange, Region};
use super::reader::{MAX_REREADS, MatrixReadError, MatrixReader, PAUSE};
use super::value::{ObservedValue, RuleValue};

/// The link that comes and goes with a dataset, if it is there now.
fn find_link(file: &File, name: &str) -> h5live::Result<Option<Link>> {
    let Some((group, link)) = link_path(name).rsplit_once('/') else { return Ok(None) };
    let group = file.group(group)?;
    group.refresh()?;
    group.link(link)
}

/// The elements of a dataset; `None` if it is not there. A dataset may go while it is read; as long as the link leads to it,
/// it must be whole.
fn read<T: RuleValue>(file: &File, name: &str) -> h5live::Result<Option<(Vec<u64>, Vec<T>)>> {
    let mut attempts = 0;
    loop {
        let Some(link) = find_link(file, name)? else { return Ok(None) };
        match file.dataset(name).and_then(|dataset| Ok((dataset.shape()?, dataset.read::<T>()?))) {
            Ok(found) => return Ok(Some(found)),
            Err(error) if attempts == MAX_REREADS || find_link(file, name)?.is_some_and(|now| now == link) => {
                return Err(error);
            }
            Err(_) => attempts += 1,
        }
        std::thread::sleep(PAUSE);
    }
}

impl MatrixReader<'_> {
    /// Reads all datasets that are there, and checks that each is whole and that none comes back that has gone.
    pub(super) fn look_at_links<T: RuleValue>(&mut self, file: &File) -> Result<(), MatrixReadError> {
        for (number, name) in self.plan.names.iter().enumerate() {
            let found = read::<T>(file, name)?;
            let is_gone = CellChange::Unlink(number);
            let change = match &found {
                Some((extent, values)) => self.version_of(number, extent, values),
                None => Ok(is_gone.clone()),
            };
            match change {
                Ok(change) => self.known.apply(self.plan, &change),
                Err((broken, detail)) => {
                    self.violation(broken, format!("{name}: {detail}")).map_err(MatrixReadError::Output)?;
                    self.known.apply(self.plan, &is_gone);
                }
            }
            self.done.new_rows += found.map_or(0, |(_, values)| values.len() as u64);
        }
        self.check_listing(file)
    }

    /// The change that has made a dataset with these elements.
    fn version_of<T: RuleValue>(
        &mut self,
        number: usize,
        extent: &[u64],
        values: &[T],
    ) -> Result<CellChange, (StressInvariant, String)> {
        let plan = self.plan;
        if extent != plan.dims {
            return Err((StressInvariant::WholeAppends, format!("its extent is {extent:?}")));
        }
        let (mut versions, mut wrong, mut values) = (Vec::new(), None, values.iter());
        Region::new(&vec![0; extent.len()], extent).for_each(|at| {
            let value = values.next();
            match value.map(|value| value.observe(plan.element_id(number, at))) {
                Some(ObservedValue::Version(version)) => versions.push(version),
                _ => drop(wrong.get_or_insert_with(|| format!("element {at:?} is {}", super::value::shown(value)))),
            }
        });
        let version = versions.iter().copied().min().unwrap_or(0);
        let latest = self.latest.get(number).copied().unwrap_or(0);
        let was_there = self.known.versions.get(number).is_some_and(|known| known.contains(&latest));
        if let Some(wrong) = wrong {
            return Err((StressInvariant::WholeAppends, wrong));
        }
        if versions.iter().any(|other| *other != version) {
            return Err((StressInvariant::NoTornReads, format!("its elements are of the versions {versions:?}")));
        }
        if version < latest || version == latest && !was_there {
            return Err((
                StressInvariant::MonotonicReads,
                format!("version {version} after {latest}, which may have gone"),
            ));
        }
        self.latest.get_mut(number).into_iter().for_each(|latest| *latest = version);
        Ok(CellChange::Create(number, version))
    }

    /// Lists the groups: each name once, and none that was never there.
    fn check_listing(&mut self, file: &File) -> Result<(), MatrixReadError> {
        for group in GROUPS {
            let listed = file.group(group)?;
            listed.refresh()?;
            let names: Vec<_> = listed.names()?.iter().map(|name| format!("{group}/{name}")).collect();
            let is_known = |name: &String| self.plan.names.iter().any(|known| link_path(known) == name);
            let twice = names.windows(2).find_map(|pair| (pair.first() == pair.last()).then(|| pair.first()).flatten());
            if let Some(name) = names.iter().find(|name| !is_known(name)).or(twice) {
                let detail = format!("{group} lists {name}, which was never there or is there twice");
                self.violation(StressInvariant::NoTornReads, detail).map_err(MatrixReadError::Output)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::{ChangeKind, ElementKind, FilterChoice, IndexChoice, MatrixCell};
    use super::super::plan::{CellPlan, FileModel};
    use super::super::{read_model, writer};
    use super::*;

    fn plan(index: IndexChoice) -> CellPlan {
        let (filter, kind) = (FilterChoice::None, ElementKind::Fixed);
        CellPlan::new(MatrixCell { index, work: ChangeKind::Links, filter, kind }, 3)
    }

    #[test]
    fn a_file_holds_the_datasets_of_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        for index in IndexChoice::ALL.iter().copied() {
            let plan = plan(index);
            writer::create::<u64>(&path, &plan).unwrap();
            let first = FileModel::initial(&plan);
            assert_eq!(read_model::read_model::<u64>(&path, &plan).unwrap(), first, "{}", plan.cell);
            let mut model = first.clone();
            let stop = std::sync::atomic::AtomicBool::new(true);
            for step in 0..40 {
                let file = File::options().swmr_write().open(&path).unwrap();
                writer::run::<u64>(&file, &plan, step, 1e6, &stop).unwrap();
                plan.changes(step, &model.extents).iter().for_each(|change| model.apply(&plan, change));
            }
            assert_eq!(read_model::read_model::<u64>(&path, &plan).unwrap(), model, "{}", plan.cell);
            assert_ne!(model, first);
        }
    }

    #[test]
    fn groups_of_the_earliest_profile_are_symbol_tables_of_several_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        let count = |bytes: &[u8], signature: &[u8]| bytes.windows(4).filter(|window| *window == signature).count();
        writer::create::<u64>(&path, &plan(IndexChoice::Btree1)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(count(&bytes, b"SNOD") > GROUPS.len() + 1, "the larger group has more than one node");
        writer::create::<u64>(&path, &plan(IndexChoice::ExtensibleArray)).unwrap();
        assert_eq!(count(&std::fs::read(&path).unwrap(), b"SNOD"), 0);
    }

    #[test]
    fn a_reader_finds_a_dataset_that_came_back_and_one_that_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        let plan = plan(IndexChoice::Btree1);
        let right = |number: usize, version: u32| -> Vec<u64> {
            let mut values = Vec::new();
            plan.regions[number].for_each(|at| values.push(u64::value(plan.element_id(number, at), version)));
            values
        };
        let mut reader = MatrixReader::new(&path, &plan);
        let mut see = |values: &[u64]| reader.version_of(7, &[16], values).map_err(|(broken, _)| broken);
        assert_eq!(see(&right(7, 4)), Ok(CellChange::Create(7, 4)));
        assert_eq!(see(&right(7, 3)), Err(StressInvariant::MonotonicReads), "an older one");
        assert_eq!(see(&right(7, 4)), Err(StressInvariant::MonotonicReads), "it has gone meanwhile");
        assert_eq!(see(&right(8, 5)), Err(StressInvariant::WholeAppends), "the elements of another dataset");
        let mut mixed = right(7, 5);
        mixed[..4].copy_from_slice(&right(7, 6)[..4]);
        assert_eq!(see(&mixed), Err(StressInvariant::NoTornReads));
        mixed[4] = 0;
        assert_eq!(see(&mixed), Err(StressInvariant::WholeAppends), "an element was never written");
    }
}
