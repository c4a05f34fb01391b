"""The tagging of words: entities, parts of speech, chunks."""

import collections.abc
import os
from typing import List, Optional

import numpy as np

from ...errors import InputError
from ...training.objective import Objective
from ...training.settings import FileSettings, FinetuneSettings, setting, settings
from ..evaluate import check_finite, mean_cross_entropy
from ..examination import Examination, cross_entropies
from ..labels import labels_of_folder
from ..tables import given_rows, is_path
from ..task import Task
from .conll import Sentence, read_conll, write_conll, write_sentences
from .features import TaggingFeatures
from .metrics import entity_scorer, has_entities, labels_of_sentences, score_tags

__all__ = ['TaggingSettings', 'TaggingTask', 'predict_words']


def predict_words(forward, loader, guard=None):
    """Scores of the labels of all words, each from the window that decides on it.

    Parameters
    ----------
    forward : callable
        ``forward(batch) -> NDArray`` of shape (batch, length, labels).
    loader : SampleLoader
        Of the samples of `TaggingFeatures`.
    guard : InterruptGuard, optional
        Asked before each batch.

    Returns
    -------
    numpy.ndarray, shape (words of all sentences, labels), float32
    """
    positions = [sample.positions for sample in loader.samples]
    bounds = np.cumsum([0, *map(len, positions)])
    result, previous = None, None

    def store(indices, scores):
        for index, rows in zip(indices, scores.astype('float32').asnumpy()):
            result[bounds[index] : bounds[index + 1]] = rows[positions[index]]

    for batch in loader.epoch(0):
        if guard is not None:
            guard.check()
        # the device works on this batch while the last one's scores are copied
        current = batch.indices, forward(batch)
        if result is None:
            result = np.zeros((bounds[-1], current[1].shape[-1]), np.float32)
        else:
            store(*previous)
        previous = current
    store(*previous)
    return result


class _Words(collections.abc.Sequence):
    """Each word marked in its sentence; made when it is asked for."""

    def __init__(self, sentences, around=12):
        self._sentences, self._around = sentences, around
        self._places = [(s, w) for s, each in enumerate(sentences) for w in range(len(each.words))]

    def __len__(self):
        return len(self._places)

    def __getitem__(self, number):
        sentence, place = self._places[number]
        words = list(self._sentences[sentence].words)
        words[place] = f'[{words[place]}]'
        return ' '.join(words[max(place - self._around, 0) : place + self._around + 1])


@settings(lr=5e-5, epochs=4, dev_batch_size=32, seed=13531)
class TaggingSettings(FileSettings, FinetuneSettings):
    """Settings of tagging, with the defaults of GluonNLP 0.8's finetune_ner.py."""

    word_column: int = setting(0, 'from 0; negative: counted from the end')
    label_column: int = setting(-1, 'likewise')
    no_test_labels: bool = setting(False, 'the test file has no column of labels')
    labels: Optional[List[str]] = setting(None, "default: the model's, or the training file's")
    max_seq_length: int = setting(
        180, 'in tokens, special ones included; longer sentences are seen in windows'
    )
    dropout_prob: Optional[float] = setting(
        None, "of the last layer; default: BERT's", at_least=0, below=1
    )
    cased: Optional[bool] = setting(
        None, 'whether to use the weights for cased English or those for uncased',
        flag={'type': 'boolean', 'nargs': '?', 'const': True},
    )  # fmt: skip

    def check(self):
        super().check()
        if self.cased is not None:
            if self.bert_dataset:
                raise InputError('`cased` and `bert_dataset` both name the weights: give one')
            self.bert_dataset = f'book_corpus_wiki_en_{"cased" if self.cased else "uncased"}'


