"""Checkpoints of other programs: their directories, read and written without these programs."""

import json
import shutil

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_equal, stored
from json_files import change_json
from refusals import refuses

from bert import BertForPreTraining, BertForSequenceClassification, BertModel
from gpt import OpenAIGPTLMHeadModel, OpenAIGPTModel
from gpt2 import GPT2Config, GPT2LMHeadModel
from model_zoo.checkpoint import read_tensors
from model_zoo.checkpoint.readers import LAYOUTS, weights_in_folder
from model_zoo.errors import CheckpointError, MissingExtraError

TENSORS = {
    'a': np.arange(12, dtype='float32').reshape(3, 4),
    'b': np.array([1.5], dtype='float32'),
    'c': np.arange(5, dtype='float32'),
}


@pytest.fixture
def copy(fixtures, tmp_path):
    """A copy of one of the checkpoints, which may be spoiled."""
    return lambda name: shutil.copytree(fixtures / 'checkpoints' / name, tmp_path / name)


def outputs_of(folder):
    return stored(folder / 'outputs.npz')


def ids(array):
    return mx.nd.array(array, dtype='int32')


def assert_close(ours, theirs):
    np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=0, atol=1e-5)


# -- OpenAI's NumPy files -------------------------------------------------------------------------


@pytest.mark.parametrize('hybridized', [False, True])
def test_numpy(copy, hybridized):
    folder = copy('gpt_numpy')
    expected = outputs_of(folder)
    model = OpenAIGPTModel.from_pretrained(folder, output_all_encodings=True)
    if hybridized:
        model.hybridize(static_alloc=True, static_shape=True)
    states = model(ids(expected['words']))
    for ours, theirs in zip(states[1:], expected['layers']):
        assert_close(ours, theirs)


def test_numpy_without_configuration_is_the_published_size(copy):
    folder = copy('gpt_numpy')
    (folder / 'config.json').unlink()
    with pytest.raises(CheckpointError):
        OpenAIGPTModel.from_pretrained(folder)


# -- Hugging Face ---------------------------------------------------------------------------------


def test_transformers_bert(copy):
    folder = copy('bert_transformers')
    expected = outputs_of(folder)
    block = BertForPreTraining.from_pretrained(folder)
    scores, next_sentence = block(ids(expected['words']))
    assert_close(scores, expected['prediction_logits'])
    assert_close(next_sentence, expected['seq_relationship_logits'])
    states = BertModel.from_pretrained(folder, output_all_encodings=True)(ids(expected['words']))
    for ours, theirs in zip(states[0], expected['layers'][1:]):
        assert_close(ours, theirs)


@pytest.mark.parametrize(
    'name, block_class', [('gpt', OpenAIGPTLMHeadModel), ('gpt2', GPT2LMHeadModel)]
)
def test_transformers_decoders(copy, name, block_class):
    """GPT-2's is in several files."""
    folder = copy(f'{name}_transformers')
    expected = outputs_of(folder)
    scores = block_class.from_pretrained(folder)(ids(expected['words']))
    assert_close(scores[0] if isinstance(scores, list) else scores, expected['logits'])


HEADS = [('bert', BertForPreTraining), ('gpt', OpenAIGPTLMHeadModel), ('gpt2', GPT2LMHeadModel)]


@pytest.mark.parametrize('name, block_class', HEADS)
def test_huggingface_round_trip(copy, tmp_path, name, block_class):
    """Every tensor and every field of the configuration come back as they were."""
    folder = copy(f'{name}_transformers')
    back = tmp_path / 'back'
    block_class.from_pretrained(folder).save_pretrained(back, format='huggingface')
    theirs, metadata = read_tensors(weights_in_folder(folder))
    ours, own_metadata = read_tensors(weights_in_folder(back))
    assert metadata == own_metadata == {'format': 'pt'}
    # a tied tensor is written once; some versions of transformers write it twice
    lm_head = 'cls.predictions.decoder'
    for tied in ('lm_head.weight', f'{lm_head}.weight', f'{lm_head}.bias'):
        assert tied not in ours
        theirs.pop(tied, None)
    assert_equal(ours, theirs)
    theirs, ours = (json.loads((d / 'config.json').read_text()) for d in (folder, back))
    assert {**ours, **theirs} == ours


def test_special_tokens_belong_to_transformers_vocabulary(tmp_path):
    block = tiny.make(GPT2LMHeadModel, 5, n_special=2)
    block.save_pretrained(str(tmp_path), format='huggingface')
    back = GPT2LMHeadModel.from_pretrained(str(tmp_path))
    assert (back.config.vocab_size, back.config.n_special) == (7, 0)
    words = ids([[1, 6, 2]])
    assert_close(back(words)[0], block(words)[0].asnumpy())


