"""From texts to results: what the pipelines of all tasks share."""

import inspect
import itertools
from typing import NamedTuple

import numpy as np

from ..batches.sampling import longest_first
from ..errors import InputError, UnknownNameError
from ..util.padding import pad_rows
from .engine import MXNetEngine

__all__ = ['BATCH_ROWS', 'Pipeline', 'Row', 'Work', 'refuse_arguments_of_transformers']

# Most tokens of a batch, padding included; see bert_embedding for how it was measured.
BATCH_TOKENS = 2048
#: most rows of a batch
BATCH_ROWS = 256
# Rows are sorted by length among so many items; their outputs are what lies in memory.
POOL_ITEMS = 256

_OURS = {  # arguments of transformers' pipelines -> those of `pipeline` here
    'batch_size': '`batch_tokens`, the tokens of a batch',
    'device': '`ctx`, such as mx.gpu(0)',
    'device_map': '`ctx`, such as mx.gpu(0)',
    'framework': "`engine`, 'mxnet' or 'onnxruntime'",
    'torch_dtype': "`precision`, such as 'bfloat16'",
    'truncation': '`max_length`; longer texts are cut in any case',
}


class Row(NamedTuple):
    """A text, or a part of one, as the model takes it.

    Parameters
    ----------
    input_ids, token_types : numpy.ndarray, shape (length,), int32
    about : object
        What the pipeline has to know when the outputs are there.
    """

    input_ids: np.ndarray
    token_types: np.ndarray
    about: object = None

    @classmethod
    def of(cls, encoding):
        """The row of an `Encoding`, which it is `about`."""
        return cls(encoding.input_ids, encoding.token_types, encoding)


class Work(NamedTuple):
    """Items on their way through a pipeline: checked, and cut into rows.

    Parameters
    ----------
    items : list
    rows : list of list of Row
        Of each item.
    options : dict
        Of the call, checked.
    """

    items: list
    rows: list
    options: dict

    @property
    def all_rows(self):
        """The rows of all items, in order."""
        return [row for of_item in self.rows for row in of_item]


def refuse_arguments_of_transformers(names):
    """Raise InputError, which names ours, if there is an argument of transformers' pipelines."""
    for name in names:
        if name in _OURS:
            raise InputError(
                f'`{name}` is an argument of transformers; here give pipeline() {_OURS[name]}'
            )


