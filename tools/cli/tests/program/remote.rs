//! Files on object stores and web servers, by the program.
#![cfg(feature = "remote-tests")]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

use crate::common::manifests::{agree, files, in_parallel};
use crate::common::{error, run_with, shared, start, text, until};
use h5live::File;
use h5live_objects::testing::{FaultyProxy, FileServer, ProxyFaults, S3Server, has_aws_env_credentials};

fn h5live(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_h5live")).args(args).output().unwrap()
}

fn succeed(args: &[&str]) -> String {
    let output = h5live(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn fail(args: &[&str]) -> String {
    let output = h5live(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Makes a file with so many rows in chunks that are filtered, chunks that are not, and a contiguous dataset.
fn make_file(path: &Path, rows: u32) {
    let file = File::create(path).unwrap();
    let values: Vec<f64> = (0..rows).map(|row| f64::from(row) / 7.0).collect();
    let shape = [values.len() as u64];
    let packed = file.new_dataset::<f64>().shape(&shape).chunk_shape(&[1000]).deflate(1);
    packed.create_with_data("packed", &values).unwrap();
    file.new_dataset::<f64>().shape(&shape).chunk_shape(&[7777]).create_with_data("plain", &values).unwrap();
    file.new_dataset::<f64>().shape(&shape).create_with_data("group/whole", &values).unwrap();
    file.close().unwrap();
}

/// Files with elements in raw files beside them, which nobody opens for a file that is on a server.
const WITH_RAW_FILES: [&str; 5] = [
    "generated/external.earliest.h5",
    "libhdf5/h5repack/h5repack_ext.h5",
    "libhdf5/h5repack/h5repack_f32le_ex.h5",
    "libhdf5/h5repack/h5repack_int32le_1d_ex.h5",
    "libhdf5/h5repack/h5repack_int32le_3d_ex.h5",
];

/// A manifest of which nobody has read the elements in raw files.
fn without_raw_files(manifest: &str) -> String {
    let is_raw = |described: &str| {
        let layout = described.rsplit('\t').next().unwrap_or_default();
        layout.split(' ').next() == Some("external")
    };
    let line = |line: &str| match line.rsplit_once('\t') {
        Some((described, _)) if is_raw(described) => format!("{described}\tunreadable\n"),
        _ => format!("{line}\n"),
    };
    manifest.lines().map(line).collect()
}

#[test]
fn the_corpus_reads_the_same_from_a_web_server() {
    let Some(corpus) = shared().map(|shared| shared.join("corpus")) else { return };
    let server = FileServer::start(&corpus).unwrap();
    let references: Vec<_> = files(&corpus, "manifest");
    let (differing, total) = (Mutex::new(BTreeSet::new()), references.len());
    in_parallel(references, |reference| {
        let file = reference.with_extension("");
        let name = file.strip_prefix(&corpus).unwrap().display().to_string();
        let of = |location: &str| h5live(&["--max-allocation", "536870912", "manifest", location]);
        let (local, remote) = (of(file.to_str().unwrap()), of(&server.url(&name.replace(' ', "%20"))));
        let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
        let is_known = WITH_RAW_FILES.contains(&name.as_str());
        let wanted = if is_known { without_raw_files(&text(&local)) } else { text(&local) };
        if local.status.code() != remote.status.code() || !agree(&wanted, &text(&remote)) {
            let said = String::from_utf8_lossy(&remote.stderr).lines().next().unwrap_or_default().to_owned();
            differing.lock().unwrap().insert(format!("{name}: {said}"));
        }
        if is_known {
            assert_ne!(wanted, text(&local), "{name} has no raw files");
        }
    });
    println!("{total} files, {} requests", server.request_count());
    assert_eq!(differing.into_inner().unwrap(), BTreeSet::new(), "files that read otherwise");
    let output = h5live(&["dump", &server.url(WITH_RAW_FILES[1])]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && said.contains("not in the file system"), "{said}");
}

#[test]
fn a_file_is_copied_to_an_s3_server_and_read_there() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket("bucket");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.h5");
    make_file(&file, 400_000);
    let file = file.to_str().unwrap();
    let proxy = FaultyProxy::start(server.address(), ProxyFaults { per_mille: 150, seed: 5, ..ProxyFaults::default() });
    let proxy = proxy.unwrap();
    let at = |name: &str| {
        format!("s3://bucket/runs/{name}?endpoint={}&region=us-east-1&allow_http=yes&attempts=12", proxy.endpoint())
    };
    let (here, again) = (at("a.h5"), folder.path().join("again.h5"));
    succeed(&["copy", file, &here]);
    assert_eq!(succeed(&["manifest", file]), succeed(&["manifest", &here]));
    assert_eq!(succeed(&["dump", file]), succeed(&["dump", &here]));
    assert_eq!(succeed(&["ls", file]).lines().count(), succeed(&["ls", &here]).lines().count());
    succeed(&["diff", file, &here]);
    succeed(&["copy", &here, again.to_str().unwrap()]);
    succeed(&["diff", file, again.to_str().unwrap()]);
    println!("{} of {} requests failed", proxy.injected_failure_count(), proxy.request_count());
    let said = fail(&["copy", file, &here]);
    assert!(said.contains("s3://bucket/runs/a.h5: the object exists already"), "{said}");
    succeed(&["copy", "--force", file, &here]);
    let said = fail(&["ls", &at("none.h5")]);
    assert!(said.contains("s3://bucket/runs/none.h5") && said.contains("NoSuchKey"), "{said}");
    let said = fail(&["set", &here, "/@x", "1"]);
    assert!(said.contains("writing a file on an object store"), "{said}");
    let said = fail(&["ls", &format!("{here}&zone=x")]);
    assert!(said.contains(r#"has no option "zone""#) && said.contains("region"), "{said}");
}

#[test]
fn what_cannot_be_reached_or_may_not_be_read_is_said() {
    if !has_aws_env_credentials() {
        return;
    }
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = fail(&["ls", &format!("s3://b/a.h5?endpoint=http://{address}&allow_http=yes&attempts=2&region=x")]);
    assert!(said.contains("s3://b/a.h5: the object store cannot be reached: "), "{said}");
    assert!(said.contains("Connection refused"), "{said}");
    let said = fail(&["ls", &format!("http://{address}/a.h5?sig=SECRET"), "--with", "attempts=1"]);
    assert!(said.contains("Connection refused") && !said.contains("SECRET"), "{said}");
    let said = fail(&["ls", "gs://bucket/a.h5?region=x"]);
    assert!(said.contains(r#"the option "region" has no meaning for gs"#), "{said}");
    // What would give them to a virtual machine is not there either.
    let mut command = Command::new(env!("CARGO_BIN_EXE_h5live"));
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    command.env("AWS_METADATA_ENDPOINT", format!("http://{address}"));
    let said = command.args(["ls", "s3://b/a.h5?region=x&allow_http=yes"]).output().unwrap().stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("s3://b/a.h5: access is denied: the environment has no credentials"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text"), "this is no HDF5 file, but text").unwrap();
    std::fs::write(folder.path().join("empty"), "").unwrap();
    let server = FileServer::start(folder.path()).unwrap();
    for name in ["text", "empty"] {
        let said = fail(&["ls", &server.url(name)]);
        assert!(said.contains(name) && said.contains("not an HDF5 file"), "{said}");
    }
    let said = fail(&["ls", &server.url("none.h5")]);
    assert!(said.contains("none.h5: there is no such object"), "{said}");
}

#[test]
fn a_domain_in_a_bucket_has_the_commands_that_a_file_has() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket("bucket");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.h5");
    make_file(&file, 40_000);
    let file = file.to_str().unwrap();
    let proxy = FaultyProxy::start(server.address(), ProxyFaults { per_mille: 150, seed: 6, ..ProxyFaults::default() });
    let proxy = proxy.unwrap();
    let how = format!("endpoint={}&region=us-east-1&allow_http=yes&attempts=12", proxy.endpoint());
    let at = |domain: &str| format!("hsds+s3://bucket/home/{domain}?{how}");
    let (here, again) = (at("run"), folder.path().join("again.h5"));
    succeed(&["copy", file, &here]);
    assert_eq!(succeed(&["dump", file]), succeed(&["dump", &here]));
    assert_eq!(succeed(&["ls", file]).lines().count(), succeed(&["ls", &here]).lines().count());
    succeed(&["diff", file, &here]);
    succeed(&["check", "--data", &here]);
    succeed(&["copy", &here, again.to_str().unwrap()]);
    succeed(&["diff", file, again.to_str().unwrap()]);
    succeed(&["set", &here, "/@note", "7"]);
    assert!(succeed(&["dump", &here, "/@note"]).contains('7'));
    succeed(&["repair", &here]);
    let said = succeed(&["repair", "--dry-run", &here]);
    assert!(said.contains("closed"), "{said}");
    assert!(succeed(&["acl", "get", &here]).contains("default: read"));
    println!("{} of {} requests failed", proxy.injected_failure_count(), proxy.request_count());
    let said = fail(&["copy", file, &here]);
    assert!(said.contains("/home/run exists"), "{said}");
    succeed(&["copy", "--force", file, &here]);
    let said = fail(&["ls", &at("none")]);
    assert!(said.contains("no domain is at /home/none"), "{said}");
    let said = fail(&["ls", &format!("{here}&zone=x")]);
    assert!(said.contains(r#"has no option "zone""#) && said.contains("lease") && said.contains("region"), "{said}");
}

#[test]
fn a_domain_has_the_chunks_of_a_native_file_in_its_bucket() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket("bucket");
    server.make_bucket("other");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.h5");
    make_file(&file, 400_000);
    let file = file.to_str().unwrap();
    let proxy = FaultyProxy::start(server.address(), ProxyFaults::default()).unwrap();
    let at = |place: &str| format!("{place}?endpoint={}&region=us-east-1&allow_http=yes", proxy.endpoint());
    let (native, store) = (at("s3://bucket/data/a.h5"), at("hsds+s3://bucket/home/run"));
    succeed(&["copy", "--quiet", file, &native]);
    let output = h5live(&["copy", "--link", &native, &store]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("linked: 3 datasets in s3://bucket/data/a.h5"), "{said}");
    succeed(&["diff", file, &store]);
    succeed(&["check", "--data", "--leaks", &store]);
    let said = fail(&["copy", "--link", &native, &at("hsds+s3://other/home/run")]);
    assert!(said.contains("in another bucket than the domain"), "{said}");
    let said = fail(&["copy", "--link", file, &at("hsds+s3://bucket/home/local")]);
    assert!(said.contains("in another bucket than the domain"), "{said}");
}

#[test]
fn rows_in_a_bucket_are_followed_and_a_second_writer_is_told_who_writes() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket("bucket");
    let how = format!("endpoint={}&region=us-east-1&allow_http=yes&poll_interval=50ms", server.endpoint());
    let store = format!("hsds+s3://bucket/run?{how}");
    let dump = || h5live(&["dump", &store, "rows"]).stdout;
    let mut writer = start(&["record", "--types=v=i64", &store, "rows"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n").unwrap();
    until("a row", || dump() == b"0: {v: 1}\n");
    let watch = start(&["watch", "--json", &store, "rows"]);
    input.write_all(b"2\n3\n").unwrap();
    until("more rows", || dump() == b"0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n");
    let refused = error(&run_with(&["record", &store, "rows"], b"v\n1\n"));
    let holder = format!("process {} (h5live", writer.id());
    assert!(refused.contains(&holder) && refused.contains("writes s3://bucket/run"), "{refused}");
    assert!(succeed(&["repair", "--dry-run", &store]).contains("being written by another process"));
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(text(&watch.wait_with_output().unwrap()), "{\"v\":1}\n{\"v\":2}\n{\"v\":3}\n");
    // One that is killed leaves its lease, which is taken away on request.
    let mut killed = start(&["record", "--types=v=i64", &store, "rows"]);
    let mut input = killed.stdin.take().unwrap();
    input.write_all(b"v\n4\n").unwrap();
    until("the row of another one", || dump().ends_with(b"3: {v: 4}\n"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let refused = error(&run_with(&["record", &store, "rows"], b"v\n5\n"));
    assert!(refused.contains(&format!("process {} (", killed.id())) && refused.contains("take=yes"), "{refused}");
    text(&run_with(&["record", &format!("{store}&take=yes"), "rows"], b"v\n5\n"));
    assert_eq!(dump(), b"0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n3: {v: 4}\n4: {v: 5}\n");
}
