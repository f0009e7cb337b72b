//! Files whose groups are symbol tables: h5live follows its own writer; libhdf5 refuses both roles.

use h5live::{File, LibVer};

use crate::script::Script;

#[test]
fn libhdf5_neither_writes_nor_follows_a_live_file_with_symbol_tables() {
    let folder = tempfile::tempdir().unwrap();
    let [theirs, ours] = ["theirs.h5", "ours.h5"].map(|name| folder.path().join(name));
    let writer = File::options().create().libver(LibVer::Earliest).open(&ours).unwrap();
    writer.create_group("group").unwrap();
    writer.start_swmr().unwrap();
    let args = [theirs.to_str().unwrap(), ours.to_str().unwrap()];
    let Some(mut script) = Script::start("old_files.py", &args) else { return };
    assert_eq!(script.line(), "writing: refused");
    assert_eq!(script.line(), "following: refused");
    let reader = File::options().swmr_read().open(&ours).unwrap();
    for n in 0..40 {
        writer.new_dataset::<u64>().shape(&[1]).create(&format!("group/{n}")).unwrap().write(&[n]).unwrap();
        writer.flush().unwrap();
        let group = reader.group("group").unwrap();
        group.refresh().unwrap();
        assert_eq!(group.names().unwrap().len() as u64, n + 1);
        assert_eq!(reader.dataset(&format!("group/{n}")).unwrap().read::<u64>().unwrap(), [n]);
    }
    writer.close().unwrap();
    script.say("closed");
    assert_eq!(script.line(), "40 links");
    script.end();
}
