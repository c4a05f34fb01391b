"""Transformer-XL's parameter names in other programs, as reversible tables."""

import functools

import numpy as np

from model_zoo.checkpoint.mapping import Mapping, Padded, Rule, Transposed
from model_zoo.errors import CheckpointError

__all__ = ['transfo_xl_mappings']

_NORM = (('gamma', 'weight'), ('beta', 'bias'))


class _SplitMapping(Mapping):
    """A `Mapping` with tensors of theirs that are several of ours, one behind the other.

    Parameters
    ----------
    *args, **kwargs
        See `Mapping`; the rules have a name of `splits` in place of ours.
    splits : dict of str to dict of str to int
        Name in the rules -> our names and their numbers of rows; 0 rows stand for one without
        that axis.
    constants : dict of str to numpy.ndarray
        What is written to files besides, by its full name, and only to those of a whole task.
    """

    def __init__(self, *args, splits, constants=None, **kwargs):
        super().__init__(*args, **kwargs)
        self._splits = splits
        self._constants = constants or {}

    def load(self, tensors, config):
        found, unknown = super().load(tensors, config)
        for name, parts in self._splits.items():
            if name not in found:
                continue
            whole, start = found.pop(name), 0
            if len(whole) != sum(rows or 1 for rows in parts.values()):
                raise CheckpointError(
                    f'the tensor for {", ".join(parts)} has shape {whole.shape}, whose first axis '
                    f'must be {sum(rows or 1 for rows in parts.values())}'
                )
            for part, rows in parts.items():
                found[part] = whole[start : start + rows] if rows else whole[start]
                start += rows or 1
        return found, unknown

    def save(self, tensors, config, with_prefix):
        tensors = dict(tensors)
        for name, parts in self._splits.items():
            if all(part in tensors for part in parts):
                arrays = [
                    tensors.pop(part) if rows else tensors.pop(part)[None]
                    for part, rows in parts.items()
                ]
                tensors[name] = np.concatenate(arrays)
        result = super().save(tensors, config, with_prefix)
        return {**result, **self._constants} if with_prefix else result


def _cell_rules(i, theirs, names, transposed):
    """Rules of layer `i`: `names` are of its parts, `transposed` whether kernels are."""
    ours = f'layers.{i}'
    attention, norm, relative, proj, ffn_norm, ffn_1, ffn_2 = (f'{theirs}{name}' for name in names)
    weight, kernel = ('kernel', Transposed) if transposed else ('weight', lambda then: then)
