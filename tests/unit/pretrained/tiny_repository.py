"""What a small repository of the hub holds."""

import mxnet as mx

TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'hello', 'hub', '##s']
CONFIG = {
    'model_type': 'bert',
    'vocab_size': len(TOKENS),
    'hidden_size': 4,
    'num_hidden_layers': 1,
    'num_attention_heads': 2,
    'intermediate_size': 8,
    'max_position_embeddings': 6,
    'id2label': {'0': 'good', '1': 'bad', '2': 'ugly'},
}


def same(ours, theirs):
    """Whether two of its blocks give the same."""
    words = mx.nd.array([[2, 5, 6, 3]])
    return (ours(words) == theirs(words)).asnumpy().all()
