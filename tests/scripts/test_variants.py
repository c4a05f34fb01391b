"""Every script of BERT's takes the models like BERT: small random ones, on made-up data."""

import re

import mxnet as mx
import numpy as np
import pytest
from script_runs import load_script, read_json, run
from toy_data import write_reviews
from variant_models import MAKERS

import export.export as export
from model_zoo.opening import open_model


@pytest.fixture(scope='module', params=MAKERS)
def model(request, tmp_path_factory):
    """A folder with a pretrained backbone and its tokenizer."""
    folder = tmp_path_factory.mktemp(request.param)
    block, tokenizer = MAKERS[request.param](folder)
    block.initialize(mx.init.Normal(0.2))
    block.save_pretrained(str(folder), tokenizer)
    return folder


def class_of(folder):
    return type(open_model(str(folder)).block).__name__


def variant(model, task):
    """Name of the class of the model's family for a task of BERT's."""
    name = read_json(model, 'config.json')['architectures'][0]
    return re.sub('(For|Model).*', '', name) + task


COMMON = ['--training_steps', 4, '--batch_size', 8, '--lr', '1e-3']


def test_classification(model, tmp_path):
    write_reviews(tmp_path, 40)
    script = load_script('finetune_classifier')
    task = ['--task_name', 'custom', '--text_columns', 'text', '--label_column', 'label']
    task += ['--max_length', 40]
    files = ['--train_file', tmp_path / 'train.tsv', '--dev_file', tmp_path / 'dev.tsv']
    argv = [*task, *files, '--model', model, *COMMON, '--output_dir', tmp_path / 'out']
    assert run(script, *argv) == 0
    best = tmp_path / 'out' / 'best_model'
    assert class_of(best) == variant(model, 'ForSequenceClassification')
    predict = [*task, '--only_inference', '--test_file', tmp_path / 'test.tsv']
    first, second = tmp_path / 'first', tmp_path / 'second'
    assert run(script, *predict, '--model', best, '--output_dir', first) == 0
    # the exported classifier predicts the same
    assert run(export, best, '--output_dir', tmp_path / 'exported') == 0
    prefix = tmp_path / 'exported' / 'classification'
    deploy = ['--deploy', '--model_prefix', prefix, '--model', best]
    assert run(script, *predict, *deploy, '--output_dir', second) == 0
    names = [each.name for each in first.glob('*.tsv')]
    assert names and all((first / n).read_text() == (second / n).read_text() for n in names)


def write_sentences(path, seed):
    """Sentences that repeat a word, so that a masked one can be told."""
    random = np.random.RandomState(seed)
    words = [['cat', 'mat', 'red', 'sat'][n] for n in random.randint(4, size=40)]
    lines = [f'{word} {word} {word}' + '\n' * (n % 5 == 4) for n, word in enumerate(words)]
    path.write_text('\n'.join(lines) + '\n')


@pytest.mark.parametrize('model', ['electra', 'distilbert', 'albert'], indirect=True)
def test_pretraining(model, tmp_path):
    """Masked words alone: there are no next sentences in what is made, logged and evaluated."""
    kind = 'text' if model.name.startswith('electra') else 'samples'
    for seed, name in enumerate(('train', 'dev')):
        write_sentences(tmp_path / f'{name}.txt', seed)
        argv = ['--input_file', tmp_path / f'{name}.txt', '--output_dir', tmp_path / name]
        argv += ['--vocab', model, '--max_length', 40, '--num_workers', 1]
        if kind == 'samples':
            assert run(load_script('create_pretraining_data'), *argv, '--masked_lm_only') == 0
    out, ckpt = tmp_path / 'out', tmp_path / 'ckpt'
    sizes = ['--max_length', 40, '--max_predictions_per_seq', 8]
    data = ['--train_file', tmp_path / 'train.txt', '--dev_file', tmp_path / 'dev.txt', *sizes]
    raw = ['--data', tmp_path / 'train.txt', '--data_eval', tmp_path / 'dev.txt', '--raw', *sizes]
    raw += ['--num_dataset_workers', 1]  # a process gets the tokenizer
    if kind == 'samples':
        data = ['--pregenerated_data', tmp_path / 'train', '--dev_data', tmp_path / 'dev']
        raw = ['--data', tmp_path / 'train/*.npz', '--data_eval', tmp_path / 'dev/*.npz']
    common = ['--batch_size', 4, '--lr', '1e-2', '--log_interval', 1]
    argv = [*data, '--model', model, *common, '--num_workers', 0, '--output_dir', out]
    assert run(load_script('finetune_lm'), *argv, '--training_steps', 30) == 0
    argv = [*raw, '--model', model, *common, '--num_steps', 30, '--output_dir', ckpt]
    assert run(load_script('run_pretraining'), *argv) == 0
    for folder, place in ((out, 'best_model'), (ckpt, 'model')):
        assert class_of(folder / place) == variant(model, 'ForMaskedLM')
        log = read_json(folder)['training']['log']
        losses = [record['mlm_loss'] for record in log]
        assert np.mean(losses[-5:]) < 0.8 * losses[0]
        assert 'mlm_acc' in log[0] and not any(name.startswith('nsp') for name in log[0])
        assert 'masked_lm_loss = ' in (folder / 'eval_results.txt').read_text()
