//! What texts have several of: a number and its noun, as in `1 row` and `2 rows`, and lists of names.

use std::fmt;

/// A number of things. A width in the format is that of the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedNoun {
    number: u64,
    noun: &'static str,
}

/// `number` things of a kind; `noun` is the word for one of them.
pub fn counted(number: impl TryInto<u64>, noun: &'static str) -> CountedNoun {
    CountedNoun { number: number.try_into().unwrap_or(u64::MAX), noun }
}

impl fmt::Display for CountedNoun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)?;
        write!(f, " {}", noun_for(self.number, self.noun))
    }
}

/// The noun as it stands after a number: `noun` is the word for one thing.
pub fn noun_for(number: u64, noun: &'static str) -> NounForm {
    NounForm { noun, is_one: number == 1 }
}

/// A noun, for one thing or for several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NounForm {
    noun: &'static str,
    is_one: bool,
}

impl fmt::Display for NounForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = self.noun;
        if self.is_one {
            return f.write_str(noun);
        }
        match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
            Some(stem) => write!(f, "{stem}ies"),
            None if noun.ends_with("sh") => write!(f, "{noun}es"),
            None => write!(f, "{noun}s"),
        }
    }
}

/// Most names that an error shows.
const MAX_SHOWN_NAMES: usize = 8;

/// Names one after the other, in quotes.
pub fn quoted_names_and_more(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(MAX_SHOWN_NAMES).map(|name| format!("{name:?}")).collect();
    let more =
        if names.len() > shown.len() { format!(" and {} more", names.len() - shown.len()) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noun_agrees_with_the_number() {
        assert_eq!(counted(1u64, "row").to_string(), "1 row");
        assert_eq!(counted(0usize, "row").to_string(), "0 rows");
        assert_eq!(counted(2u32, "entry").to_string(), "2 entries");
        assert_eq!(counted(2u32, "key").to_string(), "2 keys");
        assert_eq!(counted(11u32, "flush").to_string(), "11 flushes");
        assert_eq!(format!("{:>4}, {:>4}", counted(1u32, "look"), counted(21u32, "look")), "   1 look,   21 looks");
    }
}
