"""BERT's tokenizer with a SentencePiece model, as GluonNLP has it."""

import os

from model_zoo.errors import InputError
from model_zoo.tokenization.basic import GluonBasicTokenizer
from model_zoo.tokenization.chunks import Chunk
from model_zoo.tokenization.sentence_pieces import (
    PREFIX,
    SentencePieceText,
    open_model,
    save_model,
    segment,
)
from model_zoo.tokenization.text import cover

from .tokenizer_base import BertTokenizerBase

__all__ = ['BertSPTokenizer']


class BertSPTokenizer(SentencePieceText, BertTokenizerBase):
    """Basic tokenization, then SentencePiece on each word, as GluonNLP's BERTSPTokenizer.

    The basic tokenizer is GluonNLP's here: it drops only control and format characters, keeps no
    special tokens whole, and strips accents even where `lower` is False.

    Parameters
    ----------
    path : str or os.PathLike
        SentencePiece model.
    vocab : gluonnlp.vocab.BERTVocab, optional
        By default ``BERTVocab.from_sentencepiece(path, padding_token='[PAD]')``, or with the
        model's own padding token where it has one.
    num_best : int
        0 and 1: the best segmentation. Above 1: one drawn from so many best ones. Below 0: one
        drawn from all.
    alpha : float
        Inverse temperature of the draw.
    lower : bool
    max_input_chars_per_word : int
        There for GluonNLP's signature; SentencePiece takes words of any length, there and here.
    max_len : int, optional
        Length from which a warning is logged.

    Raises
    ------
    InputError
        If the model can't be read.
    """

    def __init__(
        self,
        path,
        vocab=None,
        num_best=0,
        alpha=1.0,
        lower=True,
        max_input_chars_per_word=200,
        max_len=None,
    ):
        self._sentencepiece = open_model(path)
        if vocab is None:
            from gluonnlp.vocab import BERTVocab

            try:
                own = self._sentencepiece.pad_id()
                padding = '[PAD]' if own < 0 else self._sentencepiece.IdToPiece(own)
                vocab = BERTVocab.from_sentencepiece(os.fspath(path), padding_token=padding)
            except Exception as error:  # these libraries check little of what they read
                raise InputError(f'{os.fspath(path)!r} has no vocabulary: {error}') from error
        super().__init__(vocab, max_len)
        self.do_lower_case = bool(lower)
        self.max_input_chars_per_word = max_input_chars_per_word
        self.basic_tokenizer = GluonBasicTokenizer(lower)
        self._options = {}
        if not 0 <= num_best <= 1:
            nbest_size = max(num_best, -1)
            self._options = {'enable_sampling': True, 'nbest_size': nbest_size, 'alpha': alpha}

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        if not file.is_sentencepiece:
            raise InputError(f'{file.path!r} is a list of tokens; open it with BertTokenizer')
        return cls(file.path, **{'vocab': file.load(), 'lower': file.do_lower_case, **kwargs})

    def save_vocabulary(self, path):
        """Write the SentencePiece model.

        Parameters
        ----------
        path : str or os.PathLike
            A file, or a directory in which ``vocab.spiece`` is written.

        Returns
        -------
        str
            Path of the file.
        """
        return save_model(self._sentencepiece, path, 'vocab.spiece')

    def _settings(self):
        return {'do_lower_case': self.do_lower_case, 'padding_token': self.vocab.padding_token}

    @staticmethod
    def join(pieces):
        """The word that `pieces` are of."""
        word = ''.join(pieces)
        return word[1:] if word.startswith(PREFIX) else word

    def _look_up(self, found):
        if self._options:  # each occurrence has its own draw
            return [self._learn(chunks) for chunks in found]
        return super()._look_up(found)

    def _learn(self, chunks):
        return [self._segment(self.basic_tokenizer.align(chunk)) for chunk in chunks]

    def _segment(self, words):
        """Pieces of words, each cut by SentencePiece."""
        tokens, spans, numbers = [], [], []
        for number, (word, places) in enumerate(words):
            pieces, offsets = segment(self._sentencepiece, word, **self._options)
            tokens += pieces
            spans += [cover(places, start, end) for start, end in offsets]
            numbers += [number] * len(pieces)
        return Chunk(
            tuple(self.vocab[tokens]),
            tuple(tokens),
            tuple(spans),
            tuple(numbers),
            tuple(word for word, _ in words),
        )
