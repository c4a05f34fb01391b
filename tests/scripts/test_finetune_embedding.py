"""Encoders of sentences: what they learn from each kind of data, and the folder that is saved."""

import json

import numpy as np
import pytest
from contract import sentences
from script_runs import read_json, run

from bert_embedding import BertEmbedding

CASE = 'finetune_embedding'


def test_the_saved_folder_gives_the_similarities_of_the_test_set(trained, data):
    modules = read_json(trained / 'best_model', 'modules.json')
    names = [each['type'].rpartition('.')[2] for each in modules]
    assert names == ['Transformer', 'Pooling', 'Normalize']
    embedding = BertEmbedding(str(trained / 'best_model'))
    assert embedding.max_seq_length == 12
    rows = [line.split('\t') for line in (data / 'test.tsv').read_text().splitlines()[1:]]
    first, second = (embedding.sentence_vectors([row[n] for row in rows]) for n in (0, 1))
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, atol=1e-5)
    table = (trained / 'test_similarities.tsv').read_text().splitlines()
    header, *lines = (line.split('\t') for line in table)
    assert header == ['index', 'similarity']
    written = [float(similarity) for _, similarity in lines]
    np.testing.assert_allclose((first * second).sum(axis=1), written, atol=1e-5)
    assert read_json(trained)['test']['spearman'] > 0.8


@pytest.fixture(scope='module')
def triplets(data, tmp_path_factory):
    """Triplets of the pairs' texts: a text, one of its kind, one of the other kind."""
    folder = tmp_path_factory.mktemp('triplets')
    for name in ('train', 'dev'):
        rows = [line.split('\t') for line in (data / f'{name}.tsv').read_text().splitlines()[1:]]
        alike = [row[:2] for row in rows if row[2] == '5.0']
        kinds = {
            first[0] < 'm': [b for a, b in alike if (a[0] < 'm') == (first[0] < 'm')]
            for first in (row[0] for row in alike)
        }
        lines = [
            {'anchor': a, 'positive': b, 'negative': kinds[a[0] >= 'm'][n % 5]}
            for n, (a, b) in enumerate(alike)
        ]
        text = ''.join(json.dumps(line) + '\n' for line in lines)
        (folder / f'{name}.jsonl').write_text(text)
    return folder


@pytest.mark.parametrize('loss', ['in_batch', 'triplet'])
def test_learns_from_triplets(script, data, triplets, tmp_path, loss):
    argv = sentences(data, tmp_path, '--epochs', 4, '--loss', loss, '--pooling', 'cls')
    assert run(script, *argv, '--data_dir', triplets) == 0
    dev = read_json(tmp_path)['best']['dev']
    assert dev['accuracy'] >= 0.95 and set(dev) >= {'recall_at_1', 'recall_at_5', 'recall_at_10'}
    assert read_json(tmp_path)['loss'] == loss
    pooling = read_json(tmp_path / 'best_model' / '1_Pooling', 'config.json')
    assert pooling['pooling_mode_cls_token'] and not pooling['pooling_mode_mean_tokens']


def test_pairs_train_and_scores_evaluate(script, data, triplets, tmp_path):
    argv = [*sentences(data, tmp_path), '--text_columns', 'anchor', 'positive']
    assert run(script, *argv, '--data_dir', triplets, '--training_steps', 2) == 0
    assert 'recall_at_1' in read_json(tmp_path)['best']['dev']
    argv = ['--dev_file', data / 'dev.tsv', '--test_file', data / 'test.tsv']
    argv += ['--model', tmp_path / 'best_model', '--max_length', 12]
    again = tmp_path / 'again'
    assert run(script, '--only_inference', *argv, '--output_dir', again) == 0
    report = read_json(again, 'inference.json')
    assert 'spearman' in report['dev']['dev']
    assert report['predictions'] == ['dev_similarities.tsv', 'test_similarities.tsv']


def test_trains_its_own_folder_on(script, trained, data, tmp_path):
    """In float16, and without normalization."""
    argv = ['--data_dir', data, '--model', trained / 'best_model', '--max_length', 12]
    argv += ['--training_steps', 2, '--dtype', 'float16', '--normalize', 'false']
    assert run(script, *argv, '--output_dir', tmp_path) == 0
    assert read_json(tmp_path)['best']['dev']['spearman'] > 0.8
    assert not (tmp_path / 'best_model' / '2_Normalize').exists()
    assert BertEmbedding(str(tmp_path / 'best_model')).sentence_vectors(['a b']).shape == (1, 32)
