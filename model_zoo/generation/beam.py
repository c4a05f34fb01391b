"""Beam search.

GluonNLP's ``BeamSearchSampler`` isn't used, for three reasons. It knows a single end token and
always adds it. Its finished texts keep their places in the beam, so its results differ from other
programs' as soon as a text ends. And it copies all of a decoder's states at every token, moved or
not. Without end tokens both find the same texts, which a test checks. GluonNLP's
``SequenceSampler`` has no `top_p`, and draws from MXNet's global generator, so a prompt's text
depends on its batch.
"""

import mxnet as mx
import numpy as np

__all__ = ['BeamSearch']


class _Beams:
    """The texts of one prompt: those that continue, and the best finished ones."""

    def __init__(self, size, length_penalty):
        self._size = size
        self._length_penalty = length_penalty
        self.going = [(0.0, ())]  # log-probability and new tokens
        self.ended = []  # score, log-probability, tokens, why: the best first
        self.done = False

    def add(self, candidates, stop_tokens, is_last):
        """Continue with `candidates`, and return the rows that they extend.

        Parameters
        ----------
        candidates : list of (float, int, int)
            Log-probability, row in the beam and token; the most likely first.
        stop_tokens : set of int
        is_last : bool
            Whether the texts have reached their length.
        """
        going, rows = [], []
        for rank, (log_prob, row, token) in enumerate(candidates):
            tokens = (*self.going[row][1], token)
            stops = token in stop_tokens
            if (stops or is_last) and rank < self._size:
                score = log_prob / len(tokens) ** self._length_penalty
                why = 'stop' if stops else 'length'
                self.ended.append((score, log_prob, tokens, why))
            elif not stops and len(going) < self._size:
                going.append((log_prob, tokens))
                rows.append(row)
        self.ended.sort(key=lambda each: each[0], reverse=True)
        del self.ended[self._size :]
        self.going = going
        self.done = is_last or not going or self._is_settled()
        return rows

    def _is_settled(self):
        """Whether the most likely text that continues is already worse than all finished ones."""
        if len(self.ended) < self._size:
            return False
        log_prob, tokens = self.going[0]
        return log_prob / len(tokens) ** self._length_penalty <= self.ended[-1][0]


class BeamSearch:
    """Searches for the most likely texts, as transformers does.

    At each token the `num_beams` most likely texts continue. Those that end with a stop token are
    put aside, and compared by their log-probability divided by ``length ** length_penalty``. The
    search for a prompt ends when `num_beams` texts are finished, and the most likely text that
    continues scores no better than the last of them.

    Parameters
    ----------
    num_beams : int
    length_penalty : float
        Above 0 it favours longer texts.
    """

    def __init__(self, num_beams, length_penalty=1.0):
        self._num_beams = num_beams
        self._length_penalty = length_penalty

    def __call__(self, text, prompts, new_tokens, stop_tokens):
        """Search from `text`.

        Parameters
        ----------
        text : GrowingText
            The prompts, one per row.
        prompts : int
            Number of prompts.
        new_tokens : int
            Most tokens to add.
        stop_tokens : set of int

        Returns
        -------
        list of list of (float, float, tuple of int, str)
            For each prompt at most `num_beams` texts, the best one first: score, log-probability,
            tokens, and ``'stop'`` or ``'length'``.
        """
        size = self._num_beams
        beams = [_Beams(size, self._length_penalty) for _ in range(prompts)]
        for step in range(new_tokens):
            candidates = self._candidates(text.scores, beams, (1 + max(1, len(stop_tokens))) * size)
            width = 1 if step == 0 else size  # rows that each prompt had so far
            rows, tokens = [], []
            for prompt, beam in enumerate(beams):
                found = [] if beam.done else candidates[prompt]
                kept = beam.add(found, stop_tokens, step + 1 == new_tokens) if found else []
                # the results of places that aren't needed yet, or any more, are ignored
                idle = size - len(kept)
                rows += [prompt * width + row for row in kept] + [prompt * width] * idle
                tokens += [new[-1] for _, new in beam.going[: len(kept)]] + [0] * idle
            if all(beam.done for beam in beams):
                break
            text.select(np.array(rows))
            text.append(np.array(tokens))
        return [beam.ended for beam in beams]

    @staticmethod
    def _candidates(scores, beams, count):
        """For each prompt its `count` most likely continuations, the most likely first."""
        vocabulary = scores.shape[1]
        width = scores.shape[0] // len(beams)
        before = np.full((len(beams), width), -np.inf, 'float32')
        for row, beam in zip(before, beams):
            row[: len(beam.going)] = [log_prob for log_prob, _ in beam.going]
        log_probs = mx.nd.log_softmax(scores.astype('float32'), axis=-1)
        before = mx.nd.array(before.reshape(-1, 1), ctx=scores.context)
        log_probs = mx.nd.broadcast_add(log_probs, before).reshape((len(beams), -1))
        count = min(count, log_probs.shape[1])
        values, places = mx.nd.topk(log_probs, k=count, ret_typ='both', dtype='int32')
        return [
            [
                (float(value), int(place) // vocabulary, int(place) % vocabulary)
                for value, place in zip(*pair)
                if value > -np.inf
            ]
            for pair in zip(values.asnumpy(), places.asnumpy())
        ]
