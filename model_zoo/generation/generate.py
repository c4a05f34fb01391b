"""The interface: continue prompts with a language model."""

import math
import operator
from typing import List, NamedTuple, Optional

import mxnet as mx
import numpy as np

from ..errors import InputError, UnknownNameError
from ..util.checks import check_shape
from .beam import BeamSearch
from .sampling import Sampler, log_normalizer, row_generators
from .text import GrowingText

__all__ = ['Continuation', 'GenerationMixin', 'NewToken', 'generate', 'stream']


class Continuation(NamedTuple):
    """What a model has continued a prompt with.

    Attributes
    ----------
    tokens : list of int
        The new tokens, including the stop token if there is one.
    log_prob : float
        Log-probability of the tokens after the prompt, under the model's own distribution: the one
        before `temperature`, `top_k` and `top_p`.
    finish : str
        Why it ends: ``'stop'`` (a stop token) or ``'length'`` (the maximal number of tokens).
    """

    tokens: List[int]
    log_prob: float
    finish: str


class NewToken(NamedTuple):
    """A token as it comes.

    Attributes
    ----------
    prompt, sequence : int
        The place of its prompt, and the number of the prompt's sequence.
    token : int
    log_prob : float
        See `Continuation`.
    finish : str or None
        ``'stop'`` or ``'length'`` if it is the sequence's last token.
    """

    prompt: int
    sequence: int
    token: int
    log_prob: float
    finish: Optional[str]


_MOST_TEXTS = 4096  # of one prompt at once
_COLDEST = 1e-6  # scores divided by less could overflow


