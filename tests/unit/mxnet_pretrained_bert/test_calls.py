"""The originals' order of inputs and defaults: the same as ours, called otherwise.

What the original computes is compared in tests/peers/test_readme_snippets.py.
"""

import inspect
import logging

import mxnet as mx
import numpy as np
import pytest

import bert
import export
import gpt
import gpt2
import mxnet_pretrained_bert as package
import transfo_xl
from mxnet_pretrained_bert import optimization

BERT = {
    'vocab_size': 41, 'hidden_size': 16, 'num_hidden_layers': 3, 'num_attention_heads': 4,
    'intermediate_size': 32, 'max_position_embeddings': 24, 'initializer_range': 0.3,
}  # fmt: skip
DECODER = {'vocab_size': 41, 'n_positions': 24, 'n_ctx': 24, 'n_embd': 16, 'n_layer': 2,
           'n_head': 4}  # fmt: skip
XL = {'vocab_size': 41, 'cutoffs': [10, 20], 'd_model': 16, 'd_embed': 16, 'n_head': 2,
      'd_head': 8, 'd_inner': 32, 'n_layer': 2, 'mem_len': 9, 'clamp_len': 8}  # fmt: skip
FAMILIES = {
    'Bert': (bert, bert.BertConfig, BERT),
    'OpenAIGPT': (gpt, gpt.OpenAIGPTConfig, DECODER),
    'GPT2': (gpt2, gpt2.GPT2Config, DECODER),
    'TransfoXL': (transfo_xl, transfo_xl.TransfoXLConfig, XL),
}
CLASSES = [name for name in package.__all__ if name.endswith('Model') or '.modeling' in
           getattr(getattr(package, name), '__module__', '')]  # fmt: skip
CLASSES = [name for name in CLASSES if not name.endswith('Config')]


def make(name):
    """The block here, and the family's with the same parameters."""
    family, config_class, fields = next(
        value for key, value in FAMILIES.items() if name.startswith(key)
    )
    here = getattr(package, name)(config_class(**fields))
    here.initialize(mx.init.Normal(0.3))
    own = getattr(family, name)(config_class(**fields))
    own.load_state_dict(here.state_dict())
    return here, own


def ids(*shape, high=41):
    return mx.nd.array(np.random.randint(0, high, shape), dtype='int32')


def flatten(outputs):
    if not isinstance(outputs, (list, tuple)):
        return [outputs]
    return [array for output in outputs for array in flatten(output)]


def same(one, two):
    one, two = flatten(one), flatten(two)
    assert len(one) == len(two)
    for first, second in zip(one, two):
        assert first.shape == second.shape
        np.testing.assert_allclose(first.asnumpy(), second.asnumpy(), rtol=1e-5, atol=1e-6)


def test_names():
    """Those of the original's ``__init__``, but for its TensorFlow loaders."""
    assert len(CLASSES) == 8 + 3 + 3 + 2
    assert all(hasattr(package, name) for name in package.__all__)
    assert (package.WEIGHTS_NAME, package.CONFIG_NAME) == ('model.params', 'config.json')
    assert package.cached_path(__file__) == __file__
    assert optimization.SCHEDULES[None] is optimization.ConstantLR


def test_bert_model():
    here, own = make('BertModel')
    words, types, mask = ids(2, 7), ids(2, 7, high=2), mx.nd.array([[0, 1, 1, 1, 0, 1, 1]] * 2)
    layers, pooled = here(words, types, mask)
    assert len(layers) == 3
    same([layers[-1], pooled], own(words, types, mask))
    same(here(words, types, mask, False), own(words, types, mask))
    same(here(words, output_all_encoded_layers=False), own(words))
    same(here(words=words, valid_length=mask)[1], pooled * 0 + own(words, None, mask)[1])


