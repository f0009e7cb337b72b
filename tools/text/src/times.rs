//! Columns of times: integers of nanoseconds since 1970, which are shown as ISO 8601.

use h5live::{Attribute, Dataset, Value};

use crate::utc;

/// What the stored integers of a column of times are, for an attribute of the dataset.
pub const TIME_UNITS: &str = "nanoseconds since 1970-01-01T00:00:00Z";

/// The integer that stands for no time, as in numpy.
pub const NO_TIME: i64 = i64::MIN;

/// The attribute of a dataset whose integers are times.
const UNITS: &str = "units";

/// The attribute of a dataset that says what the integers of a column of times are.
pub fn units_attribute_name(column: &str) -> String {
    format!("{column}.{UNITS}")
}

/// Whether a column (a member of a compound) of a dataset has times.
pub fn is_time_column(dataset: &Dataset, column: &str) -> bool {
    says_times(dataset.attribute(&units_attribute_name(column)).ok())
}

fn says_times(units: Option<Attribute>) -> bool {
    units.and_then(|units| units.values().ok()?.first()?.text().map(|text| text == TIME_UNITS)).unwrap_or(false)
}

/// The integers of a dataset that are times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeColumns {
    /// The elements themselves are times.
    is_time: bool,
    /// The members of compounds that are times.
    members: Vec<String>,
}

impl TimeColumns {
    /// Those of a dataset, as its attributes say: `units` for integers, `NAME.units` for the member NAME of compounds.
    pub fn of(dataset: &Dataset) -> Self {
        let suffix = format!(".{UNITS}");
        let names = dataset.attribute_names().unwrap_or_default();
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let columns = names.iter().filter_map(|name| name.strip_suffix(&suffix));
        TimeColumns {
            is_time: names.iter().any(|name| name == UNITS) && says_times(dataset.attribute(UNITS).ok()),
            members: columns.filter(|column| is_time_column(dataset, column)).map(str::to_owned).collect(),
        }
    }

    /// The value of an element or of a list of elements, with texts for times: ISO 8601, and an empty text for no time.
    pub fn times_to_texts(&self, value: Value) -> Value {
        match value {
            Value::Integer(time) if self.is_time => time_text(time),
            Value::List(values) if *self != TimeColumns::default() => {
                Value::List(values.into_iter().map(|value| self.times_to_texts(value)).collect())
            }
            Value::Compound(members) if !self.members.is_empty() => {
                let times = TimeColumns { is_time: true, members: Vec::new() };
                let is_time = |name: &str| self.members.iter().any(|member| member == name);
                let members = members.into_iter().map(|(name, value)| {
                    let value = if is_time(&name.to_string()) { times.times_to_texts(value) } else { value };
                    (name, value)
                });
                Value::Compound(members.collect())
            }
            value => value,
        }
    }
}

fn time_text(time: i128) -> Value {
    match i64::try_from(time) {
        Ok(NO_TIME) => Value::Text(String::new()),
        Ok(time) => Value::Text(utc::iso8601_from_ns(time)),
        Err(_) => Value::Integer(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_texts_wherever_they_are_and_other_integers_stay() {
        let row =
            || Value::Compound(vec![("n".into(), Value::Integer(1)), ("t".into(), Value::Integer(1_500_000_000))]);
        let times = TimeColumns { is_time: false, members: vec!["t".to_owned()] };
        let shown = times.times_to_texts(Value::List(vec![row()])).to_string();
        assert_eq!(shown, "[{n: 1, t: \"1970-01-01T00:00:01.5Z\"}]");
        assert_eq!(TimeColumns::default().times_to_texts(row()), row());
        let times = TimeColumns { is_time: true, members: Vec::new() };
        let list = |values: &[i128]| Value::List(values.iter().map(|value| Value::Integer(*value)).collect());
        let shown = times.times_to_texts(list(&[-1, NO_TIME.into(), 1 << 70])).to_string();
        assert_eq!(shown, "[\"1969-12-31T23:59:59.999999999Z\", \"\", 1180591620717411303424]");
    }
}
