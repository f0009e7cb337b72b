//! The command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use h5live_output::replace_temp_names;

use crate::error::{CommandOutcome, Result, error_with_causes};
use crate::output::eprint_prefixed;
use crate::{
    check, completions, copy, demo, diff, dump, examples, guard, list_stores, log, ls, man, manifest, map,
    missing_sources, mv, new, open, record, repair, rm, set, tar, wait, watch,
};

/// HDF5 files that stay readable while they are being written.
#[derive(Debug, Parser)]
#[command(name = "h5live", version, about, max_term_width = 100)]
struct Args {
    #[command(flatten)]
    open: open::OpenArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "hsds")]
    Acl(crate::acl::AclCommand),
    Check(check::CheckCommand),
    Completions(completions::CompletionsCommand),
    Copy(copy::CopyCommand),
    Diff(diff::DiffCommand),
    Dump(dump::DumpCommand),
    Guard(guard::GuardCommand),
    #[cfg(feature = "kv")]
    Kv(crate::kv::KvCommand),
    Log(log::LogCommand),
    Ls(ls::LsCommand),
    Man(man::ManCommand),
    Manifest(manifest::ManifestCommand),
    Map(map::MapCommand),
    Mv(mv::MvCommand),
    New(new::NewCommand),
    Record(record::RecordCommand),
    Repair(repair::RepairCommand),
    Rm(rm::RmCommand),
    #[cfg(feature = "serve")]
    Serve(crate::serve::ServeCommand),
    Set(set::SetCommand),
    Stores(list_stores::StoresCommand),
    Tar(tar::TarCommand),
    Watch(watch::WatchCommand),
    Demo(demo::DemoCommand),
}

impl Command {
    fn run(self) -> Result<CommandOutcome> {
        match self {
            #[cfg(feature = "hsds")]
            Command::Acl(command) => command.run(),
            Command::Check(command) => command.run(),
            Command::Completions(command) => command.run(program()),
            Command::Copy(command) => command.run(),
            Command::Diff(command) => command.run(),
            Command::Dump(command) => command.run(),
            Command::Guard(command) => command.run(),
            #[cfg(feature = "kv")]
            Command::Kv(command) => command.run(),
            Command::Log(command) => command.run(),
            Command::Ls(command) => command.run(),
            Command::Man(command) => command.run(program()),
            Command::Manifest(command) => command.run(),
            Command::Map(command) => command.run(),
            Command::Mv(command) => command.run(),
            Command::New(command) => command.run(),
            Command::Record(command) => command.run(),
            Command::Repair(command) => command.run(),
            Command::Rm(command) => command.run(),
            #[cfg(feature = "serve")]
            Command::Serve(command) => command.run(),
            Command::Set(command) => command.run(),
            Command::Stores(command) => command.run(),
            Command::Tar(command) => command.run(),
            Command::Watch(command) => command.run(),
            Command::Demo(command) => command.run(),
        }
    }
}

/// The program as the command line has it, with examples in the help of its commands.
fn program() -> clap::Command {
    examples::add_to_help(Args::command())
}

/// Runs what the command line says. Exit code 0: all is well; 1: violations or differences; 2: an error.
pub fn run() -> ExitCode {
    let matches = program().get_matches_from(joined_words(std::env::args_os()));
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    open::set_args_once(args.open);
    heed_file_size_limit();
    report_exit_code(run_command(args.command))
}

/// Runs a command, and tells of sources of virtual datasets that are not there.
fn run_command(command: Command) -> Result<CommandOutcome> {
    missing_sources::discard_recorded_missing_sources();
    let done = command.run();
    let missing = missing_sources::eprint_recorded_missing_sources();
    done.map(|outcome| outcome.worse(missing))
}

/// A write beyond the limit of `ulimit -f` is an error, which names the file, and not the end of the process.
fn heed_file_size_limit() {
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// The exit code of what a command came to. An error is told.
pub fn report_exit_code(result: Result<CommandOutcome>) -> ExitCode {
    match result {
        Ok(CommandOutcome::Clean) => ExitCode::SUCCESS,
        Ok(CommandOutcome::Findings) => ExitCode::from(1),
        Ok(CommandOutcome::Status(code)) => ExitCode::from(code),
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            eprint_prefixed(replace_temp_names(&error_with_causes(&error)));
            ExitCode::from(2)
        }
    }
}

/// The words of a command line, where words that belong together are one.
fn joined_words(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    wait::join_wait_seconds(record::on_error_arg::join_reject_to_words(words))
}

