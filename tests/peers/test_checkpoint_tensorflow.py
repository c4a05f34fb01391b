"""TensorFlow's checkpoints: read as their own programs compute, and written for these."""

import json
import os

import mxnet as mx
import numpy as np
import pytest

import bert
import gpt2
import transfo_xl
from model_zoo.checkpoint import read_tensors
from model_zoo.errors import InputError

tensorflow = pytest.importorskip('tensorflow')
pytestmark = pytest.mark.peers

#: checkpoint -> its name, our block, and what we leave out of it
CHECKPOINTS = {
    'bert_tensorflow': ('bert_model.ckpt', bert.BertForPreTraining, ('adam_', 'global_step')),
    'bert_squad_tensorflow': ('model.ckpt-10', bert.BertForQuestionAnswering, ('bert/pooler',)),
    'gpt2_tensorflow': ('model.ckpt', gpt2.GPT2LMHeadModel, ()),
    'transfo_xl_tensorflow': ('model.ckpt', transfo_xl.TransfoXLLMHeadModel, ()),
    'transfo_xl_tied_tensorflow': ('model.ckpt', transfo_xl.TransfoXLLMHeadModel, ()),
}


@pytest.fixture
def folder(fixtures):
    return lambda name: str(fixtures / 'checkpoints' / name)


def load(block_class, folder, **options):
    with np.load(os.path.join(folder, 'outputs.npz')) as file:
        expected = dict(file)
    block = block_class.from_pretrained(folder, from_tf=True, **options)
    inputs = [
        mx.nd.array(expected[name], dtype='int32')
        for name in ('words', 'types', 'valid')
        if name in expected
    ]
    return block, inputs, expected


def assert_close(ours, theirs, where=...):
    np.testing.assert_allclose(ours.asnumpy()[where], theirs[where], rtol=0, atol=1e-5)


def test_bert_squad(folder):
    name = folder('bert_squad_tensorflow')
    block, inputs, expected = load(bert.BertForQuestionAnswering, name)
    kept = np.arange(inputs[0].shape[1]) < expected['valid'][:, None]
    for ours, theirs in zip(block(*inputs), ('start', 'end')):
        assert_close(ours, expected[theirs], kept)
    # the newer one of two in its folder; the older by its name
    old = bert.BertForQuestionAnswering.from_pretrained(os.path.join(name, 'model.ckpt-5'))
    one, other = (each.bert.word_embed.weight.data().asnumpy() for each in (old, block))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('name', ['transfo_xl_tensorflow', 'transfo_xl_tied_tensorflow'])
def test_transfo_xl(folder, name):
    """kimiyoung/transformer-xl: the loss and the memories after two segments."""
    block_class = transfo_xl.TransfoXLLMHeadModel
    block, _, expected = load(block_class, folder(name))
    mems = None
    for number, segment in enumerate(expected['words']):
        words, labels = (mx.nd.array(x, dtype='int32') for x in (segment[:, :-1], segment[:, 1:]))
        losses, mems = block(words, mems, None, labels)
        assert abs(losses.mean().asscalar() - expected['losses'][number]) < 1e-5
        for ours, theirs in zip(mems, expected['mems'][number]):
            assert_close(ours, theirs)


@pytest.mark.parametrize('name', CHECKPOINTS)
def test_round_trip(folder, name, tmp_path):
    """What we write has the very variables of the original program."""
    prefix, block_class, left_out = CHECKPOINTS[name]
    block = block_class.from_pretrained(folder(name))
    block.save_pretrained(str(tmp_path), format='tensorflow')
    theirs, _ = read_tensors(os.path.join(folder(name), prefix))
    ours, _ = read_tensors(tmp_path / 'model.ckpt')
    wanted = {key for key in theirs if not any(part in key for part in left_out)}
    assert set(ours) == wanted
    for key in wanted:
        np.testing.assert_array_equal(ours[key], theirs[key])
    assert tensorflow.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / 'model.ckpt')
    for file in ('bert_config.json', 'hparams.json'):
        if os.path.exists(os.path.join(folder(name), file)):
            with open(os.path.join(folder(name), file)) as original:
                theirs = json.load(original)
            ours = json.loads((tmp_path / file).read_text())
            assert {**ours, **theirs} == ours
    block_class.from_pretrained(str(tmp_path))