def test_classes_and_labels(copy, tmp_path):
    """A bare model with heads is written as the class that transformers has for it."""
    folder = copy('bert_transformers')
    model = BertModel.from_pretrained(folder, use_decoder=True)
    model.save_pretrained(str(tmp_path / 'lm'), format='huggingface')
    config = json.loads((tmp_path / 'lm' / 'config.json').read_text())
    assert (config['architectures'], config['model_type']) == (['BertForMaskedLM'], 'bert')
    names = read_tensors(tmp_path / 'lm' / 'model.safetensors')[0]
    assert {'bert.pooler.dense.weight', 'cls.predictions.bias'} <= set(names)
    change_json(folder / 'config.json', id2label={'0': 'no', '1': 'maybe', '2': 'yes'})
    assert BertForSequenceClassification.from_pretrained(folder).config.num_labels == 3


@pytest.mark.parametrize(
    'change',
    [{'model_type': 'roberta'}, {'position_embedding_type': 'relative_key'}, {'is_decoder': True}],
)
def test_configurations_that_compute_something_else(copy, change):
    folder = copy('bert_transformers')
    change_json(folder / 'config.json', **change)
    with refuses(says='config.json'):
        BertModel.from_pretrained(folder)


# -- recognition and errors -----------------------------------------------------------------------


def test_directories_without_the_weights_that_are_wanted(copy, tmp_path):
    (tmp_path / 'model.onnx').write_bytes(b'ir')
    with refuses(says='model.params'):
        BertModel.from_pretrained(str(tmp_path))
    with pytest.raises(CheckpointError):
        read_tensors(str(tmp_path / 'model.onnx'))
    folder = copy('bert_transformers')
    with refuses(says='bert_transformers'):
        BertModel.from_pretrained(folder, from_tf=True)


def test_tensorflow_files_are_found(fixtures, tmp_path):
    folder = fixtures / 'checkpoints'
    google = folder / 'bert_tensorflow'  # as Google's archives: no file `checkpoint`
    assert weights_in_folder(str(google)) == str(google / 'bert_model.ckpt.index')
    squad = folder / 'bert_squad_tensorflow'
    assert weights_in_folder(str(squad)) == str(squad / 'model.ckpt-10.index')
    assert weights_in_folder(str(squad), 'tensorflow') == str(squad / 'model.ckpt-10.index')
    both = shutil.copytree(squad, tmp_path / 'both')
    # of another machine
    (both / 'checkpoint').write_text('model_checkpoint_path: "/gone/model.ckpt-5"\n')
    assert weights_in_folder(str(both)) == str(both / 'model.ckpt-5.index')
    (both / 'checkpoint').unlink()
    assert weights_in_folder(str(both)) == str(both / 'model.ckpt-10.index')  # after more steps
    (both / 'model.ckpt-10.index').rename(both / 'other.ckpt.index')
    assert weights_in_folder(str(both)) is None  # two, and nothing says which
    for name in ('pytorch_model.bin', 'model.params'):
        (both / name).touch()
        assert weights_in_folder(str(both)) == str(both / name)


def test_missing_tensorflow(tmp_path, without):
    """It is needed for writing only."""
    without('tensorflow')
    layout = LAYOUTS['tensorflow']
    with pytest.raises(MissingExtraError):
        layout.write(str(tmp_path / layout.weights), TENSORS)


def test_weights_of_pytorch_are_written_without_torch(tmp_path, without):
    without('torch')
    path = str(tmp_path / 'pytorch_model.bin')
    types = ('bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'float64')
    tensors = {**TENSORS, **{name: np.arange(6).reshape(2, 3).T.astype(name) for name in types}}
    tensors['tied'], tensors['scalar'] = tensors['a'], np.array(3, 'float32')
    LAYOUTS['pytorch'].write(path, tensors)
    found, _ = read_tensors(path)
    assert list(found) == list(tensors)
    for name, array in tensors.items():
        assert found[name].dtype == ('float32' if name == 'float16' else array.dtype)
        np.testing.assert_array_equal(found[name], array)


def test_hparams(tmp_path):
    """OpenAI's names of GPT-2's hyper-parameters, in and out."""
    values = {'n_vocab': 31, 'n_ctx': 12, 'n_embd': 8, 'n_head': 2, 'n_layer': 2}
    path = tmp_path / 'hparams.json'
    path.write_text(json.dumps(values))
    config = GPT2Config.from_json_file(str(path))
    assert (config.vocab_size, config.n_positions, config.n_ctx) == (31, 12, 12)
    assert config.to_format('tensorflow', 'GPT2Model') == ('hparams.json', values)
