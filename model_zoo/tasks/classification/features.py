"""Examples to token ids."""

import logging

from ...batches import Sample
from ...errors import InputError

__all__ = ['ClassifierFeatures']

logger = logging.getLogger(__name__)

CHUNK = 4096  # examples encoded at once: bounds what the tokenizer remembers of them


class ClassifierFeatures:
    """Turns examples of a task into samples.

    These are ``[CLS] a [SEP]``, or ``[CLS] a [SEP] b [SEP]`` for a pair whose second text isn't
    empty; token types are 0 up to the first ``[SEP]``, and 1 after it.

    Parameters
    ----------
    tokenizer : object
        With ``encode_batch(texts, pairs, max_length=, pad=)``, as ``bert.BertTokenizer`` has it.
    task : Task
    max_len : int
        Largest number of tokens, the special ones counted.
    """

    def __init__(self, tokenizer, task, max_len=128):
        special, texts = (3, 2) if task.is_pair else (2, 1)
        if max_len < special + texts:
            raise InputError(
                f'a length of {max_len} is too small: {task.name} needs at least {special + texts} '
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
        list of Sample
        """
        features, cut = [], 0
        for start in range(0, len(examples), CHUNK):
            chunk = examples[start : start + CHUNK]
            encoded = self.tokenizer.encode_batch(
                [example.text_a for example in chunk],
                [example.text_b for example in chunk] if self.task.is_pair else None,
                max_length=self.max_len,
                pad=False,
            )
            cut += int((encoded.truncated > 0).sum())
            for row, example in enumerate(chunk):
                label = None if example.label is None else self.task.label_id(example.label)
                features.append(Sample(encoded.input_ids[row], encoded.token_types[row], label))
        if cut:
            logger.warning(
                '%d of %d examples of %s have more than %d tokens and were cut',
                cut,
                len(examples),
                self.task.name,
                self.max_len,
            )
        return features
