//! How a file hands out its space.

use crate::{Error, Result};

/// Who hands out space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SpaceStrategy {
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

impl SpaceStrategy {
    /// All of them.
    pub const ALL: [SpaceStrategy; 4] =
        [SpaceStrategy::FreeSpace, SpaceStrategy::Paged, SpaceStrategy::Aggregators, SpaceStrategy::None];

    /// `fsm-aggr`, `page`, `aggr` or `none`.
    pub fn name(self) -> &'static str {
        match self {
            SpaceStrategy::FreeSpace => "fsm-aggr",
            SpaceStrategy::Paged => "page",
            SpaceStrategy::Aggregators => "aggr",
            SpaceStrategy::None => "none",
        }
    }

    /// The strategy of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}

/// How a file hands out its space, and whether it keeps what is free while nobody has it open. Chosen when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileSpace {
    /// Who hands out space.
    pub strategy: SpaceStrategy,
    /// Whether the file keeps what is free ([`SpaceStrategy::FreeSpace`] and [`SpaceStrategy::Paged`]).
    pub persist: bool,
    /// The smallest free section that is kept (bytes).
    pub threshold: u64,
    /// Bytes of a page ([`SpaceStrategy::Paged`]): 512 to 1 GiB.
    pub page_size: u64,
}

impl Default for FileSpace {
    /// As libhdf5: nothing is kept, no pages.
    fn default() -> Self {
        FileSpace { strategy: SpaceStrategy::FreeSpace, persist: false, threshold: 1, page_size: 4096 }
    }
}

impl FileSpace {
    /// This, if a file can be made so. What does not count with a strategy is as by default.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the size of a page is out of bounds.
    pub fn validate(self) -> Result<Self> {
        if !(512..=1 << 30).contains(&self.page_size) {
            return Err(Error::Invalid("a page of a file has 512 bytes to 1 GiB".to_owned()));
        }
        let keeps = matches!(self.strategy, SpaceStrategy::FreeSpace | SpaceStrategy::Paged);
        let Self { persist, threshold, .. } = if keeps { self } else { Self::default() };
        Ok(FileSpace { persist, threshold, ..self })
    }
}
