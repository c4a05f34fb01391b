"""Texts that a language model continues."""

from itertools import islice

from ..batches.sampling import longest_first
from ..errors import InputError
from ..generation import StreamedText, generate, stream, text_of
from ..generation.request import Temperature, TextOptions, Tokens
from ..util.fields import Count, Flag, Size
from .pipeline_base import BATCH_TOKENS, ITEMS_TOGETHER, Pipeline, PipelineOptions

__all__ = ['TextGeneration', 'end_tokens']

MAX_NEW_TOKENS = 50
BATCH_PROMPTS = 8  # run together
_LENGTHS = ('max_new_tokens', 'max_length')
_SAMPLING = {'temperature', 'top_k', 'top_p', 'seed'}
_BEAMS = {'num_beams', 'length_penalty'}


class TextGeneration(Pipeline):
    """Continuations of texts: for each text a list of dicts with ``generated_text``.

    By default each step takes the most likely token (greedy search). ``do_sample=True`` samples,
    with `temperature`, `top_k` (0 or None: all tokens), `top_p` and `seed`; `num_beams` above 1
    uses beam search, with `length_penalty`. A text gets at most `max_new_tokens` tokens, by
    default 50, or `max_length` together with the prompt. The tokens `eos_token_id` end it, after at
    least `min_new_tokens`; with ``stop_at_end=False`` none does. For `repetition_penalty`,
    `no_repeat_ngram_size` and `bad_words_ids` see `model_zoo.generation.generate`.
    ``return_full_text=False`` leaves out the prompt.

    The defaults come from the model's ``generation_config.json`` if it has one. The tokens that end
    a text are the model's and the tokenizer's, and an empty text begins with their ``bos``.

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
        eos_token_id: Tokens | Size | None = None
        return_full_text: Flag = True
        stop_at_end: Flag = True

    def __init__(self, opened, batch_tokens=BATCH_TOKENS, engine=None, **defaults):
        super().__init__(opened, None, batch_tokens, engine)
        own = self.block.base.generation_config
        usual = {name: own[name] for name in self.Options.model_fields if own.get(name) is not None}
        if usual.get('max_length') == 20:  # transformers' default, which its pipelines don't use
            del usual['max_length']
        self._defaults = self._given(defaults, self._given(usual, {}))

    def _given(self, options, defaults):
        if not {*_LENGTHS}.isdisjoint(options):  # one replaces the other's default
            defaults = {name: defaults[name] for name in defaults if name not in _LENGTHS}
        return super()._given(options, defaults)

    def _options(self, given):
        if given.do_sample and given.num_beams > 1:
            raise InputError('do_sample and num_beams exclude each other: choose one')
        unused = _BEAMS if given.do_sample else _SAMPLING
        options = given.model_dump(include={*TextOptions.model_fields} - unused)
        ends = given.eos_token_id
        if ends is None:
            ends = end_tokens(self.block, self.tokenizer)
        options['stop_tokens'] = ends if given.stop_at_end else []
        # the model forgets the beginning of a text that is longer than its context
        options['overflow'] = 'slide'
        return {
            'full': given.return_full_text,
            'generate': options,
            'new': given.max_new_tokens or (None if given.max_length else MAX_NEW_TOKENS),
            'all': given.max_length,
        }

    def new_tokens(self, ids, options):
        """Return the maximum number of new tokens of a prompt; `options` are `checked` ones."""
        if options['new'] is not None:
            return options['new']
        if len(ids) >= options['all']:
            problem = f'{options["all"]}: a prompt has {len(ids)} tokens; or give max_new_tokens'
            raise InputError(problem, field='max_length')
        return options['all'] - len(ids)

    def results(self, items, options):
        while group := list(islice(items, ITEMS_TOGETHER)):
            yield from self._answers(group, options)

    def _answers(self, items, options):
        prompts = [self.encode_prompt(item) for item in items]
        counts, results = [self.new_tokens(ids, options) for ids in prompts], [None] * len(items)
        for count in set(counts):
            places = [place for place, other in enumerate(counts) if other == count]
            for indices in longest_first([len(prompts[place]) for place in places], BATCH_PROMPTS):
                chosen = [places[index] for index in indices]
                ids = [prompts[place] for place in chosen]
                with self.engine.lock:
                    written = generate(
                        self.engine.language_model, ids, count, **options['generate']
                    )
                for place, prompt, texts in zip(chosen, ids, written):
                    start, results[place] = items[place] if options['full'] else '', []
                    for new in texts:
                        text = text_of(self.tokenizer, prompt, new.tokens, new.finish, True)
                        results[place].append({'generated_text': start + text})
        return results

    def stream(self, text, **options):
        """The continuation of one text, piece by piece.

        Joined, the pieces are the ``generated_text`` without the prompt. The options are the
        class's, with `num_beams` and `num_return_sequences` of 1.
        """
        checked, ids = self.checked(options), self.encode_prompt(text)
        if checked['generate']['num_return_sequences'] != 1:
            raise InputError('a stream has one sequence: num_return_sequences is 1')
        streamed = StreamedText(self.tokenizer, ids, skip_special_tokens=True)
        count = self.new_tokens(ids, checked)
        with self.engine.lock:  # the prompt runs at once
            steps = stream(self.engine.language_model, [ids], count, **checked['generate'])
        while True:
            with self.engine.lock:  # other threads can take their steps in between
                new = next(steps, None)
            if new is None:
                return
            if added := streamed.add(new):
                yield added

    def encode_prompt(self, text):
        """The ids of a prompt, a list; InputError for an empty one if the model has no ``bos``."""
        begin = _own_ids(self.block, 'bos_token_id') or [self.tokenizer.bos_token_id]
        ids = list(self.tokenizer.encode(self._text(text))) or begin[:1]
        if ids == [None]:
            raise InputError(f'{self.task}: the text is empty; give at least one word')
        return ids


def end_tokens(block, tokenizer):
    """Ids of the tokens that end a text, a list: the model's and the tokenizer's."""
    return sorted({*_own_ids(block, 'eos_token_id'), tokenizer.eos_token_id} - {None})


def _own_ids(block, name):
    """A model's own ids of a special token, a list."""
    value = {**block.config.extras, **block.base.generation_config}.get(name)
    ids = value if isinstance(value, list) else [value]
    # a configuration may have another model's
    return [i for i in ids if i is not None and i < block.config.vocab_size]
