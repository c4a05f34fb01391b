"""Reports of a run: its results, and from them curves, a page, a card and the log's end."""

import ast
import contextlib
import datetime
import functools
import html
import importlib.metadata
import logging
import math
import os
import pathlib
import platform
import re
import shlex
import shutil
import sys

import jinja2
import yaml

from ..checkpoint.readers import kept_sums
from ..util.display import in_number, new_figure, save_figure, short
from ..util.files import atomic_write, make_writable_dir, write_json
from ..util.remote import join

logger = logging.getLogger(__name__)


# our metrics -> what the originals' scripts call them; some have had two names
_NAMES = {
    'accuracy': ('acc', 'eval_accuracy'),
    'loss': ('eval_loss',),
    'matthews': ('mcc',),
    'spearman': ('spearmanr',),
    'mlm_acc': ('masked_lm_accuracy',),
    'mlm_loss': ('masked_lm_loss',),
    'nsp_acc': ('next_sentence_accuracy',),
    'nsp_loss': ('next_sentence_loss',),
}
_MEANS = {'acc_and_f1': ('acc', 'f1'), 'corr': ('pearson', 'spearmanr')}
_FOLDERS = {'dev_mismatched': '-MM'}  # endings of the folders of further dev sets


def write_results(path, args, state=None, **more):
    """Write ``results.json``, whole or not at all, for the state of a training."""
    import gluonnlp
    import mxnet
    import numpy

    versions = {library.__name__: library.__version__ for library in (mxnet, numpy, gluonnlp)}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # a bare checkout
        versions['gluon-transformer-zoo'] = importlib.metadata.version('gluon-transformer-zoo')
    results = {'args': args, 'versions': {'python': platform.python_version(), **versions}}
    if state is not None:
        results['training'] = {
            'steps': state.step,
            'seconds': state.seconds,
            f'{state.unit}_per_second': state.examples / state.seconds if state.seconds else None,
            'best_epoch': state.best['epoch'] if state.best else None,
            'epochs': state.epochs,
            'log': state.log,
        }
    results.update(more)
    write_json(path, results)
    return results


def write_eval_results(folder, report, record=None):
    """Write ``eval_results.txt`` as the originals' scripts do: a line ``name = number`` per metric.

    The metrics have the names of Google's and pytorch-pretrained-BERT's scripts: ``eval_accuracy``
    and ``acc``, ``eval_loss``, ``f1``, ``acc_and_f1``, ``mcc``, ``corr``; ``global_step``, and
    ``loss``, the mean loss of the training, or without one, and of pre-training, the dev set's.
    A second dev set has its own folder: MNLI's mismatched one is in ``FOLDER-MM``. `record` is the
    training's record of the epoch.
    """
    record = record or {}
    for number, (segment, metrics) in enumerate(report.items()):
        values = {}
        for name, value in metrics.items():
            if not name.endswith('_per_second'):
                values.update(dict.fromkeys(_NAMES.get(name, (name,)), value))
        for name, parts in _MEANS.items():
            if values.keys() >= set(parts):
                values[name] = sum(values[part] for part in parts) / len(parts)
        values['global_step'], loss = record.get('step', 0), record.get('train_loss')
        if 'masked_lm_loss' in values:
            loss = values['masked_lm_loss'] + values.get('next_sentence_loss', 0)
        loss = values.get('eval_loss') if loss is None else loss
        if loss is not None:
            values['loss'] = loss
        target = folder
        if number:
            target = make_writable_dir(folder.rstrip(os.sep) + _FOLDERS.get(segment, f'-{segment}'))
        with atomic_write(os.path.join(target, 'eval_results.txt')) as file:
            file.writelines(f'{name} = {value}\n' for name, value in sorted(values.items()))


# -- curves ----------------------------------------------------------------------------------------


def dev_loss(record):
    """Return the loss of an epoch's first dev set, or None."""
    metrics = next(iter(record['report'].values()), {})
    parts = [metrics[name] for name in ('mlm_loss', 'nsp_loss') if name in metrics]
    return metrics.get('loss', sum(parts) if parts else None)


def _charts(results):
    """Return the lines and the dashed levels of the charts of loss and score."""
    metric, training = results['description']['metric'], results['training']
    if results['description'].get('fitted'):
        return []
    epochs = training['epochs']
    log = [(record['step'], record['loss']) for record in training['log']]
    losses = [(record['step'], dev_loss(record), record['epoch']) for record in epochs]
    losses = [point for point in losses if point[1] is not None]
    scores = [(record['step'], record['score'], record['epoch']) for record in epochs if metric]
    line = {'name': 'training', 'color': 'train', 'points': log}
    lines = [line, {'name': 'dev set', 'color': 'dev', 'points': losses}]
    score = {'name': metric, 'color': 'dev', 'points': scores}
    simpler, decimals = _simpler(results).items(), _decimals(results)
    known = [(name, values[metric]) for name, values in simpler if metric in values]
    levels = [{'name': f'{name} {short(v, decimals)}', 'value': v} for name, v in known]
    title = f'Dev set: {metric}' if metric else ''
    of_score = {'title': title, 'lines': [score], 'levels': levels}
    return [{'title': 'Loss', 'lines': lines, 'levels': []}, of_score]


