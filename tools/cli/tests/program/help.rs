//! Completions for shells, manual pages, and the help of commands.

use std::process::{Command, Stdio};

use crate::common::{error, run, text};

#[test]
fn each_shell_has_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = text(&run(&["completions", shell]));
        for word in ["record", "on-error", "infer-rows"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[cfg(unix)]
#[test]
fn bash_takes_its_completions() {
    let script = text(&run(&["completions", "bash"]));
    let complete = "COMP_WORDS=(h5live rec); COMP_CWORD=1; _h5live h5live rec h5live; echo ${COMPREPLY[@]}";
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("{script}\n{complete}")]).stdin(Stdio::null());
    assert_eq!(text(&bash.output().unwrap()), "record\n");
}

#[test]
fn the_program_and_its_commands_have_manual_pages() {
    let page = text(&run(&["man"]));
    assert!(page.contains(".TH h5live 1"), "{page}");
    assert!(page.contains("h5live\\-record(1)"), "{page}");
    let page = text(&run(&["man", "record"]));
    assert!(page.contains(".TH h5live-record 1"), "{page}");
    assert!(page.contains("\\-\\-infer\\-rows"), "{page}");
    assert!(page.contains("./sensor | h5live record run.h5 log/rows"), "{page}");
    assert!(text(&run(&["man", "tar", "import"])).contains("tar\\-import"));
    assert_eq!(error(&run(&["man", "nothing"])), "h5live: no command is called \"nothing\"; `h5live help` lists them");
}

#[test]
fn the_help_of_a_command_ends_with_examples() {
    let help = text(&run(&["ls", "--help"]));
    let (_, examples) = help.split_once("\nExamples:\n").unwrap();
    assert_eq!(examples.lines().filter(|line| line.starts_with("  h5live ls ")).count(), 2, "{examples}");
}
