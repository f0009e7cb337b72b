//! Recorders as programs use them, and the example.

#[path = "../examples/thermometer.rs"]
mod thermometer;

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use h5live::{File, H5Type, Location};
use h5live_recorder::{
    ColumnKind, DatasetProblem, Error, FrameFormat, InputFormat, LayoutSetting, NewKeyPolicy, NoRowsDatasetOutcome,
    OnError, RecordColumn, RecordLayout, RecordNotice, RecordObserver, RecordOptions, RecordSummary, Recorder,
    RecordingResult, RefusedRow,
};

#[derive(H5Type, Debug, Clone, PartialEq)]
struct Sample {
    t: i64,
    volts: f64,
}

/// Keeps all that it hears.
#[derive(Default)]
struct Notes {
    notices: Vec<RecordNotice>,
    refused: Vec<RefusedRow>,
    stored: u64,
    /// Is set when so many rows are stored.
    end: Option<(u64, Arc<AtomicBool>)>,
}

impl RecordObserver for Notes {
    fn notice(&mut self, notice: &RecordNotice) {
        self.notices.push(notice.clone());
    }

    fn row_accepted(&mut self) {
        self.stored += 1;
        if let Some((_, flag)) = self.end.as_ref().filter(|(rows, _)| *rows == self.stored) {
            flag.store(true, Ordering::Release);
        }
    }

    fn row_skipped_or_rejected(&mut self, row: &RefusedRow) {
        self.refused.push(row.clone());
    }
}

fn recorded(file: &File, options: RecordOptions, input: &'static str) -> (RecordingResult, Notes) {
    let mut notes = Notes::default();
    let recorder = Recorder::new(file, "log", options, &mut notes).unwrap();
    (recorder.record(input.as_bytes(), &Arc::default()), notes)
}

fn samples(file: &File) -> Vec<(i64, f64)> {
    let rows = file.dataset("log").unwrap().read::<Sample>().unwrap();
    rows.into_iter().map(|Sample { t, volts }| (t, volts)).collect()
}

#[test]
fn somebody_elses_recorder_is_followed_while_it_records() {
    let folder = tempfile::tempdir().unwrap();
    let (summary, seen) = thermometer::record(&folder.path().join("room.h5"), 20).unwrap();
    assert_eq!((summary.accepted_rows, summary.dataset_row_growth, summary.skipped_or_rejected_rows), (20, 20, 1));
    assert_eq!((seen.len(), seen[0].celsius, seen[19].seconds), (20, 20.0, 1.9));
}

#[test]
fn rows_are_appended_to_any_store_by_the_names_of_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for location in [path("run.h5"), format!("log:{}", path("joined.h5"))] {
        let location = Location::from(location);
        let file = File::options().create_new().open(&location).unwrap();
        let first = RecordOptions::default().record(&file, "log", &b"t,volts\n1,0.5\n2,1.5\n"[..]).unwrap();
        let expected = RecordSummary {
            accepted_rows: 2,
            flushed_rows: 2,
            dataset_row_growth: 2,
            skipped_or_rejected_rows: 0,
            no_rows_outcome: None,
        };
        assert_eq!(first, expected);
        let options = RecordOptions { format: InputFormat::Json, ..RecordOptions::default() };
        let second = options.record(&file, "log", &b"{\"volts\": 2.5, \"t\": 3}"[..]).unwrap();
        assert_eq!((second.accepted_rows, second.dataset_row_growth), (1, 1));
        file.close().unwrap();
        let file = File::options().read().open(&location).unwrap();
        assert_eq!(samples(&file), [(1, 0.5), (2, 1.5), (3, 2.5)], "{location}");
    }
}

