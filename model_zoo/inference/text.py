"""Texts that a language model continues."""

import itertools

from ..batches.sampling import longest_first
from ..errors import InputError
from ..generation import StreamedText, generate, stream, text_ends, text_of
from .pipeline import COUNT, FLAG, POOL_ITEMS, Pipeline, number

__all__ = ['TextGeneration']

MAX_NEW_TOKENS = 50
BATCH_PROMPTS = 8  # run together


class TextGeneration(Pipeline):
    """Continuations of texts: for each text a list of dicts with ``generated_text``.

    By default each step takes the most likely token (greedy search). ``do_sample=True`` samples,
    with `temperature`, `top_k`, `top_p` and `seed`; `num_beams` above 1 uses beam search.
    `max_new_tokens` is 50 by default. ``return_full_text=False`` leaves out the prompt, and
    `stop_at_end` says whether an end-of-text token ends the continuation.

    `stream` yields the text of one prompt as it is generated.
    """

    task = 'text-generation'
    block_tasks = ('language_model',)

    def _options(
        self,
        max_new_tokens: COUNT = MAX_NEW_TOKENS,
        do_sample: FLAG = False,
        temperature: number(1e6) = 1.0,
        top_k: COUNT = 50,
        top_p: number(1) = None,
        num_beams: COUNT = 1,
        num_return_sequences: COUNT = 1,
        return_full_text: FLAG = True,
        stop_at_end: FLAG = True,
        seed: dict(COUNT, minimum=0, maximum=2**32 - 1) = None,
    ):
        options = {'num_return_sequences': num_return_sequences}
        if do_sample:
            options.update(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        elif num_beams > 1:
            options['num_beams'] = num_beams
        if do_sample and num_beams > 1:
            raise InputError('do_sample and num_beams exclude each other: choose one')
        ends = self.end_tokens if stop_at_end else []
        # the model forgets the beginning of a text that is longer than its context
        options.update(max_new_tokens=max_new_tokens, stop_tokens=ends, overflow='slide')
        return {'full': return_full_text, 'generate': options}

    def _results(self, items, options):
        for pool in iter(lambda: list(itertools.islice(items, POOL_ITEMS)), []):
            prompts = [self.encode_prompt(item) for item in pool]
            results = [None] * len(pool)
            for indices in longest_first(list(map(len, prompts)), BATCH_PROMPTS):
                with self.engine.lock:
                    continuations = generate(
                        self.engine.language_model,
                        [prompts[index] for index in indices],
                        **options['generate'],
                    )
                for index, group in zip(indices, continuations):
                    start = pool[index] if options['full'] else ''
                    results[index] = [
                        {'generated_text': start + self._new_text(result)} for result in group
                    ]
            yield from results

    def stream(self, text, **options):
        """The continuation of one text, piece by piece.

        Joined, the pieces are the ``generated_text`` without the prompt. The options are the
        class's, with `num_beams` and `num_return_sequences` of 1.
        """
        options = self._checked(options)['generate']
        if options.get('num_beams', 1) > 1 or options['num_return_sequences'] != 1:
            raise InputError('a stream has one sequence: num_beams and num_return_sequences are 1')
        ids = self.encode_prompt(text)
        streamed = StreamedText(self.tokenizer)
        for new in self._locked(stream(self.engine.language_model, [ids], **options)):
            if added := streamed.add(new):
                yield added

    def _locked(self, steps):
        """Take the steps one by one, so that other threads can take theirs in between."""
        while True:
            with self.engine.lock:
                step = next(steps, None)
            if step is None:
                return
            yield step

    @property
    def end_tokens(self):
        """Ids of the tokens that end a text, a list."""
        return text_ends(self.tokenizer)

    def encode_prompt(self, text):
        """The ids of a prompt, a list; an empty one is an InputError."""
        ids = self.tokenizer.encode(self._text(text))
        if not ids:
            raise InputError(f'{self.task}: the text is empty; give at least one word')
        return ids

    def _new_text(self, continuation):
        return text_of(self.tokenizer, continuation.tokens, continuation.finish)
