"""The base of the configurations: JSON there and back, and what can't be right."""

import dataclasses
import json
import math

import pytest
import tiny
from refusals import refuses

import bert
import gpt
import gpt2
import transfo_xl
from model_zoo.blocks.config import Config
from model_zoo.errors import InputError, UnknownNameError


@dataclasses.dataclass
class Tiny(Config):
    size: int = 3
    dropout: float = 0.5
    names: tuple = ()
    scale: float = 0.0


def test_json_round_trip_keeps_unknown_fields(tmp_path):
    path = tmp_path / 'config.json'
    values = {'size': 4, 'dropout': 0.25, 'scale': 2, 'names': ['ä']}
    values.update({'version': '1.2', 'nested': {'a': [1]}})
    path.write_text(json.dumps(values), encoding='utf-8')
    config = Tiny.from_json_file(path)
    assert (config.size, config.dropout) == (4, 0.25)
    assert config.extras == {'version': '1.2', 'nested': {'a': [1]}}
    config.to_json_file(tmp_path / 'again.json')
    assert json.loads((tmp_path / 'again.json').read_text()) == values
    assert json.loads(config.to_json_string()) == values
    assert list(json.loads(config.to_json_string())) == sorted(values)


SMALL = {'vocab_size': 40, **tiny.BERT}
SMALL_MODERN = {'vocab_size': 40, **tiny.sizes_of(bert.ModernBertConfig)}
DECODER = {'vocab_size': 40, 'n_ctx': 24, **tiny.DECODER}
XL = {'vocab_size': 100, 'cutoffs': [20]}
#: the heads that can't be removed from a model of 2 layers with 2 heads
PRUNED = [[0], {'x': [0]}, {0: 1}, {'2': [0]}, {0: [2]}, {1: [0, 1]}]
OF_DECODERS = [{'n_layer': True}, {'n_head': 3}, {'n_special': -1}, {'attn_pdrop': 1}]
OF_DECODERS += [{'layer_norm_epsilon': -1}, {'pruned_heads': {2: [0]}}]
#: class -> what is right, and changes of it that aren't
REFUSED = {
    Tiny: (
        {},
        [
            *({'size': size} for size in (0, -1, 1.0, '3', None, True)),
            *({'dropout': rate} for rate in (-0.1, 1, 1.5, '0.1', None, math.nan)),
            *({'scale': each} for each in (-0.1, None, '1', True, math.nan, math.inf, 1e39, 1e-40)),
        ],
    ),
    bert.BertConfig: (
        SMALL,
        [
            *({'hidden_act': name} for name in ('gelus', ['gelu'])),
            *({name: 1} for name in ('attention_probs_dropout_prob', 'hidden_dropout_prob')),
            *({'num_attention_heads': 3}, {'initializer_range': None}, {'num_labels': True}),
            *({'pruned_heads': heads} for heads in PRUNED),
        ],
    ),
    bert.DistilBertConfig: (
        {'vocab_size': 40},
        [{'dim': 0}, {'dim': 10}, {'dropout': 1.5}, {'activation': 'nonsense'}],
    ),
    bert.ElectraConfig: (SMALL, [{'embedding_size': 0}]),
    bert.DebertaV2Config: (SMALL, [{'pos_att_type': 'c2c'}, {'pooler_dropout': 1}]),
    bert.ModernBertConfig: (SMALL_MODERN, [{'layer_types': ['all']}, {'num_attention_heads': 16}]),
    bert.AlbertConfig: (SMALL, [{'num_hidden_groups': 9}, {'inner_group_num': 0}]),
    gpt.OpenAIGPTConfig: (DECODER, [{'afn': 'gelus'}, *OF_DECODERS]),
    gpt2.GPT2Config: (DECODER, [{'n_inner': 0}, {'activation_function': 'gelus'}, *OF_DECODERS]),
    transfo_xl.TransfoXLConfig: (
        XL,
        [
            *({'cutoffs': ends} for ends in ([30, 20], [20, 20], [0, 20], [20, 100], [20.5], 20)),
            *({'mem_len': length} for length in (0, -1)),
            *({'tgt_len': 0}, {'clamp_len': None}, {'attn_type': 2}, {'sample_softmax': 10}),
            *({'d_model': 15}, {'d_embed': 3}, {'init': 'xavier'}, {'tie_projs': [True]}),
            {'n_head': 2**70},
        ],
    ),
}


@pytest.mark.parametrize(
    'cls, change', [(cls, change) for cls, (_, changes) in REFUSED.items() for change in changes]
)
def test_values_that_are_refused(cls, change):
    right = REFUSED[cls][0]
    cls(**right)
    with pytest.raises((InputError, UnknownNameError)):
        cls(**{**right, **change})


BAD_FIELDS = [
    *((Tiny, {'architectures': value}) for value in (7, [[]])),
    *((Tiny, {'id2label': value}) for value in (7, ['a'])),
    *((Tiny, {name: 7}) for name in ('label2id', 'sentence_transformers')),
    (Tiny, {'sbert_ce_default_activation_function': 7}),
    (bert.ElectraConfig, {'summary_type': 'mean'}),
    (bert.MPNetConfig, {'relative_attention_num_buckets': 64}),
    (gpt2.GPT2Config, {'scale_attn_by_inverse_layer_idx': True}),
    (gpt2.GPT2Config, {'scale_attn_weights': False}),
    (gpt2.GPT2Config, {'tie_word_embeddings': False}),
]


@pytest.mark.parametrize('cls, fields', BAD_FIELDS)
def test_fields_of_files_that_are_refused(cls, fields):
    cls.from_dict({name: None for name in fields if cls is Tiny})
    with refuses(says=list(fields)):
        cls.from_dict(fields)


@pytest.mark.parametrize(
    'content', [None, b'', b'{', b'[1, 2]', b'"text"', b'null', b'\xff\xfe{}', b'{"size": 0}']
)
def test_bad_files(tmp_path, content):
    path = tmp_path / 'config.json'
    if content is not None:
        path.write_bytes(content)
    with refuses(says='config.json'):
        Tiny.from_json_file(path)


def test_first_argument_as_in_pytorch_pretrained_bert(tmp_path):
    """A size or the path of a file, under its name there."""
    path = tmp_path / 'config.json'
    path.write_text('{"vocab_size": 41, "hidden_size": 24, "num_attention_heads": 3, "new": 1}')
    for config in (
        bert.BertConfig(str(path)),
        bert.BertConfig(path),
        bert.BertConfig(vocab_size_or_config_json_file=str(path)),
    ):
        assert (config.vocab_size, config.hidden_size, config.extras) == (41, 24, {'new': 1})
    other = bert.BertConfig(vocab_size_or_config_json_file=50, hidden_size=36)
    assert (other.vocab_size, other.hidden_size) == (50, 36)
    assert gpt2.GPT2Config(vocab_size_or_config_json_file=7).vocab_size == 7
    with refuses(says='no such file'):
        bert.BertConfig('no such file')
