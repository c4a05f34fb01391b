"""The steps of an import of this project, MXNet 1.9.1 or GluonNLP, in their order.

Behind each step stands the test that fails without it, of ``tests/unit/test_imports.py`` (I) or
``test_environment.py`` (E).

1. ``import model_zoo`` calls `begin`. The environment's variables are set, because MXNet reads them
   while it loads, and `_Watch` is put into ``sys.meta_path``, because only an import shows when
   MXNet is loaded: ``import mxnet`` may stand in any program, also within GluonNLP. Nothing slow is
   loaded yet. E: what_child_processes_get; I: the_command_line_answers.
   If MXNet has been loaded before, a warning says so, oneDNN is asked for AMX, and step 5 follows.
2. Before MXNet, ``environment.prepared`` loads the library that computes its products.
   E: openblas_uses_avx2, mkl_serves.
3. While MXNet loads, `importing_mxnet` gives its modules their own ``__import__``. By it they
   get a copy of ``numpy`` with the names that NumPy has removed since 1.24, the versions of
   ``distutils``, which Python 3.12 has removed, and stand-ins of slow libraries, which are loaded
   when they are used. ``numpy`` and everybody else's imports stay as they are.
   E: numpy_is_left_alone; I: mxnet_comes_without_what_it_rarely_uses.
4. After MXNet, NDArrays become NumPy's arrays by ``numpy.asarray``, shapes are written for MXNet's
   library and its metrics' sums are in float64 as before NumPy 2, and oneDNN is asked for AMX.
   `SymbolBlock.imports` no longer warns that an exported graph's inputs have no types.
   E: arrays_go_into_numpy, operators_take_scalars_of_numpy, metrics_sum, onednn_uses_amx.
5. When the outermost import of the three packages has ended, since their modules may need one
   another, `_Watch` leaves ``sys.meta_path``. The optimizers are loaded, which registers them with
   Gluon's Trainer; ``'lamb'`` is this project's from then on, because MXNet's takes too small norms
   of large arrays on CPUs. ``model_zoo.zoo`` is loaded, which replaces
   ``gluonnlp.model.get_model``, so that programs for GluonNLP get these models. GluonNLP's integers
   wrap as before NumPy 2.
   I: gluonnlp_is_joined; E: integers_wrap; ``tests/unit/optimizer/test_lamb.py``.
"""

import builtins
import contextlib
import ctypes
import functools
import importlib.util
import re
import sys
import types
import warnings
from importlib.machinery import PathFinder

__all__ = ['begin', 'importing_mxnet']

# NumPy 2's way to write a scalar within a tuple
_SCALAR = re.compile(r'\bnp\.(?:(?:u?int|float|bool_?)\d*\((.*?)\)|(True|False)_)')


class _Later(types.ModuleType):
    """A module that is imported when one of its names is first used."""

    def __getattr__(self, name):
        return getattr(importlib.import_module(self.__name__), name)


def _instead_of(name, fromlist):
    """Return what MXNet gets for a missing or slow library; None for the library itself.

    Slow ones would take half of its import's time. A few of its functions use ``scipy.stats`` and
    onnx. scikit-learn is only the base of the deprecated ``mx.model.FeedForward``, which does
    without.
    """
    if name == 'distutils.version':
        from packaging.version import Version

        return types.SimpleNamespace(LooseVersion=Version, StrictVersion=Version)
    if name == 'sklearn.base' and 'sklearn' not in sys.modules:
        raise ImportError(f'{name} is not loaded with MXNet')
    if name == 'scipy.stats' or (name == 'scipy' and fromlist == ('stats',)):
        return types.SimpleNamespace(stats=_Later('scipy.stats'))
    if name == 'onnx' and name not in sys.modules and importlib.util.find_spec(name):
        return _Later(name)
    return None


