"""See what the attention heads of BERT, OpenAI GPT or GPT-2 do, and prune those that do little.

    python bertology.py --model output_dir/best_model --task_name MRPC --try_masking \\
        --sentence 'Time flies like an arrow .'
    python bertology.py --model gpt2 --eval_file valid.txt --try_masking

The flags are those of pytorch-pretrained-bert's bertology.py. BERT is looked at on the dev set of a
task of finetune_classifier.py, with a model that was trained there; OpenAI GPT and GPT-2 on a text,
as language models. ``--output_dir`` receives the log, and ``results.json`` with the entropy of each
head's attention, its importance (how much the loss depends on its output), and its rank by that;
``entropy.png`` and ``importance.png`` show them, and with ``--sentence`` ``attention_LAYER.png``
where its tokens look. With ``--try_masking`` heads are turned off, the least important ones first,
until the metric falls below ``--masking_threshold`` of what it was; then they are pruned, metric,
speed and size before and after are measured, and ``pruned_model/`` is for ``from_pretrained`` and
for every other script. (A language model's metric is 1 / perplexity.) After any end of the run, the
same command with ``--resume`` doesn't repeat what was measured, and one without it is refused while
that waits in ``results.json.part``.
"""

import json
import logging
import os
import sys
import time
from typing import NamedTuple

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly
import mxnet as mx
import numpy as np

from bert import BertForSequenceClassification
from gpt import OpenAIGPTLMHeadModel
from gpt.tokenizer import OpenAIGPTTokenizer
from gpt2 import GPT2LMHeadModel
from gpt2.tokenizer import GPT2Tokenizer
from model_zoo.analysis import (
    attention_of,
    heads_left,
    heads_to_prune,
    mask_heads,
    measure_heads,
    normalize_importance,
    plot_attention,
    plot_heads,
)
from model_zoo.app import (
    ModelChoice,
    PartialOutput,
    RunFolder,
    add_originals,
    check_at_least_one,
    check_files,
    check_labels,
    cli,
    describe,
    describe_model,
    family_of,
    job_of,
    make_task_model,
    write_results,
)
from model_zoo.batches import BucketedLoader
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.tasks.classification import (
    ClassifierFeatures,
    compute_metrics,
    get_task,
    list_tasks,
    read_examples,
)
from model_zoo.tasks.language_model import BlockLoader
from model_zoo.training.interrupt import InterruptGuard
from model_zoo.util.lines import read_text
from model_zoo.util.progress import progress

logger = logging.getLogger('bertology')


# What may differ when a run is resumed: where things are; what they hold is compared.
FREE = (
    'data_dir', 'eval_file', 'dataset', 'pretrained_parameters', 'model_parameters', 'vocab_file',
    'hparams',
)  # fmt: skip
OF_BERT = 'task_name', 'data_dir', 'max_seq_length'
OF_LANGUAGE_MODELS = 'eval_file', 'block_size'


class Family(NamedTuple):
    """What the script needs to know of a family of language models."""

    head: type
    tokenizer: type


