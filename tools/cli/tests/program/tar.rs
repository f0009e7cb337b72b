//! `h5live tar`: archives of other programs into files and back, with nothing lost, and nothing written elsewhere.
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common;
use crate::common::{error, h5live, h5py, python, run, shared, text};

/// What makes archives.
fn maker(name: &str) -> Option<&str> {
    let found = Command::new(name).arg("--version").stdin(Stdio::null()).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(name);
    }
    eprintln!("skipped: what needs {name}, which is not there");
    None
}

fn shell(folder: &Path, script: &str) {
    let output = Command::new("bash").args(["-euc", script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with files of every kind that an archive may have.
fn make_tree(folder: &Path) {
    let long = "n".repeat(100);
    shell(
        folder,
        &format!(
            "mkdir -p tree/d/empty tree/{long}/{long}/{long}
             printf cat > tree/d/0001.jpg; printf 3 > tree/d/0001.cls; printf '{{}}' > tree/d/0001.json
             head -c 70000 /dev/urandom > tree/d/large.bin
             : > tree/empty.txt
             printf deep > tree/{long}/{long}/{long}/{long}
             printf u > tree/gr\u{fc}n.txt
             printf l > tree/$'latin-\\xe9.txt'
             cp tree/d/0001.jpg tree/copy.jpg
             ln tree/d/0001.jpg tree/hard.jpg
             ln -s d/0001.jpg tree/soft.jpg; touch -h -d 2001-02-03 tree/soft.jpg; ln -s /etc/passwd tree/outside
             mkfifo tree/pipe
             truncate -s 3000000 tree/sparse; printf x | dd of=tree/sparse bs=1 seek=1500000 conv=notrunc status=none
             chmod 640 tree/d/0001.cls; chmod 700 tree/d
             touch -d '2001-02-03 04:05:06.789' tree/d/0001.jpg; touch -d 1960-01-01 tree/empty.txt"
        ),
    );
}

const PYTHON_ARCHIVE: &str = "import sys, tarfile, io
form = {'pax': tarfile.PAX_FORMAT, 'gnu': tarfile.GNU_FORMAT}[sys.argv[1]]
with tarfile.open(sys.argv[2], 'w', format=form, encoding='utf-8', errors='surrogateescape') as t:
    t.add('tree')
    for name in ['twice', 'twice', './twice', '../up', '/root']:
        info = tarfile.TarInfo(name); info.size = 3; info.uname = 'gr\\u00fcn'
        t.addfile(info, io.BytesIO(b'abc'))
    info = tarfile.TarInfo('device'); info.type = tarfile.CHRTYPE; info.devmajor = 1; info.devminor = 3
    t.addfile(info)
";

/// Archives by programs of others: name, and what makes it.
fn archives(folder: &Path) -> Vec<PathBuf> {
    make_tree(folder);
    let mut made = Vec::new();
    let mut make = |name: &str, script: String| {
        shell(folder, &script);
        made.push(folder.join(name));
    };
    if maker("tar").is_some() {
        make("gnu.tar", "tar --format=gnu -cf gnu.tar tree".into());
        make("gnu-sparse.tar", "tar --format=gnu -S -cf gnu-sparse.tar tree".into());
        make("pax.tar", "tar --format=pax --pax-option=globexthdr.comment=x -cf pax.tar tree".into());
        for version in ["0.0", "0.1", "1.0"] {
            let name = format!("pax-sparse-{version}.tar");
            make(&name, format!("tar --format=pax -S --sparse-version={version} -cf {name} tree"));
        }
        make("ustar.tar", "tar --format=ustar -cf ustar.tar tree/d tree/hard.jpg ./tree/soft.jpg".into());
        make("v7.tar", "tar --format=v7 -cf v7.tar tree/d tree/soft.jpg".into());
        make(
            "label.tar.gz",
            "tar --format=gnu -V label -czf label.tar.gz tree/d && tar -cf twice.tar tree/d/0001.jpg".into(),
        );
    }
    if maker("bsdtar").is_some() {
        make("bsd-pax.tar", "bsdtar --format=pax -cf bsd-pax.tar tree".into());
        make("bsd-ustar.tar", "bsdtar --format=ustar -cf bsd-ustar.tar tree/d tree/hard.jpg tree/copy.jpg".into());
        make("bsd-gnu.tar", "bsdtar --format=gnutar -cf bsd-gnu.tar tree".into());
    }
    for format in ["pax", "gnu"] {
        fs::write(folder.join("make.py"), PYTHON_ARCHIVE).unwrap();
        let name = format!("python-{format}.tar");
        make(&name, format!("python3 make.py {format} {name}"));
    }
    for (program, suffix) in [("xz", "xz"), ("zstd", "zst"), ("bzip2", "bz2"), ("gzip", "gz")] {
        if maker(program).is_some() && folder.join("pax.tar").exists() {
            make(&format!("pax.tar.{suffix}"), format!("{program} -k -q pax.tar"));
        }
    }
    made
}

/// The archive without its compression.
fn plain(path: &Path) -> Vec<u8> {
    let by = |program: &str| Command::new(program).arg("-dc").arg(path).output().unwrap().stdout;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => by("gzip"),
        Some("xz") => by("xz"),
        Some("zst") => by("zstd"),
        Some("bz2") => by("bzip2"),
        _ => fs::read(path).unwrap(),
    }
}

/// Names that are no line of text are listed as escapes, by which they are found.
#[test]
fn names_with_control_characters_or_without_utf_8_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let [archive, file] = ["odd.tar", "odd.h5"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let mut builder = tar::Builder::new(Vec::new());
    let names: [(&[u8], &str); 5] = [
        (b"a\nb", "a\\nb"),
        (b"c\x1b[31md", "c\\x1b[31md"),
        (b"e\xff", "e\\xff"),
        (b"f\\n", "f\\\\n"),
        (b"empty\x01", "empty\\x01"),
    ];
    for (number, (name, _)) in names.iter().enumerate() {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name);
        header.set_size(u64::from(number < 4));
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, &[b'0' + number as u8][..usize::from(number < 4)]).unwrap();
    }
    fs::write(&archive, builder.into_inner().unwrap()).unwrap();
    text(&run(&["tar", "import", &archive, &file]));
    let listed = text(&run(&["tar", "ls", &file]));
    assert_eq!(listed.lines().collect::<Vec<_>>(), names.map(|(_, escaped)| escaped));
    for (number, (_, escaped)) in names.iter().enumerate().take(4) {
        assert_eq!(text(&run(&["tar", "cat", &file, escaped])), number.to_string());
    }
    assert_eq!(text(&run(&["tar", "cat", &file, "empty\\x01"])), "");
    // A name as it is comes first.
    assert_eq!(text(&run(&["tar", "cat", &file, "f\\n"])), "3");
    let json = text(&run(&["tar", "ls", "--json", &file]));
    assert!(json.contains(r#""escaped_path":"e\\xff""#), "{json}");
}

#[test]
fn an_archive_behind_another_is_told_with_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let [archive, file] = ["two.tar", "two.h5"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let one = |name: &str| {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        header.set_cksum();
        builder.append_data(&mut header, name, &b"x"[..]).unwrap();
        builder.into_inner().unwrap()
    };
    fs::write(&archive, [one("a"), one("b")].concat()).unwrap();
    let output = run(&["tar", "import", &archive, &file]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("--ignore-zeros"), "{said}");
    assert_eq!(run(&["tar", "check", &archive]).status.code(), Some(1));
    text(&run(&["tar", "check", "--ignore-zeros", &archive]));
    text(&run(&["tar", "import", "--force", "--ignore-zeros", &archive, &file]));
    assert_eq!(text(&run(&["tar", "ls", &file])), "a\nb\n");
}

#[test]
fn archives_of_gnu_tar_bsdtar_and_python_come_back_byte_for_byte_from_every_layout() {
    let folder = tempfile::tempdir().unwrap();
    let archives = archives(folder.path());
    assert!(archives.len() >= 10, "{archives:?}");
    for archive in &archives {
        let wanted = plain(archive);
        for layout in ["shredder", "compactor", "digest"] {
            let (file, back) = (folder.path().join("out.h5"), folder.path().join("back.tar"));
            let words = ["tar", "import", "--force", "--on-collision", "suffix", "--layout", layout];
            let paths = [archive.to_str().unwrap(), file.to_str().unwrap()];
            let imported = run(&[&words[..], &paths].concat());
            assert!(imported.status.success(), "{archive:?} {layout}: {}", String::from_utf8_lossy(&imported.stderr));
            text(&run(&["tar", "export", "--force", file.to_str().unwrap(), back.to_str().unwrap()]));
            for to_standard_output in [&[file.to_str().unwrap()][..], &[file.to_str().unwrap(), "-"]] {
                let printed = run(&[&["tar", "export"], to_standard_output].concat()).stdout;
                assert!(printed == fs::read(&back).unwrap(), "{archive:?} {layout}");
            }
            assert!(fs::read(&back).unwrap() == wanted, "{archive:?} {layout}");
            let verified = text(&run(&["tar", "verify", file.to_str().unwrap()]));
            assert!(verified.ends_with(", 0 wrong\n"), "{verified}");
            let checked = run(&["check", "--data", file.to_str().unwrap()]);
            assert!(checked.status.success(), "{archive:?} {layout}: {}", String::from_utf8_lossy(&checked.stdout));
        }
    }
}

/// Samples are read from any store, by number and by name.
#[test]
fn samples_and_the_archive_come_out_of_every_store_to_which_the_file_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    make_tree(folder.path());
    // The schema of HSDS has no names that are not UTF-8.
    shell(folder.path(), "tar --format=gnu -S --exclude='latin*' -cf all.tar tree");
    let wanted = fs::read(folder.path().join("all.tar")).unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for layout in ["shredder", "compactor", "digest"] {
        let file = at(&format!("{layout}.h5"));
        text(&run(&["tar", "import", "--layout", layout, &at("all.tar"), &file]));
        let listed = run(&["tar", "ls", &file]).stdout;
        assert!(listed.ends_with(b"\n"));
        for store in ["log", "kv", "hsds"] {
            let copy = format!("{store}:{}", at(&format!("{layout}-{store}")));
            text(&run(&["copy", "--quiet", &file, &copy]));
            assert!(run(&["tar", "ls", &copy]).stdout == listed, "{copy}");
            assert_eq!(text(&run(&["tar", "cat", &copy, "tree/d/0001.jpg"])), "cat", "{copy}");
            assert!(run(&["tar", "export", &copy, "-"]).stdout == wanted, "{copy}");
            assert!(text(&run(&["tar", "verify", &copy])).ends_with(", 0 wrong\n"), "{copy}");
        }
    }
}

#[test]
fn files_come_out_with_their_contents_and_nothing_is_written_outside_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    make_tree(folder.path());
    fs::write(folder.path().join("make.py"), PYTHON_ARCHIVE).unwrap();
    // A link that leads out, and a file below it.
    let script = "python3 make.py pax all.tar; mkdir out; ln -s .. out/escape; python3 - <<'E'
import tarfile, io
with tarfile.open('all.tar', 'a') as t:
    link = tarfile.TarInfo('trap'); link.type = tarfile.SYMTYPE; link.linkname = '..'; t.addfile(link)
    for name in ['trap/caught', 'escape/caught', 'tree/outside/caught']:
        info = tarfile.TarInfo(name); info.size = 1; t.addfile(info, io.BytesIO(b'!'))
    hard = tarfile.TarInfo('stolen'); hard.type = tarfile.LNKTYPE; hard.linkname = '../make.py'; t.addfile(hard)
    hard = tarfile.TarInfo('stolen2'); hard.type = tarfile.LNKTYPE; hard.linkname = 'escape/make.py'; t.addfile(hard)
E";
    shell(folder.path(), script);
    let (file, out) = (folder.path().join("all.h5"), folder.path().join("out"));
    text(&run(&["tar", "import", folder.path().join("all.tar").to_str().unwrap(), file.to_str().unwrap()]));
    let before: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let extracted = run(&["tar", "extract", file.to_str().unwrap(), out.to_str().unwrap()]);
    assert_eq!(extracted.status.code(), Some(1), "{}", String::from_utf8_lossy(&extracted.stderr));
    let refused = String::from_utf8_lossy(&extracted.stderr).into_owned();
    for path in ["../up", "/root", "escape/caught", "tree/outside", "stolen", "stolen2", "trap", "device", "tree/pipe"]
    {
        assert!(refused.contains(&format!("{path:?} is not extracted")), "{path}: {refused}");
    }
    let mut after: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    after.retain(|name| !before.contains(name));
    assert!(after.is_empty(), "{after:?}");
    let compare =
        "diff -r --no-dereference -x pipe -x outside tree out/tree; test $(stat -c %a out/tree/d/0001.cls) = 640
        test out/tree/hard.jpg -ef out/tree/d/0001.jpg; test -L out/tree/soft.jpg; cat out/trap/caught
        test $(stat -c %Y out/tree/d/0001.jpg) = $(stat -c %Y tree/d/0001.jpg)
        test $(stat -c %Y out/tree/empty.txt) = $(stat -c %Y tree/empty.txt)
        test $(stat -c %Y out/tree/soft.jpg) = $(stat -c %Y tree/soft.jpg); test $(cat out/twice) = abc";
    shell(folder.path(), compare);
}