def plot_curves(path, results):
    """Draw the losses and the score by updates to a PNG file."""
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(10, 4, layout=None)  # to find one takes as long as to draw
    for axes, chart in zip(figure.subplots(1, 2), _charts(results)):
        for line in filter(lambda line: line['points'], chart['lines']):
            steps, values, *_ = zip(*line['points'])
            is_dev = line['color'] == 'dev'
            style = {'color': 'C1' if is_dev else 'C0', 'label': line['name']}
            # a line through one point can't be seen, and one through a few hides where they are
            axes.plot(steps, values, marker='o' if is_dev or len(steps) <= 20 else None, **style)
        for level in chart['levels']:
            axes.axhline(level['value'], linestyle='--', color='grey', label=level['name'])
        if len(axes.lines) > 1:
            axes.legend()
        axes.set(xlabel='updates', ylabel=chart['title'])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.grid(alpha=0.3)
    figure.suptitle(_visible(results['description']['title']), parse_math=False)
    save_figure(path, figure)


# -- page, card and log ----------------------------------------------------------------------------


def write_report(folder, results, is_final=False):
    """Write ``report.html``; at the end also ``curves.png`` and the model's card.

    Parameters
    ----------
    folder : str
        Folder of the run; at the end it has ``best_model/``.
    results : dict
        The content of ``results.json``. Its ``description`` has

        - ``title``, and ``metric``, the score that chose the best epoch and leads, or None
        - ``fitted``, what was fitted instead of a training by updates, or None
        - ``base``, the model that the training began with; ``sizes``, each set's number of
          ``unit``, such as rows; and ``labels``, or None
        - ``use``, a task of `model_zoo.pipeline`, or None; ``command``, which uses the model in
          ``{folder}``; ``call``, an argument of the pipeline in Python; and ``example``, for the
          card's ``widget``, if there is a call
        - ``location``, the path or URL of the folder after the run

        Its ``examination`` has for each segment what `Task.analyze` found, and ``baselines`` what
        `Task.compare` did. Its ``warnings`` of the data may quote rows, so that only the page, and
        not the card, which may be published, shows them.
    """
    with atomic_write(os.path.join(folder, 'report.html')) as file:
        file.write(_render('report.html', results, is_final=is_final, charts=_charts(results)))
    if is_final:
        has_curves = not results['description'].get('fitted')
        curves, model = os.path.join(folder, 'curves.png'), os.path.join(folder, 'best_model')
        if has_curves:
            plot_curves(curves, results)
        card = os.path.join(model, 'README.md')
        with kept_sums(model, begin=True) as written, atomic_write(card) as file:
            if has_curves:
                written.append(os.path.join(model, 'curves.png'))
                with atomic_write(written[-1], None) as copy:
                    shutil.copyfile(curves, copy)
            written.append(card)
            file.write(_render('card.md', results, has_curves=has_curves))
        log_summary(folder, results)


def log_summary(folder, results):
    """Log the summary at the end of a run."""
    names = ('report.html', 'results.json', 'settings.yaml', 'curves.png', 'best_model')
    names = (*names, *(results.get('predictions') or ()))
    files = [name for name in names if os.path.exists(os.path.join(folder, name))]
    for line in _render('summary.txt', results, files=files).splitlines():
        logger.info('%s', line)


def _render(name, results, **more):
    description, training = results['description'], results['training']
    segment, examined = _first_examination(results)
    metric, epoch, simpler = description['metric'], results['best']['epoch'], _simpler(results)
    value, decimals = results['best'].get(segment, {}).get(metric), _decimals(results)
    levels = {name: values[metric] for name, values in simpler.items() if metric in values}
    better = [name for name in levels if value is not None and levels[name] >= value]
    more.update(segment=segment, examined=examined, simpler=simpler, levels=levels, better=better)
    more.update(caution=_caution(results), decimals=decimals)
    more['chosen'] = explain_choice(training['epochs'], epoch, metric, decimals)
    model = shlex.quote(join(description['location'], 'best_model'))
    return _environment().get_template(name).render(**results, **more, model=model)


@functools.cache
def _environment():
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(pathlib.Path(__file__).with_name('templates')),
        autoescape=jinja2.select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        short=short, plain=_plain, scores=_scores, with_path=with_path, in_number=in_number
    )
    environment.filters.update(
        yaml=functools.partial(yaml.safe_dump, allow_unicode=True, width=math.inf, sort_keys=False),
        quote=lambda text: f'"{text}"' if text else '(none)',
        duration=lambda seconds: str(datetime.timedelta(seconds=round(seconds))),
    )
    return environment


