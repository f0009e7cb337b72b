//! The path of a domain in its bucket: a name from a URL or a document that becomes keys.

use super::id::DOMAIN_FILE;

/// The folder in a bucket that has the objects of all domains.
pub const OBJECTS_FOLDER: &str = "db";

/// What the names begin with of objects in the folder of a domain, or of a bucket, that are no content.
pub const OWN_NAME_PREFIX: &str = ".h5live.";

/// Refuses a path, without a slash in front, that leads out of the bucket, or to objects that are no domains. The empty path is
/// that of a domain at the top of the bucket.
///
/// # Errors
/// What is wrong with it.
pub fn check_domain_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Ok(());
    }
    for (number, name) in path.split('/').enumerate() {
        match name {
            "" => return Err("a name in it is empty"),
            "." | ".." => return Err("it leads out of the bucket, or nowhere"),
            OBJECTS_FOLDER if number == 0 => return Err("db/ has the objects of all domains"),
            DOMAIN_FILE => return Err(".domain.json is the object of a domain"),
            _ if name.starts_with(OWN_NAME_PREFIX) => {
                return Err("names that begin with .h5live. are not those of domains");
            }
            _ if name.contains('\0') => return Err("it has a zero byte"),
            _ if !cfg!(unix) && name.contains(['\\', ':']) => return Err("it has characters that separate names here"),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_a_domain_in_the_bucket_and_nowhere_else() {
        for good in ["", "run", "home/me/run", "a b/.hidden", "home/db", "...", "x.domain.json", "h5live.tmp"] {
            assert_eq!(check_domain_path(good), Ok(()), "{good:?}");
        }
        let bad = [
            "..",
            "../evil",
            "a/../../evil",
            "a/..",
            ".",
            "a/./b",
            "a//b",
            "/a",
            "a/",
            "db",
            "db/1-2",
            ".domain.json",
            "a/.domain.json",
            ".domain.json/x",
            ".h5live.tmp",
            ".h5live.tmp/x",
            "a/.h5live.lock",
            "a\0b",
        ];
        for bad in bad {
            assert!(check_domain_path(bad).is_err(), "{bad:?}");
        }
    }
}
