"""Helpers of the tokenizers: checks of texts, patterns, places in texts."""

import logging
import re

from ..errors import InputError

__all__ = [
    'CHUNK',
    'SPACED',
    'UNLIMITED',
    'call_rust',
    'checked',
    'cover',
    'encode_rust',
    'list_of_texts',
    'warn_if_long',
]

_log = logging.getLogger(__name__)

#: the original's ``max_len`` where none is given
UNLIMITED = int(1e12)

#: Chunks of which none influences another's words. The ideographs are those that all versions of
#: Unicode have: unassigned ones are dropped, and join what stands beside them. So do the controls,
#: which would be white space for `re` and `str.split` had the original not dropped them before.
CHUNK = re.compile(
    '[\u3400-\u4db5\u4e00-\u9fa5]'
    r'|(?:[^\s\u3400-\u4db5\u4e00-\u9fa5]+|[\x0b\x0c\x1c-\x1f\x85]+)+'
)
#: what `str.split` finds, with places
SPACED = re.compile(r'\S+')

_SURROGATES = re.compile('[\ud800-\udfff]')


def checked(text):
    """`text` if it is a string, its lone surrogates replaced by U+FFFD (same length)."""
    if not isinstance(text, str):
        hint = '; decode it first' if isinstance(text, bytes) else ''
        raise InputError(f'a text must be a str, not {type(text).__name__}: {text!r:.80}{hint}')
    return text if text.isascii() else _SURROGATES.sub('\ufffd', text)


def list_of_texts(texts, name):
    """`texts` as a list, but not a str's characters as one."""
    if isinstance(texts, (str, bytes)):
        raise InputError(f'{name} must be a list of str, not one {type(texts).__name__}')
    return list(texts)


def cover(spans, start, end):
    """Smallest span that covers ``spans[start:end]``, or an empty one where none are."""
    if start < end:
        part = spans[start:end]
        return min(part)[0], max(last for _, last in part)
    place = spans[start][0] if start < len(spans) else spans[-1][1]
    return place, place


def call_rust(function, *args, **kwargs):
    """Call a method of the Rust library.

    Raises
    ------
    InputError
        Where it raises an error, or panics: a tokenizer.json may ask for what can't be done.
    """
    try:
        return function(*args, **kwargs)
    except BaseException as error:  # the library's panics are no Exceptions
        if not isinstance(error, Exception) and type(error).__name__ != 'PanicException':
            raise
        raise InputError(f'the tokenizer cannot do this: {error}') from error


def encode_rust(rust, batch, **kwargs):
    """The Rust library's encodings of a batch; one input alone doesn't start its threads."""
    if len(batch) == 1:
        return [call_rust(rust.encode, batch[0], add_special_tokens=False, **kwargs)]
    return call_rust(rust.encode_batch, batch, add_special_tokens=False, **kwargs)


def warn_if_long(length, max_len):
    """Log a warning if a model with `max_len` positions can't take `length` ids."""
    if length > max_len:
        _log.warning(
            'a sequence of %d ids is longer than the %d that the model has positions for; '
            'cut it before the model sees it',
            length,
            max_len,
        )