def explain_choice(epochs, best, metric, decimals=4):
    """Return which epoch's parameters are the result, and why.

    `epochs` has the records of a training, `best` is the number of one; `metric` is as in
    `write_report`.
    """
    text = f'epoch {best} of {len(epochs)}'
    if metric is None:
        return text
    kept = next(record for record in epochs if record['epoch'] == best)
    equal = sum(record['score'] == kept['score'] for record in epochs)
    text += f', the best by {metric}, {short(kept["score"], decimals)}'
    if equal > 1:
        text += f', and of {equal} equal ones the '
        text += 'first' if dev_loss(kept) is None else 'one with the lowest loss'
    return text


#: the report warns if the accuracy's range is wider than the first; or if the share of errors may
#: be more than the second, and more than twice the share that was seen
WIDE, MANY = 0.1, 0.02

#: scores that are a share of the examples -> what all of them are
_SHARES = {'accuracy': 1, 'exact_match': 100, 'exact': 100}


def describe_training(trainer):
    """Return the description of a training that `write_report` takes."""
    task, dev = trainer.task, trainer.evaluator.dev_sets
    mask, own = trainer.tokenizer.mask_token or '', trainer.settings.example
    call = task.call.replace('{mask}', mask)
    sizes = {name: len(data.rows) for name, data in trainer.sets.items() if task.unit}
    return {
        'title': trainer.title,
        'metric': task.score_name if dev else None,
        'fitted': task.fitted,
        'base': task.base,
        'sizes': dict(sorted(sizes.items(), key=lambda item: item[0] != 'train')),
        'unit': task.unit,
        'labels': task.labels and list(task.labels),
        'use': task.use,
        'command': task.command.replace('{mask}', mask),
        'call': call,
        'example': call and example_for(call, own),
        'location': trainer.folder.location(),
    }


def example_for(call, own=None):
    """Return the example of a card, which may be published: of a pipeline's argument, or `own`.

    `call` is the argument in Python, neutral texts. The parts of an example of the user's `own`
    replace them, in their order; tabs are between them.
    """
    usual = ast.literal_eval(call)
    if not isinstance(usual, dict):
        texts = [usual] if isinstance(usual, str) else usual
        usual = dict(zip(('text', 'text_pair'), texts))
    parts = () if own is None else own.split('\t')
    example = {**usual, **dict(zip(usual, parts))}
    if 'choices' in usual and len(parts) > 1:
        example['choices'] = parts[1:]
    return example


def _caution(results):
    """Return how far chance may move the accuracy, by Wilson's interval; None if it is little."""
    from scipy.stats import binomtest

    segment, examined = _first_examination(results)
    scores, count = results['best'].get(segment, {}), examined.get('examples')
    name = next(filter(scores.__contains__, _SHARES), None)
    if not count or name is None:
        return None
    whole, right = _SHARES[name], scores[name] / _SHARES[name]
    found = binomtest(round(right * count), count).proportion_ci(method='wilson')
    if found.high - found.low <= WIDE and 1 - found.low <= max(2 * (1 - right), MANY):
        return None
    places = 2 if whole == 1 else 0
    low, high = (f'{end * whole:.{places}f}' for end in (found.low, found.high))
    return (
        f'the {segment} set has only {in_number(count, "examples")}: on others {name} may '
        f'be from {low} to {high} (95 % range)'
    )


def _first_examination(results):
    """Return the examined segment and the findings; None and {} if none was examined."""
    return next(iter((results.get('examination') or {}).items()), (None, {}))


def _simpler(results):
    """Return the scores of the best guess and of simpler models on the dev set, by name."""
    segment, examined = _first_examination(results)
    of_sets, found = results.get('baselines') or {}, {}
    if examined.get('baseline'):
        found[f'always "{examined["guess"]}"'] = examined['baseline']
    return {**found, **of_sets.get(segment or next(iter(of_sets), None), {})}


def _decimals(results):
    """Return how many decimals a score has on as many examples as the dev set's."""
    count = _first_examination(results)[1].get('examples')
    return min(max(len(str(count)), 2), 4) if count else 4


def _scores(metrics):
    return {
        name: value
        for name, value in metrics.items()
        if isinstance(value, (int, float)) and not name.endswith('_per_second')
    }


def _plain(text):
    """Return text for a line of Markdown: nothing in it is markup, no character is invisible."""
    text = html.escape(_visible(str(text)), quote=False)
    return re.sub(r'[\\`*\[\]#|]|(?<!\w)_|_(?!\w)', r'\\\g<0>', text).replace('~', '&#126;')


def _visible(text):
    """Return text in one line, with escapes instead of invisible characters."""
    text = ' '.join(text.split())
    return ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def with_path(command):
    """Return a command with the program's path where the shell doesn't find it, to be pasted."""

    def path_of(match):
        path = os.path.join(os.path.dirname(sys.executable), match[1])
        if shutil.which(match[1]) == path or not os.path.isfile(path):
            return match[0]
        return f'{shlex.quote(path)} '

    return re.sub(r'\b(zoo|python) ', path_of, command, count=1)
