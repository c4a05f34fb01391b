"""Vocabularies that are learned from texts."""

import collections
import io
import itertools
import logging
import os
import re

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from ..errors import InputError
from ..pretrained.files import BPE_NAMES
from ..util.choices import BERT_TOKENS
from ..util.files import atomic_write, make_writable_dir
from ..util.reading import read_lines
from .basic import GluonBasicTokenizer
from .vocab import load_vocab, save_vocab

__all__ = ['learn_byte_pairs', 'learn_sentence_pieces', 'learn_word_pieces']


_log = logging.getLogger(__name__)


#: most characters of a word that a vocabulary is learned from: the libraries' time and memory grow
#: at least with the square of a word's length
LONGEST_WORD = 1000

_REPEATS = 1000  # of a word in a line
_SPACES = r'\t\n\r \x0b\x0c\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000'
_STOPS = r'!-/:-@\[-`{-~\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f'
_IDEOGRAPHS = r'\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df'
# characters within a word: for BERT; for GPT-2: letters and digits, other characters, or spaces
_BERT_RUN = re.compile(rf'[^{_SPACES}{_STOPS}{_IDEOGRAPHS}]+')
_GPT2_RUN = re.compile(rf'[^\W_]+|[{_SPACES}]+|(?:[^\w{_SPACES}]|_)+')


class _ShortWords:
    """Lines without the words beyond `LONGEST_WORD`, with a warning at the first."""

    def __init__(self, run):
        self._run, self._has_warned = run, False

    def __call__(self, lines):
        for line in lines:
            yield self._run.sub(self._keep, line) if len(line) > LONGEST_WORD else line

    def _keep(self, run):
        word = run.group()
        if len(word) <= LONGEST_WORD:
            return word
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                'words of more than %d characters are left out, such as one of %d: %.40s...',
                LONGEST_WORD,
                len(word),
                word,
            )
        return ' '


def learn_byte_pairs(path, size, folder, special_tokens=('<|endoftext|>',)):
    """Learn a byte-level encoding such as GPT-2's from a text, and write its two files.

    Returns the path of ``vocab.json``; ``merges.txt`` is beside it.

    Parameters
    ----------
    path : str or os.PathLike
        The text, in UTF-8. Words beyond `LONGEST_WORD` are left out, with one warning.
    size : int
        Maximum number of tokens: the 256 bytes, the special tokens and the merged pairs.
    folder : str or os.PathLike
        Created if it doesn't exist.
    special_tokens : sequence of str
        Tokens that never result from splitting a text.
    """
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    least = len(alphabet) + len(special_tokens) + 1
    if size < least:
        raise InputError(f'a vocabulary of {size} byte pairs is too small: use at least {least}')
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(special_tokens),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    lines = _ShortWords(_GPT2_RUN)(line for _, line in read_lines(path))
    tokenizer.train_from_iterator(lines, trainer)
    if tokenizer.get_vocab_size() < least:
        raise InputError(f'{str(path)!r} has nothing to learn byte pairs from')
    tokenizer.model.save(make_writable_dir(folder))
    return os.path.join(folder, next(iter(BPE_NAMES)))


def count_words(lines, lower=True):
    """Count the words that `learn_word_pieces` would learn from; counts of texts can be added.

    Words beyond `LONGEST_WORD` are left out, with one warning.
    """
    normalizer, splitter = _word_piece_steps(lower)
    counts = collections.Counter()
    for line in _ShortWords(_BERT_RUN)(lines):
        words = splitter.pre_tokenize_str(normalizer.normalize_str(line))
        counts.update(word for word, _ in words)
    return counts


def _word_piece_steps(lower):
    return normalizers.BertNormalizer(lowercase=lower), pre_tokenizers.BertPreTokenizer()


def _repeated(counts):
    """Yield lines with each word `count` times, as the library counts by itself."""
    for word, count in counts.items():
        whole, rest = divmod(count, _REPEATS)
        if whole:
            line = ' '.join([word] * _REPEATS)
            yield from itertools.repeat(line, whole)
        yield ' '.join([word] * rest)


