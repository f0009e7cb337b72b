//! Patterns of names: `*`, `?` and ranges, `[a-f]` or `[a]`.

/// A part of a pattern that one letter fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    Letters(char, char),
    /// As many letters as there are.
    Star,
}

/// The parts of a pattern; `None` if it is none.
fn parts_of(pattern: &str) -> Option<Vec<Part>> {
    let (mut letters, mut parts) = (pattern.chars(), Vec::new());
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            '*' => Part::Star,
            '?' => Part::Any,
            ']' => return None,
            '[' => {
                let first = letters.next()?;
                let last = match letters.next()? {
                    ']' => first,
                    '-' => letters.next().filter(|_| letters.next() == Some(']'))?,
                    _ => return None,
                };
                if last < first {
                    return None;
                }
                Part::Letters(first, last)
            }
            letter => Part::Letters(letter, letter),
        });
    }
    Some(parts)
}

/// Whether a text is a pattern.
pub(super) fn is_pattern(text: &str) -> bool {
    parts_of(text).is_some()
}

/// Whether a name fits a pattern. Takes at most as many steps as the product of their lengths.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some(pattern) = parts_of(pattern) else { return false };
    let name: Vec<char> = name.chars().collect();
    let fits = |part: Part, letter: char| match part {
        Part::Any => true,
        Part::Letters(first, last) => (first..=last).contains(&letter),
        Part::Star => false,
    };
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(Part::Star) => {
                star = Some((p, n));
                p += 1;
            }
            Some(part) if fits(*part, name[n]) => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|part| *part == Part::Star)
}

#[cfg(test)]
mod tests {
    use super::{is_pattern, matches};

    #[test]
    fn patterns_are_those_of_hsds() {
        for (pattern, name) in [
            ("*", ""),
            ("a*", "abc"),
            ("*c", "abc"),
            ("a?c", "abc"),
            ("*b*", "abc"),
            ("abc", "abc"),
            ("a[a-f]c", "abc"),
            ("[a]*", "abc"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("", "a"), ("?", ""), ("a*d", "abc"), ("ab", "abc"), ("abcd", "abc"), ("[b-f]*", "abc"), ("[", "[")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        for bad in ["[", "a]", "[a", "[ab]", "[b-a]", "[a-", "[a-b"] {
            assert!(!is_pattern(bad), "{bad}");
        }
    }
}
