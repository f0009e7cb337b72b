//! How the file's space is managed (format specification 4.0, IV.A.2.x).

use h5live_model::FileSpaceSettings;
pub use h5live_model::FileSpaceStrategy;

use super::{Message, MessageType};
use crate::{Addr, Fault, Record, Result, Wire};

fn strategy_of_number(number: u8) -> Option<FileSpaceStrategy> {
    Some(match number {
        0 => FileSpaceStrategy::FreeSpace,
        1 => FileSpaceStrategy::Paged,
        2 => FileSpaceStrategy::Aggregators,
        3 => FileSpaceStrategy::None,
        _ => return None,
    })
}

fn strategy_number(strategy: FileSpaceStrategy) -> u8 {
    match strategy {
        FileSpaceStrategy::FreeSpace => 0,
        FileSpaceStrategy::Paged => 1,
        FileSpaceStrategy::Aggregators => 2,
        FileSpaceStrategy::None => 3,
    }
}

/// The file space info message, in the superblock extension. Version 0 (before the release of HDF5 1.10.0) is read, and
/// written back as version 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpaceInfo {
    /// 0 or 1.
    pub version: u8,
    /// The strategy of allocation.
    pub strategy: FileSpaceStrategy,
    /// The free-space managers, if free space is kept when the file is closed: six (version 0), or twelve, first
    /// those of small sections, then those of large ones.
    pub managers: Option<Vec<Addr>>,
    /// The smallest free section that is kept (bytes).
    pub threshold: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// Free space of a metadata page below which it is not kept (bytes).
    pub page_end_threshold: u16,
    /// The end of the space in use before the free-space managers were written.
    pub end_before_managers: Addr,
}

impl Default for FileSpaceInfo {
    fn default() -> Self {
        FileSpaceInfo {
            version: 1,
            strategy: FileSpaceStrategy::FreeSpace,
            managers: None,
            threshold: 1,
            page_size: 4096,
            page_end_threshold: 0,
            end_before_managers: Addr::UNDEFINED,
        }
    }
}

impl From<&FileSpaceInfo> for FileSpaceSettings {
    fn from(info: &FileSpaceInfo) -> Self {
        let FileSpaceInfo { strategy, threshold, page_size, .. } = *info;
        FileSpaceSettings { strategy, persist: info.managers.is_some(), threshold, page_size }
    }
}

impl From<FileSpaceSettings> for FileSpaceInfo {
    fn from(space: FileSpaceSettings) -> Self {
        let FileSpaceSettings { strategy, persist, threshold, page_size } = space;
        let managers = persist.then(|| vec![Addr::UNDEFINED; MANAGER_COUNT]);
        FileSpaceInfo { strategy, threshold, page_size, managers, ..FileSpaceInfo::default() }
    }
}

/// Free-space managers of version 1.
const MANAGER_COUNT: usize = 12;

/// The largest page (bytes).
const MAX_PAGE: u64 = 1 << 30;

impl FileSpaceInfo {
    fn wire_managers(&mut self, w: &mut impl Wire, present: bool, count: usize) -> Result<()> {
        if !present {
            self.managers = None;
            return Ok(());
        }
        let managers = self.managers.get_or_insert_default();
        if w.is_decoding() {
            managers.resize(count, Addr::UNDEFINED);
        }
        w.require("managers", managers.len() == count, managers.len() as u64, "6 in version 0, 12 in version 1")?;
        managers.iter_mut().try_for_each(|manager| w.addr("manager", manager))
    }

    fn wire_version_0(&mut self, w: &mut impl Wire) -> Result<()> {
        let number = match (self.strategy, &self.managers) {
            (FileSpaceStrategy::FreeSpace | FileSpaceStrategy::Paged, Some(_)) => 1,
            (FileSpaceStrategy::FreeSpace | FileSpaceStrategy::Paged, None) => 2,
            (FileSpaceStrategy::Aggregators, _) => 3,
            (FileSpaceStrategy::None, _) => 4,
        };
        let number = w.derived_u8("strategy", number)?;
        self.strategy = match number {
            1 | 2 => FileSpaceStrategy::FreeSpace,
            3 => FileSpaceStrategy::Aggregators,
            4 => FileSpaceStrategy::None,
            found => {
                let rule = "a strategy is 1 to 4 in version 0";
                return Err(w.fault("strategy", Fault::InvalidValue { found: found.into(), rule }));
            }
        };
        w.length("threshold", &mut self.threshold)?;
        self.wire_managers(w, number == 1, 6)
    }

    fn wire_version_1(&mut self, w: &mut impl Wire) -> Result<()> {
        let number = w.derived_u8("strategy", strategy_number(self.strategy))?;
        let fault = Fault::InvalidValue { found: number.into(), rule: "a strategy is 0 to 3" };
        self.strategy = strategy_of_number(number).ok_or_else(|| w.fault("strategy", fault))?;
        let persists = w.derived_u8("persist", self.managers.is_some().into())?;
        w.length("threshold", &mut self.threshold)?;
        w.length("page size", &mut self.page_size)?;
        let sound = self.page_size > 0 && self.page_size <= MAX_PAGE;
        w.require("page size", sound, self.page_size, "1 byte to 1 GiB")?;
        w.u16("page end threshold", &mut self.page_end_threshold)?;
        w.addr("end before managers", &mut self.end_before_managers)?;
        self.wire_managers(w, persists != 0, MANAGER_COUNT)
    }
}

impl Record for FileSpaceInfo {
    const NAME: &'static str = "file space info";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=1, &mut self.version)?;
        if self.version == 0 { self.wire_version_0(w) } else { self.wire_version_1(w) }
    }
}

impl Message for FileSpaceInfo {
    const TYPE: MessageType = MessageType::FILE_SPACE_INFO;
}
