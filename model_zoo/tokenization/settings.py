"""A folder's settings of its tokenizer, besides the vocabulary.

Names and meanings are as in transformers' ``tokenizer_config.json``, ``special_tokens_map.json``
and ``added_tokens.json``.
"""

import dataclasses
import json
import os
from typing import Annotated, Any

import tokenizers
from pydantic import Field, PlainValidator, ValidationError, create_model
from tokenizers import AddedToken

from ..errors import InputError
from ..pretrained.files import TOKENIZER_CONFIG
from ..util.fields import Flag, Number, Text, refusal
from ..util.reading import read_json
from .library_files import steps_of
from .vocab import ROLES

#: the roles of special tokens
SPECIAL_NAME = 'special_tokens_map.json'
#: tokens after a vocabulary, with their ids
ADDED_NAME = 'added_tokens.json'
#: the tokens after a vocabulary that this project's tokenizers never find in a text
OWN_ADDED_NAME = 'special_tokens.txt'

#: options of `BertTokenizer` that the library doesn't have
PYTHON_OPTIONS = ('do_basic_tokenize', 'max_input_chars_per_word', 'never_split')
#: options that are true or false
SWITCHES = (
    'add_prefix_space',
    'do_basic_tokenize',
    'do_lower_case',
    'strip_accents',
    'tokenize_chinese_chars',
)


def _added_token(value):
    """Make a token of its text, or of its fields in the files."""
    fields = {'content': value} if isinstance(value, str) else value
    if not isinstance(fields, dict) or not isinstance(fields.get('content'), str):
        raise ValueError('a token must be a text')
    flags = ('single_word', 'lstrip', 'rstrip', 'normalized', 'special')
    known = {name: fields[name] for name in flags if isinstance(fields.get(name), bool)}
    return AddedToken(fields['content'], **{'special': True, 'normalized': False, **known})


_Token = Annotated[Any, PlainValidator(_added_token)]
_Length = Annotated[Number, Field(gt=0)]
_Extra = list[_Token | None] | dict[str, _Token | None] | None
# the files' fields that are used, with the content of added_tokens.json
_Files = create_model(
    '_Files',
    tokenizer_class=(Text | None, None),
    max_len=(_Length | None, None),
    model_max_length=(_Length | None, None),
    additional_special_tokens=(_Extra, None),
    extra_special_tokens=(_Extra, None),
    added_tokens_decoder=(dict[int, _Token] | None, None),
    added=(dict[str, int], ...),
    **dict.fromkeys(SWITCHES, (Flag | None, None)),
    **{f'{role}_token': (_Token | None, None) for role in ROLES},
)


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """The settings of a folder's tokenizer.

    Parameters
    ----------
    fields : dict
        All of ``tokenizer_config.json``, and the special tokens; saving writes them again.
    roles : dict of str to str
        Role of a special token -> token.
    added : dict of str to (AddedToken, int or None)
        Tokens that stay whole in texts, and their ids if the files state them.
    tokenizer_class : str, optional
        Name of the class in transformers, without the ending ``Tokenizer``.
    max_len : int, optional
        The most ids that the model takes.
    """

    fields: dict[str, Any]
    roles: dict[str, str]
    added: dict[str, tuple[AddedToken, int | None]]
    tokenizer_class: str | None
    max_len: int | None

    def applied_to(self, rust):
        """Return a copy of the library's tokenizer with these settings."""
        content = json.loads(rust.to_str())
        for step in steps_of(content.get('normalizer')):
            if step.get('type') == 'BertNormalizer':
                for name, ours in (
                    ('lowercase', 'do_lower_case'),
                    ('strip_accents', 'strip_accents'),
                    ('handle_chinese_chars', 'tokenize_chinese_chars'),
                ):
                    value = self.fields.get(ours, step.get(name))
                    if value is not None or name == 'strip_accents':  # null is its default
                        step[name] = value
        space = self.fields.get('add_prefix_space')
        for part in ('pre_tokenizer', 'post_processor'):
            for step in steps_of(content.get(part)):
                if step.get('type') in ('ByteLevel', 'RobertaProcessing') and space is not None:
                    step['add_prefix_space'] = space
        known = {token['content'] for token in content.get('added_tokens') or ()}
        rust = tokenizers.Tokenizer.from_str(json.dumps(content))
        by_id = sorted(self.added.items(), key=lambda item: (item[1][1] is None, item[1][1] or 0))
        for content, (token, number) in by_id:
            # without an id, or a place in the vocabulary, the model has no vector for it
            if content in known or (number is None and rust.token_to_id(content) is None):
                continue
            (rust.add_special_tokens if token.special else rust.add_tokens)([token])
            if number not in (None, rust.token_to_id(content)):
                raise InputError(
                    f'the added token {content!r:.80} has the id {number}, but the next one is '
                    f'{rust.token_to_id(content)}: the ids between have no tokens'
                )
        return rust


def read_settings(file):
    """Read the `TokenizerSettings` beside a `VocabFile`; InputError for values of a wrong type."""
    folder = os.path.dirname(file.path)
    paths = TOKENIZER_CONFIG, 'config.json', SPECIAL_NAME, ADDED_NAME
    paths = [os.path.join(folder, name) for name in paths]
    fields, config, special, added = (read_json(p, shape=dict, default={}) for p in paths)
    if config.get('tokenizer_class'):  # older models name it there
        fields = {'tokenizer_class': config['tokenizer_class'], **fields}
    if os.path.exists(os.path.join(folder, OWN_ADDED_NAME)):
        added = {}
    try:
        files = dict(_Files.model_validate({**special, **fields, 'added': added}))
    except ValidationError as error:
        raise InputError(f'{paths[0]!r}: {refusal(error)}') from None
    roles = {role: files[f'{role}_token'] for role in ROLES if files[f'{role}_token']}
    tokens = [*roles.values()]
    for name in ('additional_special_tokens', 'extra_special_tokens'):
        extra = files[name] or []
        tokens += extra.values() if isinstance(extra, dict) else extra
    added = {token.content: (token, None) for token in tokens if token is not None}
    for token, number in files['added'].items():
        added[token] = added.get(token, (AddedToken(token, special=False),))[0], number
    for number, token in (files['added_tokens_decoder'] or {}).items():
        added[token.content] = token, number
    roles = {role: token.content for role, token in roles.items()}
    fields = {**{f'{role}_token': token for role, token in roles.items()}, **fields}
    if file.stated_lower_case is not None:
        fields['do_lower_case'] = file.stated_lower_case
    name = (files['tokenizer_class'] or '').replace('TokenizerFast', '')
    max_len = files['max_len'] or files['model_max_length']
    name, max_len = name.replace('Tokenizer', '') or None, max_len and int(max_len)
    return TokenizerSettings(fields, roles, added, name, max_len)
