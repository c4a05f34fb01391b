"""SQuAD's JSON is read and checked; its metrics are the official scripts'."""

import json

import pytest
from json_files import cases
from refusals import refuses

from model_zoo.tasks.settings import SquadSettings
from model_zoo.tasks.squad import Answers, SquadTask, read_squad, score_v1, score_v2
from model_zoo.tasks.squad_files import Question, SquadSet, find_squad
from model_zoo.tasks.task import Data


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
    assert squad == [Question('x1', 'Who?', 0, ('a man', 'man'), 9, *squad.paragraphs)]
    assert squad.is_training and squad.path == str(path)
    # places don't matter where nothing is learnt: the second answer's is wrong
    assert read_squad(path) == [squad[0]._replace(start=None)]
    assert read_squad(path).checksum == squad.checksum
    path.write_bytes(b'\xef\xbb\xbf' + path.read_bytes())
    assert read_squad(path) and read_squad(path).checksum != squad.checksum


def test_questions_without_an_answer(tmp_path):
    # version 1.1's form of it, a test set, and 2.0's
    path = write(tmp_path, make(answers=[], is_impossible=None))
    assert read_squad(path, True, True)[0][3:5] == ((), None)
    path = write(tmp_path, make(answers=[], is_impossible=True))
    assert read_squad(path, True, True)[0][3:5] == ((), None)
    path = write(tmp_path, make(answers=None, is_impossible=None))
    assert read_squad(path)[0].answers is None
    with refuses(line=0):  # version 1.1 has an answer to each
        read_squad(write(tmp_path, make(answers=[], is_impossible=None)), strict=True)


def at(answer, start):
    return make(answers=[{'text': answer, 'answer_start': start}])


BAD = cases('squad')['BAD']


@pytest.mark.parametrize('content, field', BAD)
def test_bad_files(tmp_path, content, field):
    with refuses(says=field):
        read_squad(write(tmp_path, content), training=True)


UNUSABLE = [make(answers=answers) for answers in (None, [], [{'text': 'a'}])]
UNUSABLE += [at('a man', 8), at('\u00e9.', -2), at('man', 11.5), at('', 3)]
UNUSABLE += [make(is_impossible=True)]


@pytest.mark.parametrize('content', UNUSABLE)
def test_questions_that_cannot_be_learned_are_skipped(tmp_path, content, caplog):
    content = json.loads(json.dumps(content).replace('x1', 'x2'))
    content['data'] = [*make()['data'], *content['data']]
    path = write(tmp_path, content)
    assert [question.id for question in read_squad(path, True, training=True)] == ['x1']
    (record,) = caplog.records
    assert '1 of 2' in record.getMessage() and 'x2' in record.getMessage()
    with refuses(line=1):
        read_squad(path, True, training=True, strict=True)


def test_numbers_as_other_programs_write_them(tmp_path):
    for start in (9.0, '9', '9 '):
        squad = read_squad(write(tmp_path, at('a man', start)), training=True)
        assert squad[0].start == 9
    answers = [{'text': 'man', 'answer_start': 0}, {'text': 'a man', 'answer_start': 9}]
    squad = read_squad(write(tmp_path, make(id=7, answers=answers)), training=True)
    assert squad == [Question('7', 'Who?', 0, ('a man', 'man'), 9, *squad.paragraphs)]


@pytest.mark.parametrize('form', ['jsonl', 'array', 'data', 'memory', 'DataFrame'])
def test_rows_of_the_hub(tmp_path, form):
    answers = {'text': ['a man'], 'answer_start': [3]}
    row = {'context': 'So a man.', 'question': 'Who?', 'answers': answers}
    rows = [{'id': f'q{n}', **row} for n in range(2)]
    source = tmp_path / ('rows.jsonl' if form == 'jsonl' else 'rows.json')
    if form == 'jsonl':
        source.write_text('\n'.join(map(json.dumps, rows)))
    elif form in ('array', 'data'):
        source.write_text(json.dumps(rows if form == 'array' else {'data': rows}))
    else:
        source = rows if form == 'memory' else pytest.importorskip('pandas').DataFrame(rows)
    questions = read_squad(source, training=True)
    expected = [(name, 'Who?', ('a man',), 3) for name in ('q0', 'q1')]
    assert [question[:2] + question[3:5] for question in questions] == expected


