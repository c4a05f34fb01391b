"""The next tokens: the best ones, sampled ones, or by beam search."""

import secrets
from typing import NamedTuple

import mxnet as mx
import numpy as np


class NewToken(NamedTuple):
    """A token of `stream`.

    Attributes
    ----------
    prompt, sequence : int
        Numbers of its prompt, and of the prompt's sequence.
    log_prob : float
        See `Continuation`.
    finish : str or None
        ``'stop'`` or ``'length'`` if it is the sequence's last token.
    """

    prompt: int
    sequence: int
    token: int
    log_prob: float
    finish: str | None


def streams_of(seed, numbers, sample=0):
    """Return the random streams of texts with these numbers in the caller's list, for `Request`.

    `sample` is the number of a text's first continuation. Without a seed they differ each time.
    """
    seed = secrets.randbits(32) if seed is None else seed
    return [(seed, number, sample) for number in numbers]


def row_generators(streams, sequences):
    """Return a random generator for each sequence, prompt by prompt."""
    # A counter-based generator: its numbers follow from the seed, the text's number and the
    # sample's, whatever else is drawn.
    return [
        np.random.Generator(np.random.Philox(key=[seed, number], counter=[0, 0, 0, first + n]))
        for seed, number, first in streams
        for n in range(sequences)
    ]


def draw(scores, generator, temperature=None, top_k=None, top_p=None, min_p=None):
    """Draw one of the likely tokens at random, for scores (tokens,).

    The filters are applied in the order of the parameters. Tokens that are as likely as the last
    one kept are kept too.
    """
    # This takes about 0.3 ms for 50000 tokens (0.1 with `top_k` alone).
    temperature, least = 1.0 if temperature is None else temperature, -np.inf
    if top_k:
        last = max(0, len(scores) - top_k)
        least = np.partition(scores, last)[last]
    if top_p is not None and top_p < 1:
        # scores in order, without their tokens: sorting those as well takes ten times as long
        likeliest = np.sort(scores[scores >= least])[::-1]
        odds = np.exp((likeliest - likeliest[0]).astype('float64') / temperature)
        cumulative = np.cumsum(odds)
        last = np.searchsorted(cumulative, top_p * cumulative[-1])
        least = likeliest[min(last, len(likeliest) - 1)]
    if min_p:
        least = max(least, scores.max() + temperature * np.log(min_p))
    tokens = np.flatnonzero(scores >= least)  # which may be drawn, in ascending order
    scores = scores[tokens].astype('float64') / temperature
    cumulative = np.cumsum(np.exp(scores - scores.max()))
    index = np.searchsorted(cumulative, generator.random() * cumulative[-1], side='right')
    return tokens[min(index, len(tokens) - 1)]  # rounding may go beyond the last


class _Beams:
    """The texts of one prompt: the unfinished texts, and the best finished ones."""

    def __init__(self, most, options):
        self._most, self._options, self._size = most, options, options.num_beams
        #: log-probability, and new tokens with their log-probabilities
        self.going = [(0.0, ())]
        self.ended = []  # (score, tokens, finish), the best first
        self.done = False

    def add(self, candidates, stop_tokens):
        """Continue with `candidates`, and return the rows that they extend."""
        going, rows, power = [], [], self._options.length_penalty
        is_last = len(self.going[0][1]) + 1 == self._most
        for rank, (log_prob, row, token) in enumerate(candidates):
            before, tokens = self.going[row]
            tokens = (*tokens, (token, log_prob - before))
            stops = token in stop_tokens
            if (stops or is_last) and rank < self._size:
                finish = 'stop' if stops else 'length'
                self.ended.append((log_prob / len(tokens) ** power, tokens, finish))
            elif not stops and len(going) < self._size:
                going.append((log_prob, tokens))
                rows.append(row)
        self.ended.sort(key=lambda ended: ended[0], reverse=True)
        del self.ended[self._size :]
        self.going, self.done = going, is_last or not going
        if going and len(self.ended) == self._size:
            # the likeliest unfinished text may be worse than all finished ones
            log_prob, tokens = going[0]
            early = self._options.early_stopping
            length = self._most if early == 'never' and power > 0 else len(tokens)
            is_worse = log_prob / length**power <= self.ended[-1][0]
            self.done = self.done or early is True or is_worse
        return rows


def search(request):
    """Search for the most likely texts, as transformers does; yield what `steps` yields."""
    # At each token the `num_beams` most likely texts continue. Those that end with a stop token
    # are put aside, and compared by their log-probability divided by `length ** length_penalty`.
    # The search for a prompt ends when `num_beams` texts are finished, and the most likely text
    # that continues scores no better than the last of them.
    text, stop_tokens, options = request.text, request.stop_tokens, request.options
    num_beams = options.num_beams
    beams = [_Beams(most, options) for most in request.counts]
    count = (1 + max(1, len(stop_tokens))) * num_beams
    for step in range(max(request.counts)):
        log_probs = mx.nd.log_softmax(text.scores.astype('float32'), axis=-1)
        if not request.process.is_idle:
            processed = request.processed(log_probs.asnumpy(), step)
            log_probs = mx.nd.array(processed, ctx=log_probs.context)
        candidates = _candidates(log_probs, beams, count)
        width = 1 if step == 0 else num_beams  # rows that each prompt had so far
        rows, tokens = [], []
        for prompt, (beam, new) in enumerate(zip(beams, candidates)):
            kept = beam.add(new, stop_tokens) if new and not beam.done else []
            # results of rows that aren't needed yet, or any more, are ignored
            idle = num_beams - len(kept)
            rows += [prompt * width + row for row in kept] + [prompt * width] * idle
            tokens += [new[-1][0] for _, new in beam.going[: len(kept)]] + [0] * idle
        if all(beam.done for beam in beams):
            break
        text.select(np.array(rows))
        text.append(np.array(tokens))
        yield []
    written = []
    for prompt, beam in enumerate(beams):
        for sequence, (_, tokens, finish) in enumerate(beam.ended[: options.num_return_sequences]):
            written += [NewToken(prompt, sequence, *token, None) for token in tokens]
            written[-1] = written[-1]._replace(finish=finish)
    yield written


def _candidates(log_probs, beams, count):
    """Return for each prompt its `count` most likely continuations, the likeliest first."""
    vocabulary = log_probs.shape[1]
    before = np.full((len(beams), log_probs.shape[0] // len(beams)), -np.inf, 'float32')
    for row, beam in zip(before, beams):
        row[: len(beam.going)] = [log_prob for log_prob, _ in beam.going]
    before = mx.nd.array(before.reshape(-1, 1), ctx=log_probs.context)
    log_probs = mx.nd.broadcast_add(log_probs, before).reshape((len(beams), -1))
    count = min(count, log_probs.shape[1])
    values, indices = mx.nd.topk(log_probs, k=count, ret_typ='both', dtype='int32')
    return [
        [(float(value), *divmod(int(n), vocabulary)) for value, n in zip(*pair) if value > -np.inf]
        for pair in zip(values.asnumpy(), indices.asnumpy())
    ]
