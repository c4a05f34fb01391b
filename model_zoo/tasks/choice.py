"""Multiple choice: SWAG and similar tasks, and the Story Cloze Test.

Zellers et al., "SWAG: A Large-Scale Adversarial Dataset for Grounded Commonsense Inference", 2018.
Mostafazadeh et al., "A Corpus and Cloze Evaluation for Deeper Understanding of Commonsense
Stories", 2016. The CSV files are read as their authors publish them.
"""

import itertools
import os
from typing import NamedTuple

import mxnet as mx
import numpy as np

from ..batches import Sample
from ..errors import InputError
from ..records import has_json, has_typed_values, is_path, read_records
from ..training.objective import Objective, mean_over_examples
from .rows import check_room, encode_rows, hold_out, warn_if_cut
from .scores import cross_entropies, error_analysis
from .settings import ChoiceSettings, StorySettings
from .tables import write_table
from .task import Task

__all__ = ['ChoiceTask', 'StoryTask', 'SwagExample', 'read_story_cloze', 'read_swag']

_ID, _CONTEXT, _START, _LABEL = 'fold-ind', 'sent1', 'sent2', 'label'
_TEXT, _CHOICES = 'context', 'choices'


class SwagExample(NamedTuple):
    """A text and its possible endings."""

    guid: str
    context: str
    start: str
    endings: tuple[str, ...]
    label: int | None

    @property
    def choices(self):
        """The endings with their start."""
        return [f'{self.start} {ending}'.strip() for ending in self.endings]


def read_swag(source, segment='data', encoding=None):
    """Read a file of SWAG, or rows in memory.

    Parameters
    ----------
    source : str, os.PathLike or iterable
        CSV whose first line names the columns (``sent1``, ``sent2``, ``ending0`` and so on, perhaps
        ``label`` and ``fold-ind``; others don't matter), or JSON or Parquet with these fields, or
        with 'context' (or 'text'), 'choices' and 'label'. Rows in memory have these names, or are
        tuples in this order.
    """
    parts, format = {3: (_TEXT, _CHOICES, _LABEL), 2: (_TEXT, _CHOICES)}, None
    if is_path(source) and not has_typed_values(source):
        format = 'json' if has_json(source, encoding) else 'csv'
    records = read_records(source, parts, segment, format=format, encoding=encoding)

    def rows():
        for number, (where, fields) in enumerate(records):
            guid, label = str(fields.get(_ID, number)), fields.get(_LABEL)
            if _CHOICES in fields:
                where = where._replace(column=_CHOICES)
                text = fields.get(_TEXT, fields.get('text'))  # as the pipeline names it
                yield where, guid, (text, ''), fields[_CHOICES], label
                continue
            _check_columns(fields, (_CONTEXT, _START, 'ending0', 'ending1'), where)
            names = (f'ending{number}' for number in itertools.count())
            endings = [fields[name] for name in itertools.takewhile(fields.__contains__, names)]
            yield where, guid, (fields[_CONTEXT], fields[_START]), endings, label

    return _examples(rows())


def _check_columns(fields, names, where):
    missing = ', '.join(name for name in names if name not in fields)
    if missing:
        raise InputError(f'the columns {missing} are missing', where=where)


def _examples(rows, first=0):
    """Make examples, which must be alike; `first` is the label of the first ending.

    A row has its place, id, the context and the endings' start, the endings, and the label.
    """
    found = []
    for where, guid, texts, endings, label in rows:
        endings = list(endings) if isinstance(endings, (list, tuple, np.ndarray)) else []
        texts = [*texts, *endings]
        is_whole = len(endings) > 1 and all(isinstance(text, str) for text in texts)
        context, start, *endings = map(str.strip, texts) if is_whole else ('', '')
        numbers = {str(number + first): number for number in range(len(endings))}
        number, problem = numbers.get(str(label).strip()), None
        found.append(SwagExample(guid, context, start, tuple(endings), number))
        kinds = {(len(each.endings), each.label is None) for each in (found[0], found[-1])}
        if not context or not all(start or ending for ending in endings):
            problem = f'a text and two or more endings are expected: {texts!r:.80}'
        elif label not in (None, '') and number is None:
            problem = f'the label {label!r:.80} must be one of {", ".join(numbers)}'
        elif len(kinds) > 1:
            problem = 'all examples must have equally many endings, and all a label or none'
        if problem:
            raise InputError(problem, where=where)
    return found


