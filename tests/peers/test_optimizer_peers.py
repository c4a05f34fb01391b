"""BertAdam and OpenAIAdam with the originals' methods train a BERT as pytorch-pretrained-bert's do.

The optimizers and schedules alone are compared with the recorded ones, in tests/unit.
"""

import mxnet as mx
import numpy as np
import pytest

torch = pytest.importorskip('torch')
pytest.importorskip('pytorch_pretrained_bert')
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings('ignore::UserWarning')]
ORACLE = 'make_bert_fixtures'


@pytest.mark.parametrize('norm', [1.0, 0.05, -1])
@pytest.mark.parametrize('name', ['BertAdam', 'OpenAIAdam'])
def test_30_steps_of_bert_with_the_originals_methods(oracle, tmp_path, name, norm):
    """A head with small weights: rates and parameters are the same, each clipped by itself."""
    import bert_compare
    import pytorch_pretrained_bert

    import mxnet_pretrained_bert

    kind = 'BertForSequenceClassification'
    head = oracle.make_head(kind).train()  # without dropout
    made = bert_compare.make_block(kind, oracle.state_of(head), tmp_path)
    block = mxnet_pretrained_bert.BertForSequenceClassification(made.config, made.num_labels)
    block.load_state_dict(oracle.state_of(head))
    block.eval()
    options = {'lr': 1e-3, 'warmup': 0.1, 't_total': 40, 'max_grad_norm': norm}
    theirs = getattr(pytorch_pretrained_bert, name)(bert_compare.grouped(head), **options)
    ours = getattr(mxnet_pretrained_bert, name)(bert_compare.grouped(block), **options)
    assert [len(group['params']) for group in ours.param_groups][1] > 5
    for step in range(30):
        inputs = bert_compare.make_inputs(kind, True, step)
        loss = head(*oracle.arguments(inputs), torch.tensor(inputs['labels'][0]))
        loss.backward()
        with mx.autograd.record():
            our_loss = bert_compare.run(block, inputs, labels=True)
        our_loss.backward()
        assert abs(our_loss.asscalar() - loss.item()) < 1e-4
        if step % 3 == 1:  # gradients of two batches
            continue
        for each in (theirs, ours):
            each.step()
            each.zero_grad()
        assert sorted({*ours.get_lr()}) == pytest.approx(sorted({*theirs.get_lr()}))
    state = block.state_dict()
    for key, value in head.state_dict().items():
        if key.endswith('key.bias'):  # has no gradient but rounding errors, which Adam enlarges
            continue
        difference = np.abs(state[key].asnumpy() - value.numpy()).max()
        assert difference < 2e-4, (key, difference)
