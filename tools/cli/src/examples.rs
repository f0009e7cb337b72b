//! The examples at the end of the help of each command.

/// For each command, what one types, and what it does.
const EXAMPLES: [(&str, [(&str, &str); 2]); 24] = [
    (
        "acl",
        [
            ("h5live acl get 'hsds:bucket?domain=/home/me/run'", "who may do what"),
            ("h5live acl set 'hsds:bucket?domain=/home/me/run' you read,update", "what you may do"),
        ],
    ),
    (
        "check",
        [
            ("h5live check run.h5", "whether the structures of a file agree"),
            ("h5live check --data --json run.h5 old.h5", "the data of two files, too; for programs"),
        ],
    ),
    (
        "completions",
        [
            ("h5live completions bash > h5live.bash", "for bash: `source h5live.bash`"),
            ("h5live completions zsh > _h5live", "for zsh: in a folder that `fpath` names"),
        ],
    ),
    (
        "copy",
        [
            ("h5live copy run.h5 small.h5 --filter shuffle --filter deflate:6", "compress everything"),
            ("h5live copy run.h5 part.h5 --select /entry/data /log", "only two objects, and what is below them"),
        ],
    ),
    (
        "demo",
        [
            ("h5live demo", "ten seconds in a temporary file"),
            ("h5live demo live.h5 --seconds 60 --rate 100", "a minute, to look at from another terminal"),
        ],
    ),
    (
        "diff",
        [
            ("h5live diff a.h5 b.h5", "whether two files hold the same"),
            ("h5live diff a.h5 b.h5 --path /entry --relative 1e-6", "one group, with a tolerance"),
        ],
    ),
    (
        "dump",
        [
            ("h5live dump run.h5 log/rows --rows=-10", "the last ten rows"),
            ("h5live dump run.h5 frames --slice 0,::4,-8: --csv", "a part of the first frame, as CSV"),
        ],
    ),
    (
        "guard",
        [
            ("h5live guard -- python acquire.py", "repair what a program leaves behind if it is killed"),
            ("h5live guard --file run.h5 -- ./acquire --fast", "the same for a file that is known"),
        ],
    ),
    (
        "kv",
        [
            ("h5live kv stat kv:run", "how many keys of each kind there are, and how much room they take"),
            ("h5live kv stat --json kv:run", "the same, for programs"),
        ],
    ),
    (
        "ls",
        [
            ("h5live ls run.h5", "all objects"),
            ("h5live ls --long --depth 1 run.h5 /entry", "the members of a group, with their storage"),
        ],
    ),
    (
        "log",
        [
            ("h5live log info run.h5", "how much is in a log, and whether the index has all of it"),
            ("h5live log rebuild run.h5", "make a damaged index anew from the entries"),
        ],
    ),
    (
        "man",
        [
            ("h5live man | man -l -", "read the page of the program"),
            ("h5live man record > h5live-record.1", "keep the page of a command"),
        ],
    ),
    (
        "manifest",
        [
            ("h5live manifest run.h5 > run.manifest", "what is in a file, to compare it later"),
            ("h5live manifest run.h5 | sha256sum", "one hash of everything that is in a file"),
        ],
    ),
    (
        "map",
        [
            ("h5live map put run.h5 ids Alice 125 Bob 216", "two pairs; file and map are made if they are not there"),
            ("h5live map ls run.h5 ids --from B --json", "the pairs from a key on; for programs"),
        ],
    ),
    (
        "mv",
        [
            ("h5live mv run.h5 log/rows log/old", "another name"),
            ("h5live mv run.h5 calibration archive/2026/", "into another group"),
        ],
    ),
    (
        "new",
        [
            ("h5live new empty.h5 description.json", "a file as described"),
            ("h5live dump --json old.h5 | h5live new new.h5", "make a file anew"),
        ],
    ),
    (
        "record",
        [
            ("./sensor | h5live record run.h5 log/rows", "CSV or JSON, whose types are found"),
            ("h5live record --dtype u16 --shape 512,512 run.h5 frames < frames.bin", "frames of pixels"),
        ],
    ),
    (
        "repair",
        [
            ("h5live repair run.h5", "bring a file in order whose writer was killed"),
            ("h5live repair --reclaim run.h5", "also delete the objects to which no path leads"),
        ],
    ),
    (
        "rm",
        [
            ("h5live rm run.h5 log/old", "remove a dataset or a group"),
            ("h5live rm run.h5 frames@units", "remove an attribute"),
        ],
    ),
    (
        "serve",
        [
            ("h5live serve runs/ --open", "the files of a folder, in the browser"),
            ("h5live serve run.h5 kv:other --bind 127.0.0.1:0", "a file and another store, at any free port"),
        ],
    ),
    (
        "set",
        [
            ("h5live set run.h5 frames@units counts", "a text"),
            ("h5live set run.h5 frames@gain 1.5 --type f32le", "a number of a given type"),
        ],
    ),
    (
        "stores",
        [
            ("h5live stores", "where files may lie, with which options"),
            ("h5live stores --json", "the same for programs"),
        ],
    ),
    (
        "tar",
        [
            ("h5live tar import images.tar.gz images.h5", "a training set, to be read at random"),
            ("h5live tar export images.h5 images.tar", "the archive again, byte for byte"),
        ],
    ),
    (
        "watch",
        [
            ("h5live watch run.h5 log/rows", "the newest rows, as they come"),
            ("h5live watch --wait 60 run.h5 log/rows --json", "a file that is yet to come; for programs"),
        ],
    ),
];

/// The examples of the commands that this program was built with.
fn known() -> impl Iterator<Item = &'static (&'static str, [(&'static str, &'static str); 2])> {
    EXAMPLES.iter().filter(|(name, _)| match *name {
        "acl" => cfg!(feature = "hsds"),
        "kv" => cfg!(feature = "kv"),
        "serve" => cfg!(feature = "serve"),
        _ => true,
    })
}

/// The program with examples at the end of the help of each command.
pub fn add_to_help(program: clap::Command) -> clap::Command {
    known().fold(program, |program, (name, examples)| {
        let lines = examples.iter().map(|(line, what)| format!("  {line}\n      {what}"));
        let help = format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n"));
        program.mut_subcommand(name, |command| command.after_help(help))
    })
}

/// The words behind the prompt of each example, for the tests: without quotes, pipes and redirections.
#[cfg(test)]
pub fn command_lines() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let words = |line: &'static str| {
        let own = line.split('|').map(str::trim).rfind(|part| part.starts_with("h5live")).unwrap();
        own.split([' ']).take_while(|word| !matches!(*word, "<" | ">")).collect()
    };
    known().flat_map(move |(name, examples)| examples.iter().map(move |(line, _)| (*name, words(line))))
}
