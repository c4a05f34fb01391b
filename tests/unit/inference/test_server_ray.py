"""The server on Ray Serve."""

import json

import pytest
from ray_alone import ROOT, run_alone
from script_runs import load_script, refusal

from bert import BertForSequenceClassification


@pytest.mark.slow
def test_replicas_answer_and_are_replaced(saved, writer_folder):
    classifier = saved(BertForSequenceClassification, ['bad', 'good'])
    told = run_alone(ROOT / 'tests' / 'ray_serve.py', classifier, writer_folder, seconds=1200)
    for status, text in (told['first'], told['after_the_kill']):
        assert status == 200 and {each['label'] for each in json.loads(text)[0]} == {'bad', 'good'}
    assert told['unknown'] == 404
    status, events = told['stream']
    assert status == 200 and events.endswith('data: [DONE]\n\n') and events.count('data:') > 2
    assert told['exit_code'] == 0


def test_flags_of_replicas_need_ray(capsys, saved):
    folder = saved(BertForSequenceClassification, ['bad', 'good'])
    assert '--ray' in refusal(capsys, load_script('serve'), folder, '--min_replicas', 2)
