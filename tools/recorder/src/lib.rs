//! Rows of CSV and JSON into datasets of h5live, which others can follow meanwhile.
//!
//! ```
//! use h5live::{File, H5Type};
//! use h5live_recorder::RecordOptions;
//!
//! #[derive(H5Type, Debug, Clone, PartialEq)]
//! struct Sample {
//!     t: i64,
//!     volts: f64,
//! }
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("run.h5");
//! let file = File::create(&path)?;
//! let rows = "t,volts\n1,0.5\n2,0.75\n";
//! let summary = RecordOptions::default().record(&file, "scope/samples", rows.as_bytes())?;
//! file.close()?;
//! assert_eq!(summary.accepted_rows, 2);
//!
//! let file = File::open(&path)?;
//! let samples = file.dataset("scope/samples")?.read::<Sample>()?;
//! assert_eq!(samples, [Sample { t: 1, volts: 0.5 }, Sample { t: 2, volts: 0.75 }]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The input is whatever can be read: standard input, a pipe, a socket. It may be CSV of any dialect, rows of JSON, lines
//! of text, or frames of numbers ([`InputFormat`], [`FrameFormat`]). The types of columns are inferred from the first
//! rows, or given ([`RecordColumn`]). The dataset is one of any store; it is made if it is not there, and otherwise keeps
//! its type. Rows are flushed as [`FlushPolicy`] says. The file stays open: who has opened it closes it.
//!
//! A [`Recorder`] does the same step by step: it tells a [`RecordObserver`] what it decides and which rows it refuses, can
//! be interrupted, and says what was stored also if something has failed ([`RecordingResult`]). What becomes of rows that cannot
//! be stored is a choice ([`OnError`]); each is named by its number and the column at fault ([`RefusedRow`]).

mod csv_dialect;
mod csv_records;
mod csv_rows;
mod error;
mod flush_policy;
mod input;
mod input_cell;
mod json_rows;
mod key_datasets;
mod kind;
mod look_ahead_input;
mod non_finite;
mod observer;
mod on_error;
mod options;
mod reader;
mod recorder;
mod row;
mod row_error;
mod row_member;
mod row_sink;
mod session;
mod stored_type;
mod target;
mod text_decoder;
mod units_row;

pub use csv_dialect::{CsvOptions, QuoteEscape};
pub use error::{DatasetProblem, Error, RefusedRow, Result};
pub use flush_policy::FlushPolicy;
pub use input::{HeaderDoubt, InputError};
pub use json_rows::NewKeyPolicy;
pub use kind::{CellError, ColumnKind, UnknownColumnKind};
pub use observer::{RecordNotice, RecordObserver};
pub use on_error::OnError;
pub use options::{FrameFormat, InputFormat, RecordOptions};
pub use recorder::Recorder;
pub use row::{ColumnParseError, RecordColumn};
pub use row_error::RowError;
pub use row_sink::NoRowsDatasetOutcome;
pub use session::{RecordSummary, RecordingResult};
pub use target::{LayoutSetting, RecordLayout};
