"""The file ``tokenizer.json`` of the Rust library `tokenizers`."""

import json
import os

import tokenizers

from ..errors import InputError
from .text import call_rust
from .vocab import check_tokens

__all__ = ['FILE_NAME', 'ids_of', 'open_rust', 'token_id', 'word_pieces_of']

#: name of the file
FILE_NAME = 'tokenizer.json'


def open_rust(source):
    """A tokenizer of the library, without cutting and padding of its own.

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
            rust = tokenizers.Tokenizer.from_str(source.to_str())
        else:
            rust = call_rust(tokenizers.Tokenizer.from_file, os.fspath(source))
            check_tokens(ids_of(rust))  # its to_str counts up to the largest id
    except Exception as error:  # the library raises nothing more special
        raise InputError(f'{source!r} cannot be read as a tokenizer.json: {error}') from error
    rust.no_padding()
    rust.no_truncation()
    return rust


def ids_of(rust):
    """All tokens and their ids.

    Parameters
    ----------
    rust : tokenizers.Tokenizer

    Returns
    -------
    dict of str to int
        In the order of the ids.
    """
    ids = rust.get_vocab(with_added_tokens=True)
    return dict(sorted(ids.items(), key=lambda item: item[1]))


def token_id(rust, token):
    """A token's id, or None where it isn't in the vocabulary.

    Parameters
    ----------
    rust : tokenizers.Tokenizer
    token : str

    Returns
    -------
    int or None
    """
    try:
        return rust.token_to_id(token)
    except UnicodeEncodeError:  # a lone surrogate
        return None


def word_pieces_of(path):
    """Whether a file does nothing but BERT's basic tokenization and word pieces.

    Parameters
    ----------
    path : str

    Returns
    -------
    (bool, bool)
        That, and whether texts are lowered.
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
