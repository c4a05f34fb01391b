"""Whether two files hold the same, up to the rounding of their numbers."""

import json
import math
import re

import mxnet as mx
import numpy as np

__all__ = ['TOLERANCE', 'assert_keys', 'assert_same_file']

TOLERANCE = 1e-6
#: keys of what differs from run to run, or from version to version
_FREE = re.compile(
    r'(.*_)?seconds$|.*_per_second$|versions$|speedup$|resume$|resumed_after$'
)
_NUMBER = re.compile(r'-?\d+(?:\.\d+)?(?:e[+-]?\d+)?')


def assert_same_file(ours, recorded, tolerance=TOLERANCE, of_chance=None):
    """That a file holds what the recorded one does; of JSON, at least that.

    `of_chance` has the arrays whose gradient is 0 but for rounding, which differs between
    processors, and how far they may have gone.
    """
    where = str(recorded)
    if recorded.suffix == '.json':
        _same(_json(ours), _json(recorded), tolerance, where)
    elif recorded.suffix in ('.params', '.npz', '.safetensors', '.npy'):
        left, right = _arrays(ours), _arrays(recorded)
        assert left.keys() == right.keys(), where
        for name, array in right.items():
            if name in (of_chance or {}):
                assert np.abs(left[name]).max() <= of_chance[name], f'{where} {name}'
                continue
            _same_array(left[name], array, tolerance, f'{where} {name}')
    else:
        left, right = (path.read_text(encoding='utf-8') for path in (ours, recorded))
        assert _NUMBER.sub('#', left) == _NUMBER.sub('#', right), where
        numbers = [np.array(_NUMBER.findall(text), float) for text in (left, right)]
        _same_array(*numbers, max(tolerance, 2e-6), where)  # they are rounded to six digits


def assert_keys(value, keys, where):
    """That plain JSON has such keys; `keys` holds for each those below it."""
    if isinstance(value, list):
        found = [each for each in value if isinstance(each, (dict, list))]
        for key, below in keys.items():
            having = [each for each in found if isinstance(each, list) or key in each]
            assert having, f'{where}: {key} is gone'
            for each in having:
                assert_keys(each if isinstance(each, list) else each[key],
                            {key: below} if isinstance(each, list) else below, where)  # fmt: skip
        return
    for key, below in keys.items():
        assert key in value, f'{where}: {key} is gone'
        assert_keys(value[key], below, f'{where}/{key}')


def _json(path):
    return json.loads(path.read_text(encoding='utf-8'))


def _arrays(path):
    if path.suffix == '.params':
        return {name: array.asnumpy() for name, array in mx.nd.load(str(path)).items()}
    if path.suffix == '.safetensors':
        from safetensors.numpy import load_file

        return load_file(str(path))
    loaded = np.load(path, allow_pickle=False)
    return {'': loaded} if path.suffix == '.npy' else dict(loaded)


def _same_array(ours, wanted, tolerance, where):
    assert ours.shape == wanted.shape and ours.dtype == wanted.dtype, where
    if wanted.dtype.kind == 'f':
        np.testing.assert_allclose(ours, wanted, rtol=tolerance, atol=tolerance, err_msg=where)
    else:
        np.testing.assert_array_equal(ours, wanted, err_msg=where)


def _same(ours, wanted, tolerance, where):
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            assert key in ours, f'{where}: {key} is gone'
            if not _FREE.match(key):
                _same(ours[key], value, tolerance, f'{where}/{key}')
    elif isinstance(wanted, list):
        assert len(ours) == len(wanted), where
        for number, (left, right) in enumerate(zip(ours, wanted)):
            _same(left, right, tolerance, f'{where}/{number}')
    elif isinstance(wanted, float):
        same = math.isclose(ours, wanted, rel_tol=tolerance, abs_tol=tolerance)
        assert same, (where, ours, wanted)
    else:
        assert ours == wanted, (where, ours, wanted)
