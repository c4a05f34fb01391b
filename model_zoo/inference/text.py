"""Texts that a language model continues."""

import itertools
import os

from ..batches.sampling import longest_first
from ..errors import InputError, reporting
from ..generation import StreamedText, generate, stream, text_of
from ..generation.request import Temperature, TextOptions
from ..generation.scores import SomeTokens
from ..generation.search import streams_of
from ..pretrained.files import GENERATION_CONFIG
from ..util.fields import Count, Flag, Size
from .pipeline_base import BATCH_TOKENS, ITEMS_TOGETHER, Pipeline, PipelineOptions

__all__ = ['MISSING', 'MISSING_DRAWS', 'TextGeneration']

MAX_NEW_TOKENS = 50
BATCH_PROMPTS = 8  # run together
#: the one that is given replaces the other's default
_LENGTHS, _LEASTS = {'max_new_tokens', 'max_length'}, {'min_new_tokens', 'min_length'}
_WAYS = {'do_sample', 'num_beams'}
_SAMPLING = {'temperature', 'top_k', 'top_p', 'min_p'}
_BEAMS = {'num_beams', 'length_penalty', 'early_stopping', 'renormalize_logits'}
#: fields of transformers' GenerationConfig that change a text and aren't available, always or if
#: tokens are drawn; 0 has no effect, nor 1 of the last
MISSING = {
    *('penalty_alpha', 'diversity_penalty', 'encoder_no_repeat_ngram_size', 'token_healing'),
    *('constraints', 'force_words_ids', 'dola_layers', 'watermarking_config', 'max_time'),
    *('encoder_repetition_penalty', 'guidance_scale', 'num_beam_groups', 'stop_strings'),
}
#: those that only draws would need
MISSING_DRAWS = {'epsilon_cutoff', 'eta_cutoff', 'top_h', 'typical_p'}
_IDLE_AT_1 = {'encoder_repetition_penalty', 'guidance_scale', 'num_beam_groups', 'typical_p'}


