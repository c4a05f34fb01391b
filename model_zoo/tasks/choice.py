"""Multiple choice: SWAG and similar tasks, and the Story Cloze Test.

Zellers et al., "SWAG: A Large-Scale Adversarial Dataset for Grounded Commonsense Inference", 2018.
Mostafazadeh et al., "A Corpus and Cloze Evaluation for Deeper Understanding of Commonsense
Stories", 2016. The CSV files are read as their authors give them out.
"""

import itertools
import os
import re
from typing import NamedTuple

import mxnet as mx
import numpy as np

from ..batches import Sample
from ..errors import InputError
from ..records import has_json, has_typed_values, is_path, read_records
from ..training.objective import Objective, mean_over_examples
from ..util.arrays import softmax
from .settings import ChoiceSettings, StorySettings, check_work
from .tables import check_files, write_table
from .task import Examination, Task, check_room, cross_entropies, encode_several, hold_out, tell_cut

__all__ = [
    'ChoiceSettings',
    'ChoiceTask',
    'StorySettings',
    'StoryTask',
    'SwagExample',
    'encode_stories',
    'encode_swag',
    'read_story_cloze',
    'read_swag',
    'write_choices',
]

_ID, _CONTEXT, _START, _ENDING, _LABEL = 'fold-ind', 'sent1', 'sent2', 'ending', 'label'
_TEXT, _CHOICES = 'context', 'choices'


class SwagExample(NamedTuple):
    """A text and its possible endings."""

    guid: str
    context: str
    start: str
    endings: tuple[str, ...]
    label: int | None


def read_swag(source, segment='data', encoding=None):
    """Read a file of SWAG, or rows in memory.

    Parameters
    ----------
    source : str, os.PathLike or iterable
        CSV whose first line names the columns (``sent1``, ``sent2``, ``ending0`` and so on, perhaps
        ``label`` and ``fold-ind``; others don't matter), or JSON or Parquet with these fields, or
        with 'context', 'choices' and 'label'. Rows in memory have these names, or are tuples in
        this order.
    """
    examples = []
    for location, fields in _records(source, segment, encoding):
        example = _example(fields, location, str(len(examples)))
        first = examples[0] if examples else example
        if len(example.endings) != len(first.endings):
            raise InputError(
                f'{location}: {len(example.endings)} endings, where the first example has '
                f'{len(first.endings)}'
            )
        if (example.label is None) != (first.label is None):
            raise InputError(f'{location}: give all examples a label, or none')
        examples.append(example)
    if not examples:
        raise InputError(f'{str(source)!r} has no examples')
    return examples


def _records(source, segment, encoding):
    """Yield places and fields with SWAG's names."""
    parts, format = {3: (_TEXT, _CHOICES, _LABEL), 2: (_TEXT, _CHOICES)}, None
    if is_path(source) and not has_typed_values(source):
        format = 'json' if has_json(source, encoding) else 'csv'
    for where, fields in read_records(source, parts, segment, format=format, encoding=encoding):
        if _CHOICES in fields:
            if isinstance(fields[_CHOICES], str) or len(fields[_CHOICES]) < 2:
                raise InputError(
                    f'{fields[_CHOICES]!r:.80}; give a list of two texts or more',
                    where=where._replace(column=_CHOICES),
                )
            choices = {f'{_ENDING}{n}': text for n, text in enumerate(fields[_CHOICES])}
            fields = {_CONTEXT: fields.get(_TEXT), _START: '', **choices, **fields}
        yield where, fields


def _example(fields, location, guid):
    endings = (f'{_ENDING}{number}' for number in itertools.count())
    names = (_CONTEXT, _START, *itertools.takewhile(fields.__contains__, endings))
    missing = [name for name in (_CONTEXT, _START, 'ending0', 'ending1') if name not in fields]
    if missing:
        raise InputError(
            f'{location}: there is no {", ".join(missing)}; give a file of SWAG as it was '
            'released: CSV with a first line that names the columns, or JSON lines'
        )
    wrong = [name for name in names if not isinstance(fields[name], str)]
    if wrong:
        raise InputError(f'{location}: {wrong[0]} is {fields[wrong[0]]!r}, and must be a text')
    context, start, *endings = (fields[name].strip() for name in names)
    if not context or not all(start or ending for ending in endings):
        raise InputError(f'{location}: {_CONTEXT}, or a continuation of it, is empty')
    label = fields.get(_LABEL)
    if label in (None, ''):
        label = None
    else:
        label = _number(label)
        if label is None or not 0 <= label < len(endings):
            raise InputError(
                f'{location}: {_LABEL} is {fields[_LABEL]!r}, and must be a number from 0 to '
                f'{len(endings) - 1}'
            )
    return SwagExample(str(fields.get(_ID, guid)), context, start, tuple(endings), label)


