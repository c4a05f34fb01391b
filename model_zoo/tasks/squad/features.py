"""From questions and paragraphs to the model's inputs: windows of the maximal length."""

import collections.abc

import numpy as np

from ...batches import Sample
from ...batches.windows import split_windows
from ...errors import InputError

__all__ = ['SquadFeatures']


class SquadFeatures(collections.abc.Sequence):
    """A sequence of windows as samples, which are made on access.

    A sample is ``[CLS] question [SEP] window [SEP]``. In training sets its label is the first and
    last position of the answer. Both are 0 (the position of ``[CLS]``) where the window doesn't
    hold the whole answer or there is none. Windows and labels are those of pytorch-pretrained-bert
    0.6.2's ``run_squad.py``.

    Parameters
    ----------
    squad : SquadSet
    encoding : SquadEncoding
    tokenizer : object
        As ``bert.BertTokenizer``.
    max_seq_length : int
        The largest number of tokens, special tokens included.
    doc_stride : int
        Pieces from the start of a window to the start of the next one.
    max_query_length : int
        Longer questions are cut.
    """

    def __init__(
        self,
        squad,
        encoding,
        tokenizer,
        max_seq_length=384,
        doc_stride=128,
        max_query_length=64,
    ):
        if max_seq_length <= max_query_length + 3:
            raise InputError(
                f'max_seq_length {max_seq_length}: give more than max_query_length + 3, which is '
                f'{max_query_length + 3}, so that there is room for the paragraph'
            )
        for name, value in (('doc_stride', doc_stride), ('max_query_length', max_query_length)):
            if value < 1:
                raise InputError(f'{name} {value}: give 1 or more')
        self.squad = squad
        self.encoding = encoding
        self.tokenizer = tokenizer
        self._max_query_length = max_query_length
        rows, bounds = [], [0]
        for number, question in enumerate(squad.questions):
            room = max_seq_length - len(self.query(number)) - tokenizer.pair_size()
            size = np.diff(encoding.paragraph_bounds[question.paragraph : question.paragraph + 2])
            windows = split_windows(int(size[0]), room, doc_stride)
            if len(windows) > 1 and doc_stride > room:
                raise InputError(
                    f'doc_stride {doc_stride}: with max_seq_length {max_seq_length} there is room '
                    f'for {room} tokens of a paragraph beside the question {question.id!r}, and '
                    'what lies between two windows would not be read; give a smaller doc_stride'
                )
            rows += [(number, *window) for window in windows]
            bounds.append(len(rows))
        #: question, first piece and number of pieces of each window
        self.rows = np.array(rows, dtype=np.int32).reshape(-1, 3)
        self._bounds = bounds

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        question, start, length = self.rows[number]
        query = self.query(question)
        ids, _ = self.encoding.paragraph(self.squad.questions[question].paragraph)
        part = ids[start : start + length]
        input_ids, token_types, place = self.tokenizer.join_pair(query, part)
        label = None
        if self.squad.is_training:
            first, last = self.encoding.spans[question]
            label = np.zeros(2, np.float32)
            if first >= start and last < start + length:  # without an answer first is -1
                label[:] = np.array([first, last]) - start + place
        return Sample(input_ids, token_types, label)

    def query(self, question):
        """Ids of question number `question`, cut to `max_query_length`."""
        return self.encoding.question(question)[: self._max_query_length]

    def windows_of(self, question):
        """The numbers of the windows of question number `question`, a range."""
        return range(self._bounds[question], self._bounds[question + 1])
