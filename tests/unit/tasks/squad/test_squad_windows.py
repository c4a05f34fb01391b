"""SQuAD's pieces, windows and answers are those of pytorch-pretrained-bert's run_squad.py."""

import json
import math

import numpy as np
import pytest
import toy_data
from refusals import refuses

from bert import BertTokenizer
from model_zoo.batches.windows import best_windows, text_windows
from model_zoo.errors import InputError
from model_zoo.inference.passages import map_to_text
from model_zoo.tasks.squad import SquadFeatures, encode_squad, find_answers, read_squad


@pytest.fixture(scope='module')
def small(fixtures):
    return json.loads((fixtures / 'squad.json').read_text(encoding='utf-8'))


@pytest.fixture
def vocab_file(small, tmp_path):
    path = tmp_path / 'vocab.txt'
    path.write_text('\n'.join(small['vocab']) + '\n', encoding='utf-8')
    return path


def write(path, content, version_2=True):
    """`content` as a file; without the questions that have no answer for version 1.1."""
    content = content if version_2 else toy_data.without_impossible(content)
    path.write_text(json.dumps(content), encoding='utf-8')
    return path


def make_features(path, tokenizer, config, training=False):
    version_2, _, length, stride, query, _, _ = config
    squad = read_squad(path, version_2, training)
    return SquadFeatures(squad, encode_squad(squad, tokenizer), tokenizer, length, stride, query)


def windows_of(features):
    """What the fixture tells of each window."""
    rows = []
    for number, feature in enumerate(features):
        window = features.windows[number]
        start, length, head = window.first, window.length, window.head
        question = next(q for q in range(len(features.squad)) if number in features.windows_of(q))
        windows = features.windows_of(question)
        parts = [features.windows[each][2:4] for each in windows]
        best = best_windows(parts, sum(parts[-1]))
        assert head == len(window.question) + 2
        assert feature.valid_length == len(feature.input_ids) == len(feature.token_types)
        label = [0, 0] if feature.label is None else [int(place) for place in feature.label]
        own = [head + i for i in range(length) if best[start + i] == number - windows.start]
        second = feature.token_types.tolist().index(1)
        rows.append([question, feature.input_ids.tolist(), second, label, own])
        assert feature.token_types[head:].all()
    return rows


def assert_same_answers(found, expected):
    assert found.predictions == expected['predictions']
    assert found.null_odds == pytest.approx(expected['null_odds'], abs=1e-12)
    assert found.nbest.keys() == found.predictions.keys()
    if not expected['null_odds']:  # the original leaves out the best ones of version 1.1
        assert expected['nbest'] == {}
        assert {key: best[0]['text'] for key, best in found.nbest.items()} == found.predictions
        return
    for key, best in found.nbest.items():
        original = expected['nbest'][key]
        assert [each['text'] for each in best] == [each['text'] for each in original]
        for ours, theirs in zip(best, original):
            assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize('number', range(4))
def test_windows_and_answers_are_the_originals(fixtures, small, vocab_file, tmp_path, number):
    case = small['cases'][number]
    version_2, lower, *_, n_best, longest = config = case['config']
    tokenizer = BertTokenizer(vocab_file, do_lower_case=lower)
    path = write(tmp_path / 'squad.json', small['content'], version_2)
    assert windows_of(make_features(path, tokenizer, config, training=True)) == case['windows']

    features = make_features(path, tokenizer, config)
    assert all(feature.label is None for feature in features)
    scores = np.load(fixtures / 'squad_scores.npz')[f'scores{number}']
    answers = find_answers(features, list(scores), n_best, longest, version_2, -1.0)
    assert_same_answers(answers, case['answers'])


def test_windows_cover_a_text():
    assert [each[:2] for each in text_windows(0, 10, 5)] == [(0, 0)]
    assert [each[:2] for each in text_windows(10, 10, 5)] == [(0, 10)]
    assert [each[:2] for each in text_windows(17, 10, 5)] == [(0, 10), (5, 15), (10, 17)]
    # no gaps, whatever the step
    assert [each[:2] for each in text_windows(12, 5, 100)] == [(0, 5), (5, 10), (10, 12)]
    best = best_windows([(0, 10), (5, 10), (10, 7)], 17)
    # piece 7 has two pieces at its shorter side in two windows as long, and takes the first one;
    # piece 12 too, and takes the longer one
    assert best.tolist() == [0] * 8 + [1] * 5 + [2] * 4


