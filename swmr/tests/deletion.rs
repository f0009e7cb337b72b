//! What is deleted gives back the space that it had, and no more.

use h5live_model::{Name, ObjectSpec, Objects};
use h5live_swmr::{Mode, NativeFile, OpenOptions, Profile};

fn name(kind: &str, number: usize) -> Name {
    Name::from(format!("{kind}{number:03}").as_str())
}

#[test]
fn new_objects_in_the_space_of_old_ones_leave_their_neighbours_alone() {
    let folder = tempfile::tempdir().unwrap();
    for profile in [Profile::Earliest, Profile::V18, Profile::V110, Profile::V200] {
        let path = folder.path().join("file.h5");
        let options = |mode| OpenOptions { mode, profile, ..OpenOptions::default() };
        let file = NativeFile::open(&path, &options(Mode::Create)).unwrap();
        let root = file.root();
        for i in 0..60 {
            file.create(root, &name("old", i), &ObjectSpec::group()).unwrap();
        }
        file.flush().unwrap();
        for i in (0..60).step_by(2) {
            file.remove_link(root, &name("old", i)).unwrap();
        }
        file.flush().unwrap();
        for i in 0..60 {
            file.create(root, &name("new", i), &ObjectSpec::group()).unwrap();
        }
        file.close().unwrap();
        h5live_checker::file::check_path(&path).unwrap().expect_clean();
        let file = NativeFile::open(&path, &options(Mode::Read)).unwrap();
        let mut groups = 0;
        file.for_each_link(file.root(), &mut |link| {
            let h5live_model::LinkTarget::Hard(id) = link.target else { panic!("{link:?}") };
            file.for_each_link(id, &mut |_| true).unwrap();
            groups += 1;
            true
        })
        .unwrap();
        assert_eq!(groups, 90, "{profile:?}");
    }
}
