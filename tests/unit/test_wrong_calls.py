"""Wrong arguments at the public doors: a result that is right, or an error that says what to do."""

import contextlib
import functools

import hypothesis
import mxnet as mx
import numpy as np
import pytest
import tiny
import tiny_models
from hostile import quick, wrong

import bert
import gpt2
import model_zoo
import transfo_xl
from bert_embedding import BertEmbedding
from model_zoo.errors import ZooError
from transfo_xl import TransfoXLConfig

st = hypothesis.strategies


def words(*shape):
    return mx.nd.array(np.arange(np.prod(shape)).reshape(shape) % 17 + 1)


def words_and_lengths():
    return {'words': words(2, 5), 'valid_length': mx.nd.array([5, 3])}


def text():
    return {**words_and_lengths(), 'token_types': mx.nd.zeros((2, 5))}


def blocks():
    """Name -> (block, right arguments)."""
    config = tiny.bert_config(40, num_hidden_layers=1)
    decoder = tiny.decoder_config(gpt2.GPT2Config, 40, n_layer=1)
    memory = tiny.transfo_xl_config(40, mem_len=8)
    first = mx.nd.array([0, 1])
    made = {
        'BertModel': (
            bert.BertModel(config, use_decoder=True, use_classifier=True),
            {**text(), 'masked_positions': mx.nd.array([[1, 2], [0, 1]])},
        ),
        'classification': (bert.BertForSequenceClassification(config), {**text(), 'labels': first}),
        'answers': (
            bert.BertForQuestionAnswering(config),
            {**text(), 'start_positions': 1 - first, 'end_positions': words(2) + 1},
        ),
        'GPT-2': (gpt2.GPT2LMHeadModel(decoder), words_and_lengths()),
        'Transformer-XL': (transfo_xl.TransfoXLLMHeadModel(memory), {'words': words(2, 5)}),
    }
    return {name: (tiny.initialized(block), given) for name, (block, given) in made.items()}


@st.composite
def wrong_arrays(draw, value):
    """Draw an array like `value`, of another shape, type or storage, or of other numbers."""
    kind = draw(st.sampled_from(['shape', 'dtype', 'more', 'numpy', 'sparse', 'empty', 'numbers']))
    if kind == 'shape':
        return draw(st.sampled_from([value.expand_dims(0), value.reshape(-1)]))
    if kind == 'dtype':
        return value.astype(draw(st.sampled_from(['int32', 'int64', 'float16', 'float64'])))
    if kind == 'more':
        return mx.nd.concat(value, value, dim=draw(st.integers(0, value.ndim - 1)))
    if kind == 'sparse' and value.ndim == 2:
        return value.tostype('csr')
    if kind in ('numpy', 'sparse'):
        return value.asnumpy()
    if kind == 'empty':
        return mx.nd.array(np.zeros((0,) * value.ndim))
    made = value.asnumpy().astype('float32')
    number = draw(st.sampled_from([-1, -0.5, 0.5, 39, 40, 1e4, 1e9, np.nan, np.inf]))
    made.flat[draw(st.integers(0, made.size - 1))] = number
    return mx.nd.array(made)


@st.composite
def wrong_arguments(draw, given):
    """Draw arguments of which one or two are wrong."""
    names = draw(st.lists(st.sampled_from(sorted(given)), min_size=1, max_size=2, unique=True))
    changed = {
        name: draw(
            wrong_arrays(given[name])
            if isinstance(given[name], mx.nd.NDArray) and draw(st.integers(0, 4))
            else wrong(given[name])
        )
        for name in names
    }
    return {**given, **changed}


def check_finite(value):
    if isinstance(value, (list, tuple)):
        for each in value:
            check_finite(each)
    elif isinstance(value, mx.nd.NDArray):
        assert np.isfinite(value.asnumpy().astype('float64')).all()


