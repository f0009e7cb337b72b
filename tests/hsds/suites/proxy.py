"""A proxy before HSDS that asks `h5live serve` every reading request, too, and compares both answers.

Requests are passed on one after the other. What changes something goes to HSDS alone. Before `h5live serve` is asked, HSDS
writes what it has in memory.
"""

import base64
import http.client
import json
import socket
import threading
import urllib.parse
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from answers import Answer, Request, differences
from known import reason_of

# What a client sends for itself and its connection.
HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "accept-encoding"}
# What a test tells the proxy: its name.
NAME_PATH = "/.test/"
ADMIN = "Basic " + base64.b64encode(b"admin:admin").decode()
TIMEOUT = 120


@dataclass
class Compared:
    """A request, and what is different between both answers: places, with both values and the name of a reason."""

    test: str
    request: Request
    differences: list

    @staticmethod
    def of(test, request, theirs, ours):
        found = differences(request, theirs, ours)
        return Compared(test, request, [(*one, reason_of(request, *one)) for one in found])

    def reasons(self):
        return {reason for *_, reason in self.differences}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(self.path)


class Proxy(ThreadingHTTPServer):
    """`answers_with` is whose answer clients get to what only reads: "hsds" or "h5live"."""

    daemon_threads = True

    def __init__(self, hsds_socket, h5live_port, answers_with):
        super().__init__(("127.0.0.1", 0), Handler)
        self.hsds_socket, self.h5live_port, self.answers_with = hsds_socket, h5live_port, answers_with
        self.lock = threading.Lock()
        self.unflushed, self.test, self.compared = set(), "", []
        # Tests, with the numbers of requests that read and that write.
        self.requests = {}

    def handle_error(self, *_):
        """Clients that end without a goodbye are no errors."""

    def hsds(self, request):
        return ask(UnixConnection(self.hsds_socket), request)

    def h5live(self, request):
        host = f"127.0.0.1:{self.h5live_port}"
        request = Request(request.method, request.target, {**request.headers, "Host": host}, request.body)
        return ask(http.client.HTTPConnection("127.0.0.1", self.h5live_port, timeout=TIMEOUT), request)

    def flush(self):
        for domain in sorted(self.unflushed):
            target = "/?flush=1&domain=" + urllib.parse.quote(domain)
            self.hsds(Request("PUT", target, {"Host": "localhost", "Authorization": ADMIN}, b""))
        self.unflushed.clear()

    def answer(self, request):
        with self.lock:
            counts = self.requests.setdefault(self.test, {"reads": 0, "writes": 0})
            answer = self.hsds(request)
            if not request.is_reading():
                counts["writes"] += 1
                if answer.status < 400 and request.domain():
                    self.unflushed.add(request.domain())
                return answer
            counts["reads"] += 1
            self.flush()
            ours = self.h5live(request)
            self.compared.append(Compared.of(self.test, request, answer, ours))
            return answer if self.answers_with == "hsds" else ours


def ask(connection, request):
    headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_HEADERS}
    if request.body or request.method not in ("GET", "HEAD"):
        headers["Content-Length"] = str(len(request.body))
    try:
        connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(request.body or None)
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.path.startswith(NAME_PATH):
            self.server.test = urllib.parse.unquote(self.path.removeprefix(NAME_PATH))
            return self.send(Answer(204, {}, b""))
        headers = {name: value for name, value in self.headers.items() if name.lower() != "content-length"}
        try:
            answer = self.server.answer(Request(self.command, self.path, headers, body))
        except (OSError, http.client.HTTPException) as error:
            answer = Answer(502, {"Content-Type": "application/json"}, json.dumps({"message": repr(error)}).encode())
        self.send(answer)

    def send(self, answer):
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in HOP_HEADERS | {"content-length", "content-encoding"}:
                self.send_header(name, value)
        if answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer

    def log_message(self, *_):
        pass
