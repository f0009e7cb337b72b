//! What one client cannot do to others.

use std::io::{BufReader, Read, Write};
use std::time::Duration;

use crate::client::{Events, Served, connect, head, make, read_head};

#[test]
fn an_answer_that_is_too_large_is_refused() {
    let served = Served::with(|config| config.limits.max_answer_bytes = 1000);
    make(&served.file("a.h5"), |file| {
        file.new_dataset::<f64>().shape(&[1 << 40, 1 << 10]).chunk_shape(&[1 << 10, 1 << 10]).create("data").map(drop)
    });
    for query in
        ["format=bin", "format=json", "format=npy", "selection=0:100,0:2&format=bin", "selection=0:40,0&format=json"]
    {
        served.refused(&format!("/data?file=a.h5&path=/data&{query}"), 413, "select a part");
    }
    served.refused("/stats?file=a.h5&path=/data", 413, "select a part");
    assert_eq!(served.get("/data?file=a.h5&path=/data&selection=0,0:10&format=bin").body, [0; 80]);
    assert!(served.get("/metrics").text().contains("h5live_answer_bytes_in_memory 0"));
}

#[test]
fn clients_of_events_and_watched_files_are_counted() {
    let served = Served::with(|config| {
        config.limits.max_event_clients = 2;
        config.limits.max_watches = 1;
    });
    make(&served.file("a.h5"), |_| Ok(()));
    make(&served.file("b.h5"), |_| Ok(()));
    let mut first = Events::of(&served, "file=a.h5", None);
    first.next().unwrap();
    served.refused("/events?file=b.h5", 503, "Too many files are watched");
    let second = Events::of(&served, "file=a.h5", None);
    served.refused("/events?file=a.h5", 503, "Too many clients listen");
    drop((first, second));
    // The server learns that they are gone when it looks.
    while served.get("/events?file=none.h5").status == 503 {
        std::thread::yield_now();
    }
}

