//! Files on object stores and web servers, by the program.
#![cfg(feature = "remote-tests")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

use crate::common::manifests::{agree, files, in_parallel};
use crate::common::shared;
use h5live::File;
use h5live_objects::testing::{FaultyProxy, FileServer, ProxyFaults, S3Server, has_keys};

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

/// Makes a file of some megabytes with chunks that are filtered, chunks that are not, and a contiguous dataset.
fn make_file(path: &Path) {
    let file = File::create(path).unwrap();
    let values: Vec<f64> = (0..400_000).map(|row| f64::from(row) / 7.0).collect();
    let shape = [values.len() as u64];
    let packed = file.new_dataset::<f64>().shape(&shape).chunk_shape(&[1000]).deflate(1);
    packed.create_with_data("packed", &values).unwrap();
    file.new_dataset::<f64>().shape(&shape).chunk_shape(&[7777]).create_with_data("plain", &values).unwrap();
    file.new_dataset::<f64>().shape(&shape).create_with_data("group/whole", &values).unwrap();
    file.close().unwrap();
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
        let is_same = local.status.code() == remote.status.code() && agree(&text(&local), &text(&remote));
        if !is_same {
            let said = String::from_utf8_lossy(&remote.stderr).lines().next().unwrap_or_default().to_owned();
            differing.lock().unwrap().insert(format!("{name}: {said}"));
        }
    });
    let differing = differing.into_inner().unwrap();
    println!("{total} files, {} requests; {differing:#?}", server.requests());
    let is_known = |text: &String| text.contains("not in the file system");
    assert!(differing.iter().all(is_known), "files that read otherwise");
}

#[test]
fn a_file_is_copied_to_an_s3_server_and_read_there() {
    let Some(server) = S3Server::start() else { return };
    server.make_bucket("bucket");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.h5");
    make_file(&file);
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
    println!("{} of {} requests failed", proxy.failures(), proxy.requests());
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
    if !has_keys() {
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
        assert!(said.contains(name) && said.contains("no HDF5"), "{said}");
    }
    let said = fail(&["ls", &server.url("none.h5")]);
    assert!(said.contains("none.h5: there is no such object"), "{said}");
}
