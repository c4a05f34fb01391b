"""scripts/finetune_lm.py end to end: on the fly and from shards; others take the result."""

import numpy as np
import pytest
import tiny
from script_runs import SCRIPTS, read_json, run
from toy_data import FEW, write_counting

from bert import BertForPreTraining, BertModel, BertTokenizer
from model_zoo.tasks.pretraining.create import create_shards
from model_zoo.tasks.pretraining.text import Corpus, SampleMaker, SampleOptions

SCRIPT = SCRIPTS / 'finetune_lm.py'

LENGTH = 24


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """A folder with a model/, text.txt, dev.txt, and samples/ of the text."""
    folder = tmp_path_factory.mktemp('data')
    sizes = {'hidden_size': 32, 'intermediate_size': 64, 'max_position_embeddings': LENGTH}
    tiny.save_bert(folder / 'model', FEW, scale=0.1, num_hidden_layers=1, **sizes)
    tokenizer = BertTokenizer(folder / 'model' / 'vocab.txt')
    write_counting(folder / 'text.txt', 40, 0)
    write_counting(folder / 'dev.txt', 10, 1)
    maker = SampleMaker(Corpus([str(folder / 'text.txt')]), tokenizer, SampleOptions(LENGTH, 4, 3))
    create_shards(maker, str(folder / 'samples'), num_outputs=3, num_workers=1)
    return folder


@pytest.fixture
def arguments(data, tmp_path):
    """Flags without training data; those given come behind them."""
    return lambda *more: [
        *('--model', str(data / 'model'), '--output_dir', str(tmp_path / 'out')),
        *('--max_length', str(LENGTH), '--max_predictions_per_seq', '4', '--lr', '1e-2'),
        *('--train_batch_size', '16', '--num_workers', '0', *map(str, more)),
    ]


def test_on_the_fly(script, data, arguments, tmp_path):
    text = ['--train_file', data / 'text.txt', '--dev_file', data / 'dev.txt']
    text += ['--test_file', data / 'dev.txt']
    assert run(script, *arguments(*text, '--num_train_epochs', 8, '--log_interval', 1)) == 0
    results = read_json(tmp_path / 'out')
    assert results['test'] == results['best']['eval']
    epochs = results['training']['epochs']
    assert len(epochs) == 8  # whatever the number of samples in each
    assert epochs[-1]['step'] == results['training']['steps']
    losses = [record['mlm_loss'] for record in results['training']['log']]
    assert np.mean(losses[-5:]) < losses[0] - 0.2
    best = results['best']['eval']
    assert best['mlm_loss'] + best['nsp_loss'] == -max(epoch['score'] for epoch in epochs)
    for name in ('curves.png', 'log_lm.txt', 'best_model/vocab.txt', 'checkpoints'):
        assert (tmp_path / 'out' / name).exists()
    model = BertForPreTraining.from_pretrained(str(tmp_path / 'out' / 'best_model'))
    before = BertModel.from_pretrained(str(data / 'model'))
    change = model.bert.word_embed.weight.data() - before.word_embed.weight.data()
    assert change.abs().max().asscalar() > 1e-3


def test_from_shards(script, data, arguments, tmp_path):
    """A folder or wildcards; without anything to evaluate on, the last epoch is the best."""
    shards = ['--pregenerated_data', data / 'samples', '--epochs', 3]
    assert run(script, *arguments(*shards)) == 0
    results = read_json(tmp_path / 'out')
    assert results['best']['epoch'] == len(results['training']['epochs']) == 3
    losses = [epoch['train_loss'] for epoch in results['training']['epochs']]
    assert losses[2] < losses[0] - 0.1
    other = tmp_path / 'other'
    argv = arguments('--pregenerated_data', data / 'samples' / '*.npz', '--output_dir', other)
    assert run(script, *argv, '--epochs', 1, '--dev_data', data / 'samples') == 0
    assert read_json(other)['best']['eval']['mlm_loss'] > 0
