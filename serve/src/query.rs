//! The parameters of a request.

use axum::http::Uri;

use crate::fault::Fault;

/// The parameters of a request, decoded, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub fn of(uri: &Uri) -> Self {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        Query(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(of, _)| of == name).map(|(_, value)| &**value)
    }

    /// # Errors
    /// If it is not there.
    pub fn require(&self, name: &str) -> Result<&str, Fault> {
        self.get(name).ok_or_else(|| Fault::unprocessable(format!("The parameter {name} is missing")))
    }

    /// A truth value, as FastAPI reads it.
    ///
    /// # Errors
    /// If it is none.
    pub fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.get(name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "0" | "off" | "no" | "f" | "n") => Ok(false),
            Some("true" | "1" | "on" | "yes" | "t" | "y") => Ok(true),
            Some(other) => Err(Fault::unprocessable(format!("{other} is not a valid value for {name}: true or false"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_may_be_repeated() {
        let query = Query::of(&"/attr?file=a%20b%2Fc.h5&attr_keys=x&attr_keys=y+z&flatten=True".parse().unwrap());
        assert_eq!(query.get("file"), Some("a b/c.h5"));
        assert_eq!(query.all("attr_keys").collect::<Vec<_>>(), ["x", "y z"]);
        assert!(query.flag("flatten").unwrap() && !query.flag("other").unwrap());
        assert!(query.flag("file").is_err());
        assert!(query.require("path").unwrap_err().message.contains("path"));
    }
}
