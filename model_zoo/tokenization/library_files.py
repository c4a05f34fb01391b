"""Files of libraries: ``tokenizer.json`` of `tokenizers`, and the models of SentencePiece."""

import base64
import contextlib
import json
import os
import struct
import unicodedata

import tokenizers

from ..checkpoint.tensorflow_file import read_message
from ..errors import InputError
from ..util.files import atomic_write, file_in
from ..util.reading import parse_json, raised, read_whole
from .encoding import call_rust
from .vocab import check_tokens

__all__ = [
    'BYTE_SPACE',
    'FAIRSEQ_NAME',
    'FILE_NAME',
    'PREFIX',
    'check_steps',
    'fairseq_ids',
    'ids_of',
    'open_model',
    'open_rust',
    'save_model',
    'segment',
    'steps_of',
    'to_library',
    'token_id',
    'word_piece_options',
]


#: name of the file
FILE_NAME = 'tokenizer.json'
_MOST_GROWTH = 1000  # characters that one may become; a few dozen are usual
_MOST_PARTS = 1000  # steps, and tokens around a text
_LONGEST_ADDED = 1000  # characters; the library's time grows with their square
_SEQUENCES = {'normalizers', 'pretokenizers', 'processors', 'decoders'}


def open_rust(source):
    """A tokenizer of the library, without cutting and padding of its own.

    A file is looked at before the library opens it, which would follow it anywhere: to gigabytes
    made of a letter, or to a panic, of which it prints a page.
    """
    try:
        if isinstance(source, tokenizers.Tokenizer):
            check_tokens(ids_of(source))
            text = source.to_str()
        else:
            text = read_whole(source, int(raised(2**26))).decode()
        content = parse_json(text, dict)
        check_steps(content)
        # not the text, in which the library may take another of two equal names
        rust = call_rust(tokenizers.Tokenizer.from_str, json.dumps(content))
        check_tokens(ids_of(rust))  # its to_str counts up to the largest id
    except Exception as error:  # the library raises nothing more special
        raise InputError(f'{str(source)!r} cannot be read as a tokenizer.json: {error}') from error
    rust.no_padding()
    rust.no_truncation()
    return rust


def check_steps(content):
    """Raise ValueError if a file's steps multiply a text, its template isn't sound, or an added
    token is too long.
    """
    for token in content.get('added_tokens') or ():
        text = token.get('content') if isinstance(token, dict) else None
        if isinstance(text, str) and len(text) > _LONGEST_ADDED:
            raise ValueError(
                f'an added token has {len(text)} characters; {_LONGEST_ADDED} are the most'
            )
    growth = 1
    for name in ('normalizer', 'pre_tokenizer', 'decoder'):
        growth = 1 if name == 'decoder' else growth
        for step in steps_of(content.get(name)):
            growth *= _growth_of(step)
            if growth > _MOST_GROWTH:
                raise ValueError(
                    f'its {name} makes more than {_MOST_GROWTH} characters of one; a tokenizer '
                    'that was trained needs a few dozen'
                )
    steps = steps_of(content.get('post_processor'))
    framing = [step for step in steps if 'single' in step or {'cls', 'sep'} <= {*step}]
    if len(framing) > 1:
        raise ValueError('several steps of its post_processor add special tokens; one may')
    for step in framing:
        _check_template(step)


def steps_of(part):
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


def word_piece_options(rust):
    """Arguments of ``BertTokenizer`` with which it cuts texts as a tokenizer does, or None."""
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


#: byte pairs' sign for the space before a word
BYTE_SPACE = '\u0120'
#: SentencePiece's
PREFIX = '\u2581'
#: name of the file of a model whose ids are fairseq's
FAIRSEQ_NAME = 'sentencepiece.bpe.model'


def open_model(path):
    """Read a SentencePiece model."""
    import sentencepiece

    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f'{path!r} is not a SentencePiece model: it is not a regular file')
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.Load(path)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f'{path!r} is not a readable SentencePiece model: {error}') from error
    return processor


