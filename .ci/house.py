#!/usr/bin/env python3
"""The rules of the house that no lint of rustc knows: file and function length, where unsafe code may stand,
import cycles between the files of a crate, type names that stand for two things, and recipes that pass over
CARGO_TARGET_DIR.

What breaks a rule today is listed in house-exceptions.txt, below comments that give the reason. A new breach fails, and
so do an exception without a reason and one that is no longer needed: the list can only shrink. An import cycle is known
if its files are among those of a listed one. `house.py --write` takes today's breaches for the list, and keeps the
reasons.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXCEPTIONS = Path(__file__).with_name("house-exceptions.txt")
CRATES = ["model", "format", "filters", "cache", "indexes", "swmr", "native", "stores/*", ".", "derive", "checker",
          "serve", "verify/prove", "verify/prove/libhdf5", "verify/lab", "tools/cli", "tools/archive", "tools/compare", "tools/output",
          "tools/recorder", "tools/text"]
# Crates that users depend on: a type name means one thing in all of them.
LIBRARIES = {"model", "format", "filters", "cache", "indexes", "swmr", "native", ".", "tools/archive", "tools/compare",
             "tools/output", "tools/recorder", "tools/text"}
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
MAX_UNSAFE_FILES = 2
# Names that every crate has by convention.
SHARED_NAMES = {"Error", "Result"}

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/                         # comments
      | b?r(?P<hashes>\#*)".*?"(?P=hashes)           # raw strings
      | [bc]?"(?:\\.|[^"\\])*"                       # strings
      | b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^\\'])'         # characters
      | '[A-Za-z_]\w*                                # lifetimes
    """,
    re.S | re.X,
)


def without_text(source: str) -> str:
    """The source with comments and literals blanked out, line by line."""
    return TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), source)


def blocks(code: str, opening: int) -> int:
    """The offset behind the brace that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(code)):
        if code[at] == "{":
            depth += 1
        elif code[at] == "}":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(code)


def without_tests(code: str) -> str:
    """The code with modules and functions for tests blanked out."""
    for match in list(re.finditer(r"#\[cfg\((?:test|all\(test[^\n]*\))\)\]\s*(?:#\[[^\]\n]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{", code)):
        end = blocks(code, match.end() - 1)
        code = code[: match.start()] + re.sub(r"[^\n]", " ", code[match.start() : end]) + code[end:]
    return code


def is_test(path: Path) -> bool:
    return "tests" in path.parts or path.stem == "tests" or path.stem.endswith("_tests")


class SourceFile:
    def __init__(self, crate: str, folder: Path, path: Path):
        self.crate, self.path = crate, path
        self.name = path.relative_to(ROOT).as_posix()
        self.text = path.read_text()
        self.code = without_tests(without_text(self.text))
        parts = list(path.relative_to(folder).with_suffix("").parts)
        if parts[-1] in ("mod", "lib", "main"):
            parts.pop()
        self.module = tuple(parts)
        self.is_test = is_test(path.relative_to(folder))


def sources():
    seen = set()
    for pattern in CRATES:
        for crate in [ROOT] if pattern == "." else sorted(ROOT.glob(pattern)):
            folder = crate / "src"
            for path in sorted(folder.rglob("*.rs")):
                if path not in seen:
                    seen.add(path)
                    yield SourceFile(crate.relative_to(ROOT).as_posix(), folder, path)


def line_of(code: str, offset: int) -> int:
    return code.count("\n", 0, offset) + 1


def target_folders():
    """Where a recipe names the folder of cargo's products itself, though CARGO_TARGET_DIR may be another one."""
    for path in [ROOT / "Makefile", *sorted((ROOT / ".ci").iterdir())]:
        if path.suffix in (".py", ".txt") or not path.is_file():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            command = "" if line.startswith("#") else line.split("## ")[0]
            if re.search(r"(?<![\w)}$./-])target/", command):
                yield f"target folder: {path.relative_to(ROOT).as_posix()} {command.strip()}", f"line {number}"


def long_files():
    skipped = {"target", ".venv", ".deps", ".git"}
    for path in sorted(ROOT.rglob("*.rs")):
        relative = path.relative_to(ROOT)
        if skipped.isdisjoint(relative.parts):
            lines = path.read_text().count("\n")
            if lines > MAX_FILE_LINES:
                yield f"long file: {relative.as_posix()}", f"{lines} lines, at most {MAX_FILE_LINES}"


