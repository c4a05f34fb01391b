"""The model that the flags name: folders, other names of the flag, heads of the zoo's own."""

import mxnet as mx
import pytest
from refusals import refuses
from tiny import write_pairs

from gpt import OpenAIGPTDoubleHeadsModel, OpenAIGPTLMHeadModel
from model_zoo.app import cli
from model_zoo.app.arguments import add_settings
from model_zoo.app.model_choice import ModelChoice
from model_zoo.pretrained import names_files
from model_zoo.tasks.choice import StorySettings


@pytest.fixture
def vocab_file(tmp_path):
    tokens = ['<unk>', 'a', 'b', 'a</w>', 'b</w>', 'ab</w>']
    return write_pairs(tmp_path, tokens, ['a b</w>'])[0]


def build(task_block, words):
    parser = cli.parser('A training.')
    add_settings(parser, StorySettings)
    args = parser.parse_args(list(map(str, words)))
    assert not hasattr(args, 'model_name')

    return ModelChoice(args, 'gpt').build(task_block, mx.cpu())


SIZE = ['--from_scratch', '--hparams', 'num_layers=1,units=8,num_heads=2,max_length=12']


@pytest.mark.parametrize('task_block', [OpenAIGPTLMHeadModel, OpenAIGPTDoubleHeadsModel])
def test_the_zoos_head_is_taken_or_replaced(task_block, vocab_file, tmp_path):
    words = ['--model_name', 'openai-gpt', '--vocab_file', vocab_file, *SIZE]
    block, tokenizer = build(task_block, words)
    tokenizer.set_special_tokens(['_one_', '_two_'])
    block.set_num_special_tokens(2)
    assert type(block) is task_block and block.config.n_special == 2
    assert len(tokenizer) == 8 and block.transformer.word_embed.weight.shape == (8, 8)
    block.save_pretrained(str(tmp_path / 'saved'), tokenizer)
    same, tokenizer = build(task_block, ['--model_name', tmp_path / 'saved'])
    assert tokenizer.convert_tokens_to_ids('_two_') == 7
    one, other = (each.transformer.word_embed.weight.data().asnumpy() for each in (block, same))
    assert (one == other).all()


def test_a_vocabulary_larger_than_the_model(vocab_file, tmp_path):
    block, tokenizer = build(OpenAIGPTLMHeadModel, ['--vocab_file', vocab_file, *SIZE])
    tokenizer.set_special_tokens(['_one_'])
    block.save_pretrained(str(tmp_path / 'saved'), tokenizer)
    with refuses(says=('7', '6')):
        build(OpenAIGPTLMHeadModel, ['--model_name', tmp_path / 'saved'])


def test_folders_that_only_have_a_models_name(tmp_path, here):
    for name in ('gpt2', 'mine'):
        assert not names_files(name)
        (tmp_path / name).mkdir()
    assert names_files('mine') and not names_files('gpt2')
    (tmp_path / 'gpt2' / 'model.params').touch()
    assert names_files('gpt2')
