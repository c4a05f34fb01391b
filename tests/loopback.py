"""An HTTP server on 127.0.0.1 for the tests of downloads."""

import dataclasses
import http.server
import io
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
    headers: dict = dataclasses.field(default_factory=dict)
    cut: int = None  # bytes after which the connection breaks
    delay: float = 0.0  # seconds before each answer


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests.append((self.path, dict(self.headers)))
        resource = server.resources.get(self.path.partition('?')[0])
        found = resource is not None
        time.sleep(resource.delay if found else 0)
        body = resource.body if found else b''
        self.send_response(200 if found else 404)
        for name, value in (resource.headers if found else server.headers_of_404).items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command == 'GET' and found:
            self.wfile.write(body[: resource.cut])
            self.close_connection = True

    do_HEAD = do_GET

    def log_message(self, *args):
        pass


class LoopbackServer:
    """The running server; `resources` maps paths to what they answer."""

    def __enter__(self):
        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), _Handler)
        self.resources = self._server.resources = {}
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
