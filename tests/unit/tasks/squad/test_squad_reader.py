"""SQuAD's JSON is read and checked; its metrics are the official scripts'."""

import json

import pytest

from model_zoo.errors import InputError
from model_zoo.tasks.squad import (
    Question,
    best_thresholds,
    find_squad,
    normalize_answer,
    read_squad,
    score_v1,
    score_v2,
)


@pytest.fixture(scope='module')
def expected(fixtures):
    return json.loads((fixtures / 'squad.json').read_text(encoding='utf-8'))['metrics']


def make(**changes):
    """A file's content with one question, whose fields `changes` replaces or, by None, removes."""
    question = {
        'id': 'x1',
        'question': 'Who?',
        'answers': [{'text': 'a man', 'answer_start': 9}, {'text': 'man', 'answer_start': 0}],
        'is_impossible': False,
    }
    question.update(changes)
    question = {name: value for name, value in question.items() if value is not None}
    paragraph = {'context': 'There is a man\u00a0and a \u00e9.', 'qas': [question]}
    return {'data': [{'title': 't', 'paragraphs': [paragraph]}]}


def write(folder, content):
    path = folder / 'squad.json'
    path.write_text(json.dumps(content), encoding='utf-8')
    return path


def test_reads_training_and_dev_sets(tmp_path):
    path = write(tmp_path, make())
    squad = read_squad(path, training=True)
    assert squad.paragraphs == ['There is a man\u00a0and a \u00e9.']
    assert squad.questions == [Question('x1', 'Who?', 0, ('a man', 'man'), 9)]
    assert squad.is_training and squad.path == str(path)
    # places don't matter where nothing is learnt: the second answer's is wrong
    assert read_squad(path).questions == [Question('x1', 'Who?', 0, ('a man', 'man'), None)]
    assert read_squad(path).checksum == squad.checksum
    path.write_bytes(b'\xef\xbb\xbf' + path.read_bytes())
    assert read_squad(path).questions and read_squad(path).checksum != squad.checksum


def test_first_questions(tmp_path):
    content = make()
    other = json.loads(json.dumps(content['data'][0]['paragraphs'][0]).replace('x1', 'x2'))
    content['data'][0]['paragraphs'].append(other)
    squad = read_squad(write(tmp_path, content))
    assert [question.paragraph for question in squad.questions] == [0, 1]
    assert len(squad.first(1).questions) == len(squad.first(1).paragraphs) == 1
    assert squad.first(5) == squad


def test_questions_without_an_answer(tmp_path):
    # version 1.1's form of it, a test set, and 2.0's
    path = write(tmp_path, make(answers=[], is_impossible=None))
    assert read_squad(path, True, True).questions[0][3:] == ((), None)
    path = write(tmp_path, make(answers=[], is_impossible=True))
    assert read_squad(path, True, True).questions[0][3:] == ((), None)
    path = write(tmp_path, make(answers=None, is_impossible=None))
    assert read_squad(path).questions[0].answers is None


@pytest.mark.data
def test_reads_real_files(data_dir):
    for name, count in (('train-v2.0', 742), ('dev-v2.0', 208), ('train-v1.1', 377)):
        path = data_dir / 'squad' / f'{name}-part.json'
        squad = read_squad(path, version_2='2.0' in name, training='train' in name)
        assert len(squad.questions) == count


def at(answer, start):
    return make(answers=[{'text': answer, 'answer_start': start}])


