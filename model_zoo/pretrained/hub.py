"""The Hugging Face hub as a source of pretrained weights."""

import dataclasses
import json
import os
import re
import warnings

import requests
from huggingface_hub import constants
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

from .download import TIMEOUT, Checksum, reason_of
from .files import BPE_NAMES, TOKENIZER_CONFIG, VOCAB_NAMES, files_in_folder, merges_beside
from .sources import Source, SourceError

__all__ = ['HubSource']

_INDEX = '.index.json'  # of weights in several files


def _library():
    """huggingface_hub with its downloads, which are loaded here: few starts need them."""
    with warnings.catch_warnings():
        # that progress bars are plain ones in a notebook without ipywidgets
        warnings.filterwarnings('ignore', 'IProgress not found')
        import huggingface_hub.file_download
    return huggingface_hub


class HubSource(Source):
    """The Hugging Face hub, or what huggingface_hub has cached of it.

    The environment variables HF_ENDPOINT, HF_HOME (the folder of that cache), HF_HUB_OFFLINE and
    HF_TOKEN mean what they mean to that library, which downloads the files, locks and resumes.
    Weights that are in its cache are taken without asking whether there are newer ones.
    """

    name = 'Hugging Face hub'

    def find(self, entry, root, vocab_only=False):
        if entry.hub is None:
            raise SourceError('it does not have these weights')
        files = self._cached(entry.hub, vocab_only) or self._fetch(entry.hub, vocab_only)
        if not vocab_only:
            _verify(files.weights)
        return files

    def is_local(self, entry, root):
        return entry.hub is not None and self._cached(entry.hub) is not None

    @staticmethod
    def _cached(repository, vocab_only=False):
        """The files of `repository` in the library's cache; None if they aren't complete."""
        config = _library().try_to_load_from_cache(repository, 'config.json')
        if not isinstance(config, str):
            return None
        files = files_in_folder(os.path.dirname(config))
        if files.vocab is None or (_is_bpe(files.vocab) and not merges_beside(files.vocab)):
            return None
        if vocab_only:
            return dataclasses.replace(files, weights=None)
        complete = files.weights and all(map(os.path.isfile, _parts(files.weights)))
        return files if complete else None

    def _fetch(self, repository, vocab_only):
        if not constants.HF_HUB_OFFLINE:
            _reach()
        config = self._download(repository, 'config.json')
        if config is None:
            raise SourceError(f'{_address(repository)} has no config.json')
        self._download(repository, TOKENIZER_CONFIG)
        # the vocabulary is small: what it lacks shows before the weights are fetched
        vocab = self._first(repository, VOCAB_NAMES)
        if vocab is None:
            raise SourceError(f'{_address(repository)} has none of {", ".join(VOCAB_NAMES)}')
        if _is_bpe(vocab):
            merges = BPE_NAMES[os.path.basename(vocab)]
            if self._download(repository, merges) is None:
                raise SourceError(f'{_address(repository)} has no {merges}')
        weights = None if vocab_only else self._weights(repository)
        files = files_in_folder(os.path.dirname(config))
        return dataclasses.replace(files, weights=weights, vocab=vocab)

    def _weights(self, repository):
        names = ['model.safetensors', 'pytorch_model.bin']
        names = [each for name in names for each in (name, name + _INDEX)]
        path = self._first(repository, names)
        if path is None:
            raise SourceError(f'{_address(repository)} has none of {", ".join(names)}')
        for part in _parts(path):
            if self._download(repository, os.path.basename(part)) is None:
                raise SourceError(f'{_address(repository)} lacks {os.path.basename(part)}')
        return path

    def _first(self, repository, names):
        """Path of the first of the files that the repository has, or None."""
        found = (self._download(repository, name) for name in names)
        return next((path for path in found if path is not None), None)

    @staticmethod
    def _download(repository, name):
        """Path of a file, downloaded where the cache lacks it; None if the hub doesn't have it."""
        try:
            return _library().hf_hub_download(repository, name)
        except LocalEntryNotFoundError as error:
            if constants.HF_HUB_OFFLINE:
                raise SourceError(
                    f'HF_HUB_OFFLINE is set, and {name} of {repository} is not in '
                    f'{constants.HF_HUB_CACHE!r}'
                ) from error
            raise SourceError(f'{_address(repository)}: {_reason(error)}') from error
        except EntryNotFoundError:
            return None
        except (HfHubHTTPError, OSError, ValueError) as error:
            raise SourceError(f'{_address(repository)}: {_reason(error)}') from error


def _is_bpe(vocab):
    return os.path.basename(vocab) in BPE_NAMES


def _reach():
    """Raise SourceError if the hub can't be reached, for which the library would try for 20 s."""
    try:
        requests.head(constants.ENDPOINT, timeout=TIMEOUT)
    except requests.RequestException as error:
        raise SourceError(f'{constants.ENDPOINT}: {reason_of(error)}') from error


def _address(repository):
    return f'{constants.ENDPOINT}/{repository}'


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
    """Paths of the files that an index of weights names; of other files, themselves."""
    if not weights.endswith(_INDEX):
        return [weights]
    try:
        with open(weights, encoding='utf-8') as file:
            names = set(json.load(file)['weight_map'].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f'{weights!r} is damaged: {error}') from error
    return [os.path.join(os.path.dirname(weights), os.path.basename(name)) for name in names]


def _verify(weights):
    """Raise SourceError if the weights aren't those of the hub.

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
