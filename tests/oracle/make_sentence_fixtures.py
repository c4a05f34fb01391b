"""Writes tests/fixtures/sentence_transformers: small models, and the vectors that they give.

Run it in the environment of ``make peers``: ``python tests/oracle/make_sentence_fixtures.py``.
"""

import json
import pathlib
import shutil
import tempfile

import numpy as np
import torch
from oracle_files import FIXTURES
from sentence_transformers import SentenceTransformer, models
from transformers import BertConfig, BertModel, BertTokenizer

FOLDER = FIXTURES / 'sentence_transformers'
WORDS = 'a the cat dog barks sleeps and then runs query : passage ## ##s ! .'.split()
TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *WORDS]


def make_transformer(folder, length):
    torch.manual_seed(len(TOKENS) + length)
    config = BertConfig(
        vocab_size=len(TOKENS),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=24,
        initializer_range=0.5,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    vocab = pathlib.Path(folder) / 'vocab.txt'
    vocab.write_text('\n'.join(TOKENS))
    BertTokenizer(str(vocab), do_lower_case=True).save_pretrained(folder)
    return models.Transformer(folder, max_seq_length=length)


def as_of_2020(folder):
    """Turn a folder into what the library wrote then."""
    inner = folder / '0_Transformer'
    inner.mkdir()
    for path in list(folder.iterdir()):
        if path.is_file() and path.name not in ('modules.json', 'README.md'):
            path.rename(inner / path.name)
    modules = json.loads((folder / 'modules.json').read_text())
    modules[0]['path'] = '0_Transformer'
    for module in modules:
        name = module['type'].rpartition('.')[2]
        module['type'] = f'sentence_transformers.models.{name}'
    (folder / 'modules.json').write_text(json.dumps(modules))
    (inner / 'sentence_bert_config.json').write_text('{"max_seq_length": 10}')
    pooling = {
        'word_embedding_dimension': 8,
        'pooling_mode_cls_token': True,
        'pooling_mode_mean_tokens': False,
        'pooling_mode_max_tokens': True,
        'pooling_mode_mean_sqrt_len_tokens': False,
    }
    (folder / '1_Pooling' / 'config.json').write_text(json.dumps(pooling))
    dense = folder / '2_Dense'
    weights = torch.nn.Linear(16, 3)
    state = {f'linear.{name}': value.data for name, value in weights.named_parameters()}
    (dense / 'model.safetensors').unlink()
    torch.save(state, dense / 'pytorch_model.bin')


def make(name, length, pooling, *rest, **options):
    """A model's folder without what only people read."""
    folder = FOLDER / name
    with tempfile.TemporaryDirectory() as temporary:
        transformer = make_transformer(temporary, length)
        modules = [transformer, models.Pooling(8, **pooling), *rest]
        SentenceTransformer(modules=modules, **options).save_pretrained(str(folder))
    (folder / 'README.md').unlink()
    return folder


def main():
    sentences = json.loads((FOLDER / 'sentences.json').read_text())
    for name in ('today', 'joined', 'of_2020'):
        shutil.rmtree(FOLDER / name)
    prompts = {'query': 'query: ', 'passage': 'passage: '}
    parts, options = (models.Dense(8, 5), models.Normalize()), {'default_prompt_name': 'passage'}
    make('today', 12, {'pooling_mode': 'mean'}, *parts, prompts=prompts, **options)
    modes = ('weightedmean', 'lasttoken', 'mean_sqrt_len_tokens', 'mean', 'max', 'cls')
    make('joined', 20, {'pooling_mode': modes, 'include_prompt': False}, prompts=prompts)
    dense = models.Dense(16, 3, activation_function=torch.nn.ReLU())
    as_of_2020(make('of_2020', 10, {'pooling_mode': ('cls', 'max')}, dense))
    expected = {}
    for name in ('today', 'joined', 'of_2020'):
        model = SentenceTransformer(str(FOLDER / name), device='cpu')
        expected[name] = model.encode(sentences)
        if name != 'of_2020':
            expected[f'{name} query'] = model.encode(sentences, prompt_name='query')
            expected[f'{name} prompt'] = model.encode(sentences, prompt='the dog ')
    np.savez(FOLDER / 'expected.npz', **expected)


if __name__ == '__main__':
    main()
