"""Run recipes: training runs with known data and expected scores.

    zoo run mrpc cola --data_dir data --output_dir output_dir/recipes
    zoo run mrpc --peer transformers --seeds 1,2,3
    zoo run --table output_dir/recipes

A recipe is a JSON file: one of ``scripts/recipes/`` by its name, or a path. It names a script, its
arguments, the files of ``--data_dir``, seeds, and scores with tolerances. Each seed is trained by a
process, in the folder ``RECIPE/ours/seed-1``. A finished seed is skipped and has no checkpoints any
more; one that was stopped continues from its newest checkpoint. ``--peer`` trains the same recipe
in another implementation, from the same weights, on the same batches. ``results.json`` has all
scores with mean and spread; ``--table`` prints them in reStructuredText.
"""

import dataclasses
import itertools
import logging
import numbers
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
from typing import Dict, List, Optional, Tuple, Union

from model_zoo.app import cli
from model_zoo.errors import InputError, UnknownNameError, ZooError
from model_zoo.util.files import atomic_write, make_writable_dir, write_json
from model_zoo.util.reading import check_json, read_json, read_lines

logger = logging.getLogger('run')

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ('transformers',)
FINISHED, SUMMARY, CHECKPOINTS = 'run.json', 'results.json', 'checkpoints'


#: metric -> what the table calls it
METRICS = {'matthews': 'Matthews', 'pearson': 'Pearson', 'spearman': 'Spearman', 'f1': 'F1',
           'exact_match': 'EM', 'exact': 'EM'}  # fmt: skip


@dataclasses.dataclass
class _Part:
    """A part of a file of data."""

    file: str
    lines: Tuple[float, float]


@dataclasses.dataclass
class _Score:
    mean: numbers.Real
    spread: Optional[numbers.Real]
    values: List[numbers.Real]


@dataclasses.dataclass
class Summary:
    """What `summarize` tells of a recipe."""

    title: str
    scores: Dict[str, Dict[str, Union[numbers.Real, _Score]]]
    runs: Dict[str, dict]


#: of the file of a finished seed, beside the recipe
RECORD = {'who': str, 'seed': int, 'scores': Dict[str, numbers.Real], 'epoch': int}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A training as data: the content of a recipe's file.

    Of `flags` a list is several values, and true a flag without one. `data` has a flag's path in
    the folder of the data, or ``{'file': path, 'lines': [0, 0.8]}``: the lines of a file from one
    part of their number to another. `scores` has a metric of the dev set with ``{'expected':
    number, 'tolerance': number}``; an empty one has no expectation. `needs` has a flag with another
    recipe, whose best model of the same seed is its value.
    """

    name: str
    title: str
    script: str
    flags: Dict[str, object]
    data: Dict[str, Union[str, _Part]]
    seeds: List[int]
    scores: Dict[str, Dict[str, float]] = dataclasses.field(default_factory=dict)
    needs: Dict[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        for name in (self.script, *self.flags, *self.data, *self.needs, *self.needs.values()):
            if not re.fullmatch(r'\w+', name):  # they become parts of paths
                what = 'script' if name == self.script else 'the name of a flag or recipe'
                raise InputError(f"the recipe {self.name!r}: {what} can't be {name!r}")
        for flag, value in self.data.items():
            lines = [0, 1] if isinstance(value, str) else value['lines']
            if not 0 <= lines[0] <= lines[1] <= 1:
                raise InputError(
                    f'the recipe {self.name!r}: the lines of {flag} go from one part of the file '
                    f'to another, as [0, 0.8]; not {lines}'
                )
        for metric, wanted in self.scores.items():
            if wanted and wanted.keys() != {'expected', 'tolerance'}:
                raise InputError(
                    f'the recipe {self.name!r}: the score {metric} has {", ".join(wanted)}, and '
                    'expected and tolerance are wanted'
                )

    @property
    def training(self):
        """What decides the trained model: script, flags, data, and the recipes it needs."""
        fields = ('script', 'flags', 'data', 'needs')
        return {field: getattr(self, field) for field in fields}

    def check_data(self, data_dir):
        """Raise InputError if a file of the data isn't there."""
        for value in self.data.values():
            path = os.path.join(data_dir, value if isinstance(value, str) else value['file'])
            if not os.path.exists(path):
                raise InputError(f'the recipe {self.name} needs {path!r}: see --data_dir')

    def arguments(self, seed, data_dir, output_dir):
        """The script's arguments, but for its ``--output_dir``; parts of files are written."""
        words = []
        for flag, value in self.flags.items():
            words += _words(flag, value)
        for flag, value in self.data.items():
            if isinstance(value, str):
                path = os.path.join(data_dir, value)
            else:
                path = self._part(flag, value, data_dir, output_dir)
            words += _words(flag, path)
        for flag, recipe in self.needs.items():
            model = os.path.join(output_dir, recipe, 'ours', f'seed-{seed}', 'best_model')
            if not os.path.isdir(model):
                raise InputError(
                    f'the recipe {self.name} needs seed {seed} of {recipe}: run that first, into '
                    'the same --output_dir'
                )
            words += _words(flag, model)
        return [*words, *_words('seed', seed)]

    def _part(self, flag, value, data_dir, output_dir):
        lines = [line for _, line in read_lines(os.path.join(data_dir, value['file']))]
        first, last = (round(share * len(lines)) for share in value['lines'])
        folder = os.path.join(output_dir, self.name, 'data')
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, flag + os.path.splitext(value['file'])[1])
        with atomic_write(path) as file:
            file.writelines(lines[first:last])
        return path

    def record(self, results):
        """What is kept of a finished training's ``results.json``."""
        training, best = results['training'], results['best']
        metrics = next(value for value in best.values() if isinstance(value, dict))
        lacking = [name for name in self.scores if name not in metrics]
        if lacking:
            known = ', '.join(name for name, value in metrics.items() if isinstance(value, float))
            raise InputError(
                f'the recipe {self.name} has scores of {", ".join(lacking)}, and the training has '
                f'{known}; its model is there: correct the recipe, and the same command continues'
            )
        return {
            'scores': {name: metrics[name] for name in self.scores},
            'epoch': best['epoch'],
            'seconds': training['seconds'],
        }


