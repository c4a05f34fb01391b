"""RoBERTa and the other models like BERT against transformers: both ways, all heads."""

import json

import mxnet as mx
import numpy as np
import pytest
import tiny
from json_files import cases

import bert

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

VOCAB, PAD = 40, 1
#: prefix of the classes' names -> fields of the configuration that tiny.py doesn't set
ROBERTA = {'type_vocab_size': 1, 'layer_norm_eps': 1e-5}
FIELDS = {
    'Bert': {},
    'Roberta': ROBERTA,
    'XLMRoberta': ROBERTA,
    'DistilBert': {},
    'Electra': {},
    'MPNet': {},
    'Albert': {},
    'DebertaV2': {
        'relative_attention': True,
        'position_biased_input': False,
        'norm_rel_ebd': 'layer_norm',
    },
    'ModernBert': {
        'num_hidden_layers': 4,
        'local_attention': 4,  # so that texts are computed in blocks
        **dict.fromkeys(('pad_token_id', 'cls_token_id', 'bos_token_id'), PAD),
        **dict.fromkeys(('sep_token_id', 'eos_token_id'), PAD),
        **dict.fromkeys(tiny.DROPOUTS, 0.0),
    },
}
CONFIGS = {
    name: {'vocab_size': VOCAB, **tiny.sizes_of(getattr(bert, f'{name}Config')), **fields}
    for name, fields in FIELDS.items()
}
HEADS = (
    'Model ForMaskedLM ForSequenceClassification ForMultipleChoice ForTokenClassification '
    'ForQuestionAnswering'
).split()
#: heads on the first word
OF_FIRST = ('ForSequenceClassification', 'ForMultipleChoice')
CASES = [(family, head) for family in CONFIGS for head in HEADS]
CASES += [('Electra', 'ForPreTraining'), ('Albert', 'ForPreTraining')]
#: what the losses of the heads are for
LABELS = cases('variants_peers')['LABELS']
#: our names of labels -> theirs
THEIR_LABELS = {'masked_lm_labels': 'labels', 'next_sentence_label': 'sentence_order_label'}


def their_model(family, head, **fields):
    """A model of theirs with large random parameters."""
    torch.manual_seed(0)
    config = getattr(transformers, f'{family}Config')(**{**CONFIGS[family], **fields})
    model = getattr(transformers, family + head)(config).eval()
    for name, parameter in model.named_parameters():
        center = 1.0 if name.endswith('Norm.weight') or 'layer_norm.weight' in name else 0.0
        torch.nn.init.normal_(parameter, center, 0.3)
    return model


def our_model(family, head):
    config_class = getattr(bert, f'{family}Config')
    config = config_class.from_dict(CONFIGS[family])
    return tiny.randomized(getattr(bert, family + head)(config))


def make_words(head):
    """Ids and a mask; the padding's ids are the original's, which tells by them where it is."""
    random = np.random.RandomState(0)
    shape = (3, 2, 9) if head == 'ForMultipleChoice' else (3, 9)
    words = random.randint(PAD + 1, VOCAB, shape)
    lengths = random.randint(3, 10, shape[:-1])
    mask = np.arange(9) < lengths[..., None]
    return np.where(mask, words, PAD), mask, lengths


def run_theirs(model, words, mask, **labels):
    labels = {
        THEIR_LABELS.get(name, name): torch.tensor(np.where(each < 0, -100, each))
        for name, each in labels.items()
    }
    outputs = model(torch.tensor(words), attention_mask=torch.tensor(mask).long(), **labels)
    if labels:
        outputs.loss.backward()
    return [each.detach().numpy() for each in outputs.to_tuple()]


def run_ours(block, words, valid, **labels):
    labels = {name: mx.nd.array(each) for name, each in labels.items()}
    outputs = block(mx.nd.array(words), valid_length=mx.nd.array(valid), **labels)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    return [each.asnumpy() for each in outputs]


