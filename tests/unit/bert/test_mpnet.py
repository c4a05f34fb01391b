"""MPNet: relative positions, tokenizer, and folders of sentence-transformers."""

import json

import mxnet as mx
import numpy as np
import tiny
from variant_models import MAKERS

import bert
import model_zoo

#: the first distances of T5's buckets
BUCKETS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]


def test_a_number_for_each_bucket_is_added_to_the_scores():
    """They alone make the attentions of a layer without queries and keys."""
    sizes = {'num_hidden_layers': 1, 'max_position_embeddings': 202}
    config = tiny.make_config(bert.MPNetConfig, **sizes)
    block = tiny.initialized(bert.MPNetModel(config, use_pooler=False, output_attentions=True))
    parameters = block.parameters_by_name()
    parameters['encoder.layers.0.attention.qkv.weight'].set_data(mx.nd.zeros((48, 16)))
    numbers = np.random.RandomState(0).uniform(-3, 3, (32, 2))
    parameters['encoder.layers.relative_bias'].set_data(mx.nd.array(numbers))
    steps = np.arange(200)
    distances = steps - steps[:, None]
    buckets = np.searchsorted(BUCKETS, abs(distances), 'right') + 16 * (distances > 0)
    for hybridized in (False, True):
        block.hybridize(hybridized)
        _, (attention,) = block(mx.nd.ones((1, 200)))
        scores = np.log(attention.asnumpy()[0].astype('float64'))
        scores -= np.diagonal(scores, axis1=1, axis2=2)[:, :, None]
        expected = numbers[buckets].transpose(2, 0, 1) - numbers[0][:, None, None]
        np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_tokenizer(tmp_path):
    _, tokenizer = MAKERS['mpnet'](tmp_path)
    encoding = tokenizer.encode('A <mask> \u4e2d', 'Cab')
    assert ' '.join(encoding.tokens) == '<s> a <mask> [UNK] </s> </s> c ##a ##b </s>'
    assert not any(encoding.token_types) and tokenizer.pad_token_id == 1
    assert tokenizer.decode(encoding, skip_special_tokens=True) == 'a cab'
    cased = bert.MPNetTokenizer.from_pretrained(str(tmp_path / 'vocab.txt'), do_lower_case=False)
    assert cased.tokenize('A a') == ['[UNK]', 'a']
    assert not cased.do_lower_case and tokenizer.do_lower_case


def test_a_folder_that_names_a_head_without_its_weights(tmp_path):
    """As all-mpnet-base-v2: sentence-transformers reads the backbone alone."""
    block, tokenizer = MAKERS['mpnet'](tmp_path)
    block = tiny.initialized(bert.MPNetModel(block.config))
    block.save_pretrained(str(tmp_path), tokenizer, format='huggingface')
    fields = json.loads((tmp_path / 'config.json').read_text())
    (tmp_path / 'config.json').write_text(
        json.dumps({**fields, 'architectures': ['MPNetForMaskedLM']})
    )
    parts = {'Transformer': '', 'Pooling': '1_Pooling', 'Normalize': '2_Normalize'}
    modules = [{'type': f'models.{name}', 'path': path} for name, path in parts.items()]
    (tmp_path / 'modules.json').write_text(json.dumps(modules))
    (tmp_path / '1_Pooling').mkdir()
    mode = {'pooling_mode_mean_tokens': True, 'word_embedding_dimension': 32}
    (tmp_path / '1_Pooling' / 'config.json').write_text(json.dumps(mode))
    (tmp_path / 'SHA256SUMS').unlink()
    assert type(model_zoo.open_model(str(tmp_path)).block) is bert.MPNetModel
    vectors = model_zoo.pipeline(str(tmp_path))(['a cat', 'b'], pooling='model')
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
