"""Files that are damaged, each kind of them: what is read is right, or refused in one line."""

import json
import pathlib
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from typing import NamedTuple

import hypothesis
import mxnet as mx
import numpy as np
import pytest
import tiny
import tiny_models
import toy_data
import variant_models
from hostile import damaged_bytes, damaged_json, damaged_lines, quick

import bert
import gpt2
import transfo_xl
from model_zoo.checkpoint import read_tensors
from model_zoo.checkpoint.tensor_files import write_params
from model_zoo.errors import ZooError
from model_zoo.opening import open_model
from model_zoo.pretrained.places import unpacked
from model_zoo.tasks.pretraining.files import read_shard, write_tfrecords
from model_zoo.tasks.squad import read_squad
from model_zoo.tasks.tagging import read_conll
from model_zoo.tokenization import FileTokenizer
from model_zoo.tokenization.vocab import load_vocab
from model_zoo.training.checkpoint import Checkpoint, CheckpointStore, TrainingState

FIXTURES = pathlib.Path(__file__).parents[1] / 'fixtures'
TENSORS = {'a': np.arange(12, dtype='f4').reshape(3, 4), 'b': np.arange(5, dtype='i4')}
TEXT = 'the cat sleeps in Paris. \u4e2d'


def copied(*parts):
    def write(folder):
        source = FIXTURES.joinpath(*parts)
        if source.is_dir():
            shutil.copytree(source, folder, dirs_exist_ok=True)
        else:
            shutil.copy(source, folder)

    return write


def write_vocab(folder):
    tiny.write_words(folder, tiny_models.WORDS)
    (folder / 'x.vocab').write_text(load_vocab(str(folder / 'vocab.txt')).to_json(), 'utf-8')


def write_folder(folder):
    tiny_models.save_bert(folder, bert.BertForSequenceClassification, ['a', 'b'])


def write_archives(folder):
    write_vocab(folder)
    with tarfile.open(folder / 'x.tar.gz', 'w:gz') as archive:
        archive.add(folder / 'vocab.txt', 'vocab.txt')
    with zipfile.ZipFile(folder / 'x.zip', 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / 'vocab.txt', 'vocab.txt')


def write_tfrecord(folder):
    samples = toy_data.make_samples(9, 1)
    write_tfrecords([str(folder / 'x.tfrecord')], [samples], toy_data.LENGTH, toy_data.MASKS)


def write_squad(folder):
    content = json.loads((FIXTURES / 'squad.json').read_text())['content']
    (folder / 'squad.json').write_text(json.dumps(content))


def plain_training():
    """A block that isn't ours, and its trainer, after a step."""
    mx.random.seed(1)
    block = mx.gluon.nn.Dense(3, in_units=4)
    block.initialize()
    trainer = mx.gluon.Trainer(
        block.collect_params(), 'adam', {'learning_rate': 0.1}, update_on_kvstore=False
    )
    with mx.autograd.record():
        loss = block(mx.nd.ones((2, 4))).sum()
    loss.backward()
    trainer.step(1)
    return block, trainer


def write_training(folder):
    record = {
        'epoch': 1,
        'step': 3,
        'train_loss': 0.5,
        'score': 0.7,
        'report': '',
        'train_seconds': 1.0,
        'evaluation_seconds': 0.5,
    }
    state = TrainingState(3, 1, 0, 2.0, epochs=[record], log=[{'step': 3, 'loss': 0.5}])
    CheckpointStore(str(folder)).save(*plain_training(), vars(state), {'lr': 0.1})
    next(folder.glob('step-*')).rename(folder / 'saved')


def read_training(folder):
    block, trainer = plain_training()
    checkpoint = Checkpoint(str(folder / 'saved'))
    state = TrainingState.from_json(checkpoint.state)
    checkpoint.restore(block, trainer)
    return vars(state), [array.data().asnumpy() for array in block.collect_params().values()]


def tensors(name):
    return lambda folder: read_tensors(folder / name)[0]


def ids(make):
    return lambda folder: list(map(int, make(folder).encode_batch([TEXT])['input_ids'][0]))


def opened(folder):
    made = open_model(str(folder))
    outputs = made.block(mx.nd.array([[2, 5, 6, 3]]))
    return outputs.asnumpy(), made.tokenizer.tokenize(TEXT)


def words(name):
    return lambda folder: transfo_xl.TransfoXLTokenizer.from_pretrained(folder / name).idx2sym


def corpus(name):
    return lambda folder: transfo_xl.TransfoXLCorpus.from_file(folder / name).train


def content_of(name):
    def read(folder):
        shutil.rmtree(folder / 'cache', ignore_errors=True)
        target = pathlib.Path(unpacked(str(folder / name), str(folder / 'cache')))
        assert folder / 'cache' / 'unpacked' in target.parents
        return sorted(path.name for path in target.iterdir())

    return read


class Kind(NamedTuple):
    """How a kind of file is written and read; `sealed` ones have checksums."""

    write: Callable
    files: tuple[str, ...]
    read: Callable
    sealed: bool = False
    examples: int = 25


