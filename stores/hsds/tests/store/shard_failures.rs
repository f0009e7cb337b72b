//! Writers of shards that die, and answers that are lost.

use h5live_hsds::HsdsStore;
use h5live_hsds::engine::FolderEngine;
use h5live_model::{
    ByteOrder, DatasetSpec, Dataspace, Datatype, Mode, NewObject, ObjectSpec, Result, Shape, Sign, Store,
};

use crate::lost_answer::LostAnswer;
use crate::shards::{
    attribute, check, commit, name, names, reader, sample, sample_above, sharded, soft, to_folder, with_request,
};

fn edit(store: &HsdsStore) -> Result<()> {
    let (root, writer) = (store.session().root, store.writer()?);
    let spec: ObjectSpec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(&[4])),
        ..DatasetSpec::default()
    }
    .into();
    writer.create(&NewObject::linked(root, &"new".into(), &spec))?;
    (0..3).try_for_each(|at| writer.remove_link(root, &name(at)))?;
    writer.set_attribute(root, &attribute("new".into(), 1))?;
    commit(store)
}

#[test]
fn a_writer_that_dies_between_two_changes_leaves_the_old_state_or_the_new_one() {
    // Of shards, and of a document whose entries are spread over shards for the first time.
    [8, 0].into_iter().for_each(die_at_each_change);
}

fn die_at_each_change(above_before: u64) {
    let sample = || sample_above(above_before);
    let old = names(&reader(&sample())).unwrap();
    let (mut states, mut strays, mut is_done) = ([0, 0], 0, false);
    for changes in 0.. {
        let engine = sample();
        let store = HsdsStore::open(engine.reopen_writer(), &sharded(Mode::Write, 8)).unwrap();
        engine.fail_after(Some(changes));
        is_done |= edit(&store).is_ok();
        drop(store);
        engine.fail_after(None);
        let found = names(&reader(&engine)).unwrap();
        states[usize::from(found != old)] += 1;
        if found != old {
            assert!(found.0.contains(&"new".into()) && !found.0.contains(&name(0)), "{found:?}");
            assert!(found.1.contains(&"new".into()), "all of the new state: {found:?}");
        }
        // What is left is known, and deleted.
        let folder = to_folder(&engine);
        let report = check(&folder);
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        strays += report.leak_count;
        let reclaimed =
            with_request(&folder, |maintenance, at, how| maintenance.repair_and_reclaim_unreachable(at, how).unwrap());
        assert_eq!(reclaimed.deleted_leaks.len() as u64, report.leak_count);
        assert_eq!(check(&folder).leak_count, 0);
        let again =
            HsdsStore::open(FolderEngine::open(folder.path(), "run", Mode::Write).unwrap(), &sharded(Mode::Write, 8))
                .unwrap();
        assert_eq!(names(&again).unwrap(), found);
        if is_done {
            break;
        }
    }
    // The first shards replace none that would be deleted after the new state is there.
    let after = if above_before > 0 { 1 } else { 0 };
    assert!(states[0] > 4 && states[1] > after && strays > 4, "{states:?}, {strays} leaks");
}

#[test]
fn a_document_whose_answer_was_lost_keeps_the_shards_that_it_names() {
    for changes_again in [false, true] {
        let objects = sample();
        let engine = LostAnswer::to(".group.json", objects.reopen_writer());
        let store = HsdsStore::open(engine, &sharded(Mode::Write, 8)).unwrap();
        edit(&store).unwrap_err();
        // What was written is whole, and what it replaced is still there.
        assert!(names(&reader(&objects)).unwrap().0.contains(&"new".into()));
        let root = store.session().root;
        if changes_again {
            store.writer().unwrap().rename_link((root, &"new".into()), (root, &"newer".into())).unwrap();
        }
        store.close().unwrap();
        let found = names(&reader(&objects)).unwrap().0;
        assert_eq!((found.contains(&"new".into()), found.contains(&"newer".into())), (!changes_again, changes_again));
        let report = check(&to_folder(&objects));
        assert_eq!((report.findings.len(), report.leak_count), (0, 0), "{report:?}");
    }
}

#[test]
fn a_commit_that_failed_is_repeated() {
    for changes in 0..14 {
        let engine = sample();
        let store = HsdsStore::open(engine.reopen_writer(), &sharded(Mode::Write, 8)).unwrap();
        engine.fail_after(Some(changes));
        edit(&store).unwrap_err();
        engine.fail_after(None);
        let root = store.session().root;
        // The same shard changes once more.
        drop(store.writer().unwrap().remove_link(root, &name(0)));
        store.writer().unwrap().add_link(root, &name(0), &soft(7)).unwrap();
        store.close().unwrap();
        assert_eq!(reader(&engine).link(root, &name(0)).unwrap().unwrap().target, soft(7));
        let report = check(&to_folder(&engine));
        assert_eq!((report.findings.len(), report.leak_count), (0, 0), "after {changes} changes: {report:?}");
    }
}
