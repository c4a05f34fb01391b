"""The outputs of our blocks, by the names that a comparison gives them."""

import mxnet as mx

from ...registry import family_of_class, get_family

__all__ = ['is_variant', 'run_ours']


def is_variant(block):
    """Whether a block is of a family like BERT."""
    return family_of_class(type(block)).variant_of == 'bert'


def run_ours(block, inputs):
    """The outputs of a block.

    Parameters
    ----------
    block : ZooBlock
        Of any family, with all that its checkpoint has.
    inputs : Inputs

    Returns
    -------
    dict of str to numpy.ndarray
        Layers from the first to the last, then predictions (log-probabilities) and losses.
    """
    words, types, valid = (
        mx.nd.array(each, dtype='int32')
        for each in (inputs.words, inputs.token_types, inputs.valid_length)
    )
    if is_variant(block):
        return _run_variant(block, inputs, words, types)
    if block.config.model_type == 'bert':
        return _run_bert(block, inputs, words, types, valid)
    if block.config.model_type == 'transfo-xl':
        # all layers' inputs are in the memory, if it is as long as the text
        block.reset_length(words.shape[1], 0, words.shape[1])
        losses, mems = block(words[:, :-1], labels=words[:, 1:])
        states = [memory.transpose((1, 0, 2))[:, 1:].asnumpy() for memory in mems[:-1]]
        outputs = {f'input of layer {i}': state for i, state in enumerate(states, 1)}
        return {**outputs, 'next word, mean loss': losses.mean().asnumpy()}
    base = block.base
    base.output_all_encodings = True
    base.hybridize(False)
    outputs = base(words, valid_length=valid)
    states = outputs[0] if base.has_past else outputs
    named = {f'layer {i}': state.asnumpy() for i, state in enumerate(states[1:], 1)}
    scores = mx.nd.dot(states[-1], base.word_embed.weight.data(), transpose_b=True)
    return {**named, 'next word': mx.nd.log_softmax(scores).asnumpy()}


def _run_variant(block, inputs, words, types):
    base, mask = block.base, mx.nd.array(inputs.mask, dtype='int32')
    base.output_all_encodings = True
    outputs = base(words, token_types=types, valid_length=mask)
    states, *others = outputs if len(base.output_names) > 1 else [outputs]
    base.output_all_encodings = False
    if block is not base:
        others = block(words, types, mask)
        others = others if isinstance(others, list) else [others]
    elif base.has_decoder:
        others = others[-1:]  # of what transformers has in one class
    named = {f'layer {i}': state for i, state in enumerate(states, 1)}
    named.update((f'output {i}', each) for i, each in enumerate(others, 1))
    return {name: each.asnumpy() for name, each in named.items()}


def _run_bert(block, inputs, words, types, valid):
    base = block.base
    base.output_all_encodings = True
    outputs = base(words, types, valid)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    parts = ['layers'] + ['pooled vector'] * base.has_pooler
    parts += ['next sentence'] * base.has_classifier + ['masked words'] * base.has_decoder
    # a bare model of one output isn't wrapped in a list of outputs
    named = dict(zip(parts, outputs if len(parts) > 1 else [outputs]))
    result = {f'layer {i}': state.asnumpy() for i, state in enumerate(named['layers'], 1)}
    if base.has_pooler:
        result['pooled vector'] = named['pooled vector'].asnumpy()
    for name in ('next sentence', 'masked words'):
        if name in named:
            result[name] = mx.nd.log_softmax(named[name]).asnumpy()
    span = block
    if not hasattr(block, 'span_classifier'):
        span = get_family('bert').block_class('question_answering')(base)
        span.span_classifier.initialize()
        span.span_classifier.weight.set_data(mx.nd.array(inputs.span_weight))
    base.output_all_encodings = False
    shortest = int(inputs.valid_length.min())
    text = (words[:, :shortest], types[:, :shortest], None)
    start, end = span(*text)
    loss = span(*text, *(mx.nd.array(places, dtype='int32') for places in inputs.answers))
    return {**result, 'answer start': start.asnumpy(), 'answer end': end.asnumpy(),
            'answer loss': loss.asnumpy()}  # fmt: skip
