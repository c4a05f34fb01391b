"""Tokens and their ids: a vocabulary with special tokens, and ids back to text."""

import contextlib
import functools
import itertools
import json

import numpy as np

from ..errors import InputError, UnknownNameError
from .encoding import NO_FRAMES, UNLIMITED, Frame, call_rust, encode_rust, warn_if_long
from .library_files import BYTE_SPACE, PREFIX, ids_of, steps_of
from .vocab import NO_TOKEN, ROLES, find_roles, make_vocab


def _special(role):
    """Return the properties of a special token and of its id."""

    def find(self):
        token = self._roles.get(role)
        return None if token is None else self._id_of(token)

    return property(lambda self: self._roles.get(role)), property(find)


class Tokens:
    """The tokens of a tokenizer of the library, with their ids, and what they are like."""

    max_len = UNLIMITED
    added_tokens = {}
    #: id of padding if the vocabulary has no token for it; None if it must have one
    _default_pad_id = None
    #: role -> the role whose token replaces a missing one
    _stand_ins = {}
    #: roles that the vocabulary must have
    _needed = ()

    def _set_up(self, rust, special_tokens=None, max_len=None):
        """Set the library's tokenizer, without a copy."""
        self.max_len = max_len or UNLIMITED
        self._rust, added = rust, rust.get_added_tokens_decoder()
        self.added_tokens = {number: token.content for number, token in added.items()}
        self._special = {number for number, token in added.items() if token.special}
        special = {self.added_tokens[number] for number in self._special}
        roles = find_roles(special, first=('[UNK]', '<s>', '</s>'))
        for role, token in (special_tokens or {}).items():
            UnknownNameError.check('special token', role, ROLES)
            if rust.token_to_id(token) is None:
                raise InputError(f'the {role} token {token!r} is not in the vocabulary')
            roles[role] = token
        before, after = self._frames[0].tokens
        if before and after and not {'cls', 'sep'} <= roles.keys():
            roles = {'cls': before[0], 'sep': after[-1], **roles}
        self._named = roles

    pad_token, pad_token_id = _special('pad')
    cls_token, cls_token_id = _special('cls')
    sep_token, sep_token_id = _special('sep')
    mask_token, mask_token_id = _special('mask')
    unk_token, unk_token_id = _special('unk')
    bos_token, bos_token_id = _special('bos')
    eos_token, eos_token_id = _special('eos')

    # -- tokens and ids -------------------------------------------------------------------------

    def __len__(self):
        return len(self.vocab)

    def __repr__(self):
        facts = [f'{len(self)} tokens']
        if self.do_lower_case:
            facts.append('do_lower_case=True')
        if self.max_len < UNLIMITED:
            facts.append(f'max_len={self.max_len}')
        return f'{type(self).__name__}({", ".join(facts)})'

    @functools.cached_property
    def vocab(self):
        return make_vocab(ids_of(self._rust), self._named)

    @functools.cached_property
    def _roles(self):
        """The special tokens by their roles."""
        roles = {role: getattr(self.vocab, name, None) for role, name in ROLES.items()}
        for role, other in self._stand_ins.items():
            roles[role] = roles[role] or roles[other]
        for role in self._needed:
            if roles[role] is None:
                raise InputError(f'the vocabulary of {len(self)} tokens names no {role} token')
        return roles

    def convert_tokens_to_ids(self, tokens):
        """Return ids of a list of tokens, or the id of one; more than `max_len` log a warning."""
        if isinstance(tokens, str):
            return self._id_of(tokens)
        ids = [self._id_of(token) for token in tokens]
        warn_if_long(len(ids), self.max_len)
        return ids

    def convert_ids_to_tokens(self, ids, skip_special_tokens=False):
        """Return the tokens of a sequence or array of ids, or the token of a single id."""
        if hasattr(ids, 'asnumpy'):
            ids = ids.asnumpy()
        if not isinstance(ids, (list, tuple)) and np.ndim(ids) == 0:
            return self._token_of(_as_id(ids))
        ids = map(_as_id, ids)
        if skip_special_tokens:
            special = self._special_ids()
            ids = (i for i in ids if i not in special)
        return [self._token_of(i) for i in ids]

    def _special_ids(self):
        if self.added_tokens:
            return self._special
        return {self._id_of(token) for token in self._roles.values() if token is not None}

    def _id_of(self, token):
        ids = self.vocab.token_to_idx
        number = ids.get(token, ids.get(self.unk_token))
        if number is None:
            raise InputError(f'token {token!r} is not in the vocabulary, nor is an unknown token')
        return number

    def _token_of(self, token_id):
        if not 0 <= token_id < len(self):
            raise InputError(f'{token_id} must be an id of the vocabulary, 0 to {len(self) - 1}')
        return self.vocab.idx_to_token[token_id]

    def decode(self, ids, skip_special_tokens=False):
        """Return the text of a sequence or array of ids; ids without a token are left out."""
        return self._join(self._tokens_to_decode(ids, skip_special_tokens), ' ')

    def _tokens_to_decode(self, ids, skip_special_tokens):
        tokens = self.convert_ids_to_tokens(ids, skip_special_tokens)
        return [token for token in tokens if not token.startswith(NO_TOKEN)]

    def join(self, pieces):
        """Return the word of which `pieces` are the pieces."""
        return self._join(pieces, '').strip()

    def _join(self, tokens, between):
        decoder = self._rust.decoder
        return call_rust(decoder.decode, list(tokens)) if decoder else between.join(tokens)

    # -- how the library works ------------------------------------------------------------------

    @functools.cached_property
    def do_lower_case(self):
        """Whether texts are lowered."""
        return self._normalized('A').strip(PREFIX) == 'a'

    def _normalized(self, text):
        normalizer = self._rust.normalizer
        return text if normalizer is None else call_rust(normalizer.normalize_str, text)

    @property
    def finds_marks(self):
        """Whether special tokens are found anywhere in a text, not only between spaces."""
        return bool(self.added_tokens)

    @functools.cached_property
    def word_prefix(self):
        """The text before a word that isn't the first, where the tokens of the two differ."""
        first, both = (encode_rust(self._rust, [text])[0].tokens for text in ('a', 'a a'))
        return '' if both == first * 2 else ' '

    @functools.cached_property
    def _mark(self):
        """Whether the first characters of tokens mark words' beginnings, or other pieces; these."""
        content = json.loads(self._rust.to_str())
        prefix = content['model'].get('continuing_subword_prefix')
        if prefix:
            return False, prefix
        parts = ('normalizer', 'pre_tokenizer', 'decoder')
        steps = [step for part in parts for step in steps_of(content.get(part))]
        if any(step.get('type') == 'ByteLevel' for step in steps):
            return True, BYTE_SPACE
        return True, PREFIX if PREFIX in json.dumps(steps, ensure_ascii=False) else ''

    @property
    def has_bytes(self):
        """Whether tokens are made of bytes, as GPT-2's are."""
        return self._mark == (True, BYTE_SPACE)

    def is_first_subword(self, token):
        """Return whether `token` begins a word that isn't the text's first."""
        begins, mark = self._mark
        return token.startswith(mark) is begins

    def spell(self, ids):
        """Return the text of pieces from the middle of a text, with single spaces between words."""
        begins, mark = self._mark
        if begins:
            return ' '.join(self.decode(ids).split())
        tokens = self.convert_ids_to_tokens(ids)
        return ' '.join(' '.join(tokens).replace(f' {mark}', '').replace(mark, '').split())

    @property
    def pair_type(self):
        return self._frames[1].text_types[1]

    @functools.cached_property
    def _frames(self):
        """The special tokens that the post-processor puts around a text, and around a pair."""
        if self._rust.post_processor is None:
            return NO_FRAMES
        return self._probe(1), self._probe(2)

    def _probe(self, count):
        samples = itertools.chain('a1.', ids_of(self._rust))
        sample = next((text for text in samples if encode_rust(self._rust, [text])[0].ids), '')
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


def _as_id(value):
    """Return an id as an int; NDArrays have floats by default."""
    with contextlib.suppress(OverflowError, TypeError, ValueError):
        if int(value) == value:
            return int(value)
    raise InputError(f'{value!r:.80} is not a token id')
