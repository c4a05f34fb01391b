"""Pytorchic BERT's classify.py: fine-tune BERT on MRPC or MNLI, or evaluate what was trained.

    python classify.py --task mrpc --mode train --train_cfg config/train_mrpc.json \\
        --model_cfg config/bert_base.json --data_file $GLUE_DIR/MRPC/train.tsv \\
        --pretrain_file $BERT_PRETRAIN/bert_model.ckpt --vocab $BERT_PRETRAIN/vocab.txt \\
        --save_dir $SAVE_DIR --max_len 128
    python classify.py --task mrpc --mode eval --train_cfg config/train_mrpc.json \\
        --model_cfg config/bert_base.json --data_file $GLUE_DIR/MRPC/dev.tsv \\
        --model_file $SAVE_DIR/model_steps_345.pt --vocab $BERT_PRETRAIN/vocab.txt --max_len 128

The training is the original's: its schedule, optimizer, initial values, and ``model_steps_N.pt`` at
the same updates. ``--save_dir`` also receives what our training scripts write, and their flags work
here, such as ``--resume``.
"""

import numpy as np

from bert import BertForSequenceClassification, BertTokenizer
from model_zoo.app import cli
from model_zoo.app.run import Run, find_contexts
from model_zoo.batches import BucketedLoader
from model_zoo.errors import InputError
from model_zoo.tasks.classification import ClassifierFeatures
from model_zoo.tasks.classification_data import custom_task, read_examples
from model_zoo.training.job import describe, job_of
from model_zoo.training.objective import mean_over_examples, predict
from model_zoo.training.workers import Workers
from mxnet_pytorchic_bert import training
from mxnet_pytorchic_bert.training import (
    add_pytorchic_arguments,
    choose_gpus,
    make_model,
    parse_with_train_cfg,
)

NAMES = (
    'task',
    'train_cfg',
    'model_cfg',
    'data_file',
    'model_file',
    'pretrain_file',
    'data_parallel',
    'vocab',
    'save_dir',
    'max_len',
    'mode',
)
# columns of the texts, and the labels in the order of their numbers
TASKS = {'mrpc': ((3, 4), ('0', '1')), 'mnli': ((8, 9), ('contradiction', 'entailment', 'neutral'))}
# What may differ when a training is resumed: where the files are.
FREE = ('data_file', 'model_cfg', 'train_cfg', 'vocab', 'save_steps', 'data_parallel', 'mode')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('--task', default='mrpc', choices=list(TASKS))
    add('--mode', default='train', choices=['train', 'eval'])
    add('--data_file', default='../glue/MRPC/train.tsv', help='TSV file of GLUE')
    add(
        '--pretrain_file',
        default='../uncased_L-12_H-768_A-12/bert_model.ckpt',
        help="Google's checkpoint, or a .pt file: only its embeddings and layers are used",
    )
    add_pytorchic_arguments(
        parser, train_cfg='config/train_mrpc.json', save_dir='../exp/bert/mrpc', max_len=128
    )
    args = parse_with_train_cfg(parser, argv, NAMES)
    if args.mode == 'eval' and not args.model_file:
        raise InputError('--mode eval needs --model_file')
    return args


def read_task(args):
    """The task, whose label is in the first column, or in the last one of MNLI."""
    columns, labels = TASKS[args.task]
    label = 0
    if args.task == 'mnli':
        with open(args.data_file, encoding='utf-8') as file:
            label = len(file.readline().split('\t')) - 1
    return custom_task(
        columns, label, labels=labels, header=True, files={'train': args.data_file}, name=args.task
    )


def make_parts(args, contexts):
    """The model, its tokenizer, the samples, and a loader of them."""
    task = read_task(args)
    tokenizer = BertTokenizer(args.vocab, do_lower_case=True, never_split=())
    samples = ClassifierFeatures(tokenizer, task, args.max_len)(read_examples(task))
    model = make_model(
        BertForSequenceClassification, args, tokenizer, contexts, num_labels=task.num_labels
    )
    loader = BucketedLoader(
        samples,
        args.batch_size,
        shuffle=args.mode == 'train',
        seed=args.seed,
        num_buckets=1,
        pad_val=tokenizer.pad_token_id,
        ctx=contexts,
    )
    return model, tokenizer, samples, loader


def evaluate(args):
    cli.setup_logging()
    contexts = find_contexts(args.gpus, Workers(), args.gpu)
    model, _, samples, loader = make_parts(args, contexts)
    outputs = predict(lambda batch: model(*batch.inputs), loader)
    labels = np.array([sample.label for sample in samples])
    print('Accuracy:', float((outputs.argmax(axis=-1) == labels).mean()))


def train(args):
    run = Run(args, args.task)
    model, tokenizer, samples, loader = make_parts(args, run.contexts)
    values = (part for sample in samples for part in sample.content)
    # the original goes on until it has done more than total_steps, at a rate of 0
    steps = int(args.epochs * -(-len(loader) // run.accumulate))
    args.training_steps = args.training_steps or min(steps, args.total_steps + 1)
    training.train(
        args,
        run,
        args.task,
        model,
        tokenizer,
        loader,
        mean_over_examples(lambda batch: model(*batch.inputs, batch.labels)),
        'accuracy',
        job_of(args, FREE, data_file=describe(len(samples), 'examples', values)),
    )


def main(argv=None):
    args = parse_arguments(argv)
    choose_gpus(args)
    evaluate(args) if args.mode == 'eval' else train(args)


if __name__ == '__main__':
    cli.run_script(main)
