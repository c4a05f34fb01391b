"""Text to samples for pre-training: masked tokens, and a second segment that may not follow.

Sources: Devlin et al. 2018, appendix A.2; ``create_pretraining_data.py`` of google-research/bert
and of GluonNLP 0.10, whose samples these are in distribution. What differs:

- A document of which nothing follows takes its second segment from the documents of the same part
  of the corpus, not of all of it, so that memory doesn't grow with the corpus.
- The end of a file ends a document.
- Of whole words: a first piece of the second segment that continues a word (its beginning having
  been cut off) isn't joined to the last word of the first segment.

A sample is four places in the tokens of a part, until its ids are laid out with many others'.
"""

import bisect
import dataclasses
import itertools
import logging
import random
import sys

import numpy as np

from ...errors import InputError
from .masking import draw_positions, replace_masked
from .shards import Samples

__all__ = ['SampleMaker', 'SampleOptions']

logger = logging.getLogger(__name__)

_LINES = 4096  # tokenized together
_NUMBERS = 2**18  # of a batch of rows that are laid out together; they stay in the cache


@dataclasses.dataclass(frozen=True)
class SampleOptions:
    """How samples are made; the defaults are GluonNLP's.

    Parameters
    ----------
    max_seq_length : int
        Most tokens of a sample, with [CLS] and two [SEP].
    max_predictions_per_seq : int
        Most masks of a sample.
    dupe_factor : int
        How often the text is gone through, with other masks and other second segments.
    masked_lm_prob : float
        Which part of the tokens is masked.
    short_seq_prob : float
        Which part of the documents is cut into shorter samples.
    whole_word_mask : bool
        Mask all pieces of a word, or none.

    Raises
    ------
    InputError
        If a value can't be.
    """

    max_seq_length: int = 512
    max_predictions_per_seq: int = 80
    dupe_factor: int = 5
    masked_lm_prob: float = 0.15
    short_seq_prob: float = 0.1
    whole_word_mask: bool = False

    def __post_init__(self):
        least = {'max_seq_length': 5, 'max_predictions_per_seq': 1, 'dupe_factor': 1}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise InputError(f'{name} {getattr(self, name)}: give {low} or more')
        if not 0 < self.masked_lm_prob <= 1:
            raise InputError(f'masked_lm_prob {self.masked_lm_prob}: give a number above 0, up to 1')
        if not 0 <= self.short_seq_prob <= 1:
            raise InputError(f'short_seq_prob {self.short_seq_prob}: give a number from 0 to 1')

    def warn_of_lost_masks(self):
        """Log a warning if `max_predictions_per_seq` cuts the masks of a full sequence."""
        wanted = round(self.max_seq_length * self.masked_lm_prob)
        if wanted > self.max_predictions_per_seq:
            logger.warning(
                'max_predictions_per_seq %d is too small: masked_lm_prob %g makes %d masks in a '
                'sequence of %d tokens, of which %.0f%% are lost; give %d',
                self.max_predictions_per_seq,
                self.masked_lm_prob,
                wanted,
                self.max_seq_length,
                100 * (1 - self.max_predictions_per_seq / wanted),
                wanted,
            )


