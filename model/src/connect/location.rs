//! Locations: where a store is, as a path or as `scheme:rest?option=value`.
//!
//! # The rule
//!
//! - A [`Path`] or a [`PathBuf`] is a path, whatever characters it has.
//! - A text is a URL if it begins with a scheme and a colon. A scheme begins with a letter, has two characters or more
//!   (one letter is a drive), and only letters, digits, `+`, `-` and `.`. So `./run:1.h5` and `dir/run:1.h5` are paths.
//! - A URL whose scheme no connector has is a path, so `run:1.h5` names a file. If `//` follows the colon, it is an
//!   error that names the known schemes.
//! - If the scheme is known and a file with the whole text as its name exists, the location is refused: `./mem:x` is the
//!   file, `mem://x` the store. So a text never means one thing today and another thing tomorrow.
//! - In a URL, `%20` and the like are decoded, in the rest and in the query. In a path, a percent sign is a percent sign.
//!
//! Names of files in links and virtual datasets ([`Url::from_linked_file_name`]) have no query, and nothing in them is decoded.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use super::OpenError;
use crate::{Name, Settings};

/// Where a store is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// A path of the file system. The store is found by what is there.
    Path(PathBuf),
    /// A URL. Its scheme says which store it is.
    Url(Url),
}

/// A location that names its store: `scheme:rest?option=value&..`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Url {
    /// As it was given.
    text: String,
    /// In lower case.
    scheme: String,
    /// Where the query begins in `text`, if there is one.
    query_start: Option<usize>,
    /// Whether it comes from a link: then nothing in it is decoded.
    is_literal: bool,
}

impl Location {
    /// Reads a text by the rule of this module.
    pub fn from_text(text: &str) -> Self {
        match scheme_of(text) {
            Some(scheme) => {
                let query = text.find('?');
                Location::Url(Url { text: text.to_owned(), scheme, query_start: query, is_literal: false })
            }
            None => Location::Path(text.into()),
        }
    }

    /// The path, if the location is one.
    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Location::Path(path) => Some(path),
            Location::Url(_) => None,
        }
    }
}

/// The scheme that a text begins with, in lower case.
fn scheme_of(text: &str) -> Option<String> {
    let (scheme, _) = text.split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then(|| scheme.to_ascii_lowercase())
}

/// The path that these bytes are. Where paths are no bytes, what is no UTF-8 is replaced.
pub fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        OsStr::from_bytes(bytes).into()
    }
    #[cfg(not(unix))]
    {
        String::from_utf8_lossy(bytes).into_owned().into()
    }
}

impl Url {
    /// The URL that the name of a file in a link is, if it begins with a scheme. It has no query, and nothing in it is
    /// decoded.
    pub fn from_linked_file_name(name: &Name) -> Option<Self> {
        let text = name.as_str()?;
        let scheme = scheme_of(text)?;
        Some(Url { text: text.to_owned(), scheme, query_start: None, is_literal: true })
    }

    /// The URL of a scheme and of a rest in which nothing is decoded. The rest has no `//` in front of it.
    pub fn literal(scheme: &str, rest: &str) -> Self {
        Url {
            text: format!("{scheme}:{rest}"),
            scheme: scheme.to_ascii_lowercase(),
            query_start: None,
            is_literal: true,
        }
    }

    /// The scheme, in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// What stands between the scheme and the query, as it was given, with `//` if that follows the colon.
    pub fn encoded_hier_part(&self) -> &str {
        let end = self.query_start.unwrap_or(self.text.len());
        self.text.get(self.scheme.len() + 1..end).unwrap_or_default()
    }

    /// The query as it was given, without the question mark.
    pub fn encoded_query(&self) -> Option<&str> {
        self.text.get(self.query_start? + 1..)
    }

    /// Whether `//` follows the colon.
    pub fn has_authority(&self) -> bool {
        self.encoded_hier_part().starts_with("//")
    }

