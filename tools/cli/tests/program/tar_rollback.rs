//! `h5live tar rollback`: an append that ended by an error, a kill or a full disk is taken back.
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use crate::common;
use crate::common::{error, run, text};

/// Makes two archives by GNU tar; `false` without it.
fn make_archives(folder: &Path) -> bool {
    let script = "mkdir -p one/d two/d; printf first > one/a; : > one/empty; printf deep > one/d/x; ln one/a one/hard
        ln -s a one/soft; head -c 300000 /dev/urandom > one/d/large; truncate -s 2000000 one/sparse
        printf x | dd of=one/sparse bs=1 seek=1500000 conv=notrunc status=none
        cp -a one/. two; printf other > two/b; mkdir two/e; printf y > two/e/y; : > two/e/none
        head -c 3000000 /dev/urandom > two/large2
        tar --format=gnu -S -cf one.tar one; tar --format=pax -cf two.tar two one";
    let made = Command::new("bash").args(["-euc", script]).current_dir(folder).output().unwrap();
    made.status.success()
}

/// What HDF5 programs see of a file, without the tables.
fn objects(file: &str) -> String {
    let listed = text(&run(&["ls", file]));
    listed.lines().filter(|line| !line.contains("/.h5live_tar")).map(|line| format!("{line}\n")).collect()
}

struct Case<'a> {
    folder: &'a Path,
    layout: &'a str,
    file: String,
    listed: String,
    seen: String,
}

impl<'a> Case<'a> {
    fn new(folder: &'a Path, layout: &'a str) -> Self {
        let file = folder.join(format!("{layout}.h5")).to_str().unwrap().to_owned();
        let one = folder.join("one.tar");
        text(&run(&["tar", "import", "--force", "--layout", layout, one.to_str().unwrap(), &file]));
        let listed = text(&run(&["tar", "ls", "--long", &file]));
        let seen = objects(&file);
        Case { folder, layout, file, listed, seen }
    }

    fn append(&self) -> Vec<&str> {
        vec!["tar", "import", "--append", "--on-collision", "suffix", "--commit-bytes", "100000"]
    }

    /// The append has failed: it is taken back, and everything is as before. Another one then succeeds.
    fn check(&self, how: &str) {
        let (file, layout) = (&*self.file, self.layout);
        let said = text(&run(&["tar", "rollback", file]));
        let names_links = said.contains("which the file did not have before: \"/");
        assert_eq!(names_links, layout != "shredder", "{layout} {how}: {said}");
        assert!(said.ends_with("taken back; the file has 1 archive, as before\n"), "{layout} {how}: {said}");
        self.check_is_as_before(how);
    }

    fn check_is_as_before(&self, how: &str) {
        let (file, layout) = (&*self.file, self.layout);
        assert_eq!(text(&run(&["tar", "ls", "--long", file])), self.listed, "{layout} {how}");
        assert_eq!(objects(file), self.seen, "{layout} {how}");
        assert!(text(&run(&["tar", "verify", file])).ends_with(", 0 wrong\n"), "{layout} {how}");
        let checked = run(&["check", "--data", file]);
        assert!(checked.status.success(), "{layout} {how}: {}", String::from_utf8_lossy(&checked.stdout));
        let back = self.folder.join("back.tar");
        text(&run(&["tar", "export", "--force", file, back.to_str().unwrap()]));
        assert!(fs::read(&back).unwrap() == fs::read(self.folder.join("one.tar")).unwrap(), "{layout} {how}");
        let members = Command::new("tar").arg("-tf").arg(&back).output().unwrap().stdout;
        assert_eq!(text(&run(&["tar", "ls", file])).as_bytes(), members, "{layout} {how}");
        let again = error(&run(&["tar", "rollback", file]));
        assert!(again.contains("no import into this file was interrupted"), "{again}");
    }
}

/// Runs the program where no file can be longer than `blocks` KiB.
fn run_on_full_disk(blocks: u64, words: &[&str]) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let program = Command::new("bash").args(["-c", &script, "bash", env!("CARGO_BIN_EXE_h5live")]).args(words).output();
    program.unwrap()
}

