"""The Hugging Face hub as a source of pretrained weights."""

import functools
import os
import re
import shutil
import warnings
from typing import Dict
from urllib.parse import urljoin, urlsplit

import requests
from huggingface_hub import constants
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalTokenNotFoundError

from ..checkpoint.readers import CONFIG_NAMES
from ..errors import InputError, ZooError
from ..util.files import atomic_write
from ..util.reading import read_json
from .download import Checksum, download, is_final, reason_of
from .files import (
    BESIDE_VOCAB,
    BPE_NAMES,
    GENERATION_CONFIG,
    MODULES_NAME,
    SENTENCE_CONFIGS,
    VOCAB_NAMES,
    Source,
    SourceError,
    files_in_folder,
    merges_beside,
    modules_in_folder,
)

__all__ = ['HubSource', 'Repository', 'upload']

_INDEX = '.index.json'  # of weights in several files
_DIGEST = re.compile('[0-9a-f]{40}|[0-9a-f]{64}')


def _library():
    """huggingface_hub, imported here because few programs need it."""
    with warnings.catch_warnings():
        # that progress bars are plain ones in a notebook without ipywidgets
        warnings.filterwarnings('ignore', 'IProgress not found')
        import huggingface_hub.file_download
    return huggingface_hub


class HubSource(Source):
    """The Hugging Face hub, or what huggingface_hub has cached of it.

    The environment variables HF_ENDPOINT, HF_HOME (the folder of that cache), HF_HUB_OFFLINE and
    HF_TOKEN work as that library documents, and its cache is filled as it documents that. What the
    server says is checked before it becomes the name of a file, which the library doesn't do.
    Weights in the cache are used; the hub isn't asked for newer ones.
    """

    name = 'Hugging Face hub'

    def find(self, entry, root, vocab_only=False):
        if entry.hub is None:
            raise SourceError('it does not have these weights')
        files = self._cached(entry, vocab_only)
        if files is None:
            repository = Repository(entry.hub, entry.hub_revision)
            files = files_in_folder(repository.fetch(not vocab_only))
        elif not vocab_only:
            _verify(files.weights)
        if not vocab_only and entry.hub_sha256 is not None:
            mismatch = Checksum('sha256', entry.hub_sha256).mismatch(files.weights)
            if mismatch:
                raise SourceError(f'{files.weights!r} is not what the catalogue has: {mismatch}')
        return files

    def is_local(self, entry, root):
        return entry.hub is not None and self._cached(entry) is not None

    @staticmethod
    def _cached(entry, vocab_only=False):
        """The files in the library's cache: of the catalogue's commit, or else of the branch."""
        revisions = dict.fromkeys((entry.hub_revision, None))
        copies = (Repository(entry.hub, revision).cached(vocab_only) for revision in revisions)
        return next(filter(None, copies), None)