PART = r'squad.json, article 1, paragraph 1, question .x1.'


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ([], "squad.json: the field 'data' is missing; is this a file of SQuAD"),
        ({'data': 3}, "'data' is '3' and not a list"),
        ({'data': [{'title': 't'}]}, "article 1: the field 'paragraphs' is missing"),
        ({'data': [{'paragraphs': [{'qas': []}]}]}, "paragraph 1: the field 'context' is missing"),
        ({'data': [{'paragraphs': [{'context': ''}]}]}, "paragraph 1: the field 'qas' is missing"),
        ({'data': [{'paragraphs': [3]}]}, "paragraph 1: the field 'context' is missing"),
        ({'data': []}, 'squad.json has no questions'),
        (make(id=None), "paragraph 1, a question: the field 'id' is missing"),
        (make(id=7), "'id' is '7' and not a text"),
        (make(question=None), PART + ": the field 'question' is missing"),
        (make(answers=None), PART + ": the field 'answers' is missing"),
        (make(answers=[{'answer_start': 0}]), PART + ": the field 'text' is missing"),
        (make(answers=[{'text': 'a'}]), PART + ": the field 'answer_start' is missing"),
        (at('a man', '9'), PART + ": 'answer_start' is '9' and not a whole number"),
        (at('a man', True), PART + ": 'answer_start' is 'True' and not a whole number"),
        (at('a man', 8), PART + ": the answer 'a man' is not at its answer_start 8; it is at 9"),
        (at('man.', 8), PART + ": the answer 'man.' is not .* the text is not in the paragraph"),
        (at('\u00e9.', -2), 'is not at its answer_start -2; it is at 21'),
        (at('man', 900), 'is not at its answer_start 900; it is at 11'),
        (at('', 3), PART + ": the answer's text is empty"),
        (make(is_impossible=True), "'is_impossible' is True, and there are 2 answers"),
        (make(answers=[]), "'is_impossible' is False, and there are 0 answers"),
        (make(is_impossible='no'), "'is_impossible' is 'no'"),
        (make(answers=[], is_impossible=True), PART + ' has no answer: use `version_2`'),
    ],
)
def test_bad_files(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read_squad(write(tmp_path, content), training=True)


def test_ids_are_unique_and_answers_complete(tmp_path):
    content = make()
    content['data'] *= 2
    with pytest.raises(InputError, match='article 2, .*x1. is that of a question in article 1'):
        read_squad(write(tmp_path, content))
    content = json.loads(json.dumps(content))
    content['data'][1]['paragraphs'][0]['qas'][0]['id'] = 'x2'
    del content['data'][1]['paragraphs'][0]['qas'][0]['answers']
    with pytest.raises(InputError, match="the question 'x2' lacks the field 'answers'"):
        read_squad(write(tmp_path, content), True)


def test_files_that_are_not_json(tmp_path, monkeypatch):
    path = tmp_path / 'squad.json'
    for content in (b'', b'{"data": [', b'\xff\xfe\x00', json.dumps(make()).encode()[:-5]):
        path.write_bytes(content)
        with pytest.raises(InputError, match='squad.json.: it is not JSON'):
            read_squad(path)
    monkeypatch.setattr('model_zoo.tasks.squad._MOST_BYTES', 1000)
    with pytest.raises(InputError, match='/dev/zero.: it has more than 1000 bytes'):
        read_squad('/dev/zero', True)
    with pytest.raises(InputError, match='cannot read .*none.json'):
        read_squad(tmp_path / 'none.json')


# -- GluonNLP's download ------------------------------------------------------------------------


def test_gluonnlps_files_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr('gluonnlp.data.SQuAD._get_data', lambda self: None)  # the download
    for name in ('train-v1.1', 'dev-v2.0'):
        (tmp_path / f'{name}.json').write_text(json.dumps(make()))
    assert read_squad(find_squad('train', root=str(tmp_path))).questions
    assert find_squad('dev', True, str(tmp_path)) == str(tmp_path / 'dev-v2.0.json')
    with pytest.raises(InputError, match='cannot download the dev set of SQuAD 1.1'):
        find_squad('dev', root=str(tmp_path))  # GluonNLP reads a file of this name too


@pytest.mark.parametrize('segment', ['train', 'dev'])
def test_failed_download_says_what_to_do(tmp_path, monkeypatch, segment):
    # nobody listens there; the data set's own code
    monkeypatch.setenv('MXNET_GLUON_REPO', 'http://127.0.0.1:9/')
    flag = 'train_file' if segment == 'train' else 'predict_file'
    with pytest.raises(InputError, match=f'cannot download the {segment} set .*`{flag}`'):
        find_squad(segment, root=str(tmp_path))


# -- metrics ------------------------------------------------------------------------------------


@pytest.fixture
def questions(expected, tmp_path):
    content = json.loads(json.dumps(expected['content']))
    return read_squad(write(tmp_path, content), version_2=True).questions


def test_metrics_are_those_of_the_official_scripts(expected, questions):
    predictions = expected['predictions']
    some = [question for question in questions if question.answers]
    assert dict(score_v1(some, predictions)) == pytest.approx(expected['v1'], abs=1e-9)
    assert all(10 < value < 90 for value in expected['v1'].values())
    found = score_v2(questions, predictions)
    assert dict(found) == pytest.approx(expected['v2'], abs=1e-9)
    assert list(found)[:4] == ['exact', 'f1', 'total', 'HasAns_exact']
    best = best_thresholds(questions, predictions, expected['null_odds'])
    names = {name for name in expected['best'] if name.startswith('best')}
    assert set(best) == names and len(names) == 4
    assert dict(best) == pytest.approx({name: expected['best'][name] for name in names}, abs=1e-9)
    assert expected['best']['best_f1'] > expected['v2']['NoAns_f1'] / 3


def test_no_group_without_questions(questions):
    some = [question for question in questions if question.answers]
    predictions = {question.id: '' for question in questions}
    assert not any(name.startswith('NoAns') for name in score_v2(some, predictions))
    none = [question for question in questions if not question.answers]
    assert score_v2(none, predictions)['NoAns_f1'] == score_v2(none, predictions)['f1'] == 100


def test_normalized_answers():
    assert normalize_answer(' The U.S.  theatre, an-A ') == 'us theatre ana'
    assert normalize_answer('\u2013 a') == '\u2013'


def test_metrics_need_answers_and_predictions(questions):
    predictions = {question.id: 'x' for question in questions}
    with pytest.raises(InputError, match="question 'q0' has no answer: SQuAD 1.1"):
        score_v1(questions, predictions)
    with pytest.raises(InputError, match="no prediction for question 'q5'"):
        score_v2(questions, {name: '' for name in predictions if name != 'q5'})
    with pytest.raises(InputError, match="no right answers to question 'q0'"):
        score_v2([questions[0]._replace(answers=None)], predictions)
    with pytest.raises(InputError, match='no questions'):
        score_v2([], predictions)
