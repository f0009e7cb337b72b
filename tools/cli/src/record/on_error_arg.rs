//! `--on-error`: what becomes of rows that cannot be stored.

use std::ffi::OsString;

use h5live_recorder::OnError;

/// What an option says of rows that cannot be stored.
///
/// # Errors
/// What is allowed.
pub fn parse_on_error(text: &str) -> Result<OnError, &'static str> {
    match (text, text.strip_prefix("reject-to")) {
        ("stop", _) => Ok(OnError::Stop),
        ("skip", _) => Ok(OnError::Skip),
        (_, Some(file)) if file.len() > 1 && file.starts_with(['=', ' ']) => Ok(OnError::RejectTo(file[1..].into())),
        _ => Err("allowed are stop, skip and reject-to FILE"),
    }
}

/// Puts the two words `reject-to FILE` of a command line into one, since an option has one value.
pub fn join_reject_to_words(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for word in words {
        let is_reject = |word: &OsString| *word == "reject-to" || *word == "--on-error=reject-to";
        let before = joined.len().checked_sub(2).and_then(|at| joined.get(at)).is_some_and(|word| word == "--on-error");
        match joined.last_mut() {
            Some(last) if is_reject(last) && (before || *last != "reject-to") => {
                last.push("=");
                last.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(words: &[&str]) -> Vec<String> {
        let words = words.iter().map(OsString::from);
        join_reject_to_words(words).into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn the_file_for_rejected_rows_may_be_a_word_of_its_own() {
        assert_eq!(
            joined(&["record", "--on-error", "reject-to", "x", "f"]),
            ["record", "--on-error", "reject-to=x", "f"]
        );
        assert_eq!(joined(&["--on-error=reject-to", "x", "f"]), ["--on-error=reject-to=x", "f"]);
        assert_eq!(joined(&["--on-error", "reject-to=x", "f"]), ["--on-error", "reject-to=x", "f"]);
        assert_eq!(joined(&["set", "reject-to", "x"]), ["set", "reject-to", "x"]);
        assert_eq!(parse_on_error("reject-to=x"), Ok(OnError::RejectTo("x".into())));
        assert!(parse_on_error("reject-to").is_err() && parse_on_error("halt").is_err());
    }
}
