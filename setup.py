"""Build the packages; requirements/ has the pinned versions that the tests run with."""

import pathlib
import re

from setuptools import find_packages, setup

HERE = pathlib.Path(__file__).parent
PACKAGES = ['bert', 'gpt', 'gpt2', 'transfo_xl', 'model_zoo', 'bert_embedding', 'export']
ORIGINALS = {  # pytorch-pretrained-bert's names, and what Pytorchic BERT's scripts share
    'mxnet_pretrained_bert': 'scripts/originals/mxnet_pretrained_bert',
    'mxnet_pytorchic_bert': 'scripts/originals/pytorchic_bert/mxnet_pytorchic_bert',
}

# pyarrow 26 needs NumPy 2, and says so at its import only; below Python 3.13 MXNet brings NumPy 1
ARROW = ["pyarrow>=15,<26; python_version < '3.13'", "pyarrow>=15; python_version >= '3.13'"]


def version():
    """`model_zoo.__version__`, read as text: importing it would need MXNet."""
    text = (HERE / 'model_zoo' / '__init__.py').read_text(encoding='utf-8')
    return re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE).group(1)


def names_in(file):
    """Return the requirements that a file in requirements/ lists."""
    lines = (HERE / 'requirements' / file).read_text(encoding='utf-8').splitlines()
    return [line.partition('  #')[0] for line in lines if not line.startswith('#')]


setup(
    name='gluon-transformer-zoo',
    version=version(),
    description='BERT, GPT, GPT-2 and Transformer-XL as MXNet Gluon HybridBlocks',
    long_description=(HERE / 'README.rst').read_text(encoding='utf-8'),
    long_description_content_type='text/x-rst',
    author='The gluon-transformer-zoo authors',
    license='Apache-2.0',
    classifiers=[
        'Intended Audience :: Developers',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Programming Language :: Python :: 3.13',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
    packages=[
        *find_packages(include=[*PACKAGES, *(f'{name}.*' for name in PACKAGES)]),
        'zoo_scripts',
        *ORIGINALS,
    ],
    package_dir={'zoo_scripts': 'scripts', **ORIGINALS},
    package_data={
        **{name: ['py.typed', 'models.json'] for name in PACKAGES},
        'model_zoo.app': ['templates/*', 'originals.json'],
        'model_zoo.tasks': ['data_sets.json'],
        'model_zoo.operators': ['*.cc'],
        'model_zoo.inference.server.page': ['files/*'],
        'zoo_scripts': [
            'originals/*/*.py',
            'originals/*/config/*',
            'originals/*/mxnet_*/*.py',
            'demo_data/*',
        ],
    },
    python_requires='>=3.10,<3.14',
    install_requires=[
        *names_in('base.txt'),
        # MXNet's metadata has numpy<2, and no such NumPy is built for Python 3.13: there MXNet is
        # installed by `pip install --no-deps mxnet==1.9.1`
        "mxnet>=1.9.1,<2; python_version < '3.13'",
    ],
    extras_require={
        # sympy: ONNX Runtime's optimizer imports it, and its metadata no longer names it
        'onnx': ['onnx>=1.18', 'onnxruntime>=1.18', 'sympy>=1.12'],
        'openvino': ['onnx>=1.18', 'onnxruntime>=1.18', 'sympy>=1.12', 'openvino>=2024.6'],
        'tensorflow': ['tensorflow-cpu>=2.15'],
        # built against the installed MXNet only so: see the target `horovod` of the Makefile
        'horovod': ['horovod==0.28.1', 'cffi>=1.15'],
        'tensorboard': ['tensorboard>=2.14'],
        'serve': ['fastapi>=0.110', 'starlette>=1.0', 'uvicorn>=0.27', 'prometheus-client>=0.17'],
        'ray': ['ray[serve]>=2.60', 'prometheus-client>=0.17'],
        'remote': ['fsspec>=2025.2', 's3fs>=2025.2'],
        'parquet': ARROW,
        'mkl': ["mkl>=2024; platform_machine == 'x86_64'"],  # instead of MXNet's OpenBLAS
        'datasets': ['datasets>=3.0', *ARROW],
        'pandas': ['pandas>=1.5.3'],
        'gpt': ['ftfy>=6', 'spacy>=3.7'],
        'dev': names_in('test.txt'),
    },
    entry_points={
        'console_scripts': [
            'bert-embedding = bert_embedding.cli:console',
            'zoo = zoo_scripts.zoo:console',
        ]
    },
)
