"""Word vectors of MiniLM are those of transformers; tests/unit has its sentence vectors."""

import functools

import numpy as np
import pytest

from bert_embedding import BertEmbedding

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = [pytest.mark.peers, pytest.mark.weights]


@pytest.fixture(scope='module')
def theirs(minilm_dir):
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm_dir)
    return transformers.BertModel.from_pretrained(minilm_dir).eval(), tokenizer


@pytest.fixture(scope='module')
def ours(minilm_dir):
    return BertEmbedding(model=str(minilm_dir))


@pytest.fixture(scope='module')
def sentences(data_dir):
    """Of mixed length, up to some hundred pieces."""
    lines = (data_dir / 'wikitext-2').glob('*valid*')
    text = next(lines).read_text('utf-8').replace('<unk>', 'something').splitlines()
    return [line for line in text if line.strip()][:16]


@functools.lru_cache(None)
def states_of(theirs, sentence, max_length):
    model, tokenizer = theirs
    batch = tokenizer(sentence, truncation=True, max_length=max_length, return_tensors='pt')
    with torch.no_grad():
        return model(**batch).last_hidden_state[0].numpy(), batch.word_ids()


@pytest.mark.data
def test_word_vectors(theirs, ours, sentences):
    checked = 0
    for sentence, (tokens, vectors) in zip(sentences, ours(sentences)):
        states, words = states_of(theirs, sentence, None)
        if len(words) > 512:
            continue
        expected = [
            states[[place for place, number in enumerate(words) if number == word]].mean(axis=0)
            for word in range(max(number for number in words if number is not None) + 1)
        ]
        assert len(tokens) == len(expected)
        np.testing.assert_allclose(vectors, expected, atol=2e-5)
        checked += len(tokens)
    assert checked > 500
