//! How a file hands out its space.

use std::str::FromStr;

use crate::{Error, Result, Settings};

/// The part of the library that allocates space in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FileSpaceStrategy {
    /// Free-space managers, aggregators, and the driver.
    #[default]
    FreeSpace,
    /// Free-space managers with pages, aggregators, and the driver.
    Paged,
    /// Aggregators and the driver.
    Aggregators,
    /// The driver alone.
    None,
}

impl FileSpaceStrategy {
    /// All of them.
    pub const ALL: [FileSpaceStrategy; 4] = [
        FileSpaceStrategy::FreeSpace,
        FileSpaceStrategy::Paged,
        FileSpaceStrategy::Aggregators,
        FileSpaceStrategy::None,
    ];

    /// `fsm-aggr`, `page`, `aggr` or `none`.
    pub fn name(self) -> &'static str {
        match self {
            FileSpaceStrategy::FreeSpace => "fsm-aggr",
            FileSpaceStrategy::Paged => "page",
            FileSpaceStrategy::Aggregators => "aggr",
            FileSpaceStrategy::None => "none",
        }
    }

    /// The strategy of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}

/// How a file allocates its space, and whether it stores the list of free space when it is closed. Chosen when the file
/// is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileSpaceSettings {
    /// The strategy of allocation.
    pub strategy: FileSpaceStrategy,
    /// Whether the file stores the list of free space ([`FileSpaceStrategy::FreeSpace`] and [`FileSpaceStrategy::Paged`]).
    pub persist: bool,
    /// The smallest free section that is kept (bytes).
    pub threshold: u64,
    /// Bytes of a page ([`FileSpaceStrategy::Paged`]): 512 to 1 GiB.
    pub page_size: u64,
}

impl Default for FileSpaceSettings {
    /// As libhdf5: nothing is kept, no pages.
    fn default() -> Self {
        FileSpaceSettings { strategy: FileSpaceStrategy::FreeSpace, persist: false, threshold: 1, page_size: 4096 }
    }
}

impl FileSpaceSettings {
    /// Takes the values that the settings of a session name, and defaults for the others. See [`FileSpaceSettings::write_to`].
    pub fn from_settings(settings: &Settings) -> Self {
        fn value<T: FromStr>(settings: &Settings, name: &str) -> Option<T> {
            settings.get(name)?.parse().ok()
        }
        let base = FileSpaceSettings::default();
        FileSpaceSettings {
            strategy: settings.get("strategy").and_then(FileSpaceStrategy::from_name).unwrap_or(base.strategy),
            persist: value(settings, "persist").unwrap_or(base.persist),
            threshold: value(settings, "threshold").unwrap_or(base.threshold),
            page_size: value(settings, "page_size").unwrap_or(base.page_size),
        }
    }

    /// Writes `strategy`, `persist`, `threshold` and `page_size` into settings.
    pub fn write_to(self, settings: &mut Settings) {
        settings.set("strategy", self.strategy.name());
        settings.set("persist", self.persist);
        settings.set("threshold", self.threshold);
        settings.set("page_size", self.page_size);
    }

    /// Checks whether a file can be created like this, and returns it. Fields that a strategy does not use get their
    /// defaults.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the size of a page is out of bounds.
    pub fn validate_and_normalize(self) -> Result<Self> {
        if !(512..=1 << 30).contains(&self.page_size) {
            return Err(Error::Invalid("a page of a file has 512 bytes to 1 GiB".to_owned()));
        }
        let keeps = matches!(self.strategy, FileSpaceStrategy::FreeSpace | FileSpaceStrategy::Paged);
        let Self { persist, threshold, .. } = if keeps { self } else { Self::default() };
        Ok(FileSpaceSettings { persist, threshold, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_written_to_settings_is_read_from_them() {
        let space =
            FileSpaceSettings { strategy: FileSpaceStrategy::Paged, persist: true, threshold: 7, page_size: 8192 };
        let mut settings = Settings::default();
        assert_eq!(FileSpaceSettings::from_settings(&settings), FileSpaceSettings::default());
        space.write_to(&mut settings);
        assert_eq!(FileSpaceSettings::from_settings(&settings), space);
    }
}
