"""Learn BERT's vocabulary from text of any language.

    python learn_vocab.py --input_file 'corpus/*.txt' --output_dir vocab --vocab_size 30000
    python learn_vocab.py --kind sentencepiece --input_file 'corpus/*.txt' --output_dir vocab

WordPiece writes ``vocab.txt``, for ``BertTokenizer`` and for ``--vocab`` of
create_pretraining_data.py. SentencePiece writes ``spiece.model``, for ``BertSPTokenizer`` and
``--sentencepiece``. Both have BERT's special tokens. ``learn_vocab.json`` beside it says how well
the vocabulary fits the text.
"""

import functools
import itertools
import logging
import os
import time

from tqdm import tqdm

from model_zoo.app import cli
from model_zoo.app.arguments import add_workers_arguments
from model_zoo.errors import InputError
from model_zoo.util.choices import BERT_TOKENS
from model_zoo.util.files import output_folder, write_json
from model_zoo.util.reading import read_lines

logger = logging.getLogger('learn_vocab')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('--input_file', required=True, help='text in UTF-8; wildcards and commas for several files')
    add('--output_dir', default='.')
    add('--kind', choices=['wordpiece', 'sentencepiece'], default='wordpiece')
    add('--vocab_size', type=int, default=30000, help='in tokens, including special tokens')
    add('--cased', action='store_true', help='keep case, and with wordpiece also accents')
    add = parser.add_argument_group('wordpiece').add_argument
    add('--min_frequency', type=int, default=2, help='minimum frequency of a pair to merge')
    add('--limit_alphabet', type=int, help='keep only this many characters, the most frequent ones')
    add = parser.add_argument_group('sentencepiece').add_argument
    add('--model_type', choices=['unigram', 'bpe'], default='unigram')
    add(
        '--character_coverage',
        type=float,
        default=0.9995,
        help="share of the text's characters that the vocabulary must cover; 1 for small alphabets",
    )
    add('--max_sentences', type=int, default=10**7, help='maximum number of lines in memory')
    group = parser.add_argument_group(
        'several processes or machines',
        'With --num_workers or --ray they split the text in words first, into OUTPUT_DIR/parts; '
        'the vocabulary is the same. Parts that an earlier run has finished are left out.',
    )
    add_workers_arguments(group.add_argument)
    args = parser.parse_args(argv)
    least = {'min_frequency': 1, 'limit_alphabet': 1, 'max_sentences': 101}  # SentencePiece's
    for name, low in least.items():
        if getattr(args, name) is not None and getattr(args, name) < low:
            raise InputError(f'must be at least {low}, not {getattr(args, name)}', field=name)
    if args.vocab_size <= len(BERT_TOKENS):
        raise InputError(
            f'{args.vocab_size}: the special tokens are {len(BERT_TOKENS)} already',
            field='vocab_size',
        )
    if not 0 < args.character_coverage <= 1:
        raise InputError(
            f'must be greater than 0 and at most 1, not {args.character_coverage:g}',
            field='character_coverage',
        )
    return args


def read_text(corpus):
    """Yield the lines that aren't blank, with a progress bar; InputError if there are none."""
    is_empty = True
    with tqdm(total=corpus.num_bytes, unit='B', unit_scale=True, disable=None) as bar:
        for _, line in itertools.chain.from_iterable(map(read_lines, corpus.files)):
            bar.update(len(line.encode('utf-8')))
            if line.strip():
                is_empty = False
                yield line.strip()
    if is_empty:
        raise InputError(f'{", ".join(corpus.files)}: no text to learn a vocabulary from')


def learn(args, corpus, folder):
    """Write the vocabulary; returns the path and the tokenizer."""
    from bert.tokenizer import BertSPTokenizer, BertTokenizer
    from model_zoo.app.many_files import prepare_text
    from model_zoo.tokenization.learn import learn_sentence_pieces, learn_word_pieces

    lower, is_prepared = not args.cased, args.num_workers is not None or args.ray is not None
    read = functools.partial(read_text, corpus)
    if is_prepared:
        next(read())  # InputError without any text
        read = prepare_text(args, args.kind == 'wordpiece', lower)
    if args.kind == 'wordpiece':
        path = learn_word_pieces(
            read, args.vocab_size, folder, lower, args.min_frequency, args.limit_alphabet
        )
        return path, BertTokenizer(path, do_lower_case=lower)
    path = learn_sentence_pieces(
        read,
        args.vocab_size,
        os.path.join(folder, 'spiece.model'),
        lower,
        args.model_type,
        args.character_coverage,
        args.max_sentences,
        is_split=is_prepared,
    )
    return path, BertSPTokenizer(path, lower=lower)


def main(argv=None):
    args = parse_arguments(argv)
    from model_zoo.tasks.pretraining import Corpus, matching_files

    cli.setup_logging()
    corpus = Corpus(matching_files(args.input_file))
    with output_folder(args.output_dir) as folder:
        learn_and_report(args, corpus, folder)
    logger.info('the vocabulary is in %s', args.output_dir)


def learn_and_report(args, corpus, folder):
    from model_zoo.tokenization.learn import measure_vocab

    started = time.perf_counter()
    path, tokenizer = learn(args, corpus, folder)
    size = len(tokenizer.vocab)
    if size < args.vocab_size:
        logger.warning('the text is enough for only %d of %d tokens', size, args.vocab_size)
    results = {
        'kind': args.kind,
        'files': corpus.files,
        'bytes': corpus.num_bytes,
        'vocab_size': size,
        'seconds': time.perf_counter() - started,
        'measured': measure_vocab(tokenizer, read_text(corpus)),
    }
    write_json(os.path.join(folder, 'learn_vocab.json'), results)
    logger.info(
        '%s: %d tokens in %.1f s; %.2f pieces a word, %.2f%% of them unknown',
        os.path.basename(path),
        size,
        results['seconds'],
        results['measured']['pieces_per_word'],
        100 * results['measured']['unknown_pieces'],
    )


if __name__ == '__main__':
    cli.run_script(main)