def long_functions(files):
    for file in files:
        if file.is_test:
            continue
        for match in re.finditer(r"\bfn\s+(\w+)", file.code):
            opening = re.compile(r"[{;]").search(signature(file.code, match.end()))
            if opening is None or opening.group() == ";":
                continue
            start = match.end() + opening.start()
            lines = file.code.count("\n", match.start(), blocks(file.code, start)) + 1
            if lines > MAX_FUNCTION_LINES:
                where = f"line {line_of(file.code, match.start())}, {lines} lines, at most {MAX_FUNCTION_LINES}"
                yield f"long function: {file.name} {match.group(1)}", where


def signature(code: str, at: int) -> str:
    """The code from `at` on, with bracketed parts blanked out, so that `[u8; 4]` does not end a signature."""
    depth, out = 0, []
    for char in code[at : at + 4000]:
        if char in "([":
            depth += 1
        out.append(" " if depth else char)
        if char in ")]":
            depth -= 1
        if depth == 0 and char in "{;":
            break
    return "".join(out)


def unsafe_files(files):
    found = [file for file in files if not file.is_test and file.crate in LIBRARIES
             and re.search(r"\bunsafe\s*(\{|fn|impl|extern)", file.code)]
    if len(found) > MAX_UNSAFE_FILES:
        for file in found:
            yield f"unsafe: {file.name}", f"{len(found)} library files have unsafe code, at most {MAX_UNSAFE_FILES}"


def type_names(files):
    defined = defaultdict(list)
    for file in files:
        if file.is_test or file.crate not in LIBRARIES:
            continue
        for match in re.finditer(r"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|union|trait|type)\s+(\w+)", file.code, re.M):
            if not in_impl(file.code, match.start()):
                defined[match.group(1)].append(file.name)
    for name, places in sorted(defined.items()):
        if len(places) > 1 and name not in SHARED_NAMES:
            yield f"type name: {name}", "defined in " + ", ".join(places)


