"""Learn BERT's vocabulary from text of any language.

    python learn_vocab.py --input_file 'corpus/*.txt' --output_dir vocab --vocab_size 30000
    python learn_vocab.py --kind sentencepiece --input_file 'corpus/*.txt' --output_dir vocab

WordPiece gives ``vocab.txt``, for ``BertTokenizer`` and ``--vocab`` of create_pretraining_data.py;
SentencePiece gives ``spiece.model``, for ``BertSPTokenizer`` and ``--sentencepiece``. Both have
BERT's special tokens. ``learn_vocab.json`` beside it says how well the vocabulary serves the text.
"""

import io
import logging
import os
import sys
import time

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from tqdm import tqdm

from bert.tokenizer import BertSPTokenizer, BertTokenizer
from model_zoo.app import cli
from model_zoo.errors import InputError
from model_zoo.tasks.pretraining import Corpus, matching_files
from model_zoo.tokenization.basic import GluonBasicTokenizer
from model_zoo.tokenization.vocab import VOCAB_NAME, load_vocab, save_vocab
from model_zoo.util.files import atomic_write, make_writable_dir, write_json
from model_zoo.util.lines import read_lines

logger = logging.getLogger('learn_vocab')

SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')  # in the order of Google's files
SAMPLE = 10000  # lines that the vocabulary is measured on


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('--input_file', required=True, help='text in UTF-8; wildcards, separated by commas')
    add('--output_dir', default='.')
    add('--kind', choices=['wordpiece', 'sentencepiece'], default='wordpiece')
    add('--vocab_size', type=int, default=30000, help='tokens, at most; the special ones counted')
    add('--cased', action='store_true', help='keep case and, with wordpiece, accents')
    add = parser.add_argument_group('wordpiece').add_argument
    add('--min_frequency', type=int, default=2, help='of a pair of pieces that becomes one')
    add('--limit_alphabet', type=int, help='keep so many of the most frequent characters')
    add = parser.add_argument_group('sentencepiece').add_argument
    add('--model_type', choices=['unigram', 'bpe'], default='unigram')
    add(
        '--character_coverage',
        type=float,
        default=0.9995,
        help='part of the characters of the text that the vocabulary has; 1 for small alphabets',
    )
    add('--max_sentences', type=int, default=10**7, help='draw so many; they are in memory')
    args = parser.parse_args(argv)
    least = {'min_frequency': 1, 'limit_alphabet': 1, 'max_sentences': 101}  # SentencePiece's
    for name, low in least.items():
        if getattr(args, name) is not None and getattr(args, name) < low:
            raise InputError(f'--{name} {getattr(args, name)}: give {low} or more')
    if args.vocab_size <= len(SPECIAL_TOKENS):
        raise InputError(
            f'--vocab_size {args.vocab_size}: the special tokens are {len(SPECIAL_TOKENS)} already'
        )
    if not 0 < args.character_coverage <= 1:
        raise InputError(
            f'--character_coverage {args.character_coverage}: give a number above 0, up to 1'
        )
    return args


def read_text(corpus):
    """The lines that aren't blank, with a progress bar; InputError if there are none."""
    is_empty = True
    with tqdm(total=corpus.num_bytes, unit='B', unit_scale=True, disable=None) as bar:
        for path in corpus.files:
            for _, line in read_lines(path):
                bar.update(len(line.encode('utf-8')))
                if line.strip():
                    is_empty = False
                    yield line.strip()
    if is_empty:
        raise InputError(f'{", ".join(corpus.files)}: no text to learn a vocabulary from')


def train_wordpiece(args, corpus, vocab_size, special_tokens):
    """Token -> id, of the tokens of at most that many, or of all characters."""
    learner = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    learner.normalizer = normalizers.BertNormalizer(lowercase=not args.cased)
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    limit = {} if args.limit_alphabet is None else {'limit_alphabet': args.limit_alphabet}
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=args.min_frequency,
        special_tokens=special_tokens,
        show_progress=False,
        **limit,
    )
    learner.train_from_iterator(read_text(corpus), trainer)
    return learner.get_vocab()


