//! Requests that were changed at random: each is answered, nothing outside of the served folder is, and nothing panics.

use std::io::{BufReader, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use h5live::File;
use h5live::model::{ByteOrder, Datatype, Selection, Sign, VirtualSource};
use serde_json::json;

use crate::client::{Events, Served, connect, make, read_head, shape_in};
use crate::store_messages::{store_requests, store_target};

/// Requests of one run; `make attack-serve` has more.
const REQUESTS: u64 = 4000;
/// What no answer may have in it.
const SECRET: &str = "c0ffee-secret";
/// Where that is, from the served folder.
const SECRET_FILE: &str = "../secret.h5";

/// Numbers that follow from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

#[derive(Debug, Clone)]
struct AttackRequest {
    method: String,
    target: Vec<u8>,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

const PIECES: [&str; 44] = [
    "..",
    "../secret.h5",
    "%2e%2e/secret.h5",
    "%2e%2e%2fsecret.h5",
    "..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "//etc/passwd",
    "file:///etc/passwd",
    "kv:..",
    "mem:x",
    "hsds:..",
    "h5://x",
    "%00",
    "a.h5%00.txt",
    "%ff%fe",
    "%",
    "%zz",
    "%u2215",
    "\\..\\",
    "%5c..",
    "a.h5/",
    "./a.h5",
    "a.h5/../a.h5",
    "out.h5",
    "up/secret.h5",
    ".hidden",
    "CON",
    "~root",
    "*",
    "?",
    "#x",
    "&&&",
    "=",
    ";",
    "[0:1]",
    "[:,:]",
    "[[0,1]]",
    "::-1",
    "0:9999999999",
    "{\"a\":1}",
    "$(id)",
    "%0d%0ax-injected:%201",
    "\u{202e}",
    "''",
];

const NUMBERS: [&str; 12] = [
    "-1",
    "0",
    "4",
    "255",
    "2147483648",
    "-9223372036854775808",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e309",
    "NaN",
    "0x10",
];

const HEADERS: [(&str, &str); 22] = [
    ("accept", "application/octet-stream"),
    ("accept", "text/html"),
    ("accept", "*/*"),
    ("range", "bytes=0-"),
    ("range", "bytes=9-1,-"),
    ("if-none-match", "*"),
    ("if-none-match", "\"x\", W/\"y\""),
    ("x-hdf-domain", "/a.h5"),
    ("x-hdf-domain", "/../secret.h5"),
    ("x-hdf-domain", "a.h5"),
    ("content-type", "application/json"),
    ("content-type", "application/octet-stream"),
    ("content-length", "-1"),
    ("content-length", "99999999999999999999"),
    ("transfer-encoding", "chunked"),
    ("expect", "100-continue"),
    ("upgrade", "h2c"),
    ("last-event-id", "0-0"),
    ("last-event-id", "x-18446744073709551616"),
    ("authorization", "Basic ////"),
    ("cookie", "h5live-token-1=;;;=="),
    ("host", "evil.example"),
];

impl AttackRequest {
    fn get(target: &str) -> Self {
        AttackRequest { method: "GET".into(), target: target.into(), headers: Vec::new(), body: Vec::new() }
    }

    fn post(target: &str, body: &str) -> Self {
        let headers = vec![("content-type".to_owned(), b"application/json".to_vec())];
        AttackRequest { method: "POST".into(), headers, body: body.into(), ..AttackRequest::get(target) }
    }

    fn mutate(&mut self, random: &mut Random, seeds: &[AttackRequest]) {
        match random.below(12) {
            0..=2 => self.change_value(random),
            3 => self.change_part(random, b'/'),
            4 => self.change_part(random, b'&'),
            5 => {
                let at = random.below(self.target.len() + 1);
                let piece = random.of(&PIECES);
                self.target.splice(at..at, piece.bytes());
            }
            6 => self.change_digits(random),
            7 => damage(&mut self.target, random),
            8 => {
                let (name, value) = HEADERS[random.below(HEADERS.len())];
                self.headers.push((name.to_owned(), value.into()));
            }
            9 => {
                self.method =
                    random.of(&["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "get", "BREW"]).to_owned()
            }
            10 => damage(&mut self.body, random),
            _ => {
                let other = &seeds[random.below(seeds.len())];
                let cut = |target: &[u8]| target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
                let tail = other.target[cut(&other.target)..].to_vec();
                self.target.truncate(cut(&self.target));
                self.target.extend(tail);
                self.body.clone_from(&other.body);
            }
        }
    }

    /// Puts something in the place of the value of a parameter.
    fn change_value(&mut self, random: &mut Random) {
        let starts: Vec<_> = (0..self.target.len()).filter(|at| self.target[*at] == b'=').map(|at| at + 1).collect();
        let Some(start) = starts.get(random.below(starts.len())).copied() else { return };
        let end = self.target[start..].iter().position(|byte| *byte == b'&').map_or(self.target.len(), |at| start + at);
        let long = "a/".repeat(4000);
        let value = if random.below(20) == 0 { &long } else { random.of(&PIECES) };
        self.target.splice(start..end, value.bytes());
    }

    /// Puts something in the place of a part between two marks, takes it away, or repeats it.
    fn change_part(&mut self, random: &mut Random, mark: u8) {
        let mut parts: Vec<_> = self.target.split(|byte| *byte == mark).map(<[u8]>::to_vec).collect();
        let at = random.below(parts.len());
        match random.below(3) {
            0 => parts[at] = random.of(&PIECES).into(),
            1 => drop(parts.remove(at)),
            _ => parts.insert(at, parts[at].clone()),
        }
        self.target = parts.join(&mark);
    }

    fn change_digits(&mut self, random: &mut Random) {
        let digits: Vec<_> = (0..self.target.len()).filter(|at| self.target[*at].is_ascii_digit()).collect();
        if let Some(at) = digits.get(random.below(digits.len())).copied() {
            self.target.splice(at..=at, random.of(&NUMBERS).bytes());
        }
    }

    fn bytes(&self, host: &str) -> Vec<u8> {
        let mut bytes = [self.method.as_bytes(), b" ", &self.target, b" HTTP/1.1\r\nconnection: close\r\n"].concat();
        let has = |name: &str| self.headers.iter().any(|(of, _)| of == name);
        if !has("host") {
            bytes.extend(format!("host: {host}\r\n").bytes());
        }
        if !self.body.is_empty() && !has("content-length") {
            bytes.extend(format!("content-length: {}\r\n", self.body.len()).bytes());
        }
        for (name, value) in &self.headers {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        [&bytes, &b"\r\n"[..], &self.body].concat()
    }
}

/// Changes, takes away or puts in some bytes.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(3) {
            0 if !bytes.is_empty() => bytes[at] = random.below(256) as u8,
            1 if !bytes.is_empty() => drop(bytes.remove(at)),
            _ => bytes.insert(at, random.below(256) as u8),
        }
    }
}

fn fill(file: &File) -> h5live::Result<()> {
    let number = Datatype::integer(2, ByteOrder::Big, Sign::Signed);
    file.new_dataset::<f64>().shape(&[3, 4]).chunk_shape(&[2, 2]).deflate(1).create("image")?.write(&[1.5; 12])?;
    file.new_dataset::<String>().shape(&[2]).create("group/texts")?.write(&["a\"b".to_owned(), "ä".to_owned()])?;
    file.new_dataset::<Vec<u16>>().shape(&[2]).create("ragged")?.write(&[vec![1, 2], vec![]])?;
    file.new_dataset::<i32>().create("scalar")?.write_scalar(&5)?;
    let row = Datatype::compound([("name", Datatype::fixed_string(4, Default::default())), ("age", number)]);
    file.root().new_dataset_with_type(row).shape(&[2]).create("rows")?.write_raw(.., b"ann\0\x00\x05bob!\xff\xff")?;
    file.new_dataset::<f32>().shape(&[1 << 30, 1 << 20]).chunk_shape(&[64, 64]).create("huge")?;
    file.set_attribute("title", "all kinds")?;
    file.dataset("image")?.set_attribute("unit", &3.5)?;
    file.root().link_external("out", SECRET_FILE, "/data")?;
    file.root().link_soft("soft", "/group/texts")?;
    file.root().link_soft("nowhere", "/none")?;
    let (source, target) = (Selection::All, Selection::All);
    let outside = VirtualSource { file: SECRET_FILE.into(), dataset: "/data".into(), source, target };
    file.new_dataset::<u8>().shape(&[13]).virtual_sources(vec![outside]).create("virtual").map(drop)
}

/// Requests that make sense, of each route.
fn sensible_requests(served: &Served) -> Vec<AttackRequest> {
    let mut targets: Vec<String> = Vec::new();
    for path in ["/", "/image", "/group/texts", "/ragged", "/rows", "/huge", "/out", "/soft", "/virtual"] {
        targets.extend(["meta", "attr", "paths", "stats"].map(|route| format!("/{route}?file=a.h5&path={path}")));
        targets.push(format!("/meta?file=a.h5&path={path}&resolve_links=all"));
        targets.extend(["json", "bin", "npy", "csv", "tiff"].map(|format| {
            format!("/grove/data?file=a.h5&path={path}&format={format}&selection=0:2,1&dtype=safe&flatten=true")
        }));
    }
    let more = [
        "/",
        "/healthz",
        "/metrics",
        "/assets/page.css",
        "/api/files?folder=",
        "/api/files?folder=sub",
        "/api/search?text=a&folder=",
        "/api/search?text=kinds&file=a.h5",
        "/openapi.json",
        "/hsds/",
        "/about",
    ];
    targets.extend(more.map(str::to_owned));
    targets.extend(
        ["/info", "/acls", "/domains?domain=/&verbose=1&Limit=3", "/?domain=/a.h5&verbose=1"].map(str::to_owned),
    );
    targets.extend(
        ["/?domain=/a.h5&h5path=/image", "/groups?domain=/a.h5&Limit=2", "/attr?file=a.h5&attr_keys=title"]
            .map(str::to_owned),
    );
    targets.push("/events?file=live.h5&path=/".to_owned());
    let mut requests: Vec<_> = targets.iter().map(|target| AttackRequest::get(target)).collect();
    let root = served.json("/?domain=/a.h5")["root"].as_str().unwrap().to_owned();
    let names = ["title"];
    requests
        .push(AttackRequest::get(&format!("/groups/{root}?domain=/a.h5&include_links=1&include_attrs=1&getalias=1")));
    requests
        .push(AttackRequest::get(&format!("/hsds/groups/{root}/links?domain=/a.h5&Limit=2&Marker=image&pattern=i*")));
    requests.push(AttackRequest::get(&format!("/groups/{root}/links/soft?domain=/a.h5")));
    requests.push(AttackRequest::get(&format!("/groups/{root}/attributes/title/value?domain=/a.h5")));
    requests.push(AttackRequest::post(
        &format!("/groups/{root}/attributes?domain=/a.h5"),
        &json!({ "attr_names": names }).to_string(),
    ));
    requests.push(AttackRequest::post(&format!("/groups/{root}/links?domain=/a.h5"), r#"{"titles":["image","soft"]}"#));
    requests.push(AttackRequest::post("/?domain=/a.h5", r#"{"h5paths":["/image","/rows"]}"#));
    for path in ["/image", "/rows", "/ragged", "/huge", "/scalar"] {
        let found = served.json(&format!("/?domain=/a.h5&h5path={path}"));
        let id = found["id"].as_str().unwrap();
        for part in
            ["", "/shape", "/type", "/attributes", "/value?select=[0:1,0:2:2]&reduce_dim=1", "/value?fields=age"]
        {
            let mark = if part.contains('?') { '&' } else { '?' };
            requests.push(AttackRequest::get(&format!("/datasets/{id}{part}{mark}domain=/a.h5")));
        }
        requests
            .push(AttackRequest::post(&format!("/datasets/{id}/value?domain=/a.h5"), r#"{"points":[[0,1],[2,3]]}"#));
        requests.push(AttackRequest::post(&format!("/datasets/{id}/value?domain=/a.h5"), r#"{"select":"[0:1,0:1]"}"#));
    }
    let message = |(route, body)| AttackRequest { body, ..AttackRequest::post(&store_target(route, "a.h5"), "") };
    requests.extend(store_requests(served, "a.h5").into_iter().map(message));
    requests
}

/// The status of the answer and the answer; nothing if the server has closed the connection.
fn answer(served: &Served, request: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut stream = connect(served.address());
    let _ = stream.write_all(request);
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    if reader.get_ref().peek(&mut [0]).unwrap_or(0) == 0 {
        return None;
    }
    let (status, headers) = read_head(&mut reader);
    if headers.get("content-type").is_some_and(|of| of == "text/event-stream") {
        return Some((status, bytes));
    }
    let _ = reader.read_to_end(&mut bytes);
    let heads: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    assert!(!headers.contains_key("x-injected"), "{heads:?}");
    bytes.extend(heads.concat().bytes());
    Some((status, bytes))
}

/// Returns whether it was answered.
fn check(served: &Served, request: &AttackRequest, seed: u64) -> bool {
    let sent = request.bytes(&served.address().to_string());
    let shown = || format!("H5LIVE_ATTACK_SEED={seed}: {}", String::from_utf8_lossy(&sent[..sent.len().min(2000)]));
    let Some((status, bytes)) = answer(served, &sent) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains(SECRET) && !text.contains("root:x:"), "{}\n{text}", shown());
    assert!(!text.contains(&*served.folder.path().to_string_lossy()), "{}\n{text}", shown());
    // Not there (501), no room now (503), and another version of HTTP (505) have a cause.
    assert!(status < 500 || matches!(status, 501 | 503 | 505), "{}\n{status} {text}", shown());
    true
}

#[test]
fn requests_that_were_changed_at_random_are_answered() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let of_server = std::thread::current().name().is_some_and(|name| name.starts_with("h5live"));
        PANICS.fetch_add(usize::from(of_server), Ordering::Relaxed);
        before(panic);
    }));
    // What is announced and does not come is not waited for.
    let served = Served::with(|config| config.limits.slow_client_timeout = Duration::from_millis(300));
    make(&served.folder.path().join("secret.h5"), |file| {
        file.new_dataset::<u8>().shape(&[13]).create("data")?.write(SECRET.as_bytes())
    });
    make(&served.file("a.h5"), fill);
    std::fs::create_dir(served.file("sub")).unwrap();
    #[cfg(unix)]
    for (to, name) in [(SECRET_FILE, "out.h5"), ("..", "up")] {
        std::os::unix::fs::symlink(to, served.file(name)).unwrap();
    }
    let live = File::create(served.file("live.h5")).unwrap();
    let rows = live.new_dataset::<u64>().unlimited_rows(&[]).create("rows").unwrap();
    live.start_swmr().unwrap();
    let mut events = Events::of(&served, "file=live.h5", None);
    events.next().unwrap();
    let seeds = sensible_requests(&served);
    assert!(seeds.iter().all(|request| check(&served, request, 0)));
    let number = |name: &str, default| std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"));
    let first: u64 = number("H5LIVE_ATTACK_SEED", 1);
    let count: u64 = number("H5LIVE_ATTACK_REQUESTS", REQUESTS);
    let mut answered = 0;
    for seed in first..first + count {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut request = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(3) {
            request.mutate(&mut random, &seeds);
        }
        answered += u64::from(check(&served, &request, seed));
        // Who follows a file sees everything meanwhile.
        if seed % 100 == 0 {
            rows.append(&[seed]).unwrap();
            rows.flush().unwrap();
            let shape = rows.shape().unwrap();
            events.wait_for(|message| shape_in(message, "/rows") == Some(shape.clone()));
        }
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "of {count} requests");
    drop(events);
    let is_over = |text: &str| {
        ["event_clients 0", "connections 1", "answer_bytes_in_memory 0"]
            .iter()
            .all(|line| text.contains(&format!("h5live_{line}\n")))
    };
    while !is_over(&served.get("/metrics").text()) {
        std::thread::yield_now();
    }
    assert!(answered * 10 > count * 9, "{answered} of {count} were answered");
    println!("{answered} answers to {count} requests from seed {first} on");
}
