//! Paths at which there is no file, and objects that cannot be read.

use std::fs;
use std::process::Command;

use h5live::{File, Reference};

use crate::common::{error, h5py, new_file, python, run, run_with, text};

#[test]
fn a_pipe_is_refused_at_once() {
    let (_folder, path, name) = new_file();
    if !Command::new("mkfifo").arg(&path).status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: there is no mkfifo");
    }
    for command in ["ls", "dump", "check", "repair", "manifest"] {
        assert!(error(&run(&[command, &name])).contains("it is a pipe"), "{command}");
    }
    assert!(error(&run(&["record", &name, "rows"])).contains("it is a pipe"));
}

#[test]
fn what_cannot_be_read_is_listed_with_its_cause_and_equal_to_nothing() {
    let (_folder, path, name) = new_file();
    let file = File::options().libver(h5live::LibVer::V110).create().open(&path).unwrap();
    file.new_dataset::<u8>().create_with_data("sound", &[1]).unwrap();
    let place = file.new_dataset::<u8>().create_with_data("odd", &[2]).unwrap().id();
    file.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    // The checksum of its object header is wrong now.
    bytes[place.0 as usize + 20] ^= 0xff;
    fs::write(&path, bytes).unwrap();
    let listed = run(&["ls", &name]);
    let said = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.status.code(), Some(1), "{said}");
    assert!(said.contains("/odd    cannot be read: ") && said.contains("/sound  u8"), "{said}");
    assert!(String::from_utf8_lossy(&run(&["dump", &name]).stdout).contains("(error: "));
    let compared = run(&["diff", &name, &name]);
    assert_eq!(compared.status.code(), Some(1), "{compared:?}");
    assert!(text(&run(&["repair", &name])).contains("nothing to repair"));
}

#[test]
fn a_copy_says_which_references_it_has_lost() {
    let (folder, path, name) = new_file();
    let file = File::create(&path).unwrap();
    let gone = h5live::Object::Group(file.create_group("gone").unwrap()).reference().unwrap();
    let kept = h5live::Object::Group(file.create_group("kept").unwrap()).reference().unwrap();
    file.new_dataset::<Reference>().create_with_data("refs", &[gone, kept]).unwrap();
    // The group stays in the file, though no link leads to it.
    file.root().unlink("gone").unwrap();
    file.close().unwrap();
    let copy = folder.path().join("copy.h5");
    let output = run(&["copy", &name, copy.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), said.contains("left out: /refs: 1 reference to objects")),
        (Some(1), true),
        "{said}"
    );
}

/// Names with a byte that is not UTF-8, a backslash, and a line end.
const ODD_NAMES: &str = "
with h5py.File(path, 'w') as file:
    file[b'gr\\xfcn/bl\\xe9'] = [1, 2]
    file[b'gr\\xfcn'].attrs[b'\\xe9'] = 5
    file['back\\\\slash'] = 3
    file['x41 \\\\x41'] = 4
    file['new\\nline'] = 6
";

#[test]
fn objects_are_found_by_the_escapes_that_ls_prints() {
    let Some(python) = python() else { return };
    let (_folder, path, name) = new_file();
    h5py(&python, ODD_NAMES, &path);
    let listed = text(&run(&["ls", &name]));
    let paths: Vec<_> = listed.lines().filter_map(|line| line.split("  ").next()).map(str::trim).collect();
    for (at, value) in [
        (r"/gr\xFCn/bl\xE9", "0: 1\n1: 2\n"),
        (r"/gr\xFCn@\xE9", "5\n"),
        (r"/back\\slash", "3\n"),
        (r"/x41 \\x41", "4\n"),
        (r"/new\nline", "6\n"),
    ] {
        assert!(paths.contains(&at), "{at}: {paths:?}");
        assert_eq!(text(&run(&["dump", &name, at])), value, "{at}");
        if !at.contains('@') {
            assert!(text(&run(&["ls", &name, at])).starts_with(at), "{at}");
        }
    }
    // A name that is there as it is written comes first.
    assert_eq!(text(&run(&["dump", &name, r"/back\slash"])), "3\n");
    let below = text(&run(&["ls", &name, r"/gr\xFCn"]));
    assert_eq!(below.lines().count(), 3, "{below}");
    text(&run(&["diff", &name, &name, "--path", r"/gr\xFCn"]));
    let said = error(&run(&["dump", &name, r"/gr\xFDn"]));
    assert!(said.contains("there is no"), "{said}");
}