#[test]
fn what_cannot_be_stored_is_told_by_its_row_and_column() {
    const INPUT: &str = "t,volts\n1,0.5\nx,1\n2\n3,1.5\n";
    let columns = vec![RecordColumn::single("t", ColumnKind::I64), RecordColumn::single("volts", ColumnKind::F64)];
    let texts = ["row 2: column \"t\": \"x\" is not a value of type i64", "row 3: 1 field instead of 2"];
    let folder = tempfile::tempdir().unwrap();
    let rejected = folder.path().join("rejected.csv");
    for on_error in [OnError::Skip, OnError::RejectTo(rejected.clone())] {
        let file = File::in_memory();
        let options = RecordOptions { given_column_types: columns.clone(), on_error, ..RecordOptions::default() };
        let (RecordingResult { summary, outcome: ended }, notes) = recorded(&file, options, INPUT);
        ended.unwrap();
        assert_eq!((summary.accepted_rows, summary.skipped_or_rejected_rows, notes.stored), (2, 2, 2));
        assert_eq!(notes.refused.iter().map(ToString::to_string).collect::<Vec<_>>(), texts);
        assert_eq!(samples(&file), [(1, 0.5), (3, 1.5)]);
    }
    assert_eq!(fs::read_to_string(rejected).unwrap(), "t,volts\nx,1\n2\n");

    let file = File::in_memory();
    let options = RecordOptions { given_column_types: columns, ..RecordOptions::default() };
    let (RecordingResult { summary, outcome: ended }, notes) = recorded(&file, options, INPUT);
    assert!(matches!(&ended, Err(Error::Row(refused)) if refused.row_number == 2), "{ended:?}");
    assert_eq!((summary.accepted_rows, summary.skipped_or_rejected_rows, notes.refused.len()), (1, 0, 0));
    assert_eq!(samples(&file), [(1, 0.5)]);
}

#[test]
fn rows_are_not_rejected_to_an_hdf5_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = File::create(path("run.h5")).unwrap();
    File::create(path("other.h5")).unwrap().close().unwrap();
    fs::write(path("damaged.h5"), &fs::read(path("other.h5")).unwrap()[..20]).unwrap();
    fs::write(path("empty.csv"), "").unwrap();
    fs::write(path("rows.csv"), "t,volts\n").unwrap();
    let mut nobody = ();
    let mut checked = |path: PathBuf| {
        let options = RecordOptions { on_error: OnError::RejectTo(path), ..RecordOptions::default() };
        Recorder::new(&file, "log", options, &mut nobody).map(drop)
    };
    for name in ["run.h5", "other.h5", "damaged.h5"] {
        let refused = checked(path(name));
        assert!(
            matches!(&refused, Err(Error::RejectFileIsHdf5 { path }) if path.ends_with(name)),
            "{name}: {refused:?}"
        );
    }
    for name in ["", "nowhere/rows.csv"] {
        assert!(matches!(checked(path(name)), Err(Error::RejectFile { .. })), "{name}");
    }
    for name in ["empty.csv", "rows.csv", "new.csv"] {
        checked(path(name)).unwrap();
    }
    assert!(!path("new.csv").exists());
}

#[test]
fn what_is_decided_is_told() {
    let file = File::in_memory();
    let (_, notes) = recorded(&file, RecordOptions::default(), "# a scope\nt,volts\ns,mV\n1,0.5\n2,1.5\n");
    let units = vec!["t.units".to_owned(), "volts.units".to_owned()];
    let preamble = RecordNotice::Preamble { lines: 1, attribute: Some("preamble") };
    assert_eq!(notes.notices, [preamble, RecordNotice::UnitsRow { attributes: units, left_out: Vec::new() }]);

    let layout = RecordLayout { deflate: Some(1), ..RecordLayout::default() };
    let (_, notes) = recorded(&file, RecordOptions { layout, ..RecordOptions::default() }, "3,2.5\n4,3.5\n");
    let names = vec!["t".to_owned(), "volts".to_owned()];
    assert_eq!(
        notes.notices,
        [RecordNotice::ColumnsByPosition { names }, RecordNotice::IgnoredLayoutSettings(vec![LayoutSetting::Deflate])]
    );
    assert_eq!(samples(&file).last(), Some(&(4, 3.5)));

    let (RecordingResult { summary, outcome: ended }, _) = recorded(&file, RecordOptions::default(), "1,2,3\n");
    assert!(matches!(ended, Err(Error::Dataset(DatasetProblem::ColumnCountMismatch { found: 2, given: 3, .. }))));
    assert_eq!(summary.no_rows_outcome, Some(NoRowsDatasetOutcome::NotOpened));

    let (_, notes) = recorded(&File::in_memory(), RecordOptions::default(), "a\n1\nn/a\n");
    let text = Some("n/a".to_owned());
    assert_eq!(
        notes.notices,
        [RecordNotice::TextColumnDueToCell { column: "a".to_owned(), are_numbers: true, row: 2, text }]
    );
}

