"""Parameters of GluonNLP 0.10's GPT-2 (scripts/text_generation), by a block with its layout."""

import mxnet as mx
import numpy as np
import pytest
from mxnet.gluon import nn

from model_zoo import get_model
from model_zoo.checkpoint import read_tensors
from model_zoo.tokenization.vocab import make_vocab

LAYERS, UNITS, HEADS, POSITIONS, TOKENS = 2, 16, 4, 12, 31


class Attention(mx.gluon.Block):
    def __init__(self):
        super().__init__()
        self._multi_head_qkv_proj = nn.Dense(3 * UNITS, flatten=False, in_units=UNITS)
        self._out_proj = nn.Dense(UNITS, flatten=False, in_units=UNITS)

    def forward(self, data):
        batch, length, _ = data.shape
        query, key, value = (
            each.reshape((batch, length, HEADS, -1))
            .transpose((0, 2, 1, 3))
            .reshape((batch * HEADS, length, -1))
            for each in self._multi_head_qkv_proj(data).split(3, axis=2)
        )
        scores = mx.nd.batch_dot(query, key, transpose_b=True) / (UNITS // HEADS) ** 0.5
        past = mx.nd.array(np.tril(np.ones((length, length))))
        weights = mx.nd.softmax(scores - 1e18 * (1 - past).expand_dims(0))
        mixed = mx.nd.batch_dot(weights, value).reshape((batch, HEADS, length, -1))
        return self._out_proj(mixed.transpose((0, 2, 1, 3)).reshape((batch, length, -1)))


class FeedForward(mx.gluon.Block):
    def __init__(self):
        super().__init__()
        self._hidden_map = nn.Dense(4 * UNITS, flatten=False, in_units=UNITS)
        self._out_map = nn.Dense(UNITS, flatten=False, in_units=4 * UNITS)

    def forward(self, data):
        hidden = self._hidden_map(data)
        tanh = mx.nd.tanh((2 / np.pi) ** 0.5 * (hidden + 0.044715 * hidden**3))
        return self._out_map(0.5 * hidden * (1 + tanh))


class Model(mx.gluon.Block):
    """The names of its parameters are GluonNLP's; their shapes and meaning, too."""

    def __init__(self):
        super().__init__()
        self._pos_embed = nn.Embedding(POSITIONS, UNITS)
        self._embed = nn.Embedding(TOKENS, UNITS)
        self._logits_proj = nn.Dense(
            TOKENS, in_units=UNITS, use_bias=False, flatten=False, params=self._embed.params
        )
        self._self_attention_layers = nn.Sequential()
        self._ffn_layers = nn.Sequential()
        self._attn_ln = nn.Sequential()
        self._ffn_ln = nn.Sequential()
        for _ in range(LAYERS):
            self._self_attention_layers.add(Attention())
            self._ffn_layers.add(FeedForward())
            self._attn_ln.add(nn.LayerNorm(in_channels=UNITS))
            self._ffn_ln.add(nn.LayerNorm(in_channels=UNITS))
        self._final_ln = nn.LayerNorm(in_channels=UNITS)

    def forward(self, data):
        out = self._embed(data) + self._pos_embed(mx.nd.arange(data.shape[1])).expand_dims(0)
        for number in range(LAYERS):
            out = out + self._self_attention_layers[number](self._attn_ln[number](out))
            out = out + self._ffn_layers[number](self._ffn_ln[number](out))
        return self._logits_proj(self._final_ln(out))


@pytest.fixture(scope='module')
def model():
    mx.random.seed(0)
    model = Model()
    model.initialize(mx.init.Normal(0.4))
    for parameter in model.collect_params().values():
        if parameter.name.endswith(('bias', 'gamma', 'beta')):
            noise = mx.nd.random.normal(shape=parameter.shape)
            parameter.set_data(parameter.data() + 0.3 * noise)
    return model


WORDS = np.random.RandomState(0).randint(0, TOKENS, (2, 9))
HPARAMS = {
    'num_layers': LAYERS,
    'units': UNITS,
    'num_heads': HEADS,
    'max_length': POSITIONS,
    'hidden_size': 4 * UNITS,
}


@pytest.mark.parametrize('deduplicate', [False, True])
def test_its_parameters_give_its_scores(model, tmp_path, deduplicate):
    path = str(tmp_path / 'gpt2_117m_openai_webtext-26416f2e.params')
    model.save_parameters(path, deduplicate=deduplicate)
    vocab = make_vocab({str(number): number for number in range(TOKENS)})
    block, found = get_model(
        'gpt2_117m', vocab=vocab, pretrained=path, hparam_allow_override=True, **HPARAMS
    )
    assert found is vocab
    words = mx.nd.array(WORDS)
    np.testing.assert_allclose(block(words)[0].asnumpy(), model(words).asnumpy(), rtol=0, atol=1e-5)
    back = str(tmp_path / 'back.params')
    block.save_parameters(back, format='gluonnlp')
    theirs, ours = read_tensors(path)[0], read_tensors(back)[0]
    assert set(ours) | {'_logits_proj.weight'} == set(theirs) | {
        '_logits_proj.weight',
        '_embed.weight',
    }
    again = Model()
    again.load_parameters(back)
    assert (again(words) == model(words)).asnumpy().all()
