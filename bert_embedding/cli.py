"""Print or write the vectors of words or sentences.

    zoo embed all-MiniLM-L6-v2 'A sentence.' 'Another.' --pooling model --output vectors.npz
    bert-embedding --sentences 'A sentence.'

``bert-embedding`` is the original's command, with its default model. The terminal shows the
originals' format.
"""

import itertools
import logging
import os
import sys

from model_zoo.app.arguments import add_encoding, add_long_texts, engine_of, take_model
from model_zoo.app.cli import parser, run, setup_logging
from model_zoo.app.devices import get_ctx
from model_zoo.errors import InputError
from model_zoo.util.choices import ENGINES, OOV_WAYS, POOLINGS, PRECISIONS

__all__ = ['console', 'embed', 'main']

logger = logging.getLogger(__name__)


def _parse(argv, model):
    arguments = parser('Embed words or sentences with BERT.')
    add = arguments.add_argument
    help = 'name, folder, hub id owner/name or address of the model, and the texts, each in quotes'
    add('words', nargs='*', metavar='MODEL TEXT', help=help)
    source = arguments.add_mutually_exclusive_group()
    source.add_argument('--sentences', nargs='+', help='sentences to embed')
    help = 'file with one sentence per line; or .csv, .tsv, .jsonl or .parquet'
    source.add_argument('--file', help=help)
    add('--text_column', metavar='COLUMN', help='with --file: name of the column with the texts')
    add_encoding(arguments)
    add('--model', default=model, help='the same as MODEL')
    add('--dataset_name', help="what it was trained on; default: the model's usual data set")
    add('--params_path', help='file of weights instead of the pretrained ones')
    add('--sentencepiece', help='SentencePiece model for tokens and vocabulary')
    help = 'number of pieces from which on a sentence is long; default: as the model says'
    add('--max_length', dest='max_seq_length', type=int, help=help)
    add_long_texts(arguments)
    arguments.add_aliases('max_length', 'max_len', 'max_seq_length')
    add('--batch_size', type=int, default=256, help='maximum number of sentences per batch')
    help = "how to combine the pieces' vectors into a word's vector"
    add('--oov_way', choices=OOV_WAYS, default='avg', help=help)
    help = "embed sentences, not words: by this pooling; model: the model's own, else mean"
    add('--pooling', choices=(*POOLINGS, 'model'), help=help)
    add('--prompt', help='text to put before each sentence, for sentence vectors')
    add('--prompt_name', help="name of one of the model's own prompts")
    add('--normalize', action='store_true', help='scale sentence vectors to length 1')
    add('--output', help='write to this file, .npz or .jsonl, instead of printing')
    add('--gpu', type=int, nargs='?', const=0, help='number of the GPU to use; default: the CPU')
    help = 'precision of the model; int8 needs --engine onnxruntime'
    add('--dtype', default='float32', choices=[*PRECISIONS, 'int8'], help=help)
    help = 'what runs the model; auto: the fastest one for files, MXNet for a few texts'
    add('--engine', default='auto', choices=ENGINES, help=help)
    add('--verbose', action='store_true', help='log more')
    args = arguments.parse_intermixed_args(argv)
    texts = take_model(args, 'model', args.words)
    if texts and args.sentences:
        raise InputError(f'{texts[0]!r:.40} is a text: leave out --sentences')
    args.sentences = args.sentences or texts
    if not (args.sentences or args.file):
        taken = f'; {args.words[0]!r:.60} was read as the model' if args.words else ''
        arguments.error(f'there is no text: write MODEL TEXT, or give --sentences or --file{taken}')
    if args.text_column and not args.file:
        raise InputError('--text_column needs --file')
    return args


def _sentences(args):
    """Yield the texts of the command line, then the file's, stripped."""
    yield from args.sentences or ()
    if args.file is None:
        return
    from model_zoo.app.texts import read_file

    text = None
    for row in read_file(args.file, args.text_column, encoding=args.encoding):
        text = row.text.strip()
        yield text
    if text is None:
        raise InputError(f'{args.file!r} is empty: give a file with one sentence per line')


def _vectors(embedding, sentences, args):
    """Yield (words, vectors) of each sentence, or with ``args.pooling`` its vector."""
    if args.pooling is None:
        return embedding.iter_embedding(sentences, args.oov_way)
    options = args.pooling, args.normalize, args.prompt, args.prompt_name
    return embedding.iter_sentence_vectors(sentences, *options)


def _open(args):
    from .embedding import BertEmbedding

    return BertEmbedding(
        args.model,
        get_ctx(args.gpu),
        args.dtype,
        args.dataset_name,
        args.params_path,
        args.max_seq_length,
        args.batch_size,
        args.sentencepiece,
        engine=engine_of(args.engine, args.dtype, args.file),
        long_texts=args.long_texts,
    )


def _write(args):
    """Write the vectors to a file."""
    from model_zoo.util.display import progress

    from .writers import open_writer

    total, count = None, 0
    if args.file is None or os.path.isfile(args.file):  # a pipe can be read only once
        total = sum(1 for _ in _sentences(args))
    # the file first, to fail before the model is loaded
    with open_writer(args.output) as writer:
        results = _vectors(_open(args), _sentences(args), args)
        for result in progress(results, 'sentences', total=total, leave=True):
            count += 1
            if args.pooling is None:
                writer.words(*result)
            else:
                writer.sentence(result)
    logger.info('sentences in %s: %d', args.output, count)


def _print(args, as_original):
    """Print each sentence as it was given, and its vectors."""
    import numpy as np

    shown = {'threshold': 5}
    if not as_original and sys.stdout.isatty():
        shown.update(precision=4, suppress=True)
        logger.info('--output vectors.npz writes all the numbers')
    elif not as_original:
        shown = {'threshold': sys.maxsize}
    texts, sentences = itertools.tee(_sentences(args))
    with np.printoptions(**shown, legacy='1.21'):  # arrays as the original prints them
        for text, result in zip(texts, _vectors(_open(args), sentences, args)):
            print(f'Text: {text.encode("utf-8", "replace").decode("utf-8")}')  # lone surrogates
            if args.pooling:
                print(f'Sentence embedding: {result!r}')
            else:
                print(f'Tokens embedding: {result[1]}')


def embed(argv=None):
    """Run ``zoo embed``, which has the pipelines' default model."""
    main(argv, 'all-MiniLM-L6-v2', as_original=False)


def main(argv=None, model='bert_12_768_12', as_original=True):
    """Parse the arguments `argv` (None: the process's own) and do what they say."""
    args = _parse(argv, model)
    setup_logging(verbose=args.verbose)
    for name in ('normalize', 'prompt', 'prompt_name'):
        if vars(args)[name] and not args.pooling:
            raise InputError('is for sentence vectors: also give `pooling`', field=name)
    if args.output:
        _write(args)
    else:
        _print(args, as_original)


def console():
    """Run `main` and exit with its status: the console command."""
    sys.exit(run(main))
