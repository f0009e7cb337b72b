//! `h5live tar`: what layouts cannot hold, sparse files, and owners and attributes of what is extracted.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::common::{error, run, text};

fn shell(folder: &Path, script: &str) -> bool {
    let output = Command::new("bash").args(["-euc", script]).current_dir(folder).output().unwrap();
    if !output.status.success() {
        eprintln!("skipped: {script}: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

const RESERVED: &str = "import tarfile, io
with tarfile.open('reserved.tar', 'w', format=tarfile.PAX_FORMAT) as t:
    def add(name, kind=tarfile.REGTYPE, link='', contents=b'abc'):
        info = tarfile.TarInfo(name); info.type = kind; info.linkname = link
        info.size = len(contents) if kind == tarfile.REGTYPE else 0
        t.addfile(info, io.BytesIO(contents))
    add('.h5live_tar/content/9', tarfile.DIRTYPE)
    for name in ['.h5live_tar/header', './.h5live_tar/content/0', '.h5live_tar', 'x', 'y' * 70000, 'a/' * 300000 + 'b']:
        add(name, contents=name[-3:].encode())
    add('.h5live_tar/empty', contents=b'')
    add('stolen', tarfile.LNKTYPE, '.h5live_tar/header')
    add('stolen2', tarfile.SYMTYPE, '.h5live_tar/header')
    add('device', tarfile.CHRTYPE)
";

#[test]
fn names_of_the_tables_in_an_archive_are_told_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("make.py"), RESERVED).unwrap();
    if !shell(folder.path(), "python3 make.py") {
        return;
    }
    let [archive, file, back] =
        ["reserved.tar", "out.h5", "back.tar"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let checked = run(&["tar", "check", &archive]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(1));
    let refused = "layout compactor refuses: it is that of the tables of the import: ";
    for path in [".h5live_tar/header", "./.h5live_tar/content/0", ".h5live_tar", ".h5live_tar/empty"] {
        assert!(said.contains(&format!("{refused}{path}\n")), "{path}: {said}");
    }
    assert!(said.contains("layout compactor refuses: it has more than 2048 names: a/a/"));
    assert!(said.contains("layout compactor: 4 entries in the tables alone"), "{}", said.len());
    assert!(!said.contains("layout shredder refuses") && !said.contains("layout digest refuses"));
    let import = |choice: &str| {
        run(&["tar", "import", "--force", "--layout", "compactor", "--on-collision", choice, &archive, &file])
    };
    let said = error(&import("error"));
    assert!(said.contains("that of the tables of the import (--on-collision says what to do)"), "{said}");
    for choice in ["skip", "suffix", "alias"] {
        let imported = import(choice);
        let said = String::from_utf8_lossy(&imported.stderr).into_owned();
        assert!(imported.status.success(), "{choice}");
        assert!(said.contains("entries without an object under the path") && said.contains("\".h5live_tar/header\""));
        text(&run(&["tar", "export", "--force", &file, &back]));
        assert!(fs::read(&back).unwrap() == fs::read(&archive).unwrap(), "{choice}");
        assert!(text(&run(&["tar", "verify", &file])).ends_with("6 samples, 16 bytes, 0 wrong\n"), "{choice}");
        assert_eq!(text(&run(&["tar", "cat", &file, ".h5live_tar/header"])), "der", "{choice}");
        let listed = text(&run(&["ls", &file]));
        assert!(!listed.contains("/stolen"), "{choice}");
        assert_eq!(listed.contains("/.h5live_tar~1/header"), choice != "skip", "{choice}");
        assert!(run(&["check", "--data", &file]).status.success(), "{choice}");
    }
}

#[test]
fn check_says_which_entries_the_compactor_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mkdir one two; printf 1 > one/a; mkdir two/a; printf 2 > two/a/b; printf 3 > one/c; ln -s c one/s
        tar -cf all.tar -C one a c s; tar -rf all.tar -C two a; printf 4 > one/s2; tar -rf all.tar -C one --transform 's/s2/.\\/c/' s2
        tar -cf good.tar one two";
    if !shell(folder.path(), script) {
        return;
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let said = String::from_utf8(run(&["tar", "check", &path("all.tar")]).stdout).unwrap();
    let refused: Vec<_> = said.lines().filter(|line| line.starts_with("layout compactor refuses")).collect();
    let line = |path: &str| format!("layout compactor refuses: its path is taken by another entry: {path}");
    assert_eq!(refused, [line("a/b"), line("./c")], "{said}");
    assert!(
        error(&run(&["tar", "import", "--layout", "compactor", &path("all.tar"), &path("all.h5")]))
            .contains("there already")
    );
    assert!(!text(&run(&["tar", "check", &path("good.tar")])).contains("refuses"));
    text(&run(&["tar", "import", "--layout", "compactor", &path("good.tar"), &path("good.h5")]));
    let json = String::from_utf8(run(&["tar", "check", "--json", &path("all.tar")]).stdout).unwrap();
    assert!(json.contains(r#""its path is taken by another entry":{"count":2"#), "{json}");
}

#[test]
fn sparse_files_stay_sparse_in_every_layout() {
    let folder = tempfile::tempdir().unwrap();
    let script = "truncate -s 300000000 sparse; printf x | dd of=sparse bs=1 seek=200000000 conv=notrunc status=none
        tar -S -cf sparse.tar sparse";
    if !shell(folder.path(), script) {
        return;
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for layout in ["shredder", "compactor", "digest"] {
        let file = path(&format!("{layout}.h5"));
        text(&run(&["tar", "import", "--layout", layout, &path("sparse.tar"), &file]));
        let stat = fs::metadata(&file).unwrap();
        assert!(stat.len() < 20_000_000 && stat.blocks() * 512 < 20_000_000, "{layout}: {} bytes", stat.len());
        assert!(text(&run(&["tar", "verify", &file])).ends_with("300000000 bytes, 0 wrong\n"), "{layout}");
        text(&run(&["tar", "export", "--force", &file, &path("back.tar")]));
        assert!(fs::read(path("back.tar")).unwrap() == fs::read(path("sparse.tar")).unwrap(), "{layout}");
    }
}

/// Names, owners, times and attributes of everything in a folder.
const SEEN: &str = "import os, sys
for folder, folders, files in sorted(os.walk(sys.argv[1])):
    for name in sorted(folders + files):
        path = os.path.join(folder, name)
        s = os.lstat(path)
        x = {} if os.path.islink(path) else {a: os.getxattr(path, a) for a in os.listxattr(path) if a.startswith('user.')}
        print(os.path.relpath(path, sys.argv[1]), s.st_uid, s.st_gid, oct(s.st_mode), s.st_mtime_ns // 10**9, sorted(x.items()))
";

fn seen(folder: &Path, of: &str) -> String {
    let output = Command::new("python3").args(["-c", SEEN, of]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn owners_extended_attributes_and_times_of_links_are_set_as_gnu_tar_sets_them() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mkdir -p tree/d; printf a > tree/d/a; printf b > tree/b; ln -s d/a tree/soft; ln tree/b tree/hard
        python3 -c \"import os; os.setxattr('tree/d/a', 'user.one', b'1\\n2'); os.setxattr('tree/d', 'user.a=b%', b'3')
os.setxattr('tree/b', 'user.two', bytes(range(256)))\"
        chmod 440 tree/d/a; touch -h -d 2001-02-03 tree/soft; touch -d 2002-03-04 tree/d tree/b
        tar --xattrs --owner=h5live-nobody:12345 --group=h5live-none:23456 -cf all.tar tree
        mkdir gnu; tar --xattrs --same-owner -xf all.tar -C gnu";
    if !shell(folder.path(), script) {
        return;
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    text(&run(&["tar", "import", &path("all.tar"), &path("all.h5")]));
    // As root, both set owners; else both cannot, and h5live says so.
    let is_root = fs::metadata(path("gnu/tree/b")).unwrap().uid() == 12345;
    let extracted = run(&["tar", "extract", "--xattrs", "--same-owner", &path("all.h5"), &path("out")]);
    let said = String::from_utf8_lossy(&extracted.stderr).into_owned();
    assert_eq!(extracted.status.code(), Some(i32::from(!is_root)), "{said}");
    assert_eq!(said.contains("is extracted without the owner h5live-nobody:h5live-none"), !is_root, "{said}");
    assert_eq!(seen(folder.path(), "out"), seen(folder.path(), "gnu"));
    // Nothing of it without the options.
    text(&run(&["tar", "extract", &path("all.h5"), &path("plain")]));
    let plain = seen(folder.path(), "plain");
    assert!(!plain.contains("user.") && !plain.contains("12345"), "{plain}");
    assert!(plain.contains("soft") && plain.contains("981"), "{plain}");
    // What the system does not take is named.
    text(&run(&["tar", "extract", "--xattrs-include", "user.t*", &path("all.h5"), &path("some")]));
    let some = seen(folder.path(), "some");
    assert!(some.contains("user.two") && !some.contains("user.one"), "{some}");
}

#[test]
fn attributes_and_owners_that_cannot_be_set_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let script = "python3 - <<'E'
import tarfile, io
with tarfile.open('odd.tar', 'w', format=tarfile.PAX_FORMAT) as t:
    info = tarfile.TarInfo('a'); info.uid = 2**32 - 1; info.gid = 2**40; info.size = 1
    info.pax_headers = {'SCHILY.xattr.nowhere.x': 'y', 'SCHILY.xattr.user.x': 'z'}
    t.addfile(info, io.BytesIO(b'!'))
    link = tarfile.TarInfo('l'); link.type = tarfile.SYMTYPE; link.linkname = 'a'
    link.pax_headers = {'SCHILY.xattr.user.x': 'z'}
    t.addfile(link)
E";
    if !shell(folder.path(), script) {
        return;
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    text(&run(&["tar", "import", &path("odd.tar"), &path("odd.h5")]));
    let words = ["tar", "extract", "--xattrs-include", "*", "--same-owner", &path("odd.h5"), &path("out")];
    let extracted = run(&words);
    let said = String::from_utf8_lossy(&extracted.stderr).into_owned();
    assert_eq!(extracted.status.code(), Some(1), "{said}");
    for line in [
        "\"a\" is extracted without the extended attribute nowhere.x: ",
        "\"a\" is extracted without the owner 4294967295:1099511627776: its number is too large",
        "\"l\" is extracted without the extended attribute user.x: a symbolic link has none here",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(fs::read(path("out/a")).unwrap(), b"!");
}
