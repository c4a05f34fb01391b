"""Study the attention heads of BERT, OpenAI GPT or GPT-2, and prune the unimportant ones.

    python bertology.py --model output_dir/best_model --task_name MRPC --try_masking \\
        --sentence 'Time flies like an arrow .'
    python bertology.py --model gpt2 --dev_file valid.txt --try_masking

The flags are the same as in pytorch-pretrained-bert's bertology.py. The data is the dev set of a
task of finetune_classifier.py, or of your own task, for a BERT that was trained on it; for OpenAI
GPT and GPT-2 it is a text. With --sentence and no data, only the sentence's attention is drawn.

``--output_dir`` receives the log and ``results.json`` with the entropy of each head's attention,
its importance (how much the loss depends on its output) and its rank. ``entropy.png`` and
``importance.png`` show them. With ``--sentence``, ``attention_LAYER.png`` shows which tokens
attend to which.

``--try_masking`` turns heads off, the least important ones first, until the metric falls below
``--masking_threshold`` of its first value. (A language model's metric is 1 / perplexity.) Then it
prunes them, measures metric, speed and size before and after, and writes ``pruned_model/`` for
``from_pretrained`` and for all scripts.
"""

import logging
import os

import model_zoo  # noqa: F401  isort: skip  before MXNet
import numpy as np

from gpt import OpenAIGPTLMHeadModel
from gpt2 import GPT2LMHeadModel
from model_zoo import analysis
from model_zoo.analysis.study import (
    ClassifierSubject,
    HeadStudy,
    LanguageModelSubject,
    OneSentence,
    SentencePair,
    rank_heads,
)
from model_zoo.app import cli, originals
from model_zoo.app.arguments import add_fields, add_settings, check_at_least_one
from model_zoo.app.model_choice import ModelChoice, family_of
from model_zoo.app.report import write_results
from model_zoo.app.run_folder import RunFolder
from model_zoo.batches import BucketedLoader
from model_zoo.errors import InputError
from model_zoo.registry import get_family
from model_zoo.tasks.classification import (
    ClassificationSettings,
    ClassifierFeatures,
    choose_data,
)
from model_zoo.tasks.classification_data import list_tasks, read_examples
from model_zoo.tasks.labels import adopt_labels
from model_zoo.tasks.language_model import BlockLoader
from model_zoo.tasks.tables import check_files
from model_zoo.tasks.task import save_trained
from model_zoo.training.settings import DeviceSettings, NamedModelSettings
from model_zoo.util.reading import read_text

logger = logging.getLogger('bertology')


METRICS = {'acc': 'accuracy', 'mcc': 'matthews', 'spearmanr': 'spearman'}  # the original's names
OF_BERT = 'task_name', 'data_dir', 'labels'
#: flags that choose the data, as in fine-tuning
OF_DATA = (
    'task_name',
    'data_dir',
    'dev_file',
    'text_columns',
    'text_column',
    'text_pair_column',
    'label_column',
    'labels',
    'header',
    'regression',
    'encoding',
)


