"""The whole files that the audit damages: what the project writes, and tests/fixtures."""

import json
import pathlib
import shutil
import tarfile
import zipfile

import mxnet as mx
import numpy as np
import tiny
import tiny_models
import toy_data
import variant_models

import bert
import gpt2
import transfo_xl
from export import export_block
from model_zoo.app import cli
from model_zoo.checkpoint.tensor_files import write_params
from model_zoo.tasks.pretraining import SampleMaker, SampleOptions, write_epoch
from model_zoo.tasks.pretraining.files import write_tfrecords
from model_zoo.tasks.pretraining.text import Corpus
from model_zoo.tokenization.bpe import bytes_to_unicode
from model_zoo.tokenization.vocab import load_vocab
from model_zoo.training.checkpoint import CheckpointStore, TrainingState
from model_zoo.util.done import mark_done
from mxnet_pretrained_bert.tokenization_transfo_xl import TransfoXLCorpus

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / 'fixtures'
WORDS = tiny_models.WORDS
ROWS = [('good film .', 'a cat', 'pos', 1.0), ('bad film .', 'a dog', 'neg', 0.5),
        ('the cat sleeps', 'in paris', 'pos', 0.0)] * 3  # fmt: skip


def notes(folder):
    """What commands keep beside their results."""
    (folder / 'a.txt').write_text('x')
    mark_done(str(folder / 'a.txt'), ['job'], texts=3)
    best = {'epoch': 1, 'dev': {'f1': 0.5}}
    (folder / 'results.json').write_text(json.dumps({'task': 'x', 'best': best, 'seconds': 3.5}))
    cli.write_yaml(str(folder / 'settings.yaml'), {'lr': 5e-5, 'labels': ['a', 'b'], 'fast': True})
    (folder / 'copied.json').write_text(json.dumps({'config.json': [1, 'x']}))


def _copy(*parts, names=None):
    def copy(folder):
        source = FIXTURES.joinpath(*parts)
        if source.is_file():
            shutil.copy(source, folder)
        elif names:
            for name in names:
                shutil.copy(source / name, folder)
        else:
            shutil.copytree(source, folder, dirs_exist_ok=True)

    return copy


bert_safetensors = _copy('checkpoints', 'bert_transformers')
gpt2_parts = _copy('checkpoints', 'gpt2_transformers')
gpt_numpy = _copy('checkpoints', 'gpt_numpy')
bert_tensorflow = _copy('checkpoints', 'bert_tensorflow')
gpt2_tensorflow = _copy('checkpoints', 'gpt2_tensorflow')
tensorflow_parts = _copy('tensorflow_files')
torch_files = _copy('torch_files')
pickles = _copy('lm_pickles', names=['vocab.pkl', 'cache_2.pkl', 'cache_4.pkl', 'cache_0.pkl'])
sentences_today = _copy('sentence_transformers', 'today')
sentences_joined = _copy('sentence_transformers', 'joined')
sentences_of_2020 = _copy('sentence_transformers', 'of_2020')
tokenizer_json = sentences_today
pytorchic = _copy('pytorchic')
gpt2_folder = tiny.save_gpt2
gpt_pairs = toy_data.write_texts
samples_npz = toy_data.write_shards
sentence_pieces = variant_models.MAKERS['xlmr']


def torch_pickles(folder):
    """Of the name that says what they are: other files of this kind are weights."""
    for kind in ('legacy', 'zip'):
        (folder / kind).mkdir()
        shutil.copy(FIXTURES / 'lm_pickles' / f'vocab_{kind}.bin', folder / kind / 'vocab.bin')


def params(folder):
    write_params(str(folder / 'x.params'), {'a': np.arange(12, dtype='f4').reshape(3, 4),
                                            'b': np.arange(5, dtype='i4')}, {'a': 'b'})
    mx.nd.save(str(folder / 'y.params'), {'arg:x': mx.nd.ones((2, 3)), 'y': mx.nd.zeros((4,))})


def bert_folder(folder):
    tiny_models.save_bert(folder, bert.BertForSequenceClassification, ['no', 'yes'])


def transfo_xl_folder(folder):
    tokenizer = words(folder)
    block = transfo_xl.TransfoXLLMHeadModel(tiny.transfo_xl_config(len(tokenizer)))
    tiny.initialized(block).save_pretrained(str(folder), tokenizer)


def words(folder):
    (folder / 'words.txt').write_text('<eos>\n<unk>\n' + '\n'.join(sorted(set(WORDS))) + '\n')
    return transfo_xl.TransfoXLTokenizer.from_pretrained(folder / 'words.txt')


def roberta_folder(folder):
    block, tokenizer = variant_models.MAKERS['roberta'](folder)
    tiny.initialized(block).save_pretrained(str(folder), tokenizer)


def vocab(folder):
    tiny.write_words(folder, WORDS)
    made = load_vocab(str(folder / 'vocab.txt'))
    (folder / 'x.vocab').write_text(made.to_json(), 'utf-8')


def byte_pairs(folder):
    tokens = [*bytes_to_unicode().values(), 'th', 'the', '<|endoftext|>']
    tiny.write_pairs(folder, tokens, ['t h', 'th e'])


