"""The arguments of `generate`, checked before anything is generated."""

import operator
import sys

import mxnet as mx
import numpy as np

from ..errors import InputError, UnknownNameError
from ..util.arrays import check_range, check_shape, pad_rows
from .search import LogitsProcessor, Sampler


class GrowingText:
    """A batch of texts, and the model's scores of each text's next token."""

    # The model's memory is allocated for the whole length at once. Whenever a text is longer than
    # the model's context, the model starts again from the last half of it. That costs as much as a
    # few tokens, so it happens only once every half context. What the model sees of a text depends
    # only on the text's length, whether prompt or generated.

    def __init__(self, block, prompts, new_tokens):
        self._block = block
        self._context = block.context_length
        self._lengths = np.array([len(prompt) for prompt in prompts], 'int32')
        self._starts = np.zeros_like(self._lengths)  # of the parts that the model sees
        self._tokens = np.zeros((len(prompts), self._lengths.max() + new_tokens), 'int32')
        for row, prompt in zip(self._tokens, prompts):
            row[: len(prompt)] = prompt
        # the last token needn't be run; multiples of 32, as other shapes need graphs of their own
        self._capacity = -(-(self._tokens.shape[1] - 1) // 32) * 32
        if self._context is not None:
            self._capacity = min(self._capacity, self._context)
        self._ctx = next(iter(block.collect_params().values())).list_ctx()[0]
        self._start()

    def _seen_from(self):
        """Start of the part of each text that the model sees."""
        if self._context is None:
            return self._starts
        stride = self._context + 1 - max(1, self._context // 2)
        return -(-np.maximum(self._lengths - self._context, 0) // stride) * stride

    def _start(self):
        self._starts = self._seen_from()
        lengths = self._lengths - self._starts
        seen = [tokens[i:j] for tokens, i, j in zip(self._tokens, self._starts, self._lengths)]
        self.scores, self._state = self._block.start(
            self._array(pad_rows(seen)), self._array(lengths), self._capacity
        )

    def _array(self, values):
        return mx.nd.array(values, ctx=self._ctx, dtype='int32')

    @property
    def ids(self):
        """The tokens of each row, prompt and continuation."""
        return [tokens[:length] for tokens, length in zip(self._tokens, self._lengths)]

    def select(self, rows):
        """Keep these rows, in this order; rows may be repeated."""
        # `scores` still belong to the previous rows until the next `append`.
        self._tokens, self._lengths, self._starts = (
            array[rows] for array in (self._tokens, self._lengths, self._starts)
        )
        self._state = self._state.select(rows)

    def append(self, tokens):
        """Add a token (rows,) to each row, and run the model for the next ones' scores."""
        self._tokens[np.arange(len(tokens)), self._lengths] = tokens
        self._lengths += 1
        if (self._seen_from() > self._starts).any():
            self._start()
        else:
            self.scores, self._state = self._block.step(self._array(tokens), self._state)


_MOST_TEXTS = 4096  # of one prompt at once
_MOST_PENALTY = 30  # a power of lengths, which stays in the range of float
_COLDEST = 1e-6  # scores divided by less could overflow


def _number(name, value, low, high=2**31 - 1):
    """`value` as an int from `low` to `high`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f'{name} must be an integer: {value!r:.80}') from None
    shown = _shown(number)
    if number < low or isinstance(value, bool):
        raise InputError(f'{name} must be an integer of at least {low}: {shown}')
    if number > high:
        raise InputError(f'{name} is {shown}, and may be {high} at most')
    return number


def _shown(value):
    if isinstance(value, int) and abs(value) >= 2**200:  # Python refuses to write long ones
        return f'a number of {value.bit_length()} bits'
    return f'{value!r:.80}'


def _is_real(value):
    return isinstance(value, (int, float, np.floating)) and abs(value) <= sys.float_info.max


def _read_prompts(prompts, valid_length):
    """The prompts as lists of ids."""
    if isinstance(prompts, np.ndarray):
        prompts = mx.nd.array(prompts, dtype=prompts.dtype)
    if isinstance(prompts, mx.nd.NDArray):
        check_shape('prompts', prompts, (-1, -1))
        longest, prompts = prompts.shape[1], prompts.asnumpy().tolist()
        if valid_length is not None:
            valid_length = mx.nd.array(valid_length)
            check_shape('valid_length', valid_length, (len(prompts),))
            check_range('valid_length', valid_length, 0, longest + 1)
            lengths = valid_length.asnumpy().astype('int64')
            prompts = [row[:length] for row, length in zip(prompts, lengths)]
    elif valid_length is not None:
        raise InputError('valid_length belongs to prompts in an array, and these are a list')
    if not isinstance(prompts, (list, tuple)):
        raise InputError(
            f'prompts must be a list of lists of token ids, not a {type(prompts).__name__}: encode '
            'each text with the tokenizer of the model'
        )
    if not prompts:
        raise InputError('there are no prompts: pass a list of at least one list of token ids')
    return [_read_prompt(number, prompt) for number, prompt in enumerate(prompts)]


def _read_prompt(number, prompt):
    if isinstance(prompt, mx.nd.NDArray):
        prompt = prompt.asnumpy()
    if isinstance(prompt, np.ndarray):
        prompt = prompt.tolist()
    if not isinstance(prompt, (list, tuple)):
        raise InputError(
            f'prompt {number} must be a list of token ids, not a {type(prompt).__name__}: encode '
            'the text with the tokenizer of the model'
        )
    if not prompt:
        raise InputError(
            f'prompt {number} is empty: begin with at least one token, such as the token that '
            'ends or begins texts'
        )
    ids = []
    for token in prompt:
        if isinstance(token, float) and token.is_integer():  # an NDArray's, by default
            token = int(token)
        try:
            ids.append(operator.index(token))
        except TypeError:
            raise InputError(f'prompt {number} holds {token!r}, which is not a token id') from None
        if not 0 <= ids[-1] < 2**31:
            raise InputError(f'prompt {number} holds {token!r:.80}, which is not a token id')
    return ids


class Request:
    """The arguments of `generate`, checked; the prompts have been run."""

    def __init__(
        self,
        block,
        prompts,
        max_new_tokens,
        valid_length,
        *,
        temperature=None,
        top_k=None,
        top_p=None,
        num_beams=1,
        length_penalty=1.0,
        num_return_sequences=1,
        stop_tokens=(),
        min_new_tokens=0,
        repetition_penalty=1.0,
        no_repeat_ngram_size=0,
        bad_words_ids=(),
        seed=None,
        overflow='error',
    ):
        self.prompts = _read_prompts(prompts, valid_length)
        self.new_tokens = _number('max_new_tokens', max_new_tokens, 1)
        self.num_beams = _number('num_beams', num_beams, 1, _MOST_TEXTS)
        self.sequences = _number('num_return_sequences', num_return_sequences, 1, _MOST_TEXTS)
        stop_tokens = stop_tokens if np.iterable(stop_tokens) else [stop_tokens]
        self.stop_tokens = {_number('stop_tokens', token, 0) for token in stop_tokens}
        self.seed = None if seed is None else _number('seed', seed, 0, 2**32 - 1)
        self.length_penalty = length_penalty
        if not _is_real(length_penalty) or abs(length_penalty) > _MOST_PENALTY:
            raise InputError(
                f'length_penalty must be a number from {-_MOST_PENALTY} to {_MOST_PENALTY}: '
                f'{_shown(length_penalty)}'
            )
        if not _is_real(repetition_penalty) or repetition_penalty <= 0:
            raise InputError(
                f'repetition_penalty must be a number above 0: {_shown(repetition_penalty)}'
            )
        bad_words = [tuple(_number('bad_words_ids', i, 0) for i in word) for word in bad_words_ids]
        if () in bad_words:
            raise InputError('bad_words_ids has a word without ids')
        self._ids = {'stop token': self.stop_tokens, 'token of bad_words_ids': sum(bad_words, ())}
        self.processor = LogitsProcessor(
            self.stop_tokens,
            _number('min_new_tokens', min_new_tokens, 0),
            repetition_penalty,
            _number('no_repeat_ngram_size', no_repeat_ngram_size, 0),
            bad_words,
        )
        self.sampler = self._make_sampler(temperature, top_k, top_p)
        self._check_methods()
        self._check_context(block.context_length, overflow)
        self.text = GrowingText(block, self.prompts, self.new_tokens)
        self._check_vocabulary(self.text.scores.shape[1])

    @staticmethod
    def _make_sampler(temperature, top_k, top_p):
        if temperature is top_k is top_p is None:
            return None
        temperature = 1.0 if temperature is None else temperature
        if not _is_real(temperature) or temperature < 0:
            raise InputError(f'temperature must be a number above 0: {_shown(temperature)}')
        if 0 < temperature < _COLDEST:
            raise InputError(f'temperature is {temperature}, and must be {_COLDEST} at least')
        if temperature == 0:
            raise InputError(
                'temperature must be above 0; for the likeliest token at every step leave out '
                'temperature, top_k and top_p: that is greedy'
            )
        if top_k is not None:
            top_k = _number('top_k', top_k, 0) or None
        if top_p is not None and not (_is_real(top_p) and 0 < top_p <= 1):
            raise InputError(f'top_p must be above 0 and at most 1: {_shown(top_p)}')
        return Sampler(temperature, top_k, top_p)

    def _check_methods(self):
        if self.num_beams > 1 and self.sampler is not None:
            raise InputError(
                f'num_beams {self.num_beams} looks for the most likely texts, while temperature, '
                'top_k and top_p draw at random: leave out one or the other'
            )
        if self.num_beams > 1 and self.sequences > self.num_beams:
            raise InputError(
                f'num_return_sequences {self.sequences} is above num_beams {self.num_beams}, the '
                'number of texts that are found'
            )
        if self.num_beams == 1 and self.sampler is None and self.sequences > 1:
            raise InputError(
                f'num_return_sequences is {self.sequences}, but greedy finds one text: pass '
                'temperature, top_k or top_p to draw several, or num_beams to search for them'
            )

    def _check_context(self, context, overflow):
        UnknownNameError.check('overflow', overflow, ['error', 'slide'])
        if context is None or overflow == 'slide':
            return
        longest = max(range(len(self.prompts)), key=lambda number: len(self.prompts[number]))
        length = len(self.prompts[longest])
        if length > context:
            raise InputError(
                f'prompt {longest} has {length} tokens, and the context of this model is {context}:'
                " shorten it, or pass overflow='slide' to continue from its end"
            )
        if length + self.new_tokens > context:
            raise InputError(
                f'prompt {longest} has {length} tokens, {self.new_tokens} are wanted, and the '
                f'context of this model is {context}: ask for {context - length} at most, or pass '
                "overflow='slide' to forget the beginning where it is full"
            )

    def _check_vocabulary(self, size):
        for name, ids in self._ids.items():
            wrong = [token for token in ids if token >= size]
            if wrong:
                raise InputError(f'{name} {wrong[0]} is not in the vocabulary of {size} tokens')
