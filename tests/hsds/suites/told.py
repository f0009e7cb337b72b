"""A plugin of pytest that tells the proxy which test is running (variable SUITE_PROXY: its address)."""

import os
import urllib.parse
import urllib.request


def tell(name):
    address = os.environ["SUITE_PROXY"] + "/.test/" + urllib.parse.quote(name, safe="")
    for is_last in (False, False, True):
        try:
            urllib.request.urlopen(address, timeout=60).close()
            return
        except OSError:
            if is_last:
                raise


def pytest_runtest_logstart(nodeid, location):
    tell(nodeid)


def pytest_runtest_logfinish(nodeid, location):
    tell("")
