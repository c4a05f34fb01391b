"""What the comparisons of our BERT with the originals share; needs no original itself."""

import mxnet as mx
import numpy as np
import safetensors.numpy
import tiny

import bert

#: a small model; its weights are large, so that nothing hides in linear ranges
CONFIG = {**tiny.BERT, 'vocab_size': 30, 'hidden_size': 8, 'intermediate_size': 16}
CONFIG.update(max_position_embeddings=12, initializer_range=0.3, hidden_act='gelu')
CHOICES = 3
NUM_LABELS = 4

HEADS = (
    'BertForPreTraining BertForMaskedLM BertForNextSentencePrediction '
    'BertForSequenceClassification BertForMultipleChoice BertForTokenClassification '
    'BertForQuestionAnswering'
).split()


def make_inputs(name, padded, seed=0, batch=4, length=9):
    """A batch for the head `name`: words, token types, valid lengths, and its labels in a list.

    Padding is word 0, which occurs nowhere else: the originals' embedding keeps its gradient 0.
    Some labels are -1 where the original leaves these out.
    """
    random = np.random.RandomState(seed)
    rows = (batch, CHOICES) if name == 'BertForMultipleChoice' else (batch,)
    words = random.randint(1, CONFIG['vocab_size'], (*rows, length))
    types = random.randint(0, 2, (*rows, length))
    valid = random.randint(2, length + 1, rows) if padded else np.full(rows, length)
    words[np.arange(length) >= valid[..., None]] = 0

    def words_to_predict():
        labels = np.where(random.rand(batch, length) < 0.4, words, -1)
        labels[words == 0] = -1
        labels[0, 0] = 5
        return labels

    next_sentence = np.array([0, 1, -1, 1] * batch)[:batch]
    labels = {
        'BertForPreTraining': lambda: [words_to_predict(), next_sentence],
        'BertForMaskedLM': lambda: [words_to_predict()],
        'BertForNextSentencePrediction': lambda: [next_sentence],
        'BertForSequenceClassification': lambda: [random.randint(0, NUM_LABELS, batch)],
        'BertForMultipleChoice': lambda: [random.randint(0, CHOICES, batch)],
        'BertForTokenClassification': lambda: [random.randint(0, NUM_LABELS, (batch, length))],
        'BertForQuestionAnswering': lambda: [
            random.randint(0, length, batch),
            # in a batch of several one is outside
            np.append(random.randint(0, length, batch - 1), 0 if batch == 1 else length + 3),
        ],
    }[name]()
    return {'words': words, 'types': types, 'valid': valid, 'labels': labels}


def load_state(block, state, folder, **options):
    """The block with the weights `state` of an original, by way of a file."""
    path = str(folder / 'state.safetensors')
    state = {key: np.ascontiguousarray(value, 'float32') for key, value in state.items()}
    safetensors.numpy.save_file(state, path)
    block.load_parameters(path, **options)
    return block


def make_block(name, state, folder, config=CONFIG, **options):
    """Our head `name` with the weights `state` of the original, by way of a file."""
    if name in ('BertForSequenceClassification', 'BertForTokenClassification'):
        options.setdefault('num_labels', NUM_LABELS)
    block = getattr(bert, name)(bert.BertConfig(**config), **options)
    return load_state(block, state, folder, ignore_extra=True)  # the originals' pooler is there


def run(block, inputs, labels=False):
    """Call `block` on what `make_inputs` made, without a valid length where nothing is padded."""
    words, valid = inputs['words'], inputs['valid']
    arrays = [words, inputs['types'], None if (valid == words.shape[-1]).all() else valid]
    if labels:
        # between the valid length and the labels some heads have the masked positions
        name = type(block).__name__
        arrays += [None] if name in ('BertForPreTraining', 'BertForMaskedLM') else []
        arrays += inputs['labels']
    return block(*[None if a is None else mx.nd.array(a, dtype='int32') for a in arrays])


def loss_and_gradients(block, inputs):
    """The loss, and its gradients by the originals' names."""
    for parameter in block.collect_params().values():
        parameter.zero_grad()
    with mx.autograd.record(train_mode=False):
        loss = run(block, inputs, labels=True)
    loss.backward()
    return loss.asscalar(), gradients(block)


def gradients(block):
    """The parameters' gradients by the originals' names."""
    ours = {name: p.grad().asnumpy() for name, p in block.parameters_by_name().items()}
    mapping = block.mappings()['huggingface']
    return mapping.save(ours, block.config, with_prefix=block.backbone is not None)


def torch_gradients(model):
    """The gradients that a model of torch's has, by its names."""
    gradients = {name: each.grad for name, each in model.named_parameters()}
    return {name: each.numpy().copy() for name, each in gradients.items() if each is not None}


def grouped(model):
    """The groups of the original's programs: no decay of biases and normalizations."""
    named, plain = list(model.named_parameters()), ('bias', 'LayerNorm.bias', 'LayerNorm.weight')
    return [
        {
            'params': [p for n, p in named if any(each in n for each in plain) == has],
            'weight_decay': decay,
        }
        for has, decay in ((False, 0.01), (True, 0.0))
    ]


def assert_gradients(ours, theirs, tolerance=1e-4, rounding=5e-6):
    """Each of `theirs` is among `ours`, with a relative difference of at most `tolerance`.

    Some gradients, such as that of the key's bias, are 0 but for rounding, as a softmax doesn't
    change when all scores grow by the same: hence the second term.
    """
    assert set(theirs) <= set(ours), sorted(set(theirs) - set(ours))
    largest = max(np.linalg.norm(value) for value in theirs.values())
    for name, value in theirs.items():
        error = np.linalg.norm(ours[name] - value)
        limit = tolerance * np.linalg.norm(value) + rounding * max(largest, 1)
        assert error <= limit, (name, error, np.linalg.norm(value))


def assert_outputs(name, ours, theirs, valid, tolerance=1e-5):
    """The outputs are the same, where the sequence isn't padding."""
    ours = ours if isinstance(ours, (list, tuple)) else [ours]
    assert len(ours) == len(theirs)
    for result, wanted in zip(ours, theirs):
        result = result.asnumpy()
        assert result.shape == wanted.shape
        by_position = wanted.ndim > 1 and name in (
            'BertForPreTraining',
            'BertForMaskedLM',
            'BertForTokenClassification',
            'BertForQuestionAnswering',
        )
        if by_position and wanted.shape[1] != 2:
            kept = np.arange(wanted.shape[1]) < valid[:, None]
            result, wanted = result[kept], wanted[kept]
        np.testing.assert_allclose(result, wanted, atol=tolerance, rtol=0)
