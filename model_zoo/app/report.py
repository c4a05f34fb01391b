"""What a run reports: results, curves, page, model card, the last lines of its log."""

import contextlib
import dataclasses
import html
import importlib.metadata
import itertools
import json
import logging
import os
import pathlib
import platform
import re
import shlex
import shutil
import string
import sys
import time
from collections.abc import Sequence

from ..checkpoint.readers import kept_sums
from ..util.display import new_figure, save_figure
from ..util.files import atomic_write, make_writable_dir, write_json

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
_FOLDERS = {'dev_mismatched': '-MM'}  # of what isn't the first dev set


def library_versions():
    """Versions of Python and of the libraries that results depend on, by name."""
    import gluonnlp
    import mxnet
    import numpy

    versions = {library.__name__: library.__version__ for library in (mxnet, numpy, gluonnlp)}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # a bare checkout
        versions['gluon-transformer-zoo'] = importlib.metadata.version('gluon-transformer-zoo')
    return {'python': platform.python_version(), **versions}


def write_results(path, args, state=None, **more):
    """Write ``results.json``, whole or not at all."""
    results = {'args': args, 'versions': library_versions()}
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


def write_eval_results(folder, report, step=0, train_loss=None):
    """Write ``eval_results.txt`` as the originals' scripts do: a line ``name = number`` per metric.

    The metrics have the names of Google's and pytorch-pretrained-BERT's scripts: ``eval_accuracy``
    and ``acc``, ``eval_loss``, ``f1``, ``acc_and_f1``, ``mcc``, ``corr``; ``global_step``, and
    ``loss``, the mean loss of the training (without one and of pre-training, of the evaluation).
    A second dev set has its own folder: MNLI's mismatched one is in ``FOLDER-MM``.
    """
    for number, (segment, metrics) in enumerate(report.items()):
        values = {}
        for name, value in metrics.items():
            if not name.endswith('_per_second'):
                values.update(dict.fromkeys(_NAMES.get(name, (name,)), value))
        for name, parts in _MEANS.items():
            if values.keys() >= set(parts):
                values[name] = sum(values[part] for part in parts) / len(parts)
        values['global_step'] = step
        if 'masked_lm_loss' in values:
            values['loss'] = values['masked_lm_loss'] + values.get('next_sentence_loss', 0)
        elif train_loss is not None:
            values['loss'] = train_loss
        elif 'eval_loss' in values:
            values['loss'] = values['eval_loss']
        target = folder
        if number:
            beside = folder.rstrip(os.sep) + _FOLDERS.get(segment, f'-{segment}')
            target = make_writable_dir(beside)
        with atomic_write(os.path.join(target, 'eval_results.txt')) as file:
            file.writelines(f'{name} = {value}\n' for name, value in sorted(values.items()))


FEW_POINTS = 20
#: while a training runs: a picture takes half a second
SECONDS_BETWEEN_PICTURES = 30


class Curves:
    """The picture of a running training."""

    def __init__(self, draw):
        self._draw = draw
        self._drawn = time.monotonic()

    def update(self, state):
        """Draw it again, unless that was done recently or the training has just begun."""
        if time.monotonic() - self._drawn >= SECONDS_BETWEEN_PICTURES:
            self.finish(state)

    def finish(self, *made):
        """Draw it."""
        self._draw(*made)
        self._drawn = time.monotonic()


def loss_points(log):
    """The mean training loss over full log intervals.

    A short interval, as at the end of an epoch, has a noisy mean: neighbouring ones are joined, by
    their numbers of updates. If they still make no full interval, they join the one before.
    """
    steps = [0, *(record['step'] for record in log)]
    sizes = [stop - start for start, stop in itertools.pairwise(steps)]
    full, points, short = max(sizes, default=0), [], []  # lists of (step, loss, updates)
    for record, size in zip(log, sizes):
        if size == full:
            points[-1:] = _joined([*points[-1:], *short])
            short = []
        short = _joined([*short, (record['step'], record['loss'], size)])
        if short[0][2] >= full:
            points, short = points + short, []
    points[-1:] = _joined([*points[-1:], *short])
    return [(step, loss) for step, loss, _ in points]


