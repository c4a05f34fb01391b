"""The files of one model, recognized by name: weights, configuration and vocabulary."""

import contextlib
import dataclasses
import os
from typing import Dict, Optional

from ..checkpoint.layouts import CONFIG_NAMES, WEIGHTS_NAMES, weights_in_folder
from ..errors import InputError
from ..util.files import read_json
from .modules import transformer_folder

__all__ = [
    'BPE_NAMES',
    'Files',
    'TOKENIZER_CONFIG',
    'VOCAB_NAMES',
    'files_at',
    'files_in_folder',
    'merges_beside',
    'read_tokenizer_config',
]

#: vocabulary of byte pairs -> its merges, by the names that they have together
BPE_NAMES = {
    'vocab.json': 'merges.txt',
    'encoder.json': 'vocab.bpe',
    'encoder_bpe_40000.json': 'vocab_40000.bpe',
}
#: names of vocabularies, in the order in which they are looked for
VOCAB_NAMES = (
    'vocab.txt',
    'vocab.vocab',
    'vocab.spiece',
    'spiece.model',
    'sentencepiece.bpe.model',
    'spm.model',
    'tokenizer.model',
    *BPE_NAMES,
    'vocab.bin',
    'vocab.pkl',
    'tokenizer.json',
)
#: name of the file of a tokenizer's options
TOKENIZER_CONFIG = 'tokenizer_config.json'
_VOCAB_EXTENSIONS = ('.txt', '.vocab', '.spiece', '.model', '.pkl')


@dataclasses.dataclass(frozen=True)
class Files:
    """Files of one model on this machine, and what is known about them.

    Parameters
    ----------
    weights, config, vocab : str or None
        Paths; None for missing files.
    do_lower_case : bool or None
        Whether the tokenizer lowers the text; None if only the tokens can tell.
    special_tokens : dict of str to str
        Role -> token, if a SentencePiece model itself doesn't tell.
    source : str
        Where they come from: ``'path'``, or the name of a `Source`.
    """

    weights: Optional[str] = None
    config: Optional[str] = None
    vocab: Optional[str] = None
    do_lower_case: Optional[bool] = None
    special_tokens: Dict[str, str] = dataclasses.field(default_factory=dict)
    source: str = 'path'


def merges_beside(vocab_path):
    """Path of the merges that belong to a vocabulary, or None if they aren't there."""
    folder, name = os.path.split(os.fspath(vocab_path))
    path = os.path.join(folder, BPE_NAMES.get(name, BPE_NAMES['vocab.json']))
    return path if os.path.isfile(path) else None


def files_in_folder(folder, format=None):
    """The files of a model in `folder`.

    Parameters
    ----------
    folder : str
        Such as a folder of ``save_pretrained``, of the Hugging Face hub, or of Google's or OpenAI's
        releases. Of a model of sentence-transformers, the files are those of
        its transformer.
    format : str, optional
        One of `model_zoo.checkpoint.layouts.FORMATS`, if the weights must be in it.

    Returns
    -------
    Files
    """

    folder = transformer_folder(folder)

    def first(names):
        paths = [os.path.join(folder, name) for name in names]
        return next(filter(os.path.isfile, paths), None)

    config = {}
    with contextlib.suppress(InputError):  # who opens the tokenizer is told
        config = read_tokenizer_config(folder)
    lower, padding = config.get('do_lower_case'), config.get('padding_token')
    return Files(
        weights_in_folder(folder, format),
        first(CONFIG_NAMES),
        first(VOCAB_NAMES),
        lower if isinstance(lower, bool) else None,
        {'padding_token': padding} if isinstance(padding, str) else {},
    )


def files_at(path, format=None):
    """The files that a path means: a folder's, or a file of weights or of a vocabulary, and
    what lies beside it.

    Parameters
    ----------
    path : str or os.PathLike
        A TensorFlow checkpoint may be named without ``.index``.
    format : str, optional
        See :func:`files_in_folder`; for a folder.

    Returns
    -------
    Files
    """
    path = os.path.expanduser(os.fspath(path))
    if os.path.isdir(path):
        return files_in_folder(path, format)
    if not os.path.exists(path) and os.path.isfile(path + '.index'):
        path += '.index'
    if not os.path.isfile(path):
        raise InputError(f'no such file or folder: {path!r}')
    beside = files_in_folder(os.path.dirname(path) or '.')
    name = os.path.basename(path)
    if name.endswith(_VOCAB_EXTENSIONS) or name in VOCAB_NAMES or (
        name.endswith('.json') and name not in WEIGHTS_NAMES
    ):
        return dataclasses.replace(beside, weights=None, vocab=path)
    return dataclasses.replace(beside, weights=path)


def read_tokenizer_config(folder, name=TOKENIZER_CONFIG):
    """What a folder's tokenizer_config.json says.

    Parameters
    ----------
    folder : str
    name : str
        Of another file of the kind.

    Returns
    -------
    dict
        Empty if there is no such file.
    """
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return {}
    config = read_json(path)
    if not isinstance(config, dict):
        raise InputError(f'cannot read {path!r}: not a JSON object')
    return config
