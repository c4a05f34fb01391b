"""Tags of words: entities, parts of speech, chunks."""

import collections
import itertools
import logging
import os
import re

import numpy as np

from ..batches import Sample
from ..batches.batch import NO_LABEL
from ..errors import InputError, Where
from ..inference.entities import OUTSIDE, has_entities, labels_of_parts, marks_of
from ..inference.tokens import token_rows
from ..records import class_names, has_typed_values, is_path
from ..training.objective import outputs_of
from .rows import check_room, warn_if_alike
from .scores import class_report, cross_entropies, error_analysis, table_report
from .settings import TaggingSettings
from .tables import write_table
from .tagging_data import IGNORED, Sentence, Sentences, read_conll, read_rows, write_conll
from .task import Task

__all__ = ['Sentence', 'TaggingTask', 'encode_sentences', 'read_conll', 'score_tags', 'write_conll']

logger = logging.getLogger(__name__)


class Samples(list):
    """Samples; `words` has an array for each sentence, with the number of each part's word."""

    words = ()


def encode_sentences(sentences, tokenizer, labels, max_length=128, source='the data'):
    """Make samples of sentences as a pipeline reads their texts: whole, or in windows.

    The tokenizer, and punctuation, may part a word. A part's label belongs to its first piece; the
    parts continue the entity that the word begins. Nothing is cut: a sentence of more than
    `max_length` pieces, including special ones, is read in overlapping windows. Each part is
    learned and predicted once, in the window where it has the most context. The `positions` of a
    sample are the first pieces of the parts that it decides on (Google's README calls words' first
    pieces ``orig_to_tok_map``); the samples have all parts in order. A word that the tokenizer
    leaves nothing of has none.
    """
    check_room(max_length, 2)
    numbers = {IGNORED: NO_LABEL, **{label: number for number, label in enumerate(labels)}}
    marks, samples, found, long, missing = marks_of(labels), Samples(), [], 0, set()
    texts = [sentence.text for sentence in sentences]
    for sentence, rows in zip(sentences, token_rows(tokenizer, texts, max_length, learned=True)):
        for position, name in enumerate(sentence.labels or ()):
            if name not in numbers:
                where, known = Where(str(source), sentence.line + position), ', '.join(labels)
                problem = f'the label {name!r} is unknown; the training set, or the model, has'
                raise InputError(f'{problem} {known}: name all of them with `labels`', where=where)
        pieces = [piece for row in rows for piece in row.about[0]]
        begins = np.flatnonzero(np.diff([word for *_, word in pieces], prepend=-1))
        starts, label, stop = [pieces[number][1][0] for number in begins], None, 0
        words = np.searchsorted(sentence.ends(), starts, side='right')
        if sentence.labels is not None:
            sizes = np.bincount(words, minlength=len(sentence.words)).tolist()
            parts = map(labels_of_parts, sentence.labels, sizes, itertools.repeat(marks))
            parts = list(itertools.chain.from_iterable(parts))
            label = np.array([numbers.get(part, NO_LABEL) for part in parts], np.int32)
            missing.update(set(parts).difference(numbers))
        for row in rows:
            start, stop = stop, stop + len(row.about[0])
            part = slice(*np.searchsorted(begins, (start, stop)))
            if part.start < part.stop:  # else the window is the middle of a word
                places = (begins[part] - start + row.about[2]).astype(np.int32)
                value = None if label is None else label[part]
                samples.append(Sample(row.input_ids, row.token_types, value, places))
        found.append(words)
        long += len(rows) > 1
    if long:
        shown = source, long, len(sentences), max_length - 2
        logger.info('%s: %d of %d sentences have more than %d pieces: windows', *shown)
    if missing:
        shown = source, ', '.join(sorted(missing))
        logger.warning('%s: parts of words are not learned, since no label is %s', *shown)
    samples.words = found
    return samples


_AS_IOBES = {'L': 'E', 'U': 'S'}


def labels_of_sentences(sentences):
    """Return the labels of sentences, and of words' parts, sorted, O first; numbers by size."""
    pairs = {pair for sentence in sentences for pair in zip(sentence.words, sentence.labels)}
    labels = {label for _, label in pairs} - {IGNORED}
    if has_entities(labels):
        parted = {label for word, label in pairs if not word.isalnum()} - {IGNORED}
        labels.update(part for label in parted for part in labels_of_parts(label, 3))
    if all(label.isdigit() for label in labels):
        return sorted(labels, key=int)
    return sorted(labels, key=lambda label: (label != OUTSIDE, label))


