"""Of run.py."""

import json

from .case import BadInput, named

__all__ = ['RECIPES']


def arguments(data, folder, edit):
    recipe = {'title': 'x', 'script': 'finetune_classifier', 'flags': {}, 'data': {}, 'seeds': [1]}
    files = {
        'LACKS': {'title': 'x'},
        'FILE': {**recipe, 'data': {'train_file': 'none.tsv'}},
        'SCRIPT': {**recipe, 'script': 'no_such'},
        'NEEDS': {**recipe, 'needs': {'teacher': 'big'}},
    }
    paths = {}
    for name, content in files.items():
        path = folder / f'{name.lower()}.json'
        path.write_text(json.dumps(content))
        paths[name] = [path]
    (folder / 'text.json').write_text('no JSON')
    return [*named(edit, **paths), '--output_dir', folder / 'out']


RUN = [
    ([], 'give recipes, such as mrpc'),
    (['mprc'], "unknown recipe 'mprc'.*mrpc"),
    (['none.json'], "cannot read the recipe '.*none.json'"),
    (['text.json'], 'text.json.*not JSON'),
    (['LACKS'], "the recipe '.*lacks.json' lacks script, flags, data, seeds"),
    (['FILE'], "the recipe file needs '.*none.tsv': see --data_dir"),
    (['SCRIPT'], 'the recipe script: there is no script no_such'),
    (['NEEDS'], 'needs seed 1 of big: run that first'),
    (['FILE', '--seeds', '1,x'], "--seeds '1,x': give numbers from 0 up"),
    (['FILE', '--seeds', ''], "--seeds '': give numbers"),
    (['FILE', '--peer_python', 'x'], '--peer_python needs --peer'),
    (['--table', 'nowhere'], "--table 'nowhere': no results"),
]

RECIPES = {'run': BadInput('run', arguments, RUN)}
