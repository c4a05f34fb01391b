"""What writes files: an old value, a new one, how they are written, and how they are read."""

import contextlib
import io

import mxnet as mx
import numpy as np
import originals
import tiny
import toy_data
from script_runs import load_script
from target import Unequal

import bert
import transfo_xl
from bert_embedding.writers import open_writer
from export import export_block
from model_zoo.app import cli
from model_zoo.app.engines import load_exported
from model_zoo.app.use import write_records
from model_zoo.errors import InputError
from model_zoo.tasks.pretraining.files import read_shard, write_shard
from model_zoo.tokenization.vocab import load_vocab
from model_zoo.training.checkpoint import CheckpointStore

__all__ = ['WRITERS', 'writer_of']


def _models():
    config = tiny.bert_config(20, num_hidden_layers=1)
    return [tiny.initialized(bert.BertForSequenceClassification(config), seed=n) for n in (1, 2)]


def _saving(format):
    def read(folder):
        return bert.BertForSequenceClassification.from_pretrained(str(folder))

    return (_models, lambda block, folder: block.save_pretrained(str(folder), format=format), read)


def _exporting():
    def read(folder):
        block = load_exported(str(folder / 'net'), 4, mx.cpu())
        words = mx.nd.array([[2, 5, 6, 3]])
        return block(words, 0 * words, mx.nd.array([4]))

    return _models, lambda block, folder: export_block(block, str(folder), 'net'), read


def _shards():
    return ([toy_data.make_samples(9, n) for n in (1, 2)],
            lambda samples, folder: write_shard(
                str(folder / 'x.npz'), samples, load_vocab(toy_data.SPECIAL)),
            lambda folder: read_shard(str(folder / 'x.npz')))  # fmt: skip


def _checkpoints():
    def write(number, folder):
        block, trainer = originals.training_block()
        state = {'step': number, 'epoch': 0, 'batch': number}
        CheckpointStore(str(folder), 1).save(block, trainer, state, {})

    return [1, 2], write, lambda folder: CheckpointStore(str(folder)).newest().state


def _tokenizers():
    words = [['the', 'cat'], ['dog', 'sat', 'x']]
    made = [bert.BertTokenizer(load_vocab([*toy_data.SPECIAL, *each])) for each in words]
    return (made, lambda tokenizer, folder: tokenizer.save_pretrained(str(folder)),
            lambda folder: list(
                bert.BertTokenizer.from_pretrained(str(folder)).encode('the x').input_ids))


def _corpora():
    def make(count):
        corpus = transfo_xl.TransfoXLCorpus(special=['<eos>', '<unk>'])
        corpus.vocab.count_sents([['the', 'cat']] * count)
        corpus.vocab.build_vocab()
        corpus.dataset, corpus.train = 'wt2', np.arange(count, dtype=np.int32)
        corpus.valid = corpus.test = corpus.train
        return corpus

    def read(folder):
        return transfo_xl.TransfoXLCorpus.from_pretrained(str(folder)).train

    return [make(3), make(5)], lambda corpus, folder: corpus.save_pretrained(str(folder)), read


def _outputs(name, write):
    """A command's ``--output``: each value is a list of texts."""

    def write_to(texts, folder):
        write(texts, str(folder / name))

    return [['a', 'b'], ['c', 'd\u0301', 'e']], write_to, lambda folder: (
        (folder / name).read_bytes())


def _vectors(extension):
    def write(texts, path):
        with open_writer(path) as writer:
            for text in texts:
                writer.sentence(np.full(4, ord(text[0]), 'f4'))

    return lambda: _outputs(f'x.{extension}', write)


def _records(texts, path):
    write_records(({'text': each} for each in texts), 'jsonl', path)


#: name -> ([old, new], write, read), or functions that make the first
WRITERS = {
    'save native': _saving('native'), 'save huggingface': _saving('huggingface'),
    'save pytorch': _saving('pytorch'), 'export': _exporting(), 'checkpoint': _checkpoints(),
    'shard': _shards, 'tokenizer': _tokenizers, 'corpus': _corpora,
    'records': lambda: _outputs('x.jsonl', _records),
    **{f'vectors {each}': _vectors(each) for each in ('npz', 'jsonl', 'safetensors')},
}  # fmt: skip


def _learning(folder):
    """A command that is run twice."""
    main = load_script('learn_vocab').main
    texts = [folder / f'text{number}.txt' for number in (1, 2)]
    for text, words in zip(texts, ('the cat sleeps .', 'a dog in paris')):
        text.write_text(f'{words}\n' * 6)

    def write(text, folder):
        argv = ['--input_file', text, '--output_dir', folder, '--vocab_size', 40]
        status, said = quiet(main, argv)
        if status:
            raise InputError(said.strip().splitlines()[-1])

    return texts, write, lambda folder: (folder / 'vocab.txt').read_bytes()


def quiet(main, argv):
    """The exit status of a command and what it says; a traceback is an error."""
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(said):
        status = cli.run(main, [str(each) for each in argv])
    if 'Traceback' in said.getvalue():
        raise Unequal(said.getvalue()[-3000:])
    return status, said.getvalue()


def writer_of(name, folder):
    """([old, new] values, write, read) of a writer, which may put what it reads into a folder."""
    if name == 'learn vocab':
        return _learning(folder)
    found = WRITERS[name]
    made, write, read = found() if callable(found) else found
    return made() if callable(made) else made, write, read
