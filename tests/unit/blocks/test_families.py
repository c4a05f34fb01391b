"""The contract of all families: what each block of the registry does, beyond its own results."""

import dataclasses
import logging

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import array, assert_equal, assert_same, flatten, imported, tensors_of
from halves import HALVES
from refusals import refuses

from export import export_block
from model_zoo.blocks.block import NUM_CHOICES
from model_zoo.blocks.decoder import DecoderBlock
from model_zoo.errors import CheckpointError
from model_zoo.registry import list_families

FAMILIES = {family.name: family for family in list_families()}
BLOCKS = {cls.__name__: cls for family in FAMILIES.values() for cls in family.blocks}
HEADS = {name: cls for name, cls in BLOCKS.items() if cls.backbone}
LABELLED = {name: cls for name, cls in HEADS.items() if cls.label_inputs}
#: those with a label a word, where that of a word that isn't masked is not -1
PER_WORD = {
    name: cls
    for name, cls in LABELLED.items()
    if any(axes == cls.word_axes for axes, _ in cls.label_inputs.values())
    and 'masked_lm_labels' not in cls.label_inputs
}
#: those with attention heads that can be masked, removed and kept
MASKED = {name: cls for name, cls in BLOCKS.items() if 'head_mask' in cls.input_names}
#: all kinds of heads, each in one family at least, for what takes longer
SOME = {
    name: BLOCKS[name]
    for name in (
        'BertModel BertForPreTraining BertForMultipleChoice BertForQuestionAnswering '
        'BertSentenceEncoder RobertaModel RobertaForSequenceClassification DistilBertModel '
        'DistilBertForSequenceClassification ElectraForMaskedLM ElectraForPreTraining '
        'XLMRobertaForTokenClassification MPNetModel AlbertForPreTraining DebertaV2Model '
        'DebertaV2ForSequenceClassification '
        'ModernBertModel ModernBertForQuestionAnswering OpenAIGPTModel OpenAIGPTDoubleHeadsModel '
        'GPT2LMHeadModel GPT2DoubleHeadsModel TransfoXLModel TransfoXLLMHeadModel'
    ).split()
}
TOKENS = 40
#: a change of the tiny sizes: four heads
HEADS_OF = {'num_attention_heads': 4, 'n_heads': 4, 'n_head': 4, 'd_head': 4, 'mem_len': 9}


def make_config(cls, scale=0.3, **changes):
    kind = cls.config_class
    fields = {field.name for field in dataclasses.fields(kind)}
    scales = dict.fromkeys(('init_std', 'proj_init_std', 'initializer_range'), scale)
    own = {name: value for name, value in {**HEADS_OF, **scales}.items() if name in fields}
    return tiny.make_config(kind, TOKENS, **{**own, **changes})


def make(cls, scale=0.3, **options):
    return tiny.initialized(cls(make_config(cls, scale), **options))


def inputs_of(block, length=7, seed=0, labels=False, rows=3):
    """A batch with padding, by the names of the block's inputs, as NumPy arrays."""
    random = np.random.RandomState(seed)
    shape = (rows, *(2,) * (block.word_axes - 2), length)
    lengths = random.randint(2, length, shape[:-1])
    lengths[0] = length
    inputs = {
        'words': random.randint(2, TOKENS, shape),
        'token_types': random.randint(0, 2, shape),
        'valid_length': lengths,
        'mc_token_ids': lengths - 1,
    }
    for name, (axes, classes) in block.label_inputs.items() if labels else ():
        if isinstance(classes, str):
            classes = 2 if classes == NUM_CHOICES else getattr(block.config, classes)
        inputs[name] = random.randint(0, min(classes, length), shape[:axes])
    known = {*block.input_names} - {*block.unused_inputs}
    return {name: value for name, value in inputs.items() if name in known}


def call(block, inputs, dtype='int32'):
    """Outputs as a flat list."""
    for name, value in inputs.items():
        inputs = {**inputs, name: array(value, dtype) if isinstance(value, np.ndarray) else value}
    return flatten(block(**inputs))


