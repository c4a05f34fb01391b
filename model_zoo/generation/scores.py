"""Options that change the scores of next tokens."""

from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from ..errors import InputError
from ..util.fields import CallOptions, Flag, Number, Size

Tokens = Annotated[list[Size], Field(max_length=10_000)]
#: one token or several, as a list
SomeTokens = Annotated[Tokens | Size, AfterValidator(lambda v: [v] if isinstance(v, int) else v)]
_Word = Annotated[Tokens, Field(min_length=1)]
# JSON has no tuples
_Bias = Annotated[tuple[_Word, Number], Field(strict=False)]
_Decay = Annotated[tuple[Size, Annotated[Number, Field(gt=0)]], Field(strict=False)]


class ScoreOptions(CallOptions):
    """Options that change scores; see `generate`."""

    min_length: Size = 0
    min_new_tokens: Size | None = None
    repetition_penalty: Annotated[Number, Field(gt=0, le=1e6)] = 1.0
    no_repeat_ngram_size: Size = 0
    bad_words_ids: Annotated[list[_Word], Field(max_length=10_000)] = []
    sequence_bias: Annotated[list[_Bias], Field(max_length=10_000)] = []
    suppress_tokens: Tokens = []
    begin_suppress_tokens: Tokens = []
    forced_bos_token_id: SomeTokens = []
    forced_eos_token_id: SomeTokens = []
    exponential_decay_length_penalty: _Decay | None = None
    renormalize_logits: Flag = False

    @property
    def named_tokens(self):
        """All tokens that the options name."""
        named = [*self.bad_words_ids, *(word for word, _ in self.sequence_bias)]
        named += self.suppress_tokens, self.begin_suppress_tokens
        named += self.forced_bos_token_id, self.forced_eos_token_id
        return sum(named, [])


def log_normalizer(scores):
    """Return the logarithm of the sum of the scores' exponentials, (rows, tokens) -> (rows, 1)."""
    top = scores.max(axis=1, keepdims=True)
    result = top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    if not np.isfinite(result).all():
        raise InputError('the model returned scores that are not finite: check its weights')
    return result


class LogitsProcessor:
    """Changes the scores of next tokens, as transformers' processors do, in their order."""

    def __init__(self, stop_tokens, options):
        self._options, self._stop_tokens = options, list(stop_tokens)
        words = map(tuple, options.bad_words_ids)
        words = [(word, -np.inf) for word in words if word[1:] or word[0] not in stop_tokens]
        self._bad_words, self._biases = words, [(tuple(w), b) for w, b in options.sequence_bias]
        fields = ScoreOptions.model_fields.items()
        #: whether no score is changed
        self.is_idle = all(getattr(options, name) == field.default for name, field in fields)

    def __call__(self, scores, texts, step, lasts):
        """Scores (rows, tokens) after texts, a list of ids each, with `step` new tokens.

        `lasts` says of each row whether its next token is its last one.
        """
        if self.is_idle:
            return scores
        scores = scores.copy()
        for row, ids, is_last in zip(scores, texts, lasts):
            self._change(row, ids, step, is_last)
        return scores

    def _change(self, row, ids, step, is_last):
        given, ends = self._options, self._stop_tokens
        _add(row, ids, self._biases)
        if given.repetition_penalty != 1:
            seen = np.unique(ids)
            old = row[seen]
            penalty = given.repetition_penalty
            row[seen] = np.where(old < 0, old * penalty, old / penalty)
        if given.no_repeat_ngram_size:
            shifted = (ids.tolist()[start:] for start in range(given.no_repeat_ngram_size))
            _add(row, ids, [(word, -np.inf) for word in set(zip(*shifted))])
        _add(row, ids, self._bad_words)
        # the one excludes the other, as in transformers
        least = given.min_length if given.min_new_tokens is None else given.min_new_tokens
        if (len(ids) if given.min_new_tokens is None else step) < least:
            row[ends] = -np.inf
        for forced, is_time in (
            (given.forced_bos_token_id, len(ids) == 1),
            (given.forced_eos_token_id, is_last),
        ):
            if forced and is_time:
                row[:] = -np.inf
                row[forced] = 0
        start, factor = given.exponential_decay_length_penalty or (step, 1)
        if step > start:
            with np.errstate(over='ignore'):
                grown = np.minimum(np.float64(factor) ** (step - start) - 1, 1e30)
                row[ends] += np.where(np.isfinite(row[ends]), abs(row[ends]) * grown, 0)
        row[given.suppress_tokens] = -np.inf
        if step == (given.forced_bos_token_id != [] and len(ids) - step == 1):
            row[given.begin_suppress_tokens] = -np.inf
        if given.renormalize_logits:
            row -= log_normalizer(row[None])[0]


def _add(row, ids, biases):
    """Add to the scores of the last tokens of those sequences that the text has begun."""
    for word, bias in biases:
        if len(word) <= len(ids) + 1 and (*ids[len(ids) + 1 - len(word) :],) == word[:-1]:
            row[word[-1]] += bias