def _number(value):
    """An int from an int or its digits; None if it is neither."""
    if isinstance(value, str) and re.fullmatch('[0-9]{1,9}', value.strip()):
        return int(value)
    return int(value) if isinstance(value, (int, np.integer)) and value is not True else None


def encode_swag(examples, tokenizer, max_length=128):
    """Samples ``[CLS] context [SEP] start ending [SEP]``, one row for each ending.

    If that is longer than `max_length`, the longer one of the two texts loses tokens at its end
    until it fits. The log counts the truncated examples.
    """
    check_room(max_length, 3, 2)
    pairs = [
        [(example.context, f'{example.start} {ending}'.strip()) for ending in example.endings]
        for example in examples
    ]
    labels = [example.label for example in examples]
    samples, cut = encode_several(tokenizer, pairs, labels, max_length)
    tell_cut(sum(map(bool, cut)), len(examples), 'examples', max_length)
    return samples


def write_choices(path, examples, probabilities, columns=(_ID, _LABEL), first=0):
    """Write the chosen ending of each example, as TSV.

    Parameters
    ----------
    probabilities : numpy.ndarray, shape (examples, endings)
    columns : (str, str)
        What the columns of the examples' names and of their labels are called.
    first : int
        The number of the first ending.
    """
    names = [f'probability_{first + number}' for number in range(probabilities.shape[1])]
    rows = [[columns[0], 'prediction', *names, columns[1]]]
    for example, row in zip(examples, probabilities):
        label = '' if example.label is None else str(example.label + first)
        shares = map('{:.6f}'.format, row)
        rows.append([example.guid, str(first + row.argmax()), *shares, label])
    write_table(path, rows)


class MultipleChoice(Task):
    """Base of tasks whose rows have a `context`, `endings` and a `label`."""

    head, use = 'multiple_choice', 'multiple-choice'
    #: options of `write_choices`
    columns, first = (_ID, _LABEL), 0

    @property
    def predicted(self):
        return ('dev', 'test') if self.settings.do_eval else ()

    def write(self, folder, segment, data, outputs):
        name = self.file_of(segment)
        path = os.path.join(folder, name)
        write_choices(path, data.rows, softmax(outputs), self.columns, self.first)
        return [name]

    def file_of(self, segment):
        """The file of a segment's predictions."""
        return f'{segment}_predictions.tsv'

    def examine(self, segment, data, outputs):
        labels = self.numbers(data.rows)
        guess = int(np.bincount(labels).argmax())
        return Examination(
            segment,
            [f'{row.context} {row.start}' for row in data.rows],
            [row.endings[row.label] for row in data.rows],
            [row.endings[number] for row, number in zip(data.rows, outputs.argmax(axis=-1))],
            cross_entropies(labels, outputs),
            {'accuracy': float((labels == guess).mean())},
            f'ending {guess}',
        )


class ChoiceTask(MultipleChoice):
    """SWAG, and other choices among a text's continuations.

    Rows in memory are (context, choices, label) or (context, choices), or dicts with these names or
    SWAG's.
    """

    settings_class, name, in_python = ChoiceSettings, 'swag', {'do_train': True, 'do_eval': True}
    files = {'train': ('train.csv',), 'dev': ('val.csv',), 'test': ('test.csv',)}
    title = 'SWAG'
    lowers = property(lambda self: self.settings.do_lower_case or None)

    def locate(self, given=None):
        files = super().locate(given)
        if given is None and self.settings.do_eval and not {'dev', 'test'}.intersection(files):
            raise InputError('there is no dev set: give `dev_file`, or `data_dir`')
        return files

    def read(self, source, segment):
        examples = read_swag(source, segment, self.settings.encoding)
        is_needed = segment == 'train' or (segment == 'dev' and self.settings.do_train)
        if is_needed and any(example.label is None for example in examples):
            raise InputError(f'{source!r} has no labels: training needs them')
        return examples

    def encode(self, rows, tokenizer):
        return encode_swag(rows, tokenizer, self.settings.max_seq_length)

    def prepare(self, rows):
        self._choices = len(next(iter(rows.values()))[0].endings)

    def results(self):
        return {'choices': self._choices}


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
    columns, stories = (_STORY_ID, *_SENTENCES, *_ENDINGS), []
    advice = 'give a CSV file of the Story Cloze Test as it was released'
    for location, fields in read_records(path, format='csv', encoding=encoding):
        missing = [name for name in columns if name not in fields]
        if missing:
            raise InputError(f'{str(path)!r}: its first line lacks {", ".join(missing)}; {advice}')
        stories.append(_story(fields, location))
    if not stories:
        raise InputError(
            f'{str(path)!r} has no stories below the columns {", ".join(columns)}; {advice}'
        )
    return stories


