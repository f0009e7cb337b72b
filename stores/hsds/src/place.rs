//! Where a domain is: its bucket, and its path in the bucket.

use std::fs;
use std::path::{Component, Path, PathBuf};

use h5live_model::Result;

use crate::engine::OBJECTS_FOLDER;
use crate::error::HsdsError;
use crate::layout::{DOMAIN_FILE, DomainDocument, check_domain_path};

/// Where a domain is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainPlace {
    /// The folder that is the bucket.
    pub bucket: PathBuf,
    /// The path of the domain in it, without a slash in front.
    pub domain: String,
}

fn has_domain(folder: &Path) -> bool {
    folder.join(DOMAIN_FILE).is_file()
}

fn has_objects(folder: &Path) -> bool {
    folder.join(OBJECTS_FOLDER).is_dir()
}

/// Whether a folder is a domain, or a bucket.
pub fn is_domain_or_bucket(folder: &Path) -> bool {
    has_domain(folder) || (has_objects(folder) && !only_domains(folder).is_empty())
}

/// The names of the domains at the top of a bucket that have objects.
fn only_domains(bucket: &Path) -> Vec<String> {
    let entries = fs::read_dir(bucket).into_iter().flatten().flatten();
    let has_root = |folder: &Path| {
        let bytes = fs::read(folder.join(DOMAIN_FILE)).unwrap_or_default();
        DomainDocument::parse(&bytes).is_ok_and(|document| matches!(document.domain_id(), Ok(Some(_))))
    };
    let domains = entries.filter(|entry| has_root(&entry.path()));
    let mut names: Vec<String> = domains.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// A path of names, from the file system's root on.
fn absolute(path: &Path) -> Result<PathBuf> {
    let failed = |source| HsdsError::Io { key: path.display().to_string(), source };
    let path = std::path::absolute(path).map_err(failed)?;
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    Ok(plain)
}

/// The path of `folder` in `bucket`; `None` if it has names that are no text.
fn within(bucket: &Path, folder: &Path) -> Option<String> {
    let names = folder.strip_prefix(bucket).ok()?.components().map(|part| part.as_os_str().to_str());
    names.collect::<Option<Vec<_>>>().map(|names| names.join("/"))
}

impl DomainPlace {
    /// Where the domain at a path is. If `domain` is given, the path is that of the bucket. Otherwise the path is that of
    /// a domain in a bucket around it, or of a bucket with one domain; a new folder becomes a bucket with one domain of
    /// its name.
    ///
    /// # Errors
    /// [`HsdsError::SeveralDomains`], [`HsdsError::NoDomain`], [`HsdsError::InvalidDomainPath`].
    pub fn resolve(path: &Path, domain: &str) -> Result<Self> {
        let place = DomainPlace::locate(path, domain)?;
        match check_domain_path(&place.domain) {
            Ok(()) => Ok(place),
            Err(why) => Err(HsdsError::InvalidDomainPath { domain: place.domain, why }.into()),
        }
    }

    fn locate(path: &Path, domain: &str) -> Result<Self> {
        let path = absolute(path)?;
        if !domain.trim_matches('/').is_empty() {
            return Ok(DomainPlace { bucket: path, domain: domain.trim_matches('/').to_owned() });
        }
        let around = path.ancestors().skip(1).find(|folder| has_objects(folder));
        if let Some(bucket) = around.filter(|_| has_domain(&path) || !has_objects(&path)) {
            let domain = within(bucket, &path).ok_or_else(|| HsdsError::NoDomain(path.display().to_string()))?;
            return Ok(DomainPlace { bucket: bucket.to_owned(), domain });
        }
        if has_domain(&path) {
            return Ok(DomainPlace { bucket: path, domain: String::new() });
        }
        let name = || path.file_name().and_then(|name| name.to_str()).unwrap_or("data").to_owned();
        let mut domains = only_domains(&path);
        let domain = match (domains.pop(), domains.is_empty()) {
            (None, _) => name(),
            (Some(only), true) => only,
            (Some(last), false) => {
                domains.push(last);
                return Err(HsdsError::SeveralDomains { bucket: path.display().to_string(), domains }.into());
            }
        };
        Ok(DomainPlace { bucket: path, domain })
    }

    /// Where the folder of domains at a path is, if there may be one: `domain` names it in the bucket at the path, or the path is
    /// that of a bucket, or of a folder in one.
    ///
    /// # Errors
    /// [`HsdsError::InvalidDomainPath`].
    pub fn resolve_folder_of_domains(path: &Path, domain: &str) -> Result<Option<Self>> {
        let path = absolute(path)?;
        let place = if !domain.is_empty() {
            DomainPlace { bucket: path, domain: domain.trim_matches('/').to_owned() }
        } else if has_objects(&path) {
            DomainPlace { bucket: path, domain: String::new() }
        } else {
            let Some(bucket) = path.ancestors().skip(1).find(|folder| has_objects(folder)) else { return Ok(None) };
            let domain = within(bucket, &path).ok_or_else(|| HsdsError::NoDomain(path.display().to_string()))?;
            DomainPlace { bucket: bucket.to_owned(), domain }
        };
        match check_domain_path(&place.domain) {
            Ok(()) => Ok(Some(place)),
            Err(why) => Err(HsdsError::InvalidDomainPath { domain: place.domain, why }.into()),
        }
    }

    /// Refuses a new domain whose folder, or one around it in the bucket, is a bucket of its own: the same path would name two
    /// domains.
    ///
    /// # Errors
    /// [`HsdsError::DomainInNestedBucket`].
    pub fn check_no_nested_bucket(&self) -> Result<()> {
        let folder = self.domain_folder();
        let inside = folder.ancestors().take_while(|folder| *folder != self.bucket);
        match inside.into_iter().find(|folder| has_objects(folder)) {
            Some(inner) if !has_domain(&folder) => {
                Err(HsdsError::DomainInNestedBucket { bucket: self.bucket.clone(), inner: inner.to_owned() }.into())
            }
            _ => Ok(()),
        }
    }

    /// The path of the domain that a link names: from the bucket on if it begins with a slash, else beside this domain. `None`
    /// if it names none in this bucket.
    pub fn linked_domain_folder(&self, name: &str) -> Option<String> {
        let beside = || match self.domain.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{name}"),
            None => name.to_owned(),
        };
        let domain = name.strip_prefix('/').map_or_else(beside, str::to_owned);
        let is_path = !domain.is_empty() && check_domain_path(&domain).is_ok();
        self.bucket.join(domain).to_str().filter(|_| is_path).map(str::to_owned)
    }

    /// The folder of the domain.
    pub fn domain_folder(&self) -> PathBuf {
        self.bucket.join(&self.domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_that_of_a_bucket_or_of_a_domain_in_one() {
        let folder = tempfile::tempdir().unwrap();
        let find = |path: &str, domain: &str| {
            let place = DomainPlace::resolve(&folder.path().join(path), domain).unwrap();
            (place.bucket.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned(), place.domain)
        };
        let place = |bucket: &str, domain: &str| (bucket.to_owned(), domain.to_owned());
        assert_eq!(find("run", ""), place("run", "run"));
        assert_eq!(find("bucket", "/home/me/run"), place("bucket", "home/me/run"));
        fs::create_dir_all(folder.path().join("bucket/db")).unwrap();
        assert_eq!(find("bucket/home/me/run", ""), place("bucket", "home/me/run"));
        assert_eq!(find("bucket/x/../home", ""), place("bucket", "home"));
        let root = r#"{"root": "g-b03b24ef-69f244b6-38b3-ac67e1-7acc3e", "owner": "me", "acls": {}}"#;
        for name in ["one", "two"] {
            fs::create_dir_all(folder.path().join("bucket").join(name)).unwrap();
            fs::write(folder.path().join("bucket").join(name).join(DOMAIN_FILE), root).unwrap();
            let found = DomainPlace::resolve(&folder.path().join("bucket"), "");
            assert_eq!(found.is_ok(), name == "one", "{found:?}");
        }
        assert_eq!(find("bucket/two", ""), place("bucket", "two"));
    }

    #[test]
    fn a_domain_lies_in_its_bucket_and_not_among_the_objects_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let bucket = folder.path().join("bucket");
        for (path, domain) in [
            ("bucket", "../evil"),
            ("bucket", "/home/../../evil"),
            ("bucket", ".."),
            ("bucket", "a//b"),
            ("bucket", "/.domain.json"),
            ("bucket", "/.h5live.tmp/x"),
            ("bucket", "db/x"),
            ("bucket/db/x", ""),
            ("bucket/.h5live.tmp/x", ""),
            ("bucket/home/.domain.json", ""),
        ] {
            fs::create_dir_all(bucket.join("db")).unwrap();
            let error = DomainPlace::resolve(&folder.path().join(path), domain).unwrap_err().to_string();
            assert!(error.contains("is no path of a domain in a bucket: "), "{path} {domain}: {error}");
        }
    }

    #[test]
    fn a_link_leads_to_a_domain_of_the_same_bucket() {
        let place = |domain: &str| DomainPlace { bucket: "/data/b".into(), domain: domain.to_owned() };
        for (domain, name, leads_to) in [
            ("home/me/run", "other", "/data/b/home/me/other"),
            ("run", "other", "/data/b/other"),
            ("", "other", "/data/b/other"),
            ("home/me/run", "/home/you/run", "/data/b/home/you/run"),
        ] {
            assert_eq!(place(domain).linked_domain_folder(name).as_deref(), Some(leads_to), "{domain} {name}");
        }
        for outside in
            ["../you", "//etc/x", "/", "", "..", "/../x", "a/../../../x", "/db/x", ".domain.json", "/.h5live.tmp/x"]
        {
            assert_eq!(place("home/me/run").linked_domain_folder(outside), None, "{outside}");
        }
    }

    #[test]
    fn no_domain_is_made_where_its_path_names_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let bucket = folder.path().join("bucket");
        fs::create_dir_all(bucket.join("home/me/run/db")).unwrap();
        for domain in ["home/me/run", "home/me/run/x"] {
            let error =
                DomainPlace::resolve(&bucket, domain).unwrap().check_no_nested_bucket().unwrap_err().to_string();
            let other = format!("hsds:{}", bucket.join("home/me/run").display());
            assert!(error.contains("is a bucket of its own") && error.contains(&other), "{error}");
        }
        for domain in ["home/me/other", "home/me", "home/me/run2"] {
            DomainPlace::resolve(&bucket, domain).unwrap().check_no_nested_bucket().unwrap();
        }
        // One that is there already may be replaced.
        fs::write(bucket.join("home/me/run").join(DOMAIN_FILE), "{}").unwrap();
        DomainPlace::resolve(&bucket, "home/me/run").unwrap().check_no_nested_bucket().unwrap();
    }
}
