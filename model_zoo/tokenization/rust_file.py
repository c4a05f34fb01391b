"""The file ``tokenizer.json`` of the Rust library `tokenizers`."""

import base64
import contextlib
import json
import struct
import unicodedata

import tokenizers

from ..errors import InputError
from ..util.files import parse_json
from .text import call_rust
from .vocab import check_tokens

__all__ = ['FILE_NAME', 'check_steps', 'ids_of', 'open_rust', 'token_id', 'word_pieces_of']

#: name of the file
FILE_NAME = 'tokenizer.json'
_MOST_GROWTH = 1000  # characters that one may become; a few dozen are usual
_MOST_PARTS = 1000  # steps, and tokens around a text
_SEQUENCES = {'normalizers', 'pretokenizers', 'processors', 'decoders'}


def open_rust(source):
    """A tokenizer of the library, without cutting and padding of its own.

    A file is looked at before the library opens it, which would follow it anywhere: to gigabytes
    made of a letter, or to a panic, of which it prints a page.

    Parameters
    ----------
    source : str, os.PathLike or tokenizers.Tokenizer

    Returns
    -------
    tokenizers.Tokenizer
    """
    try:
        if isinstance(source, tokenizers.Tokenizer):
            check_tokens(ids_of(source))
            text = source.to_str()
        else:
            with open(source, encoding='utf-8') as file:
                text = file.read()
        content = parse_json(text, dict)
        check_steps(content)
        # not the text, in which the library may take another of two equal names
        rust = call_rust(tokenizers.Tokenizer.from_str, json.dumps(content))
        check_tokens(ids_of(rust))  # its to_str counts up to the largest id
    except Exception as error:  # the library raises nothing more special
        raise InputError(f'{source!r} cannot be read as a tokenizer.json: {error}') from error
    rust.no_padding()
    rust.no_truncation()
    return rust


def check_steps(content):
    """Raise ValueError if a file's steps multiply a text, or its template isn't sound."""
    growth = 1
    for name in ('normalizer', 'pre_tokenizer', 'decoder'):
        growth = 1 if name == 'decoder' else growth
        for step in _steps(content.get(name)):
            growth *= _growth_of(step)
            if growth > _MOST_GROWTH:
                raise ValueError(
                    f'its {name} makes more than {_MOST_GROWTH} characters of one; a tokenizer '
                    'that was trained needs a few dozen'
                )
    steps = _steps(content.get('post_processor'))
    framing = [step for step in steps if 'single' in step or {'cls', 'sep'} <= {*step}]
    if len(framing) > 1:
        raise ValueError('several steps of its post_processor add special tokens; one may')
    for step in framing:
        _check_template(step)


def _steps(part):
    """The steps of a normalizer or the like, one after the other, as dicts."""
    left, steps = [part], []
    while left:
        step = left.pop()
        if isinstance(step, dict):
            steps.append(step)
            for name in _SEQUENCES.intersection(step):
                left += reversed(step[name])
        if len(steps) + len(left) > _MOST_PARTS:
            raise ValueError(f'it has more than {_MOST_PARTS} steps')
    return steps


def _growth_of(step):
    """Of how many characters a step may make one, with what Unicode's forms make of these."""
    added = step.get('content', step.get('prepend'))
    pattern = step.get('pattern')
    literal = pattern.get('String') if isinstance(pattern, dict) else pattern
    charsmap = step.get('precompiled_charsmap')
    if isinstance(added, str):
        if isinstance(literal, str) and literal:
            return max(1, -(-_longest(added) // len(literal)))
        return 1 + _longest(added)
    if isinstance(charsmap, str):
        with contextlib.suppress(ValueError, struct.error):  # which the library refuses
            data = base64.b64decode(charsmap)
            texts = data[4 + struct.unpack('<I', data[:4])[0] :].decode('utf-8', 'replace')
            return max(map(_longest, texts.split('\0')))
    if 'handle_chinese_chars' in step:
        return 3  # with spaces around it
    if step.get('type') == 'ByteLevel' or 'trim_offsets' in step:
        return 4  # one for each byte
    if '' in (step.get('word_delimiter_token'), step.get('suffix')):
        return 2  # what replaces it comes between all characters
    return 1


def _longest(text):
    """Characters of a text in Unicode's longest form."""
    return len(unicodedata.normalize('NFKD', text.lower()))


def _check_template(step):
    tokens = step.get('special_tokens')
    counts = {
        name: len(token['ids']) if isinstance(token, dict) else 1
        for name, token in (tokens.items() if isinstance(tokens, dict) else ())
    }
    for name in ('single', 'pair'):
        texts, count = [], 0
        for piece in step.get(name, ()):
            for kind, value in piece.items():
                if kind == 'Sequence':
                    texts.append(value['id'])
                elif value['id'] not in counts:
                    raise ValueError(f'its template has no special token {value["id"]!r:.80}')
                else:
                    count += counts[value['id']]
        if len(set(texts)) < len(texts):
            raise ValueError(f'its template for a {name} has a text twice')
        if count > _MOST_PARTS:
            raise ValueError(f'its template adds {count} tokens; {_MOST_PARTS} are the most')


def ids_of(rust):
    """All tokens and their ids, in the order of the ids."""
    ids = rust.get_vocab(with_added_tokens=True)
    return dict(sorted(ids.items(), key=lambda item: item[1]))


def token_id(rust, token):
    """A token's id, or None where it isn't in the vocabulary."""
    try:
        return rust.token_to_id(token)
    except UnicodeEncodeError:  # a lone surrogate
        return None


def word_pieces_of(path):
    """Whether a file does nothing but BERT's basic tokenization and word pieces, and whether it
    lowers.
    """
    content = json.loads(open_rust(path).to_str())
    model, normalizer = content['model'], content.get('normalizer') or {}
    lowers = bool(normalizer.get('lowercase'))
    is_usual = (
        model.get('type') == 'WordPiece'
        and model.get('continuing_subword_prefix') == '##'
        and model.get('unk_token') == '[UNK]'
        and model.get('max_input_chars_per_word') == 100
        and normalizer.get('type') == 'BertNormalizer'
        and normalizer.get('clean_text') is True
        and normalizer.get('handle_chinese_chars') is True
        and normalizer.get('strip_accents') in (None, lowers)
        and (content.get('pre_tokenizer') or {}).get('type') == 'BertPreTokenizer'
        and {'[UNK]', '[CLS]', '[SEP]'} <= set(model['vocab'])
    )
    return is_usual, lowers