class TextGeneration(Pipeline):
    """Continuations of texts: for each text a list of dicts with ``generated_text``.

    By default each step takes the most likely token (greedy search). ``do_sample=True`` samples,
    with `temperature`, `top_k` (0 or None: all tokens), `top_p`, `min_p` and `seed`; `num_beams`
    above 1 uses beam search, with `length_penalty` and `early_stopping`. A text gets at most
    `max_new_tokens` tokens, by default 50, or `max_length` together with the prompt. The tokens
    `eos_token_id` end it, after at least `min_new_tokens`, or `min_length` with the prompt; with
    ``stop_at_end=False`` none does. `model_zoo.generation.generate` documents the other options.
    ``return_full_text=False`` leaves out the prompt. With a `seed` a text depends on the seed and
    on its number within the call, not on the batch, the other texts or the engine.

    The defaults come from the model's ``generation_config.json``; without the file, from its
    ``config.json``. The tokens that end a text are the model's and the tokenizer's, and an empty
    text begins with their ``bos`` or ``eos``. A special token in a text is one token, as in
    training.

    `stream` yields the text of one prompt as it is generated.
    """

    task = 'text-generation'
    block_tasks = ('language_model',)

    class Options(TextOptions, PipelineOptions):
        max_new_tokens: Count | None = None
        max_length: Count | None = None
        do_sample: Flag = False
        temperature: Temperature = 1.0
        top_k: Size | None = 50
        eos_token_id: SomeTokens | None = None
        return_full_text: Flag = True
        stop_at_end: Flag = True

    def __init__(self, opened, batch_tokens=BATCH_TOKENS, engine=None, **defaults):
        super().__init__(opened, None, batch_tokens, engine)
        own, name = self.block.base.generation_config, GENERATION_CONFIG
        if not own:  # as in transformers; for its `eos_token_id` see `_options`
            own, name = {**self.block.config.extras, 'eos_token_id': None}, 'config.json'
        self._own, self._where = own, os.path.join(os.path.dirname(self.files.config or ''), name)
        self._refuse(MISSING)
        usual = {name: own[name] for name in self.Options.model_fields if own.get(name) is not None}
        with reporting(self._where, errors=InputError):
            usual = self._given(usual, {})
        self._defaults = self._given(defaults, usual)

    def _refuse(self, missing):
        for name in sorted(missing & {*self._own}):
            value = self._own[name]
            if value and (value != 1 or name not in _IDLE_AT_1):
                problem = f'is {value!r:.80}, and not available: remove it from {self._where!r}'
                raise InputError(problem, field=name)

    def checked(self, options, usual=None):
        """As of other pipelines. A protocol has `usual` options, behind the model's defaults.

        There options of sampling ask for it, unless the temperature is 0.
        """
        defaults = self._defaults
        if usual is not None:
            defaults = self._given(defaults, usual)
            if not _SAMPLING.isdisjoint(options):
                options = {'do_sample': options.get('temperature') != 0, **options}
        given = self._given(options, defaults)
        return self._options(self.Options.model_construct(**given))

    def _given(self, options, defaults):
        given = super()._given(options, {})
        replaced = {*given}
        for names in (_LENGTHS, _LEASTS):
            replaced |= set() if names.isdisjoint(given) else names
        if given.get('do_sample') or given.get('num_beams', 1) > 1:
            replaced |= _WAYS
        return {**{n: value for n, value in defaults.items() if n not in replaced}, **given}

    def _options(self, given):
        if given.do_sample and given.num_beams > 1:
            raise InputError('do_sample and num_beams exclude each other: choose one')
        if given.do_sample:
            self._refuse(MISSING_DRAWS)
        if given.num_return_sequences > given.num_beams and not given.do_sample:
            problem = f'is {given.num_return_sequences}: texts of a prompt differ with `do_sample`'
            raise InputError(f'{problem}, or as many `num_beams`', field='num_return_sequences')
        unused = {'seed', *(_BEAMS if given.do_sample else _SAMPLING)}
        options = given.model_dump(include={*TextOptions.model_fields} - unused)
        ends = given.eos_token_id
        if ends is None:
            ends = sorted({*self._own_ids('eos_token_id'), self.tokenizer.eos_token_id} - {None})
        options['stop_tokens'] = ends if given.stop_at_end else []
        # the model forgets the beginning of a text that is longer than its context
        options['overflow'] = 'slide'
        checked = {'full': given.return_full_text, 'generate': options, 'seed': given.seed}
        return {**checked, 'most': (given.max_new_tokens, given.max_length)}

    def new_tokens(self, ids, options):
        """Return the maximum number of new tokens of a prompt; `options` are `checked` ones."""
        new, most = options['most']
        if new or not most:
            return new or MAX_NEW_TOKENS
        if len(ids) >= most:
            problem = f'{most}: a prompt has {len(ids)} tokens; or give max_new_tokens'
            raise InputError(problem, field='max_length')
        return most - len(ids)

    def results(self, items, options):
        for number in itertools.count(0, ITEMS_TOGETHER):
            if not (group := list(itertools.islice(items, ITEMS_TOGETHER))):
                return
            prompts = list(map(self.encode_prompt, group))
            for item, prompt, texts in zip(group, prompts, self.write(prompts, options, number)):
                start, of = item if options['full'] else '', (self.tokenizer, prompt)
                texts = [text_of(*of, new.tokens, new.finish, True) for new in texts]
                yield [{'generated_text': start + text} for text in texts]

    def write(self, prompts, options, number=0, sample=0):
        """The `Continuation`s of prompts, a list for each; `options` are `checked` ones.

        `number` is the first prompt's in the caller's list, `sample` its first continuation's.
        """
        streams = streams_of(options['seed'], range(number, number + len(prompts)), sample)
        counts = [self.new_tokens(ids, options) for ids in prompts]
        written = [None] * len(prompts)
        for chosen in longest_first(list(map(len, prompts)), BATCH_PROMPTS):
            ids, most, drawn = ([rows[n] for n in chosen] for rows in (prompts, counts, streams))
            more = {**options['generate'], 'streams': drawn}
            with self.engine.lock:
                texts = generate(self.engine.language_model, ids, most, **more)
            for place, found in zip(chosen, texts):
                written[place] = found
        return written

    def steps(self, ids, options, number=0, sample=0):
        """Yield the `NewToken`s of one continuation of a prompt; the arguments are `write`'s."""
        more = {**options['generate'], 'num_return_sequences': 1}
        more['streams'] = streams_of(options['seed'], [number], sample)
        count = self.new_tokens(ids, options)
        with self.engine.lock:  # the prompt runs at once
            tokens = stream(self.engine.language_model, [ids], count, **more)
        while True:
            with self.engine.lock:  # other threads can take their steps in between
                new = next(tokens, None)
            if new is None:
                return
            yield new

    def stream(self, text, **options):
        """The continuation of one text, piece by piece.

        Joined, the pieces are the ``generated_text`` without the prompt. The options are the
        class's, with `num_return_sequences` of 1. A beam search has one piece.
        """
        checked, ids = self.checked(options), self.encode_prompt(text)
        if checked['generate']['num_return_sequences'] != 1:
            raise InputError('a stream has one sequence: num_return_sequences is 1')
        streamed = StreamedText(self.tokenizer, ids, skip_special_tokens=True)
        return filter(None, map(streamed.add, self.steps(ids, checked)))

    def encode_prompt(self, text):
        """The ids of a prompt, a list.

        An empty one is the model's ``bos`` or ``eos``; InputError if it has neither.
        """
        begin = [*self._own_ids('bos_token_id'), self.tokenizer.bos_token_id]
        begin = [i for i in (*begin, self.tokenizer.eos_token_id) if i is not None]
        if ids := list(self.tokenizer.encode_text(self._text(text))) or begin[:1]:
            return ids
        problem = 'the text is empty, and the model has no token to begin with'
        raise InputError(f'{self.task}: {problem}; it needs at least one word')

    def _own_ids(self, name):
        """The model's own ids of a special token, a list."""
        value = {**self.block.config.extras, **self.block.base.generation_config}.get(name)
        ids = value if isinstance(value, list) else [value]
        # a configuration may have another model's
        return [i for i in ids if i is not None and i < self.block.config.vocab_size]
