//! h5live's own client: `h5live+http://host:port/file`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use h5live::{File, Mode, Options, StoreErrorKind};
use h5live_serve::{Config, Server};

use crate::client::{Served, make};

fn at(address: SocketAddr, name: &str) -> String {
    format!("h5live+http://{address}/{name}")
}

/// The kind of the error with which a location does not open, and its text.
fn refused(options: &Options, at: &str) -> (Option<StoreErrorKind>, String) {
    let error = options.open(at).expect_err("nothing that could be opened is there");
    let kind = match error.kind() {
        h5live::ErrorKind::Open(open) => match &**open {
            h5live::OpenError::Store(error) => error.store_error_kind().cloned(),
            other => panic!("{other}"),
        },
        _ => error.store_error_kind().cloned(),
    };
    (kind, format!("{error:#}"))
}

#[test]
fn a_file_is_read_as_where_it_lies() {
    let served = Served::new();
    make(&served.file("other.h5"), |file| file.new_dataset::<u8>().create("far")?.write_scalar(&9u8));
    make(&served.file("a b.h5"), |file| {
        let numbers =
            file.new_dataset::<i32>().shape(&[70, 50]).chunk_shape(&[16, 16]).deflate(1).create("g/numbers")?;
        numbers.write(&(0..3500).collect::<Vec<i32>>())?;
        numbers.set_attribute("units", "mm")?;
        let texts = file.new_dataset::<String>().shape(&[3]).create("texts")?;
        texts.write(&["", "one", "two"])?;
        file.root().link_external("far", "other.h5", "/far")?;
        file.root().link_soft("soft", "/g/numbers")?;
        file.new_dataset::<f64>().shape(&[1 << 16]).create("large")?.write(&vec![0.5; 1 << 16])
    });
    let file = File::open(at(served.address(), "a%20b.h5")).unwrap();
    assert_eq!(file.session().mode, Mode::Read);
    let numbers = file.dataset("g/numbers").unwrap();
    assert_eq!(numbers.read::<i32>().unwrap(), (0..3500).collect::<Vec<i32>>());
    assert_eq!(numbers.read_slice::<i32>((69, 48..)).unwrap(), [3498, 3499]);
    assert_eq!(numbers.attribute("units").unwrap().read_scalar::<String>().unwrap(), "mm");
    assert_eq!(file.dataset("texts").unwrap().read::<String>().unwrap(), ["", "one", "two"]);
    assert_eq!(file.dataset("far").unwrap().read_scalar::<u8>().unwrap(), 9);
    assert_eq!(file.dataset("soft").unwrap().shape().unwrap(), [70, 50]);
    assert_eq!(file.dataset("large").unwrap().read_slice::<f64>(7..9).unwrap(), [0.5, 0.5]);
    let writing = File::options().write().open(at(served.address(), "a%20b.h5")).unwrap_err();
    assert!(format!("{writing:#}").contains("writing a file of an h5live server is not supported"), "{writing:#}");
}

#[test]
fn many_objects_come_by_few_requests() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| {
        (0..1000u32).try_for_each(|n| file.new_dataset::<u32>().create(&format!("g/{n}"))?.write_scalar(&n))
    });
    let requests = || {
        let text = served.get("/metrics").text();
        let lines = text.lines().filter(|line| line.starts_with("h5live_requests_total"));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>()
    };
    let file = File::open(at(served.address(), "a.h5")).unwrap();
    let before = requests();
    let count = file.walk().filter(|item| item.is_ok()).count();
    assert_eq!(count, 1002);
    let asked = requests() - before;
    assert!(asked > 0 && asked < 20, "{asked} requests");
}

#[test]
fn a_follower_sees_each_row_and_outlasts_a_restart_of_the_server() {
    let served = Served::new();
    let (path, address, root) = (served.file("a.h5"), served.address(), served.root());
    let Served { folder: _folder, mut server } = served;
    let file = File::create(path).unwrap();
    let rows = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[7]).deflate(1).create("rows").unwrap();
    file.start_swmr().unwrap();
    rows.append(&[0]).unwrap();
    rows.flush().unwrap();
    let reader = File::options().swmr_read().open(at(address, "a.h5")).unwrap();
    assert!(reader.is_live().unwrap());
    let follower = reader.dataset("rows").unwrap().follow::<u64>();
    let followed = std::thread::spawn(move || follower.collect::<Result<Vec<_>, _>>());
    for n in 1..100u64 {
        rows.append(&[n]).unwrap();
        rows.flush().unwrap();
        if n == 50 {
            server.stop();
            let mut config = Config::new([root.clone().into()]);
            config.bind = address;
            config.without_authentication = true;
            let begun = Instant::now();
            server = loop {
                match Server::start(config.clone()) {
                    Ok(server) => break server,
                    Err(error) if begun.elapsed() > Duration::from_secs(20) => panic!("{error}"),
                    Err(_) => std::thread::yield_now(),
                }
            };
        }
    }
    file.close().unwrap();
    let seen: Vec<u64> = followed.join().unwrap().unwrap().concat();
    assert_eq!(seen, (0..100).collect::<Vec<u64>>());
    drop(server);
}