    /// What stands between the scheme and the query, decoded, with `//` if that follows the colon.
    ///
    /// # Errors
    /// [`OpenError::InvalidPercentEscape`] if a percent sign begins no escape.
    pub fn decoded_hier_part(&self) -> Result<Vec<u8>, OpenError> {
        match self.is_literal {
            true => Ok(self.encoded_hier_part().as_bytes().to_vec()),
            false => self.percent_decode(self.encoded_hier_part()),
        }
    }

    /// The path of the file system that stands between the scheme and the query: `run`, `./run` and `//run` lead to the
    /// same place. `None` if nothing stands there.
    ///
    /// # Errors
    /// [`OpenError::InvalidPercentEscape`].
    pub fn hier_part_as_path(&self) -> Result<Option<PathBuf>, OpenError> {
        let decoded = self.decoded_hier_part()?;
        let path = decoded.strip_prefix(b"//").unwrap_or(&decoded);
        Ok((!path.is_empty()).then(|| path_from_bytes(path)))
    }

    /// The options that the query gives. The query of a web address belongs to the server, and gives none.
    ///
    /// # Errors
    /// [`OpenError::InvalidPercentEscape`]; [`OpenError::InvalidQuery`] if a part of the query is not `name=value`.
    pub fn query_settings(&self) -> Result<Settings, OpenError> {
        let mut settings = Settings::default();
        if matches!(self.scheme(), "http" | "https") {
            return Ok(settings);
        }
        for pair in self.encoded_query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let invalid = || OpenError::InvalidQuery { location: self.to_string(), part: pair.to_owned() };
            let (name, value) = pair.split_once('=').ok_or_else(invalid)?;
            let text = |raw| String::from_utf8(self.percent_decode(raw)?).map_err(|_| invalid());
            settings.set(&text(name)?, text(value)?);
        }
        Ok(settings)
    }

    /// Whether nothing in it is decoded, because it comes from a link.
    pub fn is_literal(&self) -> bool {
        self.is_literal
    }

    /// The whole text as a path: what it is if no connector has the scheme.
    pub fn text_as_path(&self) -> PathBuf {
        PathBuf::from(&self.text)
    }

    fn percent_decode(&self, text: &str) -> Result<Vec<u8>, OpenError> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            if *byte != b'%' {
                out.push(*byte);
                continue;
            }
            let digit = |i: usize| after.get(i).and_then(|digit| char::from(*digit).to_digit(16));
            let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                let escape = String::from_utf8_lossy(after.get(..2).unwrap_or(after)).into_owned();
                return Err(OpenError::InvalidPercentEscape {
                    location: self.to_string(),
                    escape: format!("%{escape}"),
                });
            };
            out.push((high * 16 + low) as u8);
            rest = after.get(2..).unwrap_or_default();
        }
        Ok(out)
    }
}

impl fmt::Display for Location {
    /// Without user names, passwords and options of a URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Path(path) => path.display().fmt(f),
            Location::Url(url) => url.fmt(f),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = self.encoded_hier_part();
        match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let host = authority.rsplit('@').next().unwrap_or(authority);
                write!(f, "{}://{host}{path}", self.scheme)
            }
            None => write!(f, "{}:{rest}", self.scheme),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Location::Url(url) => url.fmt(f),
        }
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Url").field(&self.to_string()).finish()
    }
}

impl From<&str> for Location {
    fn from(text: &str) -> Self {
        Location::from_text(text)
    }
}

impl From<String> for Location {
    fn from(text: String) -> Self {
        Location::from_text(&text)
    }
}

impl From<&String> for Location {
    fn from(text: &String) -> Self {
        Location::from_text(text)
    }
}

impl From<OsString> for Location {
    /// As a text, if it is one; a path otherwise. An argument of a command line comes so.
    fn from(text: OsString) -> Self {
        text.to_str().map_or_else(|| Location::Path(text.clone().into()), Location::from_text)
    }
}

impl From<&OsStr> for Location {
    fn from(text: &OsStr) -> Self {
        text.to_owned().into()
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Location::Path(path)
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Self {
        Location::Path(path.clone())
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Location::Path(path.to_owned())
    }
}

impl From<Url> for Location {
    fn from(url: Url) -> Self {
        Location::Url(url)
    }
}

impl From<&Location> for Location {
    fn from(location: &Location) -> Self {
        location.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        match Location::from(text) {
            Location::Url(url) => url,
            Location::Path(_) => panic!("{text} is a path"),
        }
    }