class TaggingTask(Task):
    """Labels of words; epochs are compared by the F1 of entities, or by accuracy.

    Rows in memory are (words, labels) or (words,), or dicts with 'words' (or 'tokens') and 'labels'
    (or 'tags').
    """

    settings_class, name, title = TaggingSettings, 'tagging', 'tagging'
    head, use, unit = 'tagging', 'token-classification', 'sentences'
    samples_unit = 'samples'
    predicted = ('dev', 'test')
    files = {'train': ('train.txt',), 'dev': ('valid.txt', 'dev.txt'), 'test': ('test.txt',)}

    def read(self, source, segment):
        settings = self.settings
        if not is_path(source):
            return _given(source, segment)
        unlabelled = segment == 'test' and settings.no_test_labels
        column = None if unlabelled else settings.label_column
        rows = read_conll(source, settings.word_column, column)
        self._paths[id(rows)] = source
        return rows

    def __init__(self, settings):
        super().__init__(settings)
        self._paths = {}  # id of rows -> their file, whose lines the predictions repeat

    def prepare(self, rows, choice=None):
        """Choose the labels in the order of their numbers."""
        model, given = self.settings.bert_model, self.settings.labels
        labels = choice and labels_of_folder(choice.model)
        if given and labels and given != labels:
            raise InputError(
                f'the model {model!r} has the labels {" ".join(labels)}: leave out `labels`'
            )
        labels = given or labels
        if labels is None:
            if 'train' not in rows:
                raise InputError(
                    f'the model {model!r} does not say its labels: give `labels`, in the order of '
                    'their numbers'
                )
            labels = labels_of_sentences(rows['train'])
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise InputError(f'the labels are {" ".join(labels)}: two different ones are needed')
        self.labels, self._entities = list(labels), has_entities(labels)
        if self._entities:
            entity_scorer()  # fail before the training if it is missing
        self.metric = 'f1' if self._entities else 'accuracy'

    def is_labelled(self, rows):
        return bool(rows[0].labels)

    def model_options(self):
        dropout = self.settings.dropout_prob
        return {**super().model_options(), **({} if dropout is None else {'dropout': dropout})}

    def encode(self, rows, tokenizer):
        if self._features is None:
            self._features = TaggingFeatures(tokenizer, self.labels, self.settings.max_seq_length)
        return self._features(rows, self._paths.get(id(rows), 'the data'))

    _features = None

    def objective(self, model, data):
        return Objective(
            lambda batch: [self.loss(model, batch)], lambda batch: (batch.count,), unit='words'
        )

    def predict(self, forward, data, guard=None):
        return predict_words(forward, data.loader, guard)

    def decode(self, data, outputs):
        labels = [self.labels[number] for number in outputs.argmax(axis=-1)]
        bounds = np.cumsum([0, *(len(row.words) for row in data.rows)])
        return [labels[start:stop] for start, stop in zip(bounds, bounds[1:])]

    def numbers(self, rows):
        known = {label: number for number, label in enumerate(self.labels)}
        return np.array([known[label] for row in rows for label in row.labels])

    def score(self, data, outputs):
        right = [row.labels for row in data.rows]
        scores = score_tags(right, self.decode(data, outputs), self._entities)
        return {**scores, 'loss': mean_cross_entropy(self.numbers(data.rows), outputs)}

    def examine(self, segment, data, outputs):
        right = [label for row in data.rows for label in row.labels]
        guess = max(self.labels, key=right.count)
        guesses = [[guess] * len(row.words) for row in data.rows]
        return Examination(
            segment,
            _Words(data.rows),
            right,
            [self.labels[number] for number in outputs.argmax(axis=-1)],
            cross_entropies(self.numbers(data.rows), outputs),
            score_tags([row.labels for row in data.rows], guesses, self._entities),
            guess,
            self.labels,
        )

    def write(self, folder, segment, data, outputs):
        check_finite(outputs, segment)
        name, source = f'{segment}_predictions.txt', self._paths.get(id(data.rows))
        path, predicted = os.path.join(folder, name), self.decode(data, outputs)
        if source is None:
            write_sentences(path, data.rows, predicted)
        else:
            column = self.settings.label_column if self.is_labelled(data.rows) else None
            write_conll(path, source, predicted, column)
        return [name]

    def results(self):
        return {'labels': self.labels}


def _given(rows, segment):
    names = {2: ('words', 'labels'), 1: ('words',)}
    sentences = []
    for place, row in given_rows(rows, names, segment):
        words = row.get('words', row.get('tokens'))
        labels = row.get('labels', row.get('tags'))
        if not words or isinstance(words, str):
            raise InputError(f'{place}: the words are {words!r}, and must be a list of texts')
        if labels is not None and len(labels) != len(words):
            raise InputError(f'{place} has {len(words)} words and {len(labels)} labels')
        labels = None if labels is None else tuple(map(str, labels))
        if sentences and (labels is None) != (sentences[0].labels is None):
            raise InputError(f'{place}: give all sentences labels, or none')
        sentences.append(Sentence(tuple(map(str, words)), labels, len(sentences)))
    return sentences
