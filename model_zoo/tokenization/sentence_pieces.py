"""Words to the pieces of a SentencePiece model."""

import os

import tokenizers

from ..checkpoint.tensorflow_file import read_message
from ..errors import InputError
from ..util.files import atomic_write, file_in

__all__ = [
    'FAIRSEQ_NAME', 'PREFIX', 'fairseq_ids', 'open_model', 'save_model', 'segment', 'to_library',
]  # fmt: skip

#: SentencePiece's sign for the space before a word
PREFIX = '\u2581'
#: name of the file of a model whose ids are fairseq's
FAIRSEQ_NAME = 'sentencepiece.bpe.model'


def open_model(path):
    """Read a SentencePiece model."""
    import sentencepiece

    path = os.fspath(path)
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
        raise InputError(f'a piece of the SentencePiece model is no UTF-8: {error}') from error
    tokens = ['<s>', '<pad>', '</s>', '<unk>', *pieces, '<mask>']
    return {token: number for number, token in enumerate(tokens)}


# numbers of fields in sentencepiece_model.proto
_TRAINER, _NORMALIZER = 2, 3
_MODEL_TYPE, _BYTE_FALLBACK, _CHARSMAP = 3, 35, 2
_UNIGRAM = 1


def to_library(processor, tokens, unknown):
    """A unigram model in the library `tokenizers`, as transformers converts XLM-R's.

    Parameters
    ----------
    processor : sentencepiece.SentencePieceProcessor
    tokens : list of str
        The model's pieces and others, which no text is cut into, in the order of their ids.
    unknown : str
        The token of what has no piece.

    Returns
    -------
    tokenizers.Tokenizer

    Raises
    ------
    InputError
        If the model is of another kind, such as one of byte pairs.
    """
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
    for place in range(len(pieces) - 2, -1, -1):
        start, end = offsets[place]
        if start == end and pieces[place] != PREFIX:
            offsets[place] = start, offsets[place + 1][1]
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
