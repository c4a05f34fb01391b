"""Files and arguments that an audit found to end in Python's or MXNet's own errors."""

import io
import json
import os
import shutil
import zipfile

import mxnet as mx
import numpy as np
import pytest
import tiny
from gluonnlp.data import count_tokens
from gluonnlp.vocab import BERTVocab
from json_files import change_json

from bert import BertForSequenceClassification, BertModel, BertTokenizer
from gpt2 import GPT2LMHeadModel
from model_zoo.checkpoint.numpy_files import ArrayArchive
from model_zoo.checkpoint.readers import read_tensors, write_sums
from model_zoo.errors import CheckpointError, InputError, ZooError
from model_zoo.tasks.pretraining.files import read_lengths
from model_zoo.training.checkpoint import CheckpointStore, TrainingState, load_optimizer
from transfo_xl import TransfoXLCorpus

NESTED = b'[' * 100000 + b']' * 100000


def array_file(shape, size=48):
    """An ``.npy`` file that claims to hold an array of `shape`."""
    file = io.BytesIO()
    header = {'descr': '<f4', 'fortran_order': False, 'shape': shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + bytes(size)


@pytest.mark.parametrize(
    'content, message',
    [
        (NESTED, 'nested too deeply'),
        (b'{"weight_map": {"a": "index.json"}}', 'not a file of weights'),
        (b'{"weight_map": {"a": "a\\u0000b"}}', 'not a file of weights'),
        (b'{"weight_map": {"a": "\\ud800"}}', 'not a file of weights'),
        (b'\x80', 'none of the files of weights'),
    ],
    ids=['nested', 'itself', 'NUL', 'surrogate', 'one byte'],
)
def test_files_of_weights(tmp_path, content, message):
    path = tmp_path / 'index.json'
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read_tensors(path)


def test_an_index_that_names_itself_by_the_name_of_weights(tmp_path):
    for name, other in [('a.bin', 'a.bin'), ('b.bin', 'c.bin'), ('c.bin', 'b.bin')]:
        (tmp_path / name).write_text(json.dumps({'weight_map': {'a': other}}))
    for name in ('a.bin', 'b.bin'):
        with pytest.raises(CheckpointError, match='named by an index, and is not a file'):
            read_tensors(tmp_path / name)


@pytest.mark.parametrize(
    'tokens, message',
    [
        (['[UNK]', 'a', 'b', 'a'], "the token 'a' is there twice"),
        (['[UNK]', 1, 2], 'not a list of texts'),
        (['[UNK]', '\ud800'], 'has a token with the lone surrogate'),
        ('[UNK]', 'not a list of texts'),
        (None, 'not a list of texts'),
    ],
)
def test_vocabularies_of_gluonnlp(tmp_path, tokens, message):
    path = tmp_path / 'a.vocab'
    content = json.loads(BERTVocab(count_tokens(['a', 'b'])).to_json())
    path.write_text(json.dumps(content))
    BertTokenizer.from_pretrained(path)
    path.write_text(json.dumps({**content, 'idx_to_token': tokens}))
    with pytest.raises(InputError, match=message):
        BertTokenizer.from_pretrained(path)
    roles = {**content['identifiers_to_tokens'], 'bos_token': 1e308}
    ids = {token: float(place) for token, place in content['token_to_idx'].items()}
    for fields in (
        {'identifiers_to_tokens': roles}, {'token_to_idx': ids}, {'unknown_token': False}
    ):  # fmt: skip
        path.write_text(json.dumps({**content, **fields}))
        with pytest.raises(InputError, match='cannot be read as a GluonNLP vocabulary'):
            BertTokenizer.from_pretrained(path)


@pytest.mark.parametrize(
    'content, shape',
    [
        (array_file((3, 4)).replace(b'(3, 4)', b'(3, 4 '), [3, 4]),  # the parser wants more lines
        (array_file((3, 2**40)), [3, 4]),  # 12 TB
        (array_file((2**40, 2**40)), [3, 4]),
        (array_file((12,)), [*[1] * 70, 120]),
        (array_file((0,), 0), [0, 2**70]),
    ],
    ids=['open bracket', 'huge', 'overflow', 'axes', 'huge shape'],
)
def test_arrays_and_shapes_that_cannot_be(tmp_path, content, shape):
    for number in range(10):
        (tmp_path / f'params_{number}.npy').write_bytes(content)
    path = tmp_path / 'params_shapes.json'
    path.write_text(json.dumps([shape]))
    with pytest.raises(CheckpointError, match='is damaged'):
        read_tensors(path)


@pytest.mark.parametrize('order', '<>')
def test_texts_of_numpy_with_characters_that_cannot_be(tmp_path, order):
    path = tmp_path / 'a.npz'
    np.savez(path, names=np.array(['ab', '\U0010ffff'], f'{order}U2'))
    with ArrayArchive(str(path)) as archive:
        assert archive.read('names').tolist() == ['ab', '\U0010ffff']
    codes = np.array([[97, 0x110000]], f'{order}u4').view(f'{order}U2')[0]
    np.savez(path, names=codes)
    with ArrayArchive(str(path)) as archive, pytest.raises(CheckpointError, match='names: a text'):
        archive.read('names')


def test_samples_that_would_fill_the_memory(tmp_path):
    path = tmp_path / 'samples.npz'
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('valid_lengths.npy', bytes(2**25))
    with pytest.raises(InputError, match='unpacked it would have 34 MB'):
        read_lengths(str(path))


def test_the_limit_of_an_archive_of_arrays_can_be_raised(tmp_path, monkeypatch):
    path = str(tmp_path / 'a.npz')
    noise = np.random.RandomState(0).bytes(70_000)
    np.savez_compressed(path, a=np.frombuffer(noise + bytes(8_000_000), np.uint8))
    with pytest.raises(CheckpointError, match='8 MB; if you trust it, set MODEL_ZOO_LIMITS=10'):
        ArrayArchive(path).__enter__()
    monkeypatch.setenv('MODEL_ZOO_LIMITS', '10')
    with ArrayArchive(path) as archive:
        assert archive.read('a').size == 8_070_000


def test_a_configuration_of_more_layers_than_the_weights_have(tmp_path):
    tiny.make(BertModel).save_pretrained(tmp_path)
    change_json(tmp_path / 'config.json', num_hidden_layers=10**9)
    with pytest.raises(CheckpointError, match='too few for 1000000000 layers'):
        BertModel.from_pretrained(tmp_path)


def test_messages_are_one_line_of_bounded_length():
    """However long what they quote is."""
    error = InputError('line one\nline two ' + 'x' * 10**6 + ' the end')
    assert str(error).startswith('line one line two xx') and str(error).endswith(' the end')
    assert len(str(error)) < 6000
    with pytest.raises(InputError, match='attention_probs_dropout_prob must be') as caught:
        tiny.bert_config(40, attention_probs_dropout_prob='9' * 5000)
    assert len(str(caught.value)) < 6000
    with pytest.raises(ZooError) as caught:  # whose message has several lines
        BertModel.from_pretrained('/no/' + 'y' * 10**6)
    assert str(caught.value).startswith("'/no/yyy") and len(str(caught.value)) < 10000


@pytest.mark.parametrize(
    'content',
    [
        array_file((3, 2**40)),
        array_file((3, 4)) + b'more',
        b'\x93NUMPY\x03\x00',
    ],
    ids=['huge', 'too long', 'version'],
)
def test_archives_of_arrays(tmp_path, content):
    path = str(tmp_path / 'corpus.npz')
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('a.npy', content)
        archive.writestr('b.npy', array_file((3, 4)))
    with ArrayArchive(path) as archive:
        assert archive.names == ['a', 'b'] and archive.read('b').shape == (3, 4)
        with pytest.raises(CheckpointError, match='is damaged or was cut off .a: '):
            archive.read('a')
    with pytest.raises(CheckpointError, match='is damaged or was cut off'):
        TransfoXLCorpus.from_pretrained(tmp_path)


@pytest.mark.parametrize('field', ['step', 'batch', 'seconds', 'log', 'epochs', 'unknown'])
@pytest.mark.parametrize('value', [-1, 'x', 1e400, -(10**400), [[]]])
def test_a_state_of_training_that_was_edited(field, value):
    with pytest.raises(CheckpointError, match='the state of the training is damaged'):
        TrainingState.from_json({field: value})


def test_an_evaluation_of_a_training_that_was_edited():
    for record, problem in [
        ({'score': 10**400, 'step': 1}, r"epochs\[0\]: score can't be 10000"),
        ({'score': 0.5}, 'lacks step'),
        ({'score': 0.5, 'step': 1.5}, "step can't be 1.5: a whole number is expected"),
    ]:
        with pytest.raises(CheckpointError, match=problem):
            TrainingState.from_json({'epochs': [record]})


@pytest.mark.parametrize('hybridize', [False, True])
def test_arrays_of_the_wrong_kind(hybridize):
    block = tiny.make(BertForSequenceClassification)
    if hybridize:
        block.hybridize(static_alloc=True, static_shape=True)
    words = mx.nd.array([[1, 2, 3]])
    with pytest.raises(InputError, match='sparse'):
        block(words.tostype('csr'))
    with pytest.raises(InputError, match='holds 1.5'):
        block(words, None, mx.nd.array([1.5]))
    with pytest.raises(InputError, match='holds 0.5'):
        block(words, None, None, mx.nd.array([0.5]))


@pytest.mark.parametrize(
    'prompt, options',
    [
        ([2**70], {}),
        ([1], {'num_beams': 10**9}),
        ([1], {'temperature': 1.0, 'num_return_sequences': 10**9}),
        ([1], {'temperature': 1e-30}),
        ([1], {'temperature': float('nan')}),
        ([1], {'max_new_tokens': 2**70}),
        ([1], {'max_new_tokens': 2**100000}),
        ([1], {'max_new_tokens': -(2**100000)}),
        ([1], {'seed': 2**70}),
    ],
)
def test_generations_that_cannot_be(prompt, options):
    block = tiny.make(GPT2LMHeadModel, n_positions=8)
    with pytest.raises(InputError):
        block.generate([prompt], **{'max_new_tokens': 2, **options})


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
    with pytest.raises(CheckpointError, match='goes with'):
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
    for content, message in (damage, 'in the middle of an array'), (nothing, 'no parameters'):
        with open(os.path.join(path, names[0]), 'wb') as file:
            file.write(content)
        write_sums(os.path.join(path, 'SHA256SUMS'), [os.path.join(path, name) for name in names])
        with pytest.raises(CheckpointError, match=message):
            store.newest().restore(block, trainer)
    other = mx.gluon.nn.Dense(5, in_units=3)
    other.initialize()
    store.save(block, trainer, {'step': 0, 'epoch': 0, 'batch': 0}, {})
    with pytest.raises(CheckpointError, match='does not fit the model'):
        store.newest().restore(other, trainer)
    shutil.rmtree(tmp_path)
    with pytest.raises(InputError, match='cannot write the checkpoint .*: No such file'):
        store.save(block, trainer, {'step': 1, 'epoch': 0, 'batch': 0}, {})
