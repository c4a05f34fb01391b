"""How programs lay out a directory of weights: the files' names, formats, and tables of names."""

import dataclasses
import os
from typing import Callable

from .numpy_files import write_numpy
from .safetensors_file import write_safetensors
from .tensorflow_file import newest_checkpoint, write_tensorflow
from .torch_file import write_torch

__all__ = ['CONFIG_NAMES', 'LAYOUTS', 'Layout', 'WEIGHTS_NAMES', 'weights_in_folder']

#: names of files that have weights by themselves; the first that is there is taken
WEIGHTS_NAMES = (
    'model.params',
    'model.safetensors',
    'model.safetensors.index.json',
    'pytorch_model.bin',
    'pytorch_model.bin.index.json',
    'params_shapes.json',
)
#: names of configurations: ours and Hugging Face's, Google's of BERT, OpenAI's of GPT-2
CONFIG_NAMES = ('config.json', 'bert_config.json', 'hparams.json')


@dataclasses.dataclass(frozen=True)
class Layout:
    """A layout of other programs' that can be written.

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
    'pytorch': Layout('huggingface', 'pytorch_model.bin', write_torch),
    'tensorflow': Layout('tensorflow', 'model.ckpt.index', write_tensorflow),
    'numpy': Layout('numpy', 'params_shapes.json', write_numpy),
}


def weights_in_folder(folder, tensorflow=False):
    """Path of the file of weights in `folder`, for `read_tensors`.

    Parameters
    ----------
    folder : str
    tensorflow : bool
        Whether only a TensorFlow checkpoint is meant. By default it is taken where there is
        nothing else.

    Returns
    -------
    str or None
    """
    for name in () if tensorflow else WEIGHTS_NAMES:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return newest_checkpoint(folder)
