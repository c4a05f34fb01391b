"""Transformer-XL in the zoo."""

import gluonnlp
import mxnet as mx
import pytest
from refusals import refuses

import model_zoo
import transfo_xl

pytestmark = pytest.mark.usefixtures('no_network')

NAME = 'transfo_xl_18_1024_16'
SMALL = {'num_layers': 2, 'units': 8, 'embed_size': 8, 'hidden_size': 12, 'num_heads': 2}
SMALL.update(head_size=4, hparam_allow_override=True, mem_len=5)
SENTENCES = [['the', 'cat', 'sat', 'down'], ['the', 'dog', 'sat']]


@pytest.fixture
def tokenizer():
    tokenizer = transfo_xl.TransfoXLTokenizer(special=['<eos>', '<unk>'])
    tokenizer.count_sents(SENTENCES)
    tokenizer.build_vocab()
    return tokenizer


def words():
    return mx.nd.array([[2, 4, 3], [1, 0, 5]])


def test_architecture(tokenizer):
    get = gluonnlp.model.get_model
    block, vocab = get(NAME, vocab=tokenizer.vocab, pretrained=False)
    config = block.config
    assert vocab is tokenizer.vocab and config.vocab_size == len(vocab) == 7
    assert vocab.idx_to_token[:3] == ['<eos>', '<unk>', 'the']
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

    with refuses(says='cutoffs'):
        get(**SMALL, cutoffs=[5, 3])