/// What h5py says of a file: paths, types, shapes, chunks, filters, values; without the tables of an import.
const DESCRIBE: &str = "
import hashlib
out = []
def visit(name, o):
    if name.startswith('.h5live_tar') or not isinstance(o, h5py.Dataset): return
    plist = o.id.get_create_plist()
    values = o[...]
    out.append((name, str(o.dtype), o.shape, o.maxshape, o.chunks, o.compression, o.compression_opts,
                plist.get_layout(), hashlib.sha256(values.tobytes()).hexdigest()))
with h5py.File(path) as f:
    f.visititems(visit)
    out.append(h5py.h5f.get_libver_bounds(f.id) if hasattr(h5py.h5f, 'get_libver_bounds') else '')
out.append(open(path, 'rb').read(9)[8])
print(sorted(map(str, out)))
";

#[test]
fn what_the_original_programs_made_of_their_sample_h5py_finds_in_ours() {
    let (Some(shared), Some(python)) = (shared(), python()) else { return };
    let samples = shared.join("samples/tar");
    let folder = tempfile::tempdir().unwrap();
    for (layout, original) in [("shredder", "shredder"), ("compactor", "compactor"), ("digest", "compactor-sha1")] {
        let file = folder.path().join(format!("{layout}.h5"));
        let archive = samples.join("demo.tar");
        let mut words = vec!["tar", "import", "--layout", layout, archive.to_str().unwrap(), file.to_str().unwrap()];
        if layout == "shredder" {
            words.push("--no-sentinel");
        }
        text(&run(&words));
        let theirs = h5py(&python, DESCRIBE, &samples.join(format!("demo.tar.{original}.h5")));
        assert_eq!(h5py(&python, DESCRIBE, &file), theirs, "{layout}");
        let theirs = samples.join(format!("demo.tar.{original}.h5"));
        let name = "./beverage-cafe.jpg";
        let bytes = run(&["tar", "cat", file.to_str().unwrap(), name]).stdout;
        assert_eq!(bytes.len(), 54607);
        if layout == "shredder" {
            // The reader takes the original program's file, too.
            assert_eq!(run(&["tar", "cat", theirs.to_str().unwrap(), name]).stdout, bytes);
            let refused = error(&run(&["tar", "export", theirs.to_str().unwrap()]));
            assert!(refused.ends_with("the file was not made by `h5live tar import`"), "{refused}");
        }
    }
}

