"""Every kind of file that the project reads, damaged."""

import dataclasses
import functools
import hashlib
import importlib.util
import os
import shutil
import types
from typing import Callable, Dict, Optional

import mxnet as mx
import numpy as np
import originals
from containers import (
    damage_npy,
    damage_npz,
    damage_pickle,
    damage_safetensors,
    damage_table,
    damage_tar,
    damage_tfrecord,
    damage_tokenizer,
    damage_torch_stream,
    damage_torch_zip,
    damage_zip,
)
from damage import damage_bytes, damage_json, damage_lines, damage_protobuf
from readings import READINGS
from target import CHANGED, RIGHT, Target, Unequal

__all__ = ['digest', 'targets']

DAMAGES = {
    'bytes': damage_bytes, 'lines': damage_lines, 'json': damage_json,
    'protobuf': damage_protobuf, 'safetensors': damage_safetensors, 'npy': damage_npy,
    'npz': damage_npz, 'zip': damage_zip, 'torch zip': damage_torch_zip,
    'torch stream': damage_torch_stream, 'pickle': damage_pickle, 'table': damage_table,
    'tfrecord': damage_tfrecord, 'tar': damage_tar,
    'tokenizer': damage_tokenizer,
}  # fmt: skip


def digest(value):
    """A hash of all that a value holds."""
    made = hashlib.sha256()
    _add(made, value, 0)
    return made.hexdigest()


def _add(made, value, depth):
    made.update(type(value).__name__.encode())
    if depth > 60:
        return
    below = functools.partial(_add, made, depth=depth + 1)
    if isinstance(value, mx.nd.NDArray):
        value = value.asnumpy()
    if isinstance(value, np.ndarray):
        made.update(f'{value.dtype}{value.shape}'.encode())
        if value.dtype == object:
            for each in value.flat:
                below(each)
        else:
            made.update(np.ascontiguousarray(value))
    elif isinstance(value, mx.gluon.Block):
        below({name: each.data() for name, each in
               value._collect_params_with_prefix().items()})  # fmt: skip
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            made.update(repr(key).encode())
            below(value[key])
    elif isinstance(value, (list, tuple)):
        for each in value:
            below(each)
    elif isinstance(value, types.SimpleNamespace) or dataclasses.is_dataclass(value):
        below(vars(value))
    elif value is None or isinstance(value, (bool, int, float, str, bytes, set, frozenset)):
        made.update(repr(sorted(value) if isinstance(value, (set, frozenset)) else value).encode())
    else:
        below(getattr(value, '__dict__', {}))


@dataclasses.dataclass(frozen=True)
class _Files:
    """A reader, and the files that it takes.

    Parameters
    ----------
    make : callable
        ``make(folder)`` writes them.
    damages : dict of str to str
        Name of a file -> the kind of its damage.
    read : callable
        ``read(folder)`` returns what is in them.
    sealed : bool
        Whether checksums tell every change.
    theirs : callable, optional
        ``theirs(folder)``: what another program reads.
    """

    make: Callable
    damages: Dict[str, str]
    read: Callable
    sealed: bool = False
    theirs: Optional[Callable] = None

    def prepare(self, folder):
        source = folder / 'original'
        if source.exists():
            shutil.rmtree(source)
        source.mkdir()
        self.make(source)
        expected = digest(self.read(source))
        if digest(self.read(source)) != expected:
            raise Unequal(f'{source}: read twice, it is not the same')
        return source, expected

    def attempt(self, shared, rng, folder):
        source, _ = shared
        for path in source.rglob('*'):
            target = folder / path.relative_to(source)
            if path.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(path, target)
        name = rng.choice(sorted(self.damages))
        data = (source / name).read_bytes()
        damaged = data
        while damaged == data:
            damaged = DAMAGES[self.damages[name]](data, rng)
        (folder / name).unlink()
        (folder / name).write_bytes(damaged)
        return self.judge(shared, folder)

    def judge(self, shared, folder):
        value = self.read(folder)
        if digest(value) == shared[1]:
            return RIGHT
        if self.sealed:
            raise Unequal('a change that checksums tell was read as other data')
        if self.theirs is not None:
            try:
                other = self.theirs(folder)
            except Exception:  # it can't read that, which we may
                return CHANGED
            if digest(other) != digest(value):
                raise Unequal('another program reads other data')
            return RIGHT
        return CHANGED


def targets():
    made = []
    for name, (make, damages, read, options) in READINGS.items():
        options = dict(options)
        needs = options.pop('needs', ())
        if all(importlib.util.find_spec(each) for each in needs):
            limits = {key: options.pop(key) for key in ('seconds', 'memory') if key in options}
            files = _Files(getattr(originals, make), damages, read, **options)
            made.append(
                Target(f'files/{name}', files.prepare, files.attempt, files.judge, **limits)
            )
    return made