class Repository:
    """One model of the hub."""

    def __init__(self, name, revision=None):
        self.name, self.revision = name, revision
        self.address = f'{constants.ENDPOINT}/{name}' + (f' ({revision})' if revision else '')
        self._prefix = ''  # folder of the transformer, with a slash

    def cached(self, vocab_only=False):
        """The model's files in the library's cache; None if they aren't complete."""
        config = self._in_cache('config.json')
        if not isinstance(config, str):
            return None
        files = files_in_folder(os.path.dirname(config))
        if files.vocab is None or (_is_bpe(files.vocab) and not merges_beside(files.vocab)):
            return None
        complete = vocab_only or (
            files.weights and all(map(os.path.isfile, _parts(files.weights)))
        )
        return files if complete else None

    def fetch(self, weights=True, vocab=True):
        """Download what the cache lacks."""
        root = self._fetch_modules(weights)
        config = self._first(CONFIG_NAMES)
        if config is None:
            raise self._lacks('no config.json')
        if vocab:
            # it is small: what it lacks shows before the weights are fetched
            for name in BESIDE_VOCAB:
                self._get(name)
            self._fetch_vocab()
        if weights:
            self._get(GENERATION_CONFIG)
            _verify(self._fetch_weights())
        return root or os.path.dirname(config)

    def _fetch_modules(self, weights):
        """The parts behind the transformer of a model of sentence-transformers."""
        path = self._get(MODULES_NAME)
        if path is None:
            return None
        root = os.path.dirname(path)
        first, *others = modules_in_folder(root)
        self._get('config_sentence_transformers.json')
        for module in others:
            self._prefix = f'{module.path}/'
            self._get('config.json')
            if weights and module.kind == 'Dense':
                _verify(self._fetch_weights())
        self._prefix = f'{first.path}/' if first.path else ''
        for name in SENTENCE_CONFIGS:
            self._get(name)
        return root

    def file(self, name):
        """Path of any other of its files, downloaded where the cache lacks it; SourceError if it
        has none.
        """
        path = self._get(name)
        if path is None:
            raise self._lacks(f'no {name}')
        return path

    def _lacks(self, what):
        offline = ' in the cache (HF_HUB_OFFLINE is set)' if constants.HF_HUB_OFFLINE else ''
        return SourceError(f'{self.address} has {what}{offline}')

    def _fetch_vocab(self):
        vocab = self._first(VOCAB_NAMES)
        if vocab is None:
            raise self._lacks(f'none of {", ".join(VOCAB_NAMES)}')
        if _is_bpe(vocab):
            merges = BPE_NAMES[os.path.basename(vocab)]
            if self._get(merges) is None:
                raise self._lacks(f'no {merges}')

    def _fetch_weights(self):
        names = ['model.safetensors', 'pytorch_model.bin', 'model.params']
        names = [file for name in names for file in (name, name + _INDEX)]
        path = self._first(names)
        if path is None:
            raise self._lacks(f'none of {", ".join(names)}')
        for part in _parts(path):
            if self._get(os.path.basename(part)) is None:
                raise self._lacks(f'no {os.path.basename(part)}')
        return path

    def _first(self, names):
        """Path of the first of the files that the repository has, or None."""
        paths = map(self._get, names)
        return next((path for path in paths if path is not None), None)

    def _in_cache(self, name):
        """Path of a file in the cache, None if it isn't there, or a mark that the hub has none."""
        return _library().try_to_load_from_cache(self.name, name, revision=self.revision)

    def _get(self, name):
        """Path of a file, downloaded where the cache lacks it; None if the hub doesn't have it."""
        path = self._in_cache(self._prefix + name)
        if path is not None:
            return path if isinstance(path, str) else None
        if constants.HF_HUB_OFFLINE:
            if name != 'config.json' or self._prefix:
                return None  # as far as one can tell
            raise SourceError(
                f'HF_HUB_OFFLINE is set, and {name} of {self.name} is not in '
                f'{constants.HF_HUB_CACHE!r}'
            )
        try:
            return self._download(self._prefix + name)
        except SourceError:
            raise
        except (ZooError, HfHubHTTPError, OSError, ValueError) as error:
            raise SourceError(f'{self.address}: {_reason(error)}') from error

    def _download(self, name):
        """Path of a file that is downloaded to the library's cache; None if the hub lacks it."""
        library = _library()
        url = library.hf_hub_url(self.name, name, revision=self.revision)
        home = os.path.join(constants.HF_HUB_CACHE, f'models--{self.name.replace("/", "--")}')
        try:
            _check_connection(constants.ENDPOINT)
            about = library.get_hf_file_metadata(url, timeout=constants.HF_HUB_ETAG_TIMEOUT)
        except EntryNotFoundError as error:
            commit = error.response.headers.get(constants.HUGGINGFACE_HEADER_X_REPO_COMMIT)
            if commit is not None:  # remembered, as the library does
                with atomic_write(self._pointer(home, '.no_exist', commit, name)):
                    pass
            return None
        except HfHubHTTPError:
            raise
        except Exception as error:  # of requests or httpx, by the library's version
            raise SourceError(f'{constants.ENDPOINT}: {reason_of(error)}') from error
        pointer = self._pointer(home, 'snapshots', about.commit_hash, name)
        blob = os.path.join(home, 'blobs', _hexadecimal(about.etag, 'ETag'))
        location, headers = urljoin(url, about.location), library.utils.build_hf_headers()
        if url.startswith('https:') and not location.startswith('https:'):
            raise ValueError(f'it redirects to {location:.200}, which is not https')
        if urlsplit(location).netloc != urlsplit(url).netloc:
            headers.pop('authorization', None)  # for the hub alone
        download(location, blob, headers=headers)
        try:
            os.symlink(os.path.relpath(blob, os.path.dirname(pointer)), pointer)
        except FileExistsError:
            pass
        except OSError:  # of Windows, or of a disk without links
            shutil.copyfile(blob, pointer)
        return pointer

    def _pointer(self, home, folder, commit, name):
        """Where a file of a commit is in the cache, whose branch or tag is noted."""
        _hexadecimal(commit, constants.HUGGINGFACE_HEADER_X_REPO_COMMIT)
        revision = self.revision or constants.DEFAULT_REVISION
        pointer = os.path.join(home, folder, commit, *name.split('/'))
        note = os.path.join(home, 'refs', *revision.split('/'))
        if '..' in (*name.split('/'), *revision.split('/')):
            raise ValueError(f'{name!r} of {revision!r} would lie outside its folder')
        for path in (pointer, note):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        if revision != commit:
            with atomic_write(note) as file:
                file.write(commit)
        return pointer


