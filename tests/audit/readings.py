"""How each kind of file is read, and what of it is damaged."""

import os
import shutil

import mxnet as mx
import numpy as np
import originals
from arrays import imported
from script_runs import load_script

import bert
import gpt
import gpt2
import transfo_xl
from bert_embedding import BertEmbedding
from model_zoo.app import cli
from model_zoo.app.engines import load_exported
from model_zoo.checkpoint import read_tensors
from model_zoo.checkpoint.readers import check_sums, sums_path, weights_in_folder, write_sums
from model_zoo.checkpoint.tensor_files import check_graph
from model_zoo.errors import InputError
from model_zoo.opening import open_model
from model_zoo.pretrained.find import copy_of, unpacked
from model_zoo.tasks.choice import read_story_cloze, read_swag
from model_zoo.tasks.classification_data import custom_task, infer_labels, read_examples
from model_zoo.tasks.labels import labels_of_folder
from model_zoo.tasks.pretraining.files import read_epoch, read_lengths, read_shard
from model_zoo.tasks.sentences import read_sentences
from model_zoo.tasks.squad import encode_squad, read_squad
from model_zoo.tasks.tagging import read_conll
from model_zoo.tokenization import FileTokenizer
from model_zoo.tokenization.vocab import load_vocab
from model_zoo.tokenization.vocab_file import VocabFile
from model_zoo.training.checkpoint import Checkpoint, TrainingState
from model_zoo.util.done import read_done
from model_zoo.util.reading import read_json
from model_zoo.util.remote import upload
from mxnet_pytorchic_bert.models import CONFIG_FIELDS, make_config
from mxnet_pytorchic_bert.training import read_fields

__all__ = ['READINGS']

TEXTS = ['the cat sleeps in Paris.', '', 'a\u0301 \u4e2d x']
_WORDS = np.array([[2, 5, 6, 3]])
FOLDER_JSON = ['config.json', 'tokenizer_config.json', 'special_tokens_map.json']


def tensors(*names):
    return lambda folder: [read_tensors(folder / name)[0] for name in names]


def _safetensors(folder):
    from safetensors.numpy import load_file

    return [load_file(folder / 'model.safetensors')]


def opened(folder):
    """A folder's block, what it computes, and what its tokenizer makes of texts."""
    made = open_model(str(folder))
    encoded = made.tokenizer.encode_batch(TEXTS)['input_ids']
    with mx.autograd.pause():
        outputs = made.block(mx.nd.array(_WORDS))
    outputs = outputs if isinstance(outputs, mx.nd.NDArray) else outputs[0]
    outputs.wait_to_read()
    return made.block, encoded, len(made.tokenizer.vocab)


def block_of(block_class):
    return lambda folder: block_class.from_pretrained(str(folder))


def newest(folder):
    return read_tensors(weights_in_folder(str(folder), 'tensorflow') or folder / 'none')[0]


def coded(make):
    """What a tokenizer makes of texts, and back."""

    def read(folder):
        tokenizer = make(folder)
        ids = tokenizer.encode_batch(TEXTS)['input_ids']
        rows = [list(map(int, row)) for row in ids]
        tokens = [tokenizer.convert_ids_to_tokens(row) for row in rows]
        return rows, tokens, [tokenizer.decode(row) for row in rows]

    return read


def table(name):
    def read(folder):
        task = custom_task(['first', 'second'], 'label', files={'train': folder / name})
        return read_examples(infer_labels(task))

    return read


def sentences(name):
    return lambda folder: read_sentences(str(folder / name), ['first', 'second'], 'score')


def encoded_squad(folder):
    tokenizer = bert.BertTokenizer(str(folder / 'vocab.txt'))
    return encode_squad(read_squad(str(folder / 'squad.json'), True, True), tokenizer)


def cached_squad(folder):
    """The cache's file has the name that only the encoding knows."""
    from model_zoo.tasks.squad import _key

    tokenizer = bert.BertTokenizer(str(folder / 'vocab.txt'))
    squad = read_squad(str(folder / 'squad.json'), True, True)
    os.makedirs(folder / 'cache', exist_ok=True)
    target = folder / 'cache' / f'squad-{_key(squad, tokenizer)}.npz'
    target.write_bytes((folder / 'cache.npz').read_bytes())
    return encode_squad(squad, tokenizer, str(folder / 'cache'))


def restored(folder):
    block, trainer = originals.training_block()
    checkpoint = Checkpoint(str(folder / 'saved'))
    state = TrainingState.from_json(checkpoint.state)
    checkpoint.restore(block, trainer)
    return block, vars(state), checkpoint.config


