//! Numbers about elements: `GET /stats`.

use std::sync::Arc;

use h5live::Dataset;
use h5live::model::Dataspace;
use serde_json::{Value as Json, json};

use super::numeric::{Number, NumberKind, NumberType};
use super::read_fault::ReadFault;
use super::selection::Selected;
use crate::fault::Fault;
use crate::pool::MemoryBudget;

/// Smallest and largest elements, mean and standard deviation, of the finite ones.
pub(super) fn stats_json(
    dataset: &Dataset,
    selection: Option<&str>,
    memory: &Arc<MemoryBudget>,
) -> Result<Json, Fault> {
    let spec = dataset.spec()?;
    let number = NumberType::of(&spec.datatype).filter(|number| number.kind != NumberKind::Complex);
    let number = number.ok_or_else(|| Fault::unprocessable("Statistics are of numbers only"))?;
    if matches!(spec.dataspace, Dataspace::Null) {
        return Ok(Sums::default().json());
    }
    let selected = Selected::parse(selection, spec.dataspace.dims())?;
    let _memory = memory.reserve(selected.element_count().saturating_mul(number.element_size(true)))?;
    let bytes = number.read(dataset, &selected, true).map_err(ReadFault::into_fault)?;
    let mut sums = Sums::default();
    number.numbers(&bytes).for_each(|value| sums.add(value));
    let variance = number.numbers(&bytes).filter_map(finite).map(|value| (value - sums.mean()).powi(2)).sum::<f64>();
    sums.deviation = (variance / sums.count.max(1) as f64).sqrt();
    Ok(sums.json())
}

fn finite(number: Number) -> Option<f64> {
    let value = match number {
        Number::Integer(value) => value as f64,
        Number::Float32(value) => value.into(),
        Number::Float64(value) => value,
    };
    value.is_finite().then_some(value)
}

/// What is known of the elements so far.
#[derive(Debug, Default)]
struct Sums {
    count: u64,
    sum: f64,
    deviation: f64,
    is_integer: bool,
    min: Option<Number>,
    max: Option<Number>,
    positive_min: Option<Number>,
    strict_positive_min: Option<Number>,
}

impl Sums {
    fn add(&mut self, number: Number) {
        let Some(value) = finite(number) else { return };
        self.is_integer |= matches!(number, Number::Integer(_));
        self.count += 1;
        self.sum += value;
        lower(&mut self.min, number);
        if self.max.is_none_or(|max| is_below(max, number)) {
            self.max = Some(number);
        }
        if value >= 0.0 {
            lower(&mut self.positive_min, number);
        }
        if value > 0.0 {
            lower(&mut self.strict_positive_min, number);
        }
    }

    fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    fn json(&self) -> Json {
        let number = |number: Option<Number>| match number {
            None => Json::Null,
            Some(Number::Integer(value)) => {
                u64::try_from(value).map_or_else(|_| json!(value as i64), |value| json!(value))
            }
            Some(Number::Float32(value)) => json!(f64::from(value)),
            Some(Number::Float64(value)) => json!(value),
        };
        let of_all = |value: f64| match self.count {
            0 => Json::Null,
            // As h5grove has them: whole numbers.
            _ if self.is_integer && value > i64::MAX as f64 => json!(value.trunc() as u64),
            _ if self.is_integer => json!(value.trunc() as i64),
            _ => json!(value),
        };
        json!({
            "strict_positive_min": number(self.strict_positive_min),
            "positive_min": number(self.positive_min),
            "min": number(self.min),
            "max": number(self.max),
            "mean": of_all(self.mean()),
            "std": of_all(self.deviation),
        })
    }
}

fn is_below(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Integer(a), Number::Integer(b)) => a < b,
        (a, b) => finite(a) < finite(b),
    }
}

fn lower(least: &mut Option<Number>, number: Number) {
    if least.is_none_or(|least| is_below(number, least)) {
        *least = Some(number);
    }
}
