"""Files of the library `tokenizers`: ``tokenizer.json``."""

import json
import operator
import sys

import tokenizers

from ..errors import InputError
from ..util.reading import parse_json
from ..util.remote import open_binary
from .encoding import call_rust
from .vocab import check_tokens

#: name of the file
FILE_NAME = 'tokenizer.json'
_SEQUENCES = {'normalizers', 'pretokenizers', 'processors', 'decoders'}


def open_rust(source):
    """Open a tokenizer of the library, without its truncation and padding."""
    try:
        if isinstance(source, tokenizers.Tokenizer):
            check_tokens(ids_of(source))
            text = source.to_str()
        else:
            with open_binary(source) as file:
                text = file.read().decode()
        content = parse_json(text, dict)
        # not the text: of two equal names the library may use the other
        rust = call_rust(tokenizers.Tokenizer.from_str, json.dumps(content))
        check_tokens(ids_of(rust))  # its to_str counts up to the largest id
    except Exception as error:  # the library raises no narrower kind
        raise InputError(f'{str(source)!r} cannot be read as a tokenizer.json: {error}') from error
    rust.no_padding()
    rust.no_truncation()
    return rust


def steps_of(part):
    """Return the steps of a normalizer or the like, one after the other, as dicts."""
    left, steps = [part], []
    while left:
        step = left.pop()
        if isinstance(step, dict):
            steps.append(step)
            for name in _SEQUENCES.intersection(step):
                left += reversed(step[name])
    return steps


def ids_of(rust):
    """Return all tokens and their ids, in the order of the ids."""
    return dict(sorted(rust.get_vocab(with_added_tokens=True).items(), key=operator.itemgetter(1)))


def word_piece_options(rust):
    """Return the arguments of the same ``BertTokenizer`` as a tokenizer, or None."""
    content = json.loads(rust.to_str())
    model, normalizer = content['model'], content.get('normalizer') or {}
    if not (
        model.get('type') == 'WordPiece'
        and model.get('continuing_subword_prefix') == '##'
        and normalizer.get('type') == 'BertNormalizer'
        and normalizer.get('clean_text') is True
        and (content.get('pre_tokenizer') or {}).get('type') == 'BertPreTokenizer'
    ):
        return None
    return {
        'do_lower_case': normalizer['lowercase'],
        'strip_accents': normalizer.get('strip_accents'),
        'tokenize_chinese_chars': normalizer['handle_chinese_chars'],
        'max_input_chars_per_word': model['max_input_chars_per_word'],
    }


def split_at_spaces():
    """Make a step of the library that splits like `str.split`."""
    spaces = ''.join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
    return tokenizers.pre_tokenizers.Split(tokenizers.Regex(f'[{spaces}]+'), 'removed')


#: byte pairs' sign for the space before a word
BYTE_SPACE = '\u0120'
#: SentencePiece's
PREFIX = '\u2581'
#: name of the file of a model whose ids are fairseq's
FAIRSEQ_NAME = 'sentencepiece.bpe.model'
