"""Fine-tune OpenAI GPT on the Story Cloze Test: which of two endings belongs to a story.

    python finetune_gpt.py --model_name openai-gpt --do_train --do_eval --output_dir out \\
        --train_dataset cloze_test_val__spring2016.csv

The script has the flags of pytorch-pretrained-bert's run_openai_gpt.py and of the other training
scripts.
Without ``--eval_dataset``, ``--n_valid`` stories of ``--train_dataset`` are held out, always the
same ones; by default 374, a fifth of the released file. ``--output_dir`` receives the log,
``results.json``, ``curves.png``, the parameters after the last epochs and the best one,
``best_model/`` for ``OpenAIGPTDoubleHeadsModel.from_pretrained``, checkpoints for ``--resume``,
and with ``--do_eval`` ``predictions.tsv``, of the best epoch. ``--do_eval`` alone evaluates a
model, and predicts the endings of stories without answers.
"""

import os
import sys

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly
import mxnet as mx

from gpt import OpenAIGPTDoubleHeadsModel
from model_zoo.app import (
    About,
    Evaluator,
    ModelChoice,
    Outcome,
    Run,
    Score,
    Training,
    add_comm_backend_argument,
    add_originals,
    add_training_arguments,
    check_files,
    check_training_arguments,
    cli,
    convert_originals,
    describe,
    job_of,
)
from model_zoo.batches import BucketedLoader
from model_zoo.errors import InputError
from model_zoo.optimizer import SCHEDULES, get_schedule
from model_zoo.tasks.choice import (
    MultipleChoice,
    StoryClozeFeatures,
    hold_out,
    read_story_cloze,
    write_story_cloze_predictions,
)
from model_zoo.tasks.task import Data
from model_zoo.training.objective import Objective, mean_over_examples
from model_zoo.training.workers import make_workers

SPECIAL_TOKENS = ('_start_', '_delimiter_', '_classify_')
# What may differ when a training is resumed: where the files are, and what follows the training.
FREE = ('train_dataset', 'eval_dataset', 'vocab_file', 'do_eval')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument_group('task').add_argument
    add('--do_train', action='store_true')
    add('--do_eval', action='store_true', help='write the predictions of --eval_dataset')
    add('--train_dataset', help='CSV file of the Story Cloze Test')
    add('--eval_dataset', help='default: stories held out of --train_dataset')
    add('--n_valid', type=int, default=374, help='number of held-out stories; 0: no dev set')
    add('--lm_coef', type=float, default=0.9, help="weight of the language model's loss")
    add('--max_grad_norm', type=float, default=1.0, help='clip the norm of all gradients to this')
    add('--lr_schedule', default='warmup_linear', choices=list(SCHEDULES))
    ModelChoice.add_arguments(parser, 'gpt_12_768_12', family='gpt')
    add_training_arguments(parser)
    add_comm_backend_argument(parser)
    parser.set_defaults(
        optimizer='openaiadam', batch_size=8, dev_batch_size=16, lr=6.25e-5, epsilon=1e-8,
        warmup_ratio=0.002, seed=42,
    )  # fmt: skip
    add_originals(parser, 'finetune_gpt')
    args = parser.parse_args(argv)
    convert_originals(args, 'finetune_gpt')
    check_arguments(args)
    return args


def check_arguments(args):
    check_training_arguments(args)
    if args.n_valid < 0:
        raise InputError(f'--n_valid {args.n_valid}: give a number from 0 up')
    if not (args.do_train or args.do_eval):
        raise InputError('nothing to do: give --do_train, --do_eval or both')
    if args.do_train and not args.train_dataset:
        raise InputError('--do_train needs --train_dataset')
    if not (args.train_dataset or args.eval_dataset):
        raise InputError('--do_eval needs --eval_dataset')
    if args.do_eval and not (args.eval_dataset or args.n_valid):
        raise InputError('--do_eval: there is no dev set; give --eval_dataset, or --n_valid')
    if args.resume and not args.do_train:
        raise InputError('--resume continues a training: it needs --do_train')
    if not 0 <= args.lm_coef < float('inf'):
        raise InputError(f'--lm_coef {args.lm_coef}: give a number from 0 up')
    if not args.max_grad_norm > 0:
        raise InputError(f'--max_grad_norm {args.max_grad_norm}: give a number above 0')
    check_files(args, 'train_dataset', 'eval_dataset')


