"""The models like BERT give the recorded scores of transformers' models."""

import mxnet as mx
import numpy as np
import pytest

import bert
from model_zoo.checkpoint.tensor_files import write_safetensors

FAMILIES = 'Roberta DistilBert Electra MPNet Albert DebertaV2 ModernBert'.split()


@pytest.mark.parametrize('family', FAMILIES)
def test_scores(fixtures, tmp_path, family):
    with np.load(fixtures / 'variants.npz') as file:
        state = {name.partition(':')[2]: file[name] for name in file if f'{family}:' in name}
        config, long, short = (file[f'{family} {name}'] for name in ('config', '40', '7'))
        words, lengths = file['words'], file['lengths']
    (tmp_path / 'config.json').write_text(str(config))
    write_safetensors(str(tmp_path / 'model.safetensors'), state)
    block = getattr(bert, f'{family}ForMaskedLM').from_pretrained(str(tmp_path))
    for hybridized in (False, True):
        block.hybridize(hybridized)
        found = block(mx.nd.array(words), valid_length=mx.nd.array(lengths)).asnumpy()
        for row, length in enumerate(lengths):
            np.testing.assert_allclose(found[row, :length], long[row, :length], atol=1e-3)
        found = block(mx.nd.array(words[:, :7])).asnumpy()
        np.testing.assert_allclose(found, short, atol=1e-3)