LANGUAGE_MODELS = {
    'gpt': Family(OpenAIGPTLMHeadModel, OpenAIGPTTokenizer),
    'gpt2': Family(GPT2LMHeadModel, GPT2Tokenizer),
}
CONFIG_CLASSES = {
    'bert': BertForSequenceClassification.config_class,
    **{name: family.head.config_class for name, family in LANGUAGE_MODELS.items()},
}


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument_group('data').add_argument
    add('--task_name', help=f'of BERT: one of {", ".join(list_tasks())}; default: MRPC')
    add('--data_dir', help="of BERT: folder of the task's TSV files; default: GluonNLP downloads "
        'them')  # fmt: skip
    add('--metric_name', help='for masking; default: that by which the task compares models')
    add('--max_seq_length', type=int, help='of BERT: tokens, the special ones counted; default: '
        '128')  # fmt: skip
    add('--eval_file', help='of OpenAI GPT and GPT-2: text in UTF-8')
    add('--block_size', type=int, help='of OpenAI GPT and GPT-2: how many tokens are read at a '
        'time; default: 128, or what the model takes if that is less')  # fmt: skip
    add('--data_subset', type=int, help='use only the first examples, or blocks of the text')
    add('--batch_size', type=int, default=8, help='does not matter for the results')
    add = parser.add_argument_group('analysis').add_argument
    add(
        '--dont_normalize_importance_by_layer',
        action='store_true',
        help='else the importances of each layer have the Euclidean norm 1',
    )
    add(
        '--dont_normalize_global_importance',
        action='store_true',
        help='else the importances are spread from 0 to 1',
    )
    add('--try_masking', action='store_true', help='turn heads off, and prune them')
    add('--masking_threshold', type=float, default=0.9, help='share of the metric that must stay')
    add('--masking_amount', type=float, default=0.1, help='share of the heads to turn off a step')
    add('--sentence', nargs='+', help='draw the attention over a sentence, or for BERT over two')
    ModelChoice.add_arguments(parser, None)
    parser.add_argument('--gpu', type=int, nargs='?', const=0, help='default: the CPU')
    parser.add_argument('--seed', type=int, default=42, help='of parameters that the model lacks')
    parser.add_argument('--output_dir', default='./output_dir')
    parser.add_argument(
        '--resume', action='store_true', help='go on with what an interrupted run has measured'
    )
    parser.set_defaults(dtype='float32')
    add_originals(parser, 'bertology')
    args = parser.parse_args(argv)
    check_arguments(args)
    return args


def check_arguments(args):
    check_at_least_one(args, 'data_subset', 'batch_size')
    check_files(args, 'eval_file')
    for name in ('masking_threshold', 'masking_amount'):
        if not 0 < getattr(args, name) < 1:
            raise InputError(f'--{name} {getattr(args, name)}: give a number between 0 and 1')
    if not all(sentence.strip() for sentence in args.sentence or ()):
        raise InputError('--sentence: there is nothing in it; give a text')
    if args.model is None:
        raise InputError('give --model, a name or a folder')


def find_family(args):
    """Set the family of --model, and check what depends on it."""
    args.family = family_of(args.model, args.dataset, CONFIG_CLASSES)
    if args.family not in CONFIG_CLASSES:
        what = 'its config.json does not tell the family' if args.family is None else args.family
        raise InputError(
            f'--model {args.model!r}: {what}; heads of {", ".join(CONFIG_CLASSES)} can be looked at'
        )
    is_bert = args.family == 'bert'
    kind = 'a BERT' if is_bert else 'a language model'
    for name in OF_LANGUAGE_MODELS if is_bert else OF_BERT:
        if getattr(args, name) is not None:
            raise InputError(f'--{name} is not for {kind}, which --model {args.model!r} is')
    if is_bert:
        args.task_name = args.task_name or 'MRPC'
        args.max_seq_length = 128 if args.max_seq_length is None else args.max_seq_length
    elif args.eval_file is None:
        raise InputError(f'--model {args.model!r} is {kind}: it needs --eval_file')
    if len(args.sentence or ()) > (2 if is_bert else 1):
        raise InputError(f'--sentence: {len(args.sentence)} are too many; put each in quotes')


