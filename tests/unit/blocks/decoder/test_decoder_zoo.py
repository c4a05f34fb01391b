"""GPT and GPT-2 in the zoo: names, overrides, weights by path and cache, vocabularies."""

import mxnet as mx
import pytest
import tiny
from arrays import assert_same
from gpt_compare import HEADS, PACKAGES
from refusals import refuses

import model_zoo
from model_zoo.errors import CheckpointError

pytestmark = pytest.mark.usefixtures('no_network')

CONFIG = {'n_layer': 2, 'n_embd': 16, 'n_head': 4, 'n_positions': 20, 'n_ctx': 20}
NAMES = {'gpt': 'gpt_12_768_12', 'gpt2': 'gpt2_12_768_12'}
# the tokens in the order of their ids, and the merges that lead to them
TOKENS = {
    'gpt': ['l', 'o', 'w', 'l</w>', 'o</w>', 'w</w>', 'lo', 'low</w>', '<unk>'],
    'gpt2': ['l', 'o', 'w', 'Ġ', 'lo', 'low', 'Ġlow', '<|endoftext|>'],
}
MERGES = {'gpt': ['l o', 'lo w</w>'], 'gpt2': ['l o', 'lo w', 'Ġ low']}


@pytest.fixture(params=sorted(NAMES))
def family(request):
    return request.param


def make(family, name=None, **changes):
    package = PACKAGES[family]
    name = name or HEADS[family][0]
    config = package.OpenAIGPTConfig if family == 'gpt' else package.GPT2Config
    block = getattr(package, name)(
        config(**{**CONFIG, 'vocab_size': len(TOKENS[family]), **changes})
    )
    block.initialize(mx.init.Normal(0.5))
    return block


def save(block, family, folder):
    """The block's files, and those of a tokenizer as the Hugging Face hub has them."""
    block.save_pretrained(str(folder))
    tiny.write_pairs(folder, TOKENS[family], MERGES[family])
    return str(folder)


def run(block):
    words = mx.nd.array([[1, 2, 3], [4, 0, 5]], dtype='int32')
    outputs = block(words)
    return outputs[0] if isinstance(outputs, list) else outputs


# -- names and overrides ------------------------------------------------------------------------


# -- weights ------------------------------------------------------------------------------------


def test_weights_of_double_heads_and_of_the_model(tmp_path, family):
    """The zoo's block takes what it needs."""
    for name in (HEADS[family][1], 'OpenAIGPTModel' if family == 'gpt' else 'GPT2Model'):
        saved = make(family, name)
        block, _ = model_zoo.get_model(NAMES[family], pretrained=save(saved, family, tmp_path))
        language = type(block)(saved.base)
        assert_same(run(block), run(language), 1e-6)


def test_weights_of_another_family(tmp_path, family):
    other = next(each for each in NAMES if each != family)
    saved = make(other, vocab_size=9)
    folder = save(saved, family, tmp_path)  # with the vocabulary of this one
    with refuses(says='config.json'):
        model_zoo.get_model(NAMES[family], pretrained=folder)
    own = make(family, vocab_size=9)  # its configuration beside the other's weights
    own.config.to_json_file(str(tmp_path / 'config.json'))
    with pytest.raises(CheckpointError):
        model_zoo.get_model(NAMES[family], pretrained=folder)
    saved.save_parameters(str(tmp_path / 'model.params'), format='huggingface')
    with pytest.raises(CheckpointError):
        model_zoo.get_model(NAMES[family], pretrained=folder)


def test_weights_with_special_tokens(tmp_path, family):
    saved = make(family, n_special=2)
    folder = save(saved, family, tmp_path)
    (tmp_path / 'special_tokens.txt').write_text('_start_\n_end_\n')
    block, vocab = model_zoo.get_model(NAMES[family], pretrained=folder)
    assert len(vocab) == len(TOKENS[family]) + 2 and block.config.n_special == 2
    assert_same(run(block), run(saved), 1e-6)
    tokenizer = block.own_tokenizer()
    assert tokenizer.special_tokens['_end_'] == vocab['_end_'] == len(vocab) - 1
    target = tmp_path / 'again'
    block.save_pretrained(str(target))  # the tokenizer's files among them
    again, _ = model_zoo.get_model(NAMES[family], pretrained=str(target))
    assert_same(run(again), run(saved), 1e-6)
    assert again.own_tokenizer().special_tokens == tokenizer.special_tokens