#[test]
fn a_file_of_the_original_shredder_is_listed_extracted_and_read_to_the_end() {
    let Some(shared) = shared() else { return };
    let samples = shared.join("samples/tar");
    let theirs = samples.join("demo.tar.shredder.h5").display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let ours = at("ours.h5").display().to_string();
    text(&run(&["tar", "import", samples.join("demo.tar").to_str().unwrap(), &ours]));
    // It has the samples alone, without folders.
    let of_files: Vec<_> = text(&run(&["tar", "ls", "--long", &ours]))
        .lines()
        .filter(|line| line.starts_with('-'))
        .filter_map(|line| line.split_whitespace().last().map(str::to_owned))
        .collect();
    let listed = text(&run(&["tar", "ls", &theirs]));
    assert_eq!(listed.lines().collect::<Vec<_>>(), of_files);
    let long = text(&run(&["tar", "ls", "--long", &theirs]));
    assert!(long.lines().any(|line| line.ends_with("54607 ./beverage-cafe.jpg")), "{long}");
    let json: serde_json::Value =
        serde_json::from_str(text(&run(&["tar", "ls", "--json", &theirs])).lines().next().unwrap()).unwrap();
    assert!(json["mtime"].is_null() && json["size"].is_u64(), "{json}");
    for (file, to) in [(&theirs, at("theirs")), (&ours, at("ours"))] {
        text(&run(&["tar", "extract", file, to.to_str().unwrap()]));
    }
    for name in &of_files {
        assert_eq!(fs::read(at("theirs").join(name)).unwrap(), fs::read(at("ours").join(name)).unwrap(), "{name}");
    }
    // Nobody can say whether the contents are right.
    let verified = run(&["tar", "verify", &theirs]);
    assert_eq!(verified.status.code(), Some(1));
    let said = String::from_utf8(verified.stdout).unwrap();
    assert!(said.contains("0 wrong") && said.contains("it has no digests"), "{said}");
    let plain = at("plain.h5");
    h5live::File::create(&plain).unwrap().close().unwrap();
    let refused = error(&run(&["tar", "ls", plain.to_str().unwrap()]));
    assert!(refused.ends_with("the file was not made by `h5live tar import`"), "{refused}");
}