class Classification:
    """BERT on the dev set of a task."""

    def __init__(self, args, ctx):
        self._ctx, self._max_len = ctx, args.max_seq_length
        self._task = task = get_task(args.task_name)
        self.name = task.name
        choice = ModelChoice(args)
        check_labels(task, args.model)
        self.model, self.tokenizer = make_task_model(
            args, choice, BertForSequenceClassification, ctx, trains=False,
            num_labels=task.num_labels,
        )  # fmt: skip
        self.metric = args.metric_name or task.primary_metric
        if self.metric not in task.metrics:
            raise UnknownNameError.of(f'--metric_name of {task.name}', self.metric, task.metrics)
        examples = read_examples(task, args.data_dir, task.dev_segments[0])[: args.data_subset]
        features = ClassifierFeatures(self.tokenizer, task, self._max_len)(examples)
        self._labels = np.array([feature.label for feature in features])
        inputs = [np.array([each.input_ids, each.token_types]) for each in features]
        self.data = describe(len(examples), 'examples', [*inputs, self._labels])
        self.loader = BucketedLoader(
            features, args.batch_size, pad_val=self.tokenizer.pad_token_id, ctx=ctx
        )
        logger.info('%s, %s: %d examples', task.name, task.dev_segments[0], len(examples))

    def predict(self, batch, head_mask=None):
        return self.model(*batch.inputs, head_mask=head_mask)

    def forward(self, batch, head_mask):
        scores, attentions = self.predict(batch, head_mask)
        if self._task.regression:
            losses = (scores.reshape((-1,)) - batch.labels) ** 2
        else:
            losses = -mx.nd.pick(mx.nd.log_softmax(scores), batch.labels)
        return losses.sum(), attentions, (batch.indices, scores)

    def scores(self, outputs):
        """The task's metrics, by name, of the outputs of `forward`."""
        rows = np.concatenate([scores.asnumpy() for _, scores in outputs])
        order = np.argsort(np.concatenate([indices for indices, _ in outputs]))
        return dict(compute_metrics(self._task, self._labels, rows[order]))

    def baseline(self):
        """The task's metrics, by name, of always giving the commonest label, or the mean grade."""
        if self._task.regression:
            guess = np.mean(self._labels)
        else:
            guess = np.bincount(self._labels).argmax()
        return dict(compute_metrics(self._task, self._labels, np.full_like(self._labels, guess)))

    def encode(self, sentences):
        """The model's inputs for a sentence or two, and its tokens."""
        encoded = self.tokenizer.encode(*sentences, max_length=self._max_len)
        inputs = encoded.input_ids, encoded.token_types
        return [self._row(array) for array in inputs], encoded.tokens

    def _row(self, ids):
        return mx.nd.array([ids], ctx=self._ctx, dtype='int32')


class LanguageModel:
    """OpenAI GPT or GPT-2 on a text."""

    metric = 'likelihood'

    def __init__(self, args, ctx):
        self._ctx, family = ctx, LANGUAGE_MODELS[args.family]
        self.name = os.path.basename(args.eval_file)
        self.model, self.tokenizer = ModelChoice(args).build(family.head, ctx)
        longest = self.model.context_length
        if args.block_size is None:
            args.block_size = min(128, longest)
        size = args.block_size
        if not 2 <= size <= longest:
            raise InputError(f'--block_size {size}: give 2 to {longest}, the tokens that the model '
                             'takes')  # fmt: skip
        if args.metric_name not in (None, self.metric):
            raise UnknownNameError.of('--metric_name of a text', args.metric_name, [self.metric])
        tokens = self.tokenizer.encode(read_text(args.eval_file))
        if args.data_subset is not None:
            tokens = tokens[: args.data_subset * (size - 1) + 1]
        self.data = describe(len(tokens), 'tokens', [np.array(tokens)])
        self.loader = BlockLoader(tokens, size, args.batch_size, ctx=ctx)
        logger.info('%s: %d tokens', args.eval_file, len(tokens))

    def predict(self, batch, head_mask=None):
        return self.model(
            batch.words,
            valid_length=batch.valid_length,
            lm_labels=batch.words,
            head_mask=head_mask,
        )

    def forward(self, batch, head_mask):
        loss, attentions = self.predict(batch, head_mask)
        loss = loss * batch.count
        return loss, attentions, (batch.count, loss)

    def scores(self, outputs):
        """Perplexity and its inverse, of the outputs of `forward`."""
        counts, losses = zip(*outputs)
        loss = sum(float(loss.asscalar()) for loss in losses) / sum(counts)
        return {'likelihood': float(np.exp(-loss)), 'perplexity': float(np.exp(loss))}

    def baseline(self):
        """None: a text has no labels to guess."""

    def encode(self, sentences):
        """The model's inputs for a sentence, and its tokens as the vocabulary has them."""
        ids = self.tokenizer.encode(sentences[0])
        if not 0 < len(ids) <= self.model.context_length:
            raise InputError(
                f'--sentence has {len(ids)} tokens: the model takes 1 to '
                f'{self.model.context_length}'
            )
        words = mx.nd.array([ids], ctx=self._ctx, dtype='int32')
        return [words], self.tokenizer.convert_ids_to_tokens(ids)


