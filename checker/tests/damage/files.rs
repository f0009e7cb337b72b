//! The files, and ways to damage them.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use h5live_cache::{MemoryStorage, Storage};
use h5live_checker::file::{CheckOptions, FileCheckReport, FileRange, Finding, check_storage_with};
use h5live_format::messages::Message;
use h5live_format::{
    FirstHeaderChunk, MessageFlags, RawMessage, Record, Superblock, Widths, decode_prefix_with, encode,
};

/// The folder of the files that `sound.py` makes; `None`, with a line that says so, where there is no Python for it.
fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let python = h5live_test_support::python()?;
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/sound.py");
        let status = Command::new(python).arg(script).arg(folder.path()).status().expect("Python starts");
        assert!(status.success());
        Some(folder)
    });
    made.as_ref().map(tempfile::TempDir::path)
}

/// A file in memory, with the map that was made while it was sound.
pub struct File {
    storage: MemoryStorage,
    map: Vec<FileRange>,
}

pub const WIDTHS: Widths = Widths { offset: h5live_format::Width::EIGHT, length: h5live_format::Width::EIGHT };

impl File {
    /// One of the files of `sound.py`.
    pub fn open(name: &str) -> Option<File> {
        let bytes = std::fs::read(folder()?.join(name).with_extension("h5")).unwrap();
        let storage = MemoryStorage::from(bytes);
        let map =
            check_storage_with(&storage, CheckOptions { builds_space_map: true, ..CheckOptions::default() }).space_map;
        Some(File { storage, map })
    }

    pub fn map(&self) -> &[FileRange] {
        &self.map
    }

    pub fn len(&self) -> u64 {
        self.storage.len().unwrap()
    }

    pub fn cut(&mut self, len: u64) {
        self.storage.set_len(len).unwrap();
    }

    /// All places of a structure.
    pub fn pieces(&self, structure: &str) -> Vec<FileRange> {
        self.map.iter().filter(|piece| piece.structure == structure).cloned().collect()
    }

    /// The first place of a structure of an object.
    pub fn at(&self, path: &str, structure: &str) -> u64 {
        let found = self.map.iter().find(|piece| piece.object_path == path && piece.structure == structure);
        found.unwrap_or_else(|| panic!("{structure} of {path}")).offset
    }

    pub fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let read = self.storage.read_at(&mut bytes, at).unwrap();
        bytes.truncate(read);
        bytes
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        self.storage.write_at(bytes, at).unwrap();
    }

    pub fn flip(&mut self, bit: u64) {
        let byte = self.read(bit / 8, 1)[0] ^ (1 << (bit % 8));
        self.write(bit / 8, &[byte]);
    }

    /// The structure at a place.
    pub fn get<R: Record>(&self, at: u64, context: R) -> R {
        decode_prefix_with(context, &self.read(at, 1 << 16), WIDTHS).unwrap().0
    }

    /// Changes a structure, and makes its checksum right again.
    pub fn edit<R: Record + Clone>(&mut self, at: u64, context: R, change: impl FnOnce(&mut R)) {
        let mut record = self.get(at, context);
        change(&mut record);
        let bytes = encode(&record, WIDTHS).unwrap();
        self.write(at, &bytes);
    }

    pub fn superblock(&mut self, change: impl FnOnce(&mut Superblock)) {
        self.edit(0, Superblock::default(), change);
    }

    /// Changes a message of an object header, without changing its length.
    pub fn message<M: Message + Default + Clone>(&mut self, path: &str, change: impl FnOnce(&mut M)) {
        let at = self.at(path, FirstHeaderChunk::NAME);
        self.edit(at, FirstHeaderChunk::default(), |header| {
            let message = header.messages.iter_mut().find(|message| message.kind == M::TYPE).unwrap();
            let mut body: M = message.decode(WIDTHS).unwrap();
            change(&mut body);
            let mut changed = RawMessage::encode_from(&body, MessageFlags(0), WIDTHS).unwrap().body;
            changed.resize(message.body.len());
            message.body = changed;
        });
    }

    pub fn report(&self) -> FileCheckReport {
        check_storage_with(&self.storage, CheckOptions { reports_harmless_mismatches: true, ..CheckOptions::default() })
    }

    pub fn live(&self) -> FileCheckReport {
        check_storage_with(
            &self.storage,
            CheckOptions { may_be_live: true, reports_harmless_mismatches: true, ..CheckOptions::default() },
        )
    }

    /// Expects a finding of this kind at this structure.
    pub fn expect(&self, structure: &str, at: u64, kind: &str) -> Finding {
        let report = self.report();
        let same = |f: &&Finding| f.structure == structure && f.offset == at && f.cause.kind() == kind;
        match report.findings.iter().find(same) {
            Some(finding) => finding.clone(),
            None => panic!("no {kind} of the {structure} at {at:#x} among {:#?}", report.findings),
        }
    }

    /// Expects that there is one finding: of this kind, at this structure.
    pub fn expect_only(&self, structure: &str, at: u64, kind: &str) {
        self.expect(structure, at, kind);
        let report = self.report();
        assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    }
}