def trained(block, inputs):
    """The loss and its gradients, without dropout."""
    with mx.autograd.record(train_mode=False):
        loss = sum(each.sum() for each in call(block, inputs)[: len(block.label_inputs)])
    loss.backward()
    parameters = block.parameters_by_name()
    return loss, {name: each.grad().asnumpy() for name, each in parameters.items()}


def every(blocks):
    return pytest.mark.parametrize('cls', blocks.values(), ids=blocks)


def of_some(blocks):
    return {name: cls for name, cls in blocks.items() if name in SOME}


# -- inputs and outputs -------------------------------------------------------------------------


@every(SOME)
def test_graphs_give_what_plain_calls_give(cls):
    block = make(cls)
    calls = []
    for length in (7, 4):
        inputs = inputs_of(block, length)
        calls += [inputs, {name: inputs[name] for name in inputs if name != 'valid_length'}]
        if cls.label_inputs:
            calls.append(inputs_of(block, length, labels=True))
    plain = [call(block, inputs) for inputs in calls]
    block.hybridize(static_alloc=True, static_shape=True)
    for turn in (1, -1):  # backwards, too: all graphs are there then
        for inputs, expected in list(zip(calls, plain))[::turn]:
            assert_same(call(block, inputs), expected)
    first = call(block, calls[0])
    before = [each.asnumpy() for each in first]
    call(block, inputs_of(block, seed=1))  # doesn't write into what was returned
    assert_same(first, before, 0)


@every(SOME)
def test_padding_and_the_other_rows_change_nothing(cls):
    block = make(cls)
    inputs = inputs_of(block)
    together = call(block, inputs)
    for row in range(3):
        part = {name: value[row : row + 1] for name, value in inputs.items()}
        length = part['valid_length'].max()
        for name in part.keys() & {'words', 'token_types'}:
            part[name] = part[name][..., :length]
        if (part['valid_length'] == length).all():
            del part['valid_length']
        for ours, alone in zip(together, call(block, part)):
            if ours.shape[0] == 3:  # and not an array of a layer
                here = tuple(slice(0, size) for size in alone.shape[1:])
                assert_same(ours[row : row + 1][(slice(None), *here)], alone)


@every(SOME)
def test_kinds_of_numbers_and_rows_without_words(cls):
    block = make(cls)
    inputs = inputs_of(block, labels=True)
    for dtype in ('float32', 'int64'):
        assert_same(call(block, inputs, dtype), call(block, inputs), 1e-6)
    if 'mc_token_ids' not in inputs:
        inputs = inputs_of(block)
        inputs['valid_length'][0] = 0
        assert all(np.isfinite(each.asnumpy()).all() for each in call(block, inputs))


@every(SOME)
def test_dropout_is_for_training_only(cls):
    block = make(cls)
    inputs = inputs_of(block)
    assert_same(call(block, inputs), call(block, inputs), 0)
    with mx.autograd.record():
        one, two = (call(block, inputs)[0].asnumpy() for _ in range(2))
    assert np.abs(one - two).max() > 1e-4


@every({name: cls for name, cls in SOME.items() if 'mems' not in cls.input_names})
def test_a_part_of_a_users_block(cls):
    block = make(cls)
    names = inputs_of(block)
    documented = ''.join(each.__doc__ or '' for each in cls.__mro__)
    assert not [name for name in cls.call_order or block.input_names if name not in documented]
    symbol = mx.sym.Group(flatten(block(**{name: mx.sym.var(name) for name in names})))
    own = {parameter.name for parameter in block.collect_params().values()}
    assert set(symbol.list_arguments()) - own == {*names}