def encode_swag(examples, tokenizer, max_length=128):
    """Make samples ``[CLS] context [SEP] start ending [SEP]``, one row for each ending.

    The longer of the two texts loses tokens at its end until the sample fits `max_length`. The log
    counts the truncated examples.
    """
    check_room(max_length, 3, 2)
    pairs = [[(row.context, choice) for choice in row.choices] for row in examples]
    return encode_rows(tokenizer, pairs, [row.label for row in examples], max_length)


class MultipleChoice(Task):
    """Base of tasks whose rows have a `context`, `endings` and a `label`."""

    head, use = 'multiple_choice', 'multiple-choice'
    command = 'zoo serve {folder}'
    call = "{'text': 'It rains.', 'choices': ['I get wet.', 'I am a tree.']}"
    #: names of the ids and labels in the predictions' files, and the number of the first ending
    written_columns, first = (_ID, _LABEL), 0
    #: segment -> the file of its predictions
    written = {'dev': 'dev_predictions.tsv', 'test': 'test_predictions.tsv'}

    def prepare(self, rows):
        self._rows = rows
        for name in ('train', 'dev') if self.trains else ():
            if any(row.label is None for row in rows.get(name, ())):
                raise InputError(f'the {name} set has no labels: training needs them')

    def write(self, folder, segment, data, outputs):
        """Write the chosen ending of each example, as TSV."""
        target, first = self._target_of(outputs), self.first
        names = [f'probability_{first + number}' for number in target.labels]
        rows = [[self.written_columns[0], 'prediction', *names, self.written_columns[1]]]
        found = data.rows, target.decode(outputs), target.probabilities(outputs)
        for example, best, shares in zip(*found):
            label = None if example.label is None else example.label + first
            rows.append([example.guid, first + best, *shares.tolist(), label])
        write_table(os.path.join(folder, self.written[segment]), rows)
        return [self.written[segment]]

    def analyze(self, data, outputs):
        labels, chosen = self.numbers(data.rows), self.decode(data, outputs)
        guess = int(np.bincount(labels).argmax())
        return error_analysis(
            [f'{row.context} {row.start}' for row in data.rows],
            [row.endings[row.label] for row in data.rows],
            [row.endings[number] for row, number in zip(data.rows, chosen)],
            cross_entropies(labels, outputs),
            {'accuracy': float((labels == guess).mean())},
            f'ending {guess}',
        )


class ChoiceTask(MultipleChoice):
    """SWAG, and other choices among a text's continuations.

    Rows in memory are (context, choices, label) or (context, choices), or dicts with these names or
    SWAG's.
    """

    settings_class, name = ChoiceSettings, 'swag'
    files = {'train': ('train.csv',), 'dev': ('val.csv',), 'test': ('test.csv',)}
    title = 'SWAG'
    lowers = property(lambda self: self.settings.do_lower_case or None)

    def read(self, source, segment):
        return read_swag(source, segment, self.settings.encoding)

    def encode(self, rows, tokenizer):
        return encode_swag(rows, tokenizer, self.settings.max_length)

    def results(self):
        return {'choices': len(next(iter(self._rows.values()))[0].endings)}


_STORY_ID, _STORY_ANSWER = 'InputStoryid', 'AnswerRightEnding'
_SENTENCES = tuple(f'InputSentence{number}' for number in (1, 2, 3, 4))
_ENDINGS = ('RandomFifthSentenceQuiz1', 'RandomFifthSentenceQuiz2')


def read_story_cloze(path, encoding=None):
    """Read a CSV file of the Story Cloze Test.

    Parameters
    ----------
    path : str or os.PathLike
        Its first line names the columns: InputStoryid, InputSentence1 to 4,
        RandomFifthSentenceQuiz1 and 2, and AnswerRightEnding (1 or 2), which may be missing.

    Returns
    -------
    list of SwagExample
        Its `context` is the whole story; labels are counted from 0.
    """

    def rows():
        for where, fields in read_records(path, format='csv', encoding=encoding):
            _check_columns(fields, (_STORY_ID, *_SENTENCES, *_ENDINGS), where)
            context = ' '.join(fields[name].strip() for name in _SENTENCES)
            endings = [fields[name] for name in _ENDINGS]
            guid, label = fields[_STORY_ID].strip(), fields.get(_STORY_ANSWER)
            yield where, guid, (context, ''), endings, label

    return _examples(rows(), first=1)


