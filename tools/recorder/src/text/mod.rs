//! Texts that stand for types and values, and how values are told: what recorders read and write besides rows.

pub mod checked_json;
pub mod counted;
pub mod from_json;
pub mod number_text;
pub mod times;
pub mod type_parse;
pub mod utc;
