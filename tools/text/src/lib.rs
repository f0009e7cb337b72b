//! Texts and JSON of types, values, references, times and errors, as the tools of h5live read and write them.
//!
//! ```
//! use h5live::Value;
//! use h5live_text::counted::counted;
//! use h5live_text::type_parse::DatatypeFromText;
//! use h5live_text::{from_json, value};
//!
//! let DatatypeFromText(datatype) = "compound(16){t@0:i64le,volts@8:f64le}".parse()?;
//! let json = serde_json::json!({"t": 1, "volts": 0.5});
//! let row = from_json::value_from_json(&datatype, &json, &|_, _| None)?;
//! assert_eq!(value::exact_json(&row, &|_| "".into()), json);
//! assert_eq!(counted(2u64, "row").to_string(), "2 rows");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Types are texts as `ls` shows them ([`type_parse`]). Values become JSON and lines ([`value`]), and come back
//! ([`from_json`]); references become the paths to which they lead ([`references`], [`reference_json`]). What is said of
//! them: numbers with their nouns ([`counted`]), and errors with their causes ([`error_with_causes`]).

mod causes;
pub mod checked_json;
pub mod counted;
pub mod from_json;
pub mod number_text;
pub mod reference_json;
pub mod references;
pub mod terminal_text;
pub mod times;
pub mod type_parse;
pub mod utc;
pub mod value;

pub use causes::error_with_causes;
