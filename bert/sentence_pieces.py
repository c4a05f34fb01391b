"""SentencePiece's models, for BERT, XLM-R, ALBERT and DeBERTa."""

import os

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Library

from model_zoo.checkpoint.tensorflow_file import read_message
from model_zoo.errors import InputError, reporting
from model_zoo.tokenization.encoding import call_rust
from model_zoo.tokenization.library_files import PREFIX
from model_zoo.util.files import atomic_write, file_in


def open_model(path):
    """Read a SentencePiece model."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    kinds = OSError, RuntimeError, ValueError
    with reporting(f'{os.fspath(path)!r} is not a readable SentencePiece model', errors=kinds):
        processor.Load(os.fspath(path))
    return processor


def save_model(processor, path, name):
    """Write a SentencePiece model to a file, or to `name` in a folder; returns the path."""
    path = file_in(path, name)
    with atomic_write(path, 'wb') as file:
        file.write(processor.serialized_model_proto())
    return path


# numbers of fields in sentencepiece_model.proto
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_TYPE, _MODEL_TYPE, _BYTE_FALLBACK, _CHARSMAP = 3, 3, 35, 2
_UNIGRAM, _USER_DEFINED = 1, 4


def pieces_of(processor):
    """Return the pieces of a model in the order of their ids."""
    with reporting('a piece of the model is not UTF-8', errors=UnicodeDecodeError):
        return [processor.IdToPiece(number) for number in range(processor.GetPieceSize())]


def unigrams(processor, tokens, before=(), after=()):
    """Return a unigram model in the library `tokenizers`, as transformers converts it.

    `tokens` are in the order of their ids. The steps `before` and `after` stand around the model's
    own normalization. Pieces that its user defined are found in the text as it is.
    """
    message, pieces = read_message(processor.serialized_model_proto()), pieces_of(processor)
    fields = _TRAINER, _NORMALIZER
    trainer, normalizer = (read_message(message.get(field, [b''])[0]) for field in fields)
    if trainer.get(_MODEL_TYPE, [_UNIGRAM])[0] != _UNIGRAM or trainer.get(_BYTE_FALLBACK, [0])[0]:
        raise InputError('the SentencePiece model must be of unigrams, without bytes as pieces')
    scores = {
        piece: processor.GetScore(number)
        for number, piece in enumerate(pieces)
        if not (processor.IsControl(number) or processor.IsUnknown(number))
    }
    unscored = [pair for pair in zip(pieces, message.get(_PIECES, ())) if scores.get(pair[0]) == 0]
    own = [p for p, content in unscored if read_message(content).get(_TYPE) == [_USER_DEFINED]]
    defined = [AddedToken(piece, normalized=False) for piece in own]
    with reporting('the SentencePiece model has another <unk>', errors=ValueError):
        unknown = tokens.index(processor.IdToPiece(processor.unk_id()))
    scored = [(token, scores.get(token, 0.0)) for token in tokens]
    rust = Library(models.Unigram(scored, unk_id=unknown, byte_fallback=False))
    charsmap = normalizer.get(_CHARSMAP, [b''])[0]
    own = [call_rust(normalizers.Precompiled, charsmap)] if charsmap else []
    rust.normalizer = normalizers.Sequence([*before, *own, *after])
    rust.pre_tokenizer = pre_tokenizers.Metaspace(PREFIX, prepend_scheme='always')
    rust.decoder = decoders.Metaspace(PREFIX)  # 'always' by default
    rust.add_tokens(defined)
    return rust


def segment(processor, word, **options):
    """Return the pieces of `word` and their spans in its characters.

    A piece with only the prefix has an empty span. If one character became several pieces (a
    ligature), all of them have its span; the library gives it to the last one.
    """
    result = processor.Encode(word, out_type='offset_mapping', **options)
    pieces, offsets = result['pieces'], list(result['offsets'])
    for position in range(len(pieces) - 2, -1, -1):
        start, end = offsets[position]
        if start == end and pieces[position] != PREFIX:
            offsets[position] = start, offsets[position + 1][1]
    return pieces, offsets
