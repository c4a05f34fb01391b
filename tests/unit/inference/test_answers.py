"""Answers beside those of transformers 4.57's pipeline, which are recorded."""

import json

import pytest
import tiny

import model_zoo


@pytest.fixture(scope='module')
def recorded(fixtures):
    return json.loads((fixtures / 'answers.json').read_text())


@pytest.fixture(scope='module')
def reader(recorded, tmp_path_factory):
    folder = tmp_path_factory.mktemp('reader')
    tiny.save_reader(folder, recorded['words'], **recorded['sizes'])
    return model_zoo.pipeline('question-answering', str(folder))


@pytest.mark.parametrize('number', range(30))
def test_answers_are_those_of_transformers(recorded, reader, number):
    case = recorded['cases'][number]
    found = reader(question=case['question'], context=case['context'], **case['options'])
    found = found if isinstance(found, list) else [found]
    assert len(found) == len(case['answers'])
    for answer, want in zip(found, case['answers']):
        assert answer == {**want, 'score': pytest.approx(want['score'], rel=1e-3, abs=1e-7)}
