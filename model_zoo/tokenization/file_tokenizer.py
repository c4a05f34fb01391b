"""Any tokenizer of the Rust library `tokenizers`, such as the hub's ``tokenizer.json``."""

import functools
import json
import os

import tokenizers

from ..errors import InputError
from ..pretrained.files import read_tokenizer_config
from ..util.files import atomic_write, file_in
from .encoding import Frame, Pieces, call_rust, checked, encode_rust
from .library_files import FILE_NAME, ids_of, open_rust, token_id
from .tokenizer import Tokenizer
from .vocab import ROLES, make_vocab

_SPECIAL_TOKENS_NAME = 'special_tokens_map.json'

# where no other file names a role's token
_USUAL = {
    'unk': ('[UNK]', '<unk>'),
    'pad': ('[PAD]', '<pad>'),
    'mask': ('[MASK]', '<mask>'),
    'cls': ('[CLS]', '<cls>'),
    'sep': ('[SEP]', '<sep>'),
    'bos': ('<s>', '<bos>', '<|endoftext|>'),
    'eos': ('</s>', '<eos>', '<|endoftext|>'),
}


class _RustPieces(Pieces):
    __slots__ = ('_encoding', '_text')

    def __init__(self, text, encoding):
        self._text, self._encoding = text, encoding

    def ids(self):
        return self._encoding.ids

    def tokens(self):
        return self._encoding.tokens

    def offsets(self):
        return self._encoding.offsets

    def numbers(self):
        return self._encoding.word_ids

    def words(self):
        spans = {}
        for number, (start, end) in zip(self.numbers(), self.offsets()):
            if number is not None:
                first, last = spans.get(number, (start, end))
                spans[number] = min(first, start), max(last, end)
        indices = range(max(spans, default=-1) + 1)
        return [self._text[slice(*spans.get(index, (0, 0)))] for index in indices]


class FileTokenizer(Tokenizer):
    """Text to ids and back, with any model's ``tokenizer.json``.

    The file's post-processor adds the special tokens. As in every tokenizer here, texts are
    truncated at the end and padded on the right; the file's settings for these are ignored.

    Parameters
    ----------
    source : str, os.PathLike or tokenizers.Tokenizer
        Path of the file, or the library's object, which is copied.
    special_tokens : dict of str to str, optional
        Role (``'unk'``, ``'pad'``, ``'cls'``, ``'sep'``, ``'mask'``, ``'bos'``, ``'eos'``) ->
        token. :meth:`from_pretrained` reads them from ``tokenizer_config.json`` and
        ``special_tokens_map.json``. By default they are found by their usual names among the
        file's special tokens.

    Examples
    --------
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> library = Tokenizer(models.WordLevel({'[UNK]': 0, 'a': 1, 'text': 2}, '[UNK]'))
    >>> library.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> tokenizer = FileTokenizer(library)  # or FileTokenizer.from_pretrained('FOLDER')
    >>> tokenizer.tokenize('a long text')
    ['a', '[UNK]', 'text']
    """

    def __init__(self, source, special_tokens=None, max_len=None):
        super().__init__(max_len)
        self._rust = open_rust(source)
        added = json.loads(self._rust.to_str())['added_tokens']
        self._special = {token['id']: token['content'] for token in added if token['special']}
        known = set(self._special.values())
        roles = {role: next(filter(known.__contains__, _USUAL[role]), None) for role in ROLES}
        for role, token in (special_tokens or {}).items():
            if role not in ROLES:
                raise InputError(f'{role!r} is not a special token; there are {", ".join(ROLES)}')
            if token_id(self._rust, token) is None:
                raise InputError(f'the {role} token {token!r} is not in the vocabulary')
            roles[role] = token
        self._roles = roles
        self.vocab = make_vocab(ids_of(self._rust), roles)

    @functools.cached_property
    def _frames(self):
        return self._probe(1), self._probe(2)

    def _probe(self, count):
        """The special tokens that the post-processor puts around a number of texts."""
        samples = ('a', '1', '.', *self.vocab.idx_to_token)
        bare = (encode_rust(self._rust, [text])[0].ids for text in samples)
        sample = next((text for text, ids in zip(samples, bare) if ids), '')
        encoding = call_rust(self._rust.encode, *[sample] * count)
        gaps, text_types, position = [[] for _ in range(count + 1)], [0] * count, 0
        marks = zip(encoding.tokens, encoding.ids, encoding.type_ids)
        for mark, number in zip(marks, encoding.sequence_ids):
            if number is None:
                gaps[position].append(mark)
            else:
                position, text_types[number] = number + 1, mark[-1]
        tokens, ids, types = (tuple(tuple(m[n] for m in gap) for gap in gaps) for n in range(3))
        return Frame(tokens, ids, types, tuple(text_types), sum(map(len, ids)))

    @classmethod
    def from_pretrained(cls, name_or_dir, dataset_name=None, root=None, **kwargs):
        """Make the tokenizer of a folder with ``tokenizer.json``, or of the file."""
        path = file_in(name_or_dir, FILE_NAME)
        return super().from_pretrained(path, dataset_name, root, **kwargs)

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        return cls(file.path, **{**cls._kept_settings(file), **kwargs})

    @staticmethod
    def _kept_settings(file):
        folder, rust = os.path.dirname(file.path), open_rust(file.path)
        config = read_tokenizer_config(folder, _SPECIAL_TOKENS_NAME)
        config.update(read_tokenizer_config(folder))
        special = {}
        for role in ROLES:
            token = config.get(f'{role}_token')
            if isinstance(token, dict):
                token = token.get('content')
            if isinstance(token, str) and token_id(rust, token) is not None:
                special[role] = token
        return {'special_tokens': special, **Tokenizer._kept_settings(file)}

    def save_vocabulary(self, path):
        """Write the file, or ``tokenizer.json`` in a directory; returns its path."""
        path = file_in(path, FILE_NAME)
        with atomic_write(path) as file:
            file.write(self._rust.to_str(pretty=True))
        return path

    def to_library(self):
        return tokenizers.Tokenizer.from_str(self._rust.to_str())

    def _settings(self):
        tokens = {f'{role}_token': token for role, token in self._roles.items() if token}
        return {**tokens, **super()._settings()}

    def _id_of(self, token):
        number = token_id(self._rust, token)
        if number is None and self.unk_token is not None:
            number = token_id(self._rust, self.unk_token)
        if number is None:
            raise InputError(
                f'token {token!r} is not in the vocabulary, which has no unknown token either; '
                'tokenize the text first'
            )
        return number

    def _special_ids(self):
        return self._special

    def decode(self, ids, skip_special_tokens=False):
        tokens = self.convert_ids_to_tokens(ids, skip_special_tokens)
        known = (token_id(self._rust, token) for token in tokens)
        ids = [i for i in known if i is not None]
        return call_rust(self._rust.decode, ids, skip_special_tokens=False)

    def _pieces(self, texts):
        texts = [checked(text) for text in texts]
        return [_RustPieces(*parts) for parts in zip(texts, encode_rust(self._rust, texts))]
