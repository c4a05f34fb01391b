"""The task of SQuAD: answers that are spans of a paragraph."""

import logging
import math
import os
from typing import Optional

from ...errors import InputError
from ...training.settings import (
    CheckpointSettings,
    DeploySettings,
    FinetuneSettings,
    setting,
    settings,
)
from ..examination import Examination
from ..files import check_files
from ..task import Task
from .answers import find_answers, write_answers
from .encode import encode_squad
from .features import SquadFeatures
from .metrics import best_thresholds, normalize_answer, score_v1, score_v2
from .reader import find_squad, read_squad

__all__ = ['SquadSettings', 'SquadTask']

logger = logging.getLogger(__name__)

DEBUG_SIZES = {'train': 10000, 'dev': 100}  # GluonNLP's
# MXNet's own, which differ by optimizer and are what GluonNLP's script leaves them at
EPSILONS = {'adam': 1e-8}


@settings(
    dev_batch_size=24, lr=5e-5, epsilon=None, wd=0.0, log_interval=50, num_calib_batches=10
)
class SquadSettings(DeploySettings, CheckpointSettings, FinetuneSettings):
    """Settings of question answering, with the defaults of GluonNLP's finetune_squad.py."""

    train_file: Optional[str] = setting(None, 'JSON of SQuAD; default: GluonNLP downloads it')
    predict_file: Optional[str] = setting(
        None, 'JSON of SQuAD to evaluate on; default: GluonNLP downloads it, but none with '
        '`train_file`',
    )  # fmt: skip
    version_2: bool = setting(False, 'SQuAD 2.0: there may be no answer')
    null_score_diff_threshold: float = setting(
        0.0, "no answer if its score minus the best one's is greater; usually -1 to -5"
    )
    max_seq_length: int = setting(384, 'in tokens, special ones included')
    doc_stride: int = setting(128, 'tokens between the starts of two windows', at_least=1)
    max_query_length: int = setting(64, 'longer questions are cut', at_least=1)
    n_best_size: int = setting(20, 'number of answers to keep for a question', at_least=1)
    max_answer_length: int = setting(30, 'in tokens', at_least=1)
    cache_dir: Optional[str] = setting(None, 'of encoded data; default: cache in `output_dir`')
    debug: bool = setting(False, 'take 10000 questions to train, 100 to evaluate')
    sentencepiece: Optional[str] = setting(None, 'SentencePiece model, for `vocab_file`')
    uncased: bool = setting(False, 'check that the vocabulary is for lower case')
    do_lower_case: Optional[bool] = setting(
        None, 'whether to lower-case the texts; default: what the vocabulary is for',
        flag={'type': 'boolean', 'nargs': '?', 'const': True},
    )  # fmt: skip

    def check(self):
        super().check()
        if self.epsilon is None:
            self.epsilon = EPSILONS.get(self.optimizer.lower(), 1e-6)
        if self.sentencepiece:
            self._check_sentencepiece()

    def _check_sentencepiece(self):
        if self.vocab_file:
            raise InputError('`sentencepiece` and `vocab_file` both name the vocabulary: give one')
        if not self.sentencepiece.endswith(('.model', '.spiece')):
            raise InputError(
                f"`sentencepiece` {self.sentencepiece!r}: a SentencePiece model's file ends in "
                '.model or .spiece'
            )
        weights = (self.model_parameters, self.pretrained_bert_parameters, self.from_scratch)
        weights = (*weights, self.init_checkpoint, self.bert_config_file)
        if not (any(weights) or self.deploy or os.path.isdir(self.bert_model)):
            raise InputError(
                '`sentencepiece`: pretrained weights have a vocabulary of their own; it goes with '
                '`from_scratch`, `model_parameters` or `pretrained_bert_parameters`'
            )