    #[test]
    fn a_text_without_a_scheme_is_a_path() {
        for text in
            ["run.h5", "./run:1.h5", "dir/mem:x", "/a:b", "c:\\run.h5", ":x", "1a:x", "a b:x", "", "100%.h5", "ü:x"]
        {
            assert_eq!(Location::from(text), Location::Path(text.into()), "{text}");
        }
    }

    #[test]
    fn a_path_is_never_read_as_a_url() {
        for text in ["mem:x", "s3://bucket/x", "run.h5?mapped=no"] {
            assert_eq!(Location::from(Path::new(text)), Location::Path(text.into()));
            assert_eq!(Location::from(PathBuf::from(text)), Location::Path(text.into()));
        }
    }

    #[test]
    fn a_url_has_a_scheme_a_rest_and_a_query() {
        let found = url("KV+s3://bucket/a%20b?map_size=64GiB&x=%26");
        assert_eq!((found.scheme(), found.encoded_hier_part()), ("kv+s3", "//bucket/a%20b"));
        assert_eq!(found.decoded_hier_part().unwrap(), b"//bucket/a b");
        assert_eq!(found.encoded_query(), Some("map_size=64GiB&x=%26"));
        let settings = found.query_settings().unwrap();
        assert_eq!(settings.iter().collect::<Vec<_>>(), [("map_size", "64GiB"), ("x", "&")]);
        assert!(found.has_authority() && !url("mem:x").has_authority());
        assert_eq!(url("run:1.h5?").text_as_path(), Path::new("run:1.h5?"));
        assert_eq!(url("mem:").decoded_hier_part().unwrap(), b"");
    }

    #[test]
    fn a_local_path_follows_the_colon_or_two_slashes() {
        for (text, path) in [("kv:run", "run"), ("kv://run", "run"), ("kv:/a%20b?x=1", "/a b"), ("log:///a", "/a")] {
            assert_eq!(url(text).hier_part_as_path().unwrap().as_deref(), Some(Path::new(path)), "{text}");
        }
        assert_eq!(url("kv:").hier_part_as_path().unwrap(), None);
        assert_eq!(url("kv://?sync=never").hier_part_as_path().unwrap(), None);
    }

    #[test]
    fn a_percent_sign_that_begins_no_escape_is_an_error() {
        for (text, escape) in [("mem:100%", "%"), ("mem:%zz", "%zz"), ("mem:a%2", "%2"), ("mem:%ü", "%ü")] {
            match url(text).decoded_hier_part() {
                Err(OpenError::InvalidPercentEscape { escape: found, .. }) => assert_eq!(found, escape),
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(url("mem:x?a").query_settings(), Err(OpenError::InvalidQuery { part, .. }) if part == "a"));
        assert!(matches!(url("mem:x?a=%ff").query_settings(), Err(OpenError::InvalidQuery { .. })));
        assert_eq!(url("mem:100%25").decoded_hier_part().unwrap(), b"100%");
    }

    #[test]
    fn a_name_in_a_link_is_taken_as_it_is() {
        let found = Url::from_linked_file_name(&"mem:a%20b?x=1".into()).unwrap();
        assert_eq!(found.decoded_hier_part().unwrap(), b"a%20b?x=1");
        assert_eq!(found.query_settings().unwrap(), Settings::default());
        assert_eq!(Url::from_linked_file_name(&"run.h5".into()), None);
        assert_eq!(Url::literal("mem", "a%b").decoded_hier_part().unwrap(), b"a%b");
    }

    #[test]
    fn secrets_are_not_shown() {
        let location = Location::from("s3://user:secret@bucket/x?token=secret");
        assert_eq!(location.to_string(), "s3://bucket/x");
        assert!(!format!("{location:?}").contains("secret"));
        assert_eq!(Location::from("mem:a").to_string(), "mem:a");
    }
}
