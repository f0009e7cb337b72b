//! Texts and sequences in a log: the bytes that a heap has of them are compared with checksums.

use h5live::{File, Mode, StoreCheckOptions, check};

const DATA: StoreCheckOptions = StoreCheckOptions { verify_data: true, find_lost_domains: false };

/// Texts that stand nowhere else in the file.
fn text(number: usize) -> String {
    format!("text number {number} of a log")
}

fn sequences(number: u32) -> Vec<Vec<u32>> {
    vec![vec![0x5eed_0000 + number, 7], vec![0x5eed_1000 + number]]
}

/// Where bytes begin that are in the file once.
fn place_of(file: &[u8], bytes: &[u8]) -> usize {
    let mut found = file.windows(bytes.len()).enumerate().filter(|(_, window)| *window == bytes);
    let (at, _) = found.next().expect("the bytes are in the file");
    assert!(found.next().is_none(), "the bytes are in the file once");
    at
}

#[test]
fn a_changed_byte_of_a_text_is_an_error_of_reads_and_a_finding_of_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let location = format!("log:{}", path.display());
    let file = File::create(&*location).unwrap();
    let texts = file.new_dataset::<String>().unlimited_rows(&[]).chunk_shape(&[8]).create("texts").unwrap();
    texts.append(&(0..9).map(text).collect::<Vec<_>>()).unwrap();
    let nested = file.new_dataset::<Vec<Vec<u32>>>().unlimited_rows(&[]).chunk_shape(&[8]).create("nested").unwrap();
    nested.append(&[sequences(0), sequences(1)]).unwrap();
    // Other programs read this, so it has no checksum of ours.
    file.root().set_attribute("nested", &sequences(2)).unwrap();
    file.close().unwrap();
    assert!(check(&*location, DATA).unwrap().has_no_findings());
    let sound = std::fs::read(&path).unwrap();

    let in_text = place_of(&sound, text(4).as_bytes());
    let in_sequence = place_of(&sound, &(0x5eed_0001u32).to_le_bytes());
    let places = (in_text..in_text + text(4).len()).map(|at| (at, "texts")).chain([(in_sequence, "nested")]);
    for (at, object) in places {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let report = check(&*location, DATA).unwrap();
        assert!(
            report.findings.iter().any(|found| found.path.as_deref() == Some(&*format!("/{object}"))),
            "{report:?}"
        );
        let file = File::options().mode(Mode::Read).open(&*location).unwrap();
        let read = match object {
            "texts" => file.dataset(object).unwrap().read::<String>().map(drop),
            _ => file.dataset(object).unwrap().read::<Vec<Vec<u32>>>().map(drop),
        };
        let error = read.unwrap_err().to_string();
        assert!(error.contains("do not fit their checksum") && error.contains(object), "{error}");
    }

    std::fs::write(&path, &sound).unwrap();
    let file = File::open(&*location).unwrap();
    assert_eq!(file.dataset("texts").unwrap().read::<String>().unwrap(), (0..9).map(text).collect::<Vec<_>>());
    // As an ordinary HDF5 file.
    let native = File::open(format!("native:{}", path.display())).unwrap();
    assert_eq!(native.root().attribute("nested").unwrap().read::<Vec<Vec<u32>>>().unwrap(), [sequences(2)]);
}