def read_stories(args):
    train = read_story_cloze(args.train_dataset) if args.train_dataset else []
    if args.eval_dataset:
        dev = read_story_cloze(args.eval_dataset)
    elif not args.n_valid:
        dev = []
    elif args.n_valid < len(train):
        train, dev = hold_out(train, args.n_valid)
    else:
        raise InputError(
            f'--n_valid {args.n_valid}: {args.train_dataset!r} has {len(train)} stories; give a '
            'smaller number, or --eval_dataset'
        )
    for path, stories in ((args.train_dataset, train), (args.eval_dataset, dev)):
        if args.do_train and any(story.label is None for story in stories):
            raise InputError(f'{path!r} has no answers: training needs the column')
    return train, dev


class StoryTask(MultipleChoice):
    """Scores and predictions of stories' endings."""

    predicted, write_file = ('dev',), staticmethod(write_story_cloze_predictions)

    def file_of(self, segment):
        return 'predictions.tsv'


def make_model(choice, contexts):
    def add_special_tokens(model, tokenizer):
        tokenizer.set_special_tokens(list(SPECIAL_TOKENS))
        model.set_num_special_tokens(len(SPECIAL_TOKENS))

    return choice.build(OpenAIGPTDoubleHeadsModel, contexts, prepare=add_special_tokens)


def make_objective(model, features, lm_coef):
    """The mean loss of the stories, plus a weight times the mean loss of the tokens."""

    def losses(batch, **labels):
        inputs = batch.words, batch.valid_length - 1
        return model(*inputs, valid_length=batch.valid_length, mc_labels=batch.labels, **labels)

    def both(batch):
        of_tokens, of_stories = losses(batch, lm_labels=batch.words)
        return [lm_coef * of_tokens, of_stories]

    def counts(batch):
        texts = (text for index in batch.indices for text in features[index].input_ids)
        return sum(len(text) - 1 for text in texts), len(batch.indices)

    if not lm_coef:
        return mean_over_examples(losses)
    return Objective(both, counts, names=('lm', 'choice'))


def choose(model, batch):
    """Scores of the endings, (batch, 2). The language model's, which cost most, are left out."""
    hidden = model.transformer(batch.words, valid_length=batch.valid_length)
    last = mx.nd.SequenceLast(  # the token _classify_
        hidden.reshape((-3, 0, 0)),
        batch.valid_length.reshape(-1),
        use_sequence_length=True,
        axis=1,
    )
    return model.mc_head(last).reshape(batch.words.shape[:2])


def main(argv=None):
    args = parse_arguments(argv)
    choice = ModelChoice(args, family='gpt')
    train, dev = read_stories(args)
    workers = make_workers(args.comm_backend, args.allreduce_dtype)
    run = Run(args, 'story_cloze', workers=workers, trains=args.do_train)
    model, tokenizer = make_model(choice, run.contexts)
    special = tokenizer.convert_tokens_to_ids(list(SPECIAL_TOKENS))
    make_features = StoryClozeFeatures(tokenizer.encode, *special, model.config.n_positions)

    def make_loader(stories, batch_size, **options):
        features = make_features(stories)
        return features, BucketedLoader(
            features, batch_size, seed=args.seed, pad_val=0, ctx=run.contexts, **options
        )

    sets = {'dev': Data(dev, *make_loader(dev, args.dev_batch_size))} if dev else {}
    evaluator = Evaluator(StoryTask(args), lambda batch: choose(model, batch), sets)
    if not args.do_train:
        run.infer(evaluator.evaluate, evaluator.predict)
        return
    features, loader = make_loader(
        train, args.batch_size, batch_tokens=args.batch_tokens, shuffle=True, workers=workers
    )
    values = (part for each in features for part in each.content)
    sizes = {'train': len(train), 'dev': len(dev)}

    def schedule(num_steps):
        # OpenAI's Adam asks for the rate of step 1 at the first update
        return get_schedule(args.lr_schedule, args.lr, args.warmup_ratio, num_steps, first_step=1)

    run.train(
        Training(
            f'Story Cloze, {os.path.basename(os.path.normpath(args.gpt_model))}',
            model,
            loader,
            make_objective(model, features, args.lm_coef),
            args.max_grad_norm,
            schedule,
        ),
        Score('accuracy', evaluator.evaluate if dev else None),
        Outcome(
            lambda folder, **options: model.save_pretrained(folder, tokenizer, **options),
            evaluator.predict if args.do_eval else None,
            {'stories': sizes},
            evaluator.examine,
            About(None, os.path.basename(os.path.normpath(args.gpt_model)), sizes, 'stories'),
        ),
        job_of(args, FREE, train_dataset=describe(len(train), 'stories', values)),
    )


if __name__ == '__main__':
    sys.exit(cli.run(main))
