//! Which part of a list a request asks for: `pattern`, `Marker` and `Limit`.

use super::call::Call;
use super::faults::{bad_request, not_found};
use super::glob::{is_pattern, matches};
use crate::fault::Fault;

/// The part of a list that a request asks for.
pub(super) struct Paging<'a> {
    pattern: Option<&'a str>,
    /// The last entry that the client has got.
    marker: Option<&'a str>,
    limit: Option<usize>,
}

impl<'a> Paging<'a> {
    /// # Errors
    /// If a parameter makes no sense.
    pub fn of(call: &'a Call) -> Result<Self, Fault> {
        let given = |name: &str| call.query.get(name).filter(|text| !text.is_empty());
        let pattern = given("pattern");
        if let Some(bad) = pattern.filter(|pattern| !is_pattern(pattern)) {
            return Err(bad_request(format!("invalid pattern: {bad}")));
        }
        Ok(Paging { pattern, marker: given("Marker"), limit: call.number("Limit")?.filter(|limit| *limit > 0) })
    }

    /// Links: those that fit, after the marker.
    ///
    /// # Errors
    /// If there is none with the name of the marker.
    pub fn filter_then_page<T>(&self, mut all: Vec<T>, title: impl Fn(&T) -> &str) -> Result<Vec<T>, Fault> {
        self.keep_fitting(&mut all, &title);
        self.drop_known(&mut all, &title)?;
        self.cut(&mut all);
        Ok(all)
    }

    /// Attributes: as many after the marker, and of them those that fit.
    ///
    /// # Errors
    /// If there is none with the name of the marker.
    pub fn page_then_filter<T>(&self, mut all: Vec<T>, name: impl Fn(&T) -> &str) -> Result<Vec<T>, Fault> {
        self.drop_known(&mut all, &name)?;
        self.cut(&mut all);
        self.keep_fitting(&mut all, &name);
        Ok(all)
    }

    /// Domains: a marker is a whole path, and patterns are those of last names. After one that is not there is nothing.
    pub fn page_domains<T>(&self, mut all: Vec<T>, path: impl Fn(&T) -> &str, name: impl Fn(&T) -> &str) -> Vec<T> {
        if self.drop_known(&mut all, &path).is_err() {
            return Vec::new();
        }
        self.keep_fitting(&mut all, &name);
        self.cut(&mut all);
        all
    }

    /// The same without a marker, of the entries of one of several objects.
    pub fn page_without_marker<T>(&self, mut all: Vec<T>, title: impl Fn(&T) -> &str) -> Vec<T> {
        self.keep_fitting(&mut all, &title);
        self.cut(&mut all);
        all
    }

    fn keep_fitting<T>(&self, all: &mut Vec<T>, title: &impl Fn(&T) -> &str) {
        if let Some(pattern) = self.pattern {
            all.retain(|item| matches(pattern, title(item)));
        }
    }

    fn drop_known<T>(&self, all: &mut Vec<T>, title: &impl Fn(&T) -> &str) -> Result<(), Fault> {
        let Some(marker) = self.marker else { return Ok(()) };
        let at = all.iter().position(|item| title(item) == marker);
        let at = at.ok_or_else(|| not_found(format!("There is nothing with the name of the marker: {marker:?}")))?;
        all.drain(..=at);
        Ok(())
    }

    fn cut<T>(&self, all: &mut Vec<T>) {
        all.truncate(self.limit.unwrap_or(usize::MAX));
    }
}
