"""Any tokenizer of the Rust library `tokenizers`, such as the hub's ``tokenizer.json``."""

import dataclasses
import functools
import json

import tokenizers

from ..errors import InputError
from ..util.files import atomic_write, file_in
from .encoding import Frame, RustPieces, call_rust, checked, encode_rust
from .library_files import (
    BYTE_SPACE,
    FILE_NAME,
    PREFIX,
    ids_of,
    open_rust,
    steps_of,
    token_id,
    word_piece_options,
)
from .settings import PYTHON_OPTIONS, SWITCHES
from .tokenizer import Tokenizer, spell_word_pieces
from .vocab import ROLES, find_roles, make_vocab


class _FilePieces(RustPieces):
    __slots__ = ()

    def tokens(self):
        # of an added token the library has the space that it takes
        added, pairs = self._owner.added_tokens, zip(self._encoding.ids, self._encoding.tokens)
        return [t if t == t.lstrip() or not t.strip() else added.get(n, t) for n, t in pairs]

    def words(self):
        spans = {}
        for number, (start, end) in zip(self.numbers(), self.offsets()):
            if number is not None:
                first, last = spans.get(number, (start, end))
                spans[number] = min(first, start), max(last, end)
        indices = range(max(spans, default=-1) + 1)
        return [self._text[slice(*spans.get(index, (0, 0)))].strip() for index in indices]


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

    kinds = ('tokenizers',)
    finds_marks = True

    def __init__(self, source, special_tokens=None, max_len=None):
        super().__init__(max_len)
        self._rust = open_rust(source)
        content = json.loads(self._rust.to_str())
        self.added_tokens = {token['id']: token['content'] for token in content['added_tokens']}
        self._special = {token['id'] for token in content['added_tokens'] if token['special']}
        special = {self.added_tokens[number] for number in self._special}
        roles = find_roles(special, first=('[UNK]', '<s>', '</s>'))
        for role, token in (special_tokens or {}).items():
            if role not in ROLES:
                raise InputError(f'{role!r} is not a special token; there are {", ".join(ROLES)}')
            if token_id(self._rust, token) is None:
                raise InputError(f'the {role} token {token!r} is not in the vocabulary')
            roles[role] = token
        ids = ids_of(self._rust)
        self._roles, self.vocab = roles, make_vocab(ids, roles)
        before, after = self._frames[0].tokens
        if before and after and not {'cls', 'sep'} <= roles.keys():
            self._roles = {'cls': before[0], 'sep': after[-1], **roles}
            self.vocab = make_vocab(ids, self._roles)
        # whether a token's first characters say that it begins a word, or that it doesn't
        prefix = content['model'].get('continuing_subword_prefix')
        parts = ('normalizer', 'pre_tokenizer', 'decoder')
        steps = [step for part in parts for step in steps_of(content.get(part))]
        if prefix:
            self._mark = False, prefix
        elif any(step.get('type') == 'ByteLevel' for step in steps):
            self._mark = True, BYTE_SPACE
        else:
            self._mark = True, PREFIX if PREFIX in json.dumps(steps, ensure_ascii=False) else ''

    @functools.cached_property
    def do_lower_case(self):
        """Whether texts are lowered."""
        return self._normalized('A').strip(PREFIX) == 'a'

    def _normalized(self, text):
        normalizer = self._rust.normalizer
        return text if normalizer is None else call_rust(normalizer.normalize_str, text)

    @functools.cached_property
    def word_prefix(self):
        first, both = (encode_rust(self._rust, [text])[0].tokens for text in ('a', 'a a'))
        return '' if both == first * 2 else ' '

    @functools.cached_property
    def pair_type(self):
        return self._frames[1].text_types[1]

    def is_first_subword(self, token):
        """Whether `token` begins a word that isn't the text's first."""
        begins, mark = self._mark
        return token.startswith(mark) is begins

    def join(self, pieces):
        """The word that `pieces` are of."""
        decoder = self._rust.decoder
        return call_rust(decoder.decode, list(pieces)).strip() if decoder else ''.join(pieces)

    def normalized(self, word):
        begins, _ = self._mark
        if begins:
            return super().normalized(word)
        text, splitter = self._normalized(word), self._rust.pre_tokenizer
        words = call_rust(splitter.pre_tokenize_str, text) if splitter else [(text, None)]
        return ' '.join(word for word, _ in words)

    def spell(self, ids):
        begins, mark = self._mark
        if begins:
            return super().spell(ids)
        return spell_word_pieces(self.convert_ids_to_tokens(ids), mark)

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
        if not any(ids):  # language models, whose blocks have no types
            text_types = (0,) * count
        return Frame(tokens, ids, types, tuple(text_types), sum(map(len, ids)))

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        return cls.of_settings(cls._library_of(file), file.settings, **kwargs)

    @classmethod
    def _library_of(cls, file):
        """The library's object for a vocabulary's `VocabFile`."""
        return open_rust(file.path)

    @classmethod
    def of_settings(cls, rust, settings, **kwargs):
        """Make the tokenizer of the library's object and a folder's `TokenizerSettings`."""
        names = [name for name in kwargs if name in (*SWITCHES, *PYTHON_OPTIONS)]
        changes = {name: kwargs.pop(name) for name in names}
        settings = dataclasses.replace(settings, fields={**settings.fields, **changes})
        rust = settings.applied_to(rust)
        given = {
            'special_tokens': settings.roles_among(rust.get_vocab()),
            'max_len': settings.max_len(),
        }
        tokenizer = cls.__new__(cls)  # a class for a kind of files is made of them
        FileTokenizer.__init__(tokenizer, rust, **{**given, **kwargs})
        return tokenizer.with_settings(settings)

    def as_one_of(self, classes):
        """A tokenizer of one of the classes that gives the same, or this one."""
        options = word_piece_options(self._rust)
        given = {name: self._fields[name] for name in PYTHON_OPTIONS if self._fields.get(name)}
        if self._fields.get('do_basic_tokenize') is False:
            given['do_basic_tokenize'] = False
        makers = [cls.of_word_pieces for cls in classes if options and cls.of_word_pieces]
        exact = makers[0](self, {**options, **given}) if makers else None
        if exact is None and (given.get('never_split') or not given.get('do_basic_tokenize', True)):
            raise InputError(
                'do_basic_tokenize and never_split are for word pieces without added tokens: '
                'leave them out'
            )
        return exact or self

    def save_vocabulary(self, path):
        """Write the file, or ``tokenizer.json`` in a directory; returns its path."""
        path = file_in(path, FILE_NAME)
        with atomic_write(path) as file:
            file.write(self._rust.to_str(pretty=True))
        return path

    def to_library(self):
        return tokenizers.Tokenizer.from_str(self._rust.to_str())

    def _settings(self):
        tokens = {f'{role}_token': token for role, token in self._roles.items()}
        return {**super()._settings(), **tokens}

    def _special_ids(self):
        return self._special

    def decode(self, ids, skip_special_tokens=False):
        tokens = self.convert_ids_to_tokens(ids, skip_special_tokens)
        known = (token_id(self._rust, token) for token in tokens)
        ids = [i for i in known if i is not None]
        return call_rust(self._rust.decode, ids, skip_special_tokens=False)

    def _pieces(self, texts):
        texts = [checked(text) for text in texts]
        encodings = encode_rust(self._rust, texts)
        return [_FilePieces(self, *parts) for parts in zip(texts, encodings)]


Tokenizer.library = FileTokenizer
