"""The import of MXNet 1.9.1: with a NumPy newer than 1.23, without what it rarely uses."""

import builtins
import contextlib
import ctypes
import functools
import importlib.util
import re
import sys
import types

__all__ = ['importing_mxnet', 'mend_gluonnlp']

# NumPy 2's way to write a scalar within a tuple
_SCALAR = re.compile(r'\bnp\.(?:(?:u?int|float|bool_?)\d*\((.*?)\)|(True|False)_)')


class _Later(types.ModuleType):
    """A module that is imported when one of its names is first used."""

    def __getattr__(self, name):
        return getattr(importlib.import_module(self.__name__), name)


def _instead_of(name, fromlist):
    """Return what MXNet gets for a slow library at import; None for the library itself.

    They would take half of its import's time. A few of its functions use ``scipy.stats`` and onnx.
    scikit-learn is only the base of the deprecated ``mx.model.FeedForward``, which does without.
    """
    if name == 'sklearn.base' and 'sklearn' not in sys.modules:
        raise ImportError(f'{name} is not loaded with MXNet')
    if name == 'scipy.stats' or (name == 'scipy' and fromlist == ('stats',)):
        return types.SimpleNamespace(stats=_Later('scipy.stats'))
    if name == 'onnx' and name not in sys.modules and importlib.util.find_spec(name):
        return _Later(name)
    return None


@contextlib.contextmanager
def importing_mxnet():
    """Within the context MXNet 1.9.1 finds what NumPy has removed since 1.24.

    MXNet's modules get a copy of the module ``numpy`` that has these names, too; ``numpy`` itself
    stays as it is. Libraries that MXNet rarely uses are loaded when it uses them.
    """
    import numpy
    from packaging.version import Version

    copy = _numpy_as_before()
    # Python 3.12 and later have no distutils
    versions = types.SimpleNamespace(LooseVersion=Version, StrictVersion=Version)
    usual = builtins.__import__

    def import_for_mxnet(name, globals=None, locals=None, fromlist=(), level=0):
        is_for_mxnet = globals is not None and globals.get('__name__', '').startswith('mxnet')
        if is_for_mxnet and level == 0:
            other = versions if name == 'distutils.version' else _instead_of(name, fromlist)
            if other is not None:
                return other
        module = usual(name, globals, locals, fromlist, level)
        return copy if is_for_mxnet and module is numpy else module

    builtins.__import__ = import_for_mxnet
    try:
        yield
    finally:
        builtins.__import__ = usual
    sys.modules['mxnet'].nd.NDArray.__array__ = _to_numpy
    if _is_numpy_2():
        _write_scalars_as_before()


def mend_gluonnlp():
    """Let `batchify.Pad` and fastText's hashes wrap integers, as before NumPy 2."""
    if not _is_numpy_2():
        return
    from gluonnlp.data.batchify import batchify
    from gluonnlp.vocab import subwords

    batchify.np = _numpy_as_before()
    if isinstance(subwords._fasttext_hash, types.FunctionType):  # numba's wraps by itself
        int8 = functools.partial(_numpy_as_before().array, dtype='int8')
        subwords.np = types.SimpleNamespace(**{**vars(subwords.np), 'int8': int8})


def _is_numpy_2():
    import numpy

    return numpy.lib.NumpyVersion(numpy.__version__) >= '2.0.0'


@functools.cache
def _numpy_as_before():
    """Return a copy of the module ``numpy`` that has what NumPy has removed."""
    import numpy

    copy = types.ModuleType('numpy', numpy.__doc__)
    vars(copy).update(vars(numpy))  # with NumPy's __getattr__ for what it loads later
    for name, value in _old_names(numpy).items():
        vars(copy).setdefault(name, value)
    if _is_numpy_2():
        vars(copy).update({name: _wrapping(getattr(numpy, name)) for name in ('array', 'full')})
    return copy


def _wrapping(make):
    """Return a maker of arrays in which an integer that the type can't hold wraps, as in C."""

    @functools.wraps(make)
    def made(*args, dtype=None, **options):
        try:
            return make(*args, dtype=dtype, **options)
        except OverflowError:
            return make(*args, **options).astype(dtype)

    return made


def _to_numpy(array, dtype=None, copy=None):
    """Return an NDArray as NumPy's array, for ``numpy.asarray`` and NumPy's functions."""
    if copy is False:
        raise ValueError('an NDArray becomes an array of NumPy only by a copy')
    values = array.asnumpy()
    return values if dtype is None else values.astype(dtype, copy=False)


def _write_scalars_as_before():
    """Pass a shape ``(np.int64(2), 3)`` to MXNet's library as '(2, 3)', as before NumPy 2."""

    def c_str_array(strings):
        plain = [_SCALAR.sub(r'\1\2', each) if 'np.' in each else each for each in strings]
        return (ctypes.c_char_p * len(plain))(*[each.encode() for each in plain])

    def c_str(string):
        return ctypes.c_char_p(c_str_array([string])[0])

    written = {'c_str': c_str, 'c_str_array': c_str_array}
    for module in [sys.modules[name] for name in sys.modules if name.startswith('mxnet.')]:
        vars(module).update((name, written[name]) for name in written if name in vars(module))


def _old_names(numpy):
    """Return the names of NumPy that MXNet 1.9.1 looks up and later versions lack."""
    names = {
        'bool': numpy.bool_,
        'int': int,
        'NaN': numpy.nan,
        'NAN': numpy.nan,
        'Inf': numpy.inf,
        'PINF': numpy.inf,
        'NINF': -numpy.inf,
        'PZERO': 0.0,
        'NZERO': -0.0,
        'alltrue': numpy.all,
        'sometrue': numpy.any,
        'product': numpy.prod,
        'round_': numpy.round,
        'in1d': numpy.isin,
        'trapz': getattr(numpy, 'trapezoid', None),
        'msort': functools.partial(numpy.sort, axis=0),
        'compat': types.SimpleNamespace(basestring=str),
    }
    # They are gone since NumPy 1.20; MXNet passes them on under `mxnet.np`.
    return names | dict.fromkeys(('mirr', 'npv', 'pmt', 'ppmt', 'pv', 'rate'))
