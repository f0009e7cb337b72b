//! A program without object stores has no mirrors.

use std::fmt;

use h5live::Location;

use crate::error::Result;

/// No options.
#[derive(Debug, Clone, clap::Args)]
pub struct MirrorArgs {}

/// There is none.
#[derive(Debug)]
pub enum Mirror {}

/// There is none.
#[derive(Debug)]
pub enum MirrorReport {}

impl MirrorArgs {
    /// Nothing.
    ///
    /// # Errors
    /// None.
    pub fn prepare_mirror(&self, _: &Location, _: &str) -> Result<Option<Mirror>> {
        Ok(None)
    }
}

impl Mirror {
    /// Nothing.
    pub fn start(&self) {
        match *self {}
    }

    /// Nothing.
    pub fn finish(self, _: bool) -> Option<MirrorReport> {
        match self {}
    }
}

impl MirrorReport {
    /// Nothing.
    pub fn is_complete(&self) -> bool {
        match *self {}
    }

    /// Nothing.
    pub fn add_to(&self, _: &mut serde_json::Map<String, serde_json::Value>) {
        match *self {}
    }
}

impl fmt::Display for MirrorReport {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
