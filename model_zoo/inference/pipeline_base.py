"""Shared parts of the pipelines of all tasks."""

import functools
import itertools
import logging
import re
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from ..batches.sampling import longest_first
from ..errors import InputError, Where
from ..tokenization.encoding import UNLIMITED
from ..tokenization.text_to_ids import GAP
from ..util.arrays import pad_rows
from ..util.fields import CallOptions
from .mxnet_engine import MXNetEngine

__all__ = ['BATCH_ROWS', 'Meter', 'PipelineOptions', 'Row', 'TooLargeError', 'Work']

logger = logging.getLogger(__name__)

# Most tokens of a batch, padding included. Measured on a CPU with 6 layers of 384 units: 1024 to
# 2048 were the fastest, 16384 a quarter slower; padding to multiples of 4 or 8 lost 5 to 15 %, and
# static_alloc, which plans the memory again for every new shape, gained nothing. Where it saves
# padding, batches are smaller.
BATCH_TOKENS = 2048
#: most rows of a batch
BATCH_ROWS = 256
#: items that are tokenized in one call
ITEMS_TOGETHER = 256
# Rows are sorted by length among this many tokens or items, whose outputs are kept in memory.
POOL_TOKENS, POOL_ITEMS = 32768, 768
#: bytes of a number in JSON
NUMBER = 24
#: most characters of a word of a request
MOST_WORD = 10_000
_UP_TO_A_GAP = re.compile(f'.*(?:{GAP})', re.DOTALL)

# -- what a call may cost -------------------------------------------------------------------------


class TooLargeError(InputError):
    """A call that needs more than its limits."""


class Meter:
    """Counts what a call needs, and refuses it when that passes a limit.

    Parameters
    ----------
    end : float
        Of ``time.monotonic()``; a call that isn't prepared by then is a TimeoutError. The event
        loop sets it to 0 when nobody waits for the call any more.
    **limits
        The most that a call may need, by the names of the server's settings.
    """

    def __init__(self, end, **limits):
        self.end, self._left = end, limits

    def add(self, limit, count):
        """Count something that the server's setting `limit` is about."""
        if time.monotonic() > self.end:
            raise TimeoutError('the time for the request is over')
        self._left[limit] -= count
        if self._left[limit] < 0:
            raise TooLargeError(f'the request exceeds `{limit}`: ask for less at once')

    def add_text(self, text, tokenizer=None):
        """Count a text's characters, or its ids; a word that can't be read in parts is refused.

        With the `tokenizer` of a text that won't be cut, its beginning is read, so that all of a
        text of too many tokens needn't be.
        """
        self.add('max_body', len(text))
        position = 0
        if not isinstance(text, str):
            return
        while position + MOST_WORD <= len(text):
            found = _UP_TO_A_GAP.match(text, position, position + MOST_WORD)
            if found is None:
                raise TooLargeError(f'a word has more than {MOST_WORD} characters')
            position = found.end()
        left = self._left['max_tokens']
        if tokenizer is not None and len(text) > left:
            [encoding] = tokenizer.encode_pairs([(text, None)], left, add_special_tokens=False)
            self.add('max_tokens', 0 if not encoding.truncated else left + 1)


class Row(NamedTuple):
    """A text, or a part of one, as the model takes it.

    Parameters
    ----------
    input_ids, token_types : numpy.ndarray, shape (length,), int32
    about : object
        Data that the pipeline needs when it has the outputs.
    reduce : callable, optional
        ``reduce(row, outputs)`` makes what is kept of the model's outputs; by default all is.
    is_cut : bool
        Whether a text has lost tokens.
    """

    input_ids: np.ndarray
    token_types: np.ndarray
    about: object = None
    reduce: Callable | None = None
    is_cut: bool = False


class Work(NamedTuple):
    """Items on their way through a pipeline: checked, and cut into rows."""

    items: list
    rows: list
    options: dict

    @property
    def all_rows(self):
        """The rows of all items, in order."""
        return [row for of_item in self.rows for row in of_item]


class PipelineOptions(CallOptions):
    """Options of a pipeline's calls."""

    truncation: Literal[True, 'longest_first'] = True  # transformers', which changes nothing here


def present(items):
    """Yield items; one that is missing, as None or NaN in a column, is an error with its number."""
    for number, item in enumerate(items):
        is_known = isinstance(item, (str, dict, tuple, list))
        parts = item.values() if isinstance(item, dict) else () if isinstance(item, str) else item
        if not is_known or any(isinstance(part, float) for part in parts):
            where = Where('the texts', number, unit='row')
            raise InputError(f'{item!r:.80} is no text: leave it out, or fill it', where=where)
        yield item


