//! Options of a store as texts: in the query of a URL, on the command line, and in lists.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use crate::{FileSpaceStrategy, LibVer};

/// What is known of an option: its row in a list of a store's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingDescription {
    /// The name.
    pub name: &'static str,
    /// What values look like: `BYTES`, `yes|no`.
    pub value_form: &'static str,
    /// What it does, in one sentence.
    pub help: &'static str,
}

/// Why a store does not take an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// It has none of this name.
    #[error("the store {connector:?} has no option {name:?}{}", known_text(known))]
    Unknown {
        /// The connector's name.
        connector: &'static str,
        /// The option.
        name: String,
        /// The options that it has.
        known: Vec<&'static str>,
    },
    /// The value is none of its values.
    #[error("the option {name:?} of the store {connector:?} is {form}, and not {value:?}")]
    InvalidValue {
        /// The connector's name.
        connector: &'static str,
        /// The option.
        name: &'static str,
        /// The value.
        value: String,
        /// What values look like.
        form: &'static str,
    },
}

impl SettingError {
    /// The error as one of the connector that has the options among its own: a part of [`settings!`](crate::settings).
    #[doc(hidden)]
    pub fn with_connector(self, owner: &'static str) -> Self {
        match self {
            SettingError::Unknown { name, known, .. } => SettingError::Unknown { connector: owner, name, known },
            SettingError::InvalidValue { name, value, form, .. } => {
                SettingError::InvalidValue { connector: owner, name, value, form }
            }
        }
    }
}

impl SettingError {
    /// The error, with further names that are known.
    pub(super) fn with_known(self, more: &[SettingDescription]) -> Self {
        match self {
            SettingError::Unknown { connector, name, mut known } => {
                known.extend(more.iter().map(|setting| setting.name));
                SettingError::Unknown { connector, name, known }
            }
            value @ SettingError::InvalidValue { .. } => value,
        }
    }
}

fn known_text(known: &[&str]) -> String {
    if known.is_empty() { ": it has none".to_owned() } else { format!("; its options are {}", known.join(", ")) }
}

/// The options of one kind of store, typed: implemented by [`settings!`](crate::settings!).
pub trait ConnectorOptions: Any + Send + Sync + fmt::Debug {
    /// The connector's name.
    fn connector(&self) -> &'static str;

    /// What options there are for users.
    fn visible_setting_descriptions(&self) -> &'static [SettingDescription];

    /// Sets one of them by its name.
    ///
    /// # Errors
    /// [`SettingError`] that names the option.
    fn set(&mut self, name: &str, text: &str) -> Result<(), SettingError>;

    /// The value of one of them, as [`ConnectorOptions::set`] takes it.
    fn get(&self, name: &str) -> Option<String>;

    /// The same options.
    fn clone_options(&self) -> Box<dyn ConnectorOptions>;
}

/// A type of values of options.
pub trait SettingValue: Sized {
    /// What values look like.
    const FORM: &'static str;

    /// Reads a value.
    fn from_text(text: &str) -> Option<Self>;

    /// The text of a value, which [`SettingValue::from_text`] reads.
    fn to_text(&self) -> String;
}

/// The value with this name, of a type each value of which has a name.
pub fn value_with_name<T: Copy>(names: &[(T, &'static str)], text: &str) -> Option<T> {
    names.iter().find(|(_, name)| *name == text).map(|(value, _)| *value)
}

/// The name of a value, of a type each value of which has a name.
pub fn name_of_value<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> String {
    names.iter().find(|(named, _)| named == value).map_or("", |(_, name)| name).to_owned()
}

/// Reads the value of an option: a part of [`settings!`](crate::settings).
///
/// # Errors
/// [`SettingError::InvalidValue`].
#[doc(hidden)]
pub fn parse_setting<T: SettingValue>(
    connector: &'static str,
    name: &'static str,
    text: &str,
) -> Result<T, SettingError> {
    T::from_text(text).ok_or_else(|| SettingError::InvalidValue {
        connector,
        name,
        value: text.to_owned(),
        form: T::FORM,
    })
}

impl SettingValue for bool {
    const FORM: &'static str = "yes|no";

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "yes" | "true" | "on" | "1" => Some(true),
            "no" | "false" | "off" | "0" => Some(false),
            _ => None,
        }
    }

    fn to_text(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

/// Units of bytes, largest first.
const BYTE_UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

impl SettingValue for u64 {
    const FORM: &'static str = "BYTES[KiB|MiB|GiB|TiB]";

    fn from_text(text: &str) -> Option<Self> {
        for (unit, bits) in BYTE_UNITS {
            if let Some(number) = text.strip_suffix(unit) {
                return number.parse::<u64>().ok()?.checked_mul(1 << bits);
            }
        }
        text.parse().ok()
    }

    fn to_text(&self) -> String {
        let fits = |(_, bits): &&(&str, u32)| *self > 0 && self.is_multiple_of(1 << bits);
        match BYTE_UNITS.iter().find(fits) {
            Some((unit, bits)) => format!("{}{unit}", self >> bits),
            None => self.to_string(),
        }
    }
}

impl SettingValue for u32 {
    const FORM: &'static str = "N";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn to_text(&self) -> String {
        self.to_string()
    }
}

/// Units of time and their nanoseconds, in the order in which they are tried.
const TIME_UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("s", 1_000_000_000),
];