CHECKPOINTS = 'checkpoints'
KINDS = {
    'params': Kind(
        lambda folder: write_params(str(folder / 'x.params'), TENSORS, {'a': 'b'}),
        ('x.params',),
        tensors('x.params'),
        True,
    ),
    "MXNet's params": Kind(
        lambda folder: write_params(str(folder / 'x.params'), TENSORS),
        ('x.params',),
        tensors('x.params'),
    ),
    'safetensors': Kind(
        copied(CHECKPOINTS, 'bert_transformers'),
        ('model.safetensors',),
        tensors('model.safetensors'),
    ),
    'index': Kind(
        copied(CHECKPOINTS, 'gpt2_transformers'),
        ('model.safetensors.index.json',),
        tensors('model.safetensors.index.json'),
    ),
    'torch zip': Kind(copied('torch_files'), ('zip.pt',), tensors('zip.pt'), True),
    'torch stream': Kind(copied('torch_files'), ('stream.pt',), tensors('stream.pt'), False, 80),
    'TensorFlow': Kind(
        copied('tensorflow_files'),
        ('model.ckpt.index', 'model.ckpt.data-00000-of-00002', 'model.ckpt.data-00001-of-00002'),
        tensors('model.ckpt.index'),
        True,
    ),
    'npy': Kind(
        copied(CHECKPOINTS, 'gpt_numpy'),
        ('params_3.npy', 'params_shapes.json'),
        tensors('params_shapes.json'),
    ),
    'pickled words': Kind(copied('lm_pickles'), ('vocab.pkl',), words('vocab.pkl'), False, 80),
    'pickled corpus': Kind(copied('lm_pickles'), ('cache_2.pkl',), corpus('cache_2.pkl')),
    'pickled corpus, protocol 4': Kind(
        copied('lm_pickles'), ('cache_4.pkl',), corpus('cache_4.pkl')
    ),
    'npz': Kind(
        toy_data.write_shards,
        ('train-0.npz',),
        lambda folder: read_shard(str(folder / 'train-0.npz')),
        True,
    ),
    'tfrecord': Kind(
        write_tfrecord, ('x.tfrecord',), lambda folder: read_shard(str(folder / 'x.tfrecord'))
    ),
    'folder': Kind(
        write_folder,
        ('config.json', 'vocab.txt', 'tokenizer_config.json', 'SHA256SUMS'),
        opened,
        False,
        15,
    ),
    'vocab.txt': Kind(
        write_vocab,
        ('vocab.txt',),
        ids(lambda folder: bert.BertTokenizer(str(folder / 'vocab.txt'))),
    ),
    "GluonNLP's vocabulary": Kind(
        write_vocab,
        ('x.vocab',),
        ids(lambda folder: bert.BertTokenizer.from_pretrained(str(folder / 'x.vocab'))),
    ),
    'byte pairs': Kind(
        tiny_models.save_gpt2,
        ('vocab.json', 'merges.txt'),
        ids(
            lambda folder: gpt2.GPT2Tokenizer(
                str(folder / 'vocab.json'), str(folder / 'merges.txt')
            )
        ),
    ),
    'sentence pieces': Kind(
        variant_models.make_xlmr,
        ('sentencepiece.bpe.model',),
        ids(lambda folder: bert.XLMRobertaTokenizer(str(folder / 'sentencepiece.bpe.model'))),
    ),
    'tokenizer.json': Kind(
        copied('sentence_transformers', 'today'),
        ('tokenizer.json', 'tokenizer_config.json'),
        ids(lambda folder: FileTokenizer.from_pretrained(str(folder))),
    ),
    'training': Kind(
        write_training,
        ('saved/state.json', 'saved/model.params', 'saved/optimizer.params'),
        read_training,
        True,
        20,
    ),
    'SQuAD': Kind(
        write_squad,
        ('squad.json',),
        lambda folder: read_squad(str(folder / 'squad.json'), True, True),
    ),
    'CoNLL': Kind(
        lambda folder: (folder / 'x').write_text('-DOCSTART- -X- O O\n\nEU N B B-ORG\nis V O O\n'),
        ('x',),
        lambda folder: read_conll(str(folder / 'x')),
    ),
    'tar.gz': Kind(write_archives, ('x.tar.gz',), content_of('x.tar.gz')),
    'zip': Kind(write_archives, ('x.zip',), content_of('x.zip')),
}


def damage_of(path):
    """The strategy that damages a file of this name."""
    content = path.read_bytes()
    if path.suffix in ('.json', '.vocab'):
        return damaged_json(content)
    if path.suffix in ('.txt', '') or path.name == 'SHA256SUMS':
        return damaged_lines(content)
    return damaged_bytes(content)


@pytest.mark.parametrize('name', KINDS)
def test_what_is_read_is_right_or_refused(tmp_path, name):
    kind = KINDS[name]
    kind.write(tmp_path)
    expected = kind.read(tmp_path)
    damages = {file: damage_of(tmp_path / file) for file in kind.files}

    @quick(kind.examples)
    @hypothesis.given(hypothesis.strategies.data())
    def read_damaged(data):
        file = data.draw(hypothesis.strategies.sampled_from(kind.files))
        path, damaged = tmp_path / file, data.draw(damages[file])
        sound = path.read_bytes()
        path.write_bytes(damaged)
        try:
            found = kind.read(tmp_path)
        except ZooError as error:
            assert str(error) and '\n' not in str(error)
        else:
            if kind.sealed:
                assert_same(found, expected)
        finally:
            path.write_bytes(sound)

    read_damaged()


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, dict):
        assert_same(list(found.items()), list(expected.items()))
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_same(one, other)
    else:
        assert found == expected
