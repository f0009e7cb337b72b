"""Why only one of libhdf5 and `h5live check` has something to say about a file."""

import re

# Files that libhdf5 refuses and that are sound all the same: the name of the file, and the reason.
NAMED = {}

DATA = "is read with the elements, not when the dataset is opened"
SPACE = "libhdf5 gives out free space without looking at the rest of the file"
SUM = "libhdf5 believes the number, and uses it first when the structure changes"
OTHER = "libhdf5 reads what it needs, and goes by another statement of the same"
LATER = "later releases of libhdf5 refuse it: what they check has grown from release to release"
ENTRY = "libhdf5 looks no entry up by it while it only opens what is there"

# The structure of a finding, its kind, and why libhdf5 opens everything all the same. The first that fits counts.
CLASSES = [
    (r"(fixed|extensible) array.*|chunks?|contiguous data|implicit index", r".*", DATA),
    (r"(variable-length element|reference.*|global heap.*|.*region.*|virtual layout)", r".*", DATA),
    (r"free (space|section).*|file space info", r".*", SPACE),
    (r"datatype", r"value|limit", LATER),
    (r".*", r"overlap", SPACE),
    (r"version [12] B-tree.*", r"count|limit|order|rule|beyond-end|missing|signature|checksum|version|value|length", ENTRY),
    (r"fractal heap.*|shared message.*|attribute (info|.*record)|.*order record", r".*", SUM),
    (r"link info|link.*record|group info|symbol table.*|local heap.*", r".*", OTHER),
    (r"superblock|driver info.*|metadata cache.*", r".*", OTHER),
    (r"object header.*", r"count|repeated|rule|missing|length", OTHER),
    (r"data layout|external files|fill value|old fill value|dataspace|filter pipeline", r"count|limit|rule|value|version", OTHER),
    (r"attribute|comment|.*modification time|link", r".*", OTHER),
]


def why_libhdf5_alone(name, missed):
    """Why the check is right to say nothing of a file that libhdf5 refuses."""
    return NAMED.get(name.split("#")[0])


def holds_links(finding):
    """Whether a finding is of something that leads to the objects of a group."""
    return re.search(r"link|symbol table|B-tree|(local|fractal) heap|object header", finding["structure"]) is not None


def why_ours_alone(finding):
    """Why libhdf5 opens everything of a file in which the check finds something; None if that is not known."""
    for structure, kind, why in CLASSES:
        if re.fullmatch(structure, finding["structure"]) and re.fullmatch(kind, finding["kind"]):
            return f"{finding['structure']}, {finding['kind']}: {why}"
    return None
