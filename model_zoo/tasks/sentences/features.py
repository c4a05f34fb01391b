"""Texts that belong together, as a model takes them."""

import logging

from ...batches import Sample
from ...errors import InputError

__all__ = ['SentenceFeatures']

logger = logging.getLogger(__name__)

CHUNK = 1024  # examples encoded at once: bounds what the tokenizer remembers of them


class SentenceFeatures:
    """Turns examples into samples with ``[CLS] text [SEP]`` for each text.

    Parameters
    ----------
    tokenizer : model_zoo.tokenization.Tokenizer
    max_len : int
        Most tokens of a text, the special ones counted; longer ones are cut.
    max_score : float
        The score that becomes a label of 1.
    """

    def __init__(self, tokenizer, max_len=128, max_score=1.0):
        if max_len < 3:
            raise InputError(f'`max_len` {max_len}: two special tokens and one of the text make 3')
        self._tokenizer, self._max_len, self._max_score = tokenizer, max_len, max_score

    def __call__(self, examples):
        """Encode `examples`, and log how many texts had to be cut.

        Returns
        -------
        list of Sample
            With a tuple of arrays, one for each text.
        """
        samples, cut = [], 0
        for start in range(0, len(examples), CHUNK):
            chunk = examples[start : start + CHUNK]
            texts = [text for example in chunk for text in example.texts]
            encoded = self._tokenizer.encode_batch(texts, max_length=self._max_len, pad=False)
            cut += int((encoded.truncated > 0).sum())
            size = len(chunk[0].texts)
            for place, example in enumerate(chunk):
                own = slice(place * size, (place + 1) * size)
                label = None if example.score is None else example.score / self._max_score
                words, types = encoded.input_ids[own], encoded.token_types[own]
                samples.append(Sample(tuple(words), tuple(types), label))
        if cut:
            logger.warning('%d texts are longer than %d tokens: cut', cut, self._max_len)
        return samples
