//! How rows become a dataset.

use h5live::ConversionPolicy;

use super::csv_dialect::CsvOptions;
use super::error::{Error, Result};
use super::flush_policy::FlushPolicy;
use super::json_rows::NewKeyPolicy;
use super::kind::ColumnKind;
use super::on_error::OnError;
use super::row::RecordColumn;
use super::target::{LayoutSetting, RecordLayout};

/// The format of an input of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputFormat {
    /// JSON if it begins so, and otherwise CSV.
    #[default]
    Guess,
    /// Rows of CSV.
    Csv,
    /// A JSON object or array per line, or one array of them.
    Json,
    /// Lines of text, each as a row with the column `line`.
    Lines,
}

/// Frames of numbers of one type, one after the other, instead of rows of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameFormat {
    kind: ColumnKind,
    shape: Vec<u64>,
    bytes: usize,
}

impl FrameFormat {
    /// Frames of `shape` (`[rank]`, elements).
    ///
    /// # Errors
    /// [`Error::FrameTooLarge`] if a frame has more than 4 GiB.
    pub fn new(kind: ColumnKind, shape: &[u64]) -> Result<Self> {
        let bytes = shape.iter().try_fold(u64::from(kind.size()), |n, d| n.checked_mul(*d));
        let fits = bytes.filter(|n| *n <= u64::from(u32::MAX)).and_then(|n| usize::try_from(n).ok());
        let bytes = fits.ok_or_else(|| Error::FrameTooLarge { shape: shape.to_vec() })?;
        Ok(FrameFormat { kind, shape: shape.to_vec(), bytes })
    }

    /// The type of an element.
    pub fn element_kind(&self) -> ColumnKind {
        self.kind
    }

    /// The shape (`[rank]`, elements).
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes of a frame.
    pub fn frame_bytes(&self) -> usize {
        self.bytes
    }
}

/// How rows become a dataset.
///
/// Texts of errors and notices call an option as `h5live record` does. Each of them says how.
///
/// ```
/// use h5live_recorder::{OnError, RecordOptions};
///
/// let options = RecordOptions {
///     given_column_types: vec!["t=time".parse()?, "image=u8[480x640]".parse()?],
///     on_error: OnError::Skip,
///     ..RecordOptions::default()
/// };
/// # Ok::<(), h5live_recorder::ColumnParseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// The format of rows of text.
    pub format: InputFormat,
    /// How CSV is read.
    pub csv: CsvOptions,
    /// The input is frames of numbers, and no text (`--dtype`, `--shape`).
    pub frames: Option<FrameFormat>,
    /// What becomes of keys of JSON that the first row does not have (`--on-new-key`).
    pub new_keys: NewKeyPolicy,
    /// Whether the first row of CSV may have the units of the columns (not with `--no-units`).
    pub may_have_units_row: bool,
    /// The integer that stands for an empty cell (`--empty`).
    pub integer_for_empty: Option<i128>,
    /// Rows from which the types of columns are inferred (`--infer-rows`).
    pub infer_rows: u64,
    /// The types of columns that are not inferred (`--types`).
    pub given_column_types: Vec<RecordColumn>,
    /// Bytes of the texts of a new dataset, if they are not to be of any length (`--str-width`).
    pub fixed_text_bytes: Option<u16>,
    /// Whether a value may become the nearest one that its column has (`--lossy`).
    pub conversion: ConversionPolicy,
    /// What becomes of rows that cannot be stored (`--on-error`).
    pub on_error: OnError,
    /// When rows become visible to other processes.
    pub flush: FlushPolicy,
    /// How a new dataset is stored.
    pub layout: RecordLayout,
}

impl Default for RecordOptions {
    /// Rows of CSV or JSON, with types from the first hundred rows; recording stops at a row that cannot be stored.
    fn default() -> Self {
        RecordOptions {
            format: InputFormat::default(),
            csv: CsvOptions::default(),
            frames: None,
            new_keys: NewKeyPolicy::default(),
            may_have_units_row: true,
            integer_for_empty: None,
            infer_rows: 100,
            given_column_types: Vec::new(),
            fixed_text_bytes: None,
            conversion: ConversionPolicy::Checked,
            on_error: OnError::default(),
            flush: FlushPolicy::default(),
            layout: RecordLayout::default(),
        }
    }
}

impl RecordOptions {
    /// The settings that say how a new dataset is stored, and are not those of every one.
    pub(crate) fn layout_settings(&self) -> Vec<LayoutSetting> {
        let given = [
            (self.layout.chunk_rows.is_some(), LayoutSetting::ChunkRows),
            (self.layout.deflate.is_some(), LayoutSetting::Deflate),
            (self.fixed_text_bytes.is_some(), LayoutSetting::FixedTextBytes),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, setting)| setting).collect()
    }
}
