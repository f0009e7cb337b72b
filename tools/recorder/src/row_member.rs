//! Rows with compounds in them, whose members are columns of the input.

use h5live::Value;
use h5live::model::{CompoundMember, CompoundType, Datatype};

/// A member of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowMember {
    /// The next column.
    Column,
    /// A compound, of whose members the input has columns of their own, as `place.x`.
    Compound(Vec<RowMember>),
}

impl RowMember {
    /// The parts of a compound at `name_prefix`, for an input with columns of these names. `add_column` is told the name and the type of each
    /// column. `None` if it returns that for one of them.
    pub fn members_of(
        compound: &CompoundType,
        name_prefix: &str,
        input_names: &[String],
        add_column: &mut dyn FnMut(&str, &Datatype) -> Option<()>,
    ) -> Option<Vec<Self>> {
        let part = |CompoundMember { name, datatype, .. }: &CompoundMember| {
            let name_prefix = format!("{name_prefix}{name}");
            let inside = format!("{name_prefix}.");
            match datatype {
                Datatype::Compound(inner)
                    if !input_names.contains(&name_prefix)
                        && input_names.iter().any(|name| name.starts_with(&inside)) =>
                {
                    RowMember::members_of(inner, &inside, input_names, add_column).map(RowMember::Compound)
                }
                single => add_column(&name_prefix, single).map(|()| RowMember::Column),
            }
        };
        compound.members.iter().map(part).collect()
    }

    /// The value of a row, or of a member of it, from those of its columns.
    pub fn nest_values(parts: &[Self], values: &mut impl Iterator<Item = Value>) -> Value {
        let value = |part: &RowMember| match part {
            RowMember::Column => values.next().unwrap_or_default(),
            RowMember::Compound(parts) => RowMember::nest_values(parts, values),
        };
        Value::List(parts.iter().map(value).collect())
    }
}