#[test]
fn rm_mv_and_copy_take_the_escapes_that_ls_prints() {
    let Some(python) = python() else { return };
    let (folder, path, name) = new_file();
    h5py(&python, ODD_NAMES, &path);
    let copy = folder.path().join("copy.h5").to_str().unwrap().to_owned();
    text(&run(&["copy", &name, &copy, "--quiet", "--select", r"/gr\xFCn/bl\xE9", "--select", r"new\nline"]));
    let listed = text(&run(&["ls", &copy]));
    assert!(listed.contains(r"/gr\xFCn/bl\xE9") && listed.contains(r"/new\nline"), "{listed}");
    assert!(!listed.contains("back"), "{listed}");
    text(&run(&["rm", &name, r"/gr\xFCn@\xE9", r"/back\\slash"]));
    text(&run(&["mv", &name, r"new\nline", r"/gr\xFCn/"]));
    text(&run(&["mv", &name, r"/gr\xFCn/bl\xE9", "blue"]));
    // A name that is there as it is written comes first.
    text(&run(&["rm", &name, r"x41 \x41"]));
    let listed = text(&run(&["ls", &name]));
    let paths: Vec<_> = listed.lines().filter_map(|line| line.split("  ").next()).map(str::trim).collect();
    assert_eq!(paths, ["/", "/blue", r"/gr\xFCn", r"/gr\xFCn/new\nline"], "{listed}");
    let said = error(&run(&["rm", &name, r"/gr\xFDn"]));
    assert!(said.contains("there is no"), "{said}");
    text(&run(&["rm", &name, r"/gr\xFCn"]));
    assert_eq!(text(&run(&["ls", &name])).lines().count(), 2);
}

#[test]
fn watch_takes_the_escapes_that_ls_prints_and_record_refuses_them() {
    let Some(python) = python() else { return };
    let (_folder, path, name) = new_file();
    h5py(&python, ODD_NAMES, &path);
    let seen = text(&run(&["watch", "--json", &name, r"/gr\xFCn/bl\xE9"]));
    assert_eq!(seen.lines().count(), 2, "{seen}");
    let before = text(&run(&["ls", &name]));
    let said = error(&run_with(&["record", &name, r"/gr\xFCn/bl\xE9"], b"a\n1\n"));
    assert!(said.contains(r"/gr\xFCn/bl\xE9: an object is there whose name is printed so"), "{said}");
    assert_eq!(text(&run(&["ls", &name])), before);
    // A name that nothing has is a new one, as it is written.
    text(&run_with(&["record", &name, r"/C:\new"], b"a\n1\n"));
    assert_eq!(text(&run(&["ls", &name, r"/C:\new"])).lines().count(), 1);
}

/// A file of libhdf5's family driver, in which the name of the driver is another one.
const SUBFILING: &str = "
with h5py.File(path.replace('run', 'run%d'), 'w', driver='family', memb_size=1 << 20) as file:
    file['a'] = [1, 2, 3]
with open(path.replace('run', 'run0'), 'rb') as file:
    whole = file.read()
assert b'NCSAfami' in whole
with open(path, 'wb') as file:
    file.write(whole.replace(b'NCSAfami', b'Subfilin'))
";

#[test]
fn files_of_drivers_that_are_not_known_are_refused_by_their_names() {
    let (folder, path, name) = new_file();
    fs::write(&path, b"ONIONEOF").unwrap();
    let refused = |name: &str, word: &str| {
        for command in ["ls", "dump", "manifest"] {
            let said = run(&[command, name]);
            let text = [said.stdout, said.stderr].concat();
            let text = String::from_utf8(text).unwrap();
            assert!(!said.status.success() && text.contains(word), "{command}: {text}");
        }
        // What writes says of the one that it cannot change what is cut into several.
        let said = error(&run(&["record", name, "rows"]));
        assert!(said.contains(word) || word == "subfiling" && said.contains("cut into several"), "{said}");
    };
    refused(&name, "onion");
    let copied = error(&run(&["copy", &name, folder.path().join("copy.h5").to_str().unwrap()]));
    assert!(copied.contains("onion"), "{copied}");
    // What was there before the first revision is not what the file has.
    fs::remove_file(&path).unwrap();
    File::create(&path).unwrap().close().unwrap();
    let history = folder.path().join("run.h5.onion");
    fs::write(&history, b"OHDH\x01\0\0\0").unwrap();
    refused(history.to_str().unwrap(), "onion");
    refused(&name, "onion");
    fs::write(&history, b"notes").unwrap();
    text(&run(&["ls", &name]));
    let Some(python) = python() else { return };
    h5py(&python, SUBFILING, &path);
    refused(&name, "subfiling");
}
