//! Errors with their causes.

/// An error with its causes, on one line. A cause that the error has shown already is not shown again.
pub fn error_with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let detail = error.to_string();
        if !text.contains(&detail) {
            text = format!("{text}: {detail}");
        }
        cause = error.source();
    }
    text.replace(['\n', '\r'], " ")
}
