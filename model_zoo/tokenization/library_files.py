"""Files of libraries: ``tokenizer.json`` of `tokenizers`, and the models of SentencePiece."""

import json
import os
import sys

import tokenizers

from ..checkpoint.tensorflow_file import read_message
from ..errors import InputError
from ..util.files import atomic_write, file_in
from ..util.reading import parse_json
from ..util.remote import open_binary
from .encoding import call_rust
from .vocab import check_tokens

__all__ = [
    'BYTE_SPACE',
    'FAIRSEQ_NAME',
    'FILE_NAME',
    'PREFIX',
    'fairseq_ids',
    'ids_of',
    'open_model',
    'open_rust',
    'save_model',
    'segment',
    'split_at_spaces',
    'steps_of',
    'token_id',
    'unigrams',
    'word_piece_options',
]


#: name of the file
FILE_NAME = 'tokenizer.json'
_SEQUENCES = {'normalizers', 'pretokenizers', 'processors', 'decoders'}


def open_rust(source):
    """A tokenizer of the library, without cutting and padding of its own."""
    try:
        if isinstance(source, tokenizers.Tokenizer):
            check_tokens(ids_of(source))
            text = source.to_str()
        else:
            with open_binary(source) as file:
                text = file.read().decode()
        content = parse_json(text, dict)
        # not the text, in which the library may take another of two equal names
        rust = call_rust(tokenizers.Tokenizer.from_str, json.dumps(content))
        check_tokens(ids_of(rust))  # its to_str counts up to the largest id
    except Exception as error:  # the library raises nothing more special
        raise InputError(f'{str(source)!r} cannot be read as a tokenizer.json: {error}') from error
    rust.no_padding()
    rust.no_truncation()
    return rust


def steps_of(part):
    """The steps of a normalizer or the like, one after the other, as dicts."""
    left, steps = [part], []
    while left:
        step = left.pop()
        if isinstance(step, dict):
            steps.append(step)
            for name in _SEQUENCES.intersection(step):
                left += reversed(step[name])
    return steps


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


def split_at_spaces():
    """A step of the library that finds what `str.split` does."""
    spaces = ''.join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
    return tokenizers.pre_tokenizers.Split(tokenizers.Regex(f'[{spaces}]+'), 'removed')


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


def unigrams(processor):
    """A unigram model in the library `tokenizers`, as transformers converts XLM-R's."""
    tokens = list(fairseq_ids(processor))
    message = read_message(processor.serialized_model_proto())
    trainer, normalizer = (read_message(message[field][0]) for field in (_TRAINER, _NORMALIZER))
    if trainer.get(_MODEL_TYPE, [_UNIGRAM])[0] != _UNIGRAM or trainer.get(_BYTE_FALLBACK, [0])[0]:
        raise InputError(
            'only a SentencePiece model of the kind unigram, without bytes as pieces, can be opened'
        )
    scores = {
        processor.IdToPiece(number): processor.GetScore(number)
        for number in range(processor.GetPieceSize())
        if not (processor.IsControl(number) or processor.IsUnknown(number))
    }
    model = tokenizers.models.Unigram(
        [(token, scores.get(token, 0.0)) for token in tokens],
        unk_id=tokens.index('<unk>'),
        byte_fallback=False,
    )
    rust = tokenizers.Tokenizer(model)
    charsmap = normalizer.get(_CHARSMAP, [b''])[0]
    rust.normalizer = tokenizers.normalizers.Sequence(
        [
            *([call_rust(tokenizers.normalizers.Precompiled, charsmap)] if charsmap else []),
            tokenizers.normalizers.Strip(left=False, right=True),
            tokenizers.normalizers.Replace(tokenizers.Regex(' {2,}'), PREFIX),
        ]
    )
    rust.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(PREFIX, prepend_scheme='always')
    rust.decoder = tokenizers.decoders.Metaspace(PREFIX)  # 'always' by default
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
