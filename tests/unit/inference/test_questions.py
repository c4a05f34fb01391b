"""Question answering by a model that says how it was trained to read."""

import json

import pytest
import tiny
from json_files import cases
from script_runs import load_script, run
from tiny_models import WORDS

import bert
import model_zoo
from model_zoo.errors import InputError

READER = cases('inference')['READER']
ITEM = {'question': 'where ?', 'context': 'the cat  sleeps in\nparis , the dog sleeps . ' * 2}


def reader(folder, **changes):
    """A random model that reads in this way."""
    extras = {'question_answering': {**READER, **changes}}
    tiny.save_bert(folder, WORDS, bert.BertForQuestionAnswering, extras=extras, seed=3)
    return model_zoo.pipeline('question-answering', str(folder))


def test_its_threshold_decides_whether_there_is_an_answer(tmp_path, capsys):
    answers = [
        reader(tmp_path / str(number), null_score_diff_threshold=threshold)(ITEM)
        for number, threshold in enumerate((-1e6, 1e6))
    ]
    assert answers[0] == {'score': answers[0]['score'], 'start': 0, 'end': 0, 'answer': ''}
    found, context = answers[1], ITEM['context']
    assert found['answer'] == ' '.join(context[found['start'] : found['end']].split()) != ''
    ask = [tmp_path / '0', '--text', context, ITEM['question']]
    assert run(load_script('ask'), *ask, '--format', 'table') == 0
    assert 'no answer' in capsys.readouterr().out
    assert run(load_script('ask'), *ask, '--no_may_be_empty') == 0
    said = capsys.readouterr()
    assert json.loads(said.out)['answer'] and 'always answers' in said.err


def test_a_calls_options_come_before_the_models(tmp_path, rows_of):
    answer = reader(tmp_path, null_score_diff_threshold=-1e6)
    ranked = answer(ITEM, top_k=9)
    assert ranked[0]['answer'] == '' and len(ranked) == 9
    assert all(len(each['answer'].split()) <= 2 for each in ranked)
    longer = answer(ITEM, top_k=9, max_answer_len=8, handle_impossible_answer=False)
    assert all(each['answer'] for each in longer)
    assert any(len(each['answer'].split()) > 2 for each in longer)
    rows = [len(rows_of(answer, ITEM, options)) for options in STRIDES]
    assert rows[0] == rows[1] > rows[2]


#: the model's own: 15 of 20 tokens are the context's; the same, as an overlap; none
STRIDES = {}, {'doc_stride': 11}, {'doc_stride': 0}


@pytest.mark.parametrize('changes', [{'doc_stride': 0}, {'n_best_size': '5'}, {'version_2': None}])
def test_a_wrong_entry_of_the_configuration(tmp_path, changes):
    with pytest.raises(InputError):
        reader(tmp_path, **changes)
