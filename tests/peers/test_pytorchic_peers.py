"""Files of Pytorchic BERT's models that are written here: torch reads them as its own."""

import pathlib

import numpy as np
import pytest

from bert import BertForPreTraining
from model_zoo.checkpoint.torch_file import write_torch
from mxnet_pytorchic_bert.models import load_model, make_config, reset_parameters, save_model

torch = pytest.importorskip('torch')
pytestmark = pytest.mark.peers

FIXTURES = pathlib.Path(__file__).parents[1] / 'fixtures' / 'pytorchic'


def load(path):
    return torch.load(str(path), weights_only=True)


def test_torch_reads_a_model_as_its_own(tmp_path):
    theirs = load(FIXTURES / 'pretrained.pt')
    fields = {'dim': 16, 'n_layers': 2, 'n_heads': 2, 'dim_ff': 24, 'max_len': 40}
    rows = len(theirs['decoder_bias'])
    model = BertForPreTraining(make_config(fields, rows))
    reset_parameters(model, 1)
    load_model(model, str(FIXTURES / 'pretrained.pt'))
    save_model(model, str(tmp_path / 'model_steps_1.pt'))
    ours = load(tmp_path / 'model_steps_1.pt')
    assert type(ours) is type(theirs) and ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype and torch.equal(ours[name], tensor), name
    embedding = ours['transformer.embed.tok_embed.weight']
    assert ours['decoder.weight'].data_ptr() == embedding.data_ptr()


def test_torch_reads_every_type_and_shape(tmp_path):
    random = np.random.RandomState(0)
    arrays = {
        f'{kind} of {shape} \u00e9': np.array(random.randn(*shape) * 9, kind)
        for kind in ('float16', 'float32', 'float64', 'int32', 'int64')
        for shape in ((), (1,), (3, 4), (2, 0, 3), (70, 2, 5))
    }
    arrays['transposed'] = arrays['float32 of (3, 4) \u00e9'].T
    arrays['big-endian'] = np.arange(3, dtype='>f4')
    write_torch(str(tmp_path / 'a.pt'), arrays)
    read = load(tmp_path / 'a.pt')
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        assert read[name].is_contiguous() and read[name].numpy().shape == array.shape
        np.testing.assert_array_equal(read[name].numpy(), array, err_msg=name)