class Pipeline:
    """Texts to results. `model_zoo.pipeline` makes the one of a task.

    A pipeline is called with one item, a list of items, or any other iterable of them: the result
    is that of the item, a list, or an iterator that reads the items as they are needed. Batches are
    made of rows of similar length, up to a number of tokens; results come in the items' order. A
    pipeline may be called from several threads.

    Parameters
    ----------
    opened : model_zoo.opening.Opened
    max_length : int, optional
        Most tokens of a row, special ones included; by default what the model takes.
    batch_tokens : int
        Most tokens of a batch, padding included.
    engine : Engine, optional
        By default MXNet runs the block.

    Attributes
    ----------
    task : str
        Name of the task, as transformers has it.
    block, tokenizer, files
        Of `opened`.
    labels : list of str
        Names of the model's classes: those of its configuration's ``id2label``, else LABEL_0 and so
        on.
    """

    task = None
    #: the registry's names of the tasks whose blocks the pipeline runs; the first is built
    block_tasks = ()
    #: whether the model gives something for each token, padding too
    per_token = False

    def __init__(self, opened, max_length=None, batch_tokens=BATCH_TOKENS, engine=None):
        self.block, self.tokenizer, self.files = opened
        self.engine = engine or MXNetEngine(self.block)
        limit = self.block.base.context_length
        if max_length is None:
            max_length = min(filter(None, (limit, self.tokenizer.max_len)), default=None)
        elif limit is not None and not 3 <= max_length <= limit:
            raise InputError(f'max_length is {max_length}; it must be from 3 to {limit}')
        self.max_length, self.batch_tokens = max_length, batch_tokens

    @property
    def problem(self):
        """Why the model can't do the task, or None."""
        return None

    @property
    def labels(self):
        names = self.block.config.extras.get('id2label') or {}
        count = getattr(self.block, 'num_labels', None) or len(names)
        return [str(names.get(str(place), f'LABEL_{place}')) for place in range(count)]

    def __call__(self, inputs, **options):
        """Results of one item or of several.

        Parameters
        ----------
        inputs : item, list of items, or iterable of items
            What an item is depends on the task; usually a str.
        **options
            The task's.

        Returns
        -------
        result, list of results, or iterator of results

        Raises
        ------
        InputError
            If an item or an option can't be right.
        """
        options = self._checked(options)
        if self._is_item(inputs):
            (result,) = self._results(iter([inputs]), options)
            return result
        if isinstance(inputs, (list, tuple)):
            return list(self._results(iter(inputs), options))
        try:
            items = iter(inputs)
        except TypeError:
            raise InputError(
                f'{self.task} takes a text, a list or an iterable of them, not '
                f'{type(inputs).__name__}'
            ) from None
        return self._results(items, options)

    def prepare(self, items, **options):
        """The first of three steps, for programs that make the batches: check items, make rows.

        A server makes batches of the rows of several calls. For each batch it calls `run_batch`,
        and for each call `finish` with the outputs of the call's rows.

        Parameters
        ----------
        items : list
        **options
            The task's.

        Returns
        -------
        Work
        """
        options = self._checked(options)
        return Work(items, self._rows(items, options), options)

    def run_batch(self, rows):
        """The second step: run the model.

        Parameters
        ----------
        rows : list of Row
            Of any number of calls. They are padded to the longest.

        Returns
        -------
        list of list of numpy.ndarray
            For each row what `finish` needs of its outputs.
        """
        # padding is masked, so any id will do
        words = pad_rows([row.input_ids for row in rows], self.tokenizer.pad_token_id or 0)
        types = pad_rows([row.token_types for row in rows])
        sizes = np.array([len(row.input_ids) for row in rows], np.int32)
        outputs = self.engine.run(words, types, sizes)
        return [
            [each.copy() for each in self._kept(row, [each[number] for each in outputs])]
            for number, row in enumerate(rows)
        ]

    def finish(self, work, outputs):
        """The third step: make the results.

        Parameters
        ----------
        work : Work
        outputs : list
            Of `run_batch`, for the rows of all items in order.

        Returns
        -------
        iterator
            The result of each item.
        """
        outputs = iter(outputs)
        for item, rows in zip(work.items, work.rows):
            own = list(itertools.islice(outputs, len(rows)))
            yield self._finish(item, rows, own, work.options)

    # -- what a task's pipeline changes -----------------------------------------------------------

    def _options(self):
        """Checked options of a call."""
        return {}

    def _is_item(self, inputs):
        return isinstance(inputs, (str, bytes, dict))

    def _rows(self, items, options):
        """For each item its rows."""
        texts = [self._text(item) for item in items]
        rows = self.tokenizer.encode_batch(texts, max_length=self.max_length, pad=False).rows
        return [[Row.of(row)] for row in rows]

    def _finish(self, item, rows, outputs, options):
        """The result of an item.

        `outputs` has for each row the list of what `_kept` has returned.
        """
        raise NotImplementedError

    # -- what all have in common ------------------------------------------------------------------

    def _checked(self, options):
        known = inspect.signature(self._options).parameters
        refuse_arguments_of_transformers(options)
        for name in options:
            if name not in known:
                raise UnknownNameError.of(f'option of {self.task}', name, known)
        return self._options(**options)

    def _text(self, item):
        if isinstance(item, str):
            return item
        hint = '; decode it first' if isinstance(item, bytes) else ''
        raise InputError(f'{self.task} takes a str, not {type(item).__name__}: {item!r:.80}{hint}')

    def _results(self, items, options):
        for pool in iter(lambda: list(itertools.islice(items, POOL_ITEMS)), []):
            work = Work(pool, self._rows(pool, options), options)
            yield from self.finish(work, self._run(work.all_rows))

    def _run(self, rows):
        """Outputs of the rows, in their order; batches have rows of similar length."""
        results = [None] * len(rows)
        lengths = [len(row.input_ids) for row in rows]
        for places in longest_first(lengths, BATCH_ROWS, self.batch_tokens):
            outputs = self.run_batch([rows[place] for place in places])
            for place, own in zip(places, outputs):
                results[place] = own
        return results

    def _kept(self, row, outputs):
        """What is needed of a row's outputs; the batch's are freed."""
        return [outputs[0][: len(row.input_ids)]] if self.per_token else outputs