#[test]
fn a_replaced_file_is_noticed() {
    let served = Served::new();
    let fill = |value: u8| move |file: &File| file.new_dataset::<u8>().create("data")?.write_scalar(&value);
    make(&served.file("a.h5"), fill(1));
    let file = File::options().swmr_read().open(at(served.address(), "a.h5")).unwrap();
    make(&served.file("new.h5"), fill(2));
    std::fs::rename(served.file("new.h5"), served.file("a.h5")).unwrap();
    let error = file.dataset("data").unwrap_err();
    assert!(error.file_change().is_some(), "{error:#}");
    let error = file.is_live().unwrap_err();
    assert!(format!("{error:#}").contains("taken the place"), "{error:#}");
}

#[test]
fn what_does_not_open_is_told_without_the_token() {
    let served = Served::with(|config| {
        config.without_authentication = false;
        config.fixed_token = Some("right-token".to_owned());
    });
    make(&served.file("a.h5"), |file| file.new_dataset::<u8>().create("data")?.write_scalar(&1u8));
    std::fs::write(served.file("text.h5"), "no HDF5").unwrap();
    let (read, address) = (Options::default(), served.address());
    let open = |name: &str| refused(&read, &at(address, name));
    let right = |name: &str| refused(&read, &format!("{}?token=right-token", at(address, name)));
    // Without a token first: one that was right is remembered for the server.
    let (kind, text) = open("a.h5?token=wrong-token");
    assert_eq!(kind, Some(StoreErrorKind::PermissionDenied));
    assert!(text.contains("wants a token") && !text.contains("wrong-token"), "{text}");
    assert!(read.open(format!("{}?token=right-token", at(address, "a.h5"))).is_ok());
    for (name, kind, words) in [
        ("none.h5", StoreErrorKind::NotFound, "no such file"),
        ("../a.h5", StoreErrorKind::NotFound, "no such file"),
        ("text.h5", StoreErrorKind::NotThisFormat, "text.h5: "),
    ] {
        let (found, text) = right(name);
        assert_eq!(found, Some(kind), "{text}");
        assert!(text.contains(words) && !text.contains("right-token"), "{text}");
        assert!(!text.contains(&*served.folder.path().to_string_lossy()), "{text}");
    }
    drop(served);
    let (kind, text) = open("a.h5");
    assert_eq!(kind, Some(StoreErrorKind::Unreachable));
    assert!(text.contains("does not answer"), "{text}");
}

/// A server that says the same to everybody.
fn impostor(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
        }
    });
    address
}

#[test]
fn an_answer_that_is_none_of_ours_is_told() {
    let answers: [(&[u8], StoreErrorKind, &str); 6] = [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", StoreErrorKind::NotThisFormat, "status 200"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", StoreErrorKind::NotThisFormat, "status 404"),
        (
            b"HTTP/1.1 302 Found\r\nlocation: http://x/\r\ncontent-length: 0\r\n\r\n",
            StoreErrorKind::NotThisFormat,
            "302",
        ),
        (b"SSH-2.0-OpenSSH\r\n", StoreErrorKind::NotThisFormat, "version"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-h5live\r\ncontent-length: 4\r\n\r\nH5LM",
            StoreErrorKind::Damaged,
            "damaged",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-h5live\r\ncontent-length: 99999999999\r\n\r\nH5LM",
            StoreErrorKind::Unreachable,
            "does not answer",
        ),
    ];
    for (answer, kind, words) in answers {
        let location = format!("{}?timeout=2s&reconnect=0s", at(impostor(answer), "a.h5"));
        let (found, text) = refused(&Options::default(), &location);
        assert_eq!(found, Some(kind), "{text}");
        assert!(text.contains(words), "{text}");
    }
    // It takes connections, and never says anything.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let location = format!("{}?timeout=100ms", at(silent.local_addr().unwrap(), "a.h5"));
    let (kind, text) = refused(&Options::default(), &location);
    assert_eq!(kind, Some(StoreErrorKind::Unreachable));
    assert!(text.contains("nothing came within"), "{text}");
}
