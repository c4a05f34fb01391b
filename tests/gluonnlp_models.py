"""GluonNLP's models like BERT, small, and that their parameters go to ours and back."""

import gluonnlp as nlp
import mxnet as mx
import tiny
from arrays import assert_same

#: the same sizes in our configurations; the feed-forward layers are padded
SIZES = dict(tiny.BERT, num_attention_heads=4, intermediate_size=512, max_position_embeddings=20)


def encoder(**options):
    return nlp.model.BERTEncoder(
        num_layers=2, units=16, hidden_size=512, max_length=20, num_heads=4, dropout=0.1, **options
    )


def randomize(block, *inputs):
    """Large random values for all parameters, biases and norms among them."""
    block.initialize()
    block(*inputs)  # for the shapes that are found by the first call
    for parameter in block.collect_params().values():
        center = 1 if parameter.name.endswith('gamma') else 0
        parameter.set_data(mx.nd.random.normal(center, 0.3, shape=parameter.shape))
    return block


def assert_both_ways(folder, theirs, ours, inputs, our_inputs=None, back=None):
    """Assert that each block has the same scores after it reads the other block's file.

    Parameters
    ----------
    folder : pathlib.Path
    theirs, ours : callable
        ``theirs() -> block``
    inputs, our_inputs : list of mx.nd.NDArray
        Inputs of their block, and of our block if they differ.
    back : callable, optional
        Makes the block that reads our file, if it isn't like the first one.
    """
    path = str(folder / 'model.params')
    first, block, last = randomize(theirs(), *inputs), ours(), (back or theirs)()
    first.save_parameters(path)
    block.load_parameters(path)
    expected = first(*inputs)
    for hybridized in (False, True):
        block.hybridize(hybridized, static_alloc=True, static_shape=True)
        assert_same(block(*(our_inputs or inputs)), expected)
    block.save_parameters(path, format='gluonnlp')
    last.load_parameters(path)
    assert_same(last(*inputs), expected)
