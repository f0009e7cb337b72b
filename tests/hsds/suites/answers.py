"""Requests and answers of HSDS's API, and what is different between two answers."""

import json
import math
import re
import urllib.parse
from dataclasses import dataclass


@dataclass
class Request:
    method: str
    target: str
    headers: dict
    body: bytes

    def header(self, name):
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), "")

    def path(self):
        return urllib.parse.unquote(urllib.parse.urlsplit(self.target).path)

    def query(self):
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.target).query, keep_blank_values=True))

    def domain(self):
        return self.query().get("domain") or self.header("X-Hdf-domain")

    def is_reading(self):
        """Whether HSDS changes nothing by it."""
        if self.method in ("GET", "HEAD", "OPTIONS"):
            return True
        parts = self.path().strip("/").split("/")
        return self.method == "POST" and (parts == [""] or parts[-1] in ("value", "links", "attributes"))

    def kind(self):
        """The route, with what changes how it answers."""
        names = {38: "ID"}
        parts = [names.get(len(part), part) for part in self.path().split("/")]
        for at in range(3, len(parts)):
            if parts[at - 1] in ("links", "attributes"):
                parts[at] = "NAME"
        if parts[1] == "acls" and len(parts) > 2:
            parts[2] = "USER"
        parameters = sorted(name for name in self.query() if name not in ("domain", "bucket"))
        return f"{self.method} {'/'.join(parts)}" + (f" ({', '.join(parameters)})" if parameters else "")

    def short(self):
        """What a person has to know of it."""
        body = f" {self.body[:200]!r}" if self.body else ""
        return f"{self.method} {urllib.parse.unquote(self.target)} of {self.domain()}{body}"


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    def header(self, name):
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), "")

    def is_json(self):
        return self.header("Content-Type").startswith("application/json")


# Times of HSDS have fractions of seconds, those of HDF5 do not.
TIMES = {"created", "lastModified", "start_time", "last_modified", "lastmodified"}


def plain(value, name=""):
    """A value in JSON without what has no meaning: the order of members, addresses and limits of servers, times."""
    if isinstance(value, dict):
        return {key: plain(item, key) for key, item in value.items()}
    if name == "hrefs" and isinstance(value, list):
        return {item["rel"]: plain(item["href"], "href") for item in value}
    if isinstance(value, list):
        return [plain(item, name if name in TIMES else "") for item in value]
    if name in TIMES and isinstance(value, (int, float)):
        return "a time"
    if name in ("href", "target") and isinstance(value, str):
        # HSDS puts the name of the bucket before some of the domains.
        path = urllib.parse.unquote(re.sub(r"^http[^/]*//[^/]*", "", value))
        return re.sub(r"\?domain=[^/?&]+/", "?domain=/", path)
    if name == "max_request_size":
        return "a limit"
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value


def parsed(answer):
    try:
        return plain(json.loads(answer.body))
    except ValueError:
        return None


def walk(theirs, ours, at, found):
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted(theirs.keys() | ours.keys()):
            if name not in ours:
                found.append((f"{at}.{name}", theirs[name], "(none)"))
            elif name not in theirs:
                found.append((f"{at}.{name}", "(none)", ours[name]))
            else:
                walk(theirs[name], ours[name], f"{at}.{name}", found)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for their, our in zip(theirs, ours):
            walk(their, our, f"{at}[]", found)
    elif theirs != ours:
        found.append((at, theirs, ours))


def differences(request, theirs, ours):
    """What is different: places in the answer, with what HSDS and what h5live has there."""
    if theirs.status != ours.status:
        return [("status", theirs.status, f"{ours.status} {ours.body[:200].decode(errors='replace')}")]
    if theirs.status >= 400:
        return []
    if theirs.is_json() != ours.is_json():
        return [("content type", theirs.header("Content-Type"), ours.header("Content-Type"))]
    if not theirs.is_json():
        return [] if theirs.body == ours.body else [("bytes", theirs.body, ours.body)]
    found = []
    walk(parsed(theirs), parsed(ours), "", found)
    return found
