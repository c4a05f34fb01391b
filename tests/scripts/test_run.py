"""scripts/run.py: recipes are run, skipped, resumed and checked."""

import json
import os
import pathlib

import pytest
from contract import classifier, killed
from script_runs import ROOT, SCRIPTS, assert_same_model, load_script, read_json, refusal, run

RECIPES = load_script('run').list_recipes(SCRIPTS / 'recipes')


@pytest.fixture
def script():
    return load_script('run')


@pytest.fixture
def inside(script, monkeypatch):
    """Have the trainings run in this process; a list of their arguments."""
    calls = []

    def run_inside(words):
        name = pathlib.Path(words[1]).stem
        calls.append([name, *words[2:]])
        assert run(load_script(name), *words[2:]) == 0

    monkeypatch.setattr(script, 'run_process', run_inside)
    return calls


@pytest.fixture
def toy(toys, tmp_path):
    """The path of a recipe of a toy, and the arguments of its runs."""
    data = toys('finetune_classifier').data
    words = classifier(data, tmp_path, '--epochs', '2', task=[], test=False)
    words = words[: words.index('--output_dir')] + words[words.index('--epochs') :]
    flags = {'task_name': 'custom', 'text_columns': 'text', 'label_column': 'label'}
    for group in ' '.join(words).split('--')[1:]:
        name, *values = group.split()
        flags[name] = values or True
    del flags['vocab_file']
    content = {
        'title': 'Toy',
        'script': 'finetune_classifier',
        'flags': flags,
        'data': {name: f'{name.partition("_")[0]}.{"txt" if name == "vocab_file" else "tsv"}'
                 for name in ('train_file', 'dev_file', 'vocab_file')},
        'seeds': [1, 2],
        'scores': {'accuracy': {'expected': 0.6, 'tolerance': 0.4}},
    }  # fmt: skip
    path = tmp_path / 'toy.json'
    path.write_text(json.dumps(content))
    return path, [path, '--data_dir', data]


def test_seeds_are_trained_once_and_summed_up(script, inside, toy, tmp_path, capsys):
    out = tmp_path / 'out'
    argv = [*toy[1], '--output_dir', out]
    assert run(script, *argv, '--seeds', '2') == 0
    assert run(script, *argv) == 0  # seed 1 is new
    assert [call[call.index('--seed') + 1] for call in inside] == ['2', '1']
    summary = read_json(out)
    assert set(summary['toy']['runs']['ours']) == {'1', '2'}
    for seed in ('1', '2'):
        best = read_json(out / 'toy' / 'ours' / f'seed-{seed}')['best']
        found = summary['toy']['runs']['ours'][seed]['scores']
        assert found == {'accuracy': best['dev']['accuracy']}
    shown = capsys.readouterr().out
    assert '``toy``' in shown and '(2)' in shown
    assert run(script, '--table', out) == 0
    assert capsys.readouterr().out in shown


def test_a_killed_training_goes_on(script, inside, toy, tmp_path):
    whole, cut = tmp_path / 'whole', tmp_path / 'cut'
    assert run(script, *toy[1], '--seeds', '1', '--output_dir', whole) == 0
    with killed(40):  # in the second epoch
        run(script, *toy[1], '--seeds', '1', '--output_dir', cut)
    assert not (cut / 'results.json').exists()
    assert run(script, *toy[1], '--seeds', '1', '--output_dir', cut) == 0
    assert '--resume' in inside[-1] and '--resume' not in inside[-2]
    assert not list(tmp_path.rglob('checkpoints'))  # of no use any more
    assert_same_model(*(each / 'toy' / 'ours' / 'seed-1' for each in (whole, cut)))
    assert read_json(whole)['toy']['scores'] == read_json(cut)['toy']['scores']


def test_an_unexpected_score_is_an_error(script, inside, toy, tmp_path, capsys):
    content = json.loads(toy[0].read_text())
    content['scores']['accuracy'] = {'expected': 2, 'tolerance': 0.1}
    toy[0].write_text(json.dumps(content))
    said = refusal(capsys, script, *toy[1], '--seeds', '1', '--output_dir', tmp_path / 'out')
    assert 'toy, seed 1: accuracy' in said and 'is not 2 within 0.1' in said
    content['scores'], content['flags']['lr'] = {}, 1
    toy[0].write_text(json.dumps(content))
    said = refusal(capsys, script, *toy[1], '--seeds', '1', '--output_dir', tmp_path / 'out')
    assert 'was trained by another version of the recipe' in said


def test_a_score_that_the_training_has_not(script, inside, toy, tmp_path, capsys):
    content = json.loads(toy[0].read_text())
    toy[0].write_text(json.dumps({**content, 'scores': {'exact_match': {}}}))
    out = tmp_path / 'out'
    said = refusal(capsys, script, *toy[1], '--seeds', '1', '--output_dir', out)
    assert 'scores of exact_match, and the training has accuracy' in said
    toy[0].write_text(json.dumps(content))
    assert run(script, *toy[1], '--seeds', '1', '--output_dir', out) == 0
    assert '--resume' in inside[-1]


def test_a_training_that_fails(script, toy, tmp_path, capfd):
    """In a process of its own, as they are."""
    content = json.loads(toy[0].read_text())
    content['flags']['no_such_flag'] = 1
    toy[0].write_text(json.dumps(content))
    said = refusal(capfd, script, *toy[1], '--output_dir', tmp_path / 'out')
    assert 'finetune_classifier.py' in said and 'ended with status 2' in said


@pytest.mark.parametrize('name', RECIPES)
def test_recipes_of_the_project(name, tmp_path):
    """Their scripts take their arguments; where the data is, they find it."""
    recipe = load_script('run').open_recipe(name, SCRIPTS / 'recipes')
    data = os.environ.get('ZOO_TEST_DATA')
    if data is None:
        data = tmp_path / 'data'
        for value in recipe.data.values():
            path = data / (value if isinstance(value, str) else value['file'])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch() if path.suffix else path.mkdir()
    recipe.check_data(SCRIPTS if name == 'small_data' else data)
    for needed in recipe.needs.values():
        assert needed in RECIPES
        model = tmp_path / needed / 'ours' / 'seed-1' / 'best_model'
        model.mkdir(parents=True)
        (model / 'config.json').write_text('{}')
    argv = recipe.arguments(1, data, tmp_path)
    args = load_script(recipe.script).parse_arguments([*argv, '--output_dir', str(tmp_path)])
    assert args.seed == 1
    if recipe.script == 'finetune_squad':  # the two official evaluations' own names
        assert set(recipe.scores) == {'exact' if args.version_2 else 'exact_match', 'f1'}
    text = json.dumps(recipe.data)
    assert str(ROOT) not in text and '"/' not in text  # no path of a machine
