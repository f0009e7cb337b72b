"""Links."""

from . import h5t

TYPE_HARD, TYPE_SOFT, TYPE_EXTERNAL = 0, 1, 64


class LinkInfo:
    """What a link is."""

    def __init__(self, link):
        self.type = {"hard": TYPE_HARD, "soft": TYPE_SOFT, "external": TYPE_EXTERNAL}.get(link[0], 65)
        self.corder_valid = False
        self.corder = 0
        self.cset = h5t.CSET_ASCII if link[-1] is True else h5t.CSET_UTF8
        self.u = link[1]
