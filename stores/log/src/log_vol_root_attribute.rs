//! What the root group of a file of Log VOL says of its log: `_int_att`.

use h5live_model::{AttributeData, ByteOrder, Dataspace, Datatype, Error, Name, ObjectId, Shape, Sign, Store};

use crate::error::{LogError, Result};

/// The attribute of the root group with counters and the configuration.
pub const COUNTERS: &str = "_int_att";
/// The bit of the configuration that says that the log is in subfiles.
const SUBFILES: i32 = 0x200;
/// The configuration of a new file: entries may refer to earlier ones. So Log VOL writes it if nothing is asked for.
const SHARED_SELECTIONS: i32 = 0x08;

/// What the root group says of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogVolRootAttribute {
    /// How many datasets were made: the next one gets this number.
    pub created_dataset_count: i32,
    /// How many data logs (`_ld_N`) are published.
    pub data_log_count: i32,
    /// How many metadata logs (`_md_N`) are published.
    pub metadata_log_count: i32,
    configuration: i32,
    /// How many subfiles there are, if the log is in subfiles.
    groups: i32,
}

/// The error of an attribute that has another form.
pub fn invalid_attribute_error(attribute: &'static str) -> Error {
    LogError::InvalidAttribute { attribute, of: "a file of Log VOL" }.into()
}

/// The integers of an attribute, of four or eight bytes; `None` if there is none.
///
/// # Errors
/// If it has elements of another type; errors of the store.
pub fn read_int_list_attribute(store: &dyn Store, id: ObjectId, name: &'static str) -> Result<Option<Vec<i64>>> {
    let Some(found) = store.attribute(id, &Name::from(name))? else { return Ok(None) };
    let is = |size: u32| found.datatype == Datatype::integer(size, ByteOrder::Little, Sign::Signed);
    Ok(Some(match () {
        () if is(8) => found.value.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect(),
        () if is(4) => found.value.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes).into()).collect(),
        () => return Err(invalid_attribute_error(name)),
    }))
}

/// So many elements, which is also the most that there may be: Log VOL stores both.
pub fn list_dataspace(len: usize) -> Dataspace {
    let len = [len as u64];
    Dataspace::Simple(Shape::with_max(&len, &len).unwrap_or_else(|| Shape::fixed(&len)))
}

/// An attribute of a list of integers of four bytes.
pub fn i32_list_attribute(name: &str, values: &[i32]) -> AttributeData {
    AttributeData {
        name: Name::from(name),
        datatype: Datatype::integer(4, ByteOrder::Little, Sign::Signed),
        committed_datatype: None,
        dataspace: list_dataspace(values.len()),
        value: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        creation_order: None,
    }
}

impl LogVolRootAttribute {
    /// Those of a file without datasets, whose log is in the file itself.
    pub const NEW: LogVolRootAttribute = LogVolRootAttribute {
        created_dataset_count: 0,
        data_log_count: 0,
        metadata_log_count: 0,
        configuration: SHARED_SELECTIONS,
        groups: 1,
    };

    /// Those of a file; `None` if it is no file of Log VOL.
    ///
    /// # Errors
    /// If they have another form; errors of the store beneath.
    pub fn read(store: &dyn Store) -> Result<Option<Self>> {
        let Some(found) = read_int_list_attribute(store, store.session().root, COUNTERS)? else { return Ok(None) };
        let ints: Vec<i32> = found.iter().filter_map(|number| i32::try_from(*number).ok()).collect();
        let [datasets, data_logs, metadata_logs, configuration, groups] = ints[..] else {
            return Err(invalid_attribute_error(COUNTERS));
        };
        if found.len() != ints.len() || [datasets, data_logs, metadata_logs].iter().any(|count| *count < 0) {
            return Err(invalid_attribute_error(COUNTERS));
        }
        Ok(Some(LogVolRootAttribute {
            created_dataset_count: datasets,
            data_log_count: data_logs,
            metadata_log_count: metadata_logs,
            configuration,
            groups,
        }))
    }

    /// How many subfiles have the log; 0 if it is in the file itself.
    pub fn subfile_count(&self) -> usize {
        if self.configuration & SUBFILES == 0 { 0 } else { usize::try_from(self.groups).unwrap_or(0) }
    }

    /// The attribute that says them.
    pub fn attribute(&self) -> AttributeData {
        let LogVolRootAttribute {
            created_dataset_count: datasets,
            data_log_count: data_logs,
            metadata_log_count: metadata_logs,
            configuration,
            groups,
        } = *self;
        i32_list_attribute(COUNTERS, &[datasets, data_logs, metadata_logs, configuration, groups])
    }
}