#[test]
fn connections_are_counted() {
    let served = Served::with(|config| config.limits.max_connections = 2);
    let address = served.address();
    let mut kept: Vec<_> = (0..2).map(|_| connect(address)).collect();
    for stream in &mut kept {
        let head = head(address, "GET", "/healthz", &[]).replace("connection: close", "connection: keep-alive");
        stream.write_all(head.as_bytes()).unwrap();
        assert_eq!(read_head(&mut BufReader::new(stream)).0, 200);
    }
    let mut third = String::new();
    connect(address).read_to_string(&mut third).unwrap();
    assert!(third.starts_with("HTTP/1.1 503"), "{third}");
    drop(kept);
    // A place is free as soon as the server has seen that they are gone.
    while connect(address).write_all(b"").is_ok() {
        let mut stream = connect(address);
        let _ = stream.write_all(head(address, "GET", "/healthz", &[]).as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        if answer.starts_with("HTTP/1.1 200") {
            break;
        }
    }
}

#[test]
fn a_client_that_is_too_slow_is_left() {
    let served = Served::with(|config| config.limits.slow_client_timeout = Duration::from_millis(300));
    let address = served.address();
    let mut stream = connect(address);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: ").unwrap();
    // Nothing more comes; the server closes the connection.
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
    assert_eq!(served.get("/healthz").status, 200);
}

#[test]
fn a_client_that_takes_nothing_gives_its_memory_back() {
    let served = Served::with(|config| config.limits.slow_client_timeout = Duration::from_millis(300));
    make(&served.file("a.h5"), |file| {
        let values = vec![1u8; 64 << 20];
        file.new_dataset::<u8>().shape(&[64 << 20]).create("data")?.write(&values)
    });
    let address = served.address();
    let mut stream = connect(address);
    stream.write_all(head(address, "GET", "/data?file=a.h5&path=/data&format=bin", &[]).as_bytes()).unwrap();
    let mut reader = BufReader::new(&stream);
    assert_eq!(read_head(&mut reader).0, 200);
    // The rest is not read: the server gives up after a time.
    while !served.get("/metrics").text().contains("h5live_answer_bytes_in_memory 0\n") {
        std::thread::yield_now();
    }
    assert!(stream.peek(&mut [0]).is_ok());
}

#[test]
fn bodies_and_large_heads_are_refused() {
    let served = Served::new();
    let address = served.address();
    let mut stream = connect(address);
    let head_of = head(address, "POST", "/meta", &[("transfer-encoding", "chunked")]);
    stream.write_all(head_of.as_bytes()).unwrap();
    assert_eq!(read_head(&mut BufReader::new(&stream)).0, 405);
    let mut stream = connect(address);
    let large = head(address, "GET", "/healthz", &[("x-large", &"x".repeat(200 << 10))]);
    let _ = stream.write_all(large.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    for garbage in ["\0\0\0", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /%zz?file=%zz HTTP/1.1\r\n\r\n"] {
        let mut stream = connect(address);
        let _ = stream.write_all(garbage.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert_eq!(served.get("/healthz").status, 200);
}

#[test]
fn damaged_files_are_an_error_with_a_sentence() {
    let served = Served::new();
    make(&served.file("whole.h5"), |file| {
        let data = file.new_dataset::<u8>().shape(&[4000]).chunk_shape(&[1000]).deflate(1).create("data")?;
        data.write(&(0..4000).map(|n| ((n * n) >> 5) as u8).collect::<Vec<_>>())
    });
    let bytes = std::fs::read(served.file("whole.h5")).unwrap();
    for at in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        std::fs::write(served.file("a.h5"), damaged).unwrap();
        let check = |path: &str| {
            let answer = served.get(path);
            // h5pyd asks again for half an hour after an error of the server (500 and more).
            let is_refused = (400..500).contains(&answer.status) && answer.json()["message"].is_string();
            assert!(answer.status == 200 || is_refused, "{at} {path}: {} {}", answer.status, answer.text());
            (answer.status == 200).then_some(answer)
        };
        for path in ["/meta?file=a.h5", "/data?file=a.h5&path=/data&format=bin", "/paths?file=a.h5"] {
            check(path);
        }
        let Some(domain) = check("/?domain=/a.h5&getobjs=1") else { continue };
        let root = domain.json()["root"].as_str().unwrap().to_owned();
        check(&format!("/groups/{root}?domain=/a.h5&include_links=1&include_attrs=1"));
        if let Some(data) = check("/datasets/?domain=/a.h5&h5path=/data") {
            let id = data.json()["id"].as_str().unwrap().to_owned();
            check(&format!("/datasets/{id}/value?domain=/a.h5"));
        }
    }
    assert_eq!(served.get("/data?file=whole.h5&path=/data&format=bin").body.len(), 4000);
}

/// h5pyd asks for all links of a group at once: one damaged object took the whole group away.
#[test]
fn a_group_with_a_damaged_object_has_its_other_objects() {
    let served = Served::new();
    let mut header = 0;
    make(&served.file("a.h5"), |file| {
        file.new_dataset::<u8>().shape(&[3]).create_with_data("whole", &[1, 2, 3])?;
        header = file.new_dataset::<u8>().shape(&[3]).create("damaged")?.id().0 as usize;
        Ok(())
    });
    let mut bytes = std::fs::read(served.file("a.h5")).unwrap();
    bytes[header..header + 4].copy_from_slice(b"none");
    std::fs::write(served.file("a.h5"), bytes).unwrap();
    let root = served.json("/?domain=/a.h5")["root"].as_str().unwrap().to_owned();
    let group = served.json(&format!("/groups/{root}?domain=/a.h5&include_links=1&include_attrs=1"));
    let id = |name: &str| group["links"][name]["id"].as_str().unwrap().to_owned();
    let whole = served.json(&format!("/datasets/{}/value?domain=/a.h5", id("whole")));
    assert_eq!(whole["value"], serde_json::json!([1, 2, 3]));
    served.refused(&format!("/groups/{}?domain=/a.h5", id("damaged")), 404, "no valid structure");
}
