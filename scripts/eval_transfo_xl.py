"""Measure the perplexity of a text under Transformer-XL.

    python eval_transfo_xl.py --model_name transfo-xl-wt103 --dataset wikitext-103 --work_dir out
    python eval_transfo_xl.py --model_name out/best_model --text_file test.txt --work_dir out \\
        --tgt_len 64 --mem_len 640 --clamp_len 400

Flags and defaults are the same as in pytorch-pretrained-bert's run_transfo_xl.py. The text is read
in order, in ``--batch_size`` streams, each with its own memory. ``--work_dir`` receives the log and
``results.json``: loss and perplexity per token, including ends of lines, and perplexity per word,
with the loss at the ends of lines added to the words'.
"""

import os

import numpy as np

from model_zoo.app import cli
from model_zoo.app.devices import get_ctx
from model_zoo.app.originals import parse_settings
from model_zoo.app.report import write_results
from model_zoo.errors import InputError
from model_zoo.pretrained import find_files, resolve
from model_zoo.tasks.language_model import evaluate_perplexity
from model_zoo.tasks.tables import check_files
from model_zoo.training.settings import Count, Settings, gpu_number, setting
from model_zoo.util.files import make_writable_dir
from transfo_xl import SegmentReader, StreamLoader, TransfoXLLMHeadModel, TransfoXLTokenizer
from transfo_xl.corpus import TransfoXLCorpus

SPLITS = ('valid', 'test')


class PerplexitySettings(Settings):
    """The flags of pytorch-pretrained-bert's script, and this project's."""

    title = 'text'

    model_name: str = setting('transfo-xl-wt103', 'name, or a folder that save_pretrained wrote')
    dataset: str | None = setting(
        None, "folder with texts, or a corpus of TransfoXLCorpus; default: the model's folder"
    )
    text_file: str | None = setting(None, 'instead of `dataset`', excludes='dataset')
    split: str = setting('test', 'which part of `dataset`', choices=['all', *SPLITS])
    batch_size: Count = setting(10, 'number of streams that the text is split into')
    tgt_len: Count = setting(128, 'tokens per segment')
    ext_len: int = setting(0, 'tokens that the next segment repeats')
    mem_len: int = setting(1600, 'positions in the memory')
    clamp_len: int = setting(1000, 'upper bound of distances; 0: no bound')
    same_length: bool = setting(False, 'each position attends to mem_len others')
    work_dir: str = setting(None, 'folder for the results', flag={'required': True})
    no_log: bool = setting(False, 'write no log file')
    gpu: int | None = gpu_number()
    no_cuda: bool = setting(False, 'use the CPU (the default)', excludes='gpu')

    def check(self):
        super().check()
        check_files(self, 'text_file')
        if self.dataset is not None and not os.path.isdir(self.dataset):
            problem = f'{self.dataset!r} is not a folder with a text: give `text_file`'
            raise InputError(problem, field='dataset')


def read_texts(args, tokenizer):
    """Return the token ids of the requested texts, by their names."""
    if args.text_file:
        name = os.path.basename(args.text_file)
        return {name: tokenizer.encode_file(args.text_file, ordered=True)}
    folder = args.dataset or args.model_name
    if not os.path.isdir(folder):  # the folder of a model's weights
        folder = os.path.dirname(find_files(*resolve(folder), vocab=False).weights)
    texts = {}
    for split in SPLITS if args.split == 'all' else [args.split]:
        paths = [os.path.join(folder, name) for name in (f'{split}.txt', f'wiki.{split}.tokens')]
        path = next(filter(os.path.isfile, paths), None)
        if path is None:
            texts[split] = read_corpus(folder, split, tokenizer)
        else:
            texts[split] = tokenizer.encode_file(path, ordered=True)
    return texts


def read_corpus(folder, split, tokenizer):
    try:
        corpus = TransfoXLCorpus.from_pretrained(folder)
    except InputError as error:
        raise InputError(f'no texts (valid.txt, test.txt) in {folder!r}, and {error}') from error
    if corpus.vocab.idx2sym != tokenizer.idx2sym:
        problem = 'has another vocabulary than the model: give `text_file`'
        raise InputError(f'the corpus in {folder!r} {problem}')
    tokens = {'valid': corpus.valid, 'test': corpus.test}[split]
    if not isinstance(tokens, np.ndarray):
        raise InputError(f'{folder!r} has no {split} text that is one text')
    return tokens


def main(argv=None):
    args = parse_settings(PerplexitySettings, __doc__, argv, 'eval_transfo_xl')
    ctx = get_ctx(args.gpu)
    make_writable_dir(args.work_dir)
    cli.setup_logging(None if args.no_log else os.path.join(args.work_dir, 'log.txt'))
    tokenizer = TransfoXLTokenizer.from_pretrained(args.model_name)
    texts = read_texts(args, tokenizer)
    lengths = {name: getattr(args, name) for name in ('tgt_len', 'ext_len', 'mem_len', 'clamp_len')}
    options = {**lengths, 'same_length': True} if args.same_length else lengths
    model = TransfoXLLMHeadModel.from_pretrained(args.model_name, ctx=ctx, **options)
    if len(tokenizer) > model.config.vocab_size:
        raise InputError(
            f'the vocabulary does not fit: it has {len(tokenizer)} words, and the model '
            f'{model.config.vocab_size}'
        )
    model.hybridize(static_alloc=True)
    reader, results = SegmentReader(model), {}
    end = tokenizer.sym2idx.get('<eos>', -1)
    for name, tokens in texts.items():
        loader = StreamLoader(tokens, args.batch_size, args.tgt_len, args.ext_len, ctx)
        num_words = int((loader.labels != end).sum())
        _, report = evaluate_perplexity(lambda batch: reader(batch).sum(), loader, num_words, name)
        results.update(report)
    write_results(os.path.join(args.work_dir, 'results.json'), vars(args), results=results)


if __name__ == '__main__':
    cli.run_script(main)
