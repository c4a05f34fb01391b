"""Transformer-XL in the zoo."""

import gluonnlp
import mxnet as mx
import numpy as np
import pytest

import model_zoo
import transfo_xl
from model_zoo.errors import InputError
from model_zoo.pretrained import get_entry, resolve_alias

pytestmark = pytest.mark.usefixtures('no_network')

NAME = 'transfo_xl_18_1024_16'
SMALL = {
    'num_layers': 2,
    'units': 8,
    'embed_size': 8,
    'hidden_size': 12,
    'num_heads': 2,
    'head_size': 4,
    'hparam_allow_override': True,
    'mem_len': 5,
}
SENTENCES = [['the', 'cat', 'sat', 'down'], ['the', 'dog', 'sat']]


@pytest.fixture
def tokenizer():
    tokenizer = transfo_xl.TransfoXLTokenizer(special=['<eos>', '<unk>'])
    tokenizer.count_sents(SENTENCES)
    tokenizer.build_vocab()
    return tokenizer


def words():
    return mx.nd.array([[2, 4, 3], [1, 0, 5]])


def test_names():
    assert model_zoo.list_models('transfo_xl*') == [NAME]
    entry = get_entry(NAME)
    assert entry.dataset == 'wikitext-103' and entry.hub == 'transfo-xl/transfo-xl-wt103'
    for name in ('transfo-xl-wt103', 'transfo-xl/transfo-xl-wt103', NAME, f'{NAME}_wikitext-103'):
        assert resolve_alias(name) == (NAME, 'wikitext-103')


def test_architecture(tokenizer):
    get = gluonnlp.model.get_model
    block, vocab = get(NAME, vocab=tokenizer.vocab, pretrained=False)
    config = block.config
    assert vocab is tokenizer.vocab and config.vocab_size == len(vocab) == 7
    assert vocab.idx_to_token[:3] == ['<eos>', '<unk>', 'the']
    assert (config.n_layer, config.d_model, config.n_head, config.d_inner) == (18, 1024, 16, 4096)
    assert config.cutoffs == [] and config.mem_len == 1600
    counter = gluonnlp.data.count_tokens(str(number) for number in range(50000))
    block, _ = get(NAME, vocab=gluonnlp.Vocab(counter), pretrained=False)
    assert block.config.cutoffs == [20000, 40000] and block.config.embedding_units[2] == 64


def test_overrides(tokenizer):
    def get(**kwargs):
        return model_zoo.get_model(NAME, vocab=tokenizer.vocab, pretrained=False, **kwargs)[0]

    block = get(**SMALL, cutoffs=[3], div_val=2, layer_norm_eps=1e-5, attention_dropout=0.3)
    config = block.config
    assert config.cutoffs == [3] and config.embedding_units == [8, 4]
    assert config.layer_norm_epsilon == 1e-5 and config.dropatt == 0.3
    block.initialize()
    scores, mems = block(words())
    assert scores.shape == (2, 3, 7) and mems[0].shape == (5, 2, 8)
    config = get(dropout=0, mem_len=10, tgt_len=3, same_length=False, clamp_len=-1).config
    assert (config.dropout, config.mem_len, config.same_length) == (0, 10, False)

    with pytest.raises(InputError, match=r'cutoffs must be ascending .* are \[5, 3\]'):
        get(**SMALL, cutoffs=[5, 3])


def test_directory_and_cache(tokenizer, tmp_path):
    block, _ = model_zoo.get_model(NAME, vocab=tokenizer.vocab, pretrained=False, **SMALL)
    block.initialize(mx.init.Normal(0.5))
    wanted = block(words())[0].asnumpy()
    folder = tmp_path / 'home' / 'models' / f'{NAME}_wikitext-103'
    block.save_pretrained(str(folder), tokenizer)
    for block, vocab in (
        model_zoo.get_model(NAME, pretrained=str(folder)),
        model_zoo.get_model(NAME, dataset_name='wikitext-103'),
    ):
        assert vocab.idx_to_token == tokenizer.vocab.idx_to_token
        np.testing.assert_array_equal(block(words())[0].asnumpy(), wanted)
        block.save_pretrained(str(tmp_path / 'again'))  # with the vocabulary that it began with
        again = transfo_xl.TransfoXLTokenizer.from_pretrained(str(tmp_path / 'again'))
        assert again.idx2sym == tokenizer.idx2sym
    block = transfo_xl.TransfoXLLMHeadModel.from_pretrained('transfo-xl-wt103')
    np.testing.assert_array_equal(block(words())[0].asnumpy(), wanted)
    block = transfo_xl.TransfoXLModel.from_pretrained(str(folder), mem_len=7)
    assert block(words())[1][0].shape == (7, 2, 8)
