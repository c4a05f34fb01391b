"""The contract of all scripts: what each learns, writes, refuses and resumes."""

import hashlib
import json
import os
import re

import mxnet as mx
import pytest
import run_texts
import yaml
from bad_input import BAD_INPUT
from command_flags import command_names, flags_of, main_of, parser_of
from contract import CASES, interrupt, killed
from script_runs import (
    ROOT,
    SCRIPTS,
    assert_same_model,
    assert_same_parameters,
    load_script,
    read_json,
    refusal,
    run,
    run_python,
)

from model_zoo import open_model, operators
from model_zoo.app import trainer as trainer_module
from model_zoo.app.trainer import Trainer


@pytest.fixture(scope='module', params=CASES)
def toy(toys, request):
    return toys(request.param)


def of(*names):
    return pytest.mark.parametrize('toy', names, indirect=True)


JOBS_OF_0_2 = read_json(ROOT, 'tests/fixtures/jobs_of_0_2.json')


def test_learns_and_writes_its_files(toy):
    folder, results = toy.trained, read_json(toy.trained)
    best, training = results['best'], results['training']
    settings = yaml.safe_load((folder / 'settings.yaml').read_text('utf-8'))
    assert settings['lr'] == results['args']['lr'] and 'resume' not in settings
    assert toy.case.learnt(best['dev'])
    assert best['epoch'] == training['best_epoch']
    epochs = [record['epoch'] for record in training['epochs']]
    assert epochs == list(range(1, len(epochs) + 1))
    seconds = [record['train_seconds'] for record in training['epochs']]  # of each
    assert sum(seconds) == pytest.approx(training['seconds'])
    assert training['log'] and training['steps'] == training['epochs'][-1]['step']
    assert mx.image.imread(str(folder / 'curves.png')).asnumpy().std() > 0
    log = (folder / toy.case.log).read_text('utf-8')
    assert 'loss=' in log and 'dev: ' in log
    assert not os.listdir(folder / 'checkpoints')  # a finished run keeps the model alone
    assert results['versions']['gluon-transformer-zoo'] and results['data'].keys() >= {'train'}
    if not toy.case.translated:
        opened = folder / 'opened'
        open_model(folder / 'best_model').block.save_parameters(str(opened))
        assert_same_parameters(opened, folder / best['parameters'])
        opened.unlink()
    # the last epoch's and the best one's
    assert {int(path.stem.rpartition('_')[2]) + 1 for path in folder.glob('*.params')} == {
        epochs[-1],
        best['epoch'],
    }
    assert (folder / 'best_model' / 'config.json').exists()
    assert 'id="charts"' in (folder / 'report.html').read_text('utf-8')
    card = (folder / 'best_model' / 'README.md').read_text('utf-8')
    assert '## Results' in card and ('next: ' in log) == ('## Use' in card)
    for name, examined in results.get('examination', {}).items():
        assert examined['baseline'].keys() <= best[name].keys()
    assert ('examination' in results) == toy.case.examined
    for name in results.get('predictions', ()):
        assert (folder / name).stat().st_size > 0


def test_says_and_writes_what_it_did_before(toy):
    """The stored lines are written by ``python tests/run_texts.py``."""
    if operators.library():
        pytest.skip("the stored lines are with MXNet's operators, which draw other masks")
    expected = read_json(run_texts.FIXTURE.parent, run_texts.FIXTURE.name)
    found = run_texts.texts_of(toy.trained, toy.data, toy.case.log)
    run_texts.assert_alike(found, expected[toy.name])


def test_the_saved_model_evaluates_the_same(toy, tmp_path):
    argv = toy.case.evaluate(toy.data, toy.trained / 'best_model', tmp_path)
    assert run(toy.script, *argv) == 0
    assert not (tmp_path / 'results.json').exists()
    expected = read_json(toy.trained)
    (_, dev, _), found = comparable(expected), read_json(tmp_path, 'inference.json')['dev']['dev']
    assert {name: found[name] for name in dev} == pytest.approx(dev, rel=1e-3, abs=1e-3)
    for name in expected.get('predictions', ()):
        if not re.search('nbest|null_odds|probabilities|similarities', name):  # floats
            assert (tmp_path / name).read_bytes() == (toy.trained / name).read_bytes()


