"""The Hugging Face hub, through its library: whose cache, variables and revisions these are."""

import os
import posixpath
import warnings

from ..checkpoint.readers import CONFIG_NAMES, weights_in_folder
from ..errors import reporting
from .download import SourceError, check_hash
from .files import (
    BESIDE_VOCAB,
    BPE_NAMES,
    GENERATION_CONFIG,
    MODULES_NAME,
    SENTENCE_CONFIGS,
    VOCAB_NAMES,
    files_in_folder,
    modules_in_folder,
)

with warnings.catch_warnings():
    # that progress bars are plain ones in a notebook without ipywidgets
    warnings.filterwarnings('ignore', 'IProgress not found')
    from huggingface_hub import HfApi, constants, snapshot_download

__all__ = ['cached', 'fetch', 'fetch_file', 'find']

_OF_SENTENCES = (*SENTENCE_CONFIGS, MODULES_NAME, 'config_sentence_transformers.json')
_SMALL = (*BESIDE_VOCAB, *VOCAB_NAMES, *BPE_NAMES.values(), GENERATION_CONFIG, *_OF_SENTENCES)
#: kind of weights -> the parts of several files, and the file that completes them
_WEIGHTS = (
    (['model-*.safetensors'], ['model.safetensors', 'model.safetensors.index.json']),
    (['pytorch_model-*.bin'], ['pytorch_model.bin', 'pytorch_model.bin.index.json']),
    ([], ['model.params']),
)


def find(entry, weights, check, is_here):
    """Return the files of `entry`, from the library's cache or downloaded to it.

    If the cache lacks the commit of the catalogue, but has the branch, that will do.
    """
    if entry.hub is None:
        raise SourceError('it does not have these weights')
    if is_here:
        folder = cached(entry.hub, entry.hub_revision, weights) or cached(entry.hub, None, weights)
        if folder is None:
            raise SourceError(f'{entry.hub} is not in {constants.HF_HUB_CACHE!r}')
    else:
        folder = fetch(entry.hub, entry.hub_revision, weights)
    files = files_in_folder(folder)
    if weights and check and entry.hub_sha256:
        check_hash(files.weights, f'sha256:{entry.hub_sha256}', 'remove it and try again')
    return files


def cached(name, revision=None, weights=True):
    """Return a repository's folder in the library's cache; None if that lacks files of it."""
    try:
        return _get_model(name, revision, weights, True)
    except SourceError:
        return None


def fetch(name, revision=None, weights=True):
    """Return a repository's folder in the library's cache; missing files are downloaded.

    What the cache has is used: the hub isn't asked for a newer version of a branch.
    """
    folder = cached(name, revision, weights)
    if folder is None:
        # asked first: without a connection the library tries for long to list a commit's files
        _ask(HfApi(constants.ENDPOINT).model_info, name, revision)
        folder = _get_model(name, revision, weights, False)
    return folder


def fetch_file(name, file):
    """Return the path of any file of a repository, downloaded where the cache lacks it."""
    folder = _ask(snapshot_download, name, None, allow_patterns=[file])
    path = os.path.join(folder, file)
    if not os.path.isfile(path):
        raise SourceError(f'{_address(name, None)} has no {file}')
    return path


def _get_model(name, revision, weights, local):
    """Return the folder of a model.

    A broken download leaves some of the files, and another program's cache may lack others.
    So the file that completes the model comes last.
    """
    patterns = []

    def get(names, *paths):
        patterns.extend(posixpath.join(path, name) for path in paths for name in names)
        options = {'allow_patterns': patterns, 'local_files_only': local}
        return _ask(snapshot_download, name, revision, **options)

    def get_weights(path):
        """Get the first kind of weights that there is."""
        for parts, last in _WEIGHTS:
            if parts:
                get(parts, path)
            if weights_in_folder(os.path.join(get(last, path), path)):
                return True
        return False

    folder, modules = get(_SMALL, ''), []
    if os.path.isfile(os.path.join(folder, MODULES_NAME)):
        modules = modules_in_folder(folder)
    if modules:
        get([*_SMALL, 'config.json'], *(module.path for module in modules if module.path))
    folder = get(CONFIG_NAMES, '')
    files = files_in_folder(folder)
    places = [modules[0].path if modules else '']
    places += [module.path for module in modules if module.kind == 'Dense']
    if not (files.config and files.vocab and (not weights or all(map(get_weights, places)))):
        raise SourceError(f'{_address(name, revision)} lacks weights, configuration or vocabulary')
    return folder


def _ask(method, name, revision, **options):
    # errors of the library, requests or httpx
    with reporting(_address(name, revision), error_class=SourceError, errors=Exception):
        return method(name, revision=revision, **options)


def _address(name, revision):
    return f'{constants.ENDPOINT}/{name}' + (f' ({revision})' if revision else '')