LANGUAGE_MODELS = {'gpt': OpenAIGPTLMHeadModel, 'gpt2': GPT2LMHeadModel}
FAMILIES = 'bert', *LANGUAGE_MODELS, 'roberta', 'xlmr', 'distilbert', 'electra'


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    group = parser.add_argument_group('data')
    add = group.add_argument
    add('--task_name', help=f'of BERT: one of {", ".join(list_tasks())}, or custom; default: MRPC')
    add(
        '--data_dir',
        help="BERT: folder with the task's TSV files; default: GluonNLP downloads them",
    )
    add(
        '--dev_file',
        help='custom task: TSV, .csv, .jsonl or .parquet, or a folder that datasets has saved; '
        'OpenAI GPT and GPT-2: text in UTF-8',
    )
    add_fields(
        group,
        ClassificationSettings,
        *OF_DATA[3:-1],
    )
    add('--metric_name', help="metric for masking; default: the task's first metric")
    add(
        '--max_length',
        type=int,
        help='in tokens, including special tokens; default: 128, or fewer if the model reads fewer',
    )
    parser.add_aliases('dev_file', 'eval_file')
    parser.add_aliases('max_length', 'max_len', 'max_seq_length', 'block_size')
    add('--data_subset', type=int, help='use only the first examples, or blocks of the text')
    add('--batch_size', type=int, default=8, help='does not affect the results')
    add = parser.add_argument_group('analysis').add_argument
    add(
        '--dont_normalize_importance_by_layer',
        action='store_true',
        help="don't scale the importances of each layer to a Euclidean norm of 1",
    )
    add(
        '--dont_normalize_global_importance',
        action='store_true',
        help="don't scale all importances to the range from 0 to 1",
    )
    add('--try_masking', action='store_true', help='turn heads off, and prune them')
    add('--masking_threshold', type=float, default=0.9, help='share of the metric that must remain')
    add('--masking_amount', type=float, default=0.1, help='share of the heads to turn off per step')
    add(
        '--sentence',
        nargs='+',
        help='draw the attention over a sentence, or for BERT over a '
        'pair; without data, do nothing else',
    )
    add_fields(parser, ClassificationSettings, 'encoding')
    add_settings(parser, NamedModelSettings)
    add_fields(parser, DeviceSettings, 'gpu')
    parser.add_argument('--seed', type=int, default=42, help='seed of missing parameters')
    parser.add_argument('--output_dir', default='./output_dir')
    parser.set_defaults(dtype='float32')
    args = originals.parse(parser, argv, 'bertology')
    if args.data_subset == -1:  # the original's value for all
        args.data_subset = None
    args.metric_name = METRICS.get(args.metric_name, args.metric_name)
    check_arguments(args)
    return args


def check_arguments(args):
    check_at_least_one(args, 'data_subset', 'batch_size')
    for name in ('masking_threshold', 'masking_amount'):
        if not 0 < getattr(args, name) < 1:
            raise InputError(f'must be between 0 and 1, not {getattr(args, name)}', field=name)
    if not all(sentence.strip() for sentence in args.sentence or ()):
        raise InputError('is empty: give a text', field='sentence')
    if args.model is None:
        raise InputError('give `model`, a name or a folder')


def find_family(args):
    """Set the family of --model, and check what depends on it."""
    args.family = family_of(args.model, args.dataset)
    if args.family not in FAMILIES:
        what = 'its config.json does not tell the family' if args.family is None else args.family
        raise InputError(
            f'{args.model!r}: {what}; heads of {", ".join(FAMILIES)} can be looked at',
            field='model',
        )
    is_bert = args.family not in LANGUAGE_MODELS
    described = 'a BERT' if is_bert else 'a language model'
    for name in () if is_bert else OF_BERT:
        if getattr(args, name) is not None:
            raise InputError(f'is not for {described}, which {args.model!r} is', field=name)
    if is_bert and args.task_name is None and args.dev_file is not None:
        args.task_name = 'custom'
    has_data = args.task_name or args.data_dir or args.dev_file or args.try_masking
    args.sentence_alone = bool(args.sentence) and not has_data
    if is_bert:
        args.task_name = args.task_name or (None if args.sentence_alone else 'MRPC')
    elif args.dev_file is None and not args.sentence_alone:
        raise InputError(f'{args.model!r} is {described}: it needs `dev_file`', field='model')
    else:
        check_files(args, 'dev_file')
    if len(args.sentence or ()) > (2 if is_bert else 1):
        raise InputError(
            f'has {len(args.sentence)}, which are too many; put each in quotes', field='sentence'
        )


def length_of(args, model):
    """Return the number of tokens read at a time: `max_length`, or the default for the model."""
    if args.max_length is None:
        args.max_length = min(128, model.context_length)
    if not 2 <= args.max_length <= model.context_length:
        raise InputError(
            f'must be from 2 to {model.context_length}, which the model takes, not '
            f'{args.max_length}',
            field='max_length',
        )
    return args.max_length


def build_classifier(args, ctx):
    """Open BERT with the dev set of a task."""
    settings = ClassificationSettings(
        **{name: getattr(args, name) for name in OF_DATA}, only_inference=True
    )
    task, choice = choose_data(settings), ModelChoice(args)
    task = adopt_labels(task, choice.located, settings.labels, parameters=args.model_parameters)
    model, tokenizer = choice.open_task(
        get_family(args.family).block_class('classification'),
        ctx,
        trains=False,
        num_labels=task.num_labels,
    )
    length = length_of(args, model)
    segment = task.dev_segments[0]
    examples = read_examples(task, args.data_dir, segment)[: args.data_subset]
    features = ClassifierFeatures(tokenizer, task, length)(examples)
    labels = np.array([feature.label for feature in features])
    loader = BucketedLoader(features, args.batch_size, pad_val=tokenizer.pad_token_id, ctx=ctx)
    subject = ClassifierSubject(task, model, tokenizer, loader, labels, args.metric_name)
    logger.info('%s, %s: %d examples', task.name, segment, len(examples))
    return subject


