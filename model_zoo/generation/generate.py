"""Continue prompts with a language model: `generate` and `stream`."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from .request import Request
from .scores import log_normalizer
from .search import NewToken, draw, row_generators, search

__all__ = [
    'Continuation',
    'GenerationMixin',
    'NewToken',
    'StreamedText',
    'generate',
    'stream',
    'text_of',
]


class Continuation(NamedTuple):
    """The continuation of a prompt.

    Attributes
    ----------
    tokens : list of int
        The new tokens, including the stop token if there is one.
    log_prob : float
        Log-probability of the tokens after the prompt, under the model's own distribution, before
        `temperature`, `top_k` and `top_p`.
    finish : str
        Why it ended: ``'stop'`` (a stop token) or ``'length'`` (the maximum number of tokens).
    """

    tokens: list[int]
    log_prob: float
    finish: str


def generate(block, prompts, max_new_tokens=50, **options):
    """Continue prompts with a language model.

    By default the most likely token is taken at every step (greedy). If `temperature`, `top_k` or
    `top_p` is given, tokens are sampled. With `num_beams` above 1, beam search looks for likely
    texts.

    Prompts of different lengths can be mixed: each is continued as it would be alone.

    Parameters
    ----------
    block : HybridBlock
        A model with a language model head. It needs:

        - ``start(words, valid_length, capacity) -> (scores, state)``: run the prompts, int32
          (batch, length), padded on the right. The scores (batch, vocabulary) are those at each
          row's last valid token. No row will have more than `capacity` tokens.
        - ``step(tokens, state) -> (scores, state)``: add a token (batch,) to each row.
        - ``state.select(rows) -> state``: choose, repeat or reorder rows.
        - ``context_length``: the maximum number of tokens that it can attend to, or None.
    prompts : list of list of int, or array of shape (batch, length)
        Token ids.
    max_new_tokens : int, or list of int
        Maximum number of tokens to add, of all prompts or of each.

    Other Parameters
    ----------------
    temperature : float, optional
        The scores are divided by this: below 1, likely tokens become more likely. 1, the default
        with `top_k` or `top_p`, is the model's own distribution.
    top_k : int, optional
        Sample from this many most likely tokens; 0: from all.
    top_p : float, optional
        Sample from the smallest set of most likely tokens whose probabilities sum to this.
    min_p : float, optional
        Sample from tokens that are at least this times as likely as the most likely one.
    num_beams : int
        Number of texts that beam search keeps for each prompt; default 1.
    length_penalty : float
        Beam search compares log-probabilities divided by ``length ** length_penalty``; default 1.
    early_stopping : bool or 'never'
        Whether a beam search ends with its `num_beams`-th finished text. By default it ends when
        the likeliest unfinished one scores no better; with 'never', if it can't, at any length.
    num_return_sequences : int
        Continuations of each prompt; with beam search the best, of `num_beams`.
    stop_tokens : int or collection of int
        Tokens that end a text.
    min_new_tokens, min_length : int
        Minimum number of tokens before a stop token, without or with the prompt's; the former
        excludes the latter.
    repetition_penalty : float
        Above 1, tokens that a text has already become less likely, as in the paper of CTRL.
    no_repeat_ngram_size : int
        If above 0, no sequence of this many tokens occurs twice in a text.
    bad_words_ids : list of list of int
        Sequences of tokens that don't occur in a text.
    sequence_bias : list of (list of int, float)
        Sequences of tokens, and what is added to the score of the last where the others are.
    suppress_tokens, begin_suppress_tokens : list of int
        Tokens that are never chosen, or not as the first new one.
    forced_bos_token_id : int
        The token after a prompt of one token.
    forced_eos_token_id : int or list of int
        The last token of a text of `max_new_tokens`.
    exponential_decay_length_penalty : (int, float)
        Number of new tokens after which stop tokens become more likely, and a factor: the absolute
        value of a score, times ``factor ** n - 1``, is added to it at the n-th token from there.
    renormalize_logits : bool
        Whether beam search compares log-probabilities that sum to 1 after all these changes.
    seed : int, optional
        Seed of the sampling. The random numbers of a prompt depend only on the seed and its number
        among the prompts; a further sequence's also depend on the sequence's number. With None
        they differ each time.
    streams : list of (int, int, int), optional
        For a part of a list of prompts, instead of `seed`: the seed, the number in the whole list,
        and the number of the first sequence of each.
    overflow : {'error', 'slide'}, default 'error'
        What to do if a text exceeds the model's context: raise an error before anything is
        generated, or restart from the last half of the context whenever it is full.

    Returns
    -------
    list of list of Continuation
        `num_return_sequences` for each prompt, with beam search best first.

    Raises
    ------
    InputError
        If a prompt or an option can't be used; the message names it.
    UnknownNameError
        If there is no such option.
    """
    request = Request(block, {'prompts': prompts, 'max_new_tokens': max_new_tokens, **options})
    sequences = range(request.options.num_return_sequences)
    written = [[[] for _ in sequences] for _ in request.prompts]
    for new in itertools.chain.from_iterable(steps(request)):
        written[new.prompt][new.sequence].append(new)
    return [[_continuation(tokens) for tokens in texts if tokens] for texts in written]


def _continuation(new):
    log_prob = math.fsum(token.log_prob for token in new)
    return Continuation([token.token for token in new], log_prob, new[-1].finish)


def stream(block, prompts, max_new_tokens=50, **options):
    """Continue prompts with a language model, and yield the tokens as they are generated.

    Beam search has no text until it ends: all its tokens come then. The call checks and runs the
    prompts; the iterator runs each step on demand.

    Parameters
    ----------
    block, prompts, max_new_tokens, **options
        See `generate`, which returns the same tokens.

    Returns
    -------
    iterator of NewToken
        Step by step, in the order of the prompts; a sequence that has ended is left out. After a
        beam search, text by text.
    """
    request = Request(block, {'prompts': prompts, 'max_new_tokens': max_new_tokens, **options})
    return itertools.chain.from_iterable(steps(request))


def steps(request):
    """Return an iterator of the lists of `NewToken` that each step of a `Request` completes."""
    return search(request) if request.options.num_beams > 1 else _steps(request)


def _steps(request):
    text, options = request.text, request.options
    sequences = options.num_return_sequences
    rows = np.repeat(np.arange(len(request.prompts)), sequences)
    generators = row_generators(request.streams, sequences)
    counts, going = np.repeat(request.counts, sequences), np.ones(len(rows), bool)
    for step in range(max(counts)):
        scores = text.scores.asnumpy().astype('float32', copy=False)
        processed = request.processed(scores, step)
        if step == 0:
            scores, processed = scores[rows], processed[rows]
        normalizer = log_normalizer(scores)[:, 0]
        tokens = processed.argmax(axis=1)
        if request.draws:
            pairs = zip(processed, generators)
            tokens = np.array([draw(*pair, *request.among) for pair in pairs], 'int32')
        log_probs, written = scores[np.arange(len(rows)), tokens] - normalizer, []
        for row in np.flatnonzero(going):
            token, finish = int(tokens[row]), 'length' if step + 1 == counts[row] else None
            finish = 'stop' if token in request.stop_tokens else finish
            going[row] = finish is None
            prompt, sequence = divmod(int(row), sequences)
            written.append(NewToken(prompt, sequence, token, float(log_probs[row]), finish))
        yield written
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


def text_of(tokenizer, prompt, tokens, finish, skip_special_tokens=False):
    """Return the text that generated tokens, without a stop token, add to the prompt's text."""
    # together: a tokenizer may drop the space at the beginning of a text
    before, ids = list(prompt), list(tokens[:-1] if finish == 'stop' else tokens)
    text = tokenizer.decode(before + ids, skip_special_tokens)
    return text[len(tokenizer.decode(before, skip_special_tokens)) :]