def tfrecord(folder):
    tiny.write_words(folder, toy_data.COUNTED)
    samples = toy_data.make_samples(9, 1)
    write_tfrecords([str(folder / 'x.tfrecord')], [samples], toy_data.LENGTH, toy_data.MASKS)


def epochs(folder):
    shutil.copy(FIXTURES / 'pretraining' / 'vocab.txt', folder)
    tokenizer = bert.BertTokenizer(folder / 'vocab.txt')
    corpus = Corpus([str(FIXTURES / 'pretraining' / 'sample_text.txt')])
    made = SampleMaker(corpus, tokenizer, SampleOptions(32, 6, 1)).make(0, corpus.num_bytes, 0)
    write_epoch(str(folder / 'epoch_0.json'), [made], tokenizer.vocab, 32)


def tables(folder):
    header = ['first', 'second', 'label', 'score']
    objects = [dict(zip(header, row)) for row in ROWS]
    for name, separator in (('x.tsv', '\t'), ('x.csv', ',')):
        lines = [separator.join(map(str, row)) for row in (header, *ROWS)]
        (folder / name).write_text('\n'.join(lines) + '\n')
    (folder / 'x.jsonl').write_text('\n'.join(map(json.dumps, objects)) + '\n')
    (folder / 'x.conll').write_text(
        '-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\nis VBZ O O\n\na X O O\n'
    )


def squad(folder):
    shutil.copy(FIXTURES / 'squad.json', folder)
    content = json.loads((folder / 'squad.json').read_text())
    (folder / 'vocab.txt').write_text('\n'.join(content['vocab']) + '\n')
    (folder / 'squad.json').write_text(json.dumps(content['content']))


def squad_cache(folder):
    squad(folder)
    from model_zoo.tasks.squad import encode_squad, read_squad

    tokenizer = bert.BertTokenizer(str(folder / 'vocab.txt'))
    encode_squad(read_squad(str(folder / 'squad.json'), True, True), tokenizer, str(folder))
    next(folder.glob('*.npz')).rename(folder / 'cache.npz')


def choices(folder):
    toy_data.write_situations(folder)
    for name in ('train', 'val', 'test'):
        (folder / f'{name}.csv').rename(folder / f'swag-{name}.csv')
    toy_data.write_stories(folder)
    rows = [{'sent1': 'a', 'sent2': 'b', 'label': 1, **{f'ending{n}': 'c' for n in range(4)}}]
    (folder / 'swag.jsonl').write_text('\n'.join(map(json.dumps, rows * 3)) + '\n')


def training_block():
    """A block and its trainer after a step."""
    mx.random.seed(1)
    block = mx.gluon.nn.Dense(3, in_units=4)
    block.initialize()
    trainer = mx.gluon.Trainer(block.collect_params(), 'bertadam', {'learning_rate': 0.1},
                               update_on_kvstore=False)  # fmt: skip
    with mx.autograd.record():
        loss = block(mx.nd.ones((2, 4))).sum()
    loss.backward()
    trainer.step(1)
    return block, trainer


def training(folder):
    record = {'epoch': 1, 'step': 3, 'train_loss': 0.5, 'score': 0.7, 'report': '',
              'train_seconds': 1.0, 'evaluation_seconds': 0.5}  # fmt: skip
    state = TrainingState(3, 1, 0, 2.0, epochs=[record], log=[{'step': 3, 'loss': 0.5}])
    CheckpointStore(str(folder)).save(*training_block(), vars(state), {'lr': 0.1, 'seed': [1, 2]})
    (path,) = folder.glob('step-*')
    path.rename(folder / 'saved')


def corpus_npz(folder):
    for name in ('train', 'valid', 'test'):
        (folder / f'{name}.txt').write_text('the cat sleeps\nin paris\n' * 5)
    corpus = TransfoXLCorpus(special=['<eos>', '<unk>'])
    corpus.build_corpus(str(folder), 'wt2')
    corpus.save_pretrained(str(folder))


def graph(folder):
    block = bert.BertForSequenceClassification(tiny.bert_config(20, num_hidden_layers=1))
    export_block(tiny.initialized(block), str(folder), 'net')


def graph_without_sums(folder):
    graph(folder)
    (folder / 'net-SHA256SUMS').unlink()


def decoder_graph(folder):
    block = gpt2.GPT2LMHeadModel(tiny.decoder_config(gpt2.GPT2Config, 20, n_layer=1))
    export_block(tiny.initialized(block), str(folder), 'net')


def onnx_folder(folder):
    from export import export_onnx_folder

    tiny_models.save_bert(folder / 'model', bert.BertForSequenceClassification, ['no', 'yes'])
    opened = bert.BertForSequenceClassification.from_pretrained(str(folder / 'model'))
    export_onnx_folder(opened, str(folder), bert.BertTokenizer.from_pretrained(folder / 'model'))


def archives(folder):
    bert_folder(folder / 'model')
    with tarfile.open(folder / 'x.tar.gz', 'w:gz') as archive:
        for path in sorted((folder / 'model').iterdir()):
            archive.add(path, path.name)
    with zipfile.ZipFile(folder / 'x.zip', 'w', zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((folder / 'model').iterdir()):
            archive.write(path, path.name)
    shutil.rmtree(folder / 'model')
