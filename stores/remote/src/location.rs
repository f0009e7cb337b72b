//! Where a file on an object store is.

use h5live_model::{Location, OpenError, Url};
use h5live_objects::{Cloud, ObjectStoreLocation};

/// A file: a place of objects, and the key of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RemoteLocation {
    /// The bucket, or the web server.
    pub place: ObjectStoreLocation,
    /// The key; empty for a web server, whose place is the file.
    pub key: String,
}

impl RemoteLocation {
    /// What a location names.
    ///
    /// # Errors
    /// [`OpenError::InvalidLocation`] if it names no file.
    pub fn of(at: &Location) -> Result<Self, OpenError> {
        let Location::Url(url) = at else {
            return Err(OpenError::InvalidLocation(
                "a path is no file on an object store: s3://bucket/run.h5 is one".to_owned(),
            ));
        };
        match Cloud::of_scheme(url.scheme()) {
            Some(cloud) => RemoteLocation::in_cloud(cloud, url),
            None => RemoteLocation::on_web(url),
        }
    }

    fn in_cloud(cloud: Cloud, url: &Url) -> Result<Self, OpenError> {
        let scheme = cloud.scheme();
        let example = || {
            OpenError::InvalidLocation(format!(
                "a file on an object store has a bucket and a key: {scheme}://bucket/run.h5"
            ))
        };
        let decoded = String::from_utf8(url.decoded_hier_part()?).map_err(|_| example())?;
        let (bucket, key) = decoded.strip_prefix("//").and_then(|rest| rest.split_once('/')).ok_or_else(example)?;
        if bucket.contains('@') {
            return Err(OpenError::InvalidLocation(
                "keys of an object store are taken from the environment only".to_owned(),
            ));
        }
        if bucket.is_empty() || key.is_empty() || key.ends_with('/') || key.starts_with('/') {
            return Err(example());
        }
        Ok(RemoteLocation {
            place: ObjectStoreLocation::Bucket { cloud, bucket: bucket.to_owned() },
            key: key.to_owned(),
        })
    }

    fn on_web(url: &Url) -> Result<Self, OpenError> {
        let host = url.encoded_hier_part().strip_prefix("//").and_then(|rest| rest.split('/').next());
        if host.is_none_or(str::is_empty) {
            let scheme = url.scheme();
            return Err(OpenError::InvalidLocation(format!(
                "a file on a web server has a host: {scheme}://host/run.h5"
            )));
        }
        let query = url.encoded_query().map(|query| format!("?{query}")).unwrap_or_default();
        let url = format!("{}:{}{query}", url.scheme(), url.encoded_hier_part());
        Ok(RemoteLocation { place: ObjectStoreLocation::WebFile { url }, key: String::new() })
    }

    /// The file of this name beside it; `None` if it has no such place.
    pub fn sibling_url(&self, name: &str) -> Option<Url> {
        if name.is_empty() || name.starts_with('/') {
            return None;
        }
        match &self.place {
            ObjectStoreLocation::Bucket { cloud, bucket } => {
                let folder = self.key.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
                Some(Url::literal(cloud.scheme(), &format!("//{bucket}/{}", resolve_dots(&format!("{folder}{name}"))?)))
            }
            ObjectStoreLocation::WebFile { url } => {
                let bare = url.split('?').next()?;
                let (scheme, rest) = bare.split_once("://")?;
                let (host, path) = rest.split_once('/')?;
                let folder = path.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
                let name = name.split('/').map(percent_encode).collect::<Vec<_>>().join("/");
                Some(Url::literal(scheme, &format!("//{host}/{}", resolve_dots(&format!("{folder}{name}"))?)))
            }
            ObjectStoreLocation::Folder { .. } => None,
        }
    }
}

/// A path without `.` and `..`; `None` if it leads above its beginning.
fn resolve_dots(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A part of a path as URLs have it.
fn percent_encode(part: &str) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
    part.bytes().map(|byte| if keeps(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<RemoteLocation, OpenError> {
        RemoteLocation::of(&Location::from(text))
    }

    #[test]
    fn a_url_names_a_bucket_and_a_key_or_a_file_of_a_web_server() {
        let found = of("s3://b/runs/a%20b.h5?region=x").unwrap();
        assert_eq!(found.place, ObjectStoreLocation::Bucket { cloud: Cloud::S3, bucket: "b".to_owned() });
        assert_eq!(found.key, "runs/a b.h5");
        let found = of("https://h/a%20b.h5?sig=1").unwrap();
        assert_eq!(found.place, ObjectStoreLocation::WebFile { url: "https://h/a%20b.h5?sig=1".to_owned() });
        for text in
            ["s3://b", "s3://b/", "s3:///run", "s3:run", "gs://b//", "az://b/x/", "https:x", "http:///x", "run.h5"]
        {
            assert!(matches!(of(text), Err(OpenError::InvalidLocation(_))), "{text}");
        }
        let error = of("s3://user:SECRET@b/run").unwrap_err().to_string();
        assert!(error.contains("environment") && !error.contains("SECRET"), "{error}");
    }

    #[test]
    fn a_linked_file_lies_beside_the_one_that_names_it() {
        let beside = |base: &str, name: &str| of(base).unwrap().sibling_url(name).map(|url| url.to_string());
        assert_eq!(beside("s3://b/runs/one.h5", "two.h5").as_deref(), Some("s3://b/runs/two.h5"));
        assert_eq!(beside("s3://b/runs/one.h5", "../x/./two.h5").as_deref(), Some("s3://b/x/two.h5"));
        assert_eq!(beside("s3://b/one.h5", "../../etc/passwd"), None);
        assert_eq!(beside("gs://b/one.h5", "/etc/passwd"), None);
        assert_eq!(beside("https://h/runs/one.h5?sig=1", "a b.h5").as_deref(), Some("https://h/runs/a%20b.h5"));
    }
}