def build_language_model(args, ctx):
    """Open OpenAI GPT or GPT-2 with a text."""
    model, tokenizer = ModelChoice(args).build(LANGUAGE_MODELS[args.family], ctx)
    size = length_of(args, model)
    tokens = tokenizer.encode(read_text(args.dev_file))
    if args.data_subset is not None:
        tokens = tokens[: args.data_subset * (size - 1) + 1]
    loader = BlockLoader(tokens, size, args.batch_size, ctx=ctx)
    name = os.path.basename(args.dev_file)
    subject = LanguageModelSubject(name, model, tokenizer, loader, args.metric_name)
    logger.info('%s: %d tokens', args.dev_file, len(tokens))
    return subject


def build_alone(args, ctx):
    """Open a model without data, to study its backbone alone."""
    head = LANGUAGE_MODELS.get(args.family)
    if head is not None:
        return OneSentence(*ModelChoice(args).build(head, ctx))
    base = get_family(args.family).base
    # the attentions are the last output if nothing follows the layers
    nothing_more = {f'use_{part}': False for part in base.optional_parts}
    return SentencePair(*ModelChoice(args).build(base, ctx, **nothing_more))


def draw_attention(args, folder, task, ctx):
    """Write a picture for each layer; returns an entry for results.json."""
    inputs, tokens = task.encode(args.sentence, length_of(args, task.model), ctx)
    names = []
    for layer, attention in enumerate(analysis.attention_of(task.model, *inputs)):
        names.append(f'attention_{layer}.png')
        analysis.plot_attention(
            folder.file(names[-1]),
            attention[0],
            tokens,
            [f'head {head}' for head in task.model.config.kept_heads(layer)],
            f'layer {layer}: a row for each token that looks, a column for what it looks at',
        )
    return {'tokens': tokens, 'pictures': names}


def nested(values, convert=float):
    return [[None if np.isnan(value) else convert(value) for value in row] for row in values]


def prune(args, folder, task, study, scores, importance):
    """Mask heads and prune them; returns an entry for results.json."""
    result = study.prune(scores, importance, args.masking_threshold, args.masking_amount)
    path = folder.file('pruned_model')
    save_trained(path, task.model, task.tokenizer)
    left, all_heads = result['after']['heads'], result['before']['heads']
    logger.info('%d of %d heads remain; the model is in %s', left, all_heads, path)
    return {**result, 'model': 'pruned_model'}


def compare_with_baseline(args, task, scores, results):
    """Add the scores of a guess to the results; warn if the model isn't or can't be better."""
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
            "`masking_threshold` %g lets the model's %s fall to %.4f, which is not above the "
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
    folder = RunFolder(args, 'log_bertology.txt')
    is_decoder = args.family in LANGUAGE_MODELS
    build = build_language_model if is_decoder else build_classifier
    is_alone = args.sentence_alone
    del args.sentence_alone
    task = (build_alone if is_alone else build)(args, ctx)
    path = folder.file('results.json')
    results = {'attention': draw_attention(args, folder, task, ctx)} if args.sentence else {}
    if is_alone:
        write_results(path, vars(args), **results)
        return
    study = HeadStudy(
        task,
        by_layer=not args.dont_normalize_importance_by_layer,
        overall=not args.dont_normalize_global_importance,
    )
    scores, importance, entropy = study.measure()
    for name, values in (('entropy', entropy), ('importance', importance)):
        analysis.plot_heads(folder.file(f'{name}.png'), values, f'{name}, {task.name}', name)
    results.update(
        scores=scores,
        entropy=nested(entropy),
        importance=nested(importance),
        ranks=nested(rank_heads(importance), int),
    )
    logger.info('scores: %s', scores)
    compare_with_baseline(args, task, scores, results)
    if args.try_masking:
        write_results(path, vars(args), **results)
        results['pruning'] = prune(args, folder, task, study, scores, importance)
    write_results(path, vars(args), **results)


if __name__ == '__main__':
    cli.run_script(main)