def test_task_heads(tmp_path):
    """The classifier is where run_classifier.py has it; its pooled text is untouched."""
    config = bert.BertConfig(
        vocab_size=31,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_labels=3,
        intermediate_size=512,
        max_position_embeddings=12,
    )
    block = bert.BertForSequenceClassification(config)
    block.initialize(mx.init.Normal(0.3))
    block.save_pretrained(str(tmp_path), format='tensorflow')
    variables = dict(tensorflow.train.list_variables(str(tmp_path / 'model.ckpt')))
    assert variables['output_weights'] == [3, 8] and variables['output_bias'] == [3]
    assert variables['bert/encoder/layer_0/intermediate/dense/kernel'] == [8, 512]  # no padding
    back = bert.BertForSequenceClassification.from_pretrained(str(tmp_path))
    words = mx.nd.array([[1, 2, 3]], dtype='int32')
    assert_close(back(words), block(words).asnumpy())
    block.bert.prune_heads({0: [1]})
    with pytest.raises(InputError):
        block.save_pretrained(str(tmp_path / 'pruned'), format='tensorflow')


def keras_tensors(theirs, heads):
    """Transformers' tensors of BERT by the names, and in the shapes, of TensorFlow 2's."""
    names = {
        'embeddings.word_embeddings.weight': '0/embeddings',
        'embeddings.position_embeddings.weight': '1/embeddings',
        'embeddings.token_type_embeddings.weight': '2/embeddings',
        'embeddings.LayerNorm.weight': '3/gamma',
        'embeddings.LayerNorm.bias': '3/beta',
        'pooler.dense.weight': '6/kernel',
        'pooler.dense.bias': '6/bias',
    }
    layers = {
        **{
            f'attention.self.{part}': f'_attention_layer/_{part}_dense'
            for part in ('query', 'key', 'value')
        },
        'attention.output.dense': '_attention_layer/_output_dense',
        'attention.output.LayerNorm': '_attention_layer_norm',
        'intermediate.dense': '_intermediate_dense',
        'output.dense': '_output_dense',
        'output.LayerNorm': '_output_layer_norm',
    }
    for layer in range(2):
        for ours, keras in layers.items():
            ends = ('gamma', 'beta') if 'Norm' in ours else ('kernel', 'bias')
            for kind, end in zip(('weight', 'bias'), ends):
                names[f'encoder.layer.{layer}.{ours}.{kind}'] = f'{layer + 4}/{keras}/{end}'
    for name, keras in names.items():
        array = theirs[name].numpy()
        array = array.T if keras.endswith('kernel') else array
        units = len(array)
        if '.self.' in name:
            array = array.reshape(*array.shape[:-1], heads, -1)
        elif 'attention.output.dense.weight' in name:
            array = array.reshape(heads, -1, units)
        yield f'layer_with_weights-{keras}', array


def test_checkpoints_by_objects(tmp_path):
    """As tf.train.Checkpoint writes the BERT of official/nlp."""
    torch, transformers = pytest.importorskip('torch'), pytest.importorskip('transformers')
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=20,
        initializer_range=0.5,
    )
    theirs = transformers.BertModel(config).eval()
    model = tensorflow.Module()
    for name, array in keras_tensors(theirs.state_dict(), 4):
        *path, last = name.split('/')
        module = model
        for part in path:
            if not hasattr(module, part):
                setattr(module, part, tensorflow.Module())
            module = getattr(module, part)
        setattr(module, last, tensorflow.Variable(array))
    tensorflow.train.Checkpoint(model=model).save(str(tmp_path / 'bert_model.ckpt'))
    (tmp_path / 'bert_config.json').write_text(theirs.config.to_json_string())
    block = bert.BertModel.from_pretrained(str(tmp_path))
    words = np.array([[2, 5, 6, 7, 3]])
    with torch.no_grad():
        expected = theirs(torch.tensor(words))
    states, pooled = block(mx.nd.array(words, dtype='int32'))
    np.testing.assert_allclose(states.asnumpy(), expected.last_hidden_state, atol=1e-5)
    np.testing.assert_allclose(pooled.asnumpy(), expected.pooler_output, atol=1e-5)