@pytest.mark.parametrize(('segment', 'count'), [('train', 10000), ('dev', 100), ('test', 100)])
def test_debug_reads_the_first_questions(tmp_path, segment, count):
    """And their paragraphs alone."""
    answers = [{'text': 'man', 'answer_start': 2}]
    paragraphs = [
        {'context': f'A man {n}', 'qas': [{'id': n, 'question': 'Who?', 'answers': answers}]}
        for n in range(count + 2)
    ]
    path = write(tmp_path, {'data': [{'paragraphs': paragraphs}]})
    task = SquadTask(SquadSettings(output_dir='unused', debug=True))
    rows = task.read(str(path), segment)
    assert len(rows) == len(rows.paragraphs) == count


# -- GluonNLP's download ------------------------------------------------------------------------


def test_gluonnlps_files_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr('gluonnlp.data.SQuAD._get_data', lambda self: None)  # the download
    for name in ('train-v1.1', 'dev-v2.0'):
        (tmp_path / f'{name}.json').write_text(json.dumps(make()))
    assert read_squad(find_squad('train', root=str(tmp_path)))
    assert find_squad('dev', True, str(tmp_path)) == str(tmp_path / 'dev-v2.0.json')
    with refuses(says='dev_file'):
        find_squad('dev', root=str(tmp_path))  # GluonNLP reads a file of this name too


def test_failed_download_says_what_to_do(tmp_path, monkeypatch):
    # nobody listens there; the data set's own code
    monkeypatch.setenv('MXNET_GLUON_REPO', 'http://127.0.0.1:9/')
    with refuses(says='train_file'):
        find_squad('train', root=str(tmp_path))


# -- metrics ------------------------------------------------------------------------------------


@pytest.fixture
def questions(expected, tmp_path):
    content = json.loads(json.dumps(expected['content']))
    return read_squad(write(tmp_path, content), version_2=True)


def test_metrics_are_those_of_the_official_scripts(expected, questions):
    predictions = expected['predictions']
    some = [question for question in questions if question.answers]
    assert dict(score_v1(some, predictions)) == pytest.approx(expected['v1'], abs=1e-9)
    assert all(10 < value < 90 for value in expected['v1'].values())
    found = score_v2(questions, predictions)
    assert dict(found) == pytest.approx(expected['v2'], abs=1e-9)
    assert list(found)[:4] == ['exact', 'f1', 'total', 'HasAns_exact']
    found = score_v2(questions, predictions, null_odds=expected['null_odds'])
    best = {name: value for name, value in found.items() if name.startswith('best')}
    names = {name for name in expected['best'] if name.startswith('best')}
    assert set(best) == names and len(names) == 4
    assert dict(best) == pytest.approx({name: expected['best'][name] for name in names}, abs=1e-9)
    assert expected['best']['best_f1'] > expected['v2']['NoAns_f1'] / 3


def test_f1_by_characters():
    """Values of KorQuAD's evaluate-v1.0.py."""
    answers = {'a': '교향곡을', 'b': '《파우스트》 서곡', 'c': 'The end'}
    questions = [Question(name, '', 0, (answer,), None) for name, answer in answers.items()]
    predictions = {'a': '교향곡', 'b': '파우스트 서곡', 'c': 'end'}
    scores = score_v1(questions, predictions, characters=True)
    assert scores['exact_match'] == pytest.approx(100 / 3)
    assert scores['f1'] == pytest.approx(100 * (6 / 7 + 1 + 2 / 3) / 3)
    assert score_v1(questions, predictions)['f1'] == pytest.approx(100 * (0 + 0.5 + 1) / 3)
    scores = score_v2(questions, {**predictions, 'a': ''}, characters=True)
    assert scores['HasAns_f1'] == pytest.approx(100 * (0 + 1 + 2 / 3) / 3)


@pytest.mark.parametrize(('name', 'f1'), [('KorQuAD_v1.0_dev.json', 600 / 7), ('dev.json', 0)])
def test_the_files_name_chooses(name, f1):
    question = Question('a', '', 0, ('교향곡을',), None)
    data = Data(SquadSet(f'in/{name}', [''], [question], False, ''), (), None)
    for options, expected in (({}, f1), ({'f1_characters': f1 == 0}, 600 / 7 - f1)):
        task = SquadTask(SquadSettings(output_dir='unused', **options))
        found = task.score(data, Answers({}, {'a': [{'text': '교향곡'}]}, {}))
        assert found['f1'] == pytest.approx(expected)
