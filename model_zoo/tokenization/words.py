"""Vocabularies of whole words and their counts, as JSON and as the originals' pickles.

The fields have the originals' names. ``idx2sym``: the words in the order of their ids;
``counter``: how often each was seen; ``special``, ``min_freq``, ``max_size``, ``lower_case``,
``delimiter``, ``never_split``: how the vocabulary was made; ``unk_idx``: the id of unknown words.
"""

import collections
import json
import os
import types

from ..checkpoint.pickles import read_pickle
from ..checkpoint.torch_file import write_torch_object
from ..errors import InputError
from ..util.files import atomic_write, read_json

__all__ = ['OPTIONS', 'PICKLE_EXTENSIONS', 'WORDS_NAME', 'read_words', 'to_fields', 'write_words']

#: name of the file of a vocabulary of words
WORDS_NAME = 'vocab.json'
#: of the originals' files, which are pickles
PICKLE_EXTENSIONS = ('.bin', '.pkl', '.pt')
#: fields besides idx2sym and counter, and their types; None stands for none
OPTIONS = {
    'special': list,
    'min_freq': int,
    'max_size': int,
    'lower_case': bool,
    'delimiter': str,
    'never_split': list,
    'unk_idx': int,
}

# transformers pickles all attributes of its tokenizer; these are read as data and left aside
_ASIDE = (
    're._compile',
    'sacremoses.normalize.MosesPunctNormalizer',
    'sacremoses.tokenize.MosesDetokenizer',
    'sacremoses.tokenize.MosesTokenizer',
    'tokenizers.AddedToken',
    'transformers.tokenization_utils.Trie',
    'transformers.tokenization_utils_base.AddedToken',
)


def read_words(path):
    """Read a vocabulary of words.

    Parameters
    ----------
    path : str or os.PathLike
        ``vocab.json`` of :func:`write_words`, or a pickle (.bin, .pkl) of the originals: of
        pytorch-pretrained-bert and of transformers.

    Returns
    -------
    dict
        ``idx2sym`` and, where the file has them, ``counter`` and :data:`OPTIONS`.
    """
    path = os.fspath(path)
    if path.endswith(PICKLE_EXTENSIONS):
        return to_fields(read_pickle(path, _ASIDE), path)
    fields = read_json(path, 'the vocabulary')
    if isinstance(fields, dict) and 'idx2sym' not in fields:
        raise InputError(
            f'{path!r} is no vocabulary of words, as its idx2sym is missing; if it belongs to '
            'byte pairs, put their merges.txt beside it'
        )
    return to_fields(fields, path)


def to_fields(found, path):
    """Check the fields of a vocabulary that was read from `path`.

    Parameters
    ----------
    found : dict or types.SimpleNamespace
    path : str
        For the messages.

    Returns
    -------
    dict
        As of :func:`read_words`.
    """
    if isinstance(found, types.SimpleNamespace):
        found = vars(found)
    if not isinstance(found, dict) or not isinstance(found.get('idx2sym'), list):
        raise InputError(f'{path!r} holds no vocabulary of words: it has no list idx2sym')
    words = found['idx2sym']
    for word in words:
        if not isinstance(word, str):
            raise InputError(f'{path!r}: {word!r:.80} among its words is no str')
    if len(set(words)) < len(words):
        word, count = collections.Counter(words).most_common(1)[0]
        raise InputError(f'{path!r} has the word {word!r} {count} times; it must be there once')
    order = found.get('sym2idx')
    if order is not None and dict(order) != {word: place for place, word in enumerate(words)}:
        raise InputError(f'{path!r}: its idx2sym and sym2idx give different ids')
    fields = {'idx2sym': words}
    for name, kind in OPTIONS.items():
        value = found.get(name)
        if value is None:
            continue
        if isinstance(value, tuple):
            value = list(value)
        texts = value if kind is list else ()
        if not isinstance(value, kind) or not all(isinstance(each, str) for each in texts):
            raise InputError(f'{path!r}: its {name} is {value!r:.80}')
        fields[name] = value
    counter = found.get('counter') or {}
    if not isinstance(counter, dict) or not all(isinstance(n, int) for n in counter.values()):
        raise InputError(f'{path!r}: its counter is no map from words to numbers')
    fields['counter'] = collections.Counter(counter)
    if not 0 <= fields.get('unk_idx', 0) < max(len(words), 1):
        raise InputError(f'{path!r}: its unk_idx is {fields["unk_idx"]}, of {len(words)} words')
    return fields


def write_words(path, fields):
    """Write a vocabulary of words as JSON, or as pytorch-pretrained-bert's ``vocab.bin``.

    Parameters
    ----------
    path : str or os.PathLike
        With the extension ``.bin`` for the latter, which needs torch.
    fields : dict
        As of :func:`read_words`.

    Raises
    ------
    MissingExtraError
        If torch is needed, and isn't installed.
    """
    if os.fspath(path).endswith('.bin'):
        write_torch_object(os.fspath(path), _attributes(fields))
        return
    with atomic_write(path) as file:
        json.dump(fields, file, ensure_ascii=False, indent=0)
        file.write('\n')


def _attributes(fields):
    """What a tokenizer of pytorch-pretrained-bert has as attributes."""
    ids = collections.OrderedDict((word, place) for place, word in enumerate(fields['idx2sym']))
    places = {f'{word.strip("<>")}_idx': ids[word] for word in fields['special'] if word in ids}
    known = {name: value for name, value in fields.items() if (name, value) != ('unk_idx', None)}
    return {**places, **known, 'sym2idx': ids}
