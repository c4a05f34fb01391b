"""SWAG: the reader, features and batches of choices."""

import json

import numpy as np
import pytest

from bert import BertTokenizer
from model_zoo.batches import BucketedLoader, Sample
from model_zoo.errors import InputError
from model_zoo.tasks.choice import (
    SwagExample,
    encode_swag,
    read_swag,
    write_choices,
)

HEADER = (
    ',video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label'
)
ROW = '0,v1,f7,"He runs. He","He runs, fast.",He,gold,stops.,"flies, high.",sits.,"says ""ow"".",2'
JSON = {'sent1': 'He runs.', 'sent2': 'He', 'ending0': 'stops.', 'ending1': 'flies.', 'label': 1}
TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *'abcdefghij']


def write(folder, *lines):
    path = folder / 'swag.csv'
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


@pytest.mark.parametrize(
    ('lines', 'message'),
    [
        ((), 'has no examples'),
        ((HEADER,), 'has no examples'),
        (('id,text', '1,x'), 'line 2: there is no sent1, sent2, ending0, ending1'),
        ((HEADER, ROW + ',x'), 'line 2: 13 fields, where the header has 12'),
        ((HEADER, ROW[:-1] + '4'), "line 2: label is '4', and must be a number from 0 to 3"),
        ((HEADER, ROW, ROW[:-1] + 'x'), "line 3: label is 'x'"),
        ((HEADER, ROW, ROW[:-1]), 'line 3: give all examples a label, or none'),
        ((HEADER, ROW.replace('"He runs, fast."', ' ')), 'line 2: sent1, or a continuation'),
        ((HEADER, '"'), 'line 2: .*(quote|end of data)'),
        ((json.dumps(JSON), '{'), 'line 2: not JSON'),
        ((json.dumps(JSON), '[]'), 'line 2: one JSON object per line is expected'),
        ((json.dumps({**JSON, 'ending1': 3}),), 'line 1: ending1 is 3, and must be a text'),
        ((json.dumps({**JSON, 'label': True}),), 'line 1: label is True'),
        (
            (json.dumps(JSON), json.dumps({**JSON, 'ending2': 'x'})),
            'line 2: 3 endings, where the first example has 2',
        ),
    ],
)
def test_bad_files_are_named(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        read_swag(write(tmp_path, *lines))


@pytest.mark.data
def test_the_sample(data_dir):
    examples = read_swag(data_dir / 'swag' / 'sample.json')
    assert len(examples) == 10
    assert [example.label for example in examples] == [0, 3, 1, 3, 0, 3, 0, 1, 3, 3]
    assert all(len(example.endings) == 4 for example in examples)
    assert examples[0].start == 'A drum line'


@pytest.fixture(scope='module')
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp('vocab') / 'vocab.txt'
    path.write_text('\n'.join(TOKENS) + '\n')
    return BertTokenizer(path)


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
    assert '1 of 1 examples are longer than 7 tokens: cut' in caplog.text
    (feature,) = encode_swag([example._replace(start='')], tokenizer, 16)
    assert texts(tokenizer, feature) == ['abc[SEP]e', 'abc[SEP]fg']
    with pytest.raises(InputError, match='a length of 4 is too small'):
        encode_swag([example], tokenizer, 4)


@pytest.mark.parametrize('num_choices', [2, 3, 5])
def test_batches_have_token_types(num_choices):
    lengths = np.random.RandomState(0).randint(2, 20, (23, num_choices))
    features = [
        Sample(
            tuple(np.full(n, number + 1, np.int32) for n in row),
            tuple((np.arange(n) >= n // 2).astype(np.int32) for n in row),
            number % num_choices,
        )
        for number, row in enumerate(lengths)
    ]
    seen = []
    for batch in BucketedLoader(features, 4, shuffle=True, pad_val=0):
        own = lengths[batch.indices]
        assert batch.words.shape == batch.token_types.shape == (*own.shape, own.max())
        np.testing.assert_array_equal(batch.valid_length.asnumpy(), own)
        place = np.arange(own.max())
        expected = (place >= own[..., None] // 2) & (place < own[..., None])
        np.testing.assert_array_equal(batch.token_types.asnumpy(), expected)
        seen += batch.indices.tolist()
    assert sorted(seen) == list(range(23))
    without = [feature._replace(token_types=None) for feature in features]
    assert next(iter(BucketedLoader(without, 4, pad_val=0))).token_types is None


def test_predictions(tmp_path):
    first = SwagExample('a', '', '', ('', '', ''), 0)
    examples = [first, first._replace(guid='b', label=None)]
    path = tmp_path / 'predictions.tsv'
    write_choices(str(path), examples, np.array([[0.25, 0.5, 0.25], [0.6, 0.3, 0.1]]))
    assert path.read_text().splitlines() == [
        'fold-ind\tprediction\tprobability_0\tprobability_1\tprobability_2\tlabel',
        'a\t1\t0.250000\t0.500000\t0.250000\t0',
        'b\t0\t0.600000\t0.300000\t0.100000\t',
    ]
