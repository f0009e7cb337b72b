"""Which objects of a file libhdf5 refuses to open. Each file is opened in a process of its own, for libhdf5 may die."""

import collections
import json
import os
import resource
import signal
import sys
import traceback

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5l, h5o, h5p

SECONDS = 20
MEMORY = 2 << 30
OBJECTS = 500
PARTS = 500


class Refusal(collections.namedtuple("Refusal", "path what error")):
    """An object, the step that failed, and the error."""

    def __str__(self):
        return f"{self.path}: {self.what}: {self.error}"


class Seen:
    """What libhdf5 said of a file."""

    def __init__(self):
        self.refused = []
        self.died = None
        self.names = {}
        self.last = ("", "open")

    def names_of(self, path):
        """All paths of the object at a path. A file is not opened without its root group."""
        return self.names.get(path, [path]) if path else ["/"]

    def take(self, line):
        word, *rest = line
        if word == "try":
            self.last = tuple(rest)
        elif word == "refused":
            self.refused.append(Refusal(*rest))
        elif word == "same":
            names = self.names.setdefault(rest[0], [rest[0]])
            names.append(rest[1])
            self.names[rest[1]] = names


class Walk:
    """A walk over the objects of a file, which tells each step before it is taken."""

    def __init__(self, tell):
        self.tell = tell
        self.known = {}

    def step(self, path, what, act):
        """Does something; tells if libhdf5 refuses."""
        self.tell("try", path, what)
        try:
            return act()
        except (MemoryError, RecursionError, NotImplementedError):
            return None
        except Exception as error:
            self.tell("refused", path, what, f"{type(error).__name__}: {error}"[:300])
            return None

    def file(self, path):
        access = h5p.create(h5p.FILE_ACCESS)
        access.set_file_locking(False, True)
        file = self.step("", "open", lambda: h5f.open(os.fsencode(path), h5f.ACC_RDONLY, access))
        if file is None:
            return
        root = self.step("/", "open", lambda: h5g.open(file, b"/"))
        if root is not None:
            self.know_root(root)
        waiting = [("/", root)] if root is not None else []
        while waiting and len(self.known) < OBJECTS:
            path, item = waiting.pop()
            self.attributes(path, item)
            if isinstance(item, h5g.GroupID):
                waiting += self.children(path, item)
            elif isinstance(item, h5d.DatasetID):
                self.dataset(path, item)

    def know_root(self, root):
        """Notes the address of the root group, to which links may lead."""
        try:
            self.known[h5o.get_info(root).addr] = "/"
        except RuntimeError:
            pass  # It asks for much more than the address.

    def attributes(self, path, item):
        count = self.step(path, "count attributes", lambda: h5a.get_num_attrs(item))
        for index in range(min(count or 0, PARTS)):
            attribute = self.step(path, f"open attribute {index}", lambda: h5a.open(item, index=index))
            if attribute is not None:
                self.step(path, f"type of attribute {index}", attribute.get_type)
                self.step(path, f"shape of attribute {index}", attribute.get_space)

    def dataset(self, path, item):
        self.step(path, "type", item.get_type)
        self.step(path, "shape", item.get_space)
        plist = self.step(path, "creation properties", item.get_create_plist)
        if plist is None:
            return
        self.step(path, "layout", plist.get_layout)
        for index in range(min(self.step(path, "filters", plist.get_nfilters) or 0, 32)):
            self.step(path, f"filter {index}", lambda: plist.get_filter(index))
        if self.step(path, "fill value", plist.fill_value_defined) == h5d.FILL_VALUE_USER_DEFINED:
            self.fill_value(path, item, plist)

    def fill_value(self, path, item, plist):
        try:
            kind = item.dtype
        except Exception:
            return  # h5py has no such type in memory.
        # h5py cannot ask for arrays.
        if not kind.hasobject and kind.subdtype is None and kind.itemsize <= 1 << 20:
            self.step(path, "read the fill value", lambda: plist.get_fill_value(np.zeros((), kind)))

    def children(self, path, group):
        names = []
        # Not by an index, for old groups have none.
        self.step(path, "list links", lambda: group.links.iterate(lambda name: names.append(name) if len(names) < PARTS else 1))
        found = []
        for name in names:
            below = path.rstrip("/") + "/" + name.decode("utf-8", "replace")
            info = self.step(path, f"link {name!r}", lambda: group.links.get_info(name))
            if info is None or info.type != h5l.TYPE_HARD:
                continue
            # The address of the object. What cannot be opened has several names, too.
            if info.u in self.known:
                self.tell("same", self.known[info.u], below)
                continue
            self.known[info.u] = below
            item = self.step(below, "open", lambda: h5o.open(group, name))
            if item is not None:
                found.append((below, item))
        return found


def child(path, out):
    """Looks at a file, and writes what it does to `out`, a line each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(SECONDS)
    with os.fdopen(out, "w", buffering=1) as lines:
        tell = lambda *line: print(json.dumps(line), file=lines)
        try:
            Walk(tell).file(path)
        except Exception:
            tell("broken", traceback.format_exc())
        tell("end")
        lines.flush()
    # Without closing anything: libhdf5 may die of that, too.
    os._exit(0)


def look(path):
    """What libhdf5 refuses in a file."""
    from_child, to_parent = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os.close(from_child)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        child(path, to_parent)
    os.close(to_parent)
    seen, last = Seen(), None
    with os.fdopen(from_child) as lines:
        for line in lines:
            try:
                last = json.loads(line)
            except ValueError:
                break  # The child died in the middle of it.
            if last[0] == "broken":
                raise RuntimeError(f"{path}: {last[1]}")
            seen.take(last)
    _, status = os.waitpid(process, 0)
    if last != ["end"]:
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit code {status >> 8}"
        seen.died = f"{name} at {seen.last}"
    return seen


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        result = look(argument)
        print(f"{argument}: {len(result.refused)} refused" + (f", {result.died}" if result.died else ""))
        for refusal in result.refused:
            print(f"  {refusal}")
