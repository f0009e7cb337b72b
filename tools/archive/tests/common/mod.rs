//! Archives for tests.

use std::io::Cursor;

use h5live_archive::TarSource;

/// An archive of files whose contents are their names.
pub fn archive(names: &[&str]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for name in names {
        let mut header = tar::Header::new_gnu();
        header.set_size(name.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, name, name.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// It, to be read.
pub fn source(bytes: &[u8]) -> TarSource {
    TarSource::new(Box::new(Cursor::new(bytes.to_vec())), "archive", None).unwrap()
}