@every(of_some(LABELLED))
def test_labels_of_minus_one_are_left_out(cls):
    block = make(cls)
    inputs = inputs_of(block, labels=True)
    loss, gradients = trained(block, inputs)
    assert loss.asscalar() > 0 and any(value.any() for value in gradients.values())
    inputs.update({name: np.full_like(inputs[name], -1) for name in block.label_inputs})
    loss, gradients = trained(block, inputs)
    assert loss.asscalar() == 0 and not any(value.any() for value in gradients.values())


@every(PER_WORD)
def test_labels_at_padding_are_left_out(cls):
    block = make(cls)
    inputs = inputs_of(block, labels=True)
    inside = np.arange(7) < inputs['valid_length'][..., None]
    names = [name for name in block.label_inputs if inputs[name].shape == inside.shape]
    assert names
    one, other = (
        trained(block, {**inputs, **{name: np.where(inside, inputs[name], at) for name in names}})
        for at in (0, 1)
    )
    assert_same(one[0], other[0], 0)
    assert_equal(one[1], other[1])


#: largest differences, relative to the largest number; the types have 11 and 8 bits
TOLERANCES = {'float16': 0.01, 'bfloat16': 0.05}


@pytest.mark.parametrize('dtype', HALVES)
@every(of_some(LABELLED))
def test_half_precisions_are_near_float32(cls, dtype):
    results = []
    for each in ('float32', dtype):
        block = make(cls, 0.1)
        block.cast(each)
        block.hybridize(static_alloc=True, static_shape=True)
        assert block.precision == block.base.precision == each
        inputs = inputs_of(block, labels=True)
        for _ in range(2):  # static graphs take another way the second time
            loss, gradients = trained(block, inputs)
        outputs = call(block, inputs_of(block))
        assert loss.dtype == np.float32
        assert outputs[0].dtype == (np.float16 if each == 'float16' else np.float32)
        if hasattr(block, 'generate') and block.word_axes == 2:
            texts = block.generate([[1, 2, 3], [7]], 3, top_k=1)
            outputs.append(mx.nd.array([text.log_prob for (text,) in texts]))
        outputs = [each.asnumpy().astype('float32') for each in (loss, *outputs)]
        results.append((outputs, {name: x.astype('float32') for name, x in gradients.items()}))
    (full, expected), (half, gradients) = results
    for one, two in zip(half, full):
        assert np.abs(one - two).max() < TOLERANCES[dtype] * np.abs(two).max()
    assert np.abs(half[1] - full[1]).max() > 1e-6
    largest = max(np.abs(each).max() for each in expected.values())
    for name, value in expected.items():  # some are 0 but for rounding
        allowed = TOLERANCES[dtype] * max(np.abs(value).max(), largest / 10)
        assert np.abs(gradients[name] - value).max() < allowed, name


@every(SOME)
def test_exported_for_plain_mxnet(cls, tmp_path):
    block = make(cls)
    export_block(block, str(tmp_path), 'block')
    inputs = {name: array(value) for name, value in inputs_of(block, 9, rows=2).items()}
    if 'mems' in block.export_inputs:
        inputs['mems'] = block.init_mems(2)
    inputs = {name: inputs[name] for name in block.export_inputs}
    data = [each.astype('float32') for each in flatten([*inputs.values()])]
    assert_same(imported(tmp_path / 'block', len(data))(*data), block(**inputs))


# -- attention heads ----------------------------------------------------------------------------


# layers of ALBERT lose their heads together
@every({name: cls for name, cls in of_some(MASKED).items() if not name.startswith('Albert')})
def test_removed_heads_equal_masked_heads(cls, tmp_path):
    block = make(cls)
    inputs = inputs_of(block)
    mask = np.array([[1, 0, 1, 0], [0, 1, 1, 1]])

    def masked(mask, block=block):
        return call(block, {**inputs, 'head_mask': mx.nd.array(mask)})[0]

    plain, expected = call(block, inputs)[0], masked(mask)
    assert_same(masked(np.ones((2, 4))), plain, 1e-6)
    assert_same(masked([1, 0, 1, 1]), masked([[1, 0, 1, 1]] * 2), 0)
    assert np.abs((plain - expected).asnumpy()).max() > 1e-4
    without = masked(mask * [1, 1, 0, 1])
    block.hybridize(static_alloc=True)
    call(block, inputs)
    block.base.prune_heads({0: [1]})
    block.prune_heads({0: [3, 1], 1: [0]})  # by their first numbers; 1 is gone already
    assert block.config.pruned_heads == {0: [1, 3], 1: [0]}
    assert_same(call(block, inputs)[0], expected)
    assert_same(masked([1, 1, 0, 1]), without)  # with a place for each of the first heads
    block.save_pretrained(str(tmp_path))
    again = cls.from_pretrained(str(tmp_path))
    assert again.config == block.config
    assert_same(call(again, inputs)[0], expected)