def encode_stories(stories, encode, special, max_length):
    """Make samples ``start story delimiter ending classify``, one row for each ending.

    ``encode(text)`` returns a text's ids, and `special` has the ids of the three tokens. Two long
    texts get half of the length each; a short one leaves its rest to the other. The log counts the
    truncated stories.

    References
    ----------
    Radford et al., "Improving Language Understanding by Generative Pre-Training", section 3.3.
    """
    check_room(max_length, 3, 2)
    (first, delimiter, last), room = special, max_length - 3
    samples, cut = [], 0
    for story in stories:
        context = encode(story.context)
        endings = [encode(ending) for ending in story.endings]
        cut += any(len(context) + len(ending) > room for ending in endings)
        rows = []
        for ending in endings:
            count = min(len(ending), max(room // 2, room - len(context)))
            ids = [first, *context[: room - count], delimiter, *ending[:count], last]
            rows.append(np.array(ids, np.int32))
        samples.append(Sample(tuple(rows), label=story.label))
    warn_if_cut(cut, len(stories), 'stories', max_length)
    return samples


SPECIAL_TOKENS = '_start_', '_delimiter_', '_classify_'


class StoryTask(MultipleChoice):
    """The Story Cloze Test: choose one of two endings of a story."""

    settings_class, name, family = StorySettings, 'story_cloze', 'gpt'
    title, prefix, trained_for, use = 'Story Cloze', '', None, None
    unit = sample_unit = 'stories'
    command = call = ''
    has_own_head = False
    written_columns, first = (_STORY_ID, _STORY_ANSWER), 1
    written = {'dev': 'predictions.tsv', 'test': 'test_predictions.tsv'}

    @property
    def dev_share(self):
        """The share of the stories that is the dev set, or from 1 on their number, or None."""
        settings = self.settings
        return settings.dev_split or (None if settings.dev_file else settings.n_valid or None)

    def read(self, source, segment):
        return read_story_cloze(source, self.settings.encoding)

    def split(self, rows, share):
        if share >= len(rows):
            raise InputError(f'{share} must be less than the {len(rows)} stories', field='n_valid')
        return super().split(rows, share) if share < 1 else hold_out(rows, share)

    def model_options(self):
        def add_special_tokens(model, tokenizer):
            tokenizer.set_special_tokens(list(SPECIAL_TOKENS))
            # a model that was trained for this has them in its vocabulary
            missing = len(tokenizer.vocab) - model.config.vocab_size
            model.set_num_special_tokens(max(0, missing))

        return {'prepare': add_special_tokens}

    def setup(self, model, tokenizer):
        self._most = model.context_length
        return model

    def encode(self, rows, tokenizer):
        special = tokenizer.convert_tokens_to_ids(list(SPECIAL_TOKENS))
        return encode_stories(rows, tokenizer.encode, special, self._most)

    def objective(self, model, data):
        """Return the mean loss of the stories, plus a weight times the mean loss of the tokens."""
        weight = self.settings.lm_coef

        def losses(batch, **labels):
            inputs = batch.words, batch.valid_length - 1
            return model(*inputs, valid_length=batch.valid_length, mc_labels=batch.labels, **labels)

        def both(batch):
            of_tokens, of_stories = losses(batch, lm_labels=batch.words)
            return [weight * of_tokens, of_stories]

        def counts(batch):
            texts = (text for index in batch.indices for text in data.samples[index].input_ids)
            return sum(len(text) - 1 for text in texts), len(batch.indices)

        if not weight:
            return mean_over_examples(losses)
        return Objective(both, counts, names=('lm', 'choice'))

    def forward(self, model, batch):
        """Return scores of the endings, (batch, 2), without the language model's scores."""
        hidden = model.transformer(batch.words, valid_length=batch.valid_length)
        flat, sizes = hidden.reshape((-3, 0, 0)), batch.valid_length.reshape(-1)
        # the token _classify_
        last = mx.nd.SequenceLast(flat, sizes, use_sequence_length=True, axis=1)
        return model.mc_head(last).reshape(batch.words.shape[:2])

    def results(self):
        return {'stories': {name: len(self._rows.get(name, ())) for name in ('train', 'dev')}}