def in_impl(code: str, at: int) -> bool:
    """Whether an indented definition is an associated type: it stands in a block of a trait or an implementation."""
    line = code[code.rfind("\n", 0, at) + 1 :]
    indent = len(line) - len(line.lstrip(" "))
    if indent == 0:
        return False
    before = code[:at].split("\n")
    for text in reversed(before[:-1]):
        if text.strip() and len(text) - len(text.lstrip(" ")) < indent:
            return bool(re.match(r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:impl|trait)\b", text)) or text.strip().startswith((")", "}", "where", "{"))
    return False


USE = re.compile(r"\b(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")


def use_paths(tree: str):
    """The paths of a use tree, each as a list of names."""
    tree = re.sub(r"\s+", " ", tree.strip())
    brace = tree.find("{")
    if brace < 0:
        yield [part.strip() for part in re.sub(r" as \w+$", "", tree).split("::") if part.strip()]
        return
    prefix = [part.strip() for part in tree[:brace].split("::") if part.strip()]
    depth, start = 0, brace + 1
    inner = tree[brace + 1 : tree.rfind("}")] + ","
    start = 0
    for at, char in enumerate(inner):
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
        elif char == "," and depth == 0:
            part = inner[start:at].strip()
            start = at + 1
            if part:
                for path in use_paths(part):
                    yield prefix + path


def absolute(file: SourceFile, path: list[str], modules=()):
    """The path from the root of the crate, or None if it leads out of the crate. It may begin with a module below the file."""
    module = list(file.module)
    if (*file.module, path[0]) in modules:
        return module + path
    if path[0] == "crate":
        return path[1:]
    if path[0] == "self":
        return module + path[1:]
    if path[0] == "super":
        while path and path[0] == "super":
            module, path = module[:-1], path[1:]
        return module + path
    return None


def reexports(file: SourceFile):
    """What a module hands on from others of its crate: name -> absolute path."""
    handed = {}
    for match in re.finditer(r"\b(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", file.code):
        for path in use_paths(match.group(1)):
            full = absolute(file, path)
            if full is None:
                full = list(file.module) + path
            handed[path[-1]] = full
    return handed


def import_edges(files):
    """For each crate, which file takes a name that another file defines (names handed on are followed)."""
    by_crate = defaultdict(dict)
    for file in files:
        if not file.is_test:
            by_crate[file.crate][file.module] = file
    for crate, modules in by_crate.items():
        handed = {module: reexports(file) for module, file in modules.items()}

        def resolve(full, steps=0):
            """The module that defines what a path names."""
            for length in range(len(full), -1, -1):
                module = tuple(full[:length])
                if module in modules:
                    rest = full[length:]
                    if rest and rest[0] in handed[module] and steps < 8:
                        target = handed[module][rest[0]] + rest[1:]
                        if target != full:
                            found = resolve(target, steps + 1)
                            if found is not None:
                                return found
                    return module, (rest[0] if rest else "*")
            return None

        edges = defaultdict(lambda: defaultdict(set))
        for module, file in modules.items():
            code = file.code
            rest = USE.sub("", code)
            # What a file only hands on, it does not take.
            paths = [path for match in USE.finditer(code) for path in use_paths(match.group(1))
                     if not match.group().startswith("pub") or path[-1] == "*" or re.search(rf"\b{path[-1]}\b", rest)]
            paths += [match.group().split("::") for match in re.finditer(r"\b[a-z_]\w*(?:::\w+)+", rest)]
            for path in paths:
                full = absolute(file, path, modules)
                if full is None:
                    continue
                found = resolve(full)
                if found is None or found[0] == module or found[1] in ("*", "Error", "Result") and found[0] == ():
                    continue
                edges[module][found[0]].add(found[1])
        # What the root hands on ties nothing: it is the crate's face.
        edges.pop((), None)
        yield crate, modules, edges


def import_cycles(files):
    for crate, modules, edges in import_edges(files):
        for cycle in strongly_connected(edges):
            if len(cycle) > 1:
                names = sorted(modules[module].name for module in cycle)
                ties = "; ".join(
                    f"{modules[a].name} takes {', '.join(sorted(edges[a][b]))} of {modules[b].name}"
                    for a in sorted(cycle) for b in sorted(edges[a]) if b in cycle)
                yield f"import cycle: {' '.join(names)}", ties


def strongly_connected(edges):
    """Tarjan's algorithm, without recursion."""
    index, low, on_stack, stack, out = {}, {}, set(), [], []
    nodes = set(edges) | {to for ends in edges.values() for to in ends}
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(sorted(edges.get(root, ()))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, ends = work[-1]
            for end in ends:
                if end not in index:
                    index[end] = low[end] = len(index)
                    stack.append(end)
                    on_stack.add(end)
                    work.append((end, iter(sorted(edges.get(end, ())))))
                    break
                if end in on_stack:
                    low[node] = min(low[node], index[end])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set()
                    while True:
                        top = stack.pop()
                        on_stack.discard(top)
                        component.add(top)
                        if top == node:
                            break
                    out.append(component)
    return out


def main() -> int:
    files = list(sources())
    breaches = {}
    for rule in (target_folders(), long_files(), long_functions(files), unsafe_files(files), type_names(files),
                 import_cycles(files)):
        for breach, detail in rule:
            breaches[breach] = detail
    if "--list" in sys.argv:
        for breach, detail in breaches.items():
            print(f"{breach}\n    {detail}")
        print(f"house: {len(files)} files, {len(breaches)} breaches")
        return 0
    if "--write" in sys.argv:
        write_exceptions(breaches)
        return 0
    known = exceptions()
    new = sorted(breach for breach in breaches if excused_by(breach, known) is None)
    needed = {excused_by(breach, known) for breach in breaches}
    gone = sorted(set(known) - needed)
    unexplained = sorted(breach for breach, reason in known.items() if not reason)
    for breach in new:
        print(f"{breach}\n    {breaches[breach]}")
    for breach in gone:
        print(f"no longer needed in house-exceptions.txt: {breach}")
    for breach in unexplained:
        print(f"without a reason in house-exceptions.txt: {breach}")
    print(f"house: {len(files)} files, {len(new)} new breaches, {len(known) - len(gone)} known ones left")
    return 1 if new or gone or unexplained else 0


def exceptions() -> dict[str, str]:
    """The known breaches, each with its reason: the comment above it."""
    known, reason, is_comment = {}, [], False
    for line in EXCEPTIONS.read_text().splitlines() if EXCEPTIONS.exists() else []:
        if line.startswith("#"):
            reason = (reason if is_comment else []) + [line.lstrip("# ")]
        elif line.strip():
            known[line] = "\n".join(reason)
        is_comment = line.startswith("#")
    return known


def excused_by(breach: str, known: dict[str, str]):
    """The exception that a breach falls under, if there is one."""
    if breach in known:
        return breach
    cycle = "import cycle: "
    if not breach.startswith(cycle):
        return None
    members = set(breach.removeprefix(cycle).split())
    return next((other for other in known if other.startswith(cycle)
                 and members <= set(other.removeprefix(cycle).split())), None)


def write_exceptions(breaches) -> None:
    known = exceptions()
    by_reason = defaultdict(list)
    for breach in sorted(breaches):
        by_reason[known.get(excused_by(breach, known), "")].append(breach)
    parts = []
    for reason, listed in sorted(by_reason.items()):
        comment = "".join(f"# {line}\n" for line in reason.splitlines()) or "#\n"
        parts.append(comment + "".join(f"{breach}\n" for breach in listed))
    EXCEPTIONS.write_text("\n".join(parts))


if __name__ == "__main__":
    sys.exit(main())
