"""Makes, changes and checks objects with many attributes, for the tests of attributes.

attributes.py FILE make LIBVER TRACKED FIRST END   makes the file, and the group "g" with attributes FIRST to END
attributes.py FILE add FIRST END                   sets attributes
attributes.py FILE remove FIRST END                removes them
attributes.py FILE check [RANGES]                  the group has exactly the attributes of FIRST:END,FIRST:END,...
"""

import sys

import h5py
import numpy as np


def attribute_name(number):
    return f"a {number} é" if number % 7 == 0 else f"a {number}" + "x" * (number % 40)


def value(number):
    # Every hundredth is huge, every thousandth does not fit into a message.
    count = 20_000 if number % 1000 == 999 else 1500 if number % 100 == 99 else number % 9
    return (np.arange(count, dtype="<i4") + number).astype("<i4")


def check(group, ranges):
    numbers = [n for part in ranges.split(",") if part for n in range(*map(int, part.split(":")))]
    assert len(group.attrs) == len(numbers), (len(group.attrs), len(numbers))
    assert sorted(group.attrs) == sorted(map(attribute_name, numbers))
    for number in numbers:
        found = group.attrs[attribute_name(number)]
        assert np.array_equal(found, value(number)), (number, found)
    plist = group.id.get_create_plist()
    if plist.get_attr_creation_order() & h5py.h5p.CRT_ORDER_TRACKED:
        ordered = []
        h5py.h5a.iterate(group.id, lambda name: ordered.append(name.decode()), index_type=h5py.h5.INDEX_CRT_ORDER)
        assert ordered == [attribute_name(n) for n in numbers], ordered[:5]


path, what, *rest = sys.argv[1:]
if what == "make":
    libver, tracked, first, end = rest
    with h5py.File(path, "w", libver=(libver, "latest")) as file:
        group = file.create_group("g", track_order=tracked == "tracked")
        for number in range(int(first), int(end)):
            group.attrs[attribute_name(number)] = value(number)
else:
    with h5py.File(path, "r" if what == "check" else "r+") as file:
        if what == "check":
            check(file["g"], rest[0] if rest else "")
        for number in range(*map(int, rest)) if what != "check" else []:
            if what == "add":
                file["g"].attrs[attribute_name(number)] = value(number)
            else:
                del file["g"].attrs[attribute_name(number)]
