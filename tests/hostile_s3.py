"""A server on 127.0.0.1 that answers S3's protocol, and wrongly where it is told to."""

import contextlib
import http.server
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

BUCKET = 'bucket'
_ENTITIES = ''.join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 31))
BOMB = f'<!DOCTYPE x [<!ENTITY a0 "ha">{_ENTITIES}]><Error><Code>&a30;</Code></Error>'


class HostileS3(http.server.ThreadingHTTPServer):
    """Objects by key, and how to answer wrongly.

    Attributes
    ----------
    objects : dict of str to bytes
    wrong : callable
        ``wrong(handler, method, key, query) -> bool``: whether it has answered, instead of what
        would be right.
    """

    daemon_threads = True

    def __init__(self, objects=()):
        super().__init__(('127.0.0.1', 0), _Handler)
        self.objects, self.requests = dict(objects), []
        self.wrong = lambda handler, method, key, query: False
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """A client that leaves is no error here."""

    def close(self):
        self.shutdown()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def _serve(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        key = urllib.parse.unquote(url.path).lstrip('/').partition('/')[2]
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        self.server.requests.append((self.command, key, query))
        if self.server.wrong(self, self.command, key, query):
            return
        getattr(self, f'_{self.command.lower()}')(key, query, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def say(self, status, body=b'', **headers):
        """Answer; names of headers have underscores here."""
        headers = {'Content_Length': len(body), **headers}
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name.replace('_', '-'), str(value))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def say_xml(self, text, status=200, **headers):
        self.say(status, text.encode(), Content_Type='application/xml', **headers)

    def say_error(self, status, code, message='no'):
        self.say_xml(f'<Error><Code>{code}</Code><Message>{message}</Message></Error>', status)

    def list(self, keys, more='', name=BUCKET):
        found = ''.join(
            f'<Contents><Key>{escape(key)}</Key><Size>{size}</Size><ETag>"{tag}"</ETag>'
            '<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>'
            for key, size, tag in keys
        )
        self.say_xml(f'<ListBucketResult><Name>{name}</Name>{more}{found}</ListBucketResult>')

    def _get(self, key, query, body):
        if not key:
            keys = [(each, len(content), self.tag(each))
                    for each, content in sorted(self.server.objects.items())
                    if each.startswith(query.get('prefix', ''))]  # fmt: skip
            return self.list(keys)
        if key not in self.server.objects:
            return self.say_error(404, 'NoSuchKey')
        wanted = self.headers.get('If-Match')
        if wanted not in (None, f'"{self.tag(key)}"'):
            return self.say_error(412, 'PreconditionFailed')
        content, headers = self.server.objects[key], {'ETag': f'"{self.tag(key)}"'}
        span = self.headers.get('Range')
        if span is None:
            return self.say(200, content, **headers)
        first, last = span.partition('=')[2].split('-')
        part = content[int(first) : int(last) + 1]
        headers['Content_Range'] = f'bytes {first}-{last}/{len(content)}'
        return self.say(206, part, **headers)

    _head = _get

    def _put(self, key, query, body):
        self.server.objects[key] = body
        self.say(200, ETag='"x"')

    def _delete(self, key, query, body):
        self.server.objects.pop(key, None)
        self.say(204)

    def _post(self, key, query, body):
        if 'uploads' in query:
            return self.say_xml('<R><Bucket>b</Bucket><Key>k</Key><UploadId>1</UploadId></R>')
        return self.say_xml('<R><ETag>"x"</ETag></R>')

    def tag(self, key):
        return f'{hash(self.server.objects[key]) & 0xFFFFFFFF:08x}'

    def pour(self, status=200, seconds=0.0, size=None, **headers):
        """A body without an end, or of so many bytes, at once or slowly."""
        self.say(status, Content_Length=size, **headers)
        piece = b'x' * (1 if seconds else 1 << 20)
        self.close_connection = True
        with contextlib.suppress(OSError):
            while size is None or size > 0:
                self.wfile.write(piece)
                time.sleep(seconds)
                size = size and size - len(piece)
