"""Vectors of sentence-transformers models: ours are that library's."""

import numpy as np
import pytest

from bert_embedding import BertEmbedding

library = pytest.importorskip('sentence_transformers')
models = pytest.importorskip('sentence_transformers.models')
torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

WORDS = [f'w{number}' for number in range(50)]
TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *WORDS]
MODES = ('cls', 'max', 'mean', 'mean_sqrt_len_tokens', 'weightedmean', 'lasttoken')


def transformer(folder, length):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(TOKENS), hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=32, max_position_embeddings=40, initializer_range=0.3,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    (folder / 'vocab.txt').write_text('\n'.join(TOKENS))
    transformers.BertTokenizer(str(folder / 'vocab.txt')).save_pretrained(folder)
    return models.Transformer(str(folder), max_seq_length=length)


def sentences(count=30):
    random = np.random.RandomState(0)
    return [' '.join(random.choice(WORDS, random.randint(1, 50))) for _ in range(count)]


@pytest.mark.parametrize('include_prompt', [True, False])
@pytest.mark.parametrize('mode', [*MODES, MODES])
def test_poolings_prompts_and_lengths(tmp_path, mode, include_prompt):
    pooling = models.Pooling(16, pooling_mode=mode, include_prompt=include_prompt)
    model = library.SentenceTransformer(
        modules=[transformer(tmp_path / 'bert', 20), pooling], prompts={'query': 'w1 w2 w3 '},
        device='cpu',
    )  # fmt: skip
    model.save_pretrained(str(tmp_path / 'model'))
    ours = BertEmbedding(str(tmp_path / 'model'))
    for options in ({}, {'prompt_name': 'query'}, {'prompt': 'w7 w8 '}):
        theirs = model.encode(sentences(), **options)
        np.testing.assert_allclose(
            ours.sentence_vectors(sentences(), **options), theirs, rtol=0, atol=1e-5
        )


@pytest.mark.parametrize('activation', ['Tanh', 'Identity', 'ReLU', 'Sigmoid'])
@pytest.mark.parametrize('safe', [True, False])
def test_dense_and_normalize(tmp_path, activation, safe):
    parts = [
        transformer(tmp_path / 'bert', None),
        models.Pooling(16),
        models.Dense(16, 7, activation_function=getattr(torch.nn, activation)()),
        models.Normalize(),
    ]
    model = library.SentenceTransformer(modules=parts, device='cpu')
    model.save_pretrained(str(tmp_path / 'model'), safe_serialization=safe)
    found = BertEmbedding(str(tmp_path / 'model')).sentence_vectors(sentences())
    np.testing.assert_allclose(found, model.encode(sentences()), rtol=0, atol=1e-5)
