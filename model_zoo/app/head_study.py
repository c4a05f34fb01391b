"""The command ``zoo bertology``: study the attention heads of a model, and prune some."""

import contextlib
import dataclasses
import logging
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import mxnet as mx
import numpy as np

from .. import analysis
from ..errors import InputError, UnknownNameError
from ..registry import get_family, list_families
from ..tasks.classification import ClassificationTask
from ..tasks.language_model import BlockLoader
from ..tasks.saving import save_trained
from ..tasks.settings import ClassificationSettings
from ..tasks.tables import check_files
from ..util.display import progress
from ..util.reading import read_text
from .devices import get_ctx
from .model_choice import ModelChoice, family_of
from .report import write_results
from .run_folder import RunFolder

logger = logging.getLogger('bertology')

OF_BERT = 'task_name', 'data_dir', 'labels'
COLUMNS = 'text_columns', 'text_column', 'text_pair_column', 'label_column'
#: flags that choose the data, as in fine-tuning
OF_DATA = *OF_BERT, *COLUMNS, 'dev_file', 'header', 'regression', 'encoding', 'model_parameters'
DECODERS = 'gpt', 'gpt2'


@dataclasses.dataclass
class Subject:
    """A model, and the data that its heads are measured on."""

    model: Any
    tokenizer: Any
    loader: Iterable
    metric: str
    #: ``predict(batch, head_mask=None)``, the model's output
    predict: Callable
    #: of `measure_heads`
    forward: Callable
    #: ``scores(outputs)``, the scores by name of the outputs of `forward`
    scores: Callable


def study_heads(args):
    """Measure the heads that a command's arguments choose; with ``try_masking``, prune some."""
    args.family = family_of(args.model, args.dataset)
    variants = (family.name for family in list_families() if family.variant_of == 'bert')
    families = ['bert', *DECODERS, *variants]
    if args.family not in families:
        problem = f'{args.model!r} is of the family {args.family}, not {", ".join(families)}'
        raise InputError(problem, field='model')
    is_decoder = args.family in DECODERS
    if is_decoder:
        _check_text(args)
    else:
        args.task_name = args.task_name or ('custom' if args.dev_file else 'MRPC')
    ctx = get_ctx(args.gpu)
    with contextlib.closing(RunFolder(args, 'log_bertology.txt')) as folder:
        subject = (_open_language_model if is_decoder else _open_classifier)(args, ctx)
        scores, importance, entropy = _measure(subject, args)
        logger.info('scores: %s', scores)
        path = folder.file('results.json')
        results = {
            'scores': scores,
            'entropy': _nested(entropy),
            'importance': _nested(importance),
            'ranks': _nested(_ranks(importance), int),
        }
        write_results(path, vars(args), **results)
        if args.try_masking:
            pruning = _prune(subject, args, scores, importance)
            save_trained(folder.file('pruned_model'), subject.model, subject.tokenizer)
            results['pruning'] = {**pruning, 'model': 'pruned_model'}
            write_results(path, vars(args), **results)


def _measure(subject, args, mask=None, title='heads'):
    """Return the scores by name, normalized importance, and entropy."""
    measures = analysis.measure_heads(subject.model, subject.forward, subject.loader, mask, title)
    by_layer = not args.dont_normalize_importance_by_layer
    overall = not args.dont_normalize_global_importance
    importance = analysis.normalize_importance(measures.importance, by_layer, overall)
    return subject.scores(measures.outputs), importance, measures.entropy


def _prune(subject, args, scores, importance):
    """Mask heads, least important first, and prune those that the model doesn't need."""
    model, metric = subject.model, subject.metric

    def measure(mask):
        scores, importance, _ = _measure(subject, args, mask, 'masking')
        return scores[metric], importance

    first = analysis.heads_left(model.config), scores[metric], importance
    limits = args.masking_threshold, args.masking_amount
    mask, steps = analysis.mask_heads(measure, *first, *limits)
    masked, _, _ = _measure(subject, args, mask, 'masked')
    before = _facts(subject, scores)
    pruned = analysis.heads_to_prune(mask, model.config)
    model.prune_heads(pruned)
    after = _facts(subject, _measure(subject, args, title='pruned')[0])
    logger.info('before pruning: %s', before)
    logger.info('after pruning, in pruned_model: %s', after)
    return {
        'metric': metric,
        'steps': [step._asdict() for step in steps],
        'head_mask': mask.astype(int).tolist(),
        'pruned_heads': pruned,
        'before': before,
        'masked': masked,
        'after': after,
        'speedup': after['sequences_per_second'] / before['sequences_per_second'],
    }


