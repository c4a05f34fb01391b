"""The methods of torch's modules, on all families."""

import logging

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same, masked_inputs
from refusals import refuses

import mxnet_pretrained_bert as package
from model_zoo.errors import UnknownNameError

BLOCKS = ['BertModel', 'BertForPreTraining', 'OpenAIGPTLMHeadModel', 'GPT2DoubleHeadsModel']
BLOCKS += ['TransfoXLLMHeadModel']


def make(name='BertModel', **sizes):
    sizes.update({'num_hidden_layers': 3} if name.startswith('Bert') else {})
    return tiny.make(getattr(package, name), 41, **sizes)


@pytest.mark.parametrize('hybridized', [False, True])
def test_eval_and_train(hybridized):
    block = make('BertForMaskedLM', hidden_dropout_prob=0.5)
    block.hybridize(hybridized)
    words, labels = masked_inputs()[0], mx.nd.ones((2, 7))

    def losses():
        result = []
        for _ in range(3):
            with mx.autograd.record():
                loss = block(words, masked_lm_labels=labels)
            loss.backward()
            result.append(loss.asscalar())
        return len(set(result))

    assert losses() == 3
    assert block.eval() is block and not block.training and not block.bert.training
    assert losses() == 1
    assert np.abs(block.bert.word_embed.weight.grad().asnumpy()).max() > 0
    assert block.train() is block and losses() == 3
    block.bert.eval()  # of a part: the mode of a graph is the outermost block's
    assert losses() == (3 if hybridized else 1)
    assert not block.train(False).training


def test_to():
    block = make()
    assert block.to('cpu') is block and block.to(mx.cpu(), 'float16').precision == 'float16'
    assert block.half().float().cpu().precision == 'float32'
    if not mx.context.num_gpus():
        for target in ('cuda', 'cuda:1', 'gpu', 0):
            with refuses('device'):
                block.to(target)
        with refuses('device'):
            block.cuda()
    with pytest.raises(ValueError):
        block.to('cuda:x')
    with pytest.raises(UnknownNameError):
        block.to('cudda')


@pytest.mark.parametrize('name', BLOCKS)
def test_state_dict_and_back(name, tmp_path):
    block, other = make(name), make(name)
    path = str(tmp_path / 'model.params')
    mx.nd.save(path, block.state_dict())
    assert other.load_state_dict(mx.nd.load(path)) == ([], [])
    values = [each.data() for each in block.parameters_by_name().values()]
    assert_same(values, [each.data() for each in other.parameters_by_name().values()], 0)
    state = block.state_dict()
    names = dict(block.named_parameters())
    assert set(names) <= set(state) or name == 'TransfoXLLMHeadModel'
    assert len(names) == len(values)
    assert [id(each) for each in block.parameters()] == [id(each) for each in names.values()]


@pytest.mark.parametrize('name', ['BertModel', 'BertForPreTraining'])
def test_weights_from_a_state_dict(tmp_path, name, caplog):
    block = make(name)
    block.save_pretrained(str(tmp_path))
    state = {key: value * 2 for key, value in block.state_dict().items()}
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        other = type(block).from_pretrained(
            str(tmp_path), state_dict=state, cache_dir=str(tmp_path / 'cache')
        )
    assert not caplog.messages
    assert_same([*other.state_dict().values()], [*state.values()], 0)
