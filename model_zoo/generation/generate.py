"""Continue prompts with a language model: `generate` and `stream`."""

import math
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from .request import Request
from .search import draw, log_normalizer, row_generators, search


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
    max_new_tokens : int
        Maximum number of tokens to add.

    Other Parameters
    ----------------
    temperature : float, optional
        The scores are divided by this: below 1, likely tokens become more likely. 1, the default
        with `top_k` or `top_p`, is the model's own distribution.
    top_k : int, optional
        Sample from this many most likely tokens; 0: from all.
    top_p : float, optional
        Sample from the smallest set of most likely tokens whose probabilities sum to this.
    num_beams : int
        Number of texts that beam search keeps for each prompt; default 1.
    length_penalty : float
        Beam search compares log-probabilities divided by ``length ** length_penalty``; default 1.
    num_return_sequences : int
        Continuations of each prompt; with beam search the best, of `num_beams`.
    stop_tokens : int or collection of int
        Tokens that end a text.
    min_new_tokens : int
        Minimum number of tokens before a stop token.
    repetition_penalty : float
        Above 1, tokens that a text has already become less likely, as in the paper of CTRL.
    no_repeat_ngram_size : int
        If above 0, no sequence of this many tokens occurs twice in a text.
    bad_words_ids : list of list of int
        Sequences of tokens that don't occur in a text.
    seed : int, optional
        Seed of the sampling. With the same seed a prompt has the same continuation, regardless of
        the rest of the batch. With None the tokens differ each time.
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
    sequences = request.options.num_return_sequences
    if request.options.num_beams > 1:
        return [
            [
                Continuation(list(tokens), log_prob, finish)
                for _, log_prob, tokens, finish in of_prompt[:sequences]
            ]
            for of_prompt in search(request)
        ]
    written = [[] for _ in range(len(request.prompts) * sequences)]
    for new in _stream(request):
        written[new.prompt * sequences + new.sequence].append(new)
    texts = []
    for tokens in written:
        log_prob = math.fsum(new.log_prob for new in tokens)
        texts.append(Continuation([new.token for new in tokens], log_prob, tokens[-1].finish))
    return [texts[start : start + sequences] for start in range(0, len(texts), sequences)]


def stream(block, prompts, max_new_tokens=50, **options):
    """Continue prompts with a language model, and yield the tokens as they are generated.

    Beam search can't be streamed, because it has no text until it ends. The call checks and runs
    the prompts; the iterator runs each step on demand.

    Parameters
    ----------
    block, prompts, max_new_tokens, **options
        See `generate`, which returns the same tokens.

    Returns
    -------
    iterator of NewToken
        Step by step, in the order of the prompts; a sequence that has ended is left out.
    """
    request = Request(block, {'prompts': prompts, 'max_new_tokens': max_new_tokens, **options})
    if request.options.num_beams > 1:
        raise InputError('a beam search cannot be streamed: num_beams is 1')
    return _stream(request)


def _stream(request):
    text, options = request.text, request.options
    most, sequences = options.max_new_tokens, options.num_return_sequences
    rows = np.repeat(np.arange(len(request.prompts)), sequences)
    generators = row_generators(request.prompts, sequences, options.seed)
    chosen_among = options.temperature, options.top_k, options.top_p
    going = np.ones(len(rows), bool)
    for step in range(most):
        scores = text.scores.asnumpy().astype('float32', copy=False)
        processed = request.process(scores, text.ids, step)
        if step == 0:
            scores, processed = scores[rows], processed[rows]
        normalizer = log_normalizer(scores)[:, 0]
        tokens = processed.argmax(axis=1)
        if request.draws:
            pairs = zip(processed, generators)
            tokens = np.array([draw(*pair, *chosen_among) for pair in pairs], 'int32')
        log_probs = scores[np.arange(len(rows)), tokens] - normalizer
        for row in np.flatnonzero(going):
            token, finish = int(tokens[row]), 'length' if step + 1 == most else None
            finish = 'stop' if token in request.stop_tokens else finish
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
