"""TensorFlow's checkpoints, through TensorFlow itself.

A checkpoint is a group of files, ``NAME.index`` and ``NAME.data-00000-of-00001``; the first one
stands for it here. A file ``checkpoint`` next to them names the newest one in the folder.
"""

import logging
import os
import re

import numpy as np

from ..errors import CheckpointError, MissingExtraError
from ..util.files import atomic_write, make_writable_dir
from .arrays import as_weights, from_bfloat16

__all__ = ['is_tensorflow', 'newest_checkpoint', 'read_tensorflow', 'write_tensorflow']

_TABLE = b'\x57\xfb\x80\x8b\x24\x75\x47\xdb'  # the end of a table file, as the index is one
_INDEX = '.index'


def is_tensorflow(tail):
    """Whether a file that ends with the bytes `tail` is the index of a checkpoint."""
    return tail.endswith(_TABLE)


def newest_checkpoint(folder):
    """The index of the checkpoint in `folder`: the one that the file ``checkpoint`` names.

    Parameters
    ----------
    folder : str

    Returns
    -------
    str or None
        None if there is no checkpoint, or if there are several and no file says which one to use.
    """
    try:
        with open(os.path.join(folder, 'checkpoint'), encoding='utf-8') as file:
            named = re.search(r'^model_checkpoint_path: "(.+)"', file.read(4096), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        named = None
    if named:
        path = os.path.join(folder, os.path.basename(named.group(1)) + _INDEX)
        if os.path.isfile(path):
            return path
    try:
        found = [name for name in os.listdir(folder) if name.endswith(_INDEX)]
    except OSError:
        return None
    return os.path.join(folder, found[0]) if len(found) == 1 else None


def _import_tensorflow():
    # it writes of the processor's instructions at every start
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
    try:
        import tensorflow
    except ImportError as error:
        raise MissingExtraError.of('tensorflow', 'tensorflow') from error
    logging.getLogger('tensorflow').setLevel(logging.ERROR)
    return tensorflow


def read_tensorflow(path):
    """Read a checkpoint's variables.

    Parameters
    ----------
    path : str
        Of its index.

    Returns
    -------
    tensors : dict of str to numpy.ndarray
        float16 and bfloat16 become float32. Strings are left out: TensorFlow 2 stores in them what
        isn't a variable.
    metadata : dict
        Empty.

    Raises
    ------
    MissingExtraError
        If TensorFlow isn't installed.
    CheckpointError
        If a file is missing or damaged.
    """
    tensorflow = _import_tensorflow()
    prefix = path[: -len(_INDEX)] if path.endswith(_INDEX) else path
    try:
        reader = tensorflow.train.load_checkpoint(prefix)
        types = reader.get_variable_to_dtype_map()
        names = sorted(name for name, dtype in types.items() if dtype != tensorflow.string)
        tensors = {name: _as_array(reader.get_tensor(name)) for name in names}
    except Exception as error:  # a damaged file's error depends on where it is damaged
        lines = (getattr(error, 'message', None) or str(error)).splitlines()
        raise CheckpointError(
            f'{prefix!r} cannot be read ({lines[0] if lines else type(error).__name__}): its files '
            'are damaged, or its data files are not beside the index; copy or download them again'
        ) from error
    return as_weights(tensors), {}


def _as_array(value):
    value = np.asarray(value)
    if value.dtype.name == 'bfloat16':  # TensorFlow's own type
        return from_bfloat16(value.view(np.uint16))
    return value


def write_tensorflow(path, tensors):
    """Write a checkpoint, and the file ``checkpoint`` that names it.

    Parameters
    ----------
    path : str
        Of its index.
    tensors : dict of str to numpy.ndarray

    Raises
    ------
    MissingExtraError
        If TensorFlow isn't installed.
    InputError
        If the files can't be written.
    """
    tensorflow = _import_tensorflow()
    folder, name = os.path.split(path)
    make_writable_dir(folder or '.')
    name = name[: -len(_INDEX)]
    data = f'{name}.data-00000-of-00001'
    with atomic_write(path, mode=None) as index, atomic_write(
        os.path.join(folder, data), mode=None
    ) as values:
        temporary = index + '.new'  # the prefix of what TensorFlow writes
        parts = [temporary + _INDEX, temporary + data[len(name) :]]
        v1 = tensorflow.compat.v1
        try:
            with tensorflow.Graph().as_default(), v1.Session() as session:
                inputs = [v1.placeholder(array.dtype, array.shape) for array in tensors.values()]
                save = tensorflow.raw_ops.SaveV2(
                    prefix=temporary,
                    tensor_names=list(tensors),
                    shape_and_slices=[''] * len(tensors),
                    tensors=inputs,
                )
                session.run(save, dict(zip(inputs, tensors.values())))
            for part, target in zip(parts, (index, values)):
                os.replace(part, target)
        except tensorflow.errors.OpError as error:
            raise OSError(error.message) from error
        finally:
            for part in filter(os.path.exists, parts):
                os.remove(part)
    with atomic_write(os.path.join(folder, 'checkpoint')) as file:
        file.write(f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n')