def _words(flag, value):
    if value is True:
        return [f'--{flag}']
    values = value if isinstance(value, list) else [value]
    return [f'--{flag}', *map(str, values)]


def list_recipes(folder):
    return sorted(path.stem for path in pathlib.Path(folder).glob('*.json'))


def open_recipe(name, folder):
    path = pathlib.Path(name)
    if path.suffix != '.json':
        known = list_recipes(folder)
        UnknownNameError.check('recipe', name, known)
        path = pathlib.Path(folder) / f'{name}.json'
    content, origin = read_json(path, 'the recipe', dict), f'the recipe {str(path)!r}'
    if 'name' in content:
        raise InputError(f'{origin} has unknown name: it is called as its file')
    try:
        check_json({'name': path.stem, **content}, Recipe, origin)
    except ValueError as error:
        raise InputError(str(error)) from error
    return Recipe(path.stem, **content)


def summarize(records):
    """Bring the records of seeds together."""
    summary = {}
    ordered = sorted(records, key=lambda pair: pair[0].name)
    for name, group in itertools.groupby(ordered, lambda pair: pair[0].name):
        group = list(group)
        recipe = group[0][0]
        runs = {}
        for _, record in group:
            result = {key: record[key] for key in ('scores', 'epoch')}
            runs.setdefault(record['who'], {})[str(record['seed'])] = result
        scores = {}
        for metric, wanted in recipe.scores.items():
            means = {who: _mean(metric, seeds) for who, seeds in runs.items()}
            scores[metric] = {**wanted, **means}
        summary[name] = {'title': recipe.title, 'scores': scores, 'runs': runs}
    return summary


def _mean(metric, runs):
    values = [run['scores'][metric] for run in runs.values()]
    spread = statistics.stdev(values) if len(values) > 1 else None
    return {'mean': statistics.mean(values), 'spread': spread, 'values': values}


def check_scores(recipes, summary):
    """Raise ZooError, naming them, if scores of ours aren't what is expected."""
    wrong = []
    for recipe in recipes:
        for seed, run in summary[recipe.name]['runs'].get('ours', {}).items():
            for metric, wanted in recipe.scores.items():
                score = run['scores'][metric]
                if wanted and not abs(score - wanted['expected']) <= wanted['tolerance']:
                    wrong.append(
                        f'{recipe.name}, seed {seed}: {metric} {score:.4g} is not '
                        f'{wanted["expected"]:g} within {wanted["tolerance"]:g}'
                    )
    if wrong:
        raise ZooError('; '.join(wrong))


