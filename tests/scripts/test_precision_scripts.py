"""--dtype of the scripts: training, export and embedding beside float32."""

import numpy as np
import pytest
import tiny
from halves import HALVES
from script_runs import SCRIPTS, read_json, run
from toy_data import write_reviews

import bert

SCRIPT = SCRIPTS / 'finetune_classifier.py'

WORDS = ['good', 'great', 'bad', 'poor', 'the', 'film', 'was', 'a', 'story', 'and', 'actor', '.']


@pytest.fixture(scope='module')
def model_dir(tmp_path_factory):
    """A small BERT with its vocabulary, as save_pretrained writes them."""
    folder = tmp_path_factory.mktemp('model')
    sizes = {'hidden_size': 32, 'num_attention_heads': 4, 'intermediate_size': 64}
    # dropout draws other places in float16
    sizes.update(hidden_dropout_prob=0, attention_probs_dropout_prob=0, max_position_embeddings=32)
    kind = bert.BertForSequenceClassification
    tiny.save_bert(folder, WORDS, kind, ['neg', 'pos'], scale=0.2, **sizes)
    return folder


def losses(script, argv):
    """The loss of each update of a training."""
    assert run(script, *argv, '--log_interval', 1) == 0
    log = read_json(argv[argv.index('--output_dir') + 1])['training']['log']
    return np.array([record['loss'] for record in log])


@pytest.mark.parametrize('dtype', HALVES)
def test_training_follows_float32(script, model_dir, tmp_path, dtype):
    write_reviews(tmp_path, 80)
    argv = '--task_name custom --text_columns text --label_column label'.split()
    argv += ['--train_file', tmp_path / 'train.tsv', '--dev_file', tmp_path / 'dev.tsv']
    argv += ['--model', model_dir]
    argv += ['--batch_size', 16, '--lr', 1e-3, '--max_length', 16, '--training_steps', 6]
    full = losses(script, [*argv, '--output_dir', tmp_path / 'full'])
    half = losses(script, [*argv, '--output_dir', tmp_path / 'half', '--dtype', dtype])
    assert len(half) == 6
    assert 0 < np.abs(half - full).max() < 0.1 * full.std()
    if dtype == 'float16':
        fixed = tmp_path / 'fixed'
        argv += ['--output_dir', fixed, '--dtype', dtype, '--loss_scale', 128]
        assert 0 < np.abs(losses(script, argv) - full).max() < 0.1 * full.std()
        log = read_json(fixed)['training']['log']
        assert {(each['loss_scale'], each['skipped']) for each in log} == {(128, 0)}
