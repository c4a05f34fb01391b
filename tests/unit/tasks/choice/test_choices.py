"""SWAG and Story Cloze: the readers, features and batches of choices, and predictions."""

import json

import numpy as np
import pytest
from json_files import cases
from refusals import refuses
from tiny import SPECIAL
from toy_data import STORIES

from bert import BertTokenizer
from model_zoo.batches import BucketedLoader, Sample
from model_zoo.tasks.choice import (
    ChoiceSettings,
    ChoiceTask,
    StorySettings,
    StoryTask,
    SwagExample,
    encode_stories,
    encode_swag,
    hold_out,
    read_story_cloze,
    read_swag,
)
from model_zoo.tasks.tagging import Sentence
from model_zoo.tasks.task import Data
from model_zoo.tokenization.vocab import load_vocab

HEADER = ',video-id,fold-ind,startphrase,sent1,sent2,gold,ending0,ending1,ending2,ending3,label'
ROW = '0,v1,f7,"He runs. He","He runs, fast.",He,gold,stops.,"flies, high.",sits.,"says ""ow"".",2'
JSON = {'sent1': 'He runs.', 'sent2': 'He', 'ending0': 'stops.', 'ending1': 'flies.', 'label': 1}


def write(folder, *lines):
    path = folder / 'choices.csv'
    path.write_text('\n'.join(lines) + '\n', encoding='utf-8')
    return path


def test_csv_as_released(tmp_path):
    second = ROW.replace('f7', 'f9')[:-1] + '0'
    first, other = read_swag(write(tmp_path, HEADER, ROW, '', second))
    endings = ('stops.', 'flies, high.', 'sits.', 'says "ow".')
    assert first == SwagExample('f7', 'He runs, fast.', 'He', endings, 2)
    assert (other.guid, other.label) == ('f9', 0)
    (unlabelled,) = read_swag(write(tmp_path, HEADER[: -len(',label')], ROW[:-2]))
    assert unlabelled == first._replace(label=None)


def test_json_lines_with_any_number_of_endings(tmp_path):
    rows = [JSON, {**JSON, 'label': '0'}, {**JSON, 'sent2': ''}]
    found = read_swag(write(tmp_path, *map(json.dumps, rows), ''))
    assert found[0] == SwagExample('0', 'He runs.', 'He', ('stops.', 'flies.'), 1)
    assert [example.label for example in found] == [1, 0, 1]
    assert [example.guid for example in found] == ['0', '1', '2']
    five = {**JSON, **{f'ending{number}': str(number) for number in range(5)}, 'label': 4}
    (example,) = read_swag(write(tmp_path, json.dumps(five)))
    assert example.endings == ('0', '1', '2', '3', '4') and example.label == 4


BAD = [
    ((HEADER,), None),
    ((HEADER, ROW + ',x'), 2),
    *(((HEADER, ROW[:-1] + label), 2) for label in ('4', '\u00b2', '9' * 5000, '-1')),
    ((HEADER, ROW, ROW[:-1]), 3),
    ((HEADER, ROW.replace('"He runs, fast."', ' ')), 2),
    ((json.dumps({**JSON, 'ending1': 3}),), 1),
    ((json.dumps({**JSON, 'label': True}),), 1),
    ((json.dumps(JSON), json.dumps({**JSON, 'ending2': 'x'})), 2),
]


@pytest.mark.parametrize('lines, number', BAD)
def test_bad_files_are_named(tmp_path, lines, number):
    with refuses(says=(f'line {number}' if number else 'choices.csv')):
        read_swag(write(tmp_path, *lines))


@pytest.fixture(scope='module')
def tokenizer():
    return BertTokenizer(load_vocab([*SPECIAL, *'abcdefghij']))


def texts(tokenizer, feature):
    return [''.join(tokenizer.convert_ids_to_tokens(ids)[1:-1]) for ids in feature.input_ids]


def test_features(tokenizer, caplog):
    example = SwagExample('', 'a b c', 'd', ('e', 'f g'), 1)
    (feature,) = encode_swag([example], tokenizer, 16)
    assert texts(tokenizer, feature) == ['abc[SEP]de', 'abc[SEP]dfg']
    types = [[0] * 5 + [1] * 3, [0] * 5 + [1] * 4]
    assert [each.tolist() for each in feature.token_types] == types
    assert feature.label == 1 and not caplog.text
    # the longer text loses its end; at equal lengths the second does
    (feature,) = encode_swag([example], tokenizer, 7)
    assert texts(tokenizer, feature) == ['ab[SEP]de', 'ab[SEP]df']
    assert '1 of 1 examples are longer than 7 tokens' in caplog.text
    caplog.clear()
    encode_swag([example, example], tokenizer, 8)  # the longer ending loses one token
    assert '2 of 2 examples are longer than 8 tokens' in caplog.text
    (feature,) = encode_swag([example._replace(start='')], tokenizer, 16)
    assert texts(tokenizer, feature) == ['abc[SEP]e', 'abc[SEP]fg']
    with refuses('max_length'):
        encode_swag([example], tokenizer, 4)


