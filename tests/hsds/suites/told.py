"""A plugin of pytest that tells the proxy which test is running (variable SUITE_PROXY: its address)."""

import os
import urllib.parse
import urllib.request


def tell(name):
    urllib.request.urlopen(os.environ["SUITE_PROXY"] + "/.test/" + urllib.parse.quote(name, safe="")).close()


def pytest_runtest_logstart(nodeid, location):
    tell(nodeid)


def pytest_runtest_logfinish(nodeid, location):
    tell("")
