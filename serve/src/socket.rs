//! A socket of the file system, for clients of this machine alone.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// A socket, which is taken away when this is dropped.
#[derive(Debug)]
pub(crate) struct SocketListener {
    listener: UnixListener,
    path: PathBuf,
}

impl SocketListener {
    /// Listens at a path. Only the user of this process can connect. A socket that a server has left there is replaced.
    ///
    /// # Errors
    /// If something else is there, or somebody listens there.
    pub fn bind_owner_only(path: &Path) -> io::Result<Self> {
        let is_left = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket())
            && StdUnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if is_left {
            std::fs::remove_file(path)?;
        }
        // Made beside its place, so that nobody connects before only this user may.
        let mut made = path.as_os_str().to_owned();
        made.push(format!(".{}", std::process::id()));
        let made = PathBuf::from(made);
        let listener = UnixListener::bind(&made)?;
        let placed = std::fs::set_permissions(&made, PermissionsExt::from_mode(0o600))
            // Unlike renaming, it replaces nothing.
            .and_then(|()| std::fs::hard_link(&made, path));
        let removed = std::fs::remove_file(&made);
        placed.and(removed)?;
        Ok(SocketListener { listener, path: path.to_owned() })
    }

    pub async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for SocketListener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
