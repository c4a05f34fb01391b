"""scripts/finetune_tagging.py end to end, on a small random model and made-up sentences."""

import numpy as np
import pytest
from contract import tagging as arguments
from script_runs import read_json, refusal, run

from model_zoo.tasks.tagging import read_conll

CASE = 'finetune_tagging'


def last_column(text):
    return [line.split()[-1] for line in text.splitlines() if line]


def test_each_word_counts_once_an_epoch(trained, data):
    """In windows or not."""
    training = read_json(trained)['training']
    words = sum(len(each.words) for each in read_conll(data / 'train.txt'))
    assert training['words_per_second'] * training['seconds'] == pytest.approx(3 * words)


@pytest.mark.parametrize(('segment', 'name'), [('dev', 'valid.txt'), ('test', 'test.txt')])
def test_predictions_are_in_conlls_form(trained, data, segment, name):
    lines = (trained / f'{segment}_predictions.txt').read_text().splitlines()
    source = (data / name).read_text().splitlines()
    assert [line.rpartition(' ')[0] for line in lines] == source
    rows = [line.split() for line in lines if line and not line.startswith('-DOCSTART-')]
    metrics = read_json(trained)['best_model'][segment]
    right = np.mean([row[-1] == row[-2] for row in rows])
    assert right == pytest.approx(metrics['accuracy']) and right > 0.95


def test_words_without_labels_are_predicted(script, trained, data, tmp_path):
    config = read_json(trained / 'best_model', 'config.json')
    assert config['id2label'] == {'0': 'O', '1': 'B-PER', '2': 'I-PER'}
    argv = ['--only_inference', '--model', trained / 'best_model', '--output_dir', tmp_path]
    argv += ['--max_length', 24]
    expected = (trained / 'test_predictions.txt').read_text()
    words = tmp_path / 'words.txt'
    lines = (data / 'test.txt').read_text().splitlines()
    words.write_text('\n'.join(line.partition(' ')[0] for line in lines) + '\n')
    assert run(script, *argv, '--test_file', words, '--no_test_labels') == 0
    assert read_json(tmp_path, 'inference.json')['dev'] == {}
    argv += ['--dev_file', data / 'valid.txt', '--test_file', words, '--no_test_labels']
    assert run(script, *argv) == 0  # the dev set has labels all the same
    dev = read_json(trained)['best_model']['dev']
    assert read_json(tmp_path, 'inference.json')['dev']['dev']['loss'] == dev['loss']
    found = (tmp_path / 'test_predictions.txt').read_text()
    assert last_column(found) == last_column(expected)


def test_any_column(script, data, tmp_path):
    """The second column repeats the words' first letters: no entities, so accuracy counts."""
    argv = arguments(data, tmp_path, '--label_column', '1', '--epochs', '1', '--dropout-prob', '0')
    assert run(script, *argv) == 0
    results = read_json(tmp_path)
    assert results['labels'] == list('ABCDEMN')
    assert results['best']['dev']['accuracy'] >= 0.9 and 'f1' not in results['best']['dev']
    assert results['training']['epochs'][0]['score'] == results['best']['dev']['accuracy']


def test_labels_of_the_folder_are_kept(script, trained, data, tmp_path, capsys):
    argv = ['--data_dir', data, '--model', trained / 'best_model', '--output_dir', tmp_path]
    said = refusal(capsys, script, *argv, '--labels', 'B-PER', 'O', 'I-PER')
    assert 'has the labels O B-PER I-PER: leave out --labels' in said
    # a further training, one of whose labels the data lack
    part = tmp_path / 'train.txt'
    part.write_text('a A O\nn N B-PER\n')
    argv += ['--train_file', part, '--seq-len', '24', '--epochs', '1', '--lr', '0']
    assert run(script, *argv) == 0
    results = read_json(tmp_path)
    assert results['labels'] == ['O', 'B-PER', 'I-PER'] and results['best']['dev']['f1'] >= 0.95
