"""The files of one model, recognized by name: weights, configuration and vocabulary.

A model of sentence-transformers has ``modules.json`` besides: of what it consists, and where its
parts are.
"""

import contextlib
import dataclasses
import os
from typing import Any, NamedTuple

from ..checkpoint.readers import CONFIG_NAMES, WEIGHTS_NAMES, is_inside, weights_in_folder
from ..errors import InputError, reporting
from ..util.reading import check_json, read_json

#: name of the file
MODULES_NAME = 'modules.json'
#: names of the transformer's settings, of which a model has one
SENTENCE_CONFIGS = tuple(
    f'sentence_{name}_config.json' for name in ('bert', 'roberta', 'distilbert', 'xlm-roberta')
)


class Module(NamedTuple):
    """A part of a model."""

    kind: str
    path: str


def modules_in_folder(folder):
    """Return the parts of a model in the order in which they compute."""
    path = os.path.join(folder, MODULES_NAME)
    modules = read_json(path, shape=list)
    with reporting(f'{path!r} is not a list of modules', errors=ValueError):
        for module in modules:
            check_json(module, {'type': str, 'path': str})
            if not is_inside(module['path']):
                raise ValueError(f'{module["path"]!r:.80} is not in its folder')
    return [Module(module['type'].rpartition('.')[2], module['path']) for module in modules]


#: vocabulary of byte pairs -> its merges, by the names that they have together
BPE_NAMES = {
    'vocab.json': 'merges.txt',
    'encoder.json': 'vocab.bpe',
    'encoder_bpe_40000.json': 'vocab_40000.bpe',
}
_SPM = ('vocab.spiece', 'spiece.model', 'sentencepiece.bpe.model', 'spm.model', 'tokenizer.model')
_OTHERS = ('vocab.bin', 'vocab.pkl')
#: names of vocabularies, in the order in which they are looked for
VOCAB_NAMES = ('tokenizer.json', 'vocab.txt', 'vocab.vocab', *_SPM, *BPE_NAMES, *_OTHERS)
#: name of the file that ``zoo export --format onnx`` writes
ONNX_NAME = 'model.onnx'
#: optimum's and sentence-transformers' folder of such files
ONNX_FOLDER = 'onnx'
#: name of the file of a tokenizer's options
TOKENIZER_CONFIG = 'tokenizer_config.json'
#: name of the file of what ends a text, and how texts are continued
GENERATION_CONFIG = 'generation_config.json'
_OF_TOKENS = ('special_tokens_map.json', 'added_tokens.json', 'special_tokens.txt')
#: names of the files that say more of a tokenizer than its vocabulary
BESIDE_VOCAB = (TOKENIZER_CONFIG, *_OF_TOKENS)
_VOCAB_ENDINGS = ('.txt', '.vocab', '.spiece', '.model', '.pkl')


@dataclasses.dataclass(frozen=True)
class Files:
    """Files of one model on this machine, and what is known about them.

    Parameters
    ----------
    special_tokens : dict of str to str
        Role -> token, if a SentencePiece model itself doesn't have them.
    modules : str, optional
        For a model of sentence-transformers: the folder of its ``modules.json``, or its name in
        `model_zoo.pretrained.sentence_modules.KNOWN`.
    fields : dict
        Content of the configuration; empty without a configuration.
    """

    weights: str | None = None
    config: str | None = None
    vocab: str | None = None
    do_lower_case: bool | None = None
    special_tokens: dict[str, str] = dataclasses.field(default_factory=dict)
    source: str = 'path'
    modules: str | None = None
    fields: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    def with_vocab_of(self, files):
        """Return these files with the vocabulary of others, and what is known about it."""
        names = 'vocab', 'do_lower_case', 'special_tokens'
        return dataclasses.replace(self, **{name: vars(files)[name] for name in names})


def files_in_folder(folder, format=None):
    """Return the files of a model in `folder`.

    Parameters
    ----------
    folder : str
        For example a folder of ``save_pretrained``, of the Hugging Face hub, or of Google's or
        OpenAI's releases. For a model of sentence-transformers, the files are its transformer's.
    """
    modules, said = None, {}
    if os.path.isfile(os.path.join(folder, MODULES_NAME)) and (parts := modules_in_folder(folder)):
        modules, folder = folder, os.path.join(folder, parts[0].path)
    names = _names(folder)
    with contextlib.suppress(InputError):  # opening the tokenizer reports it
        said = read_json(os.path.join(folder, TOKENIZER_CONFIG), shape=dict, default={})
    lower, padding = said.get('do_lower_case'), said.get('padding_token')
    config = next((os.path.join(folder, name) for name in CONFIG_NAMES if name in names), None)
    vocab = next((os.path.join(folder, name) for name in VOCAB_NAMES if name in names), None)
    lower = lower if isinstance(lower, bool) else None
    special = {'padding_token': padding} if isinstance(padding, str) else {}
    weights = weights_in_folder(folder, format)
    fields = {} if config is None else read_json(config, 'the configuration', dict)
    return Files(weights, config, vocab, lower, special, modules=modules, fields=fields)


def onnx_files(folder):
    """Return the paths within a folder of its ONNX files, and of those in its ``onnx``."""
    found = [os.path.join(at, name) for at in ('', ONNX_FOLDER) for name in _names(folder, at)]
    return [path for path in found if path.endswith('.onnx')]


def _names(*parts):
    folder = os.path.join(*parts)
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else ()


def files_beside(path):
    """Return a file of weights or of a vocabulary, and the other files in its folder."""
    if not os.path.exists(path) and os.path.isfile(path + '.index'):
        path += '.index'
    if not os.path.isfile(path):
        raise InputError(f'no such file or folder: {path!r}')
    folder, name = os.path.split(path)
    files = files_in_folder(folder or '.')
    is_vocab = name.endswith(_VOCAB_ENDINGS) or name in VOCAB_NAMES
    if is_vocab or (name.endswith('.json') and name not in WEIGHTS_NAMES):
        return dataclasses.replace(files, weights=None, vocab=path)
    return dataclasses.replace(files, weights=path)