@pytest.mark.parametrize('name, count', [
    ('BertForMaskedLM', 1), ('BertForNextSentencePrediction', 1), ('BertForPreTraining', 2),
    ('BertForSequenceClassification', 1), ('BertForTokenClassification', 1),
    ('BertForQuestionAnswering', 2), ('BertForMultipleChoice', 1),
])  # fmt: skip
def test_heads_of_bert(name, count):
    """Labels follow the mask, in their order."""
    here, own = make(name)
    rows = (2, 2) if 'Choice' in name else (2,)
    words, types, mask = ids(*rows, 7), ids(*rows, 7, high=2), mx.nd.ones((*rows, 7))
    labels = {
        'masked_lm_labels': ids(2, 7), 'next_sentence_label': ids(2, high=2),
        'start_positions': ids(2, high=7), 'end_positions': ids(2, high=7),
        'labels': ids(2, 7, high=2) if 'Token' in name else ids(2, high=2),
    }  # fmt: skip
    names = list(inspect.signature(here.__call__).parameters)[3 : 3 + count]
    same(here(words, types, mask), own(words, types, mask))
    loss = here(words, types, mask, *[labels[each] for each in names])
    assert loss.shape == (1,)
    same(loss, own(words, types, mask, **{each: labels[each] for each in names}))


@pytest.mark.parametrize('name', ['BertForPreTraining', 'BertForQuestionAnswering'])
def test_one_label_of_two(name, caplog):
    """As in the original, there is no loss; here a warning tells of it."""
    here, own = make(name)
    words, label = ids(2, 7), {'BertForPreTraining': ids(2, 7)}.get(name, ids(2, high=7))
    with caplog.at_level(logging.WARNING):
        outputs = here(words, None, None, label)
    assert len(caplog.messages) == 1 and 'is ignored: scores are returned' in caplog.text
    same(outputs, own(words))


@pytest.mark.parametrize('family', ['OpenAIGPT', 'GPT2'])
def test_decoders(family):
    words, places = ids(2, 7), mx.nd.array([[3, 2, 1, 0, 4, 5, 6]] * 2)
    here, own = make(f'{family}Model')
    same(here(words, places, words), own(words, words, position_ids=places))
    here, own = make(f'{family}LMHeadModel')
    same(here(words, places, words, words), own(words, words, None, places, words))
    valid = mx.nd.array([7, 3])
    same(here(words, valid_length=valid), own(words, None, valid))
    here, own = make(f'{family}DoubleHeadsModel')
    words, places = ids(2, 3, 7), ids(2, 3, 7, high=24)
    last, right = ids(2, 3, high=7), ids(2, high=3)
    same(
        here(words, last, words, right, words, places),
        own(words, last, words, None, places, words, right),
    )


def test_past():
    here, own = make('GPT2LMHeadModel')
    words = ids(2, 7)
    _, past = here(words)
    same(here(words, past=past), own(words, past=own(words)[1]))


def test_transformer_xl():
    here, own = make('TransfoXLModel')
    words = ids(2, 7)
    hidden, mems = here(words)
    wanted, own_mems = own(words)
    assert len(mems) == 2
    same([hidden, mems], [wanted, own_mems[:-1]])
    same(here(words, mems), [own(words, own_mems)[0], own(words, own_mems)[1][:-1]])
    same(here(words, own_mems), own(words, own_mems))  # with the numbers of valid places
    lower = [mem[-7:].swapaxes(0, 1) for mem in mems]
    same(lower[0], here.word_embed(words))
    here, own = make('TransfoXLLMHeadModel')
    losses, mems = here(words, words)
    same(losses, own(words, labels=words)[0])
    same(here(words, words, mems)[0], own(words, own(words)[1], None, words)[0])
    same(here(words)[0], own(words)[0])


def test_number_of_choices():
    config = package.BertConfig(**BERT)
    assert package.BertForMultipleChoice(config, 3).num_choices == 3
    assert package.BertForSequenceClassification(config, 3).num_labels == 3


@pytest.mark.parametrize(
    'name', ['BertModel', 'BertForPreTraining', 'GPT2LMHeadModel', 'TransfoXLModel']
)
def test_saved_and_exported_as_the_family_s(name, tmp_path):
    here, own = make(name)
    here.save_pretrained(str(tmp_path))
    again = type(own).from_pretrained(str(tmp_path))
    words = ids(2, 7)
    same(own(words), again(words))
    same(here(words), type(here).from_pretrained(str(tmp_path))(words))
    assert len(export.export_block(here, str(tmp_path), 'model')) == 2
