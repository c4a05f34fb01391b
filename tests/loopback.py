"""An HTTP server on 127.0.0.1 for the tests of downloads: it can answer badly on purpose."""

import dataclasses
import http.server
import io
import json
import threading
import time
import zipfile


def zip_of(**members):
    """A zip archive with the given names and contents, as bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@dataclasses.dataclass
class Resource:
    """What the server answers under one path."""

    body: bytes
    etag: str = '"v1"'
    ranges: bool = True  # whether it understands Range
    statuses: list = dataclasses.field(default_factory=list)  # of the first answers, then 200
    cuts: list = dataclasses.field(default_factory=list)  # bytes after which the first break off
    delay: float = 0.0  # seconds before each answer
    wrong_range: bool = False  # answers 206 with another range than asked for
    headers: dict = dataclasses.field(default_factory=dict)  # sent besides
    status: int = 200  # of a whole answer
    mixes: bool = False  # answers 206 also for a part of another version


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests.append((self.path, dict(self.headers)))
        resource = server.resources.get(self.path)
        if resource is None:
            self.send_response(404)
            for name, value in server.headers_of_404.items():
                self.send_header(name, value)
            self.send_header('Content-Length', '0')
            self.end_headers()
            return
        time.sleep(resource.delay)
        if resource.statuses:
            self.send_error(resource.statuses.pop(0))
            return
        body, start = resource.body, self._start(resource)
        if start is not None and start >= len(body):
            self.send_response(416)
            self.send_header('Content-Range', f'bytes */{len(body)}')
            self.send_header('Content-Length', '0')
            self.end_headers()
            return
        self.send_response(resource.status if start is None else 206)
        if start is not None:
            shown = start + 1 if resource.wrong_range else start
            self.send_header('Content-Range', f'bytes {shown}-{len(body) - 1}/{len(body)}')
            body = body[start:]
        if resource.etag:
            self.send_header('ETag', resource.etag)
        for name, value in resource.headers.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command == 'HEAD':
            return
        cut = resource.cuts.pop(0) if resource.cuts else None
        self.wfile.write(body[:cut])
        self.close_connection = True

    do_HEAD = do_GET

    def do_POST(self):
        server = self.server
        server.requests.append((self.path, dict(self.headers)))
        body = self.rfile.read(int(self.headers['Content-Length']))
        receive = server.receivers.get(self.path)
        status, answer = (404, {}) if receive is None else receive(body, self.headers)
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_PUT = do_POST

    def _start(self, resource):
        """The first byte wanted, where a part is wanted of the version that there is."""
        wanted = self.headers.get('Range')
        if not wanted or not resource.ranges:
            return None
        if self.headers.get('If-Range') != resource.etag and not resource.mixes:
            return None
        return int(wanted[len('bytes=') : -1])

    def log_message(self, *args):
        pass


class LoopbackServer:
    """The running server; `resources` maps paths to what they answer, and `receivers` to functions
    ``(body, headers) -> (status, JSON)`` of what is sent there."""

    def __enter__(self):
        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), _Handler)
        self.resources = self._server.resources = {}
        self.receivers = self._server.receivers = {}
        self.headers_of_404 = self._server.headers_of_404 = {}
        self.requests = self._server.requests = []  # (path, headers) in the order of arrival
        self.url = f'http://127.0.0.1:{self._server.server_address[1]}/'
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def paths(self):
        """Paths of the requests so far."""
        return [path for path, _ in self.requests]
