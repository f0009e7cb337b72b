"""Why only one of libhdf5 and `h5live check` has something to say about a file."""

NAMED = {}


def why_libhdf5_alone(name, missed):
    """Why the check is right to say nothing of a file that libhdf5 refuses."""
    return NAMED.get(name.split("#")[0])


def why_ours_alone(finding):
    return finding["structure"] + " / " + finding["kind"]