#[test]
fn an_import_that_is_killed_at_many_points_is_continued_and_ends_like_one_that_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mkdir t; for i in $(seq 300); do head -c $((i * 97 % 9000)) /dev/urandom > t/$((i % 7))-$i.bin; done
        ln t/1-1.bin t/hard; cp t/2-2.bin t/copy; tar --format=pax -cf a.tar t; tar -cf b.tar t/1-1.bin";
    shell(folder.path(), script);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // About how often each is killed.
    let kills: i32 = std::env::var("H5LIVE_TEST_KILLS").map_or(35, |text| text.parse().unwrap());
    for layout in ["shredder", "compactor", "digest"] {
        let (whole, cut) = (path(&format!("{layout}-whole.h5")), path(&format!("{layout}-cut.h5")));
        let archive = path("a.tar");
        text(&run(&["tar", "import", "--layout", layout, &path("a.tar"), &whole]));
        let mut killed = 0;
        loop {
            let exists = Path::new(&cut).exists();
            let begins: &[&str] = if exists { &["--resume"] } else { &["--layout", layout] };
            let words = [&["tar", "import", "--commit-bytes", "8000", &archive, &cut], begins].concat();
            let mut child = h5live().args(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            // Where it is killed is up to chance. Later ones live longer, so that one of them ends.
            let factor = 133f64.powf(f64::from(killed) / f64::from(kills));
            std::thread::sleep(std::time::Duration::from_millis(2).mul_f64(factor));
            let _ = child.kill();
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                break;
            }
            let errors = String::from_utf8_lossy(&output.stderr);
            if errors.contains("no import into this file was interrupted") {
                break;
            }
            assert!(errors.is_empty(), "{layout}: {errors}");
            killed += 1;
            assert!(killed < 3 * kills, "{layout}: no import has ended");
        }
        eprintln!("{layout}: killed {killed} times");
        assert!(text(&run(&["tar", "verify", &cut])).ends_with(", 0 wrong\n"));
        text(&run(&["diff", &whole, &cut]));
        text(&run(&["tar", "export", "--force", &cut, &path("back.tar")]));
        assert!(fs::read(path("back.tar")).unwrap() == fs::read(path("a.tar")).unwrap(), "{layout}");
        text(&run(&["check", "--data", &cut]));
        // Another archive behind it.
        text(&run(&["tar", "import", "--append", "--on-collision", "alias", &path("b.tar"), &cut]));
        text(&run(&["tar", "export", "--force", "--archive", "1", &cut, &path("back.tar")]));
        assert!(fs::read(path("back.tar")).unwrap() == fs::read(path("b.tar")).unwrap(), "{layout}");
    }
}