def draw_attention(args, task):
    """Write a picture for each layer; returns what of it goes to results.json."""
    inputs, tokens = task.encode(args.sentence)
    names = []
    for layer, attention in enumerate(attention_of(task.model, *inputs)):
        names.append(f'attention_{layer}.png')
        plot_attention(
            os.path.join(args.output_dir, names[-1]),
            attention[0],
            tokens,
            [f'head {head}' for head in task.model.config.kept_heads(layer)],
            f'layer {layer}: a row for each token that looks, a column for what it looks at',
        )
    return {'tokens': tokens, 'pictures': names}


def nested(values, kind=float):
    """An array of heads as lists for JSON, with None for those that aren't there."""
    return [[None if np.isnan(value) else kind(value) for value in row] for row in values]


def ranks(importance):
    """Ranks of the heads: 0 is the most important one, NaN isn't there."""
    order = np.argsort(np.where(np.isnan(importance), np.inf, -importance), axis=None)
    result = np.empty(importance.size)
    result[order] = np.arange(importance.size)
    return np.where(np.isnan(importance), np.nan, result.reshape(importance.shape))


class Study:
    """Measures a model's heads as the flags ask, again and again.

    What was measured is added to `partial`. What an earlier run has measured comes from there: it
    was the same, since what is measured next only depends on what was found.
    """

    def __init__(self, args, task, partial, guard):
        self._task, self._partial, self._guard = task, partial, guard
        self._earlier = [json.loads(record) for record in partial]
        self._normal = {
            'by_layer': not args.dont_normalize_importance_by_layer,
            'overall': not args.dont_normalize_global_importance,
        }

    def measure(self, mask=None, title='heads'):
        """Scores by name, normalized importance, and entropy."""
        if self._earlier:
            scores, importance, entropy = self._earlier.pop(0)
            return scores, np.array(importance), np.array(entropy)
        task = self._task
        found = measure_heads(task.model, task.forward, task.loader, mask, title, self._guard)
        scores = task.scores(found.outputs)
        importance = normalize_importance(found.importance, **self._normal)
        measured = scores, importance.tolist(), found.entropy.tolist()
        self._partial.append(json.dumps(measured).encode())
        return scores, importance, found.entropy

    def facts(self, scores):
        """What is compared before and after pruning."""
        task = self._task
        parameters = task.model.collect_params().values()
        speed = sequences_per_second(task, self._guard)
        count = int(sum(np.prod(parameter.shape) for parameter in parameters))
        logger.info(
            '%s, %d parameters, %.1f sequences/s',
            ', '.join(f'{name} {value:.4f}' for name, value in scores.items()),
            count,
            speed,
        )
        return {
            **scores,
            'heads': int(heads_left(task.model.config).sum()),
            'parameters': count,
            'sequences_per_second': speed,
        }


def sequences_per_second(task, guard):
    """Speed of prediction over the data.

    The best of three rounds: the first builds what is built once, and others may use the machine.
    """
    speeds = []
    for _ in range(3):
        started, count = time.perf_counter(), 0
        for batch in progress(task.loader, 'batches', 'speed'):
            guard.check()
            task.predict(batch).wait_to_read()
            count += batch.valid_length.shape[0]
        speeds.append(count / (time.perf_counter() - started))
    return max(speeds)