def table(summary):
    """The result of `summarize` as a table in reStructuredText."""
    peers = sorted({who for recipe in summary.values() for who in recipe['runs']} - {'ours'})
    rows = [('recipe', 'score', 'ours', *peers)]
    for name, recipe in summary.items():
        for metric, score in recipe['scores'].items():
            label = METRICS.get(metric, metric.replace('_', ' '))
            cells = (_cell(score.get(who)) for who in ('ours', *peers))
            rows.append((f'``{name}``', label, *cells))
    widths = [max(map(len, column)) for column in zip(*rows)]
    line = '  '.join('=' * width for width in widths)
    cells = ['  '.join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return '\n'.join([line, cells[0], line, *cells[1:], line]) + '\n'


def _cell(score):
    if not isinstance(score, dict):  # it wasn't reached by this one
        return ''
    mean, spread, count = score['mean'], score['spread'], len(score['values'])
    digits = 3 if abs(mean) <= 1 else 1
    if spread is None:
        return f'{mean:.{digits}f}'
    return f'{mean:.{digits}f} ± {spread:.{digits}f} ({count})'


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('recipes', nargs='*', metavar='RECIPE', help='name, or path of a JSON file')
    add('--data_dir', default='data', help="folder of the recipes' data")
    add('--output_dir', default='output_dir/recipes')
    add('--seeds', help="such as 1,2,3; default: the recipe's")
    add('--peer', choices=PEERS, help='train with this implementation instead')
    add('--peer_python', help='Python of an environment with that implementation; default: the '
        'current one')
    add('--list', action='store_true', help="print the recipes' names and titles")
    add('--table', metavar='DIR', help='print the table of an --output_dir, or of its results.json')
    args = parser.parse_args(argv)
    if not (args.recipes or args.list or args.table):
        raise InputError('give recipes, such as mrpc; --list shows all')
    if args.peer_python and not args.peer:
        raise InputError('--peer_python needs --peer')
    args.seeds = None if args.seeds is None else parse_seeds(args.seeds)
    return args


def parse_seeds(text):
    try:
        seeds = [int(word) for word in text.split(',')]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0:
        raise InputError(f'--seeds {text!r}: give numbers from 0 up, as 1,2,3')
    return seeds


def train(recipe, seed, args):
    """Train one seed to its end, unless that has been done."""
    who = args.peer or 'ours'
    folder = os.path.join(args.output_dir, recipe.name, who, f'seed-{seed}')
    path = os.path.join(folder, FINISHED)
    if os.path.exists(path):
        trained = Recipe(**read_json(path, shape={'recipe': Recipe})['recipe'])
        if trained.training != recipe.training:
            raise InputError(
                f'{folder!r} was trained by another version of the recipe: name another '
                '--output_dir, or remove it'
            )
        logger.info('%s, %s, seed %d: finished before', recipe.name, who, seed)
        return
    logger.info('%s, %s, seed %d: %s', recipe.name, who, seed, folder)
    run_process([*command(recipe, args), *recipe.arguments(seed, args.data_dir, args.output_dir),
                 *output_arguments(folder)])  # fmt: skip
    results = read_json(os.path.join(folder, 'results.json'))
    record = {'recipe': dataclasses.asdict(recipe), 'seed': seed, 'who': who}
    write_json(path, {**record, **recipe.record(results)})
    shutil.rmtree(os.path.join(folder, CHECKPOINTS), ignore_errors=True)  # of no use any more


def command(recipe, args):
    if args.peer is None:
        return [sys.executable, str(HERE / f'{recipe.script}.py')]
    peer = str(HERE / 'benchmark' / 'peer_training.py')
    return [args.peer_python or sys.executable, peer, recipe.script]


def output_arguments(folder):
    """Go on with what is there, or replace it where it can't be gone on with."""
    checkpoints = os.path.join(folder, CHECKPOINTS)
    begun = os.path.isdir(checkpoints) and any(
        name.startswith('step-') for name in os.listdir(checkpoints)
    )
    return ['--output_dir', folder, '--resume' if begun else '--overwrite_output_dir']


def run_process(words):
    environment = {**os.environ}
    paths = [str(HERE.parent), *filter(None, [environment.get('PYTHONPATH')])]
    if (HERE.parent / 'model_zoo').is_dir():  # a clone; the installed scripts find it by themselves
        environment['PYTHONPATH'] = os.pathsep.join(paths)
    process = subprocess.Popen(words, env=environment)
    try:
        status = process.wait()
    except BaseException:  # Ctrl-C goes to both; the training saves a checkpoint
        process.terminate()
        process.wait()
        raise
    if status == 130:
        raise KeyboardInterrupt('run the same command to continue')
    if status:
        raise ZooError(f'{" ".join(words)} ended with status {status}; the same command continues')


def read_summary(folder):
    path = os.path.join(folder, SUMMARY) if os.path.isdir(folder) else folder
    if not os.path.isfile(path):
        raise InputError(f'--table {folder!r}: no results there; run zoo run RECIPE first')
    return read_json(path, shape=Dict[str, Summary])


def collect(output_dir):
    """The recipe and the record of each seed that has finished, for `summarize`."""
    records = []
    for path in sorted(pathlib.Path(output_dir).glob(f'*/*/seed-*/{FINISHED}')):
        record = read_json(path, shape={'recipe': Recipe, **RECORD})
        records.append((Recipe(**record['recipe']), record))
    return records


def main(argv=None):
    args = parse_arguments(argv)
    cli.setup_logging()
    if args.list:
        for name in list_recipes(HERE / 'recipes'):
            print(f'{name:20} {open_recipe(name, HERE / "recipes").title}')
        return
    if args.table:
        print(table(read_summary(args.table)), end='')
        return
    recipes = [open_recipe(name, HERE / 'recipes') for name in args.recipes]
    for recipe in recipes:
        if not (HERE / f'{recipe.script}.py').is_file():
            raise InputError(f'the recipe {recipe.name}: there is no script {recipe.script}')
        recipe.check_data(args.data_dir)
    make_writable_dir(args.output_dir)
    for recipe in recipes:
        for seed in args.seeds or recipe.seeds:
            train(recipe, seed, args)
    summary = summarize(collect(args.output_dir))
    write_json(os.path.join(args.output_dir, SUMMARY), summary)
    print(table({recipe.name: summary[recipe.name] for recipe in recipes}), end='')
    check_scores(recipes, summary)


if __name__ == '__main__':
    cli.run_script(main)
