"""The forms of pytorch-pretrained-bert's installed converter: ours write what it writes."""

import json
import shutil
import sys

import numpy as np
import pytest
from script_runs import ROOT, load_script, run

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


@pytest.mark.parametrize('name', FOLDERS)
def test_same_weights(name, fixtures, tmp_path, monkeypatch):
    folder, checkpoint, config = FOLDERS[name]
    shutil.copytree(fixtures / 'checkpoints' / folder, tmp_path / 'source')
    source = tmp_path / 'source'
    complete(source / config, name)
    files = {}
    for who in ('ours', 'theirs'):
        output = tmp_path / who
        output.mkdir()
        words = [source / checkpoint, output, source / config]
        if name == 'convert_tf_checkpoint_to_pytorch':
            words = [source / checkpoint, source / config, output / 'pytorch_model.bin']
        words = [name, *map(str, words)]
        if who == 'ours':
            assert run(load_script('zoo', ROOT / 'scripts'), *words) == 0
        else:
            monkeypatch.setattr(sys, 'argv', ['pytorch_pretrained_bert', *words])
            converter.main()
        files[who] = torch.load(output / 'pytorch_model.bin')
    ours, theirs = files['ours'], files['theirs']
    assert set(ours) == set(theirs)  # the causal masks, which are buffers there, among them
    for key, tensor in ours.items():
        np.testing.assert_array_equal(tensor.numpy(), theirs[key].numpy(), err_msg=key)


def plain(data):
    """A text's ids, of all lines or of each, as lists."""
    if isinstance(data, list):
        return [np.asarray(each).tolist() for each in data]
    return np.asarray(data).tolist()


@pytest.mark.parametrize('protocol', [0, 2, 4])
def test_same_corpus(protocol, fixtures, tmp_path, monkeypatch):
    """A pickled data set in the place of a checkpoint, whose vocabulary and ids they write, too."""
    files = {}
    for who in ('ours', 'theirs'):
        output = tmp_path / who
        output.mkdir()
        source = fixtures / 'lm_pickles' / f'cache_{protocol}.pkl'
        words = ['convert_transfo_xl_checkpoint', str(source), str(output)]
        if who == 'ours':
            assert run(load_script('zoo', ROOT / 'scripts'), *words) == 0
        else:
            monkeypatch.setattr(sys, 'argv', ['pytorch_pretrained_bert', *words])
            converter.main()
        files[who] = [
            torch.load(output / name, weights_only=False) for name in ('vocab.bin', 'corpus.bin')
        ]
    (our_vocab, ours), (their_vocab, theirs) = files['ours'], files['theirs']
    for name in ('idx2sym', 'sym2idx', 'counter'):
        assert our_vocab[name] == their_vocab[name]
    for name in ('train', 'valid', 'test'):
        assert plain(ours[name]) == plain(theirs[name])
    # and it reads ours
    tokenizer = ppb.TransfoXLTokenizer.from_pretrained(str(tmp_path / 'ours'))
    assert tokenizer.idx2sym == their_vocab['idx2sym']
