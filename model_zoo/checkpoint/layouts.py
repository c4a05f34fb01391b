"""Other programs' directories of weights: names of files, formats, and tables of names."""

import dataclasses
import os
from typing import Callable

from .numpy_files import write_numpy
from .safetensors_file import write_safetensors
from .tensorflow_file import newest_checkpoint, write_tensorflow
from .torch_archive import write_archive

__all__ = [
    'CONFIG_NAMES',
    'FORMATS',
    'LAYOUTS',
    'Layout',
    'WEIGHTS_NAMES',
    'weights_in_folder',
]

#: format -> names of files that have weights by themselves; the first that is there is taken
_FILES = {
    'native': ('model.params',),
    'huggingface': ('model.safetensors', 'model.safetensors.index.json'),
    'pytorch': ('pytorch_model.bin', 'pytorch_model.bin.index.json'),
    'numpy': ('params_shapes.json',),
    'tensorflow': (),  # its files' names differ: see `newest_checkpoint`
}
#: kinds of files of weights that are looked for in a folder
FORMATS = tuple(_FILES)
#: names of files of weights, in the order in which they are looked for
WEIGHTS_NAMES = tuple(name for names in _FILES.values() for name in names)
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
