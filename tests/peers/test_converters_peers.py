"""The forms of pytorch-pretrained-bert's installed converter: ours write what it writes."""

import json
import shutil
import sys

import numpy as np
import pytest
from script_runs import load_script, run

torch = pytest.importorskip('torch')
pytest.importorskip('tensorflow')
ppb = pytest.importorskip('pytorch_pretrained_bert')
converter = pytest.importorskip('pytorch_pretrained_bert.__main__')

pytestmark = pytest.mark.peers

# convert_openai_checkpoint isn't here: the original reads parameters_names.json beside the weights,
# which the fixture doesn't have; test_checkpoint_peers.py compares what is read
FOLDERS = {
    'convert_tf_checkpoint_to_pytorch': ('bert_tensorflow', 'bert_model.ckpt', 'bert_config.json'),
    'convert_transfo_xl_checkpoint': ('transfo_xl_tensorflow', 'model.ckpt', 'config.json'),
    'convert_gpt2_checkpoint': ('gpt2_tensorflow', 'model.ckpt', 'hparams.json'),
}


# which of its configurations belongs to it, and what that calls the vocabulary's size
CONFIGS = {
    'convert_transfo_xl_checkpoint': ('TransfoXLConfig', 'n_token'),
    'convert_gpt2_checkpoint': ('GPT2Config', 'vocab_size'),
}


def complete(path, name):
    """Give a configuration the fields that the original can't do without."""
    if name in CONFIGS:
        kind, size = CONFIGS[name]
        own = json.loads(path.read_text())
        own[size] = own.pop('vocab_size', own.pop('n_vocab', None))
        if 'n_ctx' in own:
            own.setdefault('n_positions', own['n_ctx'])
        path.write_text(json.dumps({**getattr(ppb, kind)().to_dict(), **own}))


@pytest.fixture
def convert(tmp_path, monkeypatch):
    """``convert(words)``: the folders that ours, and theirs, write by ``words(folder)``."""

    def convert(words):
        for who in ('ours', 'theirs'):
            (tmp_path / who).mkdir()
        assert run(load_script('zoo'), *words(tmp_path / 'ours')) == 0
        argv = ['pytorch_pretrained_bert', *map(str, words(tmp_path / 'theirs'))]
        monkeypatch.setattr(sys, 'argv', argv)
        converter.main()
        return tmp_path / 'ours', tmp_path / 'theirs'

    return convert


@pytest.mark.parametrize('name', FOLDERS)
def test_same_weights(name, fixtures, tmp_path, convert):
    folder, checkpoint, config = FOLDERS[name]
    shutil.copytree(fixtures / 'checkpoints' / folder, tmp_path / 'source')
    source = tmp_path / 'source'
    complete(source / config, name)

    def words(output):
        if name == 'convert_tf_checkpoint_to_pytorch':
            return [name, source / checkpoint, source / config, output / 'pytorch_model.bin']
        return [name, source / checkpoint, output, source / config]

    ours, theirs = (torch.load(each / 'pytorch_model.bin') for each in convert(words))
    assert set(ours) == set(theirs)  # the causal masks, which are buffers there, among them
    for key, tensor in ours.items():
        np.testing.assert_array_equal(tensor.numpy(), theirs[key].numpy(), err_msg=key)


def plain(data):
    """A text's ids, of all lines or of each, as lists."""
    if isinstance(data, list):
        return [np.asarray(each).tolist() for each in data]
    return np.asarray(data).tolist()


@pytest.mark.parametrize('protocol', [0, 2, 4])
def test_same_corpus(protocol, fixtures, tmp_path, convert):
    """A pickled data set in the place of a checkpoint, whose vocabulary and ids they write, too."""
    source = fixtures / 'lm_pickles' / f'cache_{protocol}.pkl'
    (our_vocab, ours), (their_vocab, theirs) = (
        [torch.load(folder / name, weights_only=False) for name in ('vocab.bin', 'corpus.bin')]
        for folder in convert(lambda output: ['convert_transfo_xl_checkpoint', source, output])
    )
    for name in ('idx2sym', 'sym2idx', 'counter'):
        assert our_vocab[name] == their_vocab[name]
    for name in ('train', 'valid', 'test'):
        assert plain(ours[name]) == plain(theirs[name])
    # and it reads ours
    tokenizer = ppb.TransfoXLTokenizer.from_pretrained(str(tmp_path / 'ours'))
    assert tokenizer.idx2sym == their_vocab['idx2sym']
