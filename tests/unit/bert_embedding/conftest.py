"""A small BERT with random weights, saved as a directory."""

import string

import mxnet as mx
import pytest

from bert.config import BertConfig
from bert.model import BertModel
from bert.tokenizer import BertTokenizer
from model_zoo.tokenization.vocab import load_vocab

# As BERT's own vocabulary cuts the sentence: "encoder" and "bidirectional" have pieces.
README_SENTENCE = (
    'We introduce a new language representation model called BERT, which stands for '
    'Bidirectional Encoder Representations from Transformers.'
)
README_PIECES = (
    'we introduce new language representation model called bert which stands for '
    'bid ##ire ##ction ##al en ##code representations from transformers'
)


@pytest.fixture(scope='session')
def readme_sentence():
    """The first sentence of the originals' example."""
    return README_SENTENCE


@pytest.fixture(scope='session')
def tiny_dir(tmp_path_factory):
    """Directory of a model with 2 layers, 16 units and 32 positions, and its vocabulary."""
    tokens = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *README_PIECES.split()]
    tokens += [*string.ascii_lowercase, *(f'##{char}' for char in string.ascii_lowercase)]
    tokens += [*string.digits, *string.punctuation, '你', '好']
    vocab = load_vocab(dict.fromkeys(tokens))
    config = BertConfig(
        vocab_size=len(vocab),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    mx.random.seed(1)
    block = BertModel(config)
    block.initialize(mx.init.Normal(0.5))
    directory = tmp_path_factory.mktemp('tiny_bert')
    block.save_pretrained(str(directory), BertTokenizer.from_vocab(vocab))
    return directory