#[test]
fn contents_are_compressed_if_that_pays() {
    let folder = tempfile::tempdir().unwrap();
    let script = "for i in $(seq 40); do seq $i 3000 > t$i; head -c 20000 /dev/urandom > r$i; done
        tar -cf text.tar t*; tar -cf random.tar r*";
    shell(folder.path(), script);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (archive, first, is_smaller) in [("text.tar", "t1", true), ("random.tar", "r1", false)] {
        let file = path(&format!("{archive}.h5"));
        text(&run(&["tar", "import", "--compress", "auto", &path(archive), &file]));
        text(&run(&["tar", "export", "--force", &file, &path("back.tar")]));
        let wanted = fs::read(path(archive)).unwrap();
        assert!(fs::read(path("back.tar")).unwrap() == wanted, "{archive}");
        assert_eq!(run(&["tar", "cat", &file, first]).stdout, fs::read(path(first)).unwrap());
        // Chunks of offsets and of the image have sizes of their own.
        let image = h5live::File::open(Path::new(&file)).unwrap().dataset("image").unwrap();
        let stored: u64 = image.stored_chunks().unwrap().iter().map(|chunk| chunk.size).sum();
        assert_eq!(stored < wanted.len() as u64 / 2, is_smaller, "{archive}: {stored} of {}", wanted.len());
    }
    let refused =
        error(&run(&["tar", "import", "--layout", "digest", "--compress", "lz4", &path("text.tar"), &path("no.h5")]));
    assert!(refused.contains("the layout digest does not compress contents"), "{refused}");
    assert!(!Path::new(&path("no.h5")).exists());
}