def _story(fields, location):
    texts = [' '.join(fields[name].strip() for name in _SENTENCES)]
    texts += [fields[name].strip() for name in _ENDINGS]
    if not all(text.strip() for text in texts):
        raise InputError(f'{location}: a story or an ending is empty')
    label = fields.get(_STORY_ANSWER)
    if label not in (None, '1', '2'):
        raise InputError(f'{location}: {_STORY_ANSWER} is {label!r}, and must be 1 or 2')
    label = None if label is None else int(label) - 1
    return SwagExample(fields[_STORY_ID], texts[0], '', (texts[1], texts[2]), label)


def encode_stories(stories, encode, special, max_length):
    """Samples ``start story delimiter ending classify``, one row for each ending.

    ``encode(text)`` gives a text's ids, and `special` has those of the three tokens. Two long texts
    get half of the length each; a short one leaves its rest to the other. The log counts the
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
    tell_cut(cut, len(stories), 'stories', max_length)
    return samples


SPECIAL_TOKENS = '_start_', '_delimiter_', '_classify_'


class StoryTask(MultipleChoice):
    """The Story Cloze Test: choose one of two endings of a story."""

    settings_class, name, family = StorySettings, 'story_cloze', 'gpt'
    in_python = {'do_train': True}
    title, prefix, trained_for, use, unit = 'Story Cloze', '', None, None, 'stories'
    has_own_head = False
    columns, first = (_STORY_ID, _STORY_ANSWER), 1

    trains = property(lambda self: self.settings.do_train)

    def locate(self, given=None):
        if given is not None:
            self.settings = self.settings.copy(
                train_dataset=given.get('train'), eval_dataset=given.get('dev')
            )
        settings = self.settings
        check_work(settings)
        if settings.do_train and not settings.train_dataset:
            raise InputError('needs `train_dataset`', field='do_train')
        if not (settings.train_dataset or settings.eval_dataset):
            raise InputError('needs `eval_dataset`', field='do_eval')
        if settings.do_eval and not (settings.eval_dataset or settings.n_valid):
            raise InputError('needs a dev set: give `eval_dataset`, or `n_valid`', field='do_eval')
        check_files(settings, 'train_dataset', 'eval_dataset')
        sources = {'train': settings.train_dataset, 'dev': settings.eval_dataset}
        return {name: path for name, path in sources.items() if path}

    def read(self, source, segment):
        return read_story_cloze(source, self.settings.encoding)

    def prepare(self, rows):
        settings, train = self.settings, rows.get('train', [])
        if 'dev' not in rows and settings.n_valid:
            if settings.n_valid >= len(train):
                raise InputError(
                    f'{settings.n_valid}: {settings.train_dataset!r} has {len(train)} '
                    'stories; give a smaller number, or `eval_dataset`',
                    field='n_valid',
                )
            rows['train'], rows['dev'] = hold_out(train, settings.n_valid)
        self._sizes = {name: len(rows.get(name, ())) for name in ('train', 'dev')}
        if not settings.do_train:
            rows.pop('train', None)
        elif any(story.label is None for stories in rows.values() for story in stories):
            raise InputError('a set has no answers: training needs the column')

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

    def load(self, *args, **options):
        return super().load(*args, pad_val=0, **options)

    def describe(self, data):
        return self._describe(data, 'stories')

    def job(self, train):
        return {'train_dataset': train}

    def objective(self, model, data):
        """The mean loss of the stories, plus a weight times the mean loss of the tokens."""
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
        """Scores of the endings, (batch, 2), without those of the language model."""
        hidden = model.transformer(batch.words, valid_length=batch.valid_length)
        last = mx.nd.SequenceLast(  # the token _classify_
            hidden.reshape((-3, 0, 0)),
            batch.valid_length.reshape(-1),
            use_sequence_length=True,
            axis=1,
        )
        return model.mc_head(last).reshape(batch.words.shape[:2])

    def file_of(self, segment):
        return 'predictions.tsv'

    def results(self):
        return {'stories': self._sizes}
