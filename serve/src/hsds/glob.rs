//! Patterns of names: `*` and `?`.

/// Whether a name fits a pattern. Takes at most as many steps as the product of their lengths.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[n] => {
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
    pattern[p..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, name) in [("*", ""), ("a*", "abc"), ("*c", "abc"), ("a?c", "abc"), ("*b*", "abc"), ("abc", "abc")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("?", ""), ("a*d", "abc"), ("ab", "abc"), ("abcd", "abc")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