class StreamedText:
    """The text of one sequence, as its tokens come from `stream`.

    Parameters
    ----------
    prompt : list of int
    stop : sequence of str
        Texts that end it.
    skip_special_tokens : bool

    Attributes
    ----------
    text : str
        The text returned so far; it may lack the last tokens.
    is_stopped : bool
        Whether a text of `stop` has come.
    """

    def __init__(self, tokenizer, prompt=(), stop=(), skip_special_tokens=False):
        self._tokenizer, self._prompt, self._stop = tokenizer, prompt, stop
        self._skips = skip_special_tokens
        self.tokens, self.text, self.is_stopped = [], '', False

    def add(self, new):
        """Add a `NewToken`; returns the text that it completes, or an empty str."""
        self.tokens.append(new.token)
        text = text_of(self._tokenizer, self._prompt, self.tokens, new.finish, self._skips)
        # the last bytes may be the beginning of a character
        if not new.finish and (not text.startswith(self.text) or text.endswith('\ufffd')):
            return ''
        ends = (text.find(stop, len(self.text)) for stop in self._stop)
        end = min((end for end in ends if end >= 0), default=None)
        if end is not None:
            self.is_stopped = True
            text = text[:end]
        elif not new.finish:
            # up to a tail that may become a text of `stop`
            starts = range(len(self.text), len(text))
            tails = (n for n in starts if any(stop.startswith(text[n:]) for stop in self._stop))
            text = text[: next(tails, len(text))]
        added, self.text = text[len(self.text) :], text
        return added
