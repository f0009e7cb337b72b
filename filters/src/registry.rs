//! The registered filters.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use h5live_model::{FilterSpec, Name};

use crate::{Error, Filter, FilterTarget, Result};

/// Filters by their registered numbers. The default registry has every built-in one.
#[derive(Clone)]
pub struct Registry {
    filters: BTreeMap<u16, Arc<dyn Filter>>,
}

impl Registry {
    /// A registry without filters.
    pub fn empty() -> Self {
        Registry { filters: BTreeMap::new() }
    }

    /// Adds a filter, in place of the one that had its number, which is returned.
    pub fn register(&mut self, filter: impl Filter + 'static) -> Option<Arc<dyn Filter>> {
        self.filters.insert(filter.id(), Arc::new(filter))
    }

    /// The filter with this number.
    pub fn get(&self, id: u16) -> Option<&Arc<dyn Filter>> {
        self.filters.get(&id)
    }

    /// All filters, by ascending number.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Filter> {
        self.filters.values().map(|filter| &**filter)
    }

    /// Completes the specification of a filter with the parameters that follow from the dataset, and with the filter's
    /// name. The result is written into the file. An optional filter that is not registered stays unchanged: chunks are
    /// then stored without it.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the filter is not registered and not optional, [`Error::Filter`] if it does not fit
    /// the dataset.
    pub fn complete_spec(&self, spec: &FilterSpec, target: &FilterTarget<'_>) -> Result<FilterSpec> {
        let Some(filter) = self.get(spec.id) else {
            return if spec.optional { Ok(spec.clone()) } else { Err(unavailable_error(spec)) };
        };
        let params = filter.complete_params(&spec.params, target).map_err(|fault| Error::Filter {
            id: spec.id,
            name: filter.name().to_owned(),
            fault,
        })?;
        let name = spec.name.clone().or_else(|| Some(Name::from(filter.name())));
        Ok(FilterSpec { id: spec.id, optional: spec.optional, name, params })
    }
}

impl Default for Registry {
    fn default() -> Self {
        let mut registry = Registry::empty();
        #[cfg(any(feature = "native", feature = "pure"))]
        {
            registry.register(crate::deflate::Deflate);
            registry.register(crate::zstd::Zstd);
        }
        registry.register(crate::shuffle::Shuffle);
        registry.register(crate::fletcher32::Fletcher32);
        registry.register(crate::szip::Szip);
        registry.register(crate::nbit::Nbit);
        registry.register(crate::scale_offset::ScaleOffset);
        registry.register(crate::bzip2::Bzip2);
        registry.register(crate::lzf::Lzf);
        registry.register(crate::lz4::Lz4);
        registry.register(crate::bitshuffle::Bitshuffle);
        registry.register(crate::blosc::Blosc);
        registry.register(crate::zfp::Zfp);
        registry.register(crate::blosc::Blosc2);
        registry
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|filter| (filter.id(), filter.name()))).finish()
    }
}

/// The error for a filter that is not registered.
pub(crate) fn unavailable_error(spec: &FilterSpec) -> Error {
    let name = spec.name.as_ref().filter(|name| !name.is_empty()).map(Name::to_string);
    let name = name.or_else(|| hdf_group_filter_name(spec.id).map(str::to_owned));
    Error::Unavailable { id: spec.id, name: name.unwrap_or_else(|| "unnamed".to_owned()) }
}

/// The registered filters that are known here: number and name, by ascending number.
const REGISTERED_FILTERS: [(u16, &str); 29] = [
    (1, "deflate"),
    (2, "shuffle"),
    (3, "fletcher32"),
    (4, "szip"),
    (5, "nbit"),
    (6, "scaleoffset"),
    (305, "lzo"),
    (307, "bzip2"),
    (32_000, "lzf"),
    (32_001, "blosc"),
    (32_002, "mafisc"),
    (32_003, "snappy"),
    (32_004, "lz4"),
    (32_007, "jpeg-xr"),
    (32_008, "bitshuffle"),
    (32_009, "spdp"),
    (32_012, "jpeg-ls"),
    (32_013, "zfp"),
    (32_014, "fpzip"),
    (32_015, "zstd"),
    (32_016, "b3d"),
    (32_017, "sz"),
    (32_018, "fcidecomp"),
    (32_019, "jpeg"),
    (32_020, "vbz"),
    (32_022, "bitgroom"),
    (32_023, "granular bitround"),
    (32_024, "sz3"),
    (32_026, "blosc2"),
];

/// The name under which the number of a filter is registered; `None` if it is not known here. Files need not name the
/// filters of the format itself, and give others names that are not short.
///
/// ```
/// assert_eq!(h5live_filters::hdf_group_filter_name(32015), Some("zstd"));
/// ```
pub fn hdf_group_filter_name(id: u16) -> Option<&'static str> {
    let at = REGISTERED_FILTERS.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    REGISTERED_FILTERS.get(at).map(|(_, name)| *name)
}

/// The number of the filter with a registered name: the inverse of [`hdf_group_filter_name`].
///
/// ```
/// assert_eq!(h5live_filters::hdf_group_filter_id("zstd"), Some(32015));
/// ```
pub fn hdf_group_filter_id(name: &str) -> Option<u16> {
    REGISTERED_FILTERS.iter().find(|(_, known)| *known == name).map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_registered_filter_is_found_by_its_number_and_by_its_name() {
        for (id, name) in REGISTERED_FILTERS {
            assert_eq!((hdf_group_filter_name(id), hdf_group_filter_id(name)), (Some(name), Some(id)));
        }
        let numbers: Vec<_> = (0..=u16::MAX).filter(|id| hdf_group_filter_name(*id).is_some()).collect();
        assert_eq!(numbers, REGISTERED_FILTERS.map(|(id, _)| id));
        assert_eq!(hdf_group_filter_id("deflat"), None);
    }

    #[test]
    fn every_built_in_filter_is_registered() {
        for filter in Registry::default().iter() {
            assert!(hdf_group_filter_name(filter.id()).is_some(), "{}", filter.id());
        }
    }
}
