"""Parameters of GluonNLP 0.10's GPT-2 (scripts/text_generation): its names and layout."""

import mxnet as mx
import numpy as np
import pytest
import tiny

from gpt2 import GPT2LMHeadModel
from model_zoo import get_model
from model_zoo.checkpoint import read_tensors
from model_zoo.tokenization.vocab import make_vocab

TOKENS = 31
HPARAMS = {'num_layers': 2, 'units': 16, 'num_heads': 2, 'max_length': 24, 'hidden_size': 64}
#: GluonNLP's names -> OpenAI's, whose weights of layers are transposed
EMBEDDINGS = {'_pos_embed.weight': 'wpe.weight', '_logits_proj.weight': 'wte.weight'}
NORMS = {'_attn_ln.{}': 'h.{}.ln_1', '_ffn_ln.{}': 'h.{}.ln_2', '_final_ln': 'ln_f'}
LAYERS = {
    '_self_attention_layers.{}._multi_head_qkv_proj': 'h.{}.attn.c_attn',
    '_self_attention_layers.{}._out_proj': 'h.{}.attn.c_proj',
    '_ffn_layers.{}._hidden_map': 'h.{}.mlp.c_fc',
    '_ffn_layers.{}._out_map': 'h.{}.mlp.c_proj',
}


def in_gluonnlp(openai):
    """GluonNLP's tensors of OpenAI's."""
    found = {name: openai[f'transformer.{theirs}'] for name, theirs in EMBEDDINGS.items()}
    for number in range(2):
        for name, theirs in {**NORMS, **LAYERS}.items():
            name, theirs = name.format(number), f'transformer.{theirs.format(number)}'
            weight, bias = openai[f'{theirs}.weight'], openai[f'{theirs}.bias']
            if weight.ndim == 1:
                found.update({f'{name}.gamma': weight, f'{name}.beta': bias})
            else:
                found.update({f'{name}.weight': weight.T, f'{name}.bias': bias})
    return found


@pytest.mark.parametrize('deduplicate', [False, True])
def test_its_parameters_give_its_scores(tmp_path, deduplicate):
    model = tiny.make(GPT2LMHeadModel, TOKENS)
    tensors = in_gluonnlp(model.tensors_in('huggingface'))
    if not deduplicate:
        tensors['_embed.weight'] = tensors['_logits_proj.weight']
    path = str(tmp_path / 'gpt2_117m_openai_webtext-26416f2e.params')
    mx.nd.save(path, {name: mx.nd.array(array) for name, array in tensors.items()})
    vocab = make_vocab({str(number): number for number in range(TOKENS)})
    block, found = get_model(
        'gpt2_117m', vocab=vocab, pretrained=path, hparam_allow_override=True, **HPARAMS
    )
    assert found is vocab
    words = mx.nd.array(np.random.RandomState(0).randint(0, TOKENS, (2, 9)))
    np.testing.assert_array_equal(block(words)[0].asnumpy(), model(words)[0].asnumpy())
    block.save_parameters(path, format='gluonnlp')
    ours = read_tensors(path)[0]
    ours['_logits_proj.weight'] = ours.pop('_embed.weight', ours.get('_logits_proj.weight'))
    for name, array in ours.items():
        np.testing.assert_array_equal(array, tensors[name])
    assert {*ours, '_embed.weight'} == {*tensors, '_embed.weight'}
