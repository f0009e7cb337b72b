//! Whether two values are the same.

use h5live::Value;

/// How far numbers may be apart and count as the same.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tolerance {
    /// The largest difference.
    pub absolute: f64,
    /// The largest difference as a part of the larger of the two.
    pub relative: f64,
}

impl Tolerance {
    fn allows(self, a: f64, b: f64) -> bool {
        let apart = (a - b).abs();
        a == b || (a.is_nan() && b.is_nan()) || apart <= self.absolute.max(self.relative * a.abs().max(b.abs()))
    }

    /// Whether two values are the same. Numbers of any type are compared by value, compounds member by member in any
    /// order, references by `same_object`.
    pub fn same(self, a: &Value, b: &Value, same_object: &dyn Fn(&Value, &Value) -> bool) -> bool {
        match (a, b) {
            (Value::Integer(a), Value::Integer(b)) if a == b => true,
            (Value::Reference(_), Value::Reference(_)) => same_object(a, b),
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b, same_object))
            }
            (Value::Complex(a), Value::Complex(b)) => a.iter().zip(b.iter()).all(|(a, b)| self.same(a, b, same_object)),
            (Value::Compound(members), Value::Compound(others)) => {
                members.len() == others.len()
                    && members
                        .iter()
                        .all(|(name, a)| others.iter().any(|(other, b)| other == name && self.same(a, b, same_object)))
            }
            _ => match (a.number(), b.number()) {
                (Some(x), Some(y)) if !(is_exact_integer(a) && is_exact_integer(b)) || self != Tolerance::default() => {
                    self.allows(x, y)
                }
                _ => a == b,
            },
        }
    }
}

/// Whether a value is an integer that may not fit a 64-bit float.
fn is_exact_integer(value: &Value) -> bool {
    matches!(value, Value::Integer(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(tolerance: Tolerance, a: &Value, b: &Value) -> bool {
        let there = tolerance.same(a, b, &|_, _| false);
        assert_eq!(there, tolerance.same(b, a, &|_, _| false));
        there
    }

    #[test]
    fn numbers_are_the_same_whatever_their_type_is() {
        let none = Tolerance::default();
        assert!(same(none, &Value::Integer(3), &Value::Float64(3.0)));
        assert!(same(none, &Value::Float32(f32::NAN), &Value::Float64(f64::NAN)));
        assert!(!same(none, &Value::Integer(1 << 60), &Value::Integer((1 << 60) + 1)));
        assert!(!same(none, &Value::Float64(1.0), &Value::Float64(1.1)));
        assert!(!same(none, &Value::Integer(1), &Value::Text("1".into())));
    }

    #[test]
    fn tolerances_are_absolute_or_relative() {
        let absolute = Tolerance { absolute: 0.5, relative: 0.0 };
        assert!(same(absolute, &Value::Integer(3), &Value::Float64(3.5)));
        assert!(!same(absolute, &Value::Integer(3), &Value::Float64(3.6)));
        let relative = Tolerance { absolute: 0.0, relative: 0.01 };
        assert!(same(relative, &Value::Float64(100.0), &Value::Float64(99.0)));
        assert!(!same(relative, &Value::Float64(1.0), &Value::Float64(0.9)));
        assert!(!same(relative, &Value::Float64(f64::INFINITY), &Value::Float64(f64::NAN)));
    }

    #[test]
    fn members_may_stand_in_another_order() {
        let compound = |names: [&str; 2]| {
            Value::Compound(names.iter().map(|name| ((*name).into(), Value::Text((*name).into()))).collect())
        };
        assert!(same(Tolerance::default(), &compound(["a", "b"]), &compound(["b", "a"])));
        assert!(!same(Tolerance::default(), &compound(["a", "b"]), &compound(["a", "c"])));
    }
}
