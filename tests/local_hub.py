"""A Hugging Face hub on this machine, for the tests of downloads."""

import hashlib

from huggingface_hub import constants, file_download
from huggingface_hub.utils import reset_sessions
from loopback import Resource


def publish(server, repository, files, revision='main', commit='1' * 40):
    """Put files where the hub has them; name -> bytes."""
    for name, content in files.items():
        etag = hashlib.sha256(content).hexdigest()
        headers = {'X-Repo-Commit': commit, 'X-Linked-Etag': etag,
                   'X-Linked-Size': str(len(content))}  # fmt: skip
        path = f'/{repository}/resolve/{revision}/{name}'
        server.resources[path] = Resource(content, f'"{etag}"', headers=headers)


def connect(server, folder, monkeypatch):
    """Let this process take the server for the hub; the cache is in `folder`."""
    server.headers_of_404.update({'X-Error-Code': 'EntryNotFound', 'X-Repo-Commit': '1' * 40})
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', False)
    point_at(server.url, monkeypatch.setattr)
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(folder / 'hub'))
    monkeypatch.setenv('no_proxy', '127.0.0.1')
    monkeypatch.setenv('MXNET_HOME', str(folder / 'mxnet'))
    reset_sessions()


def point_at(url, setattr=setattr):
    """Set the hub's address in its library."""
    setattr(constants, 'ENDPOINT', url.rstrip('/'))
    template = url + '{repo_id}/resolve/{revision}/{filename}'
    setattr(file_download, 'HUGGINGFACE_CO_URL_TEMPLATE', template)
