"""Measure the perplexity of a text under Transformer-XL.

    python eval_transfo_xl.py --model_name transfo-xl-wt103 --dataset wikitext-103 --work_dir out
    python eval_transfo_xl.py --model_name out/best_model --text_file test.txt --work_dir out \\
        --tgt_len 64 --mem_len 640 --clamp_len 400

Flags and defaults are the same as in pytorch-pretrained-bert's run_transfo_xl.py. The text
is read in order, in ``--batch_size`` streams that carry their memory along. ``--work_dir`` receives
the log and ``results.json``: loss and perplexity per token, ends of lines included, and perplexity
per word, with the loss at the ends of lines added to the words'.
"""

import os
import sys

from model_zoo.app import (
    add_originals,
    check_at_least_one,
    check_files,
    cli,
    convert_originals,
    write_results,
)
from model_zoo.errors import InputError
from model_zoo.pretrained import find_files, resolve
from model_zoo.tasks.language_model import evaluate_perplexity
from model_zoo.util.files import make_writable_dir
from transfo_xl import SegmentReader, StreamLoader, TransfoXLLMHeadModel, TransfoXLTokenizer
from transfo_xl.corpus import TransfoXLCorpus

SPLITS = ('valid', 'test')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('--model_name', default='transfo-xl-wt103', help='name, or a folder of save_pretrained')
    add(
        '--dataset',
        help='folder of valid.txt and test.txt (or wiki.valid.tokens and so on), or of a corpus '
        "that TransfoXLCorpus or the originals wrote; default: the model's folder",
    )
    add('--text_file', help='a text in UTF-8, instead of --dataset')
    add('--split', default='test', choices=['all', *SPLITS], help='of --dataset')
    add('--batch_size', type=int, default=10, help='streams that the text is cut into')
    add('--tgt_len', type=int, default=128, help='tokens of a segment')
    add('--ext_len', type=int, default=0, help='tokens that the next segment repeats')
    add('--mem_len', type=int, default=1600, help='positions that are remembered')
    add('--clamp_len', type=int, default=1000, help='upper bound of distances; 0: no bound')
    add('--same_length', action='store_true', help='each position attends to mem_len others')
    add('--work_dir', required=True, help='folder for the results')
    add('--no_log', action='store_true', help='write no log file')
    add('--gpu', type=int, nargs='?', const=0, help='number of the GPU to use; default: the CPU')
    add('--no_cuda', action='store_true', help='use the CPU (the default)')
    add_originals(parser, 'eval_transfo_xl')
    args = parser.parse_args(argv)
    convert_originals(args, 'eval_transfo_xl')
    check_at_least_one(args, 'batch_size', 'tgt_len')
    check_files(args, 'text_file')
    if args.text_file and args.dataset:
        raise InputError('--text_file and --dataset: choose one')
    if args.no_cuda and args.gpu is not None:
        raise InputError('--no_cuda and --gpu: choose one')
    if args.dataset is not None and not os.path.isdir(args.dataset):
        raise InputError(
            f'--dataset {args.dataset!r} is no folder with a text: give --text_file'
        )
    return args


def folder_of(model):
    """The folder of a model's weights."""
    if os.path.isdir(model):
        return model
    return os.path.dirname(find_files(*resolve(model), vocab=False).weights)


def read_texts(args, tokenizer):
    """Name -> token ids of the texts that the flags ask for."""
    if args.text_file:
        name = os.path.basename(args.text_file)
        return {name: tokenizer.encode_file(args.text_file, ordered=True)}
    folder, texts, corpus = args.dataset or folder_of(args.model_name), {}, None
    for split in SPLITS if args.split == 'all' else [args.split]:
        paths = [os.path.join(folder, name) for name in (f'{split}.txt', f'wiki.{split}.tokens')]
        path = next(filter(os.path.isfile, paths), None)
        if path is not None:
            texts[split] = tokenizer.encode_file(path, ordered=True)
            continue
        corpus = corpus or read_corpus(folder, tokenizer)
        texts[split] = getattr(corpus, split)
        if not hasattr(texts[split], 'shape'):
            raise InputError(f'{folder!r} has no {split} text that is one text')
    return texts


def read_corpus(folder, tokenizer):
    try:
        corpus = TransfoXLCorpus.from_pretrained(folder)
    except InputError as error:
        wanted = ', '.join(f'{split}.txt' for split in SPLITS)
        raise InputError(f'no texts ({wanted}) in {folder!r}, and {error}') from error
    if corpus.vocab.idx2sym != tokenizer.idx2sym:
        raise InputError(
            f'the corpus in {folder!r} has another vocabulary than the model: give --text_file'
        )
    return corpus


def main(argv=None):
    args = parse_arguments(argv)
    ctx = cli.get_ctx(args.gpu)
    make_writable_dir(args.work_dir)
    cli.setup_logging(None if args.no_log else os.path.join(args.work_dir, 'log.txt'))
    tokenizer = TransfoXLTokenizer.from_pretrained(args.model_name)
    texts = read_texts(args, tokenizer)
    options = {'same_length': True} if args.same_length else {}
    model = TransfoXLLMHeadModel.from_pretrained(
        args.model_name,
        ctx=ctx,
        tgt_len=args.tgt_len,
        ext_len=args.ext_len,
        mem_len=args.mem_len,
        clamp_len=args.clamp_len,
        **options,
    )
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
        _, report = evaluate_perplexity(
            lambda batch: reader(batch).sum(), loader, num_words, name
        )
        results.update(report)
    write_results(os.path.join(args.work_dir, 'results.json'), vars(args), results=results)


if __name__ == '__main__':
    sys.exit(cli.run(main))