def _number(name, value, low, high=2**31 - 1):
    """`value` as an int from `low` to `high`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f'{name} must be an integer: {value!r:.80}') from None
    # Python refuses to write an int of thousands of digits
    told = repr(value) if abs(number) < 2**200 else f'a number of {number.bit_length()} bits'
    if number < low or isinstance(value, bool):
        raise InputError(f'{name} must be an integer of at least {low}: {told}')
    if number > high:
        raise InputError(f'{name} is {told}, and may be {high} at most')
    return number


def _is_real(value):
    return isinstance(value, (int, float, np.floating)) and math.isfinite(value)


def _read_prompts(prompts, valid_length):
    """The prompts as lists of ids."""
    if isinstance(prompts, (mx.nd.NDArray, np.ndarray)):
        if isinstance(prompts, np.ndarray):
            prompts = mx.nd.array(prompts, dtype=prompts.dtype)
        check_shape('prompts', prompts, (-1, -1))
        rows = prompts.asnumpy().tolist()
        if valid_length is None:
            return _read_prompts(rows, None)
        if not isinstance(valid_length, mx.nd.NDArray):
            valid_length = mx.nd.array(valid_length)
        check_shape('valid_length', valid_length, (len(rows),))
        lengths = valid_length.asnumpy().astype('int64')
        if lengths.max() > prompts.shape[1]:
            raise InputError(
                f'valid_length holds {lengths.max()}, and the prompts have length '
                f'{prompts.shape[1]}'
            )
        return _read_prompts([row[:length] for row, length in zip(rows, lengths)], None)
    if valid_length is not None:
        raise InputError('valid_length belongs to prompts in an array, and these are a list')
    if isinstance(prompts, str) or not isinstance(prompts, (list, tuple)):
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
            raise InputError(f'prompt {number} holds {token!r}, which is no token id') from None
        if ids[-1] < 0:
            raise InputError(f'prompt {number} holds {token!r}, and ids are not negative')
        if ids[-1] >= 2**31:
            raise InputError(f'prompt {number} holds {token!r:.80}, which is no token id')
    return ids


class _Request:
    """What a caller asks for, with all checks that don't need the model's scores."""

    def __init__(
        self, block, prompts, max_new_tokens, valid_length, temperature, top_k, top_p, num_beams,
        length_penalty, num_return_sequences, stop_tokens, seed, overflow,
    ):  # fmt: skip
        self.prompts = _read_prompts(prompts, valid_length)
        self.new_tokens = _number('max_new_tokens', max_new_tokens, 1)
        self.num_beams = _number('num_beams', num_beams, 1, _MOST_TEXTS)
        self.sequences = _number(
            'num_return_sequences', num_return_sequences, 1, _MOST_TEXTS
        )
        stop_tokens = stop_tokens if np.iterable(stop_tokens) else [stop_tokens]
        self.stop_tokens = {_number('stop_tokens', token, 0) for token in stop_tokens}
        self.seed = None if seed is None else _number('seed', seed, 0, 2**32 - 1)
        self.length_penalty = length_penalty
        if not _is_real(length_penalty):
            raise InputError(f'length_penalty must be a number: {length_penalty!r}')
        self.sampler = self._make_sampler(temperature, top_k, top_p)
        self._top_k = top_k
        self._check_ways()
        self._check_context(block.context_length, overflow)
        self.text = GrowingText(block, self.prompts, self.new_tokens)
        self._check_vocabulary(self.text.scores.shape[1])

    @staticmethod
    def _make_sampler(temperature, top_k, top_p):
        if temperature is top_k is top_p is None:
            return None
        temperature = 1.0 if temperature is None else temperature
        if not _is_real(temperature) or temperature < 0:
            raise InputError(f'temperature must be a number above 0: {temperature!r}')
        if 0 < temperature < _COLDEST:
            raise InputError(f'temperature is {temperature}, and must be {_COLDEST} at least')
        if temperature == 0:
            raise InputError(
                'temperature must be above 0; for the likeliest token at every step leave out '
                'temperature, top_k and top_p: that is greedy'
            )
        if top_k is not None:
            top_k = _number('top_k', top_k, 1)
        if top_p is not None and not (_is_real(top_p) and 0 < top_p <= 1):
            raise InputError(f'top_p must be above 0 and at most 1: {top_p!r}')
        return Sampler(temperature, top_k, top_p)

    def _check_ways(self):
        if self.num_beams > 1 and self.sampler is not None:
            raise InputError(
                f'num_beams {self.num_beams} searches for the likeliest texts, while temperature, '
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
        if overflow not in ('error', 'slide'):
            raise UnknownNameError.of('overflow', overflow, ['error', 'slide'])
        if context is None or overflow == 'slide':
            return
        longest = max(range(len(self.prompts)), key=lambda number: len(self.prompts[number]))
        length = len(self.prompts[longest])
        if length > context:
            raise InputError(
                f'prompt {longest} has {length} tokens, and the context of this model is {context}:'
                " shorten it, or pass overflow='slide' to go on from its end"
            )
        if length + self.new_tokens > context:
            raise InputError(
                f'prompt {longest} has {length} tokens, {self.new_tokens} are wanted, and the '
                f'context of this model is {context}: ask for {context - length} at most, or pass '
                "overflow='slide' to forget the beginning where it is full"
            )

    def _check_vocabulary(self, size):
        if self._top_k is not None and self._top_k > size:
            raise InputError(f'top_k is {self._top_k}, and the vocabulary has {size} tokens')
        wrong = [token for token in self.stop_tokens if token >= size]
        if wrong:
            raise InputError(f'stop token {wrong[0]} is not in the vocabulary of {size} tokens')


def generate(
    block,
    prompts,
    max_new_tokens=50,
    valid_length=None,
    temperature=None,
    top_k=None,
    top_p=None,
    num_beams=1,
    length_penalty=1.0,
    num_return_sequences=1,
    stop_tokens=(),
    seed=None,
    overflow='error',
):
    """Continue prompts with a language model.

    By default the most likely token is taken at every step (greedy). If `temperature`, `top_k` or
    `top_p` is given, tokens are sampled. With `num_beams` above 1, beam search looks for likely
    texts.

    Prompts of different lengths can be mixed: each is continued as it would be alone.

    Parameters
    ----------
    block : HybridBlock
        A model with a language model's head. What is used of it:

        - ``start(words, valid_length, capacity) -> (scores, state)``: run the prompts, int32
          (batch, length), padded on the right. The scores (batch, vocabulary) are those at each
          row's last valid token. `capacity` places of a row are enough for all that follows.
        - ``step(tokens, state) -> (scores, state)``: add a token (batch,) to each row.
        - ``state.select(rows) -> state``: choose, repeat or reorder rows.
        - ``context_length``: the most tokens that it can see, or None.
    prompts : list of list of int, or (batch, length) mx.nd.NDArray or np.ndarray
        Token ids.
    max_new_tokens : int
        Most tokens to add.
    valid_length : (batch,), optional
        Lengths of the prompts in an array.
    temperature : float, optional
        The scores are divided by this: below 1, likely tokens become more likely. 1, the default
        with `top_k` or `top_p`, is the model's own distribution.
    top_k : int, optional
        Draw from this many most likely tokens.
    top_p : float, optional
        Draw from the smallest set of most likely tokens whose probabilities sum to this.
    num_beams : int
        Number of texts that beam search keeps for each prompt; see `beam.BeamSearch`.
    length_penalty : float
        Beam search compares log-probabilities divided by ``length ** length_penalty``.
    num_return_sequences : int
        Continuations of each prompt; with beam search the best, of `num_beams`.
    stop_tokens : int or collection of int
        Tokens that end a text.
    seed : int, optional
        Seed of the sampling. With the same seed a prompt has the same continuation, whatever
        the rest of the batch. With None the tokens differ each time.
    overflow : {'error', 'slide'}
        What to do if a text gets longer than the model's context: raise an error before anything is
        generated, or start again from the last half of the context whenever it is full.

    Returns
    -------
    list of list of Continuation
        `num_return_sequences` for each prompt, with beam search the best first.

    Raises
    ------
    InputError
        If a prompt or an option can't be used; the message names it.
    UnknownNameError
        If `overflow` isn't known.

    See Also
    --------
    stream : the tokens as they come.
    """
    request = _Request(
        block, prompts, max_new_tokens, valid_length, temperature, top_k, top_p, num_beams,
        length_penalty, num_return_sequences, stop_tokens, seed, overflow,
    )  # fmt: skip
    if request.num_beams > 1:
        search = BeamSearch(request.num_beams, request.length_penalty)
        found = search(request.text, len(request.prompts), request.new_tokens, request.stop_tokens)
        return [
            [
                Continuation(list(tokens), log_prob, why)
                for _, log_prob, tokens, why in of_prompt[: request.sequences]
            ]
            for of_prompt in found
        ]
    result = [[([], [], []) for _ in range(request.sequences)] for _ in request.prompts]
    for new in _stream(request):
        tokens, log_probs, finish = result[new.prompt][new.sequence]
        tokens.append(new.token)
        log_probs.append(new.log_prob)
        finish.append(new.finish)
    return [
        [
            Continuation(tokens, math.fsum(log_probs), finish[-1])
            for tokens, log_probs, finish in of_prompt
        ]
        for of_prompt in result
    ]


def stream(
    block,
    prompts,
    max_new_tokens=50,
    valid_length=None,
    temperature=None,
    top_k=None,
    top_p=None,
    num_return_sequences=1,
    stop_tokens=(),
    seed=None,
    overflow='error',
):
    """Continue prompts with a language model, and yield the tokens as they are generated.

    Beam search can't be streamed, since it has no text before its end. The call checks and runs the
    prompts; the iterator runs each step on demand.

    Parameters
    ----------
    block, prompts, max_new_tokens, valid_length, temperature, top_k, top_p, \
    num_return_sequences, stop_tokens, seed, overflow
        See `generate`, which returns the same tokens.

    Returns
    -------
    iterator of NewToken
        Step by step, in the order of the prompts; a sequence that has ended is left out.

    Raises
    ------
    InputError, UnknownNameError
        See `generate`.
    """
    request = _Request(
        block, prompts, max_new_tokens, valid_length, temperature, top_k, top_p, 1, 1.0,
        num_return_sequences, stop_tokens, seed, overflow,
    )  # fmt: skip
    return _stream(request)


def _stream(request):
    text, sequences = request.text, request.sequences
    rows = np.repeat(np.arange(len(request.prompts)), sequences)
    generators = row_generators(request.prompts, sequences, request.seed)
    going = np.ones(len(rows), bool)
    for step in range(request.new_tokens):
        scores = text.scores.asnumpy().astype('float32', copy=False)
        if step == 0:
            scores = scores[rows]
        normalizer = log_normalizer(scores)[:, 0]
        if request.sampler is None:
            tokens = scores.argmax(axis=1)
        else:
            tokens = request.sampler(scores, generators)
        log_probs = scores[np.arange(len(rows)), tokens] - normalizer
        for row in np.flatnonzero(going):
            token = int(tokens[row])
            finish = None
            if token in request.stop_tokens:
                finish = 'stop'
            elif step + 1 == request.new_tokens:
                finish = 'length'
            going[row] = finish is None
            prompt, sequence = divmod(int(row), sequences)
            yield NewToken(prompt, sequence, token, float(log_probs[row]), finish)
        if not going.any():
            return
        if step == 0 and sequences > 1:
            text.select(rows)
        text.append(tokens)


class GenerationMixin:
    """The functions of `model_zoo.generation` as methods of a block with `start` and `step`."""

    def generate(self, prompts, max_new_tokens=50, **options):
        """Continue `prompts`; see `model_zoo.generation.generate`."""
        return generate(self, prompts, max_new_tokens, **options)

    def stream(self, prompts, max_new_tokens=50, **options):
        """Continue `prompts`, token by token; see `model_zoo.generation.stream`."""
        return stream(self, prompts, max_new_tokens, **options)
