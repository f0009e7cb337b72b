//! What the description of an object has beyond property lists. Ours.

use h5live_model::{DatasetSpec, Dataspace, FilterSpec, Name};

use super::{RecordFormatError, Result};

/// What the description of an object has beyond property lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ExtraProperties {
    /// The object is to have attributes of more than 64 KiB.
    pub large_attributes: bool,
    /// Chunks that reach over the extent are stored without filters.
    pub unfiltered_partial_chunks: bool,
    /// The shape states its maximum, though it is the size.
    pub states_max: bool,
    /// The dataset was asked for as one run of bytes, and was cut into chunks by itself.
    pub was_contiguous: bool,
    /// The names of all filters, if one has a name.
    pub filter_names: Vec<Option<Name>>,
}

const LARGE_ATTRIBUTES: u8 = 0x01;
const UNFILTERED_EDGES: u8 = 0x02;
const STATES_MAX: u8 = 0x04;
const FILTER_NAMES: u8 = 0x08;
const WAS_CONTIGUOUS: u8 = 0x10;

/// The length of a name that is not there.
const NO_NAME: u32 = u32::MAX;

fn invalid(rule: &'static str) -> RecordFormatError {
    RecordFormatError::InvalidValue { record: "Extras", rule }
}

impl ExtraProperties {
    /// Takes what a dataset has.
    pub fn copy_from_dataset_spec(&mut self, dataset: &DatasetSpec) {
        self.unfiltered_partial_chunks = dataset.unfiltered_partial_chunks;
        self.states_max = match &dataset.dataspace {
            Dataspace::Simple(shape) => shape.states_max_dims() && shape.max_dims() == shape.dims(),
            _ => false,
        };
        if dataset.filters.iter().any(|filter| filter.name.is_some()) {
            self.filter_names = dataset.filters.iter().map(|filter| filter.name.clone()).collect();
        }
    }

    /// Gives filters their names.
    ///
    /// # Errors
    /// [`RecordFormatError::InvalidValue`] if there is not one name for each filter.
    pub fn restore_filter_names(&self, filters: &mut [FilterSpec]) -> Result<()> {
        if !self.filter_names.is_empty() && self.filter_names.len() != filters.len() {
            return Err(invalid("there are as many names as filters"));
        }
        filters.iter_mut().zip(&self.filter_names).for_each(|(filter, name)| filter.name.clone_from(name));
        Ok(())
    }

    /// The bytes: flags, then the names, each after its length (u32).
    ///
    /// # Errors
    /// [`RecordFormatError::InvalidValue`] if a name is too long.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let flags = [
            (LARGE_ATTRIBUTES, self.large_attributes),
            (UNFILTERED_EDGES, self.unfiltered_partial_chunks),
            (STATES_MAX, self.states_max),
            (FILTER_NAMES, !self.filter_names.is_empty()),
            (WAS_CONTIGUOUS, self.was_contiguous),
        ];
        let flags = flags.into_iter().filter(|(_, set)| *set).fold(0, |all, (flag, _)| all | flag);
        let mut value = vec![flags];
        for name in &self.filter_names {
            let Some(name) = name else {
                value.extend_from_slice(&NO_NAME.to_le_bytes());
                continue;
            };
            let length = u32::try_from(name.as_bytes().len()).ok().filter(|length| *length != NO_NAME);
            let length = length.ok_or_else(|| invalid("a name has less than 4 GiB"))?;
            value.extend_from_slice(&length.to_le_bytes());
            value.extend_from_slice(name.as_bytes());
        }
        Ok(value)
    }

    /// What [`ExtraProperties::encode`] has encoded.
    ///
    /// # Errors
    /// [`RecordFormatError::InvalidValue`].
    pub fn decode(value: &[u8]) -> Result<Self> {
        let (flags, mut rest) = value.split_first().ok_or_else(|| invalid("it begins with flags"))?;
        let has = |flag: u8| flags & flag != 0;
        if flags & !(LARGE_ATTRIBUTES | UNFILTERED_EDGES | STATES_MAX | FILTER_NAMES | WAS_CONTIGUOUS) != 0 {
            return Err(invalid("only the flags 1, 2, 4, 8 and 16 exist"));
        }
        let mut filter_names = Vec::new();
        while has(FILTER_NAMES) && !rest.is_empty() {
            let (length, names) = rest.split_first_chunk().ok_or_else(|| invalid("a name has a length of 4 bytes"))?;
            let length = u32::from_le_bytes(*length);
            let used = if length == NO_NAME { 0 } else { length as usize };
            let (name, names) = names.split_at_checked(used).ok_or_else(|| invalid("a name is as long as it says"))?;
            filter_names.push((length != NO_NAME).then(|| Name::from(name)));
            rest = names;
        }
        if !rest.is_empty() {
            return Err(invalid("nothing follows"));
        }
        Ok(ExtraProperties {
            large_attributes: has(LARGE_ATTRIBUTES),
            unfiltered_partial_chunks: has(UNFILTERED_EDGES),
            states_max: has(STATES_MAX),
            was_contiguous: has(WAS_CONTIGUOUS),
            filter_names,
        })
    }
}
