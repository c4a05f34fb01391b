"""What a person does: train on each form of rows, ask the result, save, open, use and serve it."""

import json
import logging
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
import tiny
import tiny_models
from script_runs import ROOT, load_script, run

import model_zoo
from bert import BertForMaskedLM
from bert_embedding import BertEmbedding
from model_zoo.inference.server import build_app

WORDS = [*'abcdefgh.,!?()-', 'cat', '##s']
SMALL = {'epochs': 1, 'batch_size': 8, 'lr': 3e-3, 'seed': 1, 'max_length': 16}
CONTEXT = 'Cats (a), b-c. D e, f!'
QUESTION = {'question': 'Cat?', 'context': CONTEXT}
CHOICE = {'text': 'a, b', 'choices': ['c.', 'cats']}
PAIR = ('A!', 'c-d, cats.')


LABELLED = [('A b, cats!', 'yes'), ('c-d.', 'no')] * 6
PAIRS = [('a!', 'b', 'yes'), ('c', 'd.', 'no')] * 6
TAGGED = [(['Cats', ',', 'a-b'], ['B-X', 'O', 'B-X']), (['c', 'd.'], ['O', 'B-X'])] * 6
ASKED = [('Cat?', CONTEXT, 'b-c', 10), ('d!', CONTEXT, 'e', 17)] * 6
CHOICES = [('a, b', ['c.', 'd'], 0), ('b a', ['cats', 'c'], 1)] * 6
ALIKE = [('a, b', 'b a!', 1.0), ('a b.', 'g h', 0.0), ('c', 'cats', 0.5)] * 4
NAMED = [dict(zip(('premise', 'hypothesis', 'label'), row)) for row in PAIRS]
NUMBERS = [('a b!', 1.5), ('c-d', 4.0)] * 6
SEVERAL = [('a b.', ['x', 'y']), ('c, d', ['y']), ('cats', [])] * 4
SENTENCES = ['a b c.', 'D, e f', '', 'cats h!'] * 4
CLASSIFY, ANSWER = 'text-classification', 'question-answering'
UNANSWERED = [*ASKED, ('g', CONTEXT, None, None)]
#: task, rows, further settings, an example, the command for it and its flags
ROADS = {
    'text': (CLASSIFY, LABELLED, {}, 'Cats, b!', 'predict'),
    'pairs': (CLASSIFY, PAIRS, {}, PAIR, 'predict', '--pairs'),
    'pairs dicts': (CLASSIFY, NAMED, {}, {'text': 'A!', 'text_pair': 'c-d'}, 'predict', '--pairs'),
    'numbers': (CLASSIFY, NUMBERS, {'regression': True}, 'b, a.', 'predict'),
    'several labels': (CLASSIFY, SEVERAL, {'multi_label': True}, 'cats b.', 'predict'),
    'tags': ('token-classification', TAGGED, {}, 'Cats (a-b), c. D!', 'tag'),
    'answers': (ANSWER, ASKED, {}, QUESTION, 'ask', '--text', CONTEXT),
    'no answers': (ANSWER, UNANSWERED, {'version_2': True}, QUESTION, 'ask', '--text', CONTEXT),
    'choices': ('multiple-choice', CHOICES, {}, CHOICE, None),
    'scores': ('sentence-similarity', ALIKE, {}, PAIR, None),
    'matches': ('sentence-similarity', [('a b', 'b a'), ('c', 'd')] * 6, {}, PAIR, None),
    'lines': ('text-generation', ['a few words here'] * 20, {}, 'a few', 'generate'),
    'sentences': ('fill-mask', SENTENCES, {}, 'A, [MASK]!', 'fill', '--top_k', 3),
}