impl SettingValue for Duration {
    const FORM: &'static str = "TIME(ns|us|ms|s|min|h)|never";

    fn from_text(text: &str) -> Option<Self> {
        if text == "never" {
            return Some(Duration::MAX);
        }
        let (number, nanos) = TIME_UNITS.iter().find_map(|(unit, nanos)| Some((text.strip_suffix(unit)?, nanos)))?;
        Some(Duration::from_nanos(number.parse::<u64>().ok()?.checked_mul(*nanos)?))
    }

    fn to_text(&self) -> String {
        if *self == Duration::MAX {
            return "never".to_owned();
        }
        let nanos = self.as_nanos();
        let divides = |(_, size): &&(&str, u64)| nanos.is_multiple_of(u128::from(*size));
        let (unit, size) = match nanos {
            0 => &("s", 1),
            _ => TIME_UNITS.iter().filter(divides).max_by_key(|(_, size)| *size).unwrap_or(&("ns", 1)),
        };
        format!("{}{unit}", nanos / u128::from(*size))
    }
}

impl SettingValue for LibVer {
    const FORM: &'static str = "earliest|v18|v110|v112|v114|v200|latest";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn to_text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for FileSpaceStrategy {
    const FORM: &'static str = "fsm-aggr|page|aggr|none";

    fn from_text(text: &str) -> Option<Self> {
        FileSpaceStrategy::from_name(text)
    }

    fn to_text(&self) -> String {
        self.name().to_owned()
    }
}

impl SettingValue for Vec<u8> {
    const FORM: &'static str = "TEXT";

    fn from_text(text: &str) -> Option<Self> {
        Some(text.as_bytes().to_vec())
    }

    fn to_text(&self) -> String {
        String::from_utf8_lossy(self).into_owned()
    }
}

impl SettingValue for String {
    const FORM: &'static str = "TEXT";

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn to_text(&self) -> String {
        self.clone()
    }
}

