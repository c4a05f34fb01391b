"""Recipes as data: what a file may say, the command line it makes, and the summary of results."""

import json

import pytest
from script_runs import load_script

from model_zoo.errors import InputError, UnknownNameError, ZooError

RUN = load_script('run')
CONTENT = {
    'title': 'Toy',
    'script': 'finetune_classifier',
    'flags': {'task_name': 'custom', 'text_columns': [0, 1], 'from_scratch': True, 'lr': 0.001},
    'data': {'vocab_file': 'vocab.txt', 'train_file': {'file': 'all.tsv', 'lines': [0.5, 1]}},
    'seeds': [1, 2],
    'scores': {'accuracy': {'expected': 0.9, 'tolerance': 0.05}, 'loss': {}},
}


def recipe(**changes):
    return RUN.Recipe('toy', **{**CONTENT, **changes})


def record(accuracy, seed=1, who='ours'):
    scores = {'accuracy': accuracy, 'loss': 12.5}
    return {'who': who, 'seed': seed, 'scores': scores, 'epoch': 2, 'seconds': 3.0}


@pytest.mark.parametrize('lines', [[0, 1e308], [0.8, 0.2], [-1, 1], [0, float('nan')]])
def test_lines_are_parts_of_a_file(lines):
    with pytest.raises(InputError, match='the lines of train_file'):
        recipe(data={'train_file': {'file': 'all.tsv', 'lines': lines}})


def test_arguments(tmp_path):
    (tmp_path / 'all.tsv').write_text('a\nb\nc\nd\n')
    words = recipe().arguments(7, tmp_path, tmp_path / 'out')
    part = tmp_path / 'out' / 'toy' / 'data' / 'train_file.tsv'
    assert words == [
        '--task_name', 'custom', '--text_columns', '0', '1', '--from_scratch', '--lr', '0.001',
        '--vocab_file', str(tmp_path / 'vocab.txt'), '--train_file', str(part), '--seed', '7',
    ]  # fmt: skip
    assert part.read_text() == 'c\nd\n'


def test_a_recipe_that_needs_another(tmp_path):
    needing = recipe(data={}, needs={'teacher': 'big'})
    with pytest.raises(InputError, match='toy needs seed 3 of big: run that first'):
        needing.arguments(3, tmp_path, tmp_path)
    model = tmp_path / 'big' / 'ours' / 'seed-3' / 'best_model'
    model.mkdir(parents=True)
    assert needing.arguments(3, tmp_path, tmp_path)[-4:-2] == ['--teacher', str(model)]


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'seed': 1}, 'has unknown seed'),
        ({'name': 'x'}, 'has unknown name'),
        ({'script': '../x'}, "script can't be '../x'"),
        ({'seeds': 3}, "seeds can't be 3"),
        ({'flags': None}, "flags can't be None"),
        ({'data': {'../../x': 'a'}}, "the name of a flag or recipe can't be '../../x'"),
        ({'needs': {'teacher': '../x'}}, "the name of a flag or recipe can't be '../x'"),
        ({'data': {'x': {'file': 'a.txt', 'lines': [0]}}}, "data: x: lines must have 2 values"),
        ({'data': {'x': {'file': 'a.txt', 'lines': [0, '1']}}}, "data: x: lines: item 1 can't be"),
        ({'data': {'x': 3}}, "data: x can't be 3: a text or an object is expected"),
        ({'scores': {'f1': {'expected': 1}}}, 'f1 has expected, and expected and tolerance'),
        ({'scores': {'f1': {'expected': 'x', 'tolerance': 1}}}, "scores: f1: expected can't be"),
    ],
)
def test_files_that_are_no_recipes(tmp_path, changes, message):
    path = tmp_path / 'toy.json'
    path.write_text(json.dumps({**CONTENT, **changes}))
    with pytest.raises(InputError, match=message):
        RUN.open_recipe(str(path), tmp_path)


def test_opening(tmp_path):
    path = tmp_path / 'toy.json'
    path.write_text(json.dumps(CONTENT))
    assert RUN.open_recipe('toy', tmp_path) == RUN.open_recipe(str(path), tmp_path) == recipe()
    with pytest.raises(UnknownNameError, match="unknown recipe 'tay'.*toy"):
        RUN.open_recipe('tay', tmp_path)
    path.write_text('{}')
    with pytest.raises(InputError, match='lacks title, script, flags, data, seeds'):
        RUN.open_recipe('toy', tmp_path)


def test_summary_and_table():
    records = [record(0.875), record(0.9375, 2), record(0.5, 1, 'transformers')]
    summary = RUN.summarize([(recipe(), each) for each in records])
    accuracy = summary['toy']['scores']['accuracy']
    assert accuracy['ours'] == {
        'mean': 0.90625, 'spread': pytest.approx(0.0442, abs=1e-4), 'values': [0.875, 0.9375]
    }  # fmt: skip
    assert accuracy['transformers'] == {'mean': 0.5, 'spread': None, 'values': [0.5]}
    assert RUN.table(summary) == (
        '=======  ========  =================  ============\n'
        'recipe   score     ours               transformers\n'
        '=======  ========  =================  ============\n'
        '``toy``  accuracy  0.906 ± 0.044 (2)  0.500\n'
        '``toy``  loss      12.5 ± 0.0 (2)     12.5\n'
        '=======  ========  =================  ============\n'
    )


def test_scores_are_checked():
    good = RUN.summarize([(recipe(), record(0.875)), (recipe(), record(0.2, 1, 'transformers'))])
    RUN.check_scores([recipe()], good)  # the peer's may be what they are
    bad = RUN.summarize([(recipe(), record(0.875)), (recipe(), record(0.8, 2))])
    with pytest.raises(ZooError, match='^toy, seed 2: accuracy 0.8 is not 0.9 within 0.05$'):
        RUN.check_scores([recipe()], bad)
    with pytest.raises(ZooError, match='accuracy nan'):  # nothing is within of it
        RUN.check_scores([recipe()], RUN.summarize([(recipe(), record(float('nan')))]))
