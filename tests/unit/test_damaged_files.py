"""Files that are damaged, each kind of them: what is read is right, or refused in one line."""

import json
import pathlib
import shutil
import tarfile
import types
import zipfile

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
from export import export_onnx_folder
from model_zoo.checkpoint import read_tensors
from model_zoo.checkpoint.tensor_files import write_params
from model_zoo.errors import ZooError
from model_zoo.inference import pipeline
from model_zoo.inference.server.models import example_of
from model_zoo.opening import open_model
from model_zoo.pretrained.places import unpacked
from model_zoo.records import read_records
from model_zoo.tasks.pretraining.files import read_shard, write_tfrecords
from model_zoo.tasks.squad import read_squad
from model_zoo.tasks.tagging import read_conll
from model_zoo.tokenization import FileTokenizer
from model_zoo.tokenization.vocab import load_vocab
from model_zoo.training.checkpoint import Checkpoint, CheckpointStore, TrainingState

FIXTURES = pathlib.Path(__file__).parents[1] / 'fixtures'
TENSORS = {'a': np.arange(12, dtype='f4').reshape(3, 4), 'b': np.arange(5, dtype='i4')}
TEXT = 'the cat sleeps in Paris. \u4e2d'


def kind(write, files, read, sealed=False, examples=25):
    """How a kind of file is written and read; `sealed` ones have checksums."""
    return write, files.split(), read, sealed, examples


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
    record = {'epoch': 1, 'step': 3, 'train_loss': 0.5, 'score': 0.7, 'report': ''}
    record.update(train_seconds=1.0, evaluation_seconds=0.5)
    state = TrainingState(3, 1, 0, 2.0, epochs=[record], log=[{'step': 3, 'loss': 0.5}])
    CheckpointStore(str(folder)).save(*plain_training(), vars(state), {'lr': 0.1})
    next(folder.glob('step-*')).rename(folder / 'saved')


def read_training(folder):
    block, trainer = plain_training()
    checkpoint = Checkpoint(str(folder / 'saved'))
    state = TrainingState.from_json(checkpoint.state)
    checkpoint.restore(block, trainer)
    return vars(state), [array.data().asnumpy() for array in block.collect_params().values()]


TABLES = 'x.csv x.tsv x.jsonl x.json x.parquet'.split()
DATA_SET = 'set/state.json set/dataset_info.json set/data-00000-of-00001.arrow'
ROWS = {'text': ['the cat', 'a "dog", \u4e2d', 'x'] * 4, 'label': [0, 1, 0] * 4}


def write_tables(folder):
    data = pytest.importorskip('datasets').Dataset.from_dict(ROWS)
    data.to_csv(folder / 'x.csv')
    data.to_csv(folder / 'x.tsv', sep='\t')
    data.to_json(folder / 'x.jsonl')
    data.to_json(folder / 'x.json', lines=False)
    data.to_parquet(folder / 'x.parquet')
    data.save_to_disk(folder / 'set')


def rows(name):
    return lambda folder: [row for _, row in read_records(folder / name)]


def write_exported(folder):
    pytest.importorskip('onnxruntime')
    write_folder(folder / 'plain')
    block, tokenizer, _ = open_model(str(folder / 'plain'))
    export_onnx_folder(block, folder, tokenizer)


def classified(folder):
    return pipeline('text-classification', str(folder), engine='onnxruntime')(TEXT)


def example(folder):
    return example_of(types.SimpleNamespace(config=str(folder / 'config.json')))


def tensors(name):
    return lambda folder: read_tensors(folder / name)[0]


def of_tensors(names, *fixture, **options):
    return kind(copied(*fixture), names, tensors(names.split()[0]), **options)


def ids(make, *names):
    def read(folder):
        tokenizer = make(*(str(folder / name) for name in names))
        return list(map(int, tokenizer.encode_batch([TEXT])['input_ids'][0]))

    return read


def by_path(read, name, *args):
    return lambda folder: read(str(folder / name), *args)


def write_weights(*metadata):
    return lambda folder: write_params(str(folder / 'x.params'), TENSORS, *metadata)


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


