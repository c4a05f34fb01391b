"""Examples to token ids."""

import logging
from typing import NamedTuple, Optional

import numpy as np

from ..errors import InputError

__all__ = ['ClassifierFeatures', 'Feature']

logger = logging.getLogger(__name__)

CHUNK = 1024  # examples encoded at once: bounds the padded arrays


class Feature(NamedTuple):
    """What the model takes of one example; not padded.

    Parameters
    ----------
    input_ids : numpy.ndarray, shape (length,), int32
        ``[CLS] a [SEP]`` or ``[CLS] a [SEP] b [SEP]``.
    token_types : numpy.ndarray, shape (length,), int32
        0 up to the first ``[SEP]``, 1 after it.
    valid_length : int
        The length.
    label : int, float or None
        Id of the class, for regression the number, None where there is none.
    """

    input_ids: np.ndarray
    token_types: np.ndarray
    valid_length: int
    label: Optional[float]


class ClassifierFeatures:
    """Turns examples of a task into features.

    Parameters
    ----------
    tokenizer : object
        With ``encode_batch(texts, pairs=None, max_length=None)`` as that of ``bert.BertTokenizer``,
        which adds the special tokens and truncates the longer text of a pair first.
    task : Task
    max_len : int
        Largest number of tokens, the special ones counted (as in GluonNLP's ``--max_len``).

    Raises
    ------
    InputError
        If `max_len` leaves no room for a token of each text beside the special ones.
    """

    def __init__(self, tokenizer, task, max_len=128):
        special, texts = (3, 2) if task.is_pair else (2, 1)
        if max_len < special + texts:
            raise InputError(
                f'max_len {max_len} is too small: {task.name} needs at least {special + texts} '
                f'({special} special tokens and one of each text)'
            )
        self.tokenizer = tokenizer
        self.task = task
        self.max_len = max_len

    def __call__(self, examples):
        """Encode `examples`, and log how many had to be cut.

        Parameters
        ----------
        examples : sequence of Example

        Returns
        -------
        list of Feature
        """
        features, cut = [], 0
        for start in range(0, len(examples), CHUNK):
            chunk = examples[start : start + CHUNK]
            encoded = self._encode(chunk, self.max_len)
            lengths = np.asarray(encoded.valid_length).astype(int)
            cut += self._count_cut(chunk, lengths)
            for row, (example, length) in enumerate(zip(chunk, lengths)):
                features.append(
                    Feature(
                        # copies: a view would keep the whole padded array alive
                        np.array(encoded.input_ids[row][:length], dtype=np.int32),
                        np.array(encoded.token_types[row][:length], dtype=np.int32),
                        int(length),
                        None if example.label is None else self.task.label_id(example.label),
                    )
                )
        if cut:
            logger.warning(
                '%d of %d examples of %s have more than max_len=%d tokens and were cut',
                cut,
                len(examples),
                self.task.name,
                self.max_len,
            )
        return features

    def _encode(self, examples, max_length):
        pairs = [example.text_b for example in examples] if self.task.is_pair else None
        return self.tokenizer.encode_batch(
            [example.text_a for example in examples], pairs, max_length=max_length
        )

    def _count_cut(self, examples, lengths):
        """Number of examples that are longer than `max_len`, of those that came out as long."""
        full = [example for example, length in zip(examples, lengths) if length == self.max_len]
        if not full:
            return 0
        whole = self._encode(full, None)
        return int((np.asarray(whole.valid_length) > self.max_len).sum())