def learn_word_pieces(read, vocab_size, path, lower=True, min_frequency=2, limit_alphabet=None):
    """Learn the word pieces of a BERT, write them as ``vocab.txt``, and return the path.

    Parameters
    ----------
    read : callable or collections.Counter
        ``read()`` iterates over the text's lines; it is called twice. Or the result of
        `count_words`, which leads to the same vocabulary. Words beyond `LONGEST_WORD` are left out.
    vocab_size : int
        Maximum number of tokens, including `BERT_TOKENS`.
    lower : bool
        Whether texts are lower-cased and lose their accents.
    min_frequency : int
        Minimum frequency of a pair of pieces to merge.
    limit_alphabet : int, optional
        Keep only this many of the most frequent characters.
    """
    is_counted = isinstance(read, collections.Counter)
    without_long = _ShortWords(_BERT_RUN)
    limit = {} if limit_alphabet is None else {'limit_alphabet': limit_alphabet}

    def train(size, special_tokens):
        learner = Tokenizer(models.WordPiece(unk_token='[UNK]'))
        if is_counted:
            learner.pre_tokenizer, lines = pre_tokenizers.CharDelimiterSplit(' '), _repeated(read)
        else:
            learner.normalizer, learner.pre_tokenizer = _word_piece_steps(lower)
            lines = without_long(read())
        trainer = trainers.WordPieceTrainer(
            vocab_size=size,
            min_frequency=min_frequency,
            special_tokens=special_tokens,
            show_progress=False,
            **limit,
        )
        learner.train_from_iterator(lines, trainer)
        return learner.get_vocab()

    special = list(BERT_TOKENS)
    alphabet = train(1, special)  # all characters, at least
    if len(alphabet) > vocab_size:
        raise InputError(
            f'`vocab_size` {vocab_size} is too small: the characters of the text alone, at the '
            f'beginning of a word and within one, are {len(alphabet)} tokens; use more, or a '
            '`limit_alphabet`'
        )
    # Characters within words get their ids in the order of a hash, and with them what is learned
    # changes from run to run; those that are named come in the order of their names.
    within = sorted(token for token in alphabet if token.startswith('##') and len(token) == 3)
    ids = train(vocab_size, special + within)
    return save_vocab(load_vocab(sorted(ids, key=ids.get)), path)


def split_words(lines, lower=True):
    """Yield the lines for SentencePiece: words with spaces between.

    Words beyond `LONGEST_WORD` are left out, with one warning.
    """
    basic = GluonBasicTokenizer(lower)  # BertSPTokenizer splits texts with it before the model
    for line in _ShortWords(_BERT_RUN)(lines):
        yield ' '.join(basic.tokenize(line))


def learn_sentence_pieces(
    read,
    vocab_size,
    path,
    lower=True,
    model_type='unigram',
    character_coverage=0.9995,
    max_sentences=10**7,
    is_split=False,
):
    """Learn a SentencePiece model with BERT's special tokens, write it, and return the path.

    See `learn_word_pieces` for `read`, `vocab_size`, `path` and `lower`. `max_sentences` is the
    maximum number of lines that are sampled into memory; `is_split` means that the lines come from
    `split_words`.
    """
    import sentencepiece

    model, failures = io.BytesIO(), []

    def read_words():
        try:
            yield from read() if is_split else split_words(read(), lower)
        except (Exception, KeyboardInterrupt) as error:
            failures.append(error)  # the library turns them into RuntimeErrors
            raise

    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=read_words(),
            model_writer=model,
            vocab_size=vocab_size,
            model_type=model_type,
            character_coverage=character_coverage,
            input_sentence_size=max_sentences,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            pad_piece='[PAD]',
            unk_piece='[UNK]',
            control_symbols=list(BERT_TOKENS[2:]),
            minloglevel=2,
        )
    except RuntimeError as error:
        if failures:
            raise failures[0] from None
        raise InputError(
            f'SentencePiece cannot learn {vocab_size} tokens from this text: '
            f'{str(error).strip().split("] ")[-1] or "it has too few words"}'
        ) from error
    with atomic_write(path, 'wb') as file:
        file.write(model.getvalue())
    return os.fspath(path)


def measure_vocab(tokenizer, lines, sample=10000):
    """Measure how well a vocabulary serves a text.

    Returns a dict about the first `sample` lines: numbers of ``lines`` and ``words``,
    ``pieces_per_word``, and the share of ``unknown_pieces``.
    """
    lines = list(itertools.islice(lines, sample))
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