def stop(toy, argv, capsys):
    """Run a training that is interrupted; returns its exit status and what it says last."""
    if not toy.case.process:
        with interrupt(toy.case.batch):
            return run(toy.script, *argv), capsys.readouterr().err
    code = f"""
import model_zoo, runpy, sys
sys.path[:0] = {[str(ROOT / 'tests'), str(ROOT / 'tests' / 'scripts')]!r}
import contract
contract.interrupt({toy.case.batch}).start()
sys.argv = {['x', *map(str, argv)]!r}
runpy.run_path('{toy.case.script}.py', run_name='__main__')
"""
    process = run_python('-c', code, cwd=SCRIPTS)
    return process.returncode, process.stderr


def comparable(results):
    """What two runs of a training have in common."""
    best = {name: value for name, value in results['best'].items() if name != 'dev'}
    dev = {k: v for k, v in results['best']['dev'].items() if not k.endswith('_per_second')}
    return best, dev, [epoch['score'] for epoch in results['training']['epochs']]


def test_interrupted_and_resumed_is_as_unbroken(toy, tmp_path, capsys):
    broken = tmp_path / 'broken'
    whole = toy.whole
    expected = read_json(whole)
    argv = toy.case.again(toy.data, broken)
    status, said = stop(toy, argv, capsys)
    assert status == 130 and 'Traceback' not in said
    step = -(-toy.case.batch // toy.case.accumulate)
    last = said.splitlines()[-1]
    steps = expected['training']['steps']
    assert last.startswith(f'interrupted: step {step} of {steps} is saved in ')
    assert '--resume' in last
    assert list((broken / 'checkpoints').glob(f'step-{step:08}-epoch-*-batch-*'))

    assert run(toy.script, *argv, '--resume') == 0
    assert_ended_equal(broken, whole)


def assert_ended_equal(folder, whole):
    """Assert that a resumed training ended exactly like the uninterrupted one."""
    expected = read_json(whole)
    best = list(whole.glob('best_model/model.*'))
    assert best
    for path in (*whole.glob('*.params'), *best):
        assert_same_parameters(path, folder / path.relative_to(whole))
    assert comparable(read_json(folder)) == comparable(expected)
    for name in (*expected.get('predictions', ()), 'eval_results.txt'):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()


def test_a_second_training_never_destroys_the_first(toy, tmp_path, capsys):
    assert read_json(toy.whole)['args'].items() >= toy.case.args.items()

    def times():
        changing = ('.lock', toy.case.log)
        paths = (path for path in toy.whole.rglob('*') if path.name not in changing)
        return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}

    before = times()
    argv, flags = toy.case.again(toy.data, toy.whole), toy.case.refused(toy.data, tmp_path)
    assert '--resume' in refusal(capsys, toy.script, *argv)
    assert flags[0].lstrip('-') in refusal(capsys, toy.script, *argv, '--resume', *flags)
    assert times() == before


def as_version_0_2_wrote_it(folder, job):
    """Give the checkpoints of a training the job that version 0.2 saved for it."""
    for path in (folder / 'checkpoints').glob('*/state.json'):
        path.write_text(json.dumps({**json.loads(path.read_text('utf-8')), 'config': job}))
        sums, checksum = path.with_name('SHA256SUMS'), hashlib.sha256(path.read_bytes())
        sums.write_text(re.sub('.+(?=  state.json)', checksum.hexdigest(), sums.read_text()))


