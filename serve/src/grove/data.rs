//! Elements: `GET /data`.

use std::sync::Arc;

use h5live::Dataset;
use h5live::model::{Dataspace, Datatype};

use super::formats;
use super::json_text::{JsonText, flat_values, push_float};
use super::numeric::{Number, NumberKind, NumberType};
use super::read_fault::ReadFault;
use super::selection::Selected;
use crate::answer::{Answer, JSON};
use crate::fault::Fault;
use crate::pool::MemoryBudget;
use crate::query::Query;

/// The type of bytes.
const BYTES: &str = "application/octet-stream";
/// Bytes of memory that a number takes as a text and before, and any other value.
const NUMBER_TEXT_BYTES: u64 = 32;
const VALUE_TEXT_BYTES: u64 = 96;

/// How elements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Bin,
    Npy,
    Csv,
    Tiff,
}

/// What is asked for.
#[derive(Debug)]
pub(super) struct DataRequest {
    selection: Option<String>,
    format: Format,
    is_safe: bool,
    is_flat: bool,
}

impl DataRequest {
    pub fn from_query(query: &Query) -> Result<Self, Fault> {
        let format = match query.get("format").unwrap_or("json") {
            "json" => Format::Json,
            "bin" => Format::Bin,
            "npy" => Format::Npy,
            "csv" => Format::Csv,
            "tiff" => Format::Tiff,
            other => return Err(Fault::unprocessable(format!("Unsupported encoding {other}"))),
        };
        let is_safe = match query.get("dtype").unwrap_or("origin") {
            "origin" => false,
            "safe" => true,
            other => return Err(Fault::unprocessable(format!("Unsupported dtype {other}"))),
        };
        Ok(DataRequest {
            selection: query.get("selection").map(str::to_owned),
            format,
            is_safe,
            is_flat: query.flag("flatten")?,
        })
    }

    /// The elements.
    pub fn answer(&self, dataset: &Dataset, memory: &Arc<MemoryBudget>) -> Result<Answer, Fault> {
        match self.try_answer(dataset, memory) {
            // Another request has taken up a smaller extent after this one had looked at it.
            Err(ReadFault::Selection) => self.try_answer(dataset, memory).map_err(ReadFault::into_fault),
            done => done.map_err(ReadFault::into_fault),
        }
    }

    fn try_answer(&self, dataset: &Dataset, memory: &Arc<MemoryBudget>) -> Result<Answer, ReadFault> {
        let spec = dataset.spec()?;
        if matches!(spec.dataspace, Dataspace::Null) {
            return Ok(self.empty()?);
        }
        let selected = Selected::parse(self.selection.as_deref(), spec.dataspace.dims())?;
        let number = NumberType::of(&spec.datatype);
        if self.is_safe && number.is_none() {
            return Err(Fault::unprocessable("Unsupported dtype safe for non-numeric data").into());
        }
        Ok(match (self.format, number) {
            (Format::Json, number) => self.json(dataset, &spec.datatype, number, &selected, memory)?,
            (Format::Bin, Some(number)) => {
                let bytes = selected.element_count().saturating_mul(number.element_size(self.is_safe));
                let memory = memory.reserve(bytes)?;
                let bytes = number.read(dataset, &selected, self.is_safe)?;
                Answer { memory: Some(memory), ..Answer::new(BYTES, bytes) }
            }
            (Format::Bin, None) if spec.datatype.has_vlen_or_references() => {
                return Err(Fault::unprocessable("Unsupported encoding bin for elements of variable length").into());
            }
            (Format::Bin, None) => {
                let memory = memory.reserve(selected.element_count().saturating_mul(spec.datatype.size().into()))?;
                Answer { memory: Some(memory), ..Answer::new(BYTES, dataset.read_raw(&selected)?) }
            }
            (Format::Npy | Format::Csv | Format::Tiff, Some(number)) => {
                self.file(dataset, &number, &selected, memory)?
            }
            (format, None) => {
                return Err(Fault::unprocessable(format!(
                    "Unsupported encoding {} for non-numeric content",
                    format.name()
                ))
                .into());
            }
        })
    }

    /// A dataset without elements, and without dimensions.
    fn empty(&self) -> Result<Answer, Fault> {
        match self.format {
            Format::Json => Ok(Answer::new(JSON, b"null".to_vec())),
            format => Err(Fault::unprocessable(format!("Unsupported encoding {} for empty datasets", format.name()))),
        }
    }