PARTS = [('cafe', 'Caf\u00e9'), ('( au', '(au'), ('lait )', 'lait)'), ('tea', None), ('', None)]


@pytest.mark.parametrize('part, found', PARTS)
def test_a_part_of_a_normalized_text_is_found_in_the_text(part, found):
    text, normalized = 'Caf\u00e9 (au  lait)', 'cafe ( au lait )'
    start, end = map_to_text(part, text, normalized)
    assert text[start:end] == (text if found is None else found)
    assert map_to_text('cafe', text, f'{normalized} x') == (0, len(text))  # other characters


def test_a_paragraph_without_words_has_no_window(vocab_file, tmp_path):
    content = {'data': [{'paragraphs': [{'context': ' \n', 'qas': []}, {'context': 'the town'}]}]}
    first, second = content['data'][0]['paragraphs']
    first['qas'] = [{'id': 'a', 'question': 'When?', 'answers': []}]
    second['qas'] = [{'id': 'b', 'question': 'When?', 'answers': []}]
    path = write(tmp_path / 'squad.json', content)
    config = [True, True, 64, 16, 16, 3, 3]
    features = make_features(path, BertTokenizer(vocab_file), config)
    assert len(features) == 1 and len(features.windows_of(0)) == 0
    size = features[0].valid_length
    answers = find_answers(features, [(np.zeros(size), np.zeros(size))], 3, 3, version_2=True)
    assert answers.predictions['a'] == '' and answers.null_odds['a'] > 1e5
    assert len(answers.predictions['b']) > 0
    plain = find_answers(features, [(np.zeros(size), np.zeros(size))], 3, 3)
    assert plain.predictions['a'] == 'empty' and plain.null_odds == {}


def test_answers_with_other_white_space_are_learnt(small, vocab_file, tmp_path):
    """The original leaves out questions whose answers have white space that it doesn't split at."""
    context = small['content']['data'][0]['paragraphs'][1]['context']
    start = context.index('3\u00a0May')
    entry = {'id': 'a', 'question': 'When?'}
    entry['answers'] = [{'text': '3\u00a0May 1999', 'answer_start': start}]
    content = {'data': [{'paragraphs': [{'context': context, 'qas': [entry]}]}]}
    tokenizer = BertTokenizer(vocab_file)
    config = [True, True, 384, 128, 64, 20, 30]
    path = write(tmp_path / 'squad.json', content)
    (feature,) = make_features(path, tokenizer, config, training=True)
    first, last = feature.label.astype(int)
    tokens = tokenizer.convert_ids_to_tokens(feature.input_ids[first : last + 1])
    assert tokens == tokenizer.tokenize('3 May 1999')
    scores = np.zeros((2, feature.valid_length))
    scores[0, first] = scores[1, last] = 9
    answers = find_answers(make_features(path, tokenizer, config), [scores])
    assert answers.predictions == {'a': '3\u00a0May 1999;'}  # the heuristic gives up


def test_lengths_and_scores_are_checked(small, vocab_file, tmp_path, caplog):
    path, tokenizer = write(tmp_path / 'squad.json', small['content']), BertTokenizer(vocab_file)
    cut = make_features(path, tokenizer, [True, True, 384, 128, 3, 20, 30])
    assert len(cut.windows[0].question) == 3
    assert 'of 16 questions are longer than 3 tokens' in caplog.text
    scores = np.zeros((len(cut), 2, 384), 'float32')
    scores[3, 1, 5] = math.nan
    with pytest.raises(InputError):
        find_answers(cut, scores, version_2=True)
    with refuses('max_length'):
        make_features(path, tokenizer, [True, True, 10, 5, 7, 20, 30])
    paragraph = {'context': 'town ' * 20, 'qas': [{'id': 'a', 'question': 'When?', 'answers': []}]}
    path = write(tmp_path / 'squad.json', {'data': [{'paragraphs': [paragraph]}]})
    parts = make_features(path, tokenizer, [True, True, 20, 12, 16, 3, 3])
    assert [window.length for window in parts.windows] == [12, 8]
    with refuses('doc_stride'):  # it would skip a word
        make_features(path, tokenizer, [True, True, 20, 13, 16, 3, 3])
