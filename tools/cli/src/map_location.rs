//! Where a map is, as a command says it.

use h5live::{File, Location, UntypedMap};
use serde_json::Value as Json;

use crate::error::{ChangeRefusal, Error, Result};
use crate::map_text::parse_word;
use crate::model::{Datatype, ReferenceType};
use crate::value::Value;
use crate::{object_or_attribute, open, temp_output};

/// Where a map is.
#[derive(Debug, clap::Args)]
pub struct MapLocation {
    /// The file
    pub file: Location,
    /// The map
    pub path: String,
}

impl MapLocation {
    /// The map, to be read.
    ///
    /// # Errors
    /// If the file cannot be opened, or has no such map.
    pub fn open_map_to_read(&self) -> Result<UntypedMap> {
        Ok(open::for_reading(&self.file)?.untyped_map(&self.path)?)
    }

    /// The file, to be changed.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open_file_to_write(&self) -> Result<File> {
        temp_output::remove_stale_temps_beside(&self.file)?;
        Ok(open::command_line_options().write().open(&self.file)?)
    }

    /// An error that names the map.
    pub fn refused_error(&self, why: impl Into<ChangeRefusal>) -> Error {
        Error::ChangeRefused { file: self.file.to_string().into(), path: self.path.clone(), why: why.into() }
    }

    /// The value of a type that a word stands for.
    ///
    /// # Errors
    /// If it stands for none.
    pub fn parse_value(&self, map: &UntypedMap, datatype: &Datatype, word: &str) -> Result<Value> {
        let refer =
            |form: &ReferenceType, json: &Json| object_or_attribute::reference_from_json(map.file(), form, json);
        parse_word(datatype, word, &refer).map_err(|why| self.refused_error(why))
    }

    /// The keys that words stand for.
    ///
    /// # Errors
    /// As [`MapLocation::parse_value`].
    pub fn parse_keys(&self, map: &UntypedMap, words: &[String]) -> Result<Vec<Value>> {
        words.iter().map(|word| self.parse_value(map, map.key_type(), word)).collect()
    }
}
