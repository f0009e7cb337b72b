"""Makes, changes and checks groups with many links, for the tests of links.

group.py FILE make LIBVER TRACKED FIRST END   makes the file and the group "g" with links FIRST to END
group.py FILE add FIRST END                   adds links
group.py FILE remove FIRST END                removes them
group.py FILE check [RANGES]                  the group has exactly the links of FIRST:END,FIRST:END,...
"""

import sys

import h5py


def is_old(group):
    """Whether groups of the file have symbol tables, which hold no external links."""
    return group.file.id.get_create_plist().get_version()[0] < 2


def add(group, number):
    name = link_name(number, is_old(group))
    kind = number % 4
    if kind == 0:
        group.create_group(name)
    elif kind == 1:
        group[name] = h5py.SoftLink(f"/target/{number}")
    elif kind == 2 and is_old(group):
        group[name] = h5py.SoftLink(f"/o{number}")
    elif kind == 2:
        group[name] = h5py.ExternalLink("other.h5", f"/o{number}")
    else:
        group[name] = group.file["shared"]


def link_name(number, old=False):
    return f"link {number} é" if number % 7 == 0 and not old else f"link {number}" + "x" * (number % 40)


def check(file, ranges):
    group = file["g"]
    numbers = [n for part in ranges.split(",") if part for n in range(*map(int, part.split(":")))]
    names = list(group)
    assert len(names) == len(numbers) == len(group), (len(names), len(numbers), len(group))
    assert sorted(names) == sorted(link_name(n, is_old(group)) for n in numbers)
    for number in numbers:
        name = link_name(number, is_old(group))
        link = group.get(name, getlink=True)
        kind = number % 4
        if kind == 0:
            assert len(group[name]) == 0
        elif kind == 1:
            assert link.path == f"/target/{number}"
        elif kind == 2 and is_old(group):
            assert link.path == f"/o{number}"
        elif kind == 2:
            assert (link.filename, link.path) == ("other.h5", f"/o{number}")
        else:
            assert group[name] == file["shared"]
    shared = sum(1 for n in numbers if n % 4 == 3)
    assert h5py.h5o.get_info(file["shared"].id).rc == shared + 1
    plist = group.id.get_create_plist()
    if plist.get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED:
        ordered = []
        group.id.links.iterate(lambda name: ordered.append(name.decode()), idx_type=h5py.h5.INDEX_CRT_ORDER)
        assert ordered == [link_name(n) for n in numbers], ordered[:5]


path, what, *rest = sys.argv[1:]
if what == "make":
    libver, tracked, first, end = rest
    with h5py.File(path, "w", libver=(libver, "latest")) as file:
        group = file.create_group("g", track_order=tracked == "tracked")
        file.create_group("shared")
        for number in range(int(first), int(end)):
            add(group, number)
else:
    with h5py.File(path, "r" if what == "check" else "r+") as file:
        if what == "check":
            check(file, rest[0] if rest else "")
        for number in range(*map(int, rest)) if what != "check" else []:
            add(file["g"], number) if what == "add" else file["g"].__delitem__(link_name(number, is_old(file)))