def _facts(subject, scores):
    """Return the figures to compare before and after pruning; the speed is the best of three."""
    parameters, speeds = subject.model.collect_params().values(), []
    for _ in range(3):
        started, count = time.perf_counter(), 0
        for batch in progress(subject.loader, 'batches', 'speed'):
            subject.predict(batch).wait_to_read()
            count += batch.valid_length.shape[0]
        speeds.append(count / (time.perf_counter() - started))
    return {
        **scores,
        'heads': int(analysis.heads_left(subject.model.config).sum()),
        'parameters': int(sum(np.prod(parameter.shape) for parameter in parameters)),
        'sequences_per_second': max(speeds),
    }


def _ranks(importance):
    """Return the ranks of the heads: 0 is the most important one, NaN a missing one."""
    missing = np.isnan(importance)
    order = np.argsort(np.where(missing, np.inf, -importance), axis=None)
    return np.where(missing, np.nan, np.argsort(order).reshape(importance.shape))


def _nested(values, convert=float):
    return [[None if np.isnan(value) else convert(value) for value in row] for row in values]


def _check_text(args):
    """Raise InputError if the data isn't a text, for a language model."""
    for name in OF_BERT:
        if vars(args)[name] is not None:
            raise InputError(f'is not for {args.family}', field=name)
    if args.dev_file is None:
        raise InputError(f'{args.model!r} is a language model: it needs `dev_file`')
    check_files(args, 'dev_file')


def _set_length(args, model):
    """Set the number of tokens that are read at a time."""
    if args.max_length is None:
        args.max_length = min(128, model.context_length)
    if not 2 <= args.max_length <= model.context_length:
        problem = f'must be from 2 to {model.context_length}, not {args.max_length}'
        raise InputError(problem, field='max_length')


def _open_classifier(args, ctx):
    """Open BERT with the dev set of a task."""
    given = {name: vars(args)[name] for name in OF_DATA}
    options = {'only_inference': True, 'dev_batch_size': args.batch_size}
    task, choice = ClassificationTask(ClassificationSettings(**given, **options)), ModelChoice(args)
    task.locate()
    task.configure(choice.located)
    model, tokenizer = task.open(choice, ctx)
    _set_length(args, model)
    task.assume(max_length=args.max_length)
    segment = task.data_set.dev_segments[0]
    rows = task.read(segment, segment)[: args.data_subset]
    loader, labels = task.load(segment, rows, tokenizer, ctx, 1).loader, task.numbers(rows)
    logger.info('%s, %s: %d examples', task.name, segment, len(rows))
    target = task.target
    metric = args.metric_name or target.metrics[0]
    UnknownNameError.check(f'`metric_name` of {task.name}', metric, target.metrics)

    def predict(batch, head_mask=None):
        return model(*batch.inputs, head_mask=head_mask)

    def forward(batch, head_mask):
        outputs, attentions = predict(batch, head_mask)
        if target.has_classes:
            losses = -mx.nd.pick(mx.nd.log_softmax(outputs), batch.labels)
        else:
            losses = (outputs.reshape((-1,)) - batch.labels) ** 2
        return losses.sum(), attentions, (batch.indices, outputs)

    def scores(outputs):
        rows = np.concatenate([rows.asnumpy() for _, rows in outputs])
        order = np.argsort(np.concatenate([indices for indices, _ in outputs]))
        return target.scores(labels, rows[order])

    return Subject(model, tokenizer, loader, metric, predict, forward, scores)


def _open_language_model(args, ctx):
    """Open OpenAI GPT or GPT-2 with a text."""
    UnknownNameError.check('`metric_name`', args.metric_name or 'likelihood', ('likelihood',))
    head = get_family(args.family).block_class('language_model')
    model, tokenizer = ModelChoice(args).build(head, ctx)
    _set_length(args, model)
    size, tokens = args.max_length, tokenizer.encode(read_text(args.dev_file))
    if args.data_subset is not None:
        tokens = tokens[: args.data_subset * (size - 1) + 1]
    loader = BlockLoader(tokens, size, args.batch_size, ctx=ctx)
    logger.info('%s: %d tokens', os.path.basename(args.dev_file), len(tokens))

    def predict(batch, head_mask=None):
        words, length = batch.words, batch.valid_length
        return model(words, valid_length=length, lm_labels=words, head_mask=head_mask)

    def forward(batch, head_mask):
        loss, attentions = predict(batch, head_mask)
        loss = loss * batch.count
        return loss, attentions, (batch.count, loss)

    def scores(outputs):
        counts, losses = zip(*outputs)
        loss = sum(float(loss.asscalar()) for loss in losses) / sum(counts)
        return {'likelihood': float(np.exp(-loss)), 'perplexity': float(np.exp(loss))}

    return Subject(model, tokenizer, loader, 'likelihood', predict, forward, scores)