@pytest.fixture(scope='module')
def start(tmp_path_factory):
    """Task -> the folder of the model that its training begins with."""
    root = tmp_path_factory.mktemp('start')
    tiny.save_bert(root / 'bert', WORDS)
    tiny.save_bert(root / 'masked', WORDS, BertForMaskedLM)
    (root / 'writer').mkdir()
    folders = {
        'fill-mask': str(root / 'masked'),
        'text-generation': tiny_models.save_gpt2(root / 'writer'),
    }
    return lambda task: folders.get(task, str(root / 'bert'))


def close(result, other):
    """Compare results, whose numbers may differ in the last digits."""
    if isinstance(result, dict):
        assert result.keys() == other.keys()
        return all(close(result[name], other[name]) for name in result)
    if isinstance(result, (list, tuple)):
        return len(result) == len(other) and all(map(close, result, other))
    if isinstance(result, (float, np.floating)):
        return result == pytest.approx(other, abs=1e-5)
    return result == other


def asked(example):
    """The words of the command line for an example."""
    if isinstance(example, dict) and 'question' in example:
        return example['question']
    values = example.values() if isinstance(example, dict) else example
    return example if isinstance(example, str) else '\t'.join(values)


def answers_of(client, task, example):
    """A server's results for an example that Python takes as a tuple."""
    if isinstance(example, tuple) and task == 'sentence-similarity':
        example = {'source_sentence': example[0], 'sentences': [example[1]]}
    elif isinstance(example, tuple):
        example = {'text': example[0], 'text_pair': example[1]}
    response = client.post('/models/m', json={'inputs': example})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize('road', ROADS)
def test_from_rows_to_answers(start, tmp_path, capsys, road):
    testclient = pytest.importorskip('starlette.testclient')
    task, rows, more, example, verb, *flags = ROADS[road]
    options = {'top_k': 3} if task == 'fill-mask' else {}
    more = {'max_query_length': 4, 'max_length': 24, **more} if task == ANSWER else more
    trained = model_zoo.finetune(
        start(task), task, rows, output_dir=str(tmp_path / 'run'), **{**SMALL, **more}
    )
    result = trained(example, **options)
    trained.save(tmp_path / 'saved')
    opened = model_zoo.pipeline(str(tmp_path / 'saved'))
    if task == 'sentence-similarity':  # the folder's own task is vectors
        opened = model_zoo.pipeline(task, str(tmp_path / 'saved'))
    assert close(opened(example, **options), result)
    assert close(
        model_zoo.pipeline(task, str(tmp_path / 'run' / 'best_model'))(example, **options), result
    )

    with testclient.TestClient(build_app({'m': opened})) as client:
        served = answers_of(client, task, example)
    assert same_answers(task, served, result)

    if verb:
        script = {'generate': 'generate_gpt2'}.get(verb, verb)
        capsys.readouterr()
        assert run(load_script(script), str(tmp_path / 'saved'), asked(example), *flags) == 0
        said = capsys.readouterr().out
        assert same_records(task, said, result)

    if road == next(name for name in ROADS if ROADS[name][0] == task) or road == 'pairs':
        log = next((tmp_path / 'run').glob('log_*')).read_text('utf-8')
        assert_next_runs(log)


def same_answers(task, served, result):
    """Whether a server's answers say what the pipeline's result does."""
    if task == 'text-classification':  # all labels, in a list for each text
        best = result if isinstance(result, list) else [result]
        return close(best, served[0][: len(best)])
    if task == 'sentence-similarity':
        return close(result, served[0])
    if task == 'fill-mask':
        return close(result, served[:3])
    if task == 'text-generation':
        return served[0]['generated_text'].startswith('a few')
    return close(result, served)