    /// The dimensions of the lists that are written.
    fn list_dims(&self, selected: &Selected, inner: &[u64]) -> Vec<u64> {
        let dims: Vec<_> = selected.shape.iter().chain(inner).copied().collect();
        match self.is_flat && !dims.is_empty() {
            true => vec![dims.iter().fold(1, |all, dim| all.saturating_mul(*dim))],
            false => dims,
        }
    }

    fn json(
        &self,
        dataset: &Dataset,
        datatype: &Datatype,
        number: Option<NumberType>,
        selected: &Selected,
        memory: &Arc<MemoryBudget>,
    ) -> Result<Answer, ReadFault> {
        let mut text = JsonText::new(memory.max_answer_bytes());
        let elements = selected.element_count();
        let reservation = match number {
            Some(number) => {
                let numbers = number.dims.iter().fold(elements, |all, dim| all.saturating_mul(*dim));
                let reservation = memory.reserve(numbers.saturating_mul(NUMBER_TEXT_BYTES))?;
                let bytes = number.read(dataset, selected, true)?;
                let dims = self.list_dims(selected, &number.dims);
                push_numbers(&mut text, &number, &bytes, &dims)?;
                reservation
            }
            None => {
                let reservation = memory.reserve(elements.saturating_mul(VALUE_TEXT_BYTES))?;
                let values = dataset.read_values(selected)?;
                if self.is_flat && matches!(datatype, Datatype::Array(_)) {
                    let (values, datatype) = flat_values(values, datatype);
                    text.push_values(&values, datatype, &[values.len() as u64])?;
                } else {
                    text.push_values(&values, datatype, &self.list_dims(selected, &[]))?;
                }
                reservation
            }
        };
        let bytes = text.finish()?.into_bytes();
        Ok(Answer { memory: Some(reservation), ..Answer::new(JSON, bytes) })
    }

    /// A file to save.
    fn file(
        &self,
        dataset: &Dataset,
        number: &NumberType,
        selected: &Selected,
        memory: &Arc<MemoryBudget>,
    ) -> Result<Answer, ReadFault> {
        let dims = self.list_dims(selected, &number.dims);
        if dims.is_empty() && self.format != Format::Npy {
            let name = self.format.name();
            return Err(
                Fault::unprocessable(format!("Unsupported encoding {name} for empty and scalar datasets")).into()
            );
        }
        let bytes = selected.element_count().saturating_mul(number.element_size(self.is_safe));
        let factor = if self.format == Format::Csv { 8 } else { 2 };
        let reservation = memory.reserve(bytes.saturating_mul(factor))?;
        // A scalar of numpy has the order of the machine.
        let is_native = dims.is_empty() && number.size <= 8 && number.size >= 4;
        let for_javascript = self.is_safe || self.format == Format::Csv || is_native;
        let bytes = number.read(dataset, selected, for_javascript)?;
        let (content_type, name, bytes) = match self.format {
            Format::Npy => (BYTES, "data.npy", formats::npy(&number.dtype(for_javascript), &dims, &bytes)),
            Format::Csv => ("text/csv", "data.csv", formats::csv(number, &dims, &bytes)?),
            _ => ("image/tiff", "data.tiff", formats::tiff(number, for_javascript, &dims, &bytes)?),
        };
        Ok(Answer { memory: Some(reservation), file_name: Some(name), ..Answer::new(content_type, bytes) })
    }
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Bin => "bin",
            Format::Npy => "npy",
            Format::Csv => "csv",
            Format::Tiff => "tiff",
        }
    }
}

/// Numbers of the form that JavaScript takes.
fn push_numbers(text: &mut JsonText, number: &NumberType, bytes: &[u8], dims: &[u64]) -> Result<(), Fault> {
    let mut parts = number.numbers(bytes);
    text.push_nested(dims, &mut |text| {
        let mut next = |text: &mut String| match parts.next() {
            Some(Number::Integer(value)) => text.push_str(&value.to_string()),
            Some(Number::Float32(value)) => push_float(text, value),
            Some(Number::Float64(value)) => push_float(text, value),
            None => text.push_str("null"),
        };
        match number.kind {
            NumberKind::Complex => {
                text.push('[');
                next(text);
                text.push(',');
                next(text);
                text.push(']');
            }
            NumberKind::Bool => {
                let mut value = String::new();
                next(&mut value);
                text.push_str(if value == "0" { "false" } else { "true" });
            }
            _ => next(text),
        }
    })
}