#[test]
fn a_continued_import_refuses_another_archive() {
    let folder = tempfile::tempdir().unwrap();
    shell(folder.path(), "printf a > a; printf b > b; tar -cf a.tar a; tar -cf b.tar b; head -c 1100 a.tar > cut.tar");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let cut = error(&run(&["tar", "import", &path("cut.tar"), &path("cut.h5")]));
    assert!(cut.contains("the archive ends here"), "{cut}");
    let other = error(&run(&["tar", "import", "--resume", &path("b.tar"), &path("cut.h5")]));
    assert!(other.contains("this is not the archive whose import was interrupted"), "{other}");
    text(&run(&["tar", "import", "--resume", &path("a.tar"), &path("cut.h5")]));
    assert_eq!(run(&["tar", "cat", &path("cut.h5"), "a"]).stdout, b"a");
    let salvaged = run(&["tar", "import", "--salvage", &path("cut.tar"), &path("salvaged.h5")]);
    assert_eq!(salvaged.status.code(), Some(1));
    assert_eq!(run(&["tar", "cat", &path("salvaged.h5"), "a"]).stdout, b"a");
    let exists = error(&run(&["tar", "import", &path("a.tar"), &path("cut.h5")]));
    assert!(exists.contains("--force"), "{exists}");
}

