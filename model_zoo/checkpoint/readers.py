"""Files of weights: their names in a folder, their formats, what reads them, and their sums."""

import concurrent.futures
import contextlib
import dataclasses
import logging
import os
import re
from collections.abc import Callable

from ..errors import CheckpointError, reporting
from ..util.files import atomic_write
from ..util.reading import check_json, read_json, sha256_of
from .numpy_files import read_numpy, write_numpy
from .tensor_files import (
    PARAMS_START,
    is_safetensors,
    read_params,
    read_safetensors,
    write_safetensors,
)
from .tensorflow_file import is_tensorflow, newest_checkpoint, read_tensorflow, write_tensorflow
from .torch_file import is_torch, read_torch, write_torch

__all__ = ['SUMS', 'check_sums', 'read_sums', 'write_sums']


#: format -> names of files of weights, in the order in which they are looked for
_FILES = {
    'native': ('model.params',),
    'huggingface': ('model.safetensors', 'model.safetensors.index.json'),
    'pytorch': ('pytorch_model.bin', 'pytorch_model.bin.index.json'),
    'numpy': ('params_shapes.json',),
    # other names: see `newest_checkpoint`. OpenAI's program of GPT is written in TensorFlow
    'tensorflow': ('params_shapes.json',),
}
#: names of files of weights, in the order in which they are looked for
WEIGHTS_NAMES = tuple(dict.fromkeys(name for names in _FILES.values() for name in names))
#: names of configurations: of this project and Hugging Face, of Google's BERT, of OpenAI's GPT-2
CONFIG_NAMES = ('config.json', 'bert_config.json', 'hparams.json')


@dataclasses.dataclass(frozen=True)
class Layout:
    """Another program's layout that can be written."""

    mapping: str
    weights: str
    write: Callable


#: name of a format -> Layout
LAYOUTS = {
    'huggingface': Layout('huggingface', 'model.safetensors', write_safetensors),
    'pytorch': Layout('huggingface', 'pytorch_model.bin', write_torch),
    'pytorch_pretrained_bert': Layout('huggingface', 'pytorch_model.bin', write_torch),
    'tensorflow': Layout('tensorflow', 'model.ckpt.index', write_tensorflow),
    'numpy': Layout('numpy', 'params_shapes.json', write_numpy),
}


def weights_in_folder(folder, format=None):
    """Find the file of weights in `folder`, for `read_tensors`."""
    path = first_file(folder, WEIGHTS_NAMES if format is None else _FILES[format])
    if path is None and format in (None, 'tensorflow'):
        return newest_checkpoint(folder)
    return path


def first_file(folder, names):
    """Return the path of the first of the files that a folder has, or None."""
    paths = (os.path.join(folder, name) for name in names)
    return next(filter(os.path.isfile, paths), None)


def read_tensors(path, warns=False):
    """Read a file of weights, whatever its format.

    Parameters
    ----------
    path : str or os.PathLike
        MXNet's ``.params``; safetensors; PyTorch's ``.bin``; the index of one of these in several
        parts; the index of a TensorFlow checkpoint (or their common name without ``.index``);
        ``params_shapes.json`` of OpenAI's NumPy files.
    warns : bool
        Whether to warn of other files of the folder that were edited since the model was saved.

    Returns
    -------
    tensors : dict of str to numpy.ndarray
    metadata : dict
        The file's own metadata.

    Raises
    ------
    CheckpointError
        If the file is missing, damaged, refused, of an unknown format, or differs from its
        checksum in ``SHA256SUMS`` beside it.
    """
    path = os.fspath(path)
    if not os.path.exists(path) and os.path.isfile(path + '.index'):
        path += '.index'
    with reporting(f'cannot read {path!r}', error_class=CheckpointError):
        head, tail = _head_and_tail(path)
        folder, name = os.path.split(path)
        check_sums(os.path.join(folder, SUMS), _parts(name), warns)
        if head.startswith(PARAMS_START):
            return read_params(path)
        if is_safetensors(head):
            return read_safetensors(path)
        if is_torch(head):
            return read_torch(path)
        if is_tensorflow(tail):
            return read_tensorflow(path)
        if _is_json(head):
            return _read_json(path)
    if not head.strip(b'\0'):
        raise CheckpointError(f'{path!r} is empty; copy or download the file again')
    hint = '; ONNX files are for other programs' if path.endswith('.onnx') else ''
    raise CheckpointError(
        f'{path!r} is none of the files of weights known here (.params, safetensors, PyTorch, '
        f'TensorFlow, OpenAI NumPy), or its start or end is damaged{hint}'
    )


def _read_json(path):
    """Read the parts of an index, or the arrays of a list of shapes."""
    try:
        content = read_json(path)
        has_shapes = isinstance(content, list)
        check_json(content, list[list[int]] if has_shapes else {'weight_map': dict[str, str]})
    except ValueError as error:
        raise CheckpointError(
            f'{path!r} is neither an index of files of weights nor a list of shapes: {error}'
        ) from error
    return read_numpy(path, content) if has_shapes else _read_parts(path, content['weight_map'])


def _read_parts(path, files):
    """Read a checkpoint of several files from its index, a dict of tensors' names to `files`."""
    folder = os.path.dirname(path)
    result, metadata = {}, {}
    for name in sorted(set(files.values())):
        if os.path.basename(name) != name or not name.isprintable():
            raise CheckpointError(f'{path!r} names a file in another folder: {name!r:.80}')
        part = os.path.join(folder, name)
        with contextlib.suppress(OSError):  # `read_tensors` reports it
            if _is_json(_head_and_tail(part)[0]):  # an index, which may be this one
                raise CheckpointError(f'{path!r} names {part!r}, which is not a file of weights')
        tensors, metadata = read_tensors(part)
        lacking = [key for key, file in files.items() if file == name and key not in tensors]
        if lacking:
            raise CheckpointError(
                f'{part!r} lacks tensors that {path!r} lists: {", ".join(lacking[:20])}'
            )
        result.update(tensors)
    return result, metadata


