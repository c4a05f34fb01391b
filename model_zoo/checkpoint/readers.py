"""Other programs' files of weights: their names in a folder, their formats, and what reads them."""

import contextlib
import dataclasses
import os
from typing import Callable

from ..errors import CheckpointError, InputError
from ..util.files import read_json
from .numpy_files import is_shapes, read_numpy, write_numpy
from .params import is_params, read_params
from .safetensors_file import is_safetensors, read_parts, read_safetensors, write_safetensors
from .sums import check_weights
from .tensorflow_file import is_tensorflow, newest_checkpoint, read_tensorflow, write_tensorflow
from .torch_file import is_torch, read_torch, write_archive

__all__ = [
    'CONFIG_NAMES', 'FORMATS', 'LAYOUTS', 'Layout', 'WEIGHTS_NAMES', 'read_tensors',
    'weights_in_folder',
]  # fmt: skip

#: format -> names of files that have weights by themselves; the first that is there is taken
_FILES = {
    'native': ('model.params',),
    'huggingface': ('model.safetensors', 'model.safetensors.index.json'),
    'pytorch': ('pytorch_model.bin', 'pytorch_model.bin.index.json'),
    'numpy': ('params_shapes.json',),
    # the names of its own differ: see `newest_checkpoint`; OpenAI's program of GPT is TensorFlow's
    'tensorflow': ('params_shapes.json',),
}
#: kinds of files of weights that are looked for in a folder
FORMATS = tuple(_FILES)
#: names of files of weights, in the order in which they are looked for
WEIGHTS_NAMES = tuple(dict.fromkeys(name for names in _FILES.values() for name in names))
#: names of configurations: ours and Hugging Face's, Google's of BERT, OpenAI's of GPT-2
CONFIG_NAMES = ('config.json', 'bert_config.json', 'hparams.json')


@dataclasses.dataclass(frozen=True)
class Layout:
    """Another program's layout that can be written.

    Parameters
    ----------
    mapping : str
        The name of the family's table of names in `ZooBlock.mappings`.
    weights : str
        Name of the file of weights.
    write : callable
        ``write(path, tensors)``.
    """

    mapping: str
    weights: str
    write: Callable


#: name of a format -> Layout
LAYOUTS = {
    'huggingface': Layout('huggingface', 'model.safetensors', write_safetensors),
    'pytorch': Layout('huggingface', 'pytorch_model.bin', write_archive),
    'pytorch_pretrained_bert': Layout('huggingface', 'pytorch_model.bin', write_archive),
    'tensorflow': Layout('tensorflow', 'model.ckpt.index', write_tensorflow),
    'numpy': Layout('numpy', 'params_shapes.json', write_numpy),
}


def weights_in_folder(folder, format=None):
    """Path of the file of weights in `folder`, for `read_tensors`.

    Parameters
    ----------
    folder : str
    format : str, optional
        One of `FORMATS`, to look only for its files. By default a TensorFlow checkpoint is used
        only if there is nothing else.

    Returns
    -------
    str or None
    """
    for name in WEIGHTS_NAMES if format is None else _FILES[format]:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return newest_checkpoint(folder) if format in (None, 'tensorflow') else None


def read_tensors(path):
    """Read a file of weights, whatever its format.

    Parameters
    ----------
    path : str or os.PathLike
        MXNet's ``.params``; safetensors; PyTorch's ``.bin``; the index of one of these in several
        parts; the index of a TensorFlow checkpoint (or their common name without ``.index``);
        ``params_shapes.json`` of OpenAI's NumPy files.

    Returns
    -------
    tensors : dict of str to numpy.ndarray
    metadata : dict
        The file's own metadata.

    Raises
    ------
    CheckpointError
        If the file is missing, damaged, refused, of an unknown format, or not that of the
        checksums beside it (``SHA256SUMS``).
    """
    path = os.fspath(path)
    if not os.path.exists(path) and os.path.isfile(path + '.index'):
        path += '.index'
    try:
        head, tail = _head_and_tail(path)
        check_weights(path)
        if is_params(head):
            return read_params(path)
        if is_safetensors(head):
            return read_safetensors(path)
        if is_torch(head):
            return read_torch(path)
        if is_tensorflow(tail):
            return read_tensorflow(path)
        if head.lstrip()[:1] in (b'[', b'{'):
            return _read_json(path)
    except OSError as error:
        raise CheckpointError(f'cannot read {path!r}: {error.strerror or error}') from error
    if not head.strip(b'\0'):
        raise CheckpointError(f'{path!r} is empty; copy or download the file again')
    hint = '; ONNX files are for other programs' if path.endswith('.onnx') else ''
    raise CheckpointError(
        f'{path!r} is none of the files of weights known here (.params, safetensors, PyTorch, '
        f'TensorFlow, OpenAI NumPy), or its start or end is damaged{hint}'
    )


def _read_json(path):
    """Read what a JSON file stands for: the parts of an index, or arrays of these shapes."""
    try:
        content = read_json(path)
    except InputError as error:
        raise CheckpointError(str(error)) from error
    if is_shapes(content):
        return read_numpy(path, content)
    if isinstance(content, dict) and 'weight_map' in content:
        return read_parts(path, content, _read_part)
    raise CheckpointError(
        f'{path!r} is neither an index of files of weights nor a list of shapes'
    )


def _read_part(path):
    """Read a file that an index names; another index, or the same, isn't one."""
    with contextlib.suppress(OSError):  # which `read_tensors` tells of
        if _head_and_tail(path)[0].lstrip()[:1] in (b'[', b'{'):
            raise CheckpointError(f'{path!r} is named by an index, and is no file of weights')
    return read_tensors(path)


def _head_and_tail(path):
    with open(path, 'rb') as file:
        head = file.read(16)
        file.seek(-min(8, os.fstat(file.fileno()).st_size), os.SEEK_END)
        return head, file.read(8)