@every(of_some(MASKED))
def test_attentions_and_kept_outputs(cls):
    block = make(cls, output_attentions=True, keep_multihead_output=True)
    inputs = inputs_of(block, labels=bool(cls.label_inputs))
    plain = call(make(cls), inputs)
    block.hybridize(static_alloc=True)
    with mx.autograd.record(train_mode=False):
        outputs = call(block, inputs)
        outputs[0].square().sum().backward()
    assert_same(outputs[0], plain[0])
    rows = inputs['valid_length'].size
    for kept in (block.get_multihead_outputs(), block.get_multihead_gradients()):
        assert [each.shape for each in kept] == [(rows, 4, 7, 4)] * 2
        assert all(each.asnumpy().any() for each in kept)
    lengths = inputs['valid_length'].ravel()
    attentions = [each for each in outputs if each.shape == (rows, 4, 7, 7)]
    assert len(attentions) == 2
    for attention in attentions:
        attention = attention.asnumpy()
        assert (attention >= 0).all()
        for each, length in zip(attention, lengths):
            np.testing.assert_allclose(each[:, :length].sum(-1), 1, atol=1e-5)
            assert not each[:, :length, length:].any()
            assert issubclass(cls, DecoderBlock) <= (not np.triu(each[:, :length], 1).any())


# -- files --------------------------------------------------------------------------------------


FOLDERS = [
    *((cls, 'huggingface') for cls in BLOCKS.values()),
    *((cls, 'native') for cls in SOME.values() if cls.backbone),
]


@pytest.mark.parametrize('cls, form', FOLDERS)
def test_folders(cls, form, tmp_path, caplog):
    block = make(cls)
    block.config.extras['origin'] = 'a test'
    inputs = inputs_of(block)
    with caplog.at_level(logging.WARNING):
        block.save_pretrained(str(tmp_path), format=form)
        again = cls.from_pretrained(str(tmp_path))
    assert not caplog.records
    assert again.config == block.config and again.config.extras['origin'] == 'a test'
    assert_same(call(again, inputs), call(block, inputs), 0)
    if cls.backbone:
        names = {name for name in inputs if name in block.base.input_names} - {'mc_token_ids'}
        axes = {name: inputs[name].ndim - block.word_axes + 2 for name in names}
        flat = {name: inputs[name].reshape((-1, 7)[: axes[name]]) for name in names}
        base = type(block.base).from_pretrained(str(tmp_path))
        assert_same(call(base, flat)[0], call(block.base, flat)[0], 0)


@pytest.mark.parametrize('form', ['native', 'huggingface'])
@every({name: family.base for name, family in FAMILIES.items()})
def test_files_that_do_not_fit(cls, form, tmp_path):
    """A whole parameter too few, too many, and of another shape; nothing of it is loaded."""
    path = str(tmp_path / 'file.params')
    fields = {field.name for field in dataclasses.fields(cls.config_class)}
    layers = fields & {'num_hidden_layers', 'num_hidden_groups', 'n_layers', 'n_layer'}
    deeper = tiny.initialized(cls(make_config(cls, **dict.fromkeys(layers, 3))), seed=2)
    block = make(cls)
    before = tensors_of(block)
    deeper.save_parameters(path, format=form)
    with pytest.raises(CheckpointError):
        block.load_parameters(path)
    assert_equal(before, tensors_of(block))
    block.load_parameters(path, ignore_extra=True)
    block.save_parameters(path, format=form)
    with pytest.raises(CheckpointError):
        deeper.load_parameters(path)
    deeper.load_parameters(path, allow_missing=True)
    mx.nd.save(path, {'h.0.other': mx.nd.ones((2,))})
    with pytest.raises(CheckpointError):
        block.load_parameters(path)


