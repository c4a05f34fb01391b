"""scripts/finetune_swag.py end to end, on a small random model."""

import mxnet as mx
import numpy as np
from script_runs import read_json

from bert import BertForMultipleChoice

CASE = 'finetune_swag'


def test_results_and_predictions(trained):
    results = read_json(trained)
    assert results['choices'] == 3 and results['args']['epochs'] == 4
    assert results['predictions'] == ['dev_predictions.tsv', 'test_predictions.tsv']
    rows = [line.split('\t') for line in (trained / 'dev_predictions.tsv').read_text().splitlines()]
    assert rows[1][0] == 'val0' and len(rows) == 25
    right = [prediction == label for _, prediction, *_, label in rows[1:]]
    assert np.mean(right) == results['best']['dev']['accuracy']
    lines = (trained / 'test_predictions.tsv').read_text().splitlines()
    assert len(lines) == 11 and all(line.endswith('\t') for line in lines[1:])
    assert read_json(trained / 'best_model', 'config.json')['finetuning_task'] == 'swag'


def test_the_best_model_takes_any_number_of_choices(trained):
    model = BertForMultipleChoice.from_pretrained(str(trained / 'best_model'))
    right, wrong = [2, 5, 3, 11, 6, 3], [2, 5, 3, 7, 6, 3]
    words = mx.nd.array([[wrong, right, wrong, wrong, wrong]], dtype='int32')
    types = mx.nd.array([[[0, 0, 0, 1, 1, 1]] * 5], dtype='int32')
    assert model(words, types).argmax(axis=-1).asscalar() == 1
