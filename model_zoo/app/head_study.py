"""The command ``zoo bertology``: study the attention heads of a model, and prune some."""

import logging
import os

import numpy as np

from .. import analysis
from ..analysis.study import (
    ClassifierSubject,
    HeadStudy,
    LanguageModelSubject,
    OneSentence,
    SentencePair,
    rank_heads,
)
from ..batches import BucketedLoader
from ..errors import InputError
from ..registry import get_family
from ..tasks.classification import ClassificationSettings, ClassifierFeatures, choose_data
from ..tasks.classification_data import read_examples
from ..tasks.labels import match_labels
from ..tasks.language_model import BlockLoader
from ..tasks.tables import check_files
from ..tasks.task import save_trained
from ..util.reading import read_text
from . import cli
from .model_choice import ModelChoice, family_of
from .report import write_results
from .run_folder import RunFolder

logger = logging.getLogger('bertology')

OF_BERT = 'task_name', 'data_dir', 'labels'
#: flags that choose the data, as in fine-tuning
OF_DATA = (
    *OF_BERT,
    'dev_file',
    'text_columns',
    'text_column',
    'text_pair_column',
    'label_column',
    'header',
    'regression',
    'encoding',
)
DECODERS = 'gpt', 'gpt2'
FAMILIES = 'bert', *DECODERS, 'roberta', 'xlmr', 'distilbert', 'electra'


def study_heads(args):
    """Do what the command's arguments say."""
    args.family = family_of(args.model, args.dataset)
    if args.family not in FAMILIES:
        raise InputError(
            f'{args.model!r} is of the family {args.family}; it must be one of '
            f'{", ".join(FAMILIES)}',
            field='model',
        )
    is_alone = _complete(args)
    ctx = cli.get_ctx(args.gpu)
    folder = RunFolder(args, 'log_bertology.txt')
    if is_alone:
        subject = _open_alone(args, ctx)
    elif args.family in DECODERS:
        subject = _open_language_model(args, ctx)
    else:
        subject = _open_classifier(args, ctx)
    path, results = folder.file('results.json'), {}
    if args.sentence:
        results['attention'] = _draw_attention(args, folder, subject, ctx)
    if is_alone:
        write_results(path, vars(args), **results)
        return
    study = HeadStudy(
        subject,
        by_layer=not args.dont_normalize_importance_by_layer,
        overall=not args.dont_normalize_global_importance,
    )
    scores, importance, entropy = study.measure()
    for name, values in (('entropy', entropy), ('importance', importance)):
        analysis.plot_heads(folder.file(f'{name}.png'), values, f'{name}, {subject.name}', name)
    results.update(
        scores=scores,
        entropy=_nested(entropy),
        importance=_nested(importance),
        ranks=_nested(rank_heads(importance), int),
    )
    logger.info('scores: %s', scores)
    baseline = subject.baseline()
    if baseline is not None:
        _compare(scores[subject.metric], baseline[subject.metric], subject.metric)
        results['baseline'] = baseline
    if args.try_masking:
        write_results(path, vars(args), **results)
        found = study.prune(scores, importance, args.masking_threshold, args.masking_amount)
        save_trained(folder.file('pruned_model'), subject.model, subject.tokenizer)
        left, all_heads = found['after']['heads'], found['before']['heads']
        logger.info('%d of %d heads remain; the model is in pruned_model', left, all_heads)
        results['pruning'] = {**found, 'model': 'pruned_model'}
    write_results(path, vars(args), **results)


def _complete(args):
    """Check what depends on the family, and set the task; return whether there is no data."""
    is_decoder = args.family in DECODERS
    for name in OF_BERT if is_decoder else ():
        if getattr(args, name) is not None:
            raise InputError(f'is not for {args.family}', field=name)
    if not is_decoder and args.task_name is None and args.dev_file is not None:
        args.task_name = 'custom'
    has_data = args.task_name or args.data_dir or args.dev_file or args.try_masking
    is_alone = bool(args.sentence) and not has_data
    if is_decoder and not is_alone:
        if args.dev_file is None:
            raise InputError(f'{args.model!r} is a language model: it needs `dev_file`')
        check_files(args, 'dev_file')
    elif not is_alone:
        args.task_name = args.task_name or 'MRPC'
    if len(args.sentence or ()) > (1 if is_decoder else 2):
        raise InputError(
            f'has {len(args.sentence)}, which are too many; put each in quotes', field='sentence'
        )
    return is_alone


