"""Weights by our names, and the block that they fit."""

import logging
import os
from typing import NamedTuple

from ..checkpoint.arrays import plain_arrays
from ..checkpoint.readers import read_tensors
from ..checkpoint.sums import warn_of_changes
from ..errors import CheckpointError, InputError

__all__ = ['Weights', 'check_vocab', 'read_weights']

_log = logging.getLogger(__name__)


class Weights(NamedTuple):
    """A file of weights, by our canonical names.

    Attributes
    ----------
    path : str
    tensors : dict of str to numpy.ndarray
    unknown : list of str
        The file's names that mean nothing in the family.
    class_name : str or None
        Class of the block that the file says it was saved from.
    """

    path: str
    tensors: dict
    unknown: list
    class_name: str = None

    def has(self, part):
        """Whether there are parameters of a part, such as 'pooler'."""
        return any(name.startswith(f'{part}.') for name in self.tensors)


def read_weights(block_class, path, config):
    """Read a file of weights and translate its names.

    Parameters
    ----------
    block_class : type
        A class of blocks of the family.
    path : str or dict of str to array
        The file; or what it would hold, as `ZooBlock.load_state_dict` takes it.
    config : Config

    Returns
    -------
    Weights
    """
    if isinstance(path, dict):
        tensors, metadata, path = plain_arrays(path), {}, 'the state_dict'
    else:
        tensors, metadata = read_tensors(path)
        warn_of_changes(os.path.dirname(path))
    layers = getattr(config, 'num_layers', 0)  # not all families have layers
    if layers > len(tensors):  # before a name, let alone a block, is made for each
        raise CheckpointError(
            f'{path} does not fit the configuration: it holds {len(tensors)} arrays, too few for '
            f'{layers} layers'
        )
    try:
        found, unknown = block_class.translate(tensors, metadata, config)
    except CheckpointError as error:
        raise CheckpointError(f'{path}: {error}') from error
    return Weights(path, found, unknown, metadata.get('class'))


def check_vocab(size, config, name='the model'):
    """Raise InputError if a vocabulary of `size` tokens is larger than the embedding."""
    rows = config.embedding_rows
    if size > rows:
        raise InputError(
            f'the vocabulary does not fit: it has {size} tokens, and {name} {rows}'
        )


def classes_of(family, weights, config):
    """The classes of blocks that the files name, or all."""
    named = [weights.class_name, *(config.extras.get('architectures') or ())]
    return [each for each in family.blocks if each.__name__ in named] or family.blocks


def fit_block(classes, config, weights, options, ctx):
    """The block, of one of the classes, that the weights fit best; they must have all of it."""

    def misfit(block):
        missing, unused = block.compare(weights)
        # the weights of a head say what a model is for; every backbone may have a pooler
        return len(missing), sum(name.startswith('^') for name in unused), len(unused)

    blocks = (each(config, **open_parts(each, weights, options)) for each in classes)
    block = min(blocks, key=misfit)
    missing, unused = block.compare(weights)
    if missing:
        names = ', '.join(name.lstrip('^') for name in missing[:20])
        saved = weights.class_name or next(iter(config.extras.get('architectures') or ()), None)
        of = ''
        if saved not in (None, type(block).__name__):
            of = f'; it is the file of a {saved}: fine-tune it for this, or give one that was'
        raise CheckpointError(
            f'{weights.path} lacks parameters of a {type(block).__name__}: {names}{of}'
        )
    if unused:
        names = ', '.join(name.lstrip('^') for name in unused)
        _log.warning('%s: left out: %s', weights.path, names)
    used = {name: array for name, array in weights.tensors.items() if name not in unused}
    block.load_weights(weights._replace(tensors=used, unknown=[]), ctx)
    return block


def open_parts(block_class, weights, options):
    """`options` with the optional parts of a backbone that are open: those that there are."""
    if block_class.backbone is not None:
        return options
    wanted = {f'use_{part}': part for part in block_class.optional_parts}
    left_open = {name: part for name, part in wanted.items() if options.get(name) is None}
    return {**options, **{name: weights.has(part) for name, part in left_open.items()}}
