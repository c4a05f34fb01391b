"""Generation with a toy model, whose every score NumPy can tell."""

from functools import partial

import mxnet as mx
import numpy as np
import pytest
from json_files import cases
from mxnet.gluon import HybridBlock
from refusals import refuses

from model_zoo.errors import ZooError
from model_zoo.generation import GenerationMixin, generate, stream

DECAY = 0.75


class ToyState:
    """One vector a row: the decayed sum of the embeddings seen so far."""

    def __init__(self, hidden, room):
        self.hidden = hidden
        self.room = room

    def select(self, rows):
        return ToyState(self.hidden.take(mx.nd.array(rows)), self.room)


class ToyLM(GenerationMixin, HybridBlock):
    """Scores from a decayed sum of all tokens' embeddings: any token or order mistaken shows.

    `calls` lists what was run: ('start', words' shape, capacity) and ('step', rows).
    """

    def __init__(self, vocabulary=11, units=6, context_length=None, seed=0):
        super().__init__()
        self.context_length = context_length
        self.calls = []
        self._vocabulary = vocabulary
        with self.name_scope():
            self.embed = self.params.get('embed', shape=(vocabulary, units))
            self.output = self.params.get('output', shape=(vocabulary, units))
        self.initialize()
        generator = np.random.default_rng(seed)
        for parameter in (self.embed, self.output):
            parameter.set_data(mx.nd.array(generator.normal(size=parameter.shape)))

    def hybrid_forward(self, F, hidden, tokens, embed, output):
        hidden = DECAY * hidden + F.take(embed, tokens)
        scores = F.FullyConnected(hidden, output, no_bias=True, num_hidden=self._vocabulary)
        return scores, hidden

    def start(self, words, valid_length, capacity):
        assert words.dtype == valid_length.dtype == np.int32
        assert words.shape[1] <= capacity
        assert capacity <= (self.context_length or capacity)
        self.calls.append(('start', words.shape, capacity))
        lengths = valid_length.asnumpy()
        hidden = mx.nd.zeros((words.shape[0], self.embed.shape[1]))
        ends = mx.nd.zeros_like(hidden)
        scores = mx.nd.zeros((words.shape[0], self.embed.shape[0]))
        for place in range(words.shape[1]):
            new_scores, hidden = self(hidden, words[:, place])
            at_end = mx.nd.array(lengths == place + 1).reshape((-1, 1))
            scores = mx.nd.where(mx.nd.broadcast_like(at_end, scores), new_scores, scores)
            ends = mx.nd.where(mx.nd.broadcast_like(at_end, ends), hidden, ends)
        return scores, ToyState(ends, capacity - words.shape[1])

    def step(self, tokens, state):
        assert tokens.dtype == np.int32
        assert state.room > 0, 'the cache is full'
        self.calls.append(('step', tokens.shape[0]))
        scores, hidden = self(state.hidden, tokens)
        return scores, ToyState(hidden, state.room - 1)

    def log_probs(self, tokens):
        """Return log-probabilities of the token after `tokens`."""
        scores = self.scores(tokens)
        return scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())

    def scores(self, tokens):
        """Return the scores of the token after `tokens`, by NumPy in double precision."""
        embed, output = (each.data().asnumpy().astype('f8') for each in (self.embed, self.output))
        weights = DECAY ** np.arange(len(tokens))[::-1]
        return output @ (weights @ embed[list(tokens)])


PROMPTS = [[3, 1, 4], [5], [9, 2, 6, 5, 3, 5]]


@pytest.fixture
def model():
    return ToyLM()


def tokens_of(result):
    return [[each.tokens for each in of_prompt] for of_prompt in result]


