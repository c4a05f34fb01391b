"""A Hugging Face hub on this machine, for the tests of downloads and uploads."""

import base64
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
    tree = [
        {
            'type': 'file',
            'path': path[len(folder) :],
            'size': len(resource.body),
            'oid': resource.headers['ETag'].strip('"'),
        }
        for path, resource in server.resources.items()
        if path.startswith(folder)
    ]
    api = f'/api/models/{repository}'
    about = {'id': repository, 'sha': commit, 'siblings': [{'rfilename': f['path']} for f in tree]}
    answers = {f'{api}/revision/{revision}': about, f'{api}/tree/{commit}': tree}
    if revision == 'main':
        answers[api] = about
    for path, answer in answers.items():
        server.resources[path] = Resource(json.dumps(answer).encode())


def accept(server, repository, token='secret'):
    """Let files be uploaded to a repository with a token; they are published by the commit."""
    blobs, made = {}, []

    def post(path):
        def register(function):
            def receive(body, headers):
                if headers.get('Authorization') != f'Bearer {token}':
                    return 401, {'error': 'Invalid username or password.'}
                return 200, function(body)

            server.receivers[path] = receive

        return register

    @post('/api/repos/create')
    def create(body):
        made.append(json.loads(body))
        return {'url': f'{server.url}{made[-1]["organization"]}/{made[-1]["name"]}'}

    @post(f'/api/models/{repository}/preupload/main')
    def modes(body):
        return {
            'files': [
                {
                    'path': file['path'],
                    'shouldIgnore': False,
                    'uploadMode': 'regular' if file['path'].endswith(('.json', '.txt')) else 'lfs',
                }
                for file in json.loads(body)['files']
            ]
        }

    @post(f'/{repository}.git/info/lfs/objects/batch')
    def places(body):
        files = json.loads(body)['objects']
        for file in files:
            address = f'/lfs/{file["oid"]}'
            server.receivers[address] = lambda body, _, oid=file['oid']: (
                blobs.__setitem__(oid, body) or (200, {})
            )
            file['actions'] = {'upload': {'href': server.url.rstrip('/') + address}}
        return {'transfer': 'basic', 'objects': files}

    @post(f'/api/models/{repository}/commit/main')
    def commit(body):
        files = {}
        for line in map(json.loads, body.splitlines()):
            value = line['value']
            if line['key'] == 'file':
                files[value['path']] = base64.b64decode(value['content'])
            elif line['key'] == 'lfsFile':
                files[value['path']] = blobs[value['oid']]
        publish(server, repository, files)
        return {'commitUrl': f'{server.url}{repository}/commit/1', 'commitOid': '1' * 40}

    return made


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