def upload(folder, repo_id, names=None, private=None, token=None, commit_message=None):
    """Upload a folder's files to the hub; returns the address of the commit.

    Parameters
    ----------
    repo_id : str
        ``owner/name``, or a name of one's own; it is made if the hub lacks it.
    names : list of str, optional
        Of the files to upload; default: all.
    private : bool, optional
        Whether others can't see a new repository; default: what the owner has set.
    token : str, optional
        Default: HF_TOKEN, or that of ``hf auth login``.
    commit_message : str, optional
    """
    options = {} if private is None else {'private': private}
    try:
        _check_connection(constants.ENDPOINT)
        hub = _library().HfApi(constants.ENDPOINT, token=token)
        made = hub.create_repo(repo_id, exist_ok=True, **options)
        return hub.upload_folder(
            repo_id=made.repo_id, folder_path=folder, allow_patterns=names,
            commit_message=commit_message,
        ).commit_url  # fmt: skip
    except Exception as error:  # of requests or httpx, by the library's version
        status = getattr(getattr(error, 'response', None), 'status_code', None)
        hint = ''
        if status in (401, 403) or isinstance(error, LocalTokenNotFoundError):
            hint = '; give a `token` that may write, set HF_TOKEN, or run hf auth login'
        raise InputError(
            f'{repo_id!r} is not uploaded to {constants.ENDPOINT}: {_reason(error)}{hint}'
        ) from error


@functools.lru_cache(maxsize=None)  # of what can be reached
def _check_connection(url):
    """Raise the error of a server that can't be reached, which the library asks for 23 seconds."""
    try:
        requests.head(url, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except requests.RequestException as error:
        if is_final(error):
            raise


def _hexadecimal(text, name):
    """`text` if it is a checksum or a commit: it becomes the name of a file."""
    if not _DIGEST.fullmatch(text or ''):
        raise ValueError(f'its {name} is {text!r:.80}, neither 40 nor 64 hexadecimal digits')
    return text


def _is_bpe(vocab):
    return os.path.basename(vocab) in BPE_NAMES


def _reason(error):
    """Why a download failed, in one line."""
    cause = error.__cause__ or error
    if isinstance(cause, requests.ConnectionError):
        return reason_of(cause)
    if isinstance(cause, OSError) and cause.strerror:
        return f'{cause.filename or "cannot write"}: {cause.strerror}'
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0] if lines else type(cause).__name__


def _parts(weights):
    """Paths of the files that an index of weights names, or the path of another file itself."""
    if not weights.endswith(_INDEX):
        return [weights]
    try:
        index = read_json(weights, 'the index', {'weight_map': Dict[str, str]})
    except InputError as error:
        raise SourceError(f'{error}; copy or download it again') from error
    names = sorted(set(index['weight_map'].values()))
    return [os.path.join(os.path.dirname(weights), os.path.basename(name)) for name in names]


def _verify(weights):
    """Raise SourceError if the weights aren't the hub's."""
    for path in _parts(weights):
        blob = os.path.realpath(path)
        digest = os.path.basename(blob)
        if re.fullmatch('[0-9a-f]{64}', digest):
            mismatch = Checksum('sha256', digest).mismatch(blob)
            if mismatch:
                os.remove(blob)
                raise SourceError(
                    f'{path!r} is damaged: {mismatch}; it has been removed, try again'
                )