@of(*JOBS_OF_0_2)
def test_killed_by_version_0_2_and_resumed_within_an_epoch_is_as_unbroken(toy, tmp_path):
    argv = [*toy.case.again(toy.data, tmp_path), '--ckpt_interval', 2]
    with killed(toy.case.batch):
        run(toy.script, *argv)
    done = (toy.case.batch - 1) // toy.case.accumulate  # updates
    newest = max(path.name for path in (tmp_path / 'checkpoints').glob('step-*'))
    step, batch = re.fullmatch(r'step-(\d+)-epoch-\d+-batch-(\d+)', newest).groups()
    assert int(step) == done - done % 2 and int(batch) > 0
    as_version_0_2_wrote_it(tmp_path, JOBS_OF_0_2[toy.name])
    assert run(toy.script, *argv, '--resume') == 0
    assert_ended_equal(tmp_path, toy.whole)


def test_two_devices_train_as_one_with_the_optimizer_on_the_cpu(toy, tmp_path, monkeypatch):
    """Two CPUs are what can be tried here of several GPUs."""
    remembers = toy.case.script == 'train_lm' and toy.case.translated  # Transformer-XL
    contexts = [mx.cpu(0), mx.cpu(1)]
    for name in ('one', 'two'):
        argv = [*toy.case.again(toy.data, tmp_path / name), '--training_steps', 3]
        argv.insert(argv.index('--hparams') + 1, 'dropout=0')
        with monkeypatch.context() as patch:
            if name == 'one' and not remembers:
                twice = property(lambda run: 2 * (run.settings.accumulate or 1))
                patch.setattr(Trainer, 'accumulate', twice)
            elif name == 'two':
                argv.append('--optimize_on_cpu')
                if not remembers:
                    patch.setattr(trainer_module, 'find_contexts', lambda *given: contexts)
            assert run(toy.script, *argv) == 0
    # Adam makes steps of the learning rate of what is only rounding in a small gradient
    assert_same_model(tmp_path / 'one', tmp_path / 'two', 3e-5)
    if remembers:
        with monkeypatch.context() as patch:
            patch.setattr(trainer_module, 'find_contexts', lambda *given: contexts)
            assert run(toy.script, *argv, '--gpus', '0,1') == 1


@pytest.mark.parametrize(
    ('name', 'number'), [(name, n) for name in BAD_INPUT for n in range(len(BAD_INPUT[name].rows))]
)
@pytest.mark.usefixtures('no_network')
def test_bad_input_is_one_clear_line(worlds, tmp_path, here, capfd, name, number):
    if name == 'serve':
        pytest.importorskip('fastapi')
    case, data = BAD_INPUT[name], worlds(name)
    edit, message = case.rows[number]
    said = refusal(capfd, load_script(case.script), *case.arguments(data, tmp_path, edit))
    assert re.search(message, said), said
    assert not list((tmp_path / 'out').glob('*.params'))
    left = {path.name for path in (tmp_path / 'out').rglob('*') if path.is_file()}
    assert case.toy or all(each.startswith(('log', '.lock')) for each in left), left


COMMANDS = command_names(ROOT)
SCRIPT_NAMES = {name[len('scripts/') : -3] for name in COMMANDS if name.startswith('scripts/')}


@pytest.mark.parametrize('name', COMMANDS)
def test_help_names_the_defaults(name):
    parser = parser_of(main_of(name, ROOT))
    text = ' '.join(parser.format_help(everything=True).split())
    for record in flags_of(parser):
        default = record.get('default')
        if default not in (None, False, '==SUPPRESS==', []):
            shown = default[0] if isinstance(default, list) else default
            assert record['flags'][0] in text and str(shown) in text, record['dest']


def test_each_script_that_trains_has_a_case():
    """But finetune_lm, which needs a trained model; it has a test to itself."""
    trains = {name for name in SCRIPT_NAMES if name.startswith(('finetune_', 'train_'))}
    assert trains - {case.script for case in CASES.values()} == {'finetune_lm'}


def test_each_script_has_cases_of_bad_input():
    """But those that hand their words on, or have no arguments that could be wrong."""
    without = {'build_operators', 'cache', 'demo', 'demo_predict', 'doctor', 'embed'}
    without.add('run_pretraining_hvd')
    assert SCRIPT_NAMES - {case.script for case in BAD_INPUT.values()} == without
