"""The Hugging Face hub as a source of pretrained weights."""

import dataclasses
import os
import re
import warnings

import requests
from huggingface_hub import constants
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

from ..checkpoint.layouts import CONFIG_NAMES
from ..util.files import read_json
from .download import TIMEOUT, Checksum, reason_of
from .files import BPE_NAMES, TOKENIZER_CONFIG, VOCAB_NAMES, files_in_folder, merges_beside
from .modules import MODULES_NAME, SENTENCE_CONFIGS, modules_in_folder
from .sources import Source, SourceError

__all__ = ['HubSource', 'Repository']

_INDEX = '.index.json'  # of weights in several files
_BESIDE_VOCAB = (TOKENIZER_CONFIG, 'special_tokens_map.json')


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
    HF_TOKEN work as that library documents; it downloads the files, locks and resumes.
    Weights in its cache are used; the hub isn't asked for newer ones.
    """

    name = 'Hugging Face hub'

    def find(self, entry, root, vocab_only=False):
        if entry.hub is None:
            raise SourceError('it does not have these weights')
        repository = Repository(entry.hub)
        files = repository.cached(vocab_only)
        if files is None:
            files = files_in_folder(repository.fetch(not vocab_only))
            if vocab_only:
                files = dataclasses.replace(files, weights=None)
        elif not vocab_only:
            _verify(files.weights)
        return files

    def is_local(self, entry, root):
        return entry.hub is not None and Repository(entry.hub).cached() is not None


class Repository:
    """One model of the hub.

    Parameters
    ----------
    name : str
        ``'owner/name'``, or the name alone of those that have no owner.
    revision : str, optional
        A branch, a tag or a commit.
    """

    def __init__(self, name, revision=None):
        self.name, self.revision = name, revision
        self.address = f'{constants.ENDPOINT}/{name}' + (f' ({revision})' if revision else '')
        self._is_reached = constants.HF_HUB_OFFLINE
        self._prefix = ''  # folder of the transformer, with a slash

    def cached(self, vocab_only=False):
        """The model's files in the library's cache; None if they aren't complete."""
        config = self._in_cache('config.json')
        if not isinstance(config, str):
            return None
        files = files_in_folder(os.path.dirname(config))
        if files.vocab is None or (_is_bpe(files.vocab) and not merges_beside(files.vocab)):
            return None
        if vocab_only:
            return dataclasses.replace(files, weights=None)
        complete = files.weights and all(map(os.path.isfile, _parts(files.weights)))
        return files if complete else None

    def fetch(self, weights=True, vocab=True):
        """Download what the cache lacks.

        Parameters
        ----------
        weights, vocab : bool
            Whether they are needed.

        Returns
        -------
        str
            The folder with the files.

        Raises
        ------
        SourceError
            If the hub can't be reached, or lacks a file.
        """
        root = self._fetch_modules(weights)
        config = self._first(CONFIG_NAMES)
        if config is None:
            raise self._lacks('no config.json')
        if vocab:
            # it is small: what it lacks shows before the weights are fetched
            for name in _BESIDE_VOCAB:
                self._get(name)
            self._fetch_vocab()
        if weights:
            _verify(self._fetch_weights())
        return root or os.path.dirname(config)

    def _fetch_modules(self, weights):
        """The parts behind the transformer of a model of sentence-transformers.

        Returns its folder, or None for other models.
        """
        path = self._get(MODULES_NAME)
        if path is None:
            return None
        root = os.path.dirname(path)
        first, *others = modules_in_folder(root)
        if weights:
            self._get('config_sentence_transformers.json')
            for module in others:
                self._prefix = f'{module.path}/'
                self._get('config.json')
                if module.kind == 'Dense':
                    _verify(self._fetch_weights())
        self._prefix = f'{first.path}/' if first.path else ''
        for name in SENTENCE_CONFIGS if weights else ():
            self._get(name)
        return root

    def file(self, name):
        """Path of any other of its files, downloaded where the cache lacks it.

        Parameters
        ----------
        name : str

        Raises
        ------
        SourceError
            If the hub can't be reached, or hasn't the file.
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
        names = ['model.safetensors', 'pytorch_model.bin']
        names = [each for name in names for each in (name, name + _INDEX)]
        path = self._first(names)
        if path is None:
            raise self._lacks(f'none of {", ".join(names)}')
        for part in _parts(path):
            if self._get(os.path.basename(part)) is None:
                raise self._lacks(f'no {os.path.basename(part)}')
        return path

    def _first(self, names):
        """Path of the first of the files that the repository has, or None."""
        found = map(self._get, names)
        return next((path for path in found if path is not None), None)

    def _in_cache(self, name):
        """Path of a file in the cache, None if it isn't there, or a mark that the hub has none."""
        return _library().try_to_load_from_cache(self.name, name, revision=self.revision)

    def _get(self, name):
        """Path of a file, downloaded where the cache lacks it; None if the hub doesn't have it."""
        path = self._in_cache(self._prefix + name)
        if path is not None:
            return path if isinstance(path, str) else None
        if not self._is_reached:
            _reach()
            self._is_reached = True
        try:
            return _library().hf_hub_download(
                self.name, self._prefix + name, revision=self.revision
            )
        except LocalEntryNotFoundError as error:
            if constants.HF_HUB_OFFLINE:
                if name != 'config.json' or self._prefix:
                    return None  # as far as one can tell
                raise SourceError(
                    f'HF_HUB_OFFLINE is set, and {name} of {self.name} is not in '
                    f'{constants.HF_HUB_CACHE!r}'
                ) from error
            raise SourceError(f'{self.address}: {_reason(error)}') from error
        except EntryNotFoundError:
            return None
        except (HfHubHTTPError, OSError, ValueError) as error:
            raise SourceError(f'{self.address}: {_reason(error)}') from error


def _is_bpe(vocab):
    return os.path.basename(vocab) in BPE_NAMES


def _reach():
    """Raise SourceError if the hub can't be reached; the library alone would try for 20 s."""
    try:
        requests.head(constants.ENDPOINT, timeout=TIMEOUT)
    except requests.RequestException as error:
        raise SourceError(f'{constants.ENDPOINT}: {reason_of(error)}') from error


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
        names = set(read_json(weights)['weight_map'].values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f'{weights!r} is damaged: {error}') from error
    return [os.path.join(os.path.dirname(weights), os.path.basename(name)) for name in names]


def _verify(weights):
    """Raise SourceError if the weights aren't the hub's.

    The library calls a large file in its cache by the sha256 that the hub gives for it, and does
    not compare. A damaged one is removed, so that it is downloaded anew the next time.
    """
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