def learn_wordpiece(args, corpus):
    """Write ``vocab.txt``; returns the path and the tokenizer."""
    special = list(SPECIAL_TOKENS)
    alphabet = train_wordpiece(args, corpus, 1, special)
    if len(alphabet) > args.vocab_size:
        raise InputError(
            f'--vocab_size {args.vocab_size} is too small: the characters of the text alone, at '
            f'the begin of a word and within one, make {len(alphabet)} tokens; give more, or a '
            '--limit_alphabet'
        )
    # Characters within words get their ids in the order of a hash, and with them what is learned
    # changes from run to run; those that are named come in the order of their names.
    within = sorted(token for token in alphabet if token.startswith('##') and len(token) == 3)
    ids = train_wordpiece(args, corpus, args.vocab_size, special + within)
    vocab = load_vocab(sorted(ids, key=ids.get))
    path = save_vocab(vocab, os.path.join(args.output_dir, VOCAB_NAME))
    return path, BertTokenizer(path, do_lower_case=not args.cased)


def learn_sentencepiece(args, corpus):
    """Write ``spiece.model``; returns the path and the tokenizer."""
    import sentencepiece

    basic = GluonBasicTokenizer(not args.cased)  # as BertSPTokenizer cuts text before the model
    model, failures = io.BytesIO(), []

    def read_words():
        try:
            for line in read_text(corpus):
                yield ' '.join(basic.tokenize(line))
        except (Exception, KeyboardInterrupt) as error:
            failures.append(error)  # the library makes RuntimeErrors of them
            raise

    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=read_words(),
            model_writer=model,
            vocab_size=args.vocab_size,
            model_type=args.model_type,
            character_coverage=args.character_coverage,
            input_sentence_size=args.max_sentences,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            pad_piece='[PAD]',
            unk_piece='[UNK]',
            control_symbols=list(SPECIAL_TOKENS[2:]),
            minloglevel=2,
        )
    except RuntimeError as error:
        if failures:
            raise failures[0] from None
        # a size that the text doesn't allow
        raise InputError(
            f'SentencePiece cannot learn {args.vocab_size} tokens from {args.input_file!r}: '
            f'{str(error).strip().split("] ")[-1] or "its text has too few words"}'
        ) from error
    path = os.path.join(args.output_dir, 'spiece.model')
    with atomic_write(path, 'wb') as file:
        file.write(model.getvalue())
    return path, BertSPTokenizer(path, lower=not args.cased)


def measure(tokenizer, corpus):
    """How the vocabulary serves the first lines of the text."""
    lines = []
    for path in corpus.files:
        for _, line in read_lines(path):
            if line.strip() and len(lines) < SAMPLE:
                lines.append(line.strip())
        if len(lines) == SAMPLE:
            break
    encoded = tokenizer.encode_batch(lines, pad=False, add_special_tokens=False)
    pieces = sum(map(len, encoded.input_ids))
    words = sum(map(len, encoded.words))
    unknown = sum(int((ids == tokenizer.unk_token_id).sum()) for ids in encoded.input_ids)
    return {
        'lines': len(lines),
        'words': words,
        'pieces_per_word': pieces / max(words, 1),
        'unknown_pieces': unknown / max(pieces, 1),
    }


def main(argv=None):
    args = parse_arguments(argv)
    cli.setup_logging()
    corpus = Corpus(matching_files(args.input_file))
    args.output_dir = make_writable_dir(os.path.expanduser(args.output_dir))
    started = time.perf_counter()
    learn = {'wordpiece': learn_wordpiece, 'sentencepiece': learn_sentencepiece}[args.kind]
    path, tokenizer = learn(args, corpus)
    size = len(tokenizer.vocab)
    if size < args.vocab_size:
        logger.warning('the text gives %d tokens only, of %d', size, args.vocab_size)
    results = {
        'kind': args.kind,
        'files': corpus.files,
        'bytes': corpus.num_bytes,
        'vocab_size': size,
        'seconds': time.perf_counter() - started,
        'measured': measure(tokenizer, corpus),
    }
    write_json(os.path.join(args.output_dir, 'learn_vocab.json'), results)
    logger.info(
        '%s: %d tokens in %.1f s; %.2f pieces a word, %.2f%% of them unknown',
        path,
        size,
        results['seconds'],
        results['measured']['pieces_per_word'],
        100 * results['measured']['unknown_pieces'],
    )


if __name__ == '__main__':
    sys.exit(cli.run(main))