#[test]
fn archives_of_several_files_are_merged_into_one() {
    let folder = tempfile::tempdir().unwrap();
    shell(folder.path(), "printf a > a; printf b > b; tar -cf a.tar a; tar -cf b.tar b a");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    text(&run(&["tar", "import", &path("a.tar"), &path("a.h5")]));
    text(&run(&["tar", "import", "--layout", "digest", &path("b.tar"), &path("b.h5")]));
    text(&run(&["tar", "merge", &path("all.h5"), &path("a.h5"), &path("b.h5")]));
    for (number, archive) in [("0", "a.tar"), ("1", "b.tar")] {
        text(&run(&["tar", "export", "--force", "--archive", number, &path("all.h5"), &path("back.tar")]));
        assert!(fs::read(path("back.tar")).unwrap() == fs::read(path(archive)).unwrap(), "{archive}");
    }
    assert_eq!(text(&run(&["tar", "ls", &path("all.h5")])), "a\nb\na\n");
    assert_eq!(run(&["tar", "cat", &path("all.h5"), "b", "a"]).stdout, [b'b', b'a']);
    let many = error(&run(&["tar", "export", &path("all.h5")]));
    assert!(many.contains("2 archives"), "{many}");
}

#[test]
fn a_merge_that_fails_replaces_nothing_and_a_source_may_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    shell(folder.path(), "printf a > a; printf b > b; tar -cf a.tar a; tar -cf b.tar b");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    text(&run(&["tar", "import", &path("a.tar"), &path("a.h5")]));
    text(&run(&["tar", "import", &path("b.tar"), &path("b.h5")]));
    let kept = fs::read(path("a.h5")).unwrap();
    let twice = ["tar", "merge", "--force", "--layout", "compactor", &path("a.h5"), &path("b.h5"), &path("b.h5")];
    let taken = error(&run(&twice));
    assert!(taken.contains('b'), "{taken}");
    assert!(fs::read(path("a.h5")).unwrap() == kept, "a merge that failed replaced a file");
    text(&run(&["tar", "merge", "--force", &path("a.h5"), &path("a.h5"), &path("b.h5")]));
    assert_eq!(text(&run(&["tar", "ls", &path("a.h5")])), "a\nb\n");
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 6, "{names:?}");
}

#[test]
fn a_virtual_merge_has_all_samples_and_leaves_the_contents_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    make_tree(folder.path());
    shell(folder.path(), "mkdir '10%'; tar --format=gnu -S -cf a.tar tree; tar -cf b.tar tree/d");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    text(&run(&["tar", "import", &path("a.tar"), &path("10%/a.h5")]));
    text(&run(&["tar", "import", "--no-sentinel", &path("b.tar"), &path("b%b.h5")]));
    text(&run(&["tar", "merge", "--virtual", &path("all.h5"), &path("10%/a.h5"), &path("b%b.h5")]));
    for (number, archive) in [("0", "a.tar"), ("1", "b.tar")] {
        text(&run(&["tar", "export", "--force", "--archive", number, &path("all.h5"), &path("back.tar")]));
        assert!(fs::read(path("back.tar")).unwrap() == fs::read(path(archive)).unwrap(), "{archive}");
    }
    assert!(text(&run(&["tar", "verify", &path("all.h5")])).ends_with(", 0 wrong\n"));
    if let Some(python) = python() {
        let same = "a = h5py.File(path.replace('all', '10%/a'))['image'][:]
all = h5py.File(path)
assert [s.file_name for s in all['image'].virtual_sources()] == ['10%%/a.h5', 'b%%b.h5']
assert (all['image'][:len(a)] == a).all() and len(all['image']) == all['image_offset'][-1]";
        h5py(&python, same, &folder.path().join("all.h5"));
    }
    text(&run(&["tar", "import", "--layout", "digest", &path("b.tar"), &path("c.h5")]));
    let digest = error(&run(&["tar", "merge", "--virtual", &path("no.h5"), &path("c.h5")]));
    assert!(digest.contains("the layout is digest"), "{digest}");
    assert!(!folder.path().join("no.h5").exists());
    let kept = fs::read(path("a.tar")).unwrap();
    assert!(!run(&["tar", "merge", "--virtual", "--force", &path("a.tar"), &path("c.h5")]).status.success());
    assert!(fs::read(path("a.tar")).unwrap() == kept, "a refused merge replaces nothing");
    // Contents that cannot be read, or are away, are not zeros.
    let (source, sound) = (path("b%b.h5"), fs::read(path("b%b.h5")).unwrap());
    let mut damage: Vec<(&str, &dyn Fn())> = Vec::new();
    let cut = || fs::write(&source, &sound[..sound.len() / 2]).unwrap();
    let overwrite = || fs::write(&source, [7; 9000]).unwrap();
    let remove = || fs::remove_file(&source).unwrap();
    damage.extend([("cut", &cut as &dyn Fn()), ("damaged", &overwrite), ("away", &remove)]);
    for (what, act) in damage {
        act();
        let (all, back, new) = (path("all.h5"), path("back.tar"), path(what));
        let commands: [&[&str]; 3] = [
            &["tar", "cat", &all, "tree/d/0001.jpg"],
            &["tar", "export", "--force", "--archive", "1", &all, &back],
            &["tar", "extract", &all, &new],
        ];
        for command in commands {
            let output = run(command);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let read = output.status.success() && command[1] == "cat" && !output.stdout.contains(&0);
            assert!(read || !output.status.success() && errors.contains("b%"), "{what}: {command:?}: {errors}");
        }
    }
    assert_ne!(run(&["tar", "verify", &path("all.h5")]).status.code(), Some(0), "contents that are away are not zeros");
}

