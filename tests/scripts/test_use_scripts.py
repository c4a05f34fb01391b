"""Commands that use a model: predict, ask, tag, fill, info, doctor."""

import csv
import io
import json
import re

import pytest
import tiny
from json_files import cases
from script_runs import load_script, refusal, run
from tiny_models import WORDS

import bert
from model_zoo.pretrained import list_pretrained


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    """A function that saves a tiny block and returns its folder."""
    root = tmp_path_factory.mktemp('models')

    def save(block_class, labels=None):
        folder = root / block_class.__name__
        sizes = {'num_hidden_layers': 1, 'max_position_embeddings': 32}
        extras = labels and {'finetuning_task': 'reviews'}
        tiny.save_bert(folder, WORDS, block_class, labels, extras, 0.4, 7, **sizes)
        return str(folder)

    return save


@pytest.fixture(scope='module')
def classifier(model):
    return model(bert.BertForSequenceClassification, ['bad', 'good'])


def lines_of(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_predict(classifier, tmp_path, capsys, monkeypatch):
    script = load_script('predict')
    assert run(script, classifier, 'the cat sleeps .', 'a') == 0
    two = lines_of(capsys)
    assert [each['text'] for each in two] == ['the cat sleeps .', 'a']
    assert {each['label'] for each in two} <= {'bad', 'good'}
    assert all(0.5 <= each['score'] <= 1 for each in two)
    monkeypatch.setattr('sys.stdin', io.TextIOWrapper(io.BytesIO(b'a\n\nthe cat sleeps .\n')))
    output = tmp_path / 'new' / 'labels.tsv'
    assert run(script, classifier, '--file', '-', '--format', 'tsv', '--output', str(output)) == 0
    rows = [line.split('\t') for line in output.read_text().splitlines()]
    assert rows[0] == ['label', 'score', 'text']
    assert [row[2] for row in rows[1:]] == ['a', '', 'the cat sleeps .']
    assert rows[2] == ['', '', ''] and rows[3][0] == two[0]['label']
    assert run(script, classifier, '--pairs', 'the cat\tthe dog', '--all_scores') == 0
    assert set(lines_of(capsys)[0]['scores']) == {'bad', 'good'}


#: file -> its content, and its own columns
TABLES = cases('scripts')['TABLES']


@pytest.mark.parametrize('name', TABLES)
def test_a_table_has_a_column_of_texts(classifier, tmp_path, name):
    path, output = tmp_path / name, tmp_path / 'labels.csv'
    content, own = TABLES[name][0], TABLES[name][1].split()
    path.write_text(content)
    assert run(load_script('predict'), classifier, '--file', path, '--output', output) == 0
    rows = list(csv.DictReader(output.open()))
    label = 'predicted_label' if 'label' in own else 'label'
    assert list(rows[0]) == ([*own, label, 'score'] if own else ['label', 'score', 'text'])
    text = 'review' if 'review' in own else 'text'
    assert [row[text] for row in rows if row[text]] == ['the cat, a dog', 'in "paris"']
    assert all(row[label] in ('bad', 'good') for row in rows if row[text])
    assert 'id' not in own or [row['id'] for row in rows] == ['1', '2']


def test_predictions_as_json_and_of_other_encodings(classifier, tmp_path):
    path, output = tmp_path / 'rows.csv', tmp_path / 'out.json'
    path.write_text('text;number\nthe caf\xe9;1\na dog;2\n', 'latin-1')
    argv = [classifier, '--file', str(path), '--output', str(output), '--encoding', 'latin-1']
    assert run(load_script('predict'), *argv) == 0
    rows = json.loads(output.read_text('utf-8'))
    assert [list(row) for row in rows] == [['text', 'number', 'label', 'score']] * 2
    assert [row['text'] for row in rows] == ['the café', 'a dog']


def test_blank_texts_and_unknown_endings_are_refused(classifier, tmp_path, capsys):
    predict = load_script('predict')
    assert 'text 2 is blank' in refusal(capsys, predict, classifier, 'a', ' ')
    said = refusal(capsys, predict, classifier, 'a', '--output', tmp_path / 'a.xlsx')
    assert '.csv, .tsv, .jsonl' in said and not (tmp_path / 'a.xlsx').exists()


def test_a_column_is_named(classifier, tmp_path, capsys):
    path = tmp_path / 'table.csv'
    path.write_text('name,words,more\nx,the cat,a dog\ny,in paris,a\n')
    script = load_script('predict')
    argv = [classifier, '--file', str(path)]
    assert 'name, words, more' in refusal(capsys, script, *argv)
    assert "'title'" in refusal(capsys, script, *argv, '--text_column', 'title')
    for column in ('words', '1'):
        assert run(script, *argv, '--text_column', column) == 0
        rows = lines_of(capsys)
        assert all(row['label'] in ('bad', 'good') for row in rows)
        if column == '1':  # then there may be no header
            assert [row['text'] for row in rows] == ['words', 'the cat', 'in paris']
        else:
            assert [row['words'] for row in rows] == ['the cat', 'in paris']
    assert run(script, *argv, '--text_column', 'words', '--text_pair_column', 'more') == 0
    assert [row['more'] for row in lines_of(capsys)] == ['a dog', 'a']
    path.write_text('premise,hypothesis\nthe cat,a dog\n')
    assert run(script, *argv) == 0
    assert [row['hypothesis'] for row in lines_of(capsys)] == ['a dog']
    path.write_text('text,label\nthe cat\n')
    assert 'line 2' in refusal(capsys, script, *argv, '--text_column', 'label')


def test_ask_of_a_table(model, tmp_path, capsys):
    folder, path = model(bert.BertForQuestionAnswering), tmp_path / 'questions.csv'
    path.write_text('context,question\nThe cat sleeps in Paris.,where ?\na dog .,a ?\n')
    assert run(load_script('ask'), folder, '--file', str(path)) == 0
    answers = lines_of(capsys)
    assert [each['question'] for each in answers] == ['where ?', 'a ?']
    assert answers[1]['answer'] in 'a dog .'
    assert run(load_script('ask'), folder, '--file', str(path), '--text', 'the film .') == 0
    assert all(each['answer'] in 'the film .' for each in lines_of(capsys))


def test_ask(model, tmp_path, capsys):
    folder = model(bert.BertForQuestionAnswering)
    text = 'The cat sleeps in Paris. ' * 8
    (tmp_path / 'text.txt').write_text(text.strip() + '\n')
    script = load_script('ask')
    assert run(script, folder, '--context', str(tmp_path / 'text.txt'), 'where ?', 'a ?') == 0
    answers = lines_of(capsys)
    assert [each['question'] for each in answers] == ['where ?', 'a ?']
    assert all(text[each['start'] : each['end']] == each['answer'] != '' for each in answers)
    assert run(script, folder, '--text', text, 'where ?', '--top_k', '3') == 0
    assert len(lines_of(capsys)) == 3
    paragraph = {'context': text.strip(), 'qas': [{'id': '1', 'question': 'a ?'}]}
    squad = tmp_path / 'squad.json'
    squad.write_text(json.dumps({'data': [{'paragraphs': [paragraph]}]}))
    assert run(script, folder, '--context', str(squad), 'where ?', 'a ?') == 0
    assert lines_of(capsys) == answers


def test_tag_says_that_there_is_nothing(model, capsys):
    folder = model(bert.BertForTokenClassification, ['O', 'O2'])
    assert run(load_script('tag'), folder, '--strategy', 'none', 'a dog') == 0
    said = capsys.readouterr()
    assert said.out and 'no entities' not in said.err
    assert run(load_script('tag'), folder, '', '--format', 'tsv') == 0
    assert 'no entities were found' in capsys.readouterr().err


def test_info(classifier, capsys):
    script = load_script('info')
    assert run(script, classifier, '--format', 'json') == 0
    told = json.loads(capsys.readouterr().out)
    assert told['family'] == 'bert' and told['labels'] == ['bad', 'good']
    assert told['trained for'] == 'reviews' and told['longest text'] == 32
    assert told['configuration']['hidden_size'] == 16
    assert run(script, classifier) == 0
    assert 'bad, good' in capsys.readouterr().out
    assert run(script, '--list') == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(list_pretrained())
    wanted = ['gpt2_12_768_12', 'openai_webtext', 'gpt2,', 'gpt2_117m']
    assert wanted in [line.split() for line in lines]
    assert run(script, '--list', '--format', 'json') == 0
    assert {'model', 'dataset', 'names'} == set(json.loads(capsys.readouterr().out)[0])


def test_doctor(capsys, monkeypatch):
    script = load_script('doctor')
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    run(script)
    out = capsys.readouterr().out
    assert 'NumPy' in out and re.search(r'MXNet +1\.', out)
    monkeypatch.setattr(script, '_version', {'onnxruntime': '1.18.1'}.get)
    run(script)
    assert 'pip install -U onnxruntime' in capsys.readouterr().out
