"""Recipes: files of flags with the scores that they are expected to reach."""

import pathlib
import re
import shlex
from unittest import mock

import pytest
import yaml
from script_runs import ROOT, SCRIPTS, load_script, read_json, run

RECIPES = sorted((SCRIPTS / 'recipes').glob('*.yaml'))
FILES = ('data_dir', 'train_file', 'dev_file', 'eval_file', 'predict_file', 'vocab_file')


def command_of(path):
    """The script and the arguments that a recipe's comment names."""
    command = re.search('^# zoo (.*)$', path.read_text('utf-8'), re.M).group(1)
    name, *argv = shlex.split(command)
    assert argv[:2] == ['--config', path.relative_to(ROOT).as_posix()]
    return load_script(name.replace('-', '_')), ['--config', path, *argv[2:]]


def expected_scores(path):
    """Metric -> the score that a recipe's comment expects."""
    text = re.search('^# expected: (.*)$', path.read_text('utf-8'), re.M).group(1)
    return {metric: float(score) for metric, score in map(str.split, text.split(', '))}


@pytest.mark.parametrize('path', RECIPES, ids=lambda path: path.stem)
def test_recipes_are_command_lines(path, tmp_path, here):
    content = yaml.safe_load(path.read_text('utf-8'))
    for file in (pathlib.Path(content[name]) for name in FILES if name in content):
        assert not file.is_absolute()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch() if file.suffix else file.mkdir(exist_ok=True)
    script, argv = command_of(path)
    with mock.patch('model_zoo.app.trainer.run_task') as started:
        script.main(list(map(str, argv)))
    args = started.call_args.args[0].settings
    assert args.seed == 1
    for name in ('lr', 'epochs', 'batch_size', 'output_dir'):
        assert getattr(args, name) == content[name]


@pytest.mark.parametrize('path', RECIPES, ids=lambda path: path.stem)
def test_expected_scores_are_those_measured(path):
    measured = read_json(ROOT / 'docs', 'recipe_results.json')[path.stem]
    expected = expected_scores(path)
    assert expected.keys() == measured.keys()
    for metric, score in expected.items():
        ours = measured[metric]['ours']
        assert sum(ours) / len(ours) == pytest.approx(score, rel=0.05)


@pytest.mark.slow
def test_the_smallest_reaches_its_score(minilm_dir, tmp_path, monkeypatch):
    path = SCRIPTS / 'recipes' / 'small_data.yaml'
    script, argv = command_of(path)
    monkeypatch.chdir(ROOT)
    assert run(script, *argv, '--model', minilm_dir, '--output_dir', tmp_path / 'out') == 0
    best = read_json(tmp_path / 'out')['best']['dev']
    for metric, score in expected_scores(path).items():
        assert best[metric] == pytest.approx(score, abs=0.04)