def begin():
    """Set the environment's variables, and prepare MXNet's import or what is left of it."""
    from . import environment

    environment.set_variables()
    if 'mxnet' in sys.modules:
        environment.prepare_late()
        _join()
    else:
        sys.meta_path.insert(0, _Watch(environment.prepared))


class _Finder:
    """Finds modules, and runs them by ``run(module, exec_module)``."""

    def find_spec(self, name, path=None, target=None):
        if not self.finds(name):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            exec_module = spec.loader.exec_module
            spec.loader.exec_module = lambda module: self.run(module, exec_module)
        return spec


class _Watch(_Finder):
    """Prepares the import of MXNet, and joins the three packages after their outermost import."""

    depth = 0

    def __init__(self, prepared):
        self._prepared = prepared

    def finds(self, name):
        return name in ('mxnet', 'gluonnlp') or name.startswith('model_zoo.')

    def run(self, module, exec_module):
        self.depth += 1
        try:
            if module.__name__ == 'mxnet':
                with self._prepared(), importing_mxnet():
                    exec_module(module)
            else:
                exec_module(module)
        finally:
            self.depth -= 1
        if self.depth == 0 and 'mxnet' in sys.modules and self in sys.meta_path:
            sys.meta_path.remove(self)
            _join()


class _OwnImports(_Finder):
    """Gives MXNet's modules their own ``__import__``."""

    def finds(self, name):
        return name.startswith('mxnet.')

    def run(self, module, exec_module):
        vars(module)['__builtins__'] = _BUILTINS
        exec_module(module)


def _import_for_mxnet(name, globals=None, locals=None, fromlist=(), level=0):
    """Do what ``__import__`` does, with copies and stand-ins of some modules."""
    import numpy

    other = _instead_of(name, fromlist) if level == 0 else None
    if other is not None:
        return other
    module = __import__(name, globals, locals, fromlist, level)
    return _numpy_as_before() if module is numpy else module


_BUILTINS = {**vars(builtins), '__import__': _import_for_mxnet}


@contextlib.contextmanager
def importing_mxnet():
    """Within the context MXNet 1.9.1 can be imported."""
    finder = _OwnImports()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
    sys.modules['mxnet'].nd.NDArray.__array__ = _to_numpy
    quiet = {'module': r'mxnet\.gluon\.block$', 'append': True}  # unless the user wants to know
    warnings.filterwarnings('ignore', 'Cannot decide type', **quiet)
    if _is_numpy_2():
        _write_scalars_as_before()
        sys.modules['mxnet'].metric.EvalMetric.__setattr__ = _set_sum


def _join():
    """Load what MXNet and GluonNLP get from this project."""
    for name in ('optimizer', 'opening', 'zoo'):
        importlib.import_module(f'model_zoo.{name}')
    if _is_numpy_2():
        _mend_gluonnlp()


def _mend_gluonnlp():
    """Make `batchify.Pad` and fastText's hashes wrap integers, as before NumPy 2."""
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
    # with NumPy's __getattr__ for what it loads later
    vars(copy).update(_old_names(numpy) | vars(numpy))
    if _is_numpy_2():
        for name, place in {'array': 1, 'full': 2, 'arange': 3}.items():
            setattr(copy, name, _wrapping(getattr(numpy, name), place))
    return copy


def _wrapping(make, place):
    """Return a maker of arrays in which an integer that the type can't hold wraps, as in C.

    `place` is that of the argument ``dtype``.
    """

    @functools.wraps(make)
    def made(*args, **options):
        try:
            return make(*args, **options)
        except OverflowError:
            dtype = args[place] if args[place:] else options.pop('dtype', None)
            return make(*args[:place], **options).astype(dtype)

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


def _set_sum(metric, name, value):
    """Keep the sums of MXNet's metrics in float64; in NumPy 2 a float + float32 is float32."""
    import numpy

    is_sum = type(value) is float and name.endswith('sum_metric')
    object.__setattr__(metric, name, numpy.float64(value) if is_sum else value)


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
