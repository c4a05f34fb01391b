"""Run recipes: trainings of known data, with the scores that are expected of them.

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
import logging
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Dict

from model_zoo.app import cli
from model_zoo.app.recipes import (
    RECORD,
    Recipe,
    Summary,
    check_scores,
    list_recipes,
    open_recipe,
    summarize,
    table,
)
from model_zoo.errors import InputError, ZooError
from model_zoo.util.files import make_writable_dir, read_json, write_json

logger = logging.getLogger('run')

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ('transformers',)
FINISHED, SUMMARY, CHECKPOINTS = 'run.json', 'results.json', 'checkpoints'


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('recipes', nargs='*', metavar='RECIPE', help='name, or path of a JSON file')
    add('--data_dir', default='data', help="folder of the recipes' data")
    add('--output_dir', default='output_dir/recipes')
    add('--seeds', help="as 1,2,3; default: the recipe's")
    add('--peer', choices=PEERS, help='train in this implementation instead of ours')
    add('--peer_python', help='Python of an environment that has it; default: the one in use')
    add('--list', action='store_true', help="print the recipes' names and titles")
    add('--table', metavar='DIR', help='print the table of an --output_dir, or of its results.json')
    args = parser.parse_args(argv)
    if not (args.recipes or args.list or args.table):
        raise InputError('give recipes, as mrpc; --list shows all')
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
        raise KeyboardInterrupt('the same command goes on')
    if status:
        raise ZooError(f'{" ".join(words)} ended with status {status}; the same command goes on')


def read_summary(place):
    path = os.path.join(place, SUMMARY) if os.path.isdir(place) else place
    if not os.path.isfile(path):
        raise InputError(f'--table {place!r}: there are no results; zoo run RECIPE makes them')
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
    sys.exit(cli.run(main))