def _joined(points):
    updates = sum(count for _, _, count in points)
    return [(points[-1][0], sum(p[1] * p[2] for p in points) / updates, updates)] if points else []


def plot_curves(path, state, title='', score_name='score', guess=None):
    """Draw the losses and the score by updates to a PNG file.

    `guess` is what a simple guess is called, and its score.
    """
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(10, 4, layout=None)  # to find one takes as long as to draw
    loss_axes, score_axes = figure.subplots(1, 2)
    points = loss_points(state.log)
    # a line through one point can't be seen, and one through a few hides where they are
    marker = 'o' if len(points) <= FEW_POINTS else None
    loss_axes.plot(*zip(*points), marker=marker, label='training')
    steps = [record['step'] for record in state.epochs]
    losses = [dev_loss(record) for record in state.epochs]
    if steps and None not in losses:
        loss_axes.plot(steps, losses, marker='o', label='dev set')
        loss_axes.legend()
    score_axes.plot(steps, [record['score'] for record in state.epochs], marker='o', color='C1')
    if guess and guess[1] is not None:
        score_axes.axhline(guess[1], linestyle='--', color='grey', label=guess[0])
        score_axes.legend()
    for axes, label in ((loss_axes, 'loss'), (score_axes, score_name)):
        axes.set(xlabel='updates', ylabel=label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.grid(alpha=0.3)
    figure.suptitle(title)
    save_figure(path, figure)


MOST_CLASSES = 12  # of a confusion matrix that fits a terminal
MOST_MISTAKES = 5


def log_summary(results, folder, command, location):
    """Log the summary at the end of a run."""
    for segment, examined in (results.get('examination') or {}).items():
        for line in _examination(segment, results['best'].get(segment, {}), examined):
            logger.info('%s', line)
    names = (
        'report.html',
        'results.json',
        'settings.yaml',
        'curves.png',
        'best_model',
        'checkpoints',
    )
    names = [*names, *(results.get('predictions') or ())]
    logger.info('written to %s:', location)
    for name in names:
        if os.path.exists(os.path.join(folder, name)):
            logger.info('    %s', name)
    if command:
        logger.info('next: %s', re.sub(r'\b(zoo|python) ', _with_path, command, count=1))


def _with_path(match):
    """A program's path where the shell doesn't find it, so that the line can be pasted."""
    path = os.path.join(os.path.dirname(sys.executable), match[1])
    if shutil.which(match[1]) == path or not os.path.isfile(path):
        return match[0]
    return f'{shlex.quote(path)} '


def _quoted(text):
    return f'"{text}"' if text else '(none)'


def _examination(segment, metrics, examined):
    yield f'{segment}: {examined["examples"]} examples'
    for name, value in metrics.items():
        if name in examined['baseline']:
            baseline = examined['baseline'][name]
            yield f'    {name} {value:.4f}; always "{examined["guess"]}": {baseline:.4f}'
    classes = examined['classes']
    if classes is not None and len(classes) <= MOST_CLASSES:
        yield 'confusion matrix (rows: labels, columns: predictions):'
        width = max(6, *(min(len(name), 14) for name in classes))
        yield '    ' + ' ' * width + ''.join(f' {name[:width]:>{width}}' for name in classes)
        for name, row in zip(classes, examined['confusion']):
            cells = ''.join(f' {count:>{width}}' for count in row)
            yield f'    {name[:width]:<{width}}{cells}'
    if examined['mistakes']:
        yield 'worst mistakes (report.html has more):'
    for mistake in examined['mistakes'][:MOST_MISTAKES]:
        yield (
            f'    loss {mistake["loss"]:.2f}, {_quoted(mistake["label"])} predicted as '
            f'{_quoted(mistake["prediction"])}: {mistake["text"][:100]}'
        )


_PAIR = 'pairs'
# pipeline's task, or pairs -> command ('' if there is none), and the pipeline's argument
_USES = {
    'text-classification': ("zoo predict {folder} 'A text.'", "'A text.'"),
    _PAIR: (
        "printf 'A text.\\tAnother.\\n' | zoo predict {folder} --pairs --file -",
        "('A text.', 'Another.')",
    ),
    'question-answering': (
        "zoo ask {folder} --text 'The film was red.' 'What colour was it?'",
        "{'question': 'What colour was it?', 'context': 'The film was red.'}",
    ),
    'token-classification': ("zoo tag {folder} 'A text.'", "'A text.'"),
    'multiple-choice': ('', '{"text": "It rains.", "choices": ["I get wet.", "I am a tree."]}'),
    'sentence-similarity': ('', '("A text.", "Another.")'),
    'fill-mask': ("zoo fill {folder} 'A {mask} text.'", "'A {mask} text.'"),
    'text-generation': ("zoo generate {folder} 'It was'", "'It was'"),
}


@dataclasses.dataclass
class About:
    """What is known of a training's model beside its figures.

    `use` is a task of `model_zoo.pipeline`, or None.
    `base` is the model that the training began with, and `sizes` has each data set's number of
    examples, or of what `unit` says.
    """

    use: str | None
    base: str
    sizes: dict[str, int]
    unit: str = 'examples'
    labels: Sequence[str] | None = None
    takes_pairs: bool = False
    mask: str | None = None

    def uses(self):
        """A command that uses the model, without its folder, and the argument of its pipeline."""
        known = _USES.get(_PAIR if self.takes_pairs else self.use, ('', ''))
        return [text.replace('{mask}', self.mask or '') for text in known]


def next_command(about, folder):
    """A command that uses the model in a folder, or None."""
    command, argument = about.uses()
    if command or not argument:
        return command.replace('{folder}', shlex.quote(folder)) or None
    name = json.dumps(folder, ensure_ascii=False)
    pipeline = f'model_zoo.pipeline({json.dumps(about.use)}, {name})'
    return f'python -c {shlex.quote(f"import model_zoo; print({pipeline}({argument}))")}'


def write_card(folder, title, about, results, metric=None, curves=None):
    """Write ``README.md``, in the Hugging Face hub's format, and the curves beside it."""
    card = os.path.join(folder, 'README.md')
    with kept_sums(folder, begin=True) as written, atomic_write(card) as file:
        if curves is not None:
            shutil.copyfile(curves, os.path.join(folder, 'curves.png'))
            written.append(os.path.join(folder, 'curves.png'))
        written.append(card)
        file.write('\n'.join(_lines(title, about, results, metric, curves is not None)) + '\n')


def _lines(title, about, results, metric, has_curves):
    best, training, args = results['best'], results['training'], results['args']
    task = about.use
    yield from ('---', 'library_name: gluon-transformer-zoo')
    if task:
        yield f'pipeline_tag: {task}'
    yield f'tags: {json.dumps(["mxnet", "gluon"])}'
    yield from ('---', '', f'# {_plain(title)}', '')
    yield (
        f'Trained from {_plain(about.base)} with gluon-transformer-zoo: {training["steps"]} '
        f'updates in {training["seconds"]:.0f} s. These are the parameters of epoch '
        f'{best["epoch"]} of {len(training["epochs"])}'
        f'{f", the best by {metric}" if metric else ""}.'
    )
    yield from ('', '## Data', '', f'| set | {about.unit} |', '|---|---:|')
    yield from (f'| {_plain(name)} | {size:,} |' for name, size in about.sizes.items())
    if about.labels:
        yield from ('', f'Labels: {", ".join(map(_plain, about.labels))}.')
    yield from ('', '## Results', '')
    yield from _metrics(best, results.get('examination') or {})
    if has_curves:
        yield from ('', '![training loss and score](curves.png)')
    if task:
        command, argument = about.uses()
        yield from (
            '',
            '## Use',
            '',
            '```python',
            'import model_zoo',
            '',
            f"pipe = model_zoo.pipeline('{task}', 'best_model')  # the path of this folder",
            f'print(pipe({argument}))',
            '```',
        )
        if command:
            yield from ('', '```console', f'$ {next_command(about, "best_model")}', '```')
    yield from ('', '## Training', '', '| flag | value |', '|---|---|')
    size = 'batch_tokens' if args.get('batch_tokens') else 'batch_size'
    names = (size, 'accumulate', 'epochs', 'lr', 'optimizer', 'wd', 'warmup_ratio', 'seed')
    yield from (f'| `--{name}` | {args[name]} |' for name in names if args.get(name) is not None)
    versions = ', '.join(f'{name} {version}' for name, version in library_versions().items())
    yield from ('', f'Versions: {versions}.')


def _metrics(best, examination):
    """A table of the first sets' figures, beside those of a guess."""
    for segment, metrics in best.items():
        if not isinstance(metrics, dict):
            continue
        examined = examination.get(segment) or {}
        guessed = examined.get('baseline') or {}
        head = f' always "{_plain(examined.get("guess"))}" |' if guessed else ''
        yield from (f'| {_plain(segment)} | this model |{head}', f'|---|---:|{head and "---:|"}')
        for name, value, other in _rows(metrics, guessed):
            cell = '' if other is None else f'{other:.4g}'
            yield f'| {name} | {value:.4g} |' + (f' {cell} |' if guessed else '')
        yield ''


def _plain(text):
    """Text in a line of Markdown: nothing in it is markup, and no character is invisible."""
    text = ' '.join(str(text).split())
    text = ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    text = re.sub(r'[\\`*\[\]#|]|(?<!\w)_|_(?!\w)', r'\\\g<0>', html.escape(text, quote=False))
    return text.replace('~', '&#126;')


def dev_loss(record):
    """The loss of an epoch's first dev set, or None."""
    metrics = next(iter(record['report'].values()), {})
    parts = [metrics[name] for name in ('mlm_loss', 'nsp_loss') if name in metrics]
    return metrics.get('loss', sum(parts) if parts else None)


def write_report_page(path, title, results, metric=None, next_command=None):
    """Write the page, whole or not at all."""
    page = pathlib.Path(__file__).with_name('report_page.html').read_text(encoding='utf-8')
    data = json.dumps(_content(title, results, metric, next_command))  # in ASCII
    for character in '<>&':  # no text in it can end the element of HTML
        data = data.replace(character, f'\\u{ord(character):04x}')
    with atomic_write(path) as file:
        file.write(string.Template(page).substitute(data=data))


def _content(title, results, metric, next_command):
    training, best = results['training'], results['best']
    epochs, examination = training['epochs'], results.get('examination') or {}
    segment, examined = next(iter(examination.items()), (None, {}))
    guessed = examined.get('baseline') or {}
    guess = f'always "{examined.get("guess")}"'
    losses = [(record['step'], dev_loss(record), record['epoch']) for record in epochs]
    tiles = []
    if metric is not None:
        score = max(record['score'] for record in epochs)
        tiles.append((score, f'best {metric}', 'good'))
    if metric in guessed:
        tiles.append((guessed[metric], f'{metric}, {guess}'))
    tiles.append((f'{best["epoch"]} of {len(epochs)}', 'best epoch' if metric else 'epoch'))
    tiles.append((training['steps'], 'updates'))
    tiles.append((_duration(training['seconds']), 'training time'))
    sets = {name: metrics for name, metrics in best.items() if isinstance(metrics, dict)}
    return {
        'title': title,
        'subtitle': 'Training report by gluon-transformer-zoo',
        'tiles': tiles,
        'metric': metric,
        'guess': guess,
        'baseline': guessed.get(metric),
        'train': loss_points(training['log']),
        'dev': [point for point in losses if point[1] is not None],
        'score': [(epoch['step'], epoch['score'], epoch['epoch']) for epoch in epochs if metric],
        'sets': [
            {'name': name, 'rows': _rows(metrics, guessed if name == segment else {})}
            for name, metrics in sets.items()
        ],
        'classes': examined.get('classes'),
        'confusion': examined.get('confusion'),
        'per_class': examined.get('per_class'),
        'mistakes': examined.get('mistakes') or [],
        'next': next_command,
        'args': results['args'],
        'versions': results['versions'],
    }


def _rows(metrics, guessed):
    return [
        (name, value, guessed.get(name))
        for name, value in metrics.items()
        if isinstance(value, (int, float)) and not name.endswith('_per_second')
    ]


def _duration(seconds):
    seconds = round(seconds)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return f'{hours} h {minutes} min'
    return f'{minutes} min {seconds % 60} s' if minutes else f'{seconds} s'
