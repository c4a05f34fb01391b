"""Pytorchic BERT's classify.py: fine-tune BERT on MRPC or MNLI, or evaluate what was trained.

    python classify.py --task mrpc --mode train --train_cfg config/train_mrpc.json \\
        --model_cfg config/bert_base.json --data_file $GLUE_DIR/MRPC/train.tsv \\
        --pretrain_file $BERT_PRETRAIN/bert_model.ckpt --vocab $BERT_PRETRAIN/vocab.txt \\
        --save_dir $SAVE_DIR --max_len 128
    python classify.py --task mrpc --mode eval --train_cfg config/train_mrpc.json \\
        --model_cfg config/bert_base.json --data_file $GLUE_DIR/MRPC/dev.tsv \\
        --model_file $SAVE_DIR/model_steps_345.pt --vocab $BERT_PRETRAIN/vocab.txt --max_len 128

The training is the original's: its schedule, optimizer, initial values, and ``model_steps_N.pt`` at
the same updates. ``--save_dir`` also receives the files of this project's training scripts, whose
flags work here, such as ``--resume``.
"""

import numpy as np

from bert import BertForSequenceClassification
from model_zoo.app import cli
from model_zoo.app.devices import find_contexts
from model_zoo.app.trainer import run_task
from model_zoo.errors import InputError
from model_zoo.tasks.classification import ClassifierFeatures
from model_zoo.tasks.classification_data import custom_task, read_examples
from model_zoo.training.objective import predict
from model_zoo.training.settings import setting
from model_zoo.training.workers import Workers
from mxnet_pytorchic_bert import training

NAMES = (
    *('task', 'train_cfg', 'model_cfg', 'data_file', 'model_file', 'pretrain_file'),
    *('data_parallel', 'vocab', 'save_dir', 'max_len', 'mode'),
)
# columns of the texts, and the labels in the order of their numbers
TASKS = {'mrpc': ((3, 4), ('0', '1')), 'mnli': ((8, 9), ('contradiction', 'entailment', 'neutral'))}


class ClassifySettings(
    training.PytorchicSettings,
    train_cfg='config/train_mrpc.json',
    data_file='../glue/MRPC/train.tsv',
    output_dir='../exp/bert/mrpc',
    max_len=128,
):
    """The flags of classify.py."""

    title = "the original's"
    batch_tokens = None

    task: str = setting('mrpc', choices=list(TASKS))
    mode: str = setting('train', None, 'mutable', choices=['train', 'eval'])
    pretrain_file: str | None = setting(
        '../uncased_L-12_H-768_A-12/bert_model.ckpt',
        "Google's checkpoint, or a .pt file: only its embeddings and layers are used",
    )

    def check(self):
        super().check()
        if self.mode == 'eval' and not self.model_file:
            raise InputError('eval needs `model_file`', field='mode')


def parse_arguments(argv=None):
    return training.parse(ClassifySettings, __doc__, argv, NAMES)


def read_task(settings):
    """Return the data set, whose label is in the first column, or in the last one of MNLI."""
    columns, labels = TASKS[settings.task]
    label = 0
    if settings.task == 'mnli':
        with open(settings.data_file, encoding='utf-8') as file:
            label = len(file.readline().split('\t')) - 1
    options = {'files': {'train': settings.data_file}, 'name': settings.task}
    return custom_task(columns, label, labels=labels, header=True, **options)


class ClassifyTask(training.PytorchicTask):
    """MRPC or MNLI."""

    settings_class, head = ClassifySettings, BertForSequenceClassification
    name = property(lambda self: self.settings.task)
    pretrain_file = property(lambda self: self.settings.pretrain_file)

    def read(self, source, segment):
        self.data_set = read_task(self.settings)
        return read_examples(self.data_set)

    def model_options(self):
        return {'num_labels': self.data_set.num_labels}

    def encode(self, rows, tokenizer):
        return ClassifierFeatures(tokenizer, self.data_set, self.settings.max_len)(rows)

    def load(self, segment, rows, tokenizer, contexts, accumulate):
        data = super().load(segment, rows, tokenizer, contexts, accumulate, num_buckets=1)
        # the original continues until it has done more than total_steps, at a rate of 0
        steps = int(self.settings.epochs * -(-len(data.loader) // accumulate))
        self.end_after(min(steps, self.settings.total_steps + 1))
        return data


def evaluate(task):
    """Print the accuracy on the data."""
    cli.setup_logging()
    contexts = find_contexts(task.settings.gpus, Workers(), task.settings.gpu)
    rows = task.read(task.settings.data_file, 'dev')
    model, tokenizer = task.open(None, contexts)
    data = task.load('dev', rows, tokenizer, contexts, 1)
    outputs = predict(lambda batch: model(*batch.inputs), data.loader)
    labels = np.array([sample.label for sample in data.samples])
    print('Accuracy:', float((outputs.argmax(axis=-1) == labels).mean()))


def main(argv=None):
    task = ClassifyTask(training.choose_gpus(parse_arguments(argv)))
    evaluate(task) if task.settings.mode == 'eval' else run_task(task, training.PytorchicTrainer)


if __name__ == '__main__':
    cli.run_script(main)