#[test]
fn an_append_that_failed_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    if !make_archives(folder.path()) {
        return eprintln!("skipped: there is no GNU tar");
    }
    let two = folder.path().join("two.tar");
    let (two, cut) = (two.to_str().unwrap(), folder.path().join("cut.tar").to_str().unwrap().to_owned());
    let bytes = fs::read(two).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 20_000]).unwrap();
    for layout in ["shredder", "compactor", "digest"] {
        let case = Case::new(folder.path(), layout);
        // An error.
        let failed = run(&[&case.append()[..], &[&cut, &case.file]].concat());
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(failed.status.code() == Some(2) && said.contains("tar rollback"), "{said}");
        case.check("after an error");
        // A kill.
        let mut importing = common::start(&[&case.append()[..], &["-", &case.file]].concat());
        let mut input = importing.stdin.take().unwrap();
        input.write_all(&bytes[..bytes.len() - 200_000]).unwrap();
        common::until("some entries are there", || {
            text(&run(&["tar", "ls", &case.file])).lines().count() > case.listed.lines().count() + 3
        });
        importing.kill().unwrap();
        importing.wait().unwrap();
        let listed = run(&["tar", "ls", &case.file]);
        assert!(String::from_utf8_lossy(&listed.stderr).contains("rollback"), "{listed:?}");
        case.check("after a kill");
        // A full disk, as the system says it of a file that grows beyond a limit.
        for more in [500, 4000] {
            let blocks = fs::metadata(&case.file).unwrap().len() / 1024 + more;
            let failed = run_on_full_disk(blocks, &[&case.append()[..], &[two, &case.file]].concat());
            assert!(!failed.status.success(), "{layout} {more}");
            // With too little space to begin, nothing was begun.
            match text(&run(&["dump", &case.file, "/.h5live_tar@importing"])).trim() {
                "0" => {
                    // It is closed as a writer closes it.
                    error(&run(&["tar", "rollback", &case.file]));
                    case.check_is_as_before("before the begin");
                }
                _ => {
                    // Without any space, nothing is lost by trying.
                    let blocks = fs::metadata(&case.file).unwrap().len().div_ceil(1024);
                    let failed = run_on_full_disk(blocks, &["tar", "rollback", &case.file]);
                    assert!(!failed.status.success(), "{layout} {more}");
                    case.check("after a full disk");
                }
            }
        }
        // And then it is appended.
        text(&run(&[&case.append()[..], &[two, &case.file]].concat()));
        let back = folder.path().join("two.back");
        let back = back.to_str().unwrap();
        text(&run(&["tar", "export", "--force", "--archive", "1", &case.file, back]));
        assert!(fs::read(back).unwrap() == bytes, "{layout}");
    }
}

/// Entries are written by a thread of their own, some MiB behind those that are read.
#[cfg(target_os = "linux")]
#[test]
fn an_import_that_meets_a_full_disk_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let tar = folder.path().join("many.tar");
    let mut archive = tar::Builder::new(fs::File::create(&tar).unwrap());
    for number in 0..12_000u32 {
        let contents = number.to_le_bytes().repeat(200);
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, format!("{}/{number}", number / 100), &*contents).unwrap();
    }
    archive.finish().unwrap();
    for layout in ["shredder", "compactor"] {
        let script = r#"head -c 20M /dev/zero > filler
            "$0" tar import --quiet --commit-bytes 1000000 --layout "$2" "$1" out.h5; echo "import $?"
            rm filler; "$0" tar import --quiet --resume "$1" out.h5; echo "resume $?"
            "$0" tar export --force out.h5 - | cmp - "$1"; echo "export $?"; "$0" check --data out.h5; echo "check $?""#;
        let arguments = [tar.to_str().unwrap(), layout];
        let Some(output) = common::on_small_disk(26 << 20, script, &arguments) else { return };
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        let all = ["import 2", "No space left on device", "resume 0", "export 0", "check 0"];
        assert!(all.iter().all(|part| said.contains(part)), "{layout}: {said}");
    }
}
