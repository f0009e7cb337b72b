//! The recipes of `docs/guide` that are for a shell: each block of commands is run, and prints what the next block says.
#![cfg(unix)]

use crate::common;

use std::path::Path;
use std::process::Command;

/// The blocks of a recipe: commands, and what they print.
fn blocks(recipe: &str) -> Vec<(String, Option<String>)> {
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    let mut lines = recipe.lines();
    while let Some(line) = lines.next() {
        let kind = match line {
            "```sh" | "```text" => line,
            _ => continue,
        };
        let text: String = lines.by_ref().take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect();
        match (kind, found.last_mut()) {
            ("```text", Some((_, printed @ None))) => *printed = Some(text),
            ("```text", _) => panic!("it follows no commands: {text}"),
            _ => found.push((text, None)),
        }
    }
    found
}

/// Runs a recipe in a folder of its own, in which `python` has h5py if it is there.
fn run(name: &str, recipe: &str, python: Option<&Path>) {
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_h5live"), programs.join("h5live")).unwrap();
    if let Some(python) = python {
        // A link would hide the environment of the interpreter.
        let starter = format!("#!/bin/sh\nexec '{}' \"$@\"\n", python.display());
        std::fs::write(programs.join("python"), starter).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(programs.join("python"), mode).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let blocks = blocks(recipe);
    assert!(!blocks.is_empty(), "{name} has no commands");
    for (commands, printed) in blocks {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &commands]).current_dir(folder.path()).env("PATH", &path);
        let output = shell.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {commands}{errors}");
        if let Some(printed) = printed {
            assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{name}: {commands}{errors}");
        }
    }
}

macro_rules! recipe {
    ($test:ident, $file:literal) => {
        #[test]
        fn $test() {
            run($file, include_str!(concat!("../../../../docs/guide/", $file)), None);
        }
    };
}

recipe!(a_crash_and_who_takes_over, "crash.md");
recipe!(files_for_log_vol, "log-vol.md");
recipe!(logs, "logs.md");
recipe!(sensors_as_csv, "sensor-csv.md");

#[test]
fn while_libhdf5_writes() {
    let Some(python) = common::python() else { return };
    run("libhdf5.md", include_str!("../../../../docs/guide/libhdf5.md"), Some(&python));
}