class SquadTask(Task):
    """Questions about paragraphs; epochs are compared by F1 with the threshold given.

    Rows in memory are SQuAD's dicts, or (question, context, answer, start), where an answer of None
    means that there is none; they may be dicts with these names, or with `answers` as the hub has
    them.
    """

    settings_class, name, trained_for = SquadSettings, 'squad', None
    head, use, unit, metric = 'question_answering', 'question-answering', 'questions', 'f1'
    title, most_lost = 'SQuAD', 0.5
    predicted = ('dev',)
    free = ('train_file', 'predict_file', 'cache_dir', 'vocab_file', 'sentencepiece')

    def begin(self):
        settings = self.settings
        check_files(settings, 'train_file', 'predict_file', 'sentencepiece')
        settings.vocab_file = settings.sentencepiece or settings.vocab_file

    def sources(self):
        settings, found = self.settings, {}
        # with a training file of one's own nothing is downloaded that wasn't asked for
        if settings.predict_file or settings.only_inference or not settings.train_file:
            found['dev'] = settings.predict_file or find_squad('dev', settings.version_2)
        if not settings.only_inference:
            found['train'] = settings.train_file or find_squad('train', settings.version_2)
        return found

    def read(self, source, segment):
        rows = read_squad(source, self.settings.version_2, training=segment == 'train')
        return rows.first(DEBUG_SIZES.get(segment, 100)) if self.settings.debug else rows

    def split(self, rows, share):
        parts = super().split(rows.questions, share)
        return [rows._replace(questions=part) for part in parts]

    def size(self, rows):
        return len(rows.questions)

    def is_labelled(self, rows):
        return rows.questions[0].answers is not None

    def encode(self, rows, tokenizer):
        settings = self.settings
        if settings.uncased and not tokenizer.do_lower_case:
            raise InputError("`uncased`: the model's vocabulary is cased; leave it out")
        cache_dir = settings.cache_dir
        if cache_dir is None and settings.output_dir is not None:
            cache_dir = os.path.join(settings.output_dir, 'cache')
        with self.workers.first_alone():  # it fills the cache
            encoding = encode_squad(rows, tokenizer, cache_dir)
        samples = SquadFeatures(
            rows, encoding, tokenizer, settings.max_seq_length, settings.doc_stride,
            settings.max_query_length,
        )  # fmt: skip
        if not len(samples):
            raise InputError(f'{rows.path}: there is no paragraph with a word in it')
        return samples

    def describe(self, data):
        squad = data.rows
        return f'{len(squad.questions)} questions of a file with checksum {squad.checksum[:16]}'

    def loss(self, model, batch):
        return model(*batch.inputs, batch.labels[:, 0], batch.labels[:, 1])

    def predict(self, forward, data, guard=None):
        """The `Answers`, of all windows of a question together."""
        scores, settings = [None] * data.loader.num_samples, self.settings
        for batch in data.loader:
            if guard is not None:
                guard.check()
            starts, ends = (scores_.astype('float32').asnumpy() for scores_ in forward(batch))
            sizes = batch.valid_length.asnumpy().astype(int)
            for index, start, end, size in zip(batch.indices, starts, ends, sizes):
                scores[index] = start[:size], end[:size]
        return find_answers(
            data.samples, scores, version_2=settings.version_2,
            n_best_size=settings.n_best_size, max_answer_length=settings.max_answer_length,
            null_score_diff_threshold=settings.null_score_diff_threshold,
        )  # fmt: skip

    def decode(self, data, outputs):
        return [outputs.predictions[question.id] for question in data.rows.questions]

    def score(self, data, outputs):
        """The official metrics."""
        questions = data.rows.questions
        scores = self._score(questions, outputs.predictions)
        if self.settings.version_2:
            scores.update(best_thresholds(questions, outputs.predictions, outputs.null_odds))
        return scores

    def _score(self, questions, predictions):
        return (score_v2 if self.settings.version_2 else score_v1)(questions, predictions)

    def write(self, folder, segment, data, outputs):
        return write_answers(folder, outputs)

    def examine(self, segment, data, outputs):
        """A question's loss is -log of the probability of its right answers."""
        questions, paragraphs = data.rows.questions, data.rows.paragraphs
        right = [{normalize_answer(text) for text in q.answers} or {''} for q in questions]
        labels = [next(iter(question.answers), '') for question in questions]
        return Examination(
            segment,
            [f'{question.text} — {paragraphs[question.paragraph]}' for question in questions],
            labels,
            # another right answer is none of the mistakes
            [
                label if normalize_answer(answer) in answers else answer
                for label, answer, answers in zip(labels, self.decode(data, outputs), right)
            ],
            [_loss(outputs.nbest[q.id], answers) for q, answers in zip(questions, right)],
            self._score(questions, {question.id: '' for question in questions}),
            'no answer',
        )

    def adapt_outputs(self, words, outputs):
        if not isinstance(outputs, list) and outputs.shape == (*words.shape, 2):  # GluonNLP's form
            return outputs.split(2, axis=2, squeeze_axis=True)
        return outputs

    def check_outputs(self, words, outputs):
        shapes = [array.shape for array in (outputs if isinstance(outputs, list) else [outputs])]
        if shapes != [words.shape] * 2:
            return (
                f'outputs of shapes {shapes} for words of shape {words.shape}; scores of starts '
                'and of ends are needed'
            )
        return None

    def results(self):
        return {'task': f'SQuAD {2.0 if self.settings.version_2 else 1.1}'}


def _loss(nbest, answers):
    total = sum(
        answer['probability'] for answer in nbest if normalize_answer(answer['text']) in answers
    )
    return -math.log(min(max(total, 1e-6), 1))
