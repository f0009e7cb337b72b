//! A plain client, and servers of a folder.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use h5live_serve::{Config, Server};
use serde_json::Value as Json;
use tempfile::TempDir;

/// No answer takes so long: a test that waits for more has failed.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// A server of a folder.
pub struct Served {
    pub folder: TempDir,
    pub server: Server,
}

/// An answer.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Served {
    pub fn new() -> Self {
        Served::with(|_| {})
    }

    /// With other settings than clients need no token.
    pub fn with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new([folder.path().join("served").into()]);
        std::fs::create_dir(folder.path().join("served")).unwrap();
        config.bind.set_port(0);
        config.without_authentication = true;
        change(&mut config);
        let server = Server::start(config).unwrap();
        Served { folder, server }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address().unwrap()
    }

    /// The served folder.
    pub fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("served")
    }

    pub fn file(&self, name: &str) -> std::path::PathBuf {
        self.root().join(name)
    }

    pub fn get(&self, path: &str) -> Response {
        self.get_with(path, &[])
    }

    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        request(self.address(), "GET", path, headers)
    }

    /// An answer in JSON of status 200.
    pub fn json(&self, path: &str) -> Json {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        assert!(response.headers["content-type"].starts_with("application/json"), "{path}");
        response.json()
    }

    /// An answer in JSON of status 200 to a request with a body in JSON.
    pub fn post_json(&self, path: &str, body: &Json) -> Json {
        let json = [("content-type", "application/json")];
        let response = post(self.address(), path, &json, body.to_string().as_bytes());
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.json()
    }

    /// An error of this status with a sentence that has these words.
    pub fn refused(&self, path: &str, status: u16, words: &str) {
        let response = self.get(path);
        assert_eq!(response.status, status, "{path}: {}", response.text());
        let json = response.json();
        let message = json["message"].as_str().unwrap();
        assert!(message.contains(words), "{path}: {message}");
        assert!(!message.contains(&*self.folder.path().to_string_lossy()), "{message}");
    }
}

impl Response {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// Connects, with a limit on all waits.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
    stream.set_write_timeout(Some(MAX_WAIT)).unwrap();
    stream
}

pub fn request(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut stream = connect(address);
    stream.write_all(head(address, method, path, headers).as_bytes()).unwrap();
    read_response(&mut BufReader::new(stream), method == "HEAD")
}

/// A request with a body.
pub fn post(address: SocketAddr, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let mut stream = connect(address);
    let length = body.len().to_string();
    let headers = [headers, &[("content-length", &length)]].concat();
    stream.write_all(head(address, "POST", path, &headers).as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    read_response(&mut BufReader::new(stream), false)
}

/// The head of a request. A header `host` among those given takes the place of the usual one.
pub fn head(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        head += &format!("host: {address}\r\n");
    }
    headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
    head + "\r\n"
}

/// The status and the headers of an answer.
pub fn read_head(reader: &mut impl BufRead) -> (u16, HashMap<String, String>) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {line:?}")).parse().unwrap();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { return (status, headers) };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
}

fn read_response(reader: &mut BufReader<TcpStream>, is_head: bool) -> Response {
    let (status, headers) = read_head(reader);
    let mut body = Vec::new();
    if !is_head {
        reader.read_to_end(&mut body).unwrap();
    }
    if let Some(length) = headers.get("content-length")
        && !is_head
        && status != 304
    {
        assert_eq!(body.len(), length.parse::<usize>().unwrap());
    }
    Response { status, headers, body }
}

/// Events, one after the other.
pub struct Events {
    reader: BufReader<TcpStream>,
    pub last_id: String,
}

impl Events {
    pub fn of(served: &Served, query: &str, last_id: Option<&str>) -> Self {
        let address = served.address();
        let mut stream = connect(address);
        let headers: Vec<_> = last_id.map(|id| ("last-event-id", id)).into_iter().collect();
        let head = head(address, "GET", &format!("/events?{query}"), &headers);
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader);
        assert_eq!((status, &*headers["content-type"]), (200, "text/event-stream"));
        Events { reader, last_id: String::new() }
    }

    /// The next message; `None` if the server has ended.
    pub fn next(&mut self) -> Option<Json> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(id) = line.strip_prefix("id: ") {
                self.last_id = id.trim_end().to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The first message of which `is_it` is true.
    pub fn wait_for(&mut self, mut is_it: impl FnMut(&Json) -> bool) -> Json {
        loop {
            let message = self.next().expect("the server has ended");
            if is_it(&message) {
                return message;
            }
        }
    }
}

/// The shape of an object in a message of an event, if it is there.
pub fn shape_in(message: &Json, path: &str) -> Option<Vec<u64>> {
    let object = message["objects"].as_array()?.iter().find(|object| object["path"] == path)?;
    object["shape"].as_array()?.iter().map(Json::as_u64).collect()
}

/// Makes a file.
pub fn make(path: &Path, fill: impl FnOnce(&h5live::File) -> h5live::Result<()>) {
    let file = h5live::File::create(path).unwrap();
    fill(&file).unwrap();
    file.close().unwrap();
}
