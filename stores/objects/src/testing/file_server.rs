//! A web server for the files of a folder, on the loopback of this machine.

use std::fs;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::faulty_proxy::{is_field, read_head};

/// A server that gives ranges of files, and keeps the condition `If-Match`. It ends with this.
#[derive(Debug)]
pub struct FileServer {
    address: SocketAddr,
    shared: Arc<ServedFolder>,
}

#[derive(Debug)]
struct ServedFolder {
    folder: PathBuf,
    requests: AtomicU64,
    is_ended: AtomicBool,
}

impl FileServer {
    /// Serves a folder.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(folder: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = ServedFolder { folder: folder.to_owned(), requests: AtomicU64::new(0), is_ended: false.into() };
        let shared = Arc::new(shared);
        let state = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if state.is_ended.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), state) = (client, state.clone()) else { continue };
                std::thread::spawn(move || state.serve(client));
            }
        });
        Ok(FileServer { address, shared })
    }

    /// The URL of a file of the folder, whose name has only characters that need no escape.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests so far.
    pub fn request_count(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Relaxed);
        // The thread that waits for connections gets a last one.
        let _ = TcpStream::connect(self.address);
    }
}

impl ServedFolder {
    fn serve(&self, client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut reader = BufReader::new(client.try_clone()?);
        let mut client = client;
        while let Some(head) = read_head(&mut reader)? {
            self.requests.fetch_add(1, Ordering::Relaxed);
            self.answer(&String::from_utf8_lossy(&head), &mut client)?;
        }
        Ok(())
    }

    fn answer(&self, head: &str, client: &mut TcpStream) -> io::Result<()> {
        let mut words = head.split_ascii_whitespace();
        let (is_head, path) = (words.next() == Some("HEAD"), words.next().unwrap_or_default());
        let path = path.split('?').next().unwrap_or_default().trim_start_matches('/');
        let value = |name| head.split("\r\n").find(|line| is_field(line, name)).and_then(|line| line.split_once(": "));
        let file = match path.split('/').any(|part| part == "..") {
            true => None,
            false => fs::File::open(self.folder.join(path)).ok(),
        };
        let Some((mut file, found)) = file.and_then(|file| file.metadata().ok().map(|found| (file, found))) else {
            return client.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        };
        let since = found.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let tag = format!("\"{:x}-{:x}\"", since.as_nanos(), found.len());
        if value("if-match").is_some_and(|(_, wanted)| wanted != tag) {
            return client.write_all(b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n");
        }
        let all = 0..found.len();
        let (status, range) = match value("range").map(|(_, text)| byte_range(text, found.len())) {
            None => ("200 OK", all),
            Some(Some(range)) => ("206 Partial Content", range),
            Some(None) => {
                return client.write_all(b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n");
            }
        };
        let len = range.end - range.start;
        let place = format!("Content-Range: bytes {}-{}/{}\r\n", range.start, range.end.saturating_sub(1), found.len());
        let place = if status.starts_with("206") { place } else { String::new() };
        let head = format!("HTTP/1.1 {status}\r\nETag: {tag}\r\n{place}Content-Length: {len}\r\n\r\n");
        client.write_all(head.as_bytes())?;
        if !is_head {
            file.seek(SeekFrom::Start(range.start))?;
            io::copy(&mut file.take(len), client)?;
        }
        Ok(())
    }
}

/// The bytes that a `Range` field asks for; `None` if there are none of them.
fn byte_range(text: &str, size: u64) -> Option<Range<u64>> {
    let (first, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) => first..last.checked_add(1)?.min(size),
        (Ok(first), Err(_)) => first..size,
        (Err(_), Ok(count)) => size.saturating_sub(count)..size,
        (Err(_), Err(_)) => return None,
    };
    (range.start < range.end).then_some(range)
}
