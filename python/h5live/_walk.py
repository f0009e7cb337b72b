"""Walks over all that is below a group."""

from ._h5live import Group as RawGroup


def _join(path, name):
    return f"{path}/{name}" if path else name


def walk(group, func):
    """Calls `func` for each object below, once, in the order of the names; soft and external links are passed over."""
    from ._groups import wrap

    seen = {group._handle.id}

    def below(handle, path):
        for name in handle.names(False):
            link = handle.link(name)
            if link is None or link[0] != "hard" or link[1] in seen:
                continue
            seen.add(link[1])
            inner = _join(path, name)
            found = handle.open(name)
            result = func(inner, wrap(found))
            if result is None and isinstance(found, RawGroup):
                result = below(found, inner)
            if result is not None:
                return result
        return None

    return below(group._handle, "")


def walk_links(group, func):
    """Calls `func` for each link below, in the order of the names."""
    seen = {group._handle.id}

    def below(handle, path):
        for name in handle.names(False):
            inner = _join(path, name)
            result = func(inner, group.get(inner, getlink=True))
            if result is not None:
                return result
            link = handle.link(name)
            if link is not None and link[0] == "hard" and link[1] not in seen:
                seen.add(link[1])
                found = handle.open(name)
                result = below(found, inner) if isinstance(found, RawGroup) else None
                if result is not None:
                    return result
        return None

    return below(group._handle, "")


def path_of(file, id):
    """A path to an object of a file, by its identity; None if no link leads to it."""
    root = file.root()
    if root.id == id:
        return "/"
    seen, waiting = {root.id}, [(root, "")]
    while waiting:
        handle, path = waiting.pop(0)
        for name in handle.names(False):
            link = handle.link(name)
            if link is None or link[0] != "hard":
                continue
            inner = f"{path}/{name}"
            if link[1] == id:
                return inner
            if link[1] not in seen:
                seen.add(link[1])
                found = handle.open(name)
                if isinstance(found, RawGroup):
                    waiting.append((found, inner))
    return None