CARD = '---\nwidget:\n- text: A film.\n  choices: [a, b]\n  n: 1\n---\n# Title\n---\n'
CHECKPOINTS = 'checkpoints'
SHARDS = 'model.ckpt.index model.ckpt.data-00000-of-00002 model.ckpt.data-00001-of-00002'
CONLL = '-DOCSTART- -X- O O\n\nEU N B B-ORG\nis V O O\n'
PIECES = 'sentencepiece.bpe.model'
KINDS = {
    'params': kind(write_weights({'a': 'b'}), 'x.params', tensors('x.params'), True),
    "MXNet's params": kind(write_weights(), 'x.params', tensors('x.params')),
    'safetensors': of_tensors('model.safetensors', CHECKPOINTS, 'bert_transformers'),
    'index': of_tensors('model.safetensors.index.json', CHECKPOINTS, 'gpt2_transformers'),
    'torch zip': of_tensors('zip.pt', 'torch_files', sealed=True),
    'torch stream': of_tensors('stream.pt', 'torch_files', examples=80),
    'TensorFlow': of_tensors(SHARDS, 'tensorflow_files', sealed=True),
    'npy': of_tensors('params_shapes.json params_3.npy', CHECKPOINTS, 'gpt_numpy'),
    'pickled words': kind(copied('lm_pickles'), 'vocab.pkl', words('vocab.pkl'), False, 80),
    'pickled corpus': kind(copied('lm_pickles'), 'cache_2.pkl', corpus('cache_2.pkl')),
    'pickled corpus, protocol 4': kind(copied('lm_pickles'), 'cache_4.pkl', corpus('cache_4.pkl')),
    'npz': kind(toy_data.write_shards, 'train-0.npz', by_path(read_shard, 'train-0.npz'), True),
    'tfrecord': kind(write_tfrecord, 'x.tfrecord', by_path(read_shard, 'x.tfrecord')),
    'folder': kind(
        write_folder, 'config.json vocab.txt tokenizer_config.json SHA256SUMS', opened, examples=15
    ),
    'vocab.txt': kind(write_vocab, 'vocab.txt', ids(bert.BertTokenizer, 'vocab.txt')),
    "GluonNLP's vocabulary": kind(
        write_vocab, 'x.vocab', ids(bert.BertTokenizer.from_pretrained, 'x.vocab')
    ),
    'byte pairs': kind(
        tiny_models.save_gpt2,
        'vocab.json merges.txt',
        ids(gpt2.GPT2Tokenizer, 'vocab.json', 'merges.txt'),
    ),
    'sentence pieces': kind(
        variant_models.MAKERS['xlmr'], PIECES, ids(bert.XLMRobertaTokenizer, PIECES)
    ),
    'tokenizer.json': kind(
        copied('sentence_transformers', 'today'),
        'tokenizer.json tokenizer_config.json',
        ids(FileTokenizer.from_pretrained, '.'),
    ),
    'training': kind(
        write_training,
        'saved/state.json saved/model.params saved/optimizer.params',
        read_training,
        True,
        20,
    ),
    'SQuAD': kind(write_squad, 'squad.json', by_path(read_squad, 'squad.json', True, True)),
    'CoNLL': kind(lambda folder: (folder / 'x').write_text(CONLL), 'x', by_path(read_conll, 'x')),
    **{name: kind(write_tables, name, rows(name)) for name in TABLES},
    'data set': kind(write_tables, DATA_SET, rows('set')),
    'ONNX': kind(write_exported, 'model.onnx config.json tokenizer.json', classified),
    'card': kind(lambda folder: (folder / 'README.md').write_text(CARD), 'README.md', example),
    'tar.gz': kind(write_archives, 'x.tar.gz', content_of('x.tar.gz')),
    'zip': kind(write_archives, 'x.zip', content_of('x.zip')),
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
    write, files, read, is_sealed, examples = KINDS[name]
    write(tmp_path)
    expected = read(tmp_path)
    damages = {file: damage_of(tmp_path / file) for file in files}

    @quick(examples)
    @hypothesis.given(hypothesis.strategies.data())
    def read_damaged(data):
        file = data.draw(hypothesis.strategies.sampled_from(files))
        path, damaged = tmp_path / file, data.draw(damages[file])
        sound = path.read_bytes()
        path.write_bytes(damaged)
        try:
            found = read(tmp_path)
        except ZooError as error:
            assert str(error) and '\n' not in str(error)
        else:
            if is_sealed:
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