def edited(folder):
    """As by someone who makes the checksums anew."""
    saved = folder / 'saved'
    (saved / 'SHA256SUMS').unlink()
    write_sums(str(saved / 'SHA256SUMS'), [
        str(saved / name) for name in ('model.params', 'optimizer.params', 'state.json')
    ])  # fmt: skip
    return restored(folder)


def exported(*arrays):
    def read(folder):
        block = load_exported(str(folder / 'net'), 4, mx.cpu())
        made = block(*map(mx.nd.array, arrays))
        return made if isinstance(made, mx.nd.NDArray) else list(made)

    return read


def decoder(folder):
    path = str(folder / 'net-symbol.json')
    check_sums(sums_path(path))
    check_graph(path)
    made = imported(folder / 'net', 2)(mx.nd.array(_WORDS), mx.nd.array([4]))
    return made if isinstance(made, mx.nd.NDArray) else list(made)


def loaded_graph(folder):
    path = str(folder / 'net-symbol.json')
    check_graph(path)
    return read_json(path)


def onnx(folder):
    from model_zoo.inference.onnx_engine import OnnxRuntimeEngine

    engine = OnnxRuntimeEngine(str(folder / 'model.onnx'))
    return list(engine.run(_WORDS, 0 * _WORDS, np.array([4])))


def vectors(folder):
    return BertEmbedding(str(folder)).sentence_vectors(['the dog sleeps', 'a'])


def corpus(folder):
    made = transfo_xl.TransfoXLCorpus.from_pretrained(str(folder))
    return made.train, made.valid, made.test, made.vocab.idx2sym


def pickled(*names):
    def read(folder):
        made = [transfo_xl.TransfoXLTokenizer.from_pretrained(folder / name) for name in names]
        return [(each.idx2sym, each.counter, each.encode(TEXTS[0])) for each in made]

    return read


def pickled_corpora(*names):
    def read(folder):
        made = [transfo_xl.TransfoXLCorpus.from_file(folder / name) for name in names]
        return [(each.train, each.valid, each.test, each.vocab.idx2sym) for each in made]

    return read


def unpack(name):
    def read(folder):
        target = unpacked(str(folder / name), str(folder / 'cache'))
        return {each: open(os.path.join(target, each), 'rb').read()  # noqa: SIM115
                for each in sorted(os.listdir(target))
                if os.path.isfile(os.path.join(target, each))}  # fmt: skip

    return read


def shards(folder):
    vocab = load_vocab(str(folder / 'vocab.txt'))
    path = str(folder / 'train-0.npz')
    return read_shard(path, vocab), read_lengths(path, vocab)


def records(folder):
    path = str(folder / 'x.tfrecord')
    return read_shard(path), read_lengths(path)


def pregenerated(folder):
    vocab = load_vocab(str(folder / 'vocab.txt'))
    path = str(folder / 'epoch_0.json')
    return read_epoch(path, vocab), read_lengths(path, vocab)


def gluon_vocab(folder):
    made = VocabFile(str(folder / 'x.vocab')).vocab
    return made.idx_to_token, bert.BertTokenizer.from_vocab(made).encode(TEXTS[0])


def finished(folder):
    return read_done(str(folder / 'a.txt'), ['job'])


def results(folder):
    return load_script('info').history(str(folder))


def refuse(message):
    raise InputError(message)


def settings(folder):
    parser = cli.parser('A training.')
    parser.add_config()
    parser.add_argument('--lr', type=float)
    parser.add_argument('--labels', nargs='+')
    parser.add_argument('--fast', action='store_true')
    parser.error = refuse  # a command's refusal, which would end the process
    return vars(parser.parse_args(['--config', str(folder / 'settings.yaml')]))


def copied(folder):
    """A damaged note makes a copy new."""
    url = f'memory://{folder}/model'
    for name in ('config.json', 'b.json'):
        upload(str(folder / 'a.txt'), f'{url}/{name}')
    os.makedirs(folder / 'copy', exist_ok=True)
    shutil.copy(folder / 'copied.json', folder / 'copy')
    made = copy_of(url, str(folder / 'copy'))
    return {name: open(os.path.join(made, name)).read()  # noqa: SIM115
            for name in sorted(os.listdir(made))}  # fmt: skip


