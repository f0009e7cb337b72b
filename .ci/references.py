#!/usr/bin/env python3
"""Finds references of the documents that lead to nothing: files, folders and links that are not there, and names that no code has.

A reference is a word in backquotes, or in a listing, that looks like a path of this repository, the target of a link, or
`Type::function`. A name that is said to be in a file (`name` in `file`, `name` (`file`), `file` (`name`, `name`)) is
looked for there. A path may begin at the root, at the folder of the document, or where the path named before it in the same line lies;
or be the end of one file's path only.
"""

import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
# What a program makes, or what belongs to somebody else, is no reference.
MADE = ("target/", ".deps/", ".venv/", "verify/fuzz/artifacts", "web/node_modules")
CODE = (".rs", ".py", ".pyi", ".toml", ".js", ".jsx")
PATH = re.compile(r"[\w.@-]+(?:/[\w.@*-]+)+/?|[\w-]+\.(?:rs|py|pyi|md|toml|txt|jsx?)")
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
SYMBOL = re.compile(r"\b([A-Z]\w+)::(\w+)(?:\(\))?$")
QUOTED = re.compile(r"`([^`\n]+)`")
# A line that begins the description of a type, or of what it does.
TYPE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:enum|struct|trait|type|class|macro_rules!|(?:unsafe )?impl\b)(.*)$", re.MULTILINE)
# A name, with what it lies in.
NAME = r"`(?:\w+::)*(\w+)(?:\(\))?`"
NAMES_OF_FILE = re.compile(r"`([\w./-]+\.rs)` \((" + NAME + r"(?:,? (?:and )?" + NAME + r")*)\)")
FILE_OF_NAME = re.compile(NAME + r"(?: in (?:the )?| \()`([\w./-]+\.rs)`")
INSTALLED = re.compile(r"cargo install [^`\n]*--path ([\w./-]+)")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def folders_of(files) -> set[str]:
    return {str(parent) for name in files for parent in PurePosixPath(name).parents}


class Repository:
    def __init__(self):
        self.files = set(tracked())
        self.folders = folders_of(self.files)
        self.tops = {name.split("/")[0] for name in self.files}
        self.words, self.words_of_type = set(), {}
        for name in self.files:
            if name.endswith(CODE):
                text = (ROOT / name).read_text(errors="replace")
                words = set(re.findall(r"\b[A-Za-z_]\w*\b", text))
                self.words |= words
                for type in {type for line in TYPE.findall(text) for type in re.findall(r"\b[A-Z]\w+", line)}:
                    self.words_of_type.setdefault(type, set()).update(words)

    def has(self, path: str) -> bool:
        path = path.rstrip("/")
        if "*" in path:
            return any(PurePosixPath(name).match(path) for name in self.files)
        return path in self.files or path in self.folders

    def only_one_ends_with(self, path: str) -> str | None:
        found = [name for name in self.files if name.endswith("/" + path)]
        return found[0] if len(found) == 1 else None

    def type_has(self, type: str, word: str) -> bool:
        """Whether a word is in a file that says what a type is, or does; of types that are not ours, in any file."""
        return word in self.words_of_type.get(type, self.words) and type in self.words

    def file_has(self, path: str, word: str) -> bool:
        return re.search(rf"\b{word}\b", (ROOT / path).read_text(errors="replace")) is not None


def normal(path: PurePosixPath) -> str:
    parts = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def lines_with_kind(text: str):
    """Each line, and whether it is in a listing of steps (a fence without a language)."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fence = None if fence is not None else line.strip().removeprefix("```")
            continue
        if fence is None or fence == "":
            yield number, line, fence == ""


def led_to(repository: Repository, folder: PurePosixPath, words):
    """Paths among words, and what they lead to, if anything."""
    near = []
    for word in words:
        if not PATH.fullmatch(word) or word.startswith(MADE):
            continue
        places = [PurePosixPath(word), folder / word, *(place / word for place in near)]
        found = next((place for place in map(normal, places) if repository.has(place)), None)
        if found is not None:
            # Files that are named behind it may lie beside it, or in one of the folders above.
            near = [*PurePosixPath(found).parents][:3] if "." in found.rsplit("/", 1)[-1] else [PurePosixPath(found)]
        yield word, found or repository.only_one_ends_with(word)


def wrong_paths(repository: Repository, paths):
    """Those of them that lead to nothing."""
    for word, found in paths:
        if found is None and (word.split("/")[0] in repository.tops or word.endswith(".rs")):
            yield word


def wrong_names(repository: Repository, line: str, paths):
    """Names that are not in the file of which a line says so, with the file."""
    found = dict(paths)
    said = [(name, file) for name, file in FILE_OF_NAME.findall(line)]
    for match in NAMES_OF_FILE.finditer(line):
        said += [(name, match[1]) for name in re.findall(NAME, match[2])]
    for name, file in said:
        if found.get(file) and not repository.file_has(found[file], name):
            yield name, found[file]


def wrong_steps(repository: Repository, words, paths):
    """Functions of a step of a listing that are in no file of that step, with the last of these files."""
    files = [found for _, found in paths if found and found.endswith(".rs")]
    for symbol in filter(None, map(SYMBOL.search, words)):
        if files and not any(repository.file_has(file, symbol[2]) for file in files):
            yield symbol[0], files[-1]


def wrong_in(repository: Repository, name: str):
    folder = PurePosixPath(name).parent
    for number, line, is_listing in lines_with_kind((ROOT / name).read_text()):
        words = re.split(r"[\s,;()]+", line) if is_listing else QUOTED.findall(line)
        paths = list(led_to(repository, folder, words))
        for word in wrong_paths(repository, paths):
            yield f"{name}:{number}: there is no {word}"
        wrong = wrong_steps(repository, words, paths) if is_listing else wrong_names(repository, line, paths)
        for word, file in wrong:
            yield f"{name}:{number}: {file} has no {word}"
        for target in () if is_listing else LINK.findall(line):
            if "://" not in target and not repository.has(normal(folder / target)):
                yield f"{name}:{number}: the link to {target} leads to nothing"
        for word in words:
            symbol = SYMBOL.search(word)
            if symbol and not repository.type_has(*symbol.groups()):
                yield f"{name}:{number}: no code has {word}"


def wrong_installs(repository: Repository):
    """Crates that code, a document or the Makefile tells to install, and that are not there."""
    for name in sorted(repository.files):
        if name.endswith((*CODE, ".md", ".sh", ".yml", "Makefile")):
            for path in INSTALLED.findall((ROOT / name).read_text(errors="replace")):
                if not repository.has(f"{path}/Cargo.toml"):
                    yield f"{name}: `cargo install --path {path}` finds no crate"


def main() -> int:
    repository = Repository()
    documents = sorted(name for name in repository.files
                       if name.endswith(".md") and name != "CHANGELOG.md" and not name.startswith("tests/data"))
    wrong = [line for name in documents for line in wrong_in(repository, name)]
    wrong += wrong_installs(repository)
    print("\n".join(wrong) if wrong else f"references: {len(documents)} documents, all lead to something")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