def window(text, context):
    """What a model with this context sees of a text, as documented for overflow='slide'."""
    begin = 0
    for length in range(1, len(text) + 1):
        if length - begin > context:
            begin = length - max(1, context // 2)
    return text[begin:]


def greedy_by_hand(model, prompt, count, see=lambda text: text):
    text = list(prompt)
    for _ in range(count):
        text.append(int(model.log_probs(see(text)).argmax()))
    return text[len(prompt) :]


# -- stop tokens -----------------------------------------------------------------------------------


def test_stop_tokens(model):
    free = generate(model, PROMPTS, 12)
    stop = {free[0][0].tokens[2], free[1][0].tokens[5]}
    for (continuation,), (cut,) in zip(free, generate(model, PROMPTS, 12, stop_tokens=stop)):
        ends = [place for place, token in enumerate(continuation.tokens) if token in stop]
        length = ends[0] + 1 if ends else 12
        assert cut.tokens == continuation.tokens[:length]
        assert cut.finish == ('stop' if ends else 'length')
    one, listed = (generate(model, PROMPTS, 12, stop_tokens=s) for s in (min(stop), [min(stop)]))
    assert one == listed


# -- scores that are changed -----------------------------------------------------------------------


def steered_by_hand(model, prompt, count, options):
    """The likeliest tokens of those that may follow."""
    given = {'stop_tokens': [], 'min_length': 0, 'no_repeat_ngram_size': 0, 'bad_words_ids': []}
    given = {**given, 'sequence_bias': [], 'repetition_penalty': 1.0, **options}
    words = [(word, -np.inf) for word in given['bad_words_ids']] + given['sequence_bias']
    text, size, stops = list(prompt), given['no_repeat_ngram_size'], given['stop_tokens']
    for step in range(count):
        scores, repeats = model.scores(text), []
        if size:
            repeats = [(text[n : n + size], -np.inf) for n in range(len(text) - size + 1)]
        for word, bias in [*words, *repeats]:
            if len(word) == 1 or text[1 - len(word) :] == list(word[:-1]):
                scores[word[-1]] += bias
        for token in {*text}:  # those of a negative score lose, too
            scores[token] *= given['repetition_penalty'] ** -np.sign(scores[token])
        is_early = len(text) < given['min_length']
        if step < given.get('min_new_tokens', 0) or ('min_new_tokens' not in given and is_early):
            scores[stops] = -np.inf
        scores[given.get('suppress_tokens', [])] = -np.inf
        scores[given.get('begin_suppress_tokens', []) if step == 0 else []] = -np.inf
        last = step == count - 1 and given.get('forced_eos_token_id')
        text.append(last or int(scores.argmax()))
        if text[-1] in stops:
            break
    return text[len(prompt) :]


STOPS = [0, 2, 4, 6, 8, 10]
STEERED = cases('generation')['STEERED']


@pytest.mark.parametrize('options', STEERED)
def test_tokens_that_are_forbidden_or_favoured(model, options):
    prompts = [[3, 1, 4], [5], [9, 2, 6, 5, 3, 5]]
    if options.get('no_repeat_ngram_size') == 1:
        prompts, model = [[3, 1], [5]], ToyLM(vocabulary=20)
    found = tokens_of(generate(model, prompts, 9, **options))
    assert found == [[steered_by_hand(model, prompt, 9, options)] for prompt in prompts]
    assert found != tokens_of(
        generate(model, prompts, 9, stop_tokens=options.get('stop_tokens', []))
    )


# -- sampling --------------------------------------------------------------------------------------


DRAWS = [
    *({'temperature': 1.0}, {'temperature': 2.5}, {'top_k': 4}, {'top_p': 0.8}),
    {'temperature': 0.7, 'top_k': 6, 'top_p': 0.9},
    {'temperature': 1.5, 'min_p': 0.2},
]


@pytest.mark.parametrize('options', DRAWS)
def test_draws_have_the_right_frequencies(model, options):
    draws = 4000
    result = generate(model, [[3, 1]], 1, num_return_sequences=draws, seed=1, **options)[0]
    counts = np.bincount([each.tokens[0] for each in result], minlength=11)
    scores = model.log_probs([3, 1]) / options.get('temperature', 1.0)
    order = np.argsort(-scores)[: options.get('top_k')]
    odds = np.exp(scores[order])
    odds /= odds.sum()
    before = np.cumsum(odds) - odds
    kept = order[(before < options.get('top_p', 1.0)) & (odds >= options.get('min_p', 0) * odds[0])]
    expected = np.zeros(11)
    expected[kept] = np.exp(scores[kept]) / np.exp(scores[kept]).sum()
    assert set(np.flatnonzero(counts)) <= set(kept)
    # five standard deviations
    assert (abs(counts / draws - expected) < 5 * np.sqrt(expected / draws) + 1e-3).all()


def test_a_texts_draws_depend_on_the_seed_and_its_number_alone(model):
    options = {'temperature': 1.0, 'num_return_sequences': 2}
    same = [PROMPTS[1], *PROMPTS, PROMPTS[1]]  # a prompt that is there twice is drawn twice
    wanted = tokens_of(generate(model, same, 15, seed=3, **options))
    assert wanted[2] != wanted[4] and wanted[2][0] != wanted[2][1]
    order = [4, 1, 2]
    streams, counts = [(3, number, 0) for number in order], [15, 4, 9]
    found = generate(model, [same[n] for n in order], counts, streams=streams, **options)
    for number, count, texts in zip(order, counts, tokens_of(found)):
        assert texts == [tokens[:count] for tokens in wanted[number]]
    streams, options['num_return_sequences'] = [(3, 4, 1)], 1
    assert tokens_of(generate(model, same[:1], 15, streams=streams, **options)) == [wanted[4][1:]]


def test_top_k_of_one_and_tiny_top_p_are_greedy(model):
    greedy = tokens_of(generate(model, PROMPTS, 9))
    assert tokens_of(generate(model, PROMPTS, 9, top_k=1)) == greedy
    assert tokens_of(generate(model, PROMPTS, 9, top_p=1e-9)) == greedy
    assert tokens_of(generate(model, PROMPTS, 9, temperature=1e-4)) == greedy


# -- beam search -----------------------------------------------------------------------------------


def all_texts(model, prompt, length, stop_tokens):
    """Every continuation, as (log-probability, tokens)."""
    result = []

    def extend(tokens, log_prob):
        if len(tokens) == length or (tokens and tokens[-1] in stop_tokens):
            result.append((log_prob, tokens))
            return
        for token, more in enumerate(model.log_probs(prompt + tokens)):
            extend([*tokens, token], log_prob + more)

    extend([], 0.0)
    return sorted(result, reverse=True)


@pytest.mark.parametrize('stop_tokens', [(), (2,), (0, 3)])
def test_a_wide_beam_finds_the_likeliest_texts(stop_tokens):
    model = ToyLM(vocabulary=5)
    prompts = [[1, 4, 1], [3]]
    options = {'num_beams': 25, 'num_return_sequences': 6, 'length_penalty': 0.0}
    result = generate(model, prompts, 3, stop_tokens=stop_tokens, **options)
    for prompt, found in zip(prompts, result):
        expected = all_texts(model, prompt, 3, stop_tokens)[:6]
        assert [each.tokens for each in found] == [tokens for _, tokens in expected]
        for each, (log_prob, tokens) in zip(found, expected):
            assert each.log_prob == pytest.approx(log_prob, abs=1e-5)
            assert each.finish == ('stop' if tokens[-1] in stop_tokens else 'length')


def test_the_length_penalty_chooses_among_lengths():
    model = ToyLM(vocabulary=5)
    everything = all_texts(model, [1, 4, 1], 4, {2})
    lengths = []
    for penalty in (-3.0, 1.0, 4.0):
        options = {'num_beams': 125, 'length_penalty': penalty, 'stop_tokens': 2}
        (found,) = generate(model, [[1, 4, 1]], 4, **options)[0]
        best = max(everything, key=lambda each: each[0] / len(each[1]) ** penalty)
        assert found.tokens == best[1]
        lengths.append(len(found.tokens))
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


# -- streams ---------------------------------------------------------------------------------------


@pytest.mark.parametrize('options', [{}, {'top_p': 0.9, 'seed': 2, 'num_return_sequences': 3}])
def test_a_stream_has_the_tokens_of_generate(model, options):
    options = {'stop_tokens': [0, 7], **options}
    expected = generate(model, PROMPTS, 12, **options)
    collected = {}
    order = []
    for new in stream(model, PROMPTS, 12, **options):
        tokens = collected.setdefault((new.prompt, new.sequence), [])
        tokens.append(new.token)
        order.append((len(tokens), new.prompt, new.sequence))
        continuation = expected[new.prompt][new.sequence]
        is_last = len(tokens) == len(continuation.tokens)
        assert new.finish == (continuation.finish if is_last else None)
    assert order == sorted(order)
    for prompt, of_prompt in enumerate(expected):
        for sequence, continuation in enumerate(of_prompt):
            assert collected[prompt, sequence] == continuation.tokens


def test_a_stream_runs_a_step_when_it_is_asked(model):
    tokens = stream(model, PROMPTS[:1], 1000)
    assert len(model.calls) == 1
    assert [next(tokens).token for _ in range(3)] == greedy_by_hand(model, PROMPTS[0], 3)
    assert len(model.calls) == 3


# -- the context -----------------------------------------------------------------------------------


@pytest.mark.parametrize('context', [1, 2, 7, 10])
def test_a_sliding_window(context):
    model = ToyLM(context_length=context)
    result = generate(model, PROMPTS, 40, overflow='slide')
    for prompt, (continuation,) in zip(PROMPTS, result):
        see = partial(window, context=context)
        assert continuation.tokens == greedy_by_hand(model, prompt, 40, see)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'prompts', [[], [[1], []], [1, 2], 'Hello', [[1, 'a']], [[1, 1.5]], [[1, -1]], None]
)
def test_bad_prompts(model, prompts):
    with refuses(says='prompts'):
        generate(model, prompts)