def _set_length(args, model):
    """Set the number of tokens that are read at a time."""
    if args.max_length is None:
        args.max_length = min(128, model.context_length)
    if not 2 <= args.max_length <= model.context_length:
        raise InputError(
            f'must be from 2 to {model.context_length}, not {args.max_length}', field='max_length'
        )


def _open_classifier(args, ctx):
    """Open BERT with the dev set of a task."""
    settings = ClassificationSettings(
        **{name: getattr(args, name) for name in OF_DATA}, only_inference=True
    )
    task, choice = choose_data(settings), ModelChoice(args)
    task = match_labels(task, choice.located, settings.labels, parameters=args.model_parameters)
    model, tokenizer = choice.open_task(
        get_family(args.family).block_class('classification'),
        ctx,
        trains=False,
        num_labels=task.num_labels,
    )
    _set_length(args, model)
    segment = task.dev_segments[0]
    examples = read_examples(task, args.data_dir, segment)[: args.data_subset]
    features = ClassifierFeatures(tokenizer, task, args.max_length)(examples)
    labels = np.array([feature.label for feature in features])
    loader = BucketedLoader(features, args.batch_size, pad_val=tokenizer.pad_token_id, ctx=ctx)
    logger.info('%s, %s: %d examples', task.name, segment, len(examples))
    return ClassifierSubject(task, model, tokenizer, loader, labels, args.metric_name)


def _open_language_model(args, ctx):
    """Open OpenAI GPT or GPT-2 with a text."""
    head = get_family(args.family).block_class('language_model')
    model, tokenizer = ModelChoice(args).build(head, ctx)
    _set_length(args, model)
    size, tokens = args.max_length, tokenizer.encode(read_text(args.dev_file))
    if args.data_subset is not None:
        tokens = tokens[: args.data_subset * (size - 1) + 1]
    loader = BlockLoader(tokens, size, args.batch_size, ctx=ctx)
    logger.info('%s: %d tokens', args.dev_file, len(tokens))
    name = os.path.basename(args.dev_file)
    return LanguageModelSubject(name, model, tokenizer, loader, args.metric_name)


def _open_alone(args, ctx):
    """Open a model without data, to study its backbone alone."""
    family, choice = get_family(args.family), ModelChoice(args)
    if args.family in DECODERS:
        subject = OneSentence(*choice.build(family.block_class('language_model'), ctx))
    else:
        # the attentions are the last output if nothing follows the layers
        nothing_more = {f'use_{part}': False for part in family.base.optional_parts}
        subject = SentencePair(*choice.build(family.base, ctx, **nothing_more))
    _set_length(args, subject.model)
    return subject


def _draw_attention(args, folder, subject, ctx):
    """Write a picture for each layer; return an entry for results.json."""
    inputs, tokens = subject.encode(args.sentence, args.max_length, ctx)
    names = []
    for layer, attention in enumerate(analysis.attention_of(subject.model, *inputs)):
        names.append(f'attention_{layer}.png')
        analysis.plot_attention(
            folder.file(names[-1]),
            attention[0],
            tokens,
            [f'head {head}' for head in subject.model.config.kept_heads(layer)],
            f'layer {layer}: a row for each token that looks, a column for what it looks at',
        )
    return {'tokens': tokens, 'pictures': names}


def _nested(values, convert=float):
    return [[None if np.isnan(value) else convert(value) for value in row] for row in values]


def _compare(score, guess, metric):
    """Warn if the model is no better than a guess."""
    logger.info('%s of always giving the same answer: %.4f', metric, guess)
    if not score > guess:
        logger.warning(
            "the model's %s, %.4f, is not above a guess's, %.4f: train it for the task first, or "
            'its heads say little',
            metric,
            score,
            guess,
        )
