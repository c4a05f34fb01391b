"""Which trained models a task takes, by their config.json."""

import json
import logging

import pytest

from model_zoo.app import check_labels
from model_zoo.errors import InputError
from model_zoo.tasks.classification import get_task

TWO = {'id2label': {'0': '0', '1': '1'}}


def check(tmp_path, config, task, caplog):
    (tmp_path / 'config.json').write_text(json.dumps(config))
    with caplog.at_level(logging.WARNING):
        check_labels(get_task(task), str(tmp_path))
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ('config', 'task'),
    [
        ({'finetuning_task': 'MRPC', **TWO}, 'MRPC'),
        ({'finetuning_task': 'STS-B'}, 'STS-B'),
        ({'finetuning_task': 'custom', **TWO}, 'MRPC'),
        ({'id2label': {'0': 'LABEL_0', '1': 'LABEL_1', '2': 'LABEL_2'}}, 'MRPC'),  # not ours
        ([1], 'MRPC'),  # which the model complains about
    ],
)
def test_taken(tmp_path, config, task, caplog):
    assert check(tmp_path, config, task, caplog) == []


@pytest.mark.parametrize(
    ('config', 'task', 'message'),
    [
        ({'finetuning_task': 'STS-B'}, 'MRPC', 'for STS-B, where it has no classes; .* tells 0, 1'),
        ({'finetuning_task': 'MRPC', **TWO}, 'STS-B', 'tells 0, 1 apart; .* STS-B has no classes'),
        ({'finetuning_task': 'MRPC', **TWO}, 'RTE', 'not_entailment, entailment apart'),
        ({'finetuning_task': 'MRPC', **TWO}, 'SST', 'was trained for MRPC, not for SST; .* custom'),
        ({'finetuning_task': 'swag'}, 'STS-B', 'was trained for swag, not for STS-B'),
    ],
)
def test_refused(tmp_path, config, task, message, caplog):
    with pytest.raises(InputError, match=message):
        check(tmp_path, config, task, caplog)


def test_names_are_not_folders(caplog):
    check_labels(get_task('MRPC'), 'bert_6_384_12')
    assert not caplog.records
