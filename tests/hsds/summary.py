"""Checks that the numbers of a domain, of the summary that h5live has written, are those that the service counts itself.
usage: summary.py DOMAIN"""

import sys

import h5pyd

NAMES = ("num_groups", "num_datasets", "num_datatypes", "num_chunks", "allocated_bytes", "metadata_bytes")


def counted(file):
    """The numbers, and when they were counted."""
    found = file.id.db.plugin.http_conn.GET("/", params={"verbose": "1"}).json()
    logical = {name: counts["logical_bytes"] for name, counts in found["scan_info"]["datasets"].items()}
    return {name: found[name] for name in NAMES} | {"logical_bytes": logical}, found["scan_info"]["scan_complete"]


with h5pyd.File(sys.argv[1], "r+") as file:
    ours, our_time = counted(file)
    assert ours["num_chunks"] > 0 and ours["allocated_bytes"] > 0, ours
    file.id.db.plugin.http_conn.PUT("/", params={"rescan": "1"})
    theirs, their_time = counted(file)
assert their_time > our_time, "the service has counted"
assert ours == theirs, {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]}
print(f"{sys.argv[1]}: {ours['num_chunks']} chunks of {ours['allocated_bytes']} bytes, as the service counts them")
