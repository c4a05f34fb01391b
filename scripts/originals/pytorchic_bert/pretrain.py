"""Pytorchic BERT's pretrain.py: pre-train BERT on a text, with masked words and next sentences.

    python pretrain.py --train_cfg config/pretrain.json --model_cfg config/bert_base.json \\
        --data_file $DATA_FILE --vocab $BERT_PRETRAIN/vocab.txt --save_dir $SAVE_DIR \\
        --max_len 512 --max_pred 20 --mask_prob 0.15

The text has one sentence per line, and empty lines between documents. The training is the
original's: its pairs of texts, loss, schedule, optimizer, initial values, and
``model_steps_N.pt`` at the same updates. ``--save_dir`` also receives what our training scripts
write, and their flags work here, such as ``--resume``.
"""

import importlib.util
import os

from bert import BertForPreTraining, BertTokenizer
from model_zoo.app import cli
from model_zoo.app.run import Run
from model_zoo.errors import InputError
from model_zoo.tasks.masked_lm import pretraining_objective
from model_zoo.tasks.pretraining import describe_files
from model_zoo.training.job import job_of
from mxnet_pytorchic_bert.pairs import PairLoader
from mxnet_pytorchic_bert.training import (
    add_pytorchic_arguments,
    choose_gpus,
    make_model,
    parse_with_train_cfg,
    train,
)

NAMES = (
    'train_cfg',
    'model_cfg',
    'data_file',
    'model_file',
    'data_parallel',
    'vocab',
    'save_dir',
    'log_dir',
    'max_len',
    'max_pred',
    'mask_prob',
)
LOGS = '../exp/bert/pretrain/runs'
# What may differ when a training is resumed: where the files are.
FREE = ('data_file', 'model_cfg', 'train_cfg', 'vocab', 'save_steps', 'data_parallel')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('--data_file', default='../tbc/books_large_all.txt', help='text in UTF-8')
    add('--max_pred', type=int, default=20, help='maximum number of masks per pair')
    add('--mask_prob', type=float, default=0.15, help='share of the tokens to mask')
    add_pytorchic_arguments(
        parser, train_cfg='config/pretrain.json', save_dir='../exp/bert/pretrain', max_len=512
    )
    parser.add_aliases('tensorboard', 'log_dir')
    if importlib.util.find_spec('tensorboard') is not None:  # else it has to be asked for
        parser.set_defaults(tensorboard=LOGS)
    args = parse_with_train_cfg(parser, argv, NAMES)
    if not 0 < args.mask_prob <= 1:
        raise InputError(f'--mask_prob {args.mask_prob}: give a number above 0, and at most 1')
    return args


def make_objective(model, max_pred):
    """The original's loss: that of words is the mean over `max_pred` positions of each pair."""
    objective = pretraining_objective(model, accuracies=False)

    def terms(batch):
        words, pairs = objective.terms(batch)
        return [words * (batch.num_masked / (max_pred * len(batch.indices))), pairs]

    def counts(batch):
        return max_pred * len(batch.indices), len(batch.indices)

    return objective._replace(terms=terms, counts=counts)


def main(argv=None):
    args = parse_arguments(argv)
    choose_gpus(args)
    run = Run(args, 'pretraining')
    tokenizer = BertTokenizer(args.vocab, do_lower_case=True, never_split=())
    model = make_model(BertForPreTraining, args, tokenizer, run.contexts)
    loader = PairLoader(
        args.data_file,
        tokenizer,
        args.batch_size,
        max_seq_length=args.max_len,
        max_predictions_per_seq=args.max_pred,
        masked_lm_prob=args.mask_prob,
        seed=args.seed,
        ctx=run.contexts,
    )
    # the original goes on until it has done more than total_steps, at a rate of 0
    args.training_steps = args.training_steps or args.total_steps + 1
    try:
        train(
            args,
            run,
            os.path.basename(args.data_file),
            model,
            tokenizer,
            loader,
            make_objective(model, args.max_pred),
            'negative loss',
            job_of(args, FREE, data_file=describe_files(args.data_file)),
            num_epochs=args.epochs,
        )
    finally:
        loader.close()


if __name__ == '__main__':
    cli.run_script(main)
