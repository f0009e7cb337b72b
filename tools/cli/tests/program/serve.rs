//! `serve`: the command. What it answers is tested where it is, in the crate `h5live-serve`.
#![cfg(all(unix, feature = "serve"))]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::common::{error, h5live, new_file, run, run_with, text, until};

/// Clients that go away while they are answered.
const VANISHING_CLIENTS: usize = 300;

/// A server with the token `secret`, its address, and that as text.
fn serve(arguments: &[&str]) -> (Child, SocketAddr, String) {
    let mut command = h5live();
    command.args(["serve", "--bind", "127.0.0.1:0"]).args(arguments).env("H5LIVE_TOKEN", "secret");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let host = line.trim_end().strip_prefix("http://").and_then(|url| url.strip_suffix("/?token=secret"));
    let host = host.unwrap_or_else(|| panic!("{line}")).to_owned();
    (child, host.parse().unwrap(), host)
}

fn ask(at: SocketAddr, target: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Tells it to end, and waits until it has. What it wrote on standard error.
fn end(child: Child) -> String {
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    text(&output);
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_server_prints_its_address_logs_and_ends_when_it_is_told() {
    let (folder, _, name) = new_file();
    text(&run_with(&["record", &name, "a"], b"v\n7\n"));
    let (child, at, _) = serve(&["--log", "json", folder.path().to_str().unwrap()]);
    assert!(ask(at, "/healthz").ends_with("\r\n\r\nok"));
    assert!(ask(at, "/meta?file=run.h5").starts_with("HTTP/1.1 401"));
    assert!(ask(at, "/data?file=run.h5&path=/a&token=secret").ends_with("\r\n\r\n[[7]]"));
    assert!(ask(at, "/metrics?token=secret").contains("h5live_requests_total{status=\"4xx\"} 1\n"));
    let said = end(child);
    let routes: Vec<_> =
        said.lines().map(|line| line.split("\"route\":\"").nth(1).and_then(|l| l.split('"').next())).collect();
    assert_eq!(routes, [Some("/healthz"), Some("/meta"), Some("/data"), Some("/metrics")], "{said}");
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn a_recorder_begins_though_the_server_was_asked_for_the_file_just_before() {
    let (folder, _, name) = new_file();
    text(&run_with(&["record", &name, "a"], b"v\n7\n"));
    let (child, at, _) = serve(&[folder.path().to_str().unwrap()]);
    for rows in 2..6 {
        assert!(ask(at, "/data?file=run.h5&path=/a&token=secret").ends_with("7]]"), "{rows}");
        text(&run_with(&["record", &name, "a"], b"v\n7\n"));
        let shape = ask(at, "/meta?file=run.h5&path=/a&token=secret");
        assert!(shape.contains(&format!("\"shape\":[{rows}")), "{shape}");
    }
    end(child);
}

#[test]
fn a_server_stays_on_this_machine() {
    let (folder, ..) = new_file();
    let folder = folder.path().to_str().unwrap();
    let said = error(&run(&["serve", folder, "--bind", "0.0.0.0:0"]));
    assert!(said.contains("not an address of this machine alone"), "{said}");
    let said = error(&run(&["serve", folder, "--bind", "0.0.0.0:0", "--no-token", "--behind-proxy", "data.example"]));
    assert!(said.contains("listens on loopback only"), "{said}");
    let said = error(&run(&["serve", &format!("{folder}/none")]));
    assert!(said.contains("none"), "{said}");
}

#[test]
fn users_come_from_a_file_and_a_socket_takes_the_place_of_an_address() {
    let (folder, _, name) = new_file();
    text(&run_with(&["record", &name, "a"], b"v\n7\n"));
    let (users, socket) = (folder.path().join("users.txt"), folder.path().join("server.sock"));
    // The SHA-256 of "a token".
    std::fs::write(&users, "robot:sha256:e3316e2bafebb6103a3418e8778c0adc960d40213a03a7e7f4fcd3426ed807bf\n").unwrap();
    let mut command = h5live();
    command.arg("serve").arg(folder.path()).arg("--users").arg(&users).arg("--socket").arg(&socket);
    let mut child = command.env("H5LIVE_TOKEN", "").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "http://localhost/\n");
    let status = |token: &str| {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let head = "GET /meta?file=run.h5 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
        write!(stream, "{head}authorization: Bearer {token}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!([status("a token"), status("another")], ["200", "401"]);
    end(child);
    assert!(!socket.exists());
    std::fs::write(&users, "ann:secret\n").unwrap();
    let said = error(&run(&["serve", &name, "--users", users.to_str().unwrap()]));
    assert!(said.contains("users.txt: line 1: the hash is to be one of bcrypt") && !said.contains("secret"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn clients_that_vanish_leave_no_descriptor_and_no_thread() {
    let (folder, _, name) = new_file();
    text(&run_with(&["record", &name, "a"], b"v\n7\n"));
    let (child, at, host) = serve(&[folder.path().to_str().unwrap()]);
    let process = format!("/proc/{}", child.id());
    let count = |of: &str| std::fs::read_dir(format!("{process}/{of}")).unwrap().count();
    // Once each, so that all threads are there that stay.
    let targets = [
        "/meta?file=run.h5&token=secret",
        "/data?file=run.h5&path=/a&token=secret",
        "/events?file=run.h5&token=secret",
    ];
    assert!(ask(at, targets[0]).starts_with("HTTP/1.1 200"));
    let rest = || (count("fd"), count("task"));
    until("the session ends", || ask(at, "/metrics?token=secret").contains("h5live_sessions 0\n"));
    let before = rest();
    for n in 0..VANISHING_CLIENTS {
        let mut stream = TcpStream::connect(at).unwrap();
        let request = format!("GET {} HTTP/1.1\r\nhost: {host}\r\n\r\n", targets[n % targets.len()]);
        // Some go before they have asked.
        stream.write_all(&request.as_bytes()[..request.len() - n % 5]).unwrap();
    }
    let is_over = |of: &str| ask(at, "/metrics?token=secret").contains(&format!("h5live_{of}\n"));
    until("the clients are gone", || is_over("event_clients 0") && is_over("connections 1") && is_over("sessions 0"));
    until("what they used is given back", || {
        let now = rest();
        // Threads that read are kept for a while.
        now.0 <= before.0 && now.1 <= before.1 + 8
    });
    end(child);
}

#[test]
fn a_running_demo_is_drawn_at_the_address_that_it_prints() {
    let (_folder, _, name) = new_file();
    let mut demo = h5live();
    demo.args(["demo", "--seconds", "4", &name]).env("H5LIVE_TOKEN", "").stdout(Stdio::piped());
    let mut demo = demo.spawn().unwrap();
    let lines = BufReader::new(demo.stdout.as_mut().unwrap()).lines().map_while(Result::ok);
    let url = lines.filter_map(|line| Some(line.strip_prefix("drawn at")?.trim().to_owned())).next().unwrap();
    let (host, token) = url.strip_prefix("http://").unwrap().split_once("/?").unwrap();
    let at = host.parse().unwrap();
    let rows = || {
        let answer = ask(at, &format!("/meta?file=run.h5&path=/machine/busy&{token}"));
        let meta: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1)?).ok()?;
        meta["shape"][0].as_u64()
    };
    until("rows are drawn", || rows().is_some_and(|rows| rows > 0));
    let first = rows().unwrap();
    until("more rows are drawn", || rows().is_some_and(|rows| rows > first));
    assert!(demo.wait().unwrap().success());
}
