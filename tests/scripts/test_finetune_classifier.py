"""scripts/finetune_classifier.py end to end, on a small random model and made-up data."""

import os

import pytest
from contract import classifier as arguments
from script_runs import read_json, refusal, run
from toy_data import write_task

import export.export as export
from model_zoo import open_model
from model_zoo.opening import locate
from model_zoo.tasks.classification_data import get_task
from model_zoo.tasks.labels import name_labels

CASE = 'finetune_classifier'


def test_tensorboard_has_events(trained):
    assert os.listdir(trained / 'events')


def test_labels_beside_a_deployed_symbol(script, trained, data, tmp_path):
    block, tokenizer, _ = open_model(str(trained / 'best_model'), 'classification')
    for parameter in block.classifier.collect_params().values():
        parameter.set_data(parameter.data()[::-1])
    name_labels(block, 'custom', ('pos', 'neg'))
    block.save_pretrained(str(tmp_path / 'swapped'), tokenizer)
    assert run(export, tmp_path / 'swapped', '--output_dir', tmp_path, '--seq_length', 24) == 0
    argv = arguments(data, tmp_path, '--only_inference', '--deploy')
    argv += ['--model_prefix', tmp_path / 'classification']
    assert run(script, *argv) == 0
    assert (tmp_path / 'custom.tsv').read_text() == (trained / 'custom.tsv').read_text()
    (tmp_path / 'classification-labels.json').unlink()
    assert run(script, *argv) == 0  # nobody says that the order isn't the file's
    assert (tmp_path / 'custom.tsv').read_text() != (trained / 'custom.tsv').read_text()


def test_a_training_goes_on_with_its_order_of_labels(script, data, tmp_path, capsys):
    argv = arguments(data, tmp_path, '--labels', 'pos', 'neg', '--keep_state')
    assert run(script, *argv, '--epochs', 1) == 0
    assert run(script, *argv, '--epochs', 2, '--resume') == 0
    assert locate(tmp_path / 'best_model', weights=None, vocab=False).labels.given == ['pos', 'neg']
    other = arguments(data, tmp_path, '--epochs', '3', '--resume')
    for labels in ([], ['--labels', 'neg', 'pos']):
        said = refusal(capsys, script, *other, *labels)
        assert 'cannot resume: --labels is ' in said and "was ['pos', 'neg']" in said
    assert locate(tmp_path / 'best_model', weights=None, vocab=False).labels.given == ['pos', 'neg']


def test_calibrated_model_is_deployed(script, trained, data, tmp_path):
    more = ['--calib_mode', 'none', '--num_calib_batches', '2', '--model_parameters']
    more += [trained / read_json(trained)['best']['parameters']]
    argv = arguments(data, tmp_path, '--only_calibration', *more)
    argv.remove('--from_scratch')
    assert run(script, *argv) == 0
    prefix = tmp_path / 'model_bert_custom_quantized_none'
    told = read_json(tmp_path, 'calibration.json')
    assert told['files'] == [f'{prefix.name}-0000.params', f'{prefix.name}-symbol.json']
    before, after = told['float32']['dev']['accuracy'], told['int8']['dev']['accuracy']
    assert told['lost'] == pytest.approx(before - after, abs=1e-6)
    assert told['lost'] < 0.1 and before > 0.8
    deploy = arguments(data, tmp_path / 'deployed', '--only_inference', '--deploy')
    assert run(script, *deploy, '--model_prefix', prefix) == 0
    deployed = read_json(tmp_path / 'deployed', 'inference.json')['dev']['dev']
    assert deployed['accuracy'] == pytest.approx(after)


SCORES = [
    ('CoLA', {'matthews', 'accuracy'}, ['CoLA.tsv']),
    ('STS-B', {'pearson', 'spearman'}, ['STS-B.tsv']),
    ('MNLI', {'accuracy'}, ['MNLI-m.tsv', 'MNLI-mm.tsv']),
]


@pytest.mark.parametrize('name, metrics, submissions', SCORES)
def test_tasks_run_to_the_end(script, data, tmp_path, name, metrics, submissions):
    write_task(tmp_path / name, get_task(name))
    output = tmp_path / 'out'
    argv = ['--task_name', name, '--data_dir', str(tmp_path)]
    assert run(script, *arguments(data, output, '--training_steps', '2', task=argv)) == 0
    results = read_json(output)
    segments = {'dev_matched', 'dev_mismatched'} if name == 'MNLI' else {'dev'}
    assert set(results['best']) == {'epoch', 'parameters'} | segments
    for segment in segments:
        assert set(results['best'][segment]) == metrics | {'loss', 'samples_per_second'}
        folder = tmp_path / 'out-MM' if segment == 'dev_mismatched' else output
        found = (folder / 'eval_results.txt').read_text().splitlines()
        assert f'eval_loss = {results["best"][segment]["loss"]}' in found
        best = results['training']['epochs'][results['best']['epoch'] - 1]
        assert f'global_step = {best["step"]}' in found
    written = [file for file in results['predictions'] if 'probabilities' not in file]
    assert written == [*(f'{name}_predictions.tsv' for name in sorted(segments)), *submissions]
    for file in results['predictions']:
        assert (output / file).read_text().startswith('index\t')
    if name == 'STS-B':
        rows = (output / written[1]).read_text().splitlines()[1:]
        values = [float(row.split('\t')[1]) for row in rows]
        assert len(values) == 8 and all(0 <= value <= 5 for value in values)
