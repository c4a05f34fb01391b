"""The next tokens: the best ones, sampled ones, or by beam search."""

import mxnet as mx
import numpy as np

from ..errors import InputError


def log_normalizer(scores):
    """Return the logarithm of the sum of the scores' exponentials, (rows, tokens) -> (rows, 1)."""
    top = scores.max(axis=1, keepdims=True)
    result = top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    if not np.isfinite(result).all():
        raise InputError('the model returned scores that are not finite: check its weights')
    return result


def row_generators(prompts, num_return_sequences, seed):
    """Return a random generator for each sequence, prompt by prompt."""
    # They are seeded with the prompt itself, so a continuation depends neither on the other
    # prompts nor on the position among them. Equal prompts have different generators.
    if seed is None:
        seed = np.random.SeedSequence().entropy
    seen, generators = {}, []
    for prompt in map(tuple, prompts):
        for _ in range(num_return_sequences):
            number = seen[prompt] = seen.get(prompt, -1) + 1
            generators.append(np.random.default_rng([seed, number, *prompt]))
    return generators


class LogitsProcessor:
    """Changes the scores of next tokens, as transformers' processors of these names do."""

    def __init__(self, stop_tokens, options):
        self._stop_tokens, self._min_new_tokens = list(stop_tokens), options.min_new_tokens
        self._penalty, self._size = options.repetition_penalty, options.no_repeat_ngram_size
        words = map(tuple, options.bad_words_ids)
        self._bad_words = [word for word in words if word[1:] or word[0] not in stop_tokens]
        #: whether no score is changed
        self.is_idle = (
            self._penalty == 1
            and not (self._size or self._bad_words)
            and not (self._min_new_tokens and stop_tokens)
        )

    def __call__(self, scores, texts, step):
        """Scores (rows, tokens) after texts, a list of ids each, with `step` new tokens."""
        if self.is_idle:
            return scores
        scores = scores.copy()
        for row, ids in zip(scores, texts):
            if self._penalty != 1:
                seen = np.unique(ids)
                old = row[seen]
                row[seen] = np.where(old < 0, old * self._penalty, old / self._penalty)
            for word in [*self._repeated(ids), *self._bad_words]:
                if len(word) <= len(ids) + 1 and (*ids[len(ids) + 1 - len(word) :],) == word[:-1]:
                    row[word[-1]] = -np.inf
        if step < self._min_new_tokens:
            scores[:, self._stop_tokens] = -np.inf
        return scores

    def _repeated(self, ids):
        """Return the sequences of `no_repeat_ngram_size` tokens that a text has."""
        ids = ids.tolist()
        return set(zip(*(ids[start:] for start in range(self._size))))


def draw(scores, generator, temperature=None, top_k=None, top_p=None):
    """Draw one of the likely tokens at random, for scores (tokens,).

    The filters are applied in the order of the parameters. Tokens that are as likely as the last
    one kept are kept too.
    """
    # This takes about 0.3 ms for 50000 tokens (0.1 with `top_k` alone).
    temperature, least = 1.0 if temperature is None else temperature, -np.inf
    if top_k:
        last = max(0, len(scores) - top_k)
        least = np.partition(scores, last)[last]
    if top_p is not None:
        # scores in order, without their tokens: sorting those as well takes ten times as long
        likeliest = np.sort(scores[scores >= least])[::-1]
        odds = np.exp((likeliest - likeliest[0]).astype('float64') / temperature)
        cumulative = np.cumsum(odds)
        last = np.searchsorted(cumulative, top_p * cumulative[-1])
        least = likeliest[min(last, len(likeliest) - 1)]
    tokens = np.flatnonzero(scores >= least)  # which may be drawn, in ascending order
    scores = scores[tokens].astype('float64') / temperature
    cumulative = np.cumsum(np.exp(scores - scores.max()))
    index = np.searchsorted(cumulative, generator.random() * cumulative[-1], side='right')
    return tokens[min(index, len(tokens) - 1)]  # rounding may go beyond the last


class _Beams:
    """The texts of one prompt: the unfinished texts, and the best finished ones."""

    def __init__(self, size, length_penalty):
        self._size, self._length_penalty = size, length_penalty
        self.going = [(0.0, ())]  # log-probability and new tokens
        self.ended = []  # (score, log-probability, tokens, finish), the best first
        self.done = False

    def add(self, candidates, stop_tokens, is_last):
        """Continue with `candidates`, and return the rows that they extend."""
        going, rows = [], []
        for rank, (log_prob, row, token) in enumerate(candidates):
            tokens = (*self.going[row][1], token)
            stops = token in stop_tokens
            if (stops or is_last) and rank < self._size:
                score = log_prob / len(tokens) ** self._length_penalty
                finish = 'stop' if stops else 'length'
                self.ended.append((score, log_prob, tokens, finish))
            elif not stops and len(going) < self._size:
                going.append((log_prob, tokens))
                rows.append(row)
        self.ended.sort(key=lambda ended: ended[0], reverse=True)
        del self.ended[self._size :]
        self.going, self.done = going, is_last or not going
        if going and len(self.ended) == self._size:
            # the likeliest unfinished text may be worse than all finished ones
            log_prob, tokens = going[0]
            likeliest = log_prob / len(tokens) ** self._length_penalty
            self.done = self.done or likeliest <= self.ended[-1][0]
        return rows


def search(request):
    """Search for the most likely texts, as transformers does."""
    # At each token the `num_beams` most likely texts continue. Those that end with a stop token
    # are put aside, and compared by their log-probability divided by `length ** length_penalty`.
    # The search for a prompt ends when `num_beams` texts are finished, and the most likely text
    # that continues scores no better than the last of them.
    text, stop_tokens, options = request.text, request.stop_tokens, request.options
    num_beams, most = options.num_beams, options.max_new_tokens
    beams = [_Beams(num_beams, options.length_penalty) for _ in request.prompts]
    count = (1 + max(1, len(stop_tokens))) * num_beams
    for step in range(most):
        log_probs = mx.nd.log_softmax(text.scores.astype('float32'), axis=-1)
        if not request.process.is_idle:
            processed = request.process(log_probs.asnumpy(), text.ids, step)
            log_probs = mx.nd.array(processed, ctx=log_probs.context)
        candidates = _candidates(log_probs, beams, count)
        width = 1 if step == 0 else num_beams  # rows that each prompt had so far
        rows, tokens = [], []
        for prompt, (beam, new) in enumerate(zip(beams, candidates)):
            kept = []
            if new and not beam.done:
                kept = beam.add(new, stop_tokens, step + 1 == most)
            # results of rows that aren't needed yet, or any more, are ignored
            idle = num_beams - len(kept)
            rows += [prompt * width + row for row in kept] + [prompt * width] * idle
            tokens += [ids[-1] for _, ids in beam.going[: len(kept)]] + [0] * idle
        if all(beam.done for beam in beams):
            break
        text.select(np.array(rows))
        text.append(np.array(tokens))
    return [beam.ended for beam in beams]


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
        [
            (float(value), int(index) // vocabulary, int(index) % vocabulary)
            for value, index in zip(*pair)
            if value > -np.inf
        ]
        for pair in zip(values.asnumpy(), indices.asnumpy())
    ]
