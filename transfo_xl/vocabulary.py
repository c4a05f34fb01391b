"""Files of vocabularies of whole words: JSON, or the originals' pickles.

Their fields are ``idx2sym``: the words in the order of their ids; ``counter``: how often each was
seen; ``special``, ``min_freq``, ``max_size``, ``lower_case``, ``delimiter``, ``never_split``: how
the vocabulary was made; ``unk_idx``: the id of unknown words.
"""

import collections
import json
import os
import types

from model_zoo.checkpoint.torch_file import read_pickle, write_torch
from model_zoo.errors import InputError, reporting
from model_zoo.util.files import atomic_write
from model_zoo.util.reading import check_json, read_json

__all__ = ['OPTIONS', 'WORDS_NAME', 'read_words', 'to_fields', 'write_words']

#: name of the file of a vocabulary of words
WORDS_NAME = 'vocab.json'
#: fields besides idx2sym and counter, and their types; None stands for none
OPTIONS = {
    'special': list[str],
    'min_freq': int,
    'max_size': int,
    'lower_case': bool,
    'delimiter': str,
    'never_split': list[str],
    'unk_idx': int,
}
_FIELDS = {
    'idx2sym': list[str],
    'counter': dict[str, int] | None,
    **{name: shape | None for name, shape in OPTIONS.items()},
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
    """Read a vocabulary of words."""
    path = os.fspath(path)
    if path.endswith(('.bin', '.pkl', '.pt')):
        return to_fields(read_pickle(path, _ASIDE), path)
    fields = read_json(path, 'the vocabulary')
    if isinstance(fields, dict) and 'idx2sym' not in fields:
        problem = f'{path!r} lacks the idx2sym of a vocabulary of words'
        raise InputError(f'{problem}; if it is of byte pairs, put their merges.txt beside it')
    return to_fields(fields, path)


def to_fields(content, path):
    """Check the fields of a vocabulary that was read from `path`."""
    if isinstance(content, types.SimpleNamespace):
        content = vars(content)
    with reporting(f'{path!r} holds no vocabulary of words', errors=ValueError):
        if isinstance(content, dict) and isinstance(content.get('never_split'), tuple):
            content = {**content, 'never_split': list(content['never_split'])}
        check_json(content, _FIELDS)
    words = content['idx2sym']
    if len(set(words)) < len(words):
        word, count = collections.Counter(words).most_common(1)[0]
        raise InputError(f'{path!r} has the word {word!r} {count} times, and must have it once')
    fields = {name: content[name] for name in OPTIONS if content.get(name) is not None}
    fields.update(idx2sym=words, counter=collections.Counter(content.get('counter')))
    return fields


def write_words(path, fields):
    """Write a vocabulary of words as JSON, or as pytorch-pretrained-bert's ``vocab.bin``."""
    if os.fspath(path).endswith('.bin'):
        write_torch(os.fspath(path), _attributes(fields))
        return
    with atomic_write(path) as file:
        json.dump(fields, file, ensure_ascii=False, indent=0)
        file.write('\n')


def _attributes(fields):
    """Return the attributes of a tokenizer of pytorch-pretrained-bert."""
    ids = collections.OrderedDict((word, index) for index, word in enumerate(fields['idx2sym']))
    indices = {f'{word.strip("<>")}_idx': ids[word] for word in fields['special'] if word in ids}
    known = {name: value for name, value in fields.items() if (name, value) != ('unk_idx', None)}
    return {**indices, **known, 'sym2idx': ids}
