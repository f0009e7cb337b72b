//! The options of object stores, which all stores on them share.

use std::time::Duration;

use h5live_model::{ConnectorOptions, settings};

use crate::error::{ObjectError, ObjectErrorKind, Result};
use crate::limits::RequestLimits;

settings! {
    connector "objects";
    /// How an object store is reached. Keys are taken from the environment only.
    pub struct ObjectOptions {
        /// The URL of the server; if it is empty, the one that the environment names, or the provider's.
        endpoint: String = String::new(),
        /// The region of the bucket; if it is empty, the one that the environment names.
        region: String = String::new(),
        /// Whether the server may be reached without encryption.
        allow_http: bool = false,
        /// Whether requests are made without credentials.
        anonymous: bool = false,
        /// The longest time of one attempt of a request.
        request_timeout: Duration = RequestLimits::default().attempt_timeout,
        /// How often a request is made at most until it succeeds.
        attempts: u32 = RequestLimits::default().max_attempts,
    }
}

impl ObjectOptions {
    /// The limits that they state.
    pub fn limits(&self) -> RequestLimits {
        RequestLimits {
            max_attempts: self.attempts.max(1),
            attempt_timeout: self.request_timeout.clamp(Duration::from_millis(1), Duration::from_secs(3600)),
            ..RequestLimits::default()
        }
    }

    /// An option that is not as by default; `None` if all are.
    pub fn first_non_default_option(&self) -> Option<&'static str> {
        let default = ObjectOptions::default();
        self.visible_setting_descriptions()
            .iter()
            .map(|setting| setting.name)
            .find(|name| self.get(name) != default.get(name))
    }

    /// Refuses options that are given and that a place does not use. `used` lists those that it does.
    ///
    /// # Errors
    /// [`ObjectErrorKind::InvalidInput`].
    pub(crate) fn check_used(&self, place: &str, scheme: &str, used: &[&str]) -> Result<()> {
        let default = ObjectOptions::default();
        let unused = self
            .visible_setting_descriptions()
            .iter()
            .map(|setting| setting.name)
            .find(|name| !used.contains(name) && self.get(name) != default.get(name));
        match unused {
            None => Ok(()),
            Some(name) => {
                let cause = format!("the option {name:?} has no meaning for {scheme}");
                Err(ObjectError::new(ObjectErrorKind::InvalidInput, place, cause))
            }
        }
    }
}
