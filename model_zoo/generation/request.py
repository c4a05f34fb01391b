"""The arguments of `generate`, checked before anything is generated."""

import math
from typing import Annotated, Literal

import mxnet as mx
import numpy as np
from pydantic import Field

from ..errors import InputError
from ..util.arrays import pad_rows
from ..util.fields import Count, Flag, Number, Size, Whole
from .scores import LogitsProcessor, ScoreOptions, SomeTokens
from .search import streams_of


class GrowingText:
    """A batch of texts, and the model's scores of each text's next token."""

    # The model's memory is allocated for the whole length at once. Whenever a text is longer than
    # the model's context, the model restarts from the last half of it, which costs a few tokens'
    # time once every half context. The part of a text that the model sees depends only on the
    # text's length, whether prompt or generated.

    def __init__(self, block, prompts, new_tokens):
        self._block = block
        self._context = block.context_length
        self._lengths = np.array([len(prompt) for prompt in prompts], 'int32')
        self._starts = np.zeros_like(self._lengths)  # of the parts that the model sees
        self._tokens = np.zeros((len(prompts), self._lengths.max() + new_tokens), 'int32')
        for row, prompt in zip(self._tokens, prompts):
            row[: len(prompt)] = prompt
        # the last token needn't be run; multiples of 32, as each shape needs a graph
        self._capacity = -(-(self._tokens.shape[1] - 1) // 32) * 32
        if self._context is not None:
            self._capacity = min(self._capacity, self._context)
        parameters = list(block.collect_params().values())
        self._ctx = parameters[0].list_ctx()[0] if parameters else mx.cpu()
        self._start()

    def _seen_from(self):
        """Return where the part of each text begins that the model sees."""
        if self._context is None:
            return self._starts
        stride = self._context + 1 - max(1, self._context // 2)
        return -(-np.maximum(self._lengths - self._context, 0) // stride) * stride

    def _start(self):
        self._starts = self._seen_from()
        lengths = self._lengths - self._starts
        seen = [tokens[i:j] for tokens, i, j in zip(self._tokens, self._starts, self._lengths)]
        arrays = map(self._array, (pad_rows(seen), lengths))
        self.scores, self._state = self._block.start(*arrays, self._capacity)

    def _array(self, values):
        return mx.nd.array(values, ctx=self._ctx, dtype='int32')

    @property
    def ids(self):
        """The tokens of each row, prompt and continuation."""
        return [tokens[:length] for tokens, length in zip(self._tokens, self._lengths)]

    def select(self, rows):
        """Keep these rows, in this order; rows may be repeated."""
        # `scores` still belong to the previous rows until the next `append`.
        arrays = self._tokens, self._lengths, self._starts
        self._tokens, self._lengths, self._starts = (array[rows] for array in arrays)
        self._state = self._state.select(rows)

    def append(self, tokens):
        """Add a token (rows,) to each row, and run the model for the next ones' scores."""
        self._tokens[np.arange(len(tokens)), self._lengths] = tokens
        self._lengths += 1
        if (self._seen_from() > self._starts).any():
            self._start()
        else:
            self.scores, self._state = self._block.step(self._array(tokens), self._state)


Texts = Annotated[Count, Field(le=4096)]
Temperature = Annotated[Number, Field(ge=0, le=1e6)]
Share = Annotated[Number, Field(gt=0, le=1)]
Seed = Annotated[Whole, Field(ge=0, le=2**32 - 1)]


class TextOptions(ScoreOptions):
    """Options of generation that `generate`, pipelines and the server share; see `generate`."""

    # scores divided by less could overflow
    temperature: Annotated[Number, Field(ge=1e-6, le=1e6)] | None = None
    top_k: Size | None = None
    top_p: Share | None = None
    min_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    num_beams: Texts = 1
    length_penalty: Annotated[Number, Field(ge=-30, le=30)] = 1.0
    early_stopping: Flag | Literal['never'] = False
    num_return_sequences: Texts = 1
    seed: Seed | None = None


class GenerationOptions(TextOptions):
    """Arguments of `generate`."""

    prompts: Annotated[list[Annotated[list[Size], Field(min_length=1)]], Field(min_length=1)]
    max_new_tokens: list[Count] | Count = 50
    stop_tokens: SomeTokens = []
    streams: list[Annotated[tuple[Seed, Size, Size], Field(strict=False)]] | None = None
    overflow: Literal['error', 'slide'] = 'error'


class Request:
    """The arguments of `generate`, checked; the prompts have been run."""

    def __init__(self, block, options):
        if isinstance(options['prompts'], mx.nd.NDArray):
            options['prompts'] = options['prompts'].asnumpy().astype('int64')
        self.options = options = GenerationOptions.read(options, 'option of generate')
        self.prompts, self.stop_tokens = options.prompts, {*options.stop_tokens}
        #: the most new tokens of each prompt, and its random stream
        counts = options.max_new_tokens
        self.counts = [counts] * len(self.prompts) if isinstance(counts, int) else counts
        self.streams = options.streams or streams_of(options.seed, range(len(self.prompts)))
        for name, values in (('max_new_tokens', self.counts), ('streams', self.streams)):
            if len(values) != len(self.prompts):
                raise InputError(f'has {len(values)} values, not one of each prompt', field=name)
        self.process = LogitsProcessor(self.stop_tokens, options)
        #: which tokens are drawn, and whether any are
        self.among = options.temperature, options.top_k, options.top_p, options.min_p
        self.draws = self.among != (None,) * 4
        beams, sequences = options.num_beams, options.num_return_sequences
        if beams > 1 and self.draws:
            raise InputError('num_beams excludes `temperature`, `top_k` and `top_p`: choose')
        if sequences > beams and not self.draws:
            problem = f'{sequences} needs as many num_beams, or temperature, top_k or top_p'
            raise InputError(problem, field='num_return_sequences')
        context, sizes = block.context_length, map(len, self.prompts)
        length, count = max(zip(sizes, self.counts), key=sum)
        if options.overflow == 'error' and length + count > (context or math.inf):
            problem = f'{length} and {count} tokens exceed the context, {context}'
            raise InputError(f"{problem}: ask for fewer, or pass overflow='slide'")
        self.text = GrowingText(block, self.prompts, max(self.counts))
        size = self.text.scores.shape[1]
        wrong = max([*self.stop_tokens, *options.named_tokens], default=0)
        if wrong >= size:
            raise InputError(f'the vocabulary of {size} tokens has no token {wrong}')

    def processed(self, scores, step):
        """Return the changed scores (rows, tokens) of the tokens after `step` new ones."""
        lasts = np.repeat(self.counts, len(scores) // len(self.counts)) == step + 1
        return self.process(scores, self.text.ids, step, lasts)
