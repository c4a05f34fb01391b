"""Pytorchic BERT's pretrain.py: pre-train BERT on a text, with masked words and next sentences.

    python pretrain.py --train_cfg config/pretrain.json --model_cfg config/bert_base.json \\
        --data_file $DATA_FILE --vocab $BERT_PRETRAIN/vocab.txt --save_dir $SAVE_DIR \\
        --max_len 512 --max_pred 20 --mask_prob 0.15

The text has one sentence per line, and empty lines between documents. The training is the
original's: its pairs of texts, loss, schedule, optimizer, initial values, and
``model_steps_N.pt`` at the same updates. ``--save_dir`` also receives the files of this
project's training scripts, whose flags work here, such as ``--resume``.
"""

import importlib.util
import os

from bert import BertForPreTraining
from model_zoo.app import cli
from model_zoo.app.trainer import run_task
from model_zoo.tasks.masked_lm import pretraining_objective
from model_zoo.tasks.pretraining.text import describe_files
from model_zoo.tasks.task import Data
from model_zoo.training.settings import setting
from mxnet_pytorchic_bert import training
from mxnet_pytorchic_bert.pairs import PairLoader

NAMES = (
    *('train_cfg', 'model_cfg', 'data_file', 'model_file', 'data_parallel', 'vocab'),
    *('save_dir', 'log_dir', 'max_len', 'max_pred', 'mask_prob'),
)
LOGS = '../exp/bert/pretrain/runs'


class PretrainSettings(
    training.PytorchicSettings,
    train_cfg='config/pretrain.json',
    data_file='../tbc/books_large_all.txt',
    output_dir='../exp/bert/pretrain',
    max_len=512,
):
    """The flags of pretrain.py."""

    title = "the original's"

    max_pred: int = setting(20, 'maximum number of masks per pair')
    mask_prob: float = setting(0.15, 'share of the tokens to mask', above=0, at_most=1)


def parse_arguments(argv=None):
    # without the library, only on request
    logs = {'tensorboard': LOGS} if importlib.util.find_spec('tensorboard') else {}
    names = [('log_dir', 'tensorboard')]
    return training.parse(PretrainSettings, __doc__, argv, NAMES, names, **logs)


def make_objective(model, max_pred):
    """Return the original's loss: for words, the mean over `max_pred` positions of each pair."""
    objective = pretraining_objective(model, accuracies=False)

    def terms(batch):
        words, pairs = objective.terms(batch)
        return [words * (batch.num_masked / (max_pred * len(batch.indices))), pairs]

    def counts(batch):
        return max_pred * len(batch.indices), len(batch.indices)

    return objective._replace(terms=terms, counts=counts)


class PretrainTask(training.PytorchicTask):
    """Masked words and next sentences of a text."""

    settings_class, head, name = PretrainSettings, BertForPreTraining, 'pretraining'
    metric = 'negative loss'
    title = property(lambda self: os.path.basename(self.settings.data_file))

    def read(self, source, segment):
        return source

    def load(self, segment, rows, tokenizer, contexts, accumulate):
        settings = self.settings
        sizes = settings.batch_size, settings.max_len, settings.max_pred, settings.mask_prob
        loader = PairLoader(rows, tokenizer, *sizes, seed=settings.seed, ctx=contexts)
        # the original continues until it has done more than total_steps, at a rate of 0
        self.end_after(settings.total_steps + 1)
        return Data(rows, None, loader)

    def describe(self, data):
        return describe_files(data.rows)

    def objective(self, model, data):
        return make_objective(model, self.settings.max_pred)


class PretrainTrainer(training.PytorchicTrainer):
    """A training that may end after a number of epochs."""

    num_epochs = property(lambda self: self.settings.epochs)


def main(argv=None):
    run_task(PretrainTask(training.choose_gpus(parse_arguments(argv))), PretrainTrainer)


if __name__ == '__main__':
    cli.run_script(main)