# -- bad input ----------------------------------------------------------------------------------

#: name of an input -> what it can't be
WRONG = {
    'words': [
        np.zeros((1, 2)).tolist(),
        mx.nd.ones((3,)),
        mx.nd.array(np.zeros((3, 0))),
        lambda x: x + TOKENS,
        lambda x: x * 0 - 1,
        lambda x: x * 0 + 1.5,
        lambda x: x * np.nan,
        lambda x: x.asnumpy(),
        # as DataLoader's workers give it
        lambda x: (x + TOKENS).as_in_context(mx.Context('cpu_shared', 0)),
    ],
    'token_types': [lambda x: x + TOKENS, lambda x: x[:1], lambda x: x.asnumpy()],
    'valid_length': [lambda x: x + 7, lambda x: x * 0 - 1, lambda x: x[:1], lambda x: x.asnumpy()],
    'mc_token_ids': [lambda x: x + 7, lambda x: x[:1]],
    'head_mask': [mx.nd.ones((3,)), mx.nd.ones((3, 4)), [1, 1, 1, 1]],
    'masked_positions': [mx.nd.array([[7], [0], [0]]), mx.nd.array([0]), [[1]]],
    'position_ids': [mx.nd.full((3, 7), 24), mx.nd.ones((7,))],
    'past': [
        mx.nd.ones((2, 3, 4, 4, 4)),
        [mx.nd.ones((2, 3, 4, 4, 4))],
        [mx.nd.ones((2, 3, 3, 4, 4))] * 2,
        [None, None],
    ],
    'mems': [mx.nd.ones((4, 3, 16)), [mx.nd.ones((4, 3, 16))], [mx.nd.ones((4, 3, 16))] * 3],
}


@every(SOME)
def test_inputs_that_are_refused(cls):
    block = make(cls)
    right = {
        name: array(value, 'float32')
        for name, value in inputs_of(block, labels=bool(cls.label_inputs)).items()
    }
    cases = [(name, wrong) for name in WRONG if name in block.input_names for wrong in WRONG[name]]
    for name, (_, classes) in cls.label_inputs.items():
        wrongs = [lambda x: x[:1], lambda x: x.asnumpy()]
        # positions of answers behind the text are left out
        cases += [(name, wrong) for wrong in wrongs + [lambda x: x + 1000] * (classes != 2**31)]
    if block.context_length:
        cases.append(('words', lambda x: mx.nd.ones((*x.shape[:-1], block.context_length + 1))))
    for name, wrong in cases:
        if name in block.unused_inputs:
            continue
        value = wrong(right[name]) if callable(wrong) else wrong
        inputs = {**right, name: value}
        if name in ('past', 'mems', 'masked_positions', 'position_ids') or (
            name == 'words' and (getattr(value, 'shape', None) != right['words'].shape)
        ):  # the labels and lengths would be wrong, too
            keep = {'words', name, 'mc_token_ids'}
            inputs = {key: each for key, each in inputs.items() if key in keep}
        with refuses(says=name):
            block(**inputs)
    with pytest.raises(TypeError):
        block(**right, wordz=right['words'])


@every({name: family.base for name, family in FAMILIES.items()})
def test_ids_end_with_the_vocabulary(cls):
    block = make(cls)
    rows = block.config.embedding_rows
    block(mx.nd.array([[rows - 1, 0]]))
    for wrong in (rows, -1):
        with refuses(says='words'):
            block(mx.nd.array([[0, wrong]]))