def score_tags(labels, predicted, entities=None):
    """Score predicted labels.

    Parameters
    ----------
    entities : bool, optional
        Whether the labels mark entities, in any of the schemes IOB1, IOB2, IOBES and BILOU; by
        default `has_entities` of the labels. Words with the label `IGNORED` don't count.

    Returns
    -------
    dict of str to float
        ``accuracy`` of the words; with `entities` also ``precision``, ``recall`` and ``f1`` of
        the entities of all types together, by seqeval, which counts as CoNLL's ``conlleval`` does.
    """
    labels, predicted = _counted(labels, predicted)
    pairs = list(zip(itertools.chain(*labels), itertools.chain(*predicted)))
    metrics = {'accuracy': sum(tag == guess for tag, guess in pairs) / len(pairs)}
    if has_entities({label for pair in pairs for label in pair}) if entities is None else entities:
        scores = _entity_scores(_as_iobes(labels), _as_iobes(predicted), 'micro')
        metrics.update(zip(('precision', 'recall', 'f1'), map(float, scores)))
    return metrics


def entity_report(labels, predicted):
    """Return the scores of each type of entity, as entries of `error_analysis`."""
    from seqeval.metrics.sequence_labeling import get_entities

    labels, predicted = map(_as_iobes, _counted(labels, predicted))
    entities = get_entities(labels), get_entities(predicted)
    right, found = (collections.Counter(kind for kind, _, _ in each) for each in entities)
    types = sorted(right | found)
    scores = _entity_scores(labels, predicted, None) if types else [()] * 4
    return table_report('Scores per entity type', types, *scores, [found[kind] for kind in types])


def _counted(labels, predicted):
    """Return the labels of sentences without words whose label is `IGNORED`."""
    both = zip(labels, predicted)
    sentences = [[pair for pair in zip(*each) if pair[0] != IGNORED] for each in both]
    return zip(*(zip(*pairs) for pairs in sentences if pairs))


def _entity_scores(labels, predicted, average):
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    return precision_recall_fscore_support(labels, predicted, average=average, zero_division=0)


def _as_iobes(sentences):
    """Return the labels with the letters that seqeval knows."""
    return [[_AS_IOBES.get(name[0], name[0]) + name[1:] for name in names] for names in sentences]


def _marked(words, number):
    """Return a word marked among its neighbours."""
    shown = [*words[max(number - 12, 0) : number], f'[{words[number]}]']
    return ' '.join([*shown, *words[number + 1 : number + 13]])