/// Declares the options of a store once: the typed struct with its defaults, the options as texts, and their list.
///
/// Each field has its default and a doc comment, of which the first line is the option's help. Its type is a
/// [`SettingValue`]. The struct is then [`ConnectorOptions`](crate::ConnectorOptions). Options that only stores above set
/// follow in `hidden { ... }`: they are fields of the struct too, and no list has them. Options that several stores share
/// are declared once; each store has them as a field in `included { ... }`, which comes before `hidden`, and its users find
/// them among its own.
///
/// ```
/// use h5live_model::{ConnectorOptions, settings};
///
/// settings! {
///     connector "kv";
///     /// Options of a key-value store.
///     pub struct Kv {
///         /// The most bytes that the store can take.
///         map_size: u64 = 1 << 40,
///         /// Whether a commit waits for the disk.
///         sync: bool = true,
///     }
/// }
///
/// let mut options = Kv { sync: false, ..Kv::default() };
/// options.set("map_size", "64GiB")?;
/// assert_eq!(options, Kv { map_size: 64 << 30, sync: false });
/// assert_eq!(options.set("size", "1").unwrap_err().to_string(),
///     r#"the store "kv" has no option "size"; its options are map_size, sync"#);
/// assert_eq!(options.visible_setting_descriptions()[0].help, "The most bytes that the store can take.");
/// assert_eq!(options.get("map_size").as_deref(), Some("64GiB"));
/// # Ok::<(), h5live_model::SettingError>(())
/// ```
#[macro_export]
macro_rules! settings {
    (
        connector $connector:literal;
        $(#[$outer:meta])*
        $vis:vis struct $options:ident {
            $(
                #[doc = $help:literal]
                $(#[doc = $more:literal])*
                $field:ident: $type:ty = $default:expr,
            )*
        }
        $(included {
            $(
                $(#[doc = $included_help:literal])*
                $included:ident: $included_type:ty,
            )*
        })?
        $(hidden {
            $(
                $(#[doc = $hidden_help:literal])*
                $hidden:ident: $hidden_type:ty = $hidden_default:expr,
            )*
        })?
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $vis struct $options {
            $(
                #[doc = $help]
                $(#[doc = $more])*
                pub $field: $type,
            )*
            $($(
                $(#[doc = $included_help])*
                pub $included: $included_type,
            )*)?
            $($(
                $(#[doc = $hidden_help])*
                pub $hidden: $hidden_type,
            )*)?
        }

        impl Default for $options {
            fn default() -> Self {
                $options { $($field: $default,)* $($($included: Default::default(),)*)? $($($hidden: $hidden_default,)*)? }
            }
        }

        impl $crate::ConnectorOptions for $options {
            fn connector(&self) -> &'static str {
                $connector
            }

            fn visible_setting_descriptions(&self) -> &'static [$crate::SettingDescription] {
                const SETTINGS: &[$crate::SettingDescription] = &[$($crate::SettingDescription {
                    name: stringify!($field),
                    value_form: <$type as $crate::SettingValue>::FORM,
                    help: $help.trim_ascii(),
                },)*];
                $crate::settings!(@all SETTINGS; $($($included_type)*)?)
            }

            #[allow(unused_variables, reason = "a store may have no options")]
            fn set(&mut self, name: &str, text: &str) -> ::std::result::Result<(), $crate::SettingError> {
                $(if name == stringify!($field) {
                    self.$field = $crate::parse_setting($connector, stringify!($field), text)?;
                    return Ok(());
                })*
                $($(if $crate::ConnectorOptions::get(&self.$included, name).is_some() {
                    let set = $crate::ConnectorOptions::set(&mut self.$included, name, text);
                    return set.map_err(|error| error.with_connector($connector));
                })*)?
                $($(if name == stringify!($hidden) {
                    self.$hidden = $crate::parse_setting($connector, stringify!($hidden), text)?;
                    return Ok(());
                })*)?
                Err($crate::SettingError::Unknown {
                    connector: $connector,
                    name: name.to_owned(),
                    known: self.visible_setting_descriptions().iter().map(|setting| setting.name).collect(),
                })
            }

            #[allow(unused_variables, reason = "a store may have no options")]
            fn get(&self, name: &str) -> Option<String> {
                $(if name == stringify!($field) {
                    return Some($crate::SettingValue::to_text(&self.$field));
                })*
                $($(if let Some(value) = $crate::ConnectorOptions::get(&self.$included, name) {
                    return Some(value);
                })*)?
                $($(if name == stringify!($hidden) {
                    return Some($crate::SettingValue::to_text(&self.$hidden));
                })*)?
                None
            }

            fn clone_options(&self) -> Box<dyn $crate::ConnectorOptions> {
                Box::new(self.clone())
            }
        }
    };
    // The options of a store without, and with, those of others.
    (@all $own:ident;) => { $own };
    (@all $own:ident; $($included_type:ty)+) => {{
        static ALL: ::std::sync::LazyLock<Vec<$crate::SettingDescription>> = ::std::sync::LazyLock::new(|| {
            let mut all = $own.to_vec();
            $(all.extend_from_slice($crate::ConnectorOptions::visible_setting_descriptions(
                &<$included_type as ::std::default::Default>::default(),
            ));)+
            all
        });
        &ALL
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: SettingValue + PartialEq + std::fmt::Debug>(texts: &[(&str, Option<T>)]) {
        for (text, value) in texts {
            assert_eq!(T::from_text(text), *value, "{text}");
            if let Some(value) = value {
                assert_eq!(T::from_text(&value.to_text()).as_ref(), Some(value), "{}", value.to_text());
            }
        }
    }

    settings! {
        connector "shared";
        /// Options of several stores.
        pub struct Shared {
            /// The region.
            region: String = "here".to_owned(),
        }
    }

    settings! {
        connector "one";
        /// Options of one of them.
        pub struct One {
            /// The number.
            number: u32 = 7,
        }
        included {
            /// What it shares.
            shared: Shared,
        }
        hidden {
            /// What nobody sees.
            depth: u32 = 1,
        }
    }

    #[test]
    fn options_that_stores_share_are_found_among_their_own() {
        use crate::ConnectorOptions;
        let mut one = One::default();
        assert_eq!(
            one.visible_setting_descriptions().iter().map(|setting| setting.name).collect::<Vec<_>>(),
            ["number", "region"]
        );
        one.set("region", "there").unwrap();
        one.set("depth", "2").unwrap();
        assert_eq!((one.shared.region.as_str(), one.depth), ("there", 2));
        assert_eq!((one.get("region").as_deref(), one.get("number").as_deref()), (Some("there"), Some("7")));
        let error = one.set("size", "1").unwrap_err();
        assert_eq!(error.to_string(), r#"the store "one" has no option "size"; its options are number, region"#);
    }

    #[test]
    fn values_are_read_and_written_as_texts() {
        check(&[("yes", Some(true)), ("off", Some(false)), ("Yes", None), ("", None)]);
        check(&[
            ("0", Some(0u64)),
            ("4096", Some(4096)),
            ("3KiB", Some(3072)),
            ("1TiB", Some(1 << 40)),
            ("16777216TiB", None),
            ("-1", None),
            ("1KB", None),
        ]);
        check(&[
            ("5s", Some(Duration::from_secs(5))),
            ("250ms", Some(Duration::from_millis(250))),
            ("2min", Some(Duration::from_secs(120))),
            ("0s", Some(Duration::ZERO)),
            ("never", Some(Duration::MAX)),
            ("5", None),
            ("-5s", None),
            ("99999999999999h", None),
        ]);
        check(&[("latest", Some(LibVer::V200)), ("v18", Some(LibVer::V18)), ("v19", None)]);
        check(&[("page", Some(FileSpaceStrategy::Paged)), ("pages", None)]);
        check(&[("ab", Some(b"ab".to_vec()))]);
        assert_eq!((Duration::from_millis(1500).to_text(), Duration::ZERO.to_text()), ("1500ms".into(), "0s".into()));
    }
}