#[test]
fn check_says_what_is_in_an_archive_and_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    make_tree(folder.path());
    fs::write(folder.path().join("make.py"), PYTHON_ARCHIVE).unwrap();
    shell(folder.path(), "python3 make.py pax all.tar; head -c 5000 all.tar > cut.tar; tar -cf ok.tar tree/d/0001.jpg");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let clean = text(&run(&["tar", "check", &path("ok.tar")]));
    assert!(clean.contains("\n1 files can be extracted.\n"), "{clean}");
    let checked = run(&["tar", "check", "--json", &path("all.tar")]);
    assert_eq!(checked.status.code(), Some(1));
    let found: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(found["kinds"]["symbolic link"], 2);
    assert_eq!(found["empty"], 1);
    assert_eq!(found["over_64_kib"], 2);
    assert_eq!(found["unsafe_paths"]["examples"], serde_json::json!(["../up", "/root"]));
    assert_eq!(found["collisions"]["count"], 2);
    assert_eq!(found["largest"]["bytes"], 3_000_000);
    assert!(found["fault"].is_null());
    let cut = run(&["tar", "check", &path("cut.tar")]);
    assert_eq!(cut.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&cut.stdout).contains("damaged: "), "{cut:?}");
}

#[test]
fn readers_have_the_samples_that_are_there_while_the_import_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    shell(folder.path(), "for i in 0 1 2; do printf \"sample $i\" > $i; done; tar -cf all.tar 0 1 2");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let archive = fs::read(path("all.tar")).unwrap();
    for layout in ["shredder", "compactor"] {
        let file = path(&format!("{layout}.h5"));
        let mut importing = common::start(&["tar", "import", "--layout", layout, "--commit-bytes", "1", "-", &file]);
        let mut input = importing.stdin.take().unwrap();
        // Two entries, and not the third header.
        input.write_all(&archive[..2048]).unwrap();
        common::until("two samples are there", || run(&["tar", "cat", &file, "--sample", "1"]).stdout == b"sample 1");
        assert_eq!(run(&["tar", "cat", &file, "0"]).stdout, b"sample 0");
        let export = error(&run(&["tar", "export", &file]));
        assert!(export.contains("was interrupted"), "{export}");
        let verified = run(&["tar", "verify", &file]);
        assert_eq!(verified.status.code(), Some(1), "{verified:?}");
        assert!(String::from_utf8_lossy(&verified.stdout).contains("not all entries are there"), "{verified:?}");
        let listed = run(&["tar", "ls", &file]);
        assert!(String::from_utf8_lossy(&listed.stderr).contains("not all entries are there"), "{listed:?}");
        input.write_all(&archive[2048..]).unwrap();
        drop(input);
        text(&importing.wait_with_output().unwrap());
        assert_eq!(run(&["tar", "cat", &file, "2"]).stdout, b"sample 2");
        assert!(text(&run(&["tar", "verify", &file])).contains("3 samples"));
    }
}