class TaggingTask(Task):
    """Labels of words; epochs are compared by the F1 of entities, or by accuracy.

    Rows in memory, of JSON, Parquet and `datasets` are (words, labels) or (words,), or have 'words'
    (or 'tokens') and 'labels' (or 'tags', 'ner_tags', 'pos_tags'), or other `text_column` and
    `label_column`. Numbers mean the class names of the data set, of the model, or of the setting
    `labels`; -100 is no label. Or they have a text, and entities (start, end, label) as 'spans',
    'entities', 'ents' or 'label', as Doccano, Prodigy and spaCy write them.
    """

    settings_class, name = TaggingSettings, 'tagging'
    head, use, unit, sample_unit = 'tagging', 'token-classification', 'sentences', 'samples'
    command, call = "zoo tag {folder} 'A text.'", "'A text.'"
    files = {'train': ('train.txt',), 'dev': ('valid.txt', 'dev.txt'), 'test': ('test.txt',)}

    def read(self, source, segment):
        settings = self.settings
        if not is_path(source) or has_typed_values(source):
            columns = settings.text_column, settings.label_column
            rows, given, column = read_rows(source, segment, *columns, settings.encoding)
            if segment == 'train':
                self.given_labels, self._names = given, class_names(source, column)
            return Sentences(rows)
        unlabelled = segment == 'test' and settings.no_test_labels
        rows = Sentences(read_conll(source, *self._columns(unlabelled), settings.encoding))
        rows.source = source
        return rows

    def _columns(self, unlabelled):
        """The numbers of the columns of words and, if a file has these, labels."""
        columns = self.settings.text_column or 0, self.settings.label_column or -1
        for field, given in zip(('text_column', 'label_column'), columns):
            if not re.fullmatch(r'-?\d{1,9}', str(given)):
                raise InputError(f'{given!r} is no number; the file names no columns', field=field)
        return int(columns[0]), None if unlabelled else int(columns[1])

    _names = None  # of the training set's classes, if its column has names

    def prepare(self, rows):
        """Choose the labels and their order."""
        model, given = f'the model {self.settings.model!r}', self.settings.labels
        own = self.located and self.located.labels.given
        if given and own and given != own:
            raise InputError(f'{model} has the labels {" ".join(own)}: leave out `labels`')
        labels = given or own or self._names
        if labels is None and 'train' in rows:
            labels = labels_of_sentences(rows['train'])
            warn_if_alike(labels)
        if labels is None:
            raise InputError(f'{model} has no names of labels: use `labels`')
        if len(set(labels)) < max(2, len(labels)):
            raise InputError(f'the labels are {" ".join(labels)}: two different ones are needed')
        self.labels, self._entities = list(labels), has_entities(labels)
        self.metric = 'f1' if self._entities else 'accuracy'
        if any(map(str.isdigit, labels)):
            return
        names = {str(number): label for number, label in enumerate(labels)}
        self.given_labels = {names.get(k, k): value for k, value in self.given_labels.items()}
        for sentences in rows.values():
            for number, row in enumerate(sentences):
                tags = row.labels and tuple(names.get(tag, tag) for tag in row.labels)
                sentences[number] = row._replace(labels=tags)

    def model_options(self):
        dropout = self.settings.dropout_prob
        return {**super().model_options(), **({} if dropout is None else {'dropout': dropout})}

    def encode(self, rows, tokenizer):
        options = self.labels, self.settings.max_length, rows.source or 'the data'
        return encode_sentences(rows, tokenizer, *options)

    def objective(self, model, data):
        by_example = super().objective(model, data)
        return by_example._replace(counts=lambda batch: (batch.count,), unit='words')

    def predict(self, forward, data, guard=None):
        """Return the scores of the labels of all parts of words, (parts, labels), float32."""
        found = [None] * len(data.samples)
        for batch, scores in outputs_of(forward, data.loader, guard):
            for number, rows in zip(batch.indices, scores.astype('float32').asnumpy()):
                found[number] = rows[data.samples[number].positions]
        return np.concatenate(found)

    def _parts(self, data, numbers):
        """The labels of each sentence's parts."""
        labels, names = iter(numbers.tolist()), [*self.labels, IGNORED]  # of -1
        return [[names[next(labels)] for _ in words] for words in data.samples.words]

    def decode(self, data, outputs):
        """The labels of words, their first parts'; O where the tokenizer leaves nothing of one."""
        empty, found = OUTSIDE if OUTSIDE in self.labels else self.labels[0], []
        parts = self._parts(data, outputs.argmax(axis=-1))
        for row, words, labels in zip(data.rows, data.samples.words, parts):
            of_word = dict(zip(reversed(words.tolist()), reversed(labels)))
            found.append([of_word.get(number, empty) for number in range(len(row.words))])
        return found

    def _scored(self, data, outputs):
        """The numbers of the parts' labels, which of them count, and their losses."""
        numbers = np.concatenate([sample.label for sample in data.samples])
        counted = numbers != NO_LABEL
        return numbers, counted, cross_entropies(numbers[counted], outputs[counted])

    def score(self, data, outputs):
        numbers, _, losses = self._scored(data, outputs)
        labels = (self._parts(data, each) for each in (numbers, outputs.argmax(axis=-1)))
        return {**score_tags(*labels, self._entities), 'loss': float(losses.mean())}

    def analyze(self, data, outputs):
        (numbers, counted, losses), predicted = self._scored(data, outputs), outputs.argmax(axis=-1)
        guess = int(np.bincount(numbers[counted]).argmax())
        sets = numbers, predicted, np.full_like(numbers, guess)
        correct, found, guesses = (self._parts(data, each) for each in sets)
        numbers, predicted = numbers[counted], predicted[counted]
        if self._entities:
            more = entity_report(correct, found)
        else:
            more = class_report('Scores per label', self.labels, numbers, predicted)
        words = zip(data.rows, data.samples.words)
        texts = [_marked(row.words, number) for row, each in words for number in each]
        return error_analysis(
            list(itertools.compress(texts, counted)),
            *([self.labels[number] for number in each] for each in (numbers, predicted)),
            losses,
            score_tags(correct, guesses, self._entities),
            self.labels[guess],
            self.labels,
            **more,
        )

    def write(self, folder, segment, data, outputs):
        """Write a word per line with its label, if known, and the predicted label."""
        name, source = f'{segment}_predictions.txt', data.rows.source
        path, predicted = os.path.join(folder, name), self.decode(data, outputs)
        if source is None:
            lines = []
            for row, labels in zip(data.rows, predicted):
                lines += [*zip(row.words, *filter(None, [row.labels]), labels), ()]
            write_table(path, lines)
        else:
            columns = self._columns(not self.is_labelled(data.rows))
            write_conll(path, source, predicted, *columns, self.settings.encoding)
        return [name]

    def results(self):
        return {'labels': self.labels}