class Pipeline:
    """Texts to results. `model_zoo.pipeline` makes the one of a task.

    Call a pipeline with one item, a list of items, or any other iterable: it returns one result, a
    list, or an iterator that reads the items as they are needed. Batches have rows of similar
    length, up to a number of tokens; results come in the items' order. Several threads may call a
    pipeline.

    Parameters
    ----------
    max_length : int, optional
        Maximum number of tokens per row, including special ones; by default the model's.
    batch_tokens : int
        Maximum number of tokens per batch, including padding.
    engine : Engine, optional
        By default MXNet runs the block.
    **defaults
        Options of calls, for calls without them.

    Attributes
    ----------
    task : str
        Name of the task, as in transformers.
    block, tokenizer, files
        Of `opened`.
    labels : list of str
        Names of the model's classes: the configuration's ``id2label``, else LABEL_0 and so on.
    """

    task = None
    #: the registry's names of the tasks whose blocks the pipeline runs; the first is built
    block_tasks = ()
    #: if not 0, only this many of the model's outputs are kept, without padding
    token_outputs = 0
    #: options of a call
    Options = PipelineOptions
    #: whether a classifier's result is a number
    is_regression = False
    #: whether a tuple of two texts is one item
    has_pairs = False
    #: whether a server's results for a blank text mean something
    takes_blank = False
    batch_rows = BATCH_ROWS
    #: what to do about texts that are cut, for a warning that counts them; None: no warning
    _cure = None
    #: ``_reduced(row, outputs, options)`` is what `_finish` needs of a row's outputs; None: all
    _reduced = None

    def __init__(self, opened, max_length=None, batch_tokens=BATCH_TOKENS, engine=None, **defaults):
        self.block, self.tokenizer, self.files = opened
        self.engine = engine or MXNetEngine(self.block)
        limit = self.block.base.context_length
        if max_length is None:
            max_length = min(filter(None, (limit, self.tokenizer.max_len)), default=None)
        elif limit is not None and not 3 <= max_length <= limit:
            raise InputError(f'max_length is {max_length}; it must be from 3 to {limit}')
        self.max_length, self.batch_tokens = max_length, batch_tokens
        self.labels = self.block.label_names
        self._pad_id = self.tokenizer.pad_token_id or 0  # padding is masked, so any id will do
        self._defaults = self._given(defaults, {}) if defaults else {}

    @overload
    def __call__(self, inputs: list[Any], **options: Any) -> list[Any]: ...
    @overload
    def __call__(self, inputs: Any, **options: Any) -> Any: ...

    def __call__(self, inputs, **options):
        """Results of one item or of several.

        An item is usually a str, depending on the task. Lists, tuples, arrays and pandas columns
        return a list. `options` are the task's. Raises InputError for an invalid item or option.
        """
        checked = self.checked(options) if options else self._usual
        is_pair = self.has_pairs and isinstance(inputs, tuple) and len(inputs) == 2
        if isinstance(inputs, (str, bytes, dict)) or (
            is_pair and isinstance(inputs[0], str) and isinstance(inputs[1], str)
        ):
            (result,) = self.results(iter([inputs]), checked)
            return self._shown(result, inputs, options)
        if hasattr(inputs, 'tolist'):  # such as a column of pandas
            inputs = inputs.tolist()
        # a table is an iterable of its columns' names
        if hasattr(inputs, 'columns') or not isinstance(inputs, Iterable):
            raise InputError(f'{self.task} takes a text or texts, not a {type(inputs).__name__}')
        items = present(inputs)
        results = (self._shown(result, None, options) for result in self.results(items, checked))
        return list(results) if isinstance(inputs, (list, tuple)) else results

    def __repr__(self):
        labels = f', labels={self.labels!r:.200}' if self.block.num_labels else ''
        return (
            f'<pipeline {self.task}: {type(self.block).__name__}{labels}, '
            f'max_length={self.max_length}, engine={self.engine.name!r}>'
        )

    def prepare(self, items, options, meter):
        """The first of three steps, for programs with their own batches: check items, make rows.

        A server makes batches from the rows of several calls. For each batch it calls `run_batch`,
        and for each call `finish` with the outputs of the call's rows.

        A call above the limits of the `meter` is refused before it takes much time or memory.
        """
        options = self.checked(options)
        rows = self._rows(items, options, meter)
        for item, item_rows in zip(items, rows):
            meter.add('max_answer', self._answer_size(item, item_rows, options))
        return Work(items, rows, options)

    def run_batch(self, rows):
        """The second step: run the model.

        The rows may come from any number of calls; they are padded to the longest. Returns what
        `finish` needs of each row's outputs.
        """
        ids, types = [row.input_ids for row in rows], [row.token_types for row in rows]
        lengths = np.array([len(row) for row in ids], np.int32)
        outputs = self.engine.run(pad_rows(ids, self._pad_id), pad_rows(types), lengths)
        kept = []
        for number, row in enumerate(rows):
            arrays = [output[number] for output in outputs]
            if self.token_outputs:
                arrays = [array[: len(row.input_ids)] for array in arrays[: self.token_outputs]]
            if row.reduce is not None:  # of the row's pipeline, which may be another one
                arrays = row.reduce(row, arrays)
            kept.append([array.copy() for array in arrays])  # so that the batch's are freed
        return kept

    def finish(self, work, outputs):
        """The third step: make the results.

        `outputs` are the results of `run_batch`, for the rows of all items in order.
        """
        outputs = iter(outputs)
        for item, rows in zip(work.items, work.rows):
            item_outputs = list(itertools.islice(outputs, len(rows)))
            yield self._finish(item, rows, item_outputs, work.options)

    # -- what a task's pipeline changes -----------------------------------------------------------

    def _options(self, given):
        """Turn a call's `Options` into the `options` that the other methods take."""
        return given

    def _shown(self, result, item, options):
        """The result of a call with these options; `item` is the call's only one, or None."""
        return result

    def _pairs(self, item, options):
        """The texts of an item's rows, each with the second text of a pair or None."""
        return [(self._text(item), None)]

    def _limit(self, options):
        """The number of tokens that texts are cut at."""
        return self.max_length

    def _encode(self, pairs, reduce, options):
        """Yield the rows of each text, or pair."""
        for each in self.tokenizer.encode_pairs(pairs, self.max_length):
            yield [Row(each.input_ids, each.token_types, None, reduce, each.truncated > 0)]

    def _rows(self, items, options, meter=None):
        """The rows of each item, a list."""
        pairs, rows, whole = [[] for _ in items], [], None
        if meter is not None and self._limit(options) == UNLIMITED:
            whole = self.tokenizer
        for item, of_item in zip(items, pairs):
            for text, pair in self._pairs(item, options):
                of_item.append((text, pair))
                if meter is not None:
                    if not (self.takes_blank or text.strip()):
                        raise InputError(f'{self.task}: a text is blank')
                    meter.add('max_rows', 1)
                    for part in filter(None, (text, pair)):
                        meter.add_text(part, whole)
        reduce = self._reduced and functools.partial(self._reduced, options=options)
        made = self._encode(list(itertools.chain.from_iterable(pairs)), reduce, options)
        for of_item in pairs:
            rows.append(list(itertools.chain.from_iterable(itertools.islice(made, len(of_item)))))
            if meter is not None:
                meter.add('max_rows', len(rows[-1]) - len(of_item))  # the texts are counted
                meter.add('max_tokens', sum(len(row.input_ids) for row in rows[-1]))
        return rows

    def _answer_size(self, item, rows, options):
        """About how many bytes an item's result has as JSON."""
        return 100 + 2 * NUMBER * len(rows)

    def _finish(self, item, rows, outputs, options):
        """Return an item's result; `outputs` has each row's list of arrays."""
        raise NotImplementedError

    # -- what all have in common ------------------------------------------------------------------

    def checked(self, options):
        """A call's options, checked, with the defaults of the others."""
        given = self._given(options, self._defaults)
        return self._options(self.Options.model_construct(**given))

    @functools.cached_property
    def _usual(self):
        """The checked options of a call without options."""
        return self.checked({})

    def _given(self, options, defaults):
        """The options that are given, checked, and defaults of others."""
        given = self.Options.read(options, f'option of {self.task}')
        return {**defaults, **{name: getattr(given, name) for name in given.model_fields_set}}

    def _text(self, item):
        if isinstance(item, str):
            return item
        raise InputError(f'{self.task} takes a str, not {type(item).__name__}: {item!r:.80}')

    def results(self, items, options):
        """Results one by one, in order, with `checked` options; reads the items as needed."""
        pool, rows, tokens, is_last = [], [], 0, False
        count = cut = 0
        try:
            while not is_last:
                group = list(itertools.islice(items, ITEMS_TOGETHER))
                is_last = len(group) < ITEMS_TOGETHER
                of_group = self._rows(group, options)
                pool += group
                rows += of_group
                tokens += sum(len(row.input_ids) for of_item in of_group for row in of_item)
                if not is_last and tokens < POOL_TOKENS and len(pool) < POOL_ITEMS:
                    continue
                work, flat = Work(pool, rows, options), [row for of_item in rows for row in of_item]
                pool, rows, tokens = [], [], 0
                count, cut = count + len(flat), cut + sum(row.is_cut for row in flat)
                outputs, lengths = [None] * len(flat), [len(row.input_ids) for row in flat]
                for indices in longest_first(lengths, self.batch_rows, self.batch_tokens):
                    for index, output in zip(indices, self.run_batch([flat[n] for n in indices])):
                        outputs[index] = output
                yield from self.finish(work, outputs)
        finally:
            if cut and self._cure:
                text = '%d of %d texts are longer than %d tokens and lose the rest: %s'
                logger.warning(text, cut, count, self.max_length, self._cure)
