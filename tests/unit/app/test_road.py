"""What a person does: train on each form of rows, ask the result, save, open and use it."""

import json
import logging

import pytest
import tiny
import tiny_models
from arrays import assert_close
from script_runs import ROOT, assert_next_runs, load_script, run

import model_zoo
from bert import BertForMaskedLM
from bert_embedding import BertEmbedding

WORDS = [*'abcdefgh.,!?()-', 'cat', '##s']
SMALL = {'epochs': 1, 'batch_size': 8, 'lr': 3e-3, 'seed': 1, 'max_length': 16}
PAIR = ('A!', 'c-d, cats.')
LABELLED = [('A b, cats!', 'yes'), ('c-d.', 'no')] * 6
PAIRS = [('a!', 'b', 'yes'), ('c', 'd.', 'no')] * 6
TAGGED = [(['Cats', ',', 'a-b'], ['B-X', 'O', 'B-X']), (['c', 'd.'], ['O', 'B-X'])] * 6
NAMED = [dict(zip(('premise', 'hypothesis', 'label'), row)) for row in PAIRS]
CLASSIFY = 'text-classification'
#: task, rows, an example; roads/test_evaluation_roads.py has those whose sets are predicted
ROADS = {
    'pairs dicts': (CLASSIFY, NAMED, {'text': 'A!', 'text_pair': 'c-d'}),
    'tags': ('token-classification', TAGGED, 'Cats (a-b), c. D!'),
    'matches': ('sentence-similarity', [('a b', 'b a'), ('c', 'd')] * 6, PAIR),
    'lines': ('text-generation', ['a few words here'] * 20, 'a few'),
    'sentences': ('fill-mask', ['a b c.', 'D, e f', '', 'cats h!'] * 4, 'A, [MASK]!'),
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


@pytest.mark.parametrize('road', ROADS)
def test_from_rows_to_answers(start, tmp_path, capsys, road):
    task, rows, example = ROADS[road]
    run_folder = tmp_path / 'run'
    trained = model_zoo.finetune(start(task), task, rows, output_dir=str(run_folder), **SMALL)
    result = trained(example)
    trained.save(tmp_path / 'saved')
    for folder in (tmp_path / 'saved', run_folder / 'best_model'):
        assert_close(model_zoo.pipeline(task, str(folder))(example), result)
    if task == 'fill-mask':
        capsys.readouterr()
        assert run(load_script('fill'), str(tmp_path / 'saved'), example) == 0
        records = list(map(json.loads, capsys.readouterr().out.splitlines()))
        found = [(record['word'], record['text'], record['score']) for record in records]
        assert_close(found, [(e['token_str'], e['sequence'], e['score']) for e in result])
    if road != 'matches':
        assert_next_runs(run_folder)


def test_a_run_of_version_0_3_is_used_and_continued(start, tmp_path):
    """Its best_model has model.params, which is read first: a later one replaces it."""
    task, text, best = 'text-classification', 'a b', tmp_path / 'run' / 'best_model'
    options = {'output_dir': str(best.parent), 'keep_state': True, **SMALL}
    first = model_zoo.finetune(start(task), task, LABELLED, LABELLED, **options)
    for name in ('model.safetensors', 'SHA256SUMS'):
        (best / name).unlink()
    first.model.save_pretrained(str(best), first.tokenizer)
    assert (best / 'model.params').is_file()
    assert_close(model_zoo.pipeline(str(best))(text), first(text))
    assert BertEmbedding(str(best)).sentence_vectors([text]).shape == (1, 16)
    assert run(load_script('predict'), best, text) == 0
    exported = tmp_path / 'exported'
    assert run(load_script('export', ROOT / 'export'), best, '--output_dir', exported) == 0
    assert model_zoo.finetune(str(best), task, LABELLED, **SMALL).model.num_labels == 2

    more = model_zoo.finetune(
        start(task), task, LABELLED, LABELLED, resume=True, **{**options, 'epochs': 3}
    )
    assert sorted(best.glob('model.*')) == [best / 'model.safetensors']
    assert len(more.history) == 3 and more(text) != first(text)
    assert_close(model_zoo.pipeline(str(best))(text), more(text))


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
