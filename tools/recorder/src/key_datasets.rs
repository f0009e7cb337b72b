//! [`NewKeyPolicy::DatasetPerKey`](super::json_rows::NewKeyPolicy::DatasetPerKey): the values of keys that the first row does not have, each key in a dataset of its own.

use std::collections::{BTreeMap, HashMap};

use h5live::{ConversionPolicy, Dataset, File, Value};

use super::error::Result;
use super::input::InputRow;
use super::input_cell::InputCell;
use super::kind::ColumnKind;
use super::row::{InferRules, RecordColumn, RowType};
use super::row_error::RowError;
use super::target::{self, RecordLayout};

/// Most keys that get a dataset.
const MAX_KEYS: usize = 1000;

/// The columns of such a dataset: the number of the row, and the value.
const COLUMNS: [&str; 2] = ["row", "value"];

/// The dataset of a key.
#[derive(Debug)]
struct KeyDataset {
    table: RowType,
    dataset: Dataset,
    /// Rows that are not in the dataset yet.
    batch: Vec<Value>,
    is_unflushed: bool,
}

/// The datasets of keys that the first row does not have: `PATH.KEY`.
#[derive(Debug)]
pub struct NewKeyDatasets {
    path: String,
    storage: RecordLayout,
    /// What the first rows say of the types of keys.
    inferred: HashMap<String, RecordColumn>,
    rules: InferRules,
    datasets: BTreeMap<String, KeyDataset>,
}

impl NewKeyDatasets {
    /// None yet, of a dataset at `row_dataset_path`.
    pub fn new(row_dataset_path: &str, layout: RecordLayout) -> Self {
        NewKeyDatasets {
            path: row_dataset_path.to_owned(),
            storage: layout,
            inferred: HashMap::new(),
            rules: InferRules::default(),
            datasets: BTreeMap::new(),
        }
    }

    /// Infers the types of keys from the first rows.
    pub fn infer_key_types(&mut self, rows: &[InputRow], rules: &InferRules) {
        let mut cells: HashMap<&str, Vec<InputCell>> = HashMap::new();
        for (key, cell) in rows.iter().flat_map(|row| &row.new_keys) {
            cells.entry(key).or_default().push(cell.clone());
        }
        self.rules = *rules;
        let each = cells.into_iter().map(|(key, cells)| (key.to_owned(), infer(&cells, rules)));
        self.inferred = each.collect();
    }

    /// Puts values of a row before their datasets, which are made if they are not there. If one value cannot be stored,
    /// none is.
    ///
    /// # Errors
    /// As [`target::open_or_create`].
    pub fn open_and_stage(
        &mut self,
        file: &File,
        row_index: u64,
        values: &[(String, InputCell)],
        conversion: ConversionPolicy,
    ) -> Result<Result<(), RowError>> {
        let mut staged = Vec::with_capacity(values.len());
        for (key, cell) in values {
            if !self.datasets.contains_key(key) {
                if let Err(error) = self.check_key(key) {
                    return Ok(Err(error));
                }
                self.open(file, key, cell)?;
            }
            let Some(of) = self.datasets.get(key) else { continue };
            let cells = [InputCell::Untyped(row_index.to_string()), cell.clone()];
            match of.table.row_value(&cells, conversion) {
                Ok(value) => staged.push((key, value)),
                Err(RowError::Cell { source, .. }) => {
                    return Ok(Err(RowError::Cell { column: key.clone(), source }));
                }
                Err(other) => return Ok(Err(other)),
            }
        }
        for (key, value) in staged {
            if let Some(of) = self.datasets.get_mut(key) {
                of.batch.push(value);
            }
        }
        Ok(Ok(()))
    }

    fn check_key(&self, key: &str) -> Result<(), RowError> {
        if self.datasets.len() >= MAX_KEYS {
            return Err(RowError::TooManyNewKeys { name: key.to_owned(), max_keys: MAX_KEYS });
        }
        if key.contains(['/', '\0']) { Err(RowError::UnusableKeyName(key.to_owned())) } else { Ok(()) }
    }

    fn open(&mut self, file: &File, key: &str, cell: &InputCell) -> Result<()> {
        let path = format!("{}.{key}", self.path);
        let names = COLUMNS.map(str::to_owned);
        let known = match file.dataset(&path) {
            Err(error) if error.is_not_found_in_file() => None,
            found => target::row_type_for_names(&found?, &names)?,
        };
        let table = known.unwrap_or_else(|| {
            let value = self.inferred.get(key).cloned();
            let value = value.unwrap_or_else(|| infer(std::slice::from_ref(cell), &self.rules));
            let [row, _] = COLUMNS;
            RowType::new(vec![RecordColumn::single(row, ColumnKind::U64), value])
        });
        let (datatype, times) = (table.datatype(), table.time_column_names());
        let dataset = target::open_or_create(file, &path, &datatype, &[], &times, self.storage)?.dataset;
        let of = KeyDataset { table, dataset, batch: Vec::new(), is_unflushed: false };
        self.datasets.insert(key.to_owned(), of);
        Ok(())
    }

    /// Hands what is staged to the datasets.
    ///
    /// # Errors
    /// [`Error::File`](super::error::Error::File).
    pub fn append_staged(&mut self) -> Result<()> {
        for of in self.datasets.values_mut().filter(|of| !of.batch.is_empty()) {
            of.dataset.append_values(&of.batch)?;
            of.batch.clear();
            of.is_unflushed = true;
        }
        Ok(())
    }

    /// Makes what was appended visible to other processes.
    ///
    /// # Errors
    /// [`Error::File`](super::error::Error::File).
    pub fn flush_appended(&mut self) -> Result<()> {
        for of in self.datasets.values_mut().filter(|of| of.is_unflushed) {
            of.dataset.flush()?;
            of.is_unflushed = false;
        }
        Ok(())
    }
}

/// The column of the values of a key.
fn infer(cells: &[InputCell], rules: &InferRules) -> RecordColumn {
    let [_, value] = COLUMNS;
    RecordColumn::infer(value, &cells.iter().collect::<Vec<_>>(), rules)
}
