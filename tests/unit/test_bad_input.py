"""Files and arguments that ended in Python's or MXNet's own errors."""

import json
import os
import shutil

import mxnet as mx
import pytest
import tiny
from gluonnlp.data import count_tokens
from gluonnlp.vocab import BERTVocab

from bert import BertForSequenceClassification, BertModel, BertTokenizer
from model_zoo.checkpoint.readers import write_sums
from model_zoo.errors import CheckpointError, InputError, ZooError
from model_zoo.training.checkpoint import CheckpointStore, TrainingState, load_optimizer


@pytest.mark.parametrize(
    'tokens', [['[UNK]', 'a', 'b', 'a'], ['[UNK]', 1, 2], ['[UNK]', '\ud800'], '[UNK]', None]
)
def test_vocabularies_of_gluonnlp(tmp_path, tokens):
    path = tmp_path / 'a.vocab'
    content = json.loads(BERTVocab(count_tokens(['a', 'b'])).to_json())
    path.write_text(json.dumps(content))
    BertTokenizer.from_pretrained(path)
    path.write_text(json.dumps({**content, 'idx_to_token': tokens}))
    with pytest.raises(InputError):
        BertTokenizer.from_pretrained(path)
    roles = {**content['identifiers_to_tokens'], 'bos_token': 1e308}
    ids = {token: float(place) for token, place in content['token_to_idx'].items()}
    for fields in (
        {'identifiers_to_tokens': roles},
        {'token_to_idx': ids},
        {'unknown_token': False},
    ):
        path.write_text(json.dumps({**content, **fields}))
        with pytest.raises(InputError):
            BertTokenizer.from_pretrained(path)


def test_messages_are_one_line_of_bounded_length():
    """However long what they quote is."""
    error = InputError('line one\nline two ' + 'x' * 10**6 + ' the end')
    assert str(error).startswith('line one line two xx') and str(error).endswith(' the end')
    assert len(str(error)) < 6000
    with pytest.raises(InputError) as caught:
        tiny.bert_config(40, attention_probs_dropout_prob='9' * 5000)
    assert len(str(caught.value)) < 6000
    with pytest.raises(ZooError) as caught:  # whose message has several lines
        BertModel.from_pretrained('/no/' + 'y' * 10**6)
    assert str(caught.value).startswith("'/no/yyy") and len(str(caught.value)) < 10000


@pytest.mark.parametrize('field', ['step', 'batch', 'seconds', 'log', 'epochs', 'unknown'])
@pytest.mark.parametrize('value', [-1, 'x', 1e400, -(10**400), [[]]])
def test_a_state_of_training_that_was_edited(field, value):
    with pytest.raises(CheckpointError):
        TrainingState.from_json({field: value})


def test_an_evaluation_of_a_training_that_was_edited():
    for record in ({'score': 10**400, 'step': 1}, {'score': 0.5}, {'score': 0.5, 'step': 1.5}):
        with pytest.raises(CheckpointError):
            TrainingState.from_json({'epochs': [record]})


@pytest.mark.parametrize('hybridize', [False, True])
def test_arrays_of_the_wrong_kind(hybridize):
    block = tiny.make(BertForSequenceClassification)
    if hybridize:
        block.hybridize(static_alloc=True, static_shape=True)
    words = mx.nd.array([[1, 2, 3]])
    with pytest.raises(InputError):
        block(words.tostype('csr'))
    with pytest.raises(InputError):
        block(words, None, mx.nd.array([1.5]))
    with pytest.raises(InputError):
        block(words, None, None, mx.nd.array([0.5]))


def plain_block():
    """A block that isn't ours, and its trainer."""
    block = mx.gluon.nn.Dense(2, in_units=3)
    block.initialize()
    return block, mx.gluon.Trainer(block.collect_params(), 'adam', update_on_kvstore=False)


@pytest.mark.parametrize(
    'updates', [None, [1], {}, {'num_update': 1}, {'num_update': 1, 'parameters': {'weight': 'x'}}]
)
def test_counts_of_updates_that_were_edited(updates):
    block, trainer = plain_block()
    with pytest.raises(CheckpointError):
        load_optimizer(block, trainer, {}, updates, 'file')


def test_a_checkpoint_of_a_plain_block_with_damaged_parameters(tmp_path):
    """MXNet would take as much memory as the file says."""
    block, trainer = plain_block()
    store = CheckpointStore(str(tmp_path))
    path = store.save(block, trainer, {'step': 0, 'epoch': 0, 'batch': 0}, {})
    names = ('model.params', 'optimizer.params', 'state.json')
    damage = bytearray(open(os.path.join(path, names[0]), 'rb').read())  # noqa: SIM115
    damage[36:44] = (2**40).to_bytes(8, 'little')  # a size
    nothing = bytes(damage[:16]) + bytes(16)
    for content in damage, nothing:
        with open(os.path.join(path, names[0]), 'wb') as file:
            file.write(content)
        write_sums(os.path.join(path, 'SHA256SUMS'), [os.path.join(path, name) for name in names])
        with pytest.raises(CheckpointError):
            store.newest().restore(block, trainer)
    other = mx.gluon.nn.Dense(5, in_units=3)
    other.initialize()
    store.save(block, trainer, {'step': 0, 'epoch': 0, 'batch': 0}, {})
    with pytest.raises(CheckpointError):
        store.newest().restore(other, trainer)
    shutil.rmtree(tmp_path)
    with pytest.raises(InputError):
        store.save(block, trainer, {'step': 1, 'epoch': 0, 'batch': 0}, {})
