"""Files of weights: their names in a folder, their formats, what reads them, and their sums."""

import concurrent.futures
import contextlib
import os
import re
from collections.abc import Callable
from typing import NamedTuple

from ..errors import CheckpointError, reporting
from ..util.files import atomic_write
from ..util.reading import check_json, read_json, sha256_of
from .numpy_files import read_numpy
from .tensor_files import PARAMS_START, read_params, read_safetensors, write_safetensors
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
#: name of a file of weights -> how the names of its parts begin; an index's parts begin as it does
_PREFIXES = {'params_shapes.json': 'params_'}
#: names of configurations: of this project and Hugging Face, of Google's BERT, of OpenAI's GPT-2
CONFIG_NAMES = ('config.json', 'bert_config.json', 'hparams.json')


class Layout(NamedTuple):
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
}


def weights_in_folder(folder, format=None):
    """Find the file of weights in `folder`, for `read_tensors`."""
    for name in WEIGHTS_NAMES if format is None else _FILES[format]:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return newest_checkpoint(folder) if format in (None, 'tensorflow') else None


def read_tensors(path, has_index=True):
    """Read a file of weights, whatever its format.

    Parameters
    ----------
    path : str or os.PathLike
        MXNet's ``.params``; safetensors; PyTorch's ``.bin``; the index of one of these in several
        parts; the index of a TensorFlow checkpoint (or their common name without ``.index``);
        ``params_shapes.json`` of OpenAI's NumPy files.
    has_index : bool
        Whether it may be an index.

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
    folder, name = os.path.split(path)
    with reporting(f'cannot read {path!r}', error_class=CheckpointError), open(path, 'rb') as file:
        head = file.read(16)
        file.seek(-min(8, os.fstat(file.fileno()).st_size), os.SEEK_END)
        tail = file.read()
    check_sums(os.path.join(folder, SUMS), _PREFIXES.get(name, name.removesuffix('index')))
    if head.startswith(PARAMS_START):
        return read_params(path)
    if head[8:9] == b'{':  # a length, then JSON
        return read_safetensors(path)
    if is_torch(head):
        return read_torch(path)
    if is_tensorflow(tail):
        return read_tensorflow(path)
    if has_index and head.lstrip()[:1] in (b'[', b'{'):
        return _read_json(path)
    problem = f'{path!r} is no file of weights that is known here, or is damaged'
    raise CheckpointError(f'{problem}: copy or download it again')


def _read_json(path):
    """Read the parts of an index, or the arrays of a list of shapes."""
    problem = f'{path!r} is neither an index of files of weights nor a list of shapes'
    with reporting(problem, error_class=CheckpointError, errors=ValueError):
        content = read_json(path)
        has_shapes = isinstance(content, list)
        check_json(content, list[list[int]] if has_shapes else {'weight_map': dict[str, str]})
    if has_shapes:
        return read_numpy(path, content)
    result, metadata = {}, {}
    for name in sorted(set(content['weight_map'].values())):
        if not is_inside(name):
            raise CheckpointError(f'{path!r} names a file in another folder: {name!r:.80}')
        tensors, metadata = read_tensors(os.path.join(os.path.dirname(path), name), False)
        result.update(tensors)
    return result, metadata


def is_inside(name):
    """Return whether the name of a file, which another file has, is of one in its folder."""
    return not os.path.isabs(name) and '..' not in name.split('/') and f'{name} '.isprintable()


#: name of the checksums in a folder of a model, or of a checkpoint
SUMS = 'SHA256SUMS'
_LINE = re.compile(r'([0-9a-f]{64}) [ *](.+)')


def write_sums(path, files):
    """Write checksums of `files` beside `path`, as ``sha256sum --check`` reads them."""
    with concurrent.futures.ThreadPoolExecutor() as pool:  # a processor for each large file
        sums = [*pool.map(sha256_of, files)]
    _write(path, dict(zip(map(os.path.basename, files), sums)))


def read_sums(path):
    """Read a dict of files, relative to the folder of `path`, to their sha256.

    It is empty if there is no file at `path`.
    """
    if not os.path.exists(path):
        return {}
    cure = '; delete the file to skip the check'
    with reporting(f'cannot read the checksums {path!r}', cure, CheckpointError, Exception):
        with open(path, encoding='utf-8') as file:
            lines = [line for line in file.read().split('\n') if line]
        sums = {name: digest for digest, name in (_LINE.fullmatch(line).groups() for line in lines)}
        for name in sums:
            if not is_inside(name):
                raise ValueError(f'{name!r:.80} is not in its folder')
    return sums


def check_sums(path, prefix=''):
    """Raise CheckpointError if a file that the checksums at `path` name is missing or has changed.

    Only files whose names begin with `prefix` are checked.
    """
    for name, expected in read_sums(path).items():
        if not name.startswith(prefix):
            continue
        file = os.path.join(os.path.dirname(path), name)
        with reporting(f'cannot read {file!r} for its checksum', error_class=CheckpointError):
            found = sha256_of(file)
        if found != expected:
            raise CheckpointError(
                f'{file!r} is damaged: copy, download or export it again; if you changed it '
                f'yourself, delete {os.fspath(path)!r}'
            )


@contextlib.contextmanager
def kept_sums(folder, begin=False):
    """Bring a folder's `SUMS` up to date with files that are written in the block.

    The checksums are removed first and written last, so they never belong to other files, even if
    the process is killed. With `begin` they are written even if the folder had none.
    """
    path, files, sums = os.path.join(folder, SUMS), [], {}
    with contextlib.suppress(CheckpointError):  # damaged, or another program's
        sums = read_sums(path)
    if not sums and not begin:
        yield files
        return
    with reporting(f'cannot write {path!r}'), contextlib.suppress(FileNotFoundError):
        os.remove(path)
    yield files
    sums = {name: sum_ for name, sum_ in sums.items() if os.path.isfile(os.path.join(folder, name))}
    for file in map(os.fspath, files):
        name = os.path.relpath(file, folder).replace(os.sep, '/')
        if (begin or name in sums) and os.path.isfile(file):
            sums[name] = sha256_of(file)
    _write(path, sums)


def sums_path(path):
    """Return the path of an export's checksums.

    ``NAME-SHA256SUMS`` beside ``NAME-symbol.json``, ``NAME.onnx-SHA256SUMS`` beside ``NAME.onnx``.
    """
    return f'{path.removesuffix("-symbol.json")}-{SUMS}'


def weights_of(path):
    """List the files of a path of weights: itself, and the files that belong to it."""
    folder, name = os.path.split(path)
    prefix = _PREFIXES.get(name, name.removesuffix('index'))
    names = sorted(os.listdir(folder or '.'))
    return [os.path.join(folder, file) for file in names if file.startswith(prefix)]


def _write(path, sums):
    with atomic_write(path) as file:
        file.writelines(f'{sum_}  {name}\n' for name, sum_ in sums.items())
