"""``modules.json``: of what a model of sentence-transformers consists, and where its parts are."""

import os
from typing import NamedTuple

from ..errors import InputError
from ..util.files import read_json

__all__ = [
    'MODULES_NAME',
    'Module',
    'SENTENCE_CONFIGS',
    'modules_in_folder',
    'transformer_folder',
]

#: name of the file
MODULES_NAME = 'modules.json'
#: names of the transformer's settings, of which a model has one
SENTENCE_CONFIGS = tuple(
    f'sentence_{name}_config.json' for name in ('bert', 'roberta', 'distilbert', 'xlm-roberta')
)


class Module(NamedTuple):
    """A part of a model.

    Attributes
    ----------
    kind : str
        Name of its class, such as 'Pooling'.
    path : str
        Of its folder, in that of the model; '' is the same.
    """

    kind: str
    path: str


def modules_in_folder(folder):
    """The parts of a model in the order in which they compute.

    Parameters
    ----------
    folder : str

    Returns
    -------
    list of Module
        Empty if it is no folder of sentence-transformers.

    Raises
    ------
    InputError
        If ``modules.json`` can't be read, or a part lies elsewhere.
    """
    path = os.path.join(folder, MODULES_NAME)
    if not os.path.isfile(path):
        return []
    content = read_json(path)
    try:
        modules = [Module(each['type'].rpartition('.')[2], each['path']) for each in content]
        parts = [part for each in modules for part in each.path.split('/')]
        ''.join(parts).encode()
    except (TypeError, KeyError, AttributeError, UnicodeEncodeError) as error:
        raise InputError(f'{path!r} is no list of modules with their types and paths') from error
    if {'..', '.'}.intersection(parts) or any(
        each.path.startswith('/') or set(each.path) & set('\\:\0') for each in modules
    ):
        raise InputError(f'{path!r} names a folder outside of its own')
    return modules


def transformer_folder(folder):
    """The folder of a model's transformer, which is the first part; usually the model's own."""
    modules = modules_in_folder(folder)
    return os.path.join(folder, modules[0].path) if modules and modules[0].path else folder