SEALED = {'sealed': True}
#: name -> (its maker in `originals`, the damaged files and how, the reader, options)
READINGS = {
    'safetensors': ('bert_safetensors', {'model.safetensors': 'safetensors'},
                    tensors('model.safetensors'), {'theirs': _safetensors}),
    'safetensors index': ('gpt2_parts', {'model.safetensors.index.json': 'json',
                                         'model-00003-of-00003.safetensors': 'safetensors'},
                          tensors('model.safetensors.index.json'), {}),
    'params': ('params', {'x.params': 'bytes', 'y.params': 'bytes'},
               tensors('x.params', 'y.params'), {}),
    'npy': ('gpt_numpy', {'params_0.npy': 'npy', 'params_9.npy': 'npy',
                          'params_shapes.json': 'json'},
            tensors('params_shapes.json'), {}),
    'torch zip': ('torch_files', {'zip.pt': 'torch zip'}, tensors('zip.pt'), {}),
    'torch stream': ('torch_files', {'stream.pt': 'torch stream'}, tensors('stream.pt'), {}),
    'tensorflow index': ('tensorflow_parts', {'model.ckpt.index': 'table'},
                         tensors('model.ckpt.index'), {}),
    'tensorflow data': ('tensorflow_parts', {'model.ckpt.data-00000-of-00002': 'bytes',
                                             'model.ckpt.data-00001-of-00002': 'bytes'},
                        tensors('model.ckpt.index'), SEALED),
    'tensorflow checkpoint': ('gpt2_tensorflow', {'checkpoint': 'lines', 'hparams.json': 'json'},
                              newest, {}),
    'folder of BERT': ('bert_folder', {**dict.fromkeys(FOLDER_JSON[:2], 'json'),
                                       'vocab.txt': 'lines', 'model.params': 'bytes'},
                       opened, {'seconds': 60}),
    'folder of GPT-2': ('gpt2_folder', {'config.json': 'json', 'vocab.json': 'json',
                                        'merges.txt': 'lines', 'tokenizer_config.json': 'json'},
                        opened, {'seconds': 60}),
    'folder of Transformer-XL': ('transfo_xl_folder', {'config.json': 'json',
                                                       'vocab.json': 'json'},
                                 opened, {'seconds': 60}),
    'folder of RoBERTa': ('roberta_folder', {'config.json': 'json', 'vocab.json': 'json',
                                             'merges.txt': 'lines'}, opened, {'seconds': 60}),
    "Google's configuration": ('bert_tensorflow', {'bert_config.json': 'json'},
                               block_of(bert.BertModel), {}),
    "OpenAI's configuration": ('gpt2_tensorflow', {'hparams.json': 'json'},
                               block_of(gpt2.GPT2Model), {}),
    'configuration of NumPy': ('gpt_numpy', {'config.json': 'json'},
                               block_of(gpt.OpenAIGPTModel), {}),
    'labels': ('bert_folder', {'config.json': 'json'},
               lambda folder: labels_of_folder(str(folder)), {}),
    'Pytorchic configuration': ('pytorchic', {'model.json': 'json'}, lambda folder: vars(
        make_config(read_fields('model_cfg', str(folder / 'model.json'), CONFIG_FIELDS), 30)), {}),
    'Pytorchic weights': ('pytorchic', {'pretrained.pt': 'torch zip'},
                          tensors('pretrained.pt'), {}),
    'vocab.txt': ('vocab', {'vocab.txt': 'lines'},
                  coded(lambda folder: bert.BertTokenizer(str(folder / 'vocab.txt'))), {}),
    'vocab of GluonNLP': ('vocab', {'x.vocab': 'json'}, gluon_vocab, {}),
    'words': ('words', {'words.txt': 'lines'}, coded(
        lambda folder: transfo_xl.TransfoXLTokenizer.from_pretrained(folder / 'words.txt')), {}),
    'merges of GPT-2': ('byte_pairs', {'merges.txt': 'lines', 'vocab.json': 'json'}, coded(
        lambda folder: gpt2.GPT2Tokenizer(str(folder / 'vocab.json'),
                                          str(folder / 'merges.txt'))), {}),
    'merges of GPT': ('gpt_pairs', {'merges.txt': 'lines', 'vocab.json': 'json'}, coded(
        lambda folder: gpt.OpenAIGPTTokenizer(str(folder / 'vocab.json'),
                                              str(folder / 'merges.txt'))), {}),
    'tokenizer.json': ('tokenizer_json', {'tokenizer.json': 'tokenizer',
                                          **dict.fromkeys(FOLDER_JSON[1:], 'json')},
                       coded(lambda folder: FileTokenizer.from_pretrained(str(folder))), {}),
    'sentence pieces': ('sentence_pieces', {'sentencepiece.bpe.model': 'protobuf'}, coded(
        lambda folder: bert.XLMRobertaTokenizer(str(folder / 'sentencepiece.bpe.model'))), {}),
    'sentence pieces of BERT': ('sentence_pieces', {'sentencepiece.bpe.model': 'protobuf'},
                                lambda folder: bert.BertSPTokenizer(
        str(folder / 'sentencepiece.bpe.model')).encode(TEXTS[0]), {}),
    'samples': ('samples_npz', {'train-0.npz': 'npz'}, shards, {}),
    'tfrecord': ('tfrecord', {'x.tfrecord': 'tfrecord'}, records, {}),
    'epochs': ('epochs', {'epoch_0.json': 'lines', 'epoch_0_metrics.json': 'json'},
               pregenerated, {}),
    **{f'table {name}': ('tables', {f'x.{name}': 'lines'}, table(f'x.{name}'), {})
       for name in ('tsv', 'csv', 'jsonl')},
    **{f'sentences {name}': ('tables', {f'x.{name}': 'lines'}, sentences(f'x.{name}'), {})
       for name in ('tsv', 'csv', 'jsonl')},
    'CoNLL': ('tables', {'x.conll': 'lines'},
              lambda folder: read_conll(str(folder / 'x.conll')), {}),
    'SQuAD': ('squad', {'squad.json': 'json'}, encoded_squad, {}),
    'SQuAD cache': ('squad_cache', {'cache.npz': 'npz'}, cached_squad, {}),
    'SWAG': ('choices', {'swag-train.csv': 'lines'},
             lambda folder: read_swag(str(folder / 'swag-train.csv')), {}),
    'SWAG jsonl': ('choices', {'swag.jsonl': 'lines'},
                   lambda folder: read_swag(str(folder / 'swag.jsonl')), {}),
    'Story Cloze': ('choices', {'train.csv': 'lines'},
                    lambda folder: read_story_cloze(str(folder / 'train.csv')), {}),
    'training': ('training', {'saved/state.json': 'json', 'saved/model.params': 'bytes',
                              'saved/optimizer.params': 'bytes', 'saved/SHA256SUMS': 'lines'},
                 restored, SEALED),
    'training, edited': ('training', {'saved/state.json': 'json', 'saved/model.params': 'bytes',
                                      'saved/optimizer.params': 'bytes'}, edited, {}),
    'pickled vocabulary': ('pickles', {'vocab.pkl': 'pickle'}, pickled('vocab.pkl'), {}),
    'pickled vocabulary of torch': ('torch_pickles', {'legacy/vocab.bin': 'torch stream',
                                                      'zip/vocab.bin': 'torch zip'},
                                    pickled('legacy/vocab.bin', 'zip/vocab.bin'), {}),
    'pickled corpus': ('pickles', {'cache_2.pkl': 'pickle', 'cache_4.pkl': 'pickle',
                                   'cache_0.pkl': 'pickle'},
                       pickled_corpora('cache_2.pkl', 'cache_4.pkl', 'cache_0.pkl'), {}),
    'corpus': ('corpus_npz', {'corpus.npz': 'npz'}, corpus, {}),
    'exported graph': ('graph', {'net-symbol.json': 'json', 'net-0000.params': 'bytes'},
                       exported(_WORDS, 0 * _WORDS, [4]), {**SEALED, 'seconds': 60}),
    'exported decoder': ('decoder_graph', {'net-symbol.json': 'json', 'net-0000.params': 'bytes'},
                         decoder, {**SEALED, 'seconds': 60}),
    'graph without sums': ('graph_without_sums', {'net-symbol.json': 'json'}, loaded_graph, {}),
    'ONNX': ('onnx_folder', {'model.onnx': 'protobuf'}, onnx,
             {**SEALED, 'seconds': 60, 'needs': ('onnx', 'onnxruntime')}),
    'sentence-transformers today': ('sentences_today', {
        'modules.json': 'json', '1_Pooling/config.json': 'json', '2_Dense/config.json': 'json',
        '2_Dense/model.safetensors': 'safetensors', 'config.json': 'json',
        'sentence_bert_config.json': 'json', 'config_sentence_transformers.json': 'json',
    }, vectors, {'seconds': 60}),
    'sentence-transformers of 2020': ('sentences_of_2020', {
        'modules.json': 'json', '1_Pooling/config.json': 'json', '2_Dense/config.json': 'json',
        '2_Dense/pytorch_model.bin': 'torch zip', '0_Transformer/config.json': 'json',
        '0_Transformer/sentence_bert_config.json': 'json',
    }, vectors, {'seconds': 60}),
    'note of a finished part': ('notes', {'.done/a.txt.json': 'json'}, finished, {}),
    'results of a training': ('notes', {'results.json': 'json'}, results, {}),
    'settings of a training': ('notes', {'settings.yaml': 'lines'}, settings, {}),
    'note of a copy': ('notes', {'copied.json': 'json'}, copied,
                       {**SEALED, 'needs': ('fsspec',)}),
    'archive tar.gz': ('archives', {'x.tar.gz': 'tar'}, unpack('x.tar.gz'), {}),
    'archive zip': ('archives', {'x.zip': 'zip'}, unpack('x.zip'), {}),
}  # fmt: skip
