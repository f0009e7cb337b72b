//! Agreement with libhdf5 and its plugins on chunks that they stored.

mod fixture;

use std::path::Path;
use std::process::Command;

use fixture::{Case, cases};
use h5live_filters::{Pipeline, Registry};

/// Runs a check on every case and names those that fail it.
fn check(what: &str, cases: &[Case], holds: impl Fn(&Case, &Pipeline) -> Result<(), String>) {
    let registry = Registry::default();
    let mut failed = 0;
    for case in cases {
        let pipeline = Pipeline::new(&case.filters, &registry).unwrap();
        if let Err(why) = holds(case, &pipeline) {
            println!("{} {}: {why}", case.file, case.name);
            failed += 1;
        }
    }
    assert_eq!(failed, 0, "of {} cases {what}", cases.len());
}

fn encodable() -> Vec<Case> {
    let mut cases = cases();
    cases.retain(|case| !case.read_only);
    cases
}

fn same(found: &[u8], expected: &[u8]) -> Result<(), String> {
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        _ if found == expected => Ok(()),
        at => Err(format!("{} bytes, expected {}, first difference at {at:?}", found.len(), expected.len())),
    }
}

#[test]
fn decodes_what_libhdf5_stored() {
    check("decode", &cases(), |case, pipeline| {
        let decoded = pipeline.decode(case.mask, &case.stored, case.decoded.len()).map_err(|e| e.to_string())?;
        same(&decoded, &case.decoded)
    });
}

#[test]
fn decodes_what_it_stored() {
    check("survive a round trip", &encodable(), |case, pipeline| {
        let (stored, mask) = pipeline.encode(&case.chunk).map_err(|e| e.to_string())?;
        let decoded = pipeline.decode(mask, &stored, case.decoded.len()).map_err(|e| e.to_string())?;
        same(&decoded, &case.decoded)
    });
}

#[test]
fn stores_the_bytes_that_libhdf5_stores() {
    let mut exact = cases();
    exact.retain(|case| case.exact);
    check("are stored alike", &exact, |case, pipeline| {
        let (stored, mask) = pipeline.encode(&case.chunk).map_err(|e| e.to_string())?;
        if mask != case.mask {
            return Err(format!("mask {mask}, expected {}", case.mask));
        }
        same(&stored, &case.stored)
    });
}

#[test]
fn completes_parameters_as_libhdf5_does() {
    let registry = Registry::default();
    check("have the right parameters", &encodable(), |case, _| {
        for (asked, expected) in case.asked.iter().zip(&case.filters) {
            let complete = registry.complete_spec(asked, &case.target()).map_err(|e| e.to_string())?;
            if complete.params != expected.params {
                return Err(format!("filter {}: {:?}, expected {:?}", asked.id, complete.params, expected.params));
            }
        }
        Ok(())
    });
}

#[test]
fn survives_damage() {
    check("survive damage", &cases(), |case, pipeline| {
        let mut chunk = vec![0; case.decoded.len()];
        if case.stored.len() > 150 {
            return Ok(());
        }
        for end in 0..case.stored.len() {
            let _ = pipeline.decode_into(case.mask, &case.stored[..end], &mut chunk);
        }
        for bit in 0..case.stored.len() * 8 {
            let mut damaged = case.stored.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let _ = pipeline.decode_into(case.mask, &damaged, &mut chunk);
        }
        Ok(())
    });
}

/// Needs a Python with h5py and hdf5plugin, which the variable `PYTHON` may name.
#[test]
#[ignore = "needs h5py and hdf5plugin"]
fn libhdf5_reads_what_it_stored() {
    let registry = Registry::default();
    let mut lines = String::new();
    for case in encodable() {
        let (stored, mask) = Pipeline::new(&case.filters, &registry).unwrap().encode(&case.chunk).unwrap();
        let hex: String = stored.iter().map(|byte| format!("{byte:02x}")).collect();
        lines += &format!("{}\t{}\t{mask}\t{hex}\n", case.file, case.name);
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("encoded.txt");
    std::fs::write(&file, lines).unwrap();
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/make_fixtures.py");
    let status = Command::new(python).arg(script).arg("--check").arg(file).status().unwrap();
    assert!(status.success());
}