#[test]
fn an_interruption_ends_a_recording_whose_input_goes_on() {
    let (input, mut rows) = io::pipe().unwrap();
    rows.write_all(b"t,volts\n1,0.5\n2,1.5\n").unwrap();
    let interrupted = Arc::new(AtomicBool::new(false));
    let mut notes = Notes { end: Some((2, interrupted.clone())), ..Notes::default() };
    let file = File::in_memory();
    let options = RecordOptions { infer_rows: 2, ..RecordOptions::default() };
    let recorder = Recorder::new(&file, "log", options, &mut notes).unwrap();
    let RecordingResult { summary, outcome: ended } = recorder.record(input, &interrupted);
    ended.unwrap();
    assert_eq!((summary.accepted_rows, summary.flushed_rows), (2, 2));
    assert_eq!(samples(&file), [(1, 0.5), (2, 1.5)]);
    drop(rows);
}

#[test]
fn an_input_that_fails_leaves_what_came_before_it() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the line is dead"))
        }
    }
    let file = File::in_memory();
    let mut nobody = ();
    let recorder = Recorder::new(&file, "log", RecordOptions::default(), &mut nobody).unwrap();
    let RecordingResult { summary, outcome: ended } =
        recorder.record((&b"t,volts\n1,0.5\n"[..]).chain(Broken), &Arc::default());
    assert_eq!((summary.accepted_rows, ended.unwrap_err().to_string()), (1, "the line is dead".to_owned()));
    assert_eq!(samples(&file), [(1, 0.5)]);
}

#[test]
fn frames_and_new_keys_have_datasets() {
    let file = File::in_memory();
    let frames = FrameFormat::new("u8".parse().unwrap(), &[2, 2]).unwrap();
    let options = RecordOptions { frames: Some(frames), on_error: OnError::Skip, ..RecordOptions::default() };
    let summary = options.record(&file, "frames", &[1, 2, 3, 4, 5, 6, 7, 8, 9][..]).unwrap();
    assert_eq!((summary.accepted_rows, summary.skipped_or_rejected_rows), (2, 1));
    assert_eq!(file.dataset("frames").unwrap().shape().unwrap(), [2, 2, 2]);
    assert!(matches!(FrameFormat::new(ColumnKind::F64, &[1 << 30]), Err(Error::FrameTooLarge { .. })));

    let options = RecordOptions { new_keys: NewKeyPolicy::DatasetPerKey, ..RecordOptions::default() };
    options
        .record(&file, "log", &b"{\"t\": 1, \"volts\": 0.5}\n{\"t\": 2, \"volts\": 1.5, \"note\": \"x\"}\n"[..])
        .unwrap();
    assert_eq!(samples(&file), [(1, 0.5), (2, 1.5)]);
    assert_eq!(file.dataset("log.note").unwrap().read_values(..).unwrap()[0].to_string(), "{row: 1, value: \"x\"}");
}

#[test]
fn a_dataset_that_was_made_for_nothing_is_removed() {
    let file = File::in_memory();
    let columns = vec!["t=i64".parse().unwrap()];
    let options = RecordOptions { given_column_types: columns, on_error: OnError::Skip, ..RecordOptions::default() };
    let (RecordingResult { summary, .. }, _) = recorded(&file, options, "t\nx\n");
    assert_eq!((summary.no_rows_outcome, summary.skipped_or_rejected_rows), (Some(NoRowsDatasetOutcome::Removed), 1));
    assert!(file.root().names().unwrap().is_empty());
}
