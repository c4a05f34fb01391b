"""What pip needs to know; the pinned versions that the tests run with are in requirements/."""

import pathlib
import re
import sys

if sys.version_info >= (3, 12):  # before pip builds NumPy for it
    sys.exit('gluon-transformer-zoo needs Python 3.8 to 3.11, as MXNet 1.9.1 does: use one of them')

from setuptools import find_packages, setup

HERE = pathlib.Path(__file__).parent
PACKAGES = ['bert', 'gpt', 'gpt2', 'transfo_xl', 'model_zoo', 'bert_embedding', 'export']
ORIGINALS = {  # pytorch-pretrained-bert's names, and what Pytorchic BERT's scripts share
    'mxnet_pretrained_bert': 'scripts/originals/mxnet_pretrained_bert',
    'mxnet_pytorchic_bert': 'scripts/originals/pytorchic_bert/mxnet_pytorchic_bert',
}


def version():
    """`model_zoo.__version__`, read as text: importing it would need MXNet."""
    text = (HERE / 'model_zoo' / '__init__.py').read_text(encoding='utf-8')
    return re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE).group(1)


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
        'Programming Language :: Python :: 3.8',
        'Programming Language :: Python :: 3.9',
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
    packages=[
        *find_packages(include=[*PACKAGES, *(f'{name}.*' for name in PACKAGES)]),
        'zoo_scripts',
        *ORIGINALS,
    ],
    package_dir={'zoo_scripts': 'scripts', **ORIGINALS},
    package_data={
        **{name: ['py.typed'] for name in PACKAGES},
        'model_zoo.app': ['*.html'],
        'model_zoo.inference': ['speed.json'],
        'model_zoo.inference.server.page': ['files/*'],
        'zoo_scripts': [
            'originals/*/*.py', 'originals/*/config/*', 'originals/*/mxnet_*/*.py',
            'benchmark/peer_training.py', 'demo_data/*', 'recipes/*.json',
        ],
    },
    python_requires='>=3.8,<3.12',
    install_requires=[
        'mxnet>=1.9.1,<2',
        'gluonnlp>=0.10,<0.11',
        'numpy>=1.20,<1.24',  # MXNet 1.9.1 uses np.bool, which NumPy 1.24 dropped
        'scipy>=1.6,<1.12',  # from here on: the last ones that take such a NumPy
        'scikit-learn>=1.0,<1.5',
        'matplotlib>=3.6',
        "tokenizers>=0.13,<0.21; python_version < '3.9'",  # 0.21 has no wheels for it
        "tokenizers>=0.13; python_version >= '3.9'",
        'regex>=2021.8.3',
        'safetensors>=0.4',
        'huggingface-hub>=0.25',
        'sentencepiece>=0.1.97,!=0.2.2',  # which learns other vocabularies than those around it
        'filelock>=3.4',
        'requests>=2.25',
        'urllib3>=1.26',
        'pyyaml>=5.4',
        'tqdm>=4.60',
        'shtab>=1.6',
    ],
    extras_require={
        'onnx': ['onnx==1.17.0', 'onnxruntime==1.18.1', 'protobuf<5'],
        'openvino': [
            'onnx==1.17.0', 'onnxruntime==1.18.1', 'protobuf<5',
            # later ones want NumPy 1.26 or newer, and there is none for Python 3.8
            "openvino==2024.6.0; python_version >= '3.9'",
        ],
        # earlier ones could be made to run code that a file of weights carries
        'torch': ["torch>=2.6; python_version >= '3.9'"],
        'tensorflow': ["tensorflow-cpu==2.15.1; python_version >= '3.9'"],
        # built against the installed MXNet only so: see the target `horovod` of the Makefile
        'horovod': ['horovod==0.28.1', 'cffi>=1.15'],
        'compare': [
            'pytorch-pretrained-bert==0.6.2',
            "transformers>=4.40,<5; python_version >= '3.9'",
        ],
        'tensorboard': ['tensorboard>=2.10'],
        'wandb': ['wandb>=0.16'],
        'mlflow': ['mlflow-skinny>=2.9'],
        'search': ['faiss-cpu>=1.7.2,<1.9'],
        'serve': ['fastapi>=0.100', 'uvicorn>=0.23', 'prometheus-client>=0.17'],
        'ray': ["ray[serve]>=2.60; python_version >= '3.10'", 'prometheus-client>=0.17'],
        'remote': ['fsspec', 's3fs>=2025'],
        'parquet': ['pyarrow<26'],  # 26 wants NumPy 2
        'mkl': ["mkl>=2024; platform_machine == 'x86_64'"],  # instead of MXNet's OpenBLAS
        'tagging': ['seqeval>=1.2.2'],
        'datasets': ['datasets>=2.14', 'pyarrow<26'],  # 26 wants NumPy 2
        'gpt': ['ftfy>=6', 'spacy>=3,<3.8'],  # 3.8 wants NumPy 2
        'dev': [
            'pytest>=7',
            'pytest-xdist',
            'hypothesis',
            'ruff',
            'tensorboard>=2.10',
            'seqeval>=1.2.2',
            *(
                f"{each}; python_version >= '3.11'"
                for each in (
                    'faiss-cpu>=1.7.2,<1.9', 'fastapi>=0.100', 'uvicorn>=0.23',
                    'prometheus-client>=0.17', 'httpx', 'openai', 'tritonclient[http]',
                    'playwright', 'ray[serve]', 'fsspec', 's3fs>=2025', 'moto[server]',
                    'pyarrow<26', 'datasets>=2.14', 'mypy',
                )
            ),
        ],
    },
    entry_points={
        'console_scripts': [
            'bert-embedding = bert_embedding.cli:console',
            'zoo = zoo_scripts.zoo:console',
        ]
    },
)