BAD_OPTIONS = [
    *({'max_new_tokens': value} for value in (0, 2.0, [1, 2])),
    *({'streams': [(1, 0, 0)] * 2}, {'early_stopping': 'always'}, {'forced_eos_token_id': [11]}),
    *({'exponential_decay_length_penalty': (1, 0)}, {'sequence_bias': [([11], 1.0)]}),
    *({'temperature': value} for value in (0, float('nan'), '1')),
    *({'bad_words_ids': value} for value in ([[1], []], [[11]])),
    *({'stop_tokens': value} for value in ([1, 11], 'a')),
    *({'top_p': 0}, {'top_p': 1.1}, {'top_k': -1}, {'seed': -1}, {'overflow': 'wrap'}),
    *({'repetition_penalty': 0}, {'no_repeat_ngram_size': -1}, {'length_penalty': None}),
    *({'num_beams': 0}, {'num_return_sequences': 2}, {'num_beams': 2, 'top_k': 3}),
    *({'num_beams': 2, 'temperature': 1.0}, {'num_beams': 2, 'num_return_sequences': 3}),
]


@pytest.mark.parametrize('options', BAD_OPTIONS)
def test_bad_options(model, options):
    with pytest.raises(ZooError):
        generate(model, [[1, 2]], **options)


def test_beyond_the_context():
    model = ToyLM(context_length=5)
    for function in (generate, stream):  # a stream fails as it is called, not as it is asked
        for given in ((PROMPTS, 1), (PROMPTS[:2], 3)):
            with refuses(says='slide'):
                function(model, *given)
    assert not model.calls, 'nothing is run'
    assert len(generate(model, PROMPTS[:2], 2)[0][0].tokens) == 2