def save_model(processor, path, name):
    """Write a SentencePiece model to a file, or to `name` in a folder; returns the path."""
    path = file_in(path, name)
    with atomic_write(path, 'wb') as file:
        file.write(processor.serialized_model_proto())
    return path


def fairseq_ids(processor):
    """Tokens and ids of a model's pieces as fairseq has them, for XLM-R.

    Its special tokens come first, and ``<mask>`` last.
    """
    try:
        pieces = [processor.IdToPiece(number) for number in range(3, processor.GetPieceSize())]
    except UnicodeDecodeError as error:
        raise InputError(f'a piece of the SentencePiece model is not UTF-8: {error}') from error
    tokens = ['<s>', '<pad>', '</s>', '<unk>', *pieces, '<mask>']
    return {token: number for number, token in enumerate(tokens)}


# numbers of fields in sentencepiece_model.proto
_TRAINER, _NORMALIZER = 2, 3
_MODEL_TYPE, _BYTE_FALLBACK, _CHARSMAP = 3, 35, 2
_UNIGRAM = 1


def to_library(processor, tokens, unknown):
    """A unigram model in the library `tokenizers`, as transformers converts XLM-R's."""
    message = read_message(processor.serialized_model_proto())
    trainer, normalizer = (read_message(message[field][0]) for field in (_TRAINER, _NORMALIZER))
    if trainer.get(_MODEL_TYPE, [_UNIGRAM])[0] != _UNIGRAM or trainer.get(_BYTE_FALLBACK, [0])[0]:
        raise InputError(
            'only a SentencePiece model of the kind unigram, without bytes as pieces, can be '
            'written as a tokenizer.json'
        )
    scores = {
        processor.IdToPiece(number): processor.GetScore(number)
        for number in range(processor.GetPieceSize())
        if not (processor.IsControl(number) or processor.IsUnknown(number))
    }
    model = tokenizers.models.Unigram(
        [(token, scores.get(token, 0.0)) for token in tokens],
        unk_id=tokens.index(unknown),
        byte_fallback=False,
    )
    rust = tokenizers.Tokenizer(model)
    charsmap = normalizer.get(_CHARSMAP, [b''])[0]
    rust.normalizer = tokenizers.normalizers.Sequence(
        [
            *([tokenizers.normalizers.Precompiled(charsmap)] if charsmap else []),
            tokenizers.normalizers.Strip(left=False, right=True),
            tokenizers.normalizers.Replace(tokenizers.Regex(' {2,}'), PREFIX),
        ]
    )
    prefix = {'replacement': PREFIX, 'prepend_scheme': 'always'}
    rust.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(**prefix)
    rust.decoder = tokenizers.decoders.Metaspace(**prefix)
    return rust


def segment(processor, word, **options):
    """Pieces of `word` and their spans in its characters.

    A piece with only the prefix has an empty span. If one character became several pieces (a
    ligature), all of them have its span; the library gives it to the last one.
    """
    if hasattr(processor, 'EncodeAsOffsetMapping'):
        result = processor.Encode(word, out_type='offset_mapping', **options)
        pieces, offsets = result['pieces'], list(result['offsets'])
    else:  # older versions of the library, which have this instead
        result = processor.Encode(word, out_type='immutable_proto', **options).pieces
        pieces = [piece.piece for piece in result]
        offsets = [(piece.begin, piece.end) for piece in result]
    for position in range(len(pieces) - 2, -1, -1):
        start, end = offsets[position]
        if start == end and pieces[position] != PREFIX:
            offsets[position] = start, offsets[position + 1][1]
    return pieces, offsets


class SentencePieceText:
    """How tokenizers whose tokens are sentence pieces write text; goes before their other bases."""

    def decode(self, ids, skip_special_tokens=False):
        tokens = self.convert_ids_to_tokens(ids, skip_special_tokens)
        return ''.join(tokens).replace(PREFIX, ' ').strip()

    @staticmethod
    def is_first_subword(token):
        """Whether `token` begins a word (starts with U+2581)."""
        return token.startswith(PREFIX)
