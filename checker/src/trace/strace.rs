//! Traces of other programs, from the log of `strace`.

use std::collections::HashMap;
use std::io::{self, BufRead};

use h5live_cache::StorageOp;

use super::Trace;

/// Why a log cannot be taken for a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StraceError {
    /// It cannot be read.
    #[error("the log cannot be read")]
    Io(#[from] io::Error),
    /// A call that concerns the file is not as it should be.
    #[error("line {line} of the log: {what}")]
    UnusableCall {
        /// Which line, from 1.
        line: usize,
        /// The fault, in words.
        what: &'static str,
    },
}

impl Trace {
    /// The trace of a program on the file whose name ends with `file_name_suffix`, and which held `base` before. It is read from
    /// the log of `strace -f -xx -s 16777216 -e trace=openat,open,close,pwrite64,write,ftruncate,fsync,fdatasync`.
    /// Writes to the file of that name with `.marks` at its end are marks, one in each write.
    ///
    /// # Errors
    /// If a call on the file is cut short, has no offset, or shows not all of its bytes.
    pub fn from_strace(base: Vec<u8>, file_name_suffix: &str, log: impl BufRead) -> Result<Trace, StraceError> {
        let mut open: HashMap<u64, DescriptorRole> = HashMap::new();
        let marks = format!("{file_name_suffix}.marks");
        let mut operations = Vec::new();
        for (number, line) in log.lines().enumerate() {
            let line = line?;
            let wrong = |what| StraceError::UnusableCall { line: number + 1, what };
            let Some((name, arguments, result)) = parse_call(&line) else { continue };
            let Ok(result) = result.parse::<u64>() else { continue };
            if matches!(name, "open" | "openat") {
                let path = arguments.split('"').nth(1).and_then(unescape).unwrap_or_default();
                let role = if path.ends_with(file_name_suffix.as_bytes()) { Some(DescriptorRole::File) } else { None };
                let role = if path.ends_with(marks.as_bytes()) { Some(DescriptorRole::Marks) } else { role };
                match role {
                    Some(role) => open.insert(result, role),
                    None => open.remove(&result),
                };
                continue;
            }
            let descriptor = arguments.split([',', ' ']).next().and_then(|text| text.parse::<u64>().ok());
            let Some(descriptor) = descriptor else { continue };
            let Some(role) = open.get(&descriptor).copied() else { continue };
            let last = arguments.rsplit(", ").next().and_then(|text| text.parse::<u64>().ok());
            match name {
                "close" => {
                    open.remove(&descriptor);
                }
                "write" if role == DescriptorRole::Marks => {
                    let text = shown_bytes(arguments, result).map_err(wrong)?;
                    operations.push(StorageOp::Mark(String::from_utf8_lossy(&text).trim_end().into()));
                }
                _ if role == DescriptorRole::Marks => {}
                "pwrite64" => {
                    let at = last.ok_or_else(|| wrong("there is no offset"))?;
                    let bytes = shown_bytes(arguments, result).map_err(wrong)?;
                    operations.push(StorageOp::Write { at, bytes });
                }
                "ftruncate" => {
                    operations.push(StorageOp::SetLen(last.ok_or_else(|| wrong("there is no length"))?));
                }
                "fsync" | "fdatasync" => operations.push(StorageOp::Sync),
                "write" | "writev" | "pwritev" | "pwritev2" => return Err(wrong("such a write has no offset here")),
                _ => {}
            }
        }
        Ok(Trace { base, operations })
    }
}

/// The role of a file descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DescriptorRole {
    File,
    Marks,
}

/// The first `len` bytes that a call shows.
fn shown_bytes(arguments: &str, len: u64) -> Result<Vec<u8>, &'static str> {
    let mut parts = arguments.split('"');
    let mut bytes = parts.nth(1).and_then(unescape).ok_or("bytes are not shown as \\x..")?;
    if parts.next().is_none_or(|rest| rest.starts_with("...")) || (bytes.len() as u64) < len {
        return Err("not all bytes are shown; give strace a larger -s");
    }
    bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
    Ok(bytes)
}

/// The name, the arguments and the result of the call in a line, without the number of the process before it.
fn parse_call(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.trim_start();
    let line = match line.strip_prefix("[pid") {
        Some(rest) => rest.split_once(']')?.1,
        None => line.trim_start_matches(|c: char| c.is_ascii_digit()),
    };
    let (name, rest) = line.trim_start().split_once('(')?;
    let (arguments, result) = rest.rsplit_once(") ")?;
    let result = result.trim_start().strip_prefix('=')?.trim();
    Some((name, arguments, result.split(' ').next()?))
}

/// The bytes of `\x41\x42`.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4);
    let mut rest = text;
    while !rest.is_empty() {
        let (digits, after) = rest.strip_prefix("\\x")?.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    Some(bytes)
}
