//! Where a domain in a bucket is.

use h5live_model::{Location, OpenError, Url};
use h5live_objects::{Cloud, ObjectStoreLocation};

use crate::error::HsdsError;
use crate::layout::check_domain_path;
use crate::options::Hsds;

/// What the schemes of such domains begin with.
const SCHEME_PREFIX: &str = "hsds+";

/// A domain in a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudDomainPlace {
    pub cloud: Cloud,
    pub bucket: String,
    /// The path of the domain in the bucket, without a slash in front.
    pub domain: String,
}

fn example() -> OpenError {
    OpenError::InvalidLocation("a domain has a bucket and a path: hsds+s3://bucket/home/me/run is one".to_owned())
}

impl CloudDomainPlace {
    /// What a location names: a bucket and the path of a domain in it. If `options` name the domain, the location may name
    /// the bucket alone.
    ///
    /// # Errors
    /// [`OpenError::InvalidLocation`] if it names no domain.
    pub fn of_domain(at: &Location, options: &Hsds) -> Result<Self, OpenError> {
        let place = CloudDomainPlace::of_domain_or_folder(at, options)?;
        if place.domain.is_empty() {
            return Err(example());
        }
        Ok(place)
    }

    /// The same, of a folder of domains, too; the path is empty for the top of the bucket.
    ///
    /// # Errors
    /// As [`CloudDomainPlace::of_domain`].
    pub fn of_domain_or_folder(at: &Location, options: &Hsds) -> Result<Self, OpenError> {
        let Location::Url(url) = at else { return Err(example()) };
        let cloud = url.scheme().strip_prefix(SCHEME_PREFIX).and_then(Cloud::of_scheme).ok_or_else(example)?;
        let decoded = String::from_utf8(url.decoded_hier_part()?).map_err(|_| example())?;
        let rest = decoded.strip_prefix("//").ok_or_else(example)?;
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains('@') {
            return Err(OpenError::InvalidLocation(
                "keys of an object store are taken from the environment only".to_owned(),
            ));
        }
        let (path, named) = (path.trim_matches('/'), options.domain.trim_matches('/'));
        let domain = if path.is_empty() { named } else { path };
        if bucket.is_empty() || (!path.is_empty() && !named.is_empty()) {
            return Err(example());
        }
        check_domain_path(domain)
            .map_err(|why| OpenError::Store(HsdsError::InvalidDomainPath { domain: domain.to_owned(), why }.into()))?;
        Ok(CloudDomainPlace { cloud, bucket: bucket.to_owned(), domain: domain.to_owned() })
    }

    /// The place of its objects.
    pub fn bucket_location(&self) -> ObjectStoreLocation {
        ObjectStoreLocation::Bucket { cloud: self.cloud, bucket: self.bucket.clone() }
    }

    /// The domain that a link names: a path in the bucket if it begins with a slash, else one beside this domain. `None` if
    /// it names none in this bucket.
    pub fn linked_domain_url(&self, name: &str) -> Option<Url> {
        let folder = self.domain.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
        let domain = name.strip_prefix('/').map_or_else(|| format!("{folder}{name}"), str::to_owned);
        let is_path = !domain.is_empty() && check_domain_path(&domain).is_ok();
        let scheme = format!("{SCHEME_PREFIX}{}", self.cloud.scheme());
        is_path.then(|| Url::literal(&scheme, &format!("//{}/{domain}", self.bucket)))
    }

    /// What is the same for each location of the domain.
    pub fn canonical_name(&self) -> String {
        format!("{}/{}", self.bucket_location().display_name(), self.domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, domain: &str) -> Result<CloudDomainPlace, OpenError> {
        CloudDomainPlace::of_domain(&Location::from(text), &Hsds { domain: domain.to_owned(), ..Hsds::default() })
    }

    #[test]
    fn a_url_names_a_bucket_and_a_domain() {
        let found = place("hsds+s3://b/home/a%20b/run?region=x", "").unwrap();
        let expected =
            |cloud, domain: &str| CloudDomainPlace { cloud, bucket: "b".to_owned(), domain: domain.to_owned() };
        assert_eq!(found, expected(Cloud::S3, "home/a b/run"));
        assert_eq!(found.canonical_name(), "s3://b/home/a b/run");
        assert_eq!(place("hsds+gs://b/run/", "").unwrap(), expected(Cloud::Google, "run"));
        assert_eq!(place("hsds+az://b", "/home/me/run").unwrap(), expected(Cloud::Azure, "home/me/run"));
        let bad = ["hsds+s3://b", "hsds+s3:///run", "hsds+s3:b/run", "hsds+s3://b//", "run"];
        for text in bad {
            assert!(matches!(place(text, ""), Err(OpenError::InvalidLocation(_))), "{text}");
        }
        for domain in ["a/../c", "..", "a//b", "db/1-2", ".domain.json", "a/.domain.json", "a/.h5live.lease.json"] {
            let error = place(&format!("hsds+s3://b/{domain}"), "").unwrap_err().to_string();
            assert!(error.contains("is no path of a domain"), "{domain}: {error}");
            assert!(place("hsds+s3://b", domain).is_err(), "{domain}");
        }
        assert!(place("hsds+s3://b/run", "/home/run").is_err(), "two domains");
        let error = place("hsds+s3://user:SECRET@b/run", "").unwrap_err().to_string();
        assert!(error.contains("environment") && !error.contains("SECRET"), "{error}");
    }

    #[test]
    fn a_link_leads_to_a_domain_of_the_same_bucket() {
        let linked =
            |name| place("hsds+s3://b/home/me/run", "").unwrap().linked_domain_url(name).map(|url| url.to_string());
        assert_eq!(linked("other").as_deref(), Some("hsds+s3://b/home/me/other"));
        assert_eq!(linked("/home/you/run").as_deref(), Some("hsds+s3://b/home/you/run"));
        for outside in ["../you/run", "/", "//", "//x/y", "a//b", "/db/1-2", "x/.domain.json", "/.h5live.tmp/x", ""] {
            assert_eq!(linked(outside), None, "{outside}");
        }
    }
}