def same_records(task, said, result):
    """Whether a command's records say what the pipeline's result does."""
    if task == 'text-generation':
        return 'SAMPLE' in said
    records = list(map(json.loads, said.splitlines()))
    if task == 'fill-mask':
        found = [(record['word'], record['text'], record['score']) for record in records]
        return close(found, [(e['token_str'], e['sequence'], e['score']) for e in result])
    expected = result if isinstance(result, list) else [result]
    if task == 'text-classification' and 'scores' in records[0]:  # of several labels
        found = dict(zip(('label', 'scores'), records[0].values()))
        assert found['label'] == ','.join(sorted(answer['label'] for answer in expected))
        return all(close(answer['score'], found['scores'][answer['label']]) for answer in expected)
    if task == 'text-classification' and 'label' not in records[0]:  # a number by its name
        return close(expected[0]['score'], records[0][expected[0]['label']])
    return len(records) == len(expected) and all(
        close(answer, {name: record[name] for name in answer})
        for answer, record in zip(expected, records)
    )


def assert_next_runs(log):
    """Run what a command proposes to do next, in a process of its own."""
    zoo = shlex.join([sys.executable, str(ROOT / 'scripts' / 'zoo.py')])  # not an installed one
    line = re.sub(r'\S*\bzoo ', f'{zoo} ', log.rpartition('next: ')[2].strip(), count=1)
    if ' serve ' in line:  # which doesn't end; a server has opened the folder above
        assert os.path.isdir(shlex.split(line)[3])
        return
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_a_run_of_version_0_3_is_used_and_continued(start, tmp_path):
    """Its best_model has model.params, which is read first: a later one replaces it."""
    task, text, best = 'text-classification', 'a b', tmp_path / 'run' / 'best_model'
    options = {'output_dir': str(best.parent), 'keep_state': True, **SMALL}
    first = model_zoo.finetune(start(task), task, LABELLED, LABELLED, **options)
    for name in ('model.safetensors', 'SHA256SUMS'):
        (best / name).unlink()
    first.model.save_pretrained(str(best), first.tokenizer)
    assert (best / 'model.params').is_file()
    assert close(model_zoo.pipeline(str(best))(text), first(text))
    assert BertEmbedding(str(best)).sentence_vectors([text]).shape == (1, 16)
    assert run(load_script('predict'), best, text) == 0
    exported = tmp_path / 'exported'
    assert run(load_script('export', ROOT / 'export'), best, '--output_dir', exported) == 0
    assert model_zoo.finetune(str(best), task, LABELLED, **SMALL).model.num_labels == 2

    more = model_zoo.finetune(
        start(task), task, LABELLED, LABELLED, resume=True, **{**options, 'epochs': 3}
    )
    assert sorted(best.glob('model.*')) == [best / 'model.safetensors']
    assert len(more.history) == 3 and not close(more(text), first(text))
    assert close(model_zoo.pipeline(str(best))(text), more(text))


def test_a_number_has_the_name_of_its_column(start):
    rows = [{'one': 'a', 'two': 'b', 'mark': 1.5}, {'one': 'c', 'two': 'd', 'mark': 4.0}] * 6
    columns = {'text': 'one', 'text_pair': 'two', 'label': 'mark', 'regression': True}
    sets = rows, rows, rows[:1]
    trained = model_zoo.finetune(start(CLASSIFY), CLASSIFY, *sets, **columns, **SMALL)
    assert 'pearson' in trained.scores
    assert trained(PAIR)['label'] == 'mark'
    assert trained(('a', 'b'))['score'] == pytest.approx(trained.predictions[0], abs=1e-5)


def test_texts_are_cut_with_a_warning_and_the_same_in_use(start, tmp_path, monkeypatch):
    rows = [('a b ' * 9, 'yes'), ('c d', 'no')] * 6
    monkeypatch.setattr(logging.getLogger(), 'handlers', [])  # as in a terminal
    with pytest.warns(UserWarning) as warned:
        trained = model_zoo.finetune(
            start('text-classification'), 'text-classification', rows, **{**SMALL, 'max_length': 9}
        )
    assert any('6 of 12' in str(each.message) for each in warned)
    whole, seen = rows[0][0], 'a b ' * 3 + 'a'
    assert trained(whole) == trained(seen) != trained('a b')
    trained.save(tmp_path / 'saved')
    assert model_zoo.pipeline(str(tmp_path / 'saved')).max_length == 9
