"""A Hugging Face hub on this machine, for the tests of downloads."""

import hashlib
import json

from huggingface_hub import constants
from loopback import Resource

try:
    from huggingface_hub.utils import close_session
except ImportError:  # before version 1
    from huggingface_hub.utils import reset_sessions as close_session


def publish(server, repository, files, revision='main', commit='1' * 40):
    """Put files where the hub has them; name -> bytes. A content of None removes a file."""
    folder = f'/{repository}/resolve/{commit}/'
    for name, content in files.items():
        if content is None:
            del server.resources[folder + name]
            continue
        headers = {'X-Repo-Commit': commit, 'ETag': f'"{hashlib.sha256(content).hexdigest()}"'}
        server.resources[folder + name] = Resource(content, headers)
    tree = []
    for path, resource in server.resources.items():
        if path.startswith(folder):
            oid, size = resource.headers['ETag'].strip('"'), len(resource.body)
            tree.append({'type': 'file', 'path': path[len(folder) :], 'size': size, 'oid': oid})
    api = f'/api/models/{repository}'
    about = {'id': repository, 'sha': commit, 'siblings': [{'rfilename': f['path']} for f in tree]}
    answers = {f'{api}/revision/{revision}': about, f'{api}/tree/{commit}': tree}
    if revision == 'main':
        answers[api] = about
    for path, answer in answers.items():
        server.resources[path] = Resource(json.dumps(answer).encode())


def connect(server, folder, monkeypatch):
    """Let this process take the server for the hub; the cache is in `folder`."""
    server.headers_of_404['X-Error-Code'] = 'RepoNotFound'
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', False)
    # this hub has no such store, and the oldest version knows none
    monkeypatch.setattr(constants, 'HF_HUB_DISABLE_XET', True, raising=False)
    point_at(server.url, monkeypatch.setattr)
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(folder / 'hub'))
    monkeypatch.setenv('no_proxy', '127.0.0.1')
    monkeypatch.setenv('MXNET_HOME', str(folder / 'mxnet'))
    close_session()


def point_at(url, setattr=setattr):
    """Set the hub's address in its library."""
    setattr(constants, 'ENDPOINT', url.rstrip('/'))
    template = url + '{repo_id}/resolve/{revision}/{filename}'
    setattr(constants, 'HUGGINGFACE_CO_URL_TEMPLATE', template)