@pytest.mark.parametrize('name', blocks())
def test_blocks(name):
    block, given = blocks()[name]
    block.hybridize(static_alloc=True, static_shape=True)
    check_finite(block(**given))

    @quick(25)
    @hypothesis.given(wrong_arguments(given))
    def call(changed):
        try:
            check_finite(block(**changed))
        except (ZooError, TypeError):
            check_finite(block(**given))  # it still works

    call()


def methods(tokenizer):
    """Names of a tokenizer's methods -> right arguments."""
    padding = {'round_to': 4, 'pad': True}
    return {
        'convert_ids_to_tokens': {'ids': [1, 2]},
        'convert_tokens_to_ids': {'tokens': tokenizer.tokenize('a cat')},
        'tokenize': {'text': 'a cat'},
        'decode': {'ids': [1, 2]},
        'encode': {'text': 'a cat', 'pair': 'b', 'max_length': 8},
        'encode_batch': {'texts': ['a', 'b'], 'pairs': ['c', 'd'], 'max_length': 8, **padding},
    }


@pytest.fixture(scope='module')
def doors(fixtures, tmp_path_factory):
    """Name -> (function, right arguments)."""
    path = tiny_models.save_bert(
        tmp_path_factory.mktemp('bert'), bert.BertForSequenceClassification, ['a', 'b']
    )
    folder = tmp_path_factory.mktemp('gpt2')
    writer = gpt2.GPT2LMHeadModel.from_pretrained(tiny_models.save_gpt2(folder))
    embed = BertEmbedding(str(fixtures / 'sentence_transformers' / 'today'))
    tokenizers = {
        'BERT': bert.BertTokenizer.from_pretrained(path),
        'GPT-2': gpt2.GPT2Tokenizer.from_pretrained(str(folder)),
    }
    drawn = {'prompts': [[5, 6], [7]], 'max_new_tokens': 2, 'temperature': 1.0, 'top_k': 3}
    drawn.update(top_p=0.9, num_return_sequences=2, seed=1, stop_tokens=[3])
    beams = {'prompts': [[5, 6]], 'max_new_tokens': 2, 'num_beams': 2, 'length_penalty': 1.0}
    sentences = {'sentences': ['a', 'b'], 'pooling': 'mean', 'normalize': True, 'prompt': 'x'}
    made = {
        'generate': (writer.generate, drawn),
        'beams': (writer.generate, beams),
        'pipeline': (model_zoo.pipeline('text-classification', path), {'inputs': ['a cat', 'b']}),
        'sentence_vectors': (embed.sentence_vectors, sentences),
        'embedding': (embed.embedding, {'sentences': ['a cat'], 'oov_way': 'avg'}),
        'open_model': (model_zoo.open_model, {'name_or_folder': path, 'task': 'classification'}),
        'BertConfig': (functools.partial(bert.BertConfig, 40), dict(tiny.BERT)),
        'GPT2Config': (functools.partial(gpt2.GPT2Config, 40), dict(tiny.DECODER)),
        'TransfoXLConfig': (functools.partial(TransfoXLConfig, 40), dict(tiny.TRANSFO_XL)),
    }
    for name, tokenizer in tokenizers.items():
        for method, given in methods(tokenizer).items():
            made[f'{name}, {method}'] = getattr(tokenizer, method), given
    return made


METHODS = 'convert_ids_to_tokens convert_tokens_to_ids tokenize decode encode encode_batch'.split()
DOORS = (
    'generate beams pipeline sentence_vectors embedding open_model BertConfig GPT2Config '
    'TransfoXLConfig'
).split() + [f'{name}, {method}' for name in ('BERT', 'GPT-2') for method in METHODS]


@pytest.mark.parametrize('name', DOORS)
def test_doors(doors, name):
    function, given = doors[name]
    function(**given)

    @quick(25)
    @hypothesis.given(wrong_arguments(given))
    def call(changed):
        with contextlib.suppress(ZooError, TypeError):
            check_finite(function(**changed))

    call()