def assert_same(ours, theirs, mask):
    """Equal where there is no padding."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        assert one.shape == other.shape
        if one.shape[:2] == mask.shape:
            one, other = one[mask], other[mask]
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('family, head', CASES)
def test_theirs_to_ours(tmp_path, family, head):
    theirs = their_model(family, head)
    theirs.save_pretrained(tmp_path)
    ours = getattr(bert, family + head).from_pretrained(str(tmp_path))
    words, mask, lengths = make_words(head)
    expected = run_theirs(theirs, words, mask)
    left, left_mask = words[..., ::-1].copy(), mask[..., ::-1].copy()
    for hybridized in (False, True):
        ours.hybridize(hybridized, static_alloc=True, static_shape=True)
        assert_same(run_ours(ours, words, lengths), expected, mask)
        assert_same(run_ours(ours, words, mask), expected, mask)
        if head not in OF_FIRST:  # of which the first word is padding
            mine, wanted = run_ours(ours, left, left_mask), run_theirs(theirs, left, left_mask)
            assert_same(mine[:1], wanted[:1], left_mask)
    if head in LABELS:
        assert_same_loss(ours, theirs, family, head)


def assert_same_loss(ours, theirs, family, head):
    words, mask, lengths = make_words(head)
    if head == 'ForQuestionAnswering':  # in theirs padding takes part in this loss
        words, mask, lengths = words[:, :3], mask[:, :3], np.full(3, 3)
    random = np.random.RandomState(1)
    shapes = LABELS.get(family + head) or LABELS[head]
    labels = {name: random.randint(0, 2, shape) for name, shape in shapes.items()}
    for name, each in labels.items():
        if each.ndim == 2:
            labels[name] = np.where(mask, each, -1)
    loss, *_ = run_theirs(theirs, words, mask, **labels)
    np.testing.assert_allclose(run_ours(ours, words, lengths, **labels)[0], loss, rtol=1e-5)
    return words, lengths, labels


NEW = ('MPNet', 'Albert', 'DebertaV2', 'ModernBert')
TRAINED = [(family, head) for family, head in CASES if family in NEW]


@pytest.mark.parametrize('family, head', [case for case in TRAINED if case[1] in LABELS])
def test_gradients_of_a_step(tmp_path, family, head):
    rates = dict.fromkeys(('hidden_dropout_prob', 'attention_probs_dropout_prob'), 0.0)
    rates.update({'classifier_dropout_prob': 0.0} if family == 'Albert' else {})
    rates = {} if family == 'ModernBert' else rates  # which has none
    theirs = their_model(family, head, **rates)
    theirs.save_pretrained(tmp_path)
    ours = getattr(bert, family + head).from_pretrained(str(tmp_path))
    ours.hybridize(static_alloc=True, static_shape=True)
    words, lengths, labels = assert_same_loss(ours, theirs, family, head)
    with mx.autograd.record():
        named = {name: mx.nd.array(each) for name, each in labels.items()}
        loss = ours(mx.nd.array(words), valid_length=mx.nd.array(lengths), **named)
    loss.backward()
    gradients = {n: each.grad().asnumpy() for n, each in ours.parameters_by_name().items()}
    gradients = ours.mappings()['huggingface'].save(gradients, ours.config, True)
    for name, parameter in theirs.named_parameters():
        wanted = parameter.grad.numpy()
        atol = max(1e-4 * np.abs(wanted).max(), 5e-6)  # some are 0 but for rounding
        np.testing.assert_allclose(gradients[name], wanted, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize('family, head', CASES)
def test_ours_to_theirs(tmp_path, family, head):
    ours = our_model(family, head)
    ours.save_pretrained(str(tmp_path), format='huggingface')
    kind = getattr(transformers, family + head)
    theirs, info = kind.from_pretrained(tmp_path, output_loading_info=True)
    assert not info['missing_keys'] and not info['unexpected_keys'], info
    words, mask, lengths = make_words(head)
    assert_same(run_ours(ours, words, lengths), run_theirs(theirs.eval(), words, mask), mask)
    auto = json.loads((tmp_path / 'config.json').read_text())['architectures']
    assert auto == [family + head]


@pytest.mark.parametrize('family', CONFIGS)
def test_all_layers_and_attentions(tmp_path, family):
    theirs = their_model(family, 'Model', attn_implementation='eager')
    theirs.save_pretrained(tmp_path)
    ours = getattr(bert, f'{family}Model').from_pretrained(
        str(tmp_path), output_all_encodings=True, output_attentions=True, use_pooler=False
    )
    words, mask, lengths = make_words('')
    with torch.no_grad():
        expected = theirs(
            torch.tensor(words),
            attention_mask=torch.tensor(mask).long(),
            output_hidden_states=True,
            output_attentions=True,
        )
    states, attentions = ours(mx.nd.array(words), valid_length=mx.nd.array(lengths))
    theirs = [each.numpy() for each in expected.hidden_states[1:]]
    assert_same([each.asnumpy() for each in states], theirs, mask)
    for one, other in zip(attentions, expected.attentions):
        rows = np.broadcast_to(mask[:, None], one.shape[:3])
        np.testing.assert_allclose(one.asnumpy()[rows], other.numpy()[rows], atol=1e-5)


#: name -> family, head, and other fields of its configuration
OTHERS = cases('variants_peers')['OTHERS']


@pytest.mark.parametrize('name', OTHERS)
def test_other_fields(tmp_path, name):
    family, head, fields = OTHERS[name]
    theirs = their_model(family, head, **fields)
    theirs.save_pretrained(tmp_path / 'theirs')
    ours = getattr(bert, family + head).from_pretrained(str(tmp_path / 'theirs'))
    words, mask, lengths = make_words(head)
    expected = run_theirs(theirs, words, mask)
    assert_same(run_ours(ours, words, lengths), expected, mask)
    ours.save_pretrained(str(tmp_path / 'ours'), format='huggingface')
    back, info = type(theirs).from_pretrained(tmp_path / 'ours', output_loading_info=True)
    assert not info['missing_keys'] and not info['unexpected_keys'], info
    before = theirs.state_dict()
    assert all(torch.equal(each, before[key]) for key, each in back.state_dict().items())


#: models whose operators depend on the length
BY_LENGTH = ('DebertaV2', 'ModernBert')


@pytest.mark.parametrize('length', [1, 6, 31, 64])
@pytest.mark.parametrize('family', BY_LENGTH)
def test_lengths(tmp_path, family, length):
    theirs = their_model(family, 'Model', max_position_embeddings=64)
    theirs.save_pretrained(tmp_path)
    ours = getattr(bert, f'{family}Model').from_pretrained(str(tmp_path))
    random = np.random.RandomState(0)
    words = random.randint(PAD + 1, VOCAB, (3, length))
    masks = [np.arange(length) < np.array([[length], [1], [length // 2 + 1]])]
    masks.append(masks[0][:, ::-1].copy())
    for hybridized in (False, True):
        ours.hybridize(hybridized, static_alloc=True, static_shape=True)
        for valid in (masks[0].sum(axis=1), *masks):
            mask = valid if valid.ndim == 2 else masks[0]
            assert_same(run_ours(ours, words, valid), run_theirs(theirs, words, mask), mask)
