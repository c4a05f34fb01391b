"""pytorch-pretrained-bert's files of samples, one for each epoch."""

import json

import numpy as np
import pytest
from json_files import cases
from refusals import refuses

from model_zoo.tasks.pretraining.files import read_shard, write_epoch
from model_zoo.tasks.pretraining.loaders import PretrainingLoader
from model_zoo.tasks.pretraining.sources import ShardFiles
from model_zoo.tasks.pretraining.text import Corpus, SampleMaker, SampleOptions

LENGTH, MASKS = 32, 6
#: as that program's pregenerate_training_data.py writes a line
LINE = cases('pretraining')['LINE']


@pytest.fixture
def epochs(fixtures, tokenizer, tmp_path):
    """Three files, and the samples in them."""
    corpus = Corpus([str(fixtures / 'pretraining' / 'sample_text.txt')])
    maker = SampleMaker(corpus, tokenizer, SampleOptions(LENGTH, MASKS, 1))
    samples = [maker.make(0, corpus.num_bytes, seed) for seed in range(3)]
    for number, each in enumerate(samples):
        half = each.count // 2
        parts = each.take(slice(half)), each.take(slice(half, None))
        write_epoch(str(tmp_path / f'epoch_{number}.json'), parts, tokenizer.vocab, LENGTH)
    return tmp_path, samples


def test_there_and_back(epochs, tokenizer):
    folder, samples = epochs
    for number, expected in enumerate(samples):
        found = read_shard(str(folder / f'epoch_{number}.json'), tokenizer.vocab, LENGTH)
        for one, other in zip(found, expected):
            one = np.pad(one, [(0, w - o) for w, o in zip(other.shape, one.shape)])
            np.testing.assert_array_equal(one, other)


def test_a_line_is_the_originals(epochs, tokenizer):
    folder, samples = epochs
    lines = (folder / 'epoch_0.json').read_text().splitlines()
    fields = json.loads(lines[0])
    assert list(fields) == list(LINE)
    assert [type(value) for value in fields.values()] == [type(each) for each in LINE.values()]
    length = samples[0].valid_lengths[0]
    assert fields['tokens'] == tokenizer.convert_ids_to_tokens(samples[0].input_ids[0, :length])
    metrics = json.loads((folder / 'epoch_0_metrics.json').read_text())
    assert metrics == {'num_training_examples': len(lines), 'max_seq_len': LENGTH}


@pytest.mark.parametrize('first', [0, 7])
def test_an_epoch_has_its_file(epochs, tokenizer, first):
    """By its number, which isn't the order of names from 10 files on; and again from the first."""
    folder, samples = epochs
    for number in reversed(range(3)):
        for name in ('epoch_{}.json', 'epoch_{}_metrics.json'):
            old, new = name.format(number), name.format(9 + number if first else number)
            (folder / old).rename(folder / new)
    pattern = str(folder / 'epoch_*[0-9].json')
    files = ShardFiles(pattern, tokenizer.vocab, LENGTH, True, one_per_epoch=True)
    loader = PretrainingLoader(files, 4, seed=1)
    for epoch in range(5):
        batches = list(loader.epoch(epoch))
        assert len(batches) == loader.count_batches(epoch)
        expected = samples[epoch % 3]
        lengths = np.concatenate([batch.valid_length.asnumpy() for batch in batches])
        assert sorted(lengths) == sorted(expected.valid_lengths)
        words = sum(float(batch.masked_ids.sum().asscalar()) for batch in batches)
        assert words == expected.masked_lm_ids.sum()
    loader.close()


WRONG = [
    {'tokens': ['[CLS]', 'qqq', *LINE['tokens'][2:]]},
    {'segment_ids': [0, 1]},
    *({'masked_lm_positions': each} for each in (['5'], [2**70], [9])),
    {'masked_lm_labels': None},
    {'is_random_next': None},
    {'tokens': [], 'segment_ids': []},
    *({field: ...} for field in LINE),
]


@pytest.mark.parametrize('changes', WRONG)
def test_lines_that_are_none(tokenizer, tmp_path, changes):
    fields = {name: value for name, value in {**LINE, **changes}.items() if value is not ...}
    (tmp_path / 'epoch_0.json').write_text(json.dumps(fields) + '\n')
    with refuses(says='epoch_0.json'):
        read_shard(str(tmp_path / 'epoch_0.json'), tokenizer.vocab)
