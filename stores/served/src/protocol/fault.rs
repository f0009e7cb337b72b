//! Kinds of errors, as a client tells them apart.

/// The kind of an error, in the header [`FAULT_HEADER`](super::FAULT_HEADER).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Nothing that is served has the name.
    NoFile,
    /// The file that was opened is not at its place any more.
    Replaced,
    /// The identity leads to no object.
    NoObject,
    /// The object is of another kind.
    WrongKind,
    /// A writer lets nobody read the file.
    InUse,
    /// The server does not do this.
    Unsupported,
    /// It is no file that can be read.
    NotThisFormat,
    /// The elements lie in raw files, which are not served.
    RawFiles,
}

impl FaultKind {
    /// All kinds, with their words.
    const NAMED: [(FaultKind, &'static str); 8] = [
        (FaultKind::NoFile, "no-file"),
        (FaultKind::Replaced, "replaced"),
        (FaultKind::NoObject, "no-object"),
        (FaultKind::WrongKind, "wrong-kind"),
        (FaultKind::InUse, "in-use"),
        (FaultKind::Unsupported, "unsupported"),
        (FaultKind::NotThisFormat, "not-this-format"),
        (FaultKind::RawFiles, "raw-files"),
    ];

    /// The word in the header.
    pub fn as_str(self) -> &'static str {
        Self::NAMED.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    /// The kind of a word; `None` if it is none.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(_, known)| *known == word).map(|(kind, _)| *kind)
    }
}