class SampleMaker:
    """Makes the samples of a part of a corpus; the same ones for the same seed, wherever it runs.

    Parameters
    ----------
    corpus : Corpus
    tokenizer : object
        With ``encode_batch``, ``is_first_subword`` and ``vocab``, as BERT's.
    options : SampleOptions
    """

    def __init__(self, corpus, tokenizer, options):
        self.corpus = corpus
        self.options = options
        self.vocab = vocab = tokenizer.vocab
        self._tokenizer = tokenizer
        self._cls, self._sep = vocab[vocab.cls_token], vocab[vocab.sep_token]
        for role in ('mask_token', 'padding_token'):
            if getattr(vocab, role, None) is None:
                raise InputError(f'the vocabulary ({len(vocab)} tokens) names no {role}')
        self._mask, self._pad = vocab[vocab.mask_token], vocab[vocab.padding_token]
        self._begins_word = None
        if options.whole_word_mask:
            self._begins_word = np.array([tokenizer.is_first_subword(t) for t in vocab.idx_to_token])

    def make(self, start, stop, *seed):
        """Samples of the documents between two places of the corpus, in random order.

        Parameters
        ----------
        start, stop : int
            See :meth:`Corpus.documents`.
        *seed : int
            With the options, all that the samples depend on.

        Returns
        -------
        Samples or None
            None if no document belongs to the part.

        Raises
        ------
        InputError
            If the text can't be read, or the corpus has only one document.
        """
        seed = [number % 2**32 for number in seed]
        if 'sentencepiece' in sys.modules:  # whose segmentation may be a random one
            state = np.random.SeedSequence([*seed, len(seed)]).generate_state(1)[0]
            sys.modules['sentencepiece'].set_random_generator_seed(int(state) % 2**31)
        tokens, documents = self._tokenize(self.corpus.documents(start, stop))
        if not documents:
            return None
        strangers = []
        if len(documents) == 1:  # what doesn't follow has to come from somewhere
            tokens, strangers = self._with_stranger(tokens, start, stop)
        parts = []
        for dupe in range(self.options.dupe_factor):
            sequence = np.random.SeedSequence([*seed, dupe])
            rng = np.random.default_rng(sequence)
            drawing = random.Random(int(sequence.generate_state(1, np.uint64)[0]))
            pairs = draw_pairs(documents, strangers, self.options, drawing)
            rows = max(1, _NUMBERS // self.options.max_seq_length)
            for first in range(0, len(pairs), rows):
                parts.append(self._lay_out(tokens, pairs[first : first + rows], rng))
        samples = Samples.concatenate(parts)
        return samples.take(rng.permutation(samples.count))

    def _tokenize(self, documents):
        """Ids of all tokens, and for each document the places where its sentences begin and end."""
        ids, bounds, place = [np.zeros(0, np.int32)], [], 0
        lines = ((number, line) for number, document in enumerate(documents) for line in document)
        last = None
        while True:
            batch = list(itertools.islice(lines, _LINES))
            if not batch:
                break
            texts = [line for _, line in batch]
            found = self._tokenizer.encode_batch(texts, pad=False, add_special_tokens=False)
            ids += found.input_ids
            for (number, _), length in zip(batch, found.valid_length.tolist()):
                if length:
                    if number != last:
                        bounds.append([place])
                        last = number
                    place += length
                    bounds[-1].append(place)
        return np.concatenate(ids), bounds

    def _with_stranger(self, tokens, start, stop):
        """Tokens with those of a document of another part behind them, and its places."""
        for sentences in self.corpus.documents_outside(start, stop):
            others, found = self._tokenize([sentences])
            if found:
                bounds = [len(tokens) + place for place in found[0]]
                return np.concatenate([tokens, others]), [bounds]
        raise InputError(
            f'{", ".join(self.corpus.files)}: the corpus has only one document, and '
            'next sentence prediction needs sentences of another one: put blank lines between '
            'documents'
        )

    def _lay_out(self, tokens, pairs, rng):
        """Samples of places in the tokens."""
        options = self.options
        length, most = options.max_seq_length, options.max_predictions_per_seq
        (start_a, count_a, start_b, count_b), labels = cut_pairs(pairs, length - 3, rng)
        valid = count_a + count_b + 3
        columns = np.arange(length)
        in_first = columns <= count_a[:, None]
        source = np.where(in_first, start_a[:, None] - 1, (start_b - count_a - 2)[:, None])
        ids = tokens.take(source + columns, mode='clip')
        rows = np.arange(len(pairs))
        ids[:, 0] = self._cls
        ids[rows, count_a + 1] = ids[rows, valid - 1] = self._sep
        is_text = columns < valid[:, None]
        ids[~is_text] = self._pad
        segments = is_text & (columns > count_a[:, None] + 1)
        counts = np.clip(np.rint(valid * options.masked_lm_prob), 1, most).astype(int)
        candidates = is_text & (ids != self._cls) & (ids != self._sep)
        begins_word = None if self._begins_word is None else self._begins_word[ids]
        positions = draw_positions(candidates, counts, most, rng, begins_word)
        masked_ids, drawn = replace_masked(ids, positions, self._mask, len(self.vocab), rng)
        return Samples(
            ids,
            segments.astype(np.int32),
            np.where(drawn, positions, 0).astype(np.int32),
            masked_ids,
            drawn.astype(np.float32),
            labels.astype(np.int32),
            valid.astype(np.int32),
        )


def draw_pairs(documents, strangers, options, drawing):
    """Go through the documents once, and draw pairs of segments.

    Parameters
    ----------
    documents : list of list of int
        For each, the places where its sentences begin, and its end.
    strangers : list of list of int
        More documents that second segments may come from.
    options : SampleOptions
    drawing : random.Random

    Returns
    -------
    numpy.ndarray, shape (pairs, 5), int64
        Begin and end of the first segment and of the second, and 1 where that is a random one.
    """
    chance, room = drawing.random, options.max_seq_length - 3
    pool = documents + strangers
    pairs = []
    for number, bounds in enumerate(documents):
        target = room
        if chance() < options.short_seq_prob:
            target = drawing.randint(2, room)
        begin, last = 0, len(bounds) - 1
        while begin < last:
            # sentences up to the one that reaches the target, cut in two at one of them
            end = bisect.bisect_left(bounds, bounds[begin] + target, begin + 1, last)
            middle = begin + 1
            if end - begin > 2:
                middle += int(chance() * (end - begin - 1))
            first = bounds[begin], bounds[middle]
            if end - begin > 1 and chance() >= 0.5:
                pairs.append((*first, bounds[middle], bounds[end], 0))
                begin = end
                continue
            other = int(chance() * (len(pool) - 1))
            other = pool[other + (other >= number)]  # any but this one
            start = int(chance() * (len(other) - 1))
            wanted = max(1, target - (first[1] - first[0]))
            stop = bisect.bisect_left(other, other[start] + wanted, start + 1, len(other) - 1)
            pairs.append((*first, other[start], other[stop], 1))
            begin = middle  # what of the chunk hasn't been used comes again
    return np.array(pairs, np.int64)


def cut_pairs(pairs, room, rng):
    """Cut pairs of segments to `room` tokens, as if by one token after the other.

    The longer segment loses one, the second at equal lengths, at its begin or at its end by chance.

    Returns
    -------
    numpy.ndarray, shape (4, pairs)
        Begin and count of the first segment, and of the second.
    numpy.ndarray, shape (pairs,)
        Whether the second one is random.
    """
    start_a, end_a, start_b, end_b, labels = pairs.T
    count_a, count_b = end_a - start_a, end_b - start_b
    too_long = count_a + count_b > room
    left_a = np.maximum(np.minimum(count_a, (room + 1) // 2), room - count_b)
    left_a = np.where(too_long, left_a, count_a)
    left_b = np.where(too_long, room - left_a, count_b)
    start_a = start_a + rng.binomial(count_a - left_a, 0.5)
    start_b = start_b + rng.binomial(count_b - left_b, 0.5)
    return np.stack([start_a, left_a, start_b, left_b]), labels