def prune(args, task, study, scores, importance):
    """Mask heads and prune them; returns what of it goes to results.json."""
    config = task.model.config

    def measure(mask):
        scores, importance, _ = study.measure(mask, 'masking')
        return scores[task.metric], importance

    mask, steps = mask_heads(
        measure,
        heads_left(config),
        scores[task.metric],
        importance,
        args.masking_threshold,
        args.masking_amount,
    )
    masked, _, _ = study.measure(mask, 'masked')
    logger.info('before pruning:')
    before = study.facts(scores)
    pruned = heads_to_prune(mask, config)
    task.model.prune_heads(pruned)
    logger.info('after pruning:')
    after = study.facts(study.measure(title='pruned')[0])
    folder = os.path.join(args.output_dir, 'pruned_model')
    task.model.save_pretrained(folder, task.tokenizer)
    logger.info('%d of %d heads are left; the model is in %s', after['heads'], before['heads'],
                folder)  # fmt: skip
    return {
        'metric': task.metric,
        'steps': [step._asdict() for step in steps],
        'head_mask': mask.astype(int).tolist(),
        'pruned_heads': pruned,
        'before': before,
        'masked': masked,
        'after': after,
        'speedup': after['sequences_per_second'] / before['sequences_per_second'],
        'model': 'pruned_model',
    }


def compare_with_baseline(args, task, scores, results):
    """Add the scores of a guess to the results; warn if the model isn't, or needn't be, better."""
    baseline = task.baseline()
    if baseline is None:
        return
    results['baseline'] = baseline
    logger.info('baseline, of always giving the same answer: %s', baseline)
    score, guess = scores[task.metric], baseline[task.metric]
    if not score > guess:
        logger.warning(
            "the model's %s, %.4f, is not above the baseline's, %.4f: then what its heads do says "
            'little, and masking them nothing; train it for the task first',
            task.metric,
            score,
            guess,
        )
    elif args.try_masking and args.masking_threshold * score <= guess:
        logger.warning(
            "--masking_threshold %g lets the model's %s fall to %.4f, which is not above the "
            "baseline's, %.4f: a higher one says more",
            args.masking_threshold,
            task.metric,
            args.masking_threshold * score,
            guess,
        )


def main(argv=None):
    args = parse_arguments(argv)
    find_family(args)
    ctx = cli.get_ctx(args.gpu)
    folder = RunFolder(args.output_dir, args, 'log_bertology.txt')
    task = (Classification if args.family == 'bert' else LanguageModel)(args, ctx)
    job = job_of(args, FREE, model=describe_model(task.model), data=task.data)
    partial = PartialOutput(folder.file('results.json'), job, args.resume)
    if partial.is_complete():
        return
    with partial, InterruptGuard() as guard:
        results = {'attention': draw_attention(args, task)} if args.sentence else {}
        study = Study(args, task, partial, guard)
        scores, importance, entropy = study.measure()
        for name, values in (('entropy', entropy), ('importance', importance)):
            path = os.path.join(args.output_dir, f'{name}.png')
            plot_heads(path, values, f'{name}, {task.name}', name)
        results.update(
            scores=scores,
            entropy=nested(entropy),
            importance=nested(importance),
            ranks=nested(ranks(importance), int),
        )
        logger.info('scores: %s', scores)
        compare_with_baseline(args, task, scores, results)
        if args.try_masking:
            write_results(partial.path, vars(args), **results)
            if not scores[task.metric] > 0:  # which prune refuses, and would again
                partial.remove()
            results['pruning'] = prune(args, task, study, scores, importance)
        write_results(partial.path, vars(args), **results, job=job)  # the job says: complete
        partial.remove()


if __name__ == '__main__':
    sys.exit(cli.run(main))