def _is_json(head):
    return head.lstrip()[:1] in (b'[', b'{')


def _head_and_tail(path):
    with open(path, 'rb') as file:
        head = file.read(16)
        file.seek(-min(8, os.fstat(file.fileno()).st_size), os.SEEK_END)
        return head, file.read(8)


#: name of the checksums in a folder of a model, or of a checkpoint
SUMS = 'SHA256SUMS'
_LINE = re.compile(r'([0-9a-f]{64}) [ *](.+)')
_SMALL = 1 << 24  # bytes of a file that isn't weights
_LOG = logging.getLogger(__name__)


def write_sums(path, files):
    """Write checksums of `files` beside `path`, as ``sha256sum --check`` reads them."""
    with concurrent.futures.ThreadPoolExecutor() as pool:  # a processor for each large file
        sums = [*pool.map(_sum_of, files)]
    _write(path, dict(zip(map(os.path.basename, files), sums)))


def read_sums(path):
    """Read a dict of files, relative to the folder of `path`, to their sha256.

    It is empty if there is no file at `path`.
    """
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding='utf-8') as file:
            lines = [line for line in file.read().split('\n') if line]
        matches = [_LINE.fullmatch(line) for line in lines]
        if not all(matches):
            raise ValueError('a line is not a checksum with a name')
        sums = {match.group(2): match.group(1) for match in matches}
        for name in sums:
            if os.path.isabs(name) or '..' in name.split('/') or not name.isprintable():
                raise ValueError(f'{name!r:.80} is not in its folder')
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f'cannot read the checksums {path!r}: {error}; delete the file to skip the check'
        ) from error
    return sums


def check_sums(path, pattern=re.compile('.*'), warns=False):
    """Raise CheckpointError if a file that the checksums at `path` name is missing or has changed.

    Parameters
    ----------
    pattern : re.Pattern
        Only files whose names match it are checked.
    warns : bool
        Whether to warn of the other files, such as a configuration, that were edited.
    """
    folder, changed = os.path.dirname(path), []
    for name, expected in read_sums(path).items():
        file = os.path.join(folder, name)
        if not pattern.fullmatch(name):
            with contextlib.suppress(OSError):  # reading the file reports it
                if warns and os.path.getsize(file) <= _SMALL and sha256_of(file) != expected:
                    changed.append(name)
            continue
        with reporting(f'cannot check {file!r}, which {path!r} names', error_class=CheckpointError):
            if not os.path.isfile(file):
                raise FileNotFoundError(0, 'there is no such file')
            if sha256_of(file) == expected:
                continue
        raise CheckpointError(
            f'{file!r} is damaged or was changed: its checksum differs from {path!r}; copy or save '
            f'the file again, or delete {os.path.basename(path)} if you changed it yourself'
        )
    if changed:
        _LOG.warning(
            '%s: edited since the model was saved, by %s: %s', folder, SUMS, ', '.join(changed)
        )


@contextlib.contextmanager
def kept_sums(folder, begin=False):
    """Bring a folder's `SUMS` up to date with files that are written in the block.

    The checksums are removed first and written last, so they never belong to other files, even if
    the process is killed.
    """
    path, files = os.path.join(folder, SUMS), []
    try:
        sums = read_sums(path)
    except CheckpointError:  # damaged, or another program's
        sums = {}
        if not begin:
            yield files
            return
    if not sums and not begin:
        yield files
        return
    with reporting(f'cannot write {path!r}'), contextlib.suppress(FileNotFoundError):
        os.remove(path)
    yield files
    sums = {name: sum_ for name, sum_ in sums.items() if os.path.isfile(os.path.join(folder, name))}
    for file in map(os.fspath, files):
        name = os.path.relpath(file, folder).replace(os.sep, '/')
        if (begin or name in sums) and os.path.isfile(file) and not name.startswith('../'):
            sums[name] = _sum_of(file)
    _write(path, sums)


def sums_path(path):
    """Return the path of an export's checksums.

    ``NAME-SHA256SUMS`` beside ``NAME-symbol.json``, ``NAME.onnx-SHA256SUMS`` beside ``NAME.onnx``.
    """
    end = '-symbol.json'
    return f'{path[: -len(end)] if path.endswith(end) else path}-{SUMS}'


def weights_of(path):
    """List the files of a path of weights: itself, and the files that belong to it."""
    folder, name = os.path.split(path)
    with reporting(f'cannot read {folder!r}'):
        names = sorted(os.listdir(folder or '.'))
    return [os.path.join(folder, file) for file in names if _parts(name).fullmatch(file)]


def _parts(name):
    """Make a pattern of the names of files that belong to a file of weights."""
    if name == 'params_shapes.json':
        return re.compile(r'params_shapes\.json|parameters_names\.json|params_\d+\.npy')
    if name.endswith('.index'):
        return re.compile(re.escape(name[: -len('.index')]) + r'\.(index|data-\d+-of-\d+)')
    return re.compile(re.escape(name))


def _sum_of(path):
    with reporting(f'cannot read {path!r} for its checksum'):
        return sha256_of(path)


def _write(path, sums):
    with atomic_write(path) as file:
        file.writelines(f'{sum_}  {name}\n' for name, sum_ in sums.items())