@pytest.mark.parametrize('has_types', [True, False])
def test_batches(has_types):
    lengths = np.random.RandomState(0).randint(2, 20, (23, 3))
    features, seen = [], []
    for number, row in enumerate(lengths):
        ids = tuple(np.full(n, number + 1, np.int32) for n in row)
        types = tuple((np.arange(n) >= n // 2).astype(np.int32) for n in row)
        features.append(Sample(ids, *((types, number % 3) if has_types else (None, None))))
    for batch in BucketedLoader(features, 4, shuffle=True, pad_val=50):
        own = lengths[batch.indices]
        np.testing.assert_array_equal(batch.valid_length.asnumpy(), own)
        place = np.arange(own.max())
        inside = place < own[..., None]
        expected = np.where(inside, batch.indices[:, None, None] + 1, 50)
        np.testing.assert_array_equal(batch.words.asnumpy(), expected)
        seen += batch.indices.tolist()
        if not has_types:
            assert batch.token_types is None and batch.labels is None
            continue
        expected = (place >= own[..., None] // 2) & inside
        np.testing.assert_array_equal(batch.token_types.asnumpy(), expected)
        np.testing.assert_array_equal(batch.labels.asnumpy(), batch.indices % 3)
    assert sorted(seen) == list(range(23))


PREDICTIONS = [
    (ChoiceTask(ChoiceSettings()), ('fold-ind', 'label'), 0),
    (StoryTask(StorySettings()), ('InputStoryid', 'AnswerRightEnding'), 1),
]


@pytest.mark.parametrize('task, columns, first', PREDICTIONS)
def test_predictions(tmp_path, task, columns, first):
    example = SwagExample('a', '', '', ('', ''), 0)
    data = Data([example, example._replace(guid='b', label=None)], (), None)
    (name,) = task.write(str(tmp_path), 'test', data, np.array([[0, np.log(3)], [1, 1]]))
    assert (tmp_path / name).read_text().splitlines() == [
        f'{columns[0]}\tprediction\tprobability_{first}\tprobability_{first + 1}\t{columns[1]}',
        f'a\t{first + 1}\t0.25\t0.75\t{first}',
        f'b\t{first}\t0.5\t0.5\t',
    ]


# -- Story Cloze ---------------------------------------------------------------------------------

STORY = 'a-1,Tom ran.,"He fell, hard.",It hurt.,"He said ""ow"".",He wept.,He flew.,1'


def test_stories_are_read(tmp_path):
    path = write(tmp_path, STORIES, STORY, '', STORY.replace('a-1', 'b').replace(',1', ',2'))
    first, second = read_story_cloze(path)
    context, endings = 'Tom ran. He fell, hard. It hurt. He said "ow".', ('He wept.', 'He flew.')
    assert first == SwagExample('a-1', context, '', endings, 0)
    assert (second.guid, second.label) == ('b', 1)
    (unlabelled,) = read_story_cloze(write(tmp_path, STORIES.rpartition(',')[0], STORY[:-2]))
    assert unlabelled == first._replace(label=None)


BAD_STORIES = [
    (('storyid,title', '1,x'), 'InputStoryid'),
    ((STORIES, STORY, STORY[:-1] + '3'), 'line 3'),
    ((STORIES, STORY.replace('He wept.', ' ')), 'line 2'),
]


@pytest.mark.parametrize('lines, place', BAD_STORIES)
def test_bad_stories_are_named(tmp_path, lines, place):
    with refuses(says=place):
        read_story_cloze(write(tmp_path, *lines))


def test_the_same_examples_are_held_out():
    kept, held = hold_out(list(range(50)), 10)
    assert (kept, held) == hold_out(list(range(50)), 10)
    assert len(held) == 10 and held == sorted(held) and held != list(range(40, 50))
    assert sorted(kept + held) == list(range(50))
    rows = [Sentence([text], None, line) for line, text in enumerate('abcab' * 4)]
    kept, held = ({each.words[0] for each in part} for part in hold_out(rows, 4))
    assert kept and held and not kept & held


LONG = cases('choices')['LONG']


@pytest.mark.parametrize('max_len, context, ending, expected', LONG)
def test_long_stories_lose_their_ends(max_len, context, ending, expected, caplog):
    story = SwagExample('', context, '', (ending, '7'), 1)
    ids = (90, 91, 92)
    (feature,) = encode_stories([story], lambda text: list(map(int, text)), ids, max_len)
    kept, end = (list(map(int, part)) for part in expected.split('|'))
    assert feature.label == 1 and feature.input_ids[0].tolist() == [90, *kept, 91, *end, 92]
    is_cut = len(context + ending) > max_len - 3
    assert is_cut == ('1 of 1 stories are longer than' in caplog.text)
    with refuses('max_length'):
        encode_stories([story], list, ids, 4)
