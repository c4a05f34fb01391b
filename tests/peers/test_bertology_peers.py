"""Heads' entropy and importance are those of pytorch-pretrained-bert's bertology.py.

The script needs a model that keeps its heads' outputs, which no release of that library has; its
arithmetic is done here on transformers' model with the same weights.
"""

import mxnet as mx
import numpy as np
import pytest

from bert import BertForSequenceClassification, BertTokenizer
from model_zoo.analysis import measure_heads, normalize_importance
from model_zoo.batches import BucketedLoader
from model_zoo.tasks.classification import ClassifierFeatures
from model_zoo.tasks.classification_data import get_task, read_examples

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = [pytest.mark.peers, pytest.mark.weights, pytest.mark.data]

SAMPLES = 8


@pytest.fixture(scope='module')
def model(minilm_dir):
    """MiniLM with a random classifier, whose loss has larger gradients than Normal(0.02) gives."""
    block = BertForSequenceClassification.from_pretrained(str(minilm_dir), num_labels=2)
    mx.random.seed(5)
    block.classifier.initialize(mx.init.Normal(0.3), force_reinit=True)
    block.hybridize(static_alloc=True)
    return block


@pytest.fixture(scope='module')
def features(minilm_dir, data_dir):
    """Features of MRPC's first samples."""
    task = get_task('MRPC')
    examples = read_examples(task, str(data_dir / 'glue' / 'MRPC'), 'dev')[:SAMPLES]
    tokenizer = BertTokenizer.from_pretrained(str(minilm_dir))
    return ClassifierFeatures(tokenizer, task, 64)(examples)


def reference(folder, features, head_mask=None):
    """What the example computes, a sample at a time: entropy and importance, not normalized."""
    model = transformers.BertForSequenceClassification.from_pretrained(
        folder, attn_implementation='eager'
    ).eval()
    kept = {}

    def keep(layer):
        def hook(module, inputs, outputs):
            context = outputs[0]  # (1, L, units), of all heads
            if head_mask is not None:
                scale = torch.tensor(head_mask[layer]).repeat_interleave(size)
                context = context * scale
            context.retain_grad()
            kept[layer] = context
            return (context, *outputs[1:])

        return hook

    config = model.config
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    size = config.hidden_size // heads
    for layer, each in enumerate(model.bert.encoder.layer):
        each.attention.self.register_forward_hook(keep(layer))
    entropy, importance, tokens = np.zeros((layers, heads)), np.zeros((layers, heads)), 0
    for feature in features:
        output = model(
            torch.tensor(feature.input_ids[None]).long(),
            token_type_ids=torch.tensor(feature.token_types[None]).long(),
            labels=torch.tensor([feature.label]),
            output_attentions=True,
        )
        model.zero_grad()
        output.loss.backward()
        for layer, attention in enumerate(output.attentions):
            terms = torch.where(attention > 0, attention * torch.log(attention), 0.0)
            entropy[layer] -= terms.sum((0, 2, 3)).detach().numpy()
            product = (kept[layer] * kept[layer].grad)[0].reshape(-1, heads, size).sum(-1)
            importance[layer] += product.abs().sum(0).detach().numpy()
        tokens += len(feature.input_ids)
    return entropy / tokens, importance / tokens


def ours(model, features, batch_size, head_mask=None):
    def forward(batch, mask):
        scores, attentions = model(
            batch.input_ids, batch.token_types, batch.valid_length, head_mask=mask
        )
        loss = -mx.nd.pick(mx.nd.log_softmax(scores), batch.labels).sum()
        return loss, attentions, None

    loader = BucketedLoader(features, batch_size, pad_val=0)
    return measure_heads(model, forward, loader, head_mask)


@pytest.mark.parametrize('masked', [False, True])
def test_measures_are_those_of_the_example(model, features, tmp_path, masked):
    model.save_pretrained(str(tmp_path), format='huggingface')
    mask = None
    if masked:
        mask = np.random.RandomState(1).randint(0, 2, (6, 12)).astype('float32')
    entropy, importance = reference(str(tmp_path), features, mask)
    found = ours(model, features, 8, mask)
    assert importance.max() > 1e-6
    scale = importance.max()  # a token counts little: each sample looks at the first one only
    np.testing.assert_allclose(found.importance / scale, importance / scale, atol=1e-4)
    if mask is None:  # a masked head's attention is zero in ours, as in theirs, not in transformers
        np.testing.assert_allclose(found.entropy, entropy, atol=1e-4)
    else:
        assert (found.importance[mask == 0] == 0).all()
    exponent_2 = importance / (np.sqrt((importance**2).sum(1, keepdims=True)) + 1e-20)
    expected = (exponent_2 - exponent_2.min()) / (exponent_2.max() - exponent_2.min())
    np.testing.assert_allclose(normalize_importance(found.importance), expected, atol=1e-4)