/// Runs a command in this process.
///
/// # Errors
/// What the program would print.
pub fn run_words(words: &[&str]) -> std::result::Result<CommandOutcome, String> {
    let words = std::iter::once("h5live").chain(words.iter().copied());
    let args = Args::try_parse_from(words).map_err(|error| error.to_string())?;
    // Of several calls, the first one says it.
    open::set_args_once(args.open);
    run_command(args.command).map_err(|error| error_with_causes(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read")]
    struct Outer(#[source] std::num::ParseIntError);

    #[derive(Debug, thiserror::Error)]
    #[error("file.h5: {0}")]
    struct Shown(#[source] Outer);

    #[test]
    fn causes_are_shown_once() {
        let cause = "x".parse::<u8>().unwrap_err();
        let text = error_with_causes(&Shown(Outer(cause)));
        assert_eq!(text, "file.h5: cannot read: invalid digit found in string");
    }

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        program().debug_assert();
    }

    #[test]
    fn a_wrong_value_of_an_option_is_refused_in_plain_words() {
        let mut refused = 0;
        for command in program().get_subcommands() {
            let takes_value = |arg: &&clap::Arg| arg.get_num_args().is_none_or(|count| count.takes_values());
            for option in command.get_arguments().filter(takes_value).filter_map(|arg| arg.get_long()) {
                let words = ["h5live", command.get_name(), &format!("--{option}=%%")];
                let Err(error) = program().try_get_matches_from(words) else { continue };
                let text = error.to_string();
                refused += usize::from(error.kind() == clap::error::ErrorKind::ValueValidation);
                for wrong in ["invalid digit", "invalid float", "invalid integer", "would be zero", "provided string"] {
                    assert!(!text.contains(wrong), "{text}");
                }
            }
        }
        assert!(refused > 30, "{refused}");
    }

    #[test]
    fn the_help_of_each_command_has_two_examples_that_can_be_typed() {
        for (name, words) in examples::command_lines() {
            assert_eq!(words[..2], ["h5live", name]);
            let matches = program().try_get_matches_from(joined_words(words.iter().map(OsString::from)));
            let parsed = matches.and_then(|matches| Args::from_arg_matches(&matches));
            assert!(parsed.is_ok(), "{words:?}: {}", parsed.unwrap_err());
        }
        for command in program().get_subcommands().filter(|command| !command.is_hide_set()) {
            let count = examples::command_lines().filter(|(name, _)| *name == command.get_name()).count();
            assert_eq!(count, 2, "{}", command.get_name());
        }
    }

    /// Markdown files in a folder, and in those in it.
    fn documents(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                documents(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }

    /// The commands of a text, with the long options that it gives them.
    fn documented_options(text: &str) -> Vec<(String, String)> {
        let known: Vec<_> = program().get_subcommands().map(|command| command.get_name().to_owned()).collect();
        let pieces = text.split(['`', '|', '<', '>', '#', ';', '&', '(', ')', '\n']);
        let options = pieces.flat_map(|piece| {
            // Behind a wide gap, a list says in words what a command does.
            let command_line = piece.trim_start().split("  ").next().unwrap_or_default();
            let words = command_line.trim_start_matches("h5live ").split_whitespace();
            let mut words = words.take_while(|word| *word != "--");
            let command = words.next().filter(|word| known.iter().any(|name| name == word)).unwrap_or_default();
            let name =
                |word: &str| word.strip_prefix("--").map(|word| word.split('=').next().unwrap_or(word).to_owned());
            words.filter_map(name).map(|option| (command.to_owned(), option)).collect::<Vec<_>>()
        });
        options.filter(|(command, _)| !command.is_empty()).collect()
    }

    #[test]
    fn documents_give_commands_options_that_they_have() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files = vec![root.join("README.md")];
        documents(&root.join("docs"), &mut files);
        let program = program();
        let mut checked = 0;
        for file in files {
            for (command, option) in documented_options(&std::fs::read_to_string(&file).unwrap()) {
                let of = program.find_subcommand(&command).unwrap();
                let names =
                    |arg: &clap::Arg| arg.get_long_and_visible_aliases().unwrap_or_default().contains(&&*option);
                let of_subcommands = of.get_subcommands().flat_map(clap::Command::get_arguments);
                let arguments = of.get_arguments().chain(of_subcommands).chain(program.get_arguments());
                let is_known = arguments.into_iter().any(names) || option == "help";
                assert!(is_known, "{}: {command} --{option}", file.display());
                checked += 1;
            }
        }
        assert!(checked > 10, "{checked}");
        let options = documented_options("`h5live copy --chunks 1 A B | h5live ls --long` and `record --types=a:u8`");
        let pairs = [("copy", "chunks"), ("ls", "long"), ("record", "types")];
        assert_eq!(options, pairs.map(|(command, option)| (command.to_owned(), option.to_owned())));
    }
}
