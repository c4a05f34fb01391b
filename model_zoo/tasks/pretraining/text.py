"""Text to samples for pre-training: masked tokens, and a second segment that may be random.

Sources: Devlin et al. 2018, section 3.1 and appendix A.2; ``create_pretraining_data.py`` of
google-research/bert and of GluonNLP 0.10; for full sentences Liu et al. 2019 (RoBERTa), section
4.2. The samples have the same distribution as there, but a document of which nothing follows takes
its second segment from the same part of the corpus, which bounds the memory, and the end of a file
ends a document.
"""

import bisect
import dataclasses
import itertools
import random
import sys

import numpy as np

from ...errors import InputError, reporting
from ...tokenization.chunks import SentenceEncoder
from ...util.reading import decode_at
from ...util.remote import file_size, is_file, matching, open_binary
from .files import Samples

_LONGEST_DOCUMENT = 2**25  # bytes; a longer one lacks its blank lines, and would fill the memory


def matching_files(patterns):
    """Return the files that wildcards match, sorted, each once."""
    files = set()
    for pattern in [*filter(None, map(str.strip, patterns.split(',')))] or ['']:
        with reporting(f'cannot read {pattern!r}'):
            paths = matching(pattern)
        for path in paths:
            if not is_file(path):
                raise InputError(f'{path!r} is not a file; name files, such as {path}/*')
        if not paths:
            raise InputError(f'no file matches {pattern!r}')
        files.update(paths)
    return sorted(files)


def describe_files(patterns):
    """Return the number of files and bytes, by which a resumed training recognizes its data."""
    files = matching_files(patterns)
    return f'{len(files)} files of {sum(map(file_size, files))} bytes'


class Corpus:
    """Documents in text files: one sentence per line, blank lines between documents.

    A place in the corpus is a number of bytes, counted over all files. The end of a file also ends
    a document (in the originals, documents continue in the next file).
    """

    def __init__(self, files):
        self.files = list(files)
        with reporting(f'cannot read {", ".join(self.files)}'):
            sizes = [file_size(path) for path in self.files]
        self._places = list(itertools.accumulate(sizes, initial=0))
        self.num_bytes = self._places[-1]

    def check_pairs(self):
        """Raise InputError unless there are two documents: one with next sentences, one without."""
        if len([*itertools.islice(self.documents(0, self.num_bytes), 2)]) < 2:
            problem = 'next sentences need two documents: put blank lines between documents'
            raise InputError(f'{", ".join(self.files)}: {problem}')

    def span(self, number, count):
        """Return begin and end of part `number` of `count` about equal ones."""
        return self.num_bytes * number // count, self.num_bytes * (number + 1) // count

    def documents(self, start, stop):
        """Read the documents that belong to a part of the corpus.

        A document belongs to the part with the start of the last blank line before it, or of its
        file. So each document is in exactly one part.
        """
        for path, (first, end) in zip(self.files, itertools.pairwise(self._places)):
            if first < stop and start < end:
                with reporting(f'cannot read {path!r}'):
                    yield from _documents(path, max(start - first, 0), stop - first)


def _documents(path, start, stop):
    with open_binary(path) as file:
        position, is_inside = start, start == 0
        if start:  # a line that began before belongs to the part before
            file.seek(start - 1)
            position = start - 1 + len(file.readline())
        sentences, begin = [], position
        # lines end at a newline only, as everywhere here; the limit is for files without any
        for line in iter(lambda: file.readline(_LONGEST_DOCUMENT), b''):
            sentence = decode_at(path, position, line).strip()
            if not sentence:
                if sentences:
                    yield sentences
                sentences, begin, is_inside = [], position, position < stop
            elif is_inside:
                sentences.append(sentence)
            if not is_inside and position >= stop:
                return
            position += len(line)
            if sentences and position - begin >= _LONGEST_DOCUMENT:
                problem = f'{_LONGEST_DOCUMENT >> 20} MB from byte {begin} on have no blank line'
                raise InputError(f'{path}: {problem}: put blank lines between documents')
        if sentences:
            yield sentences


@dataclasses.dataclass(frozen=True)
class SampleOptions:
    """Options of samples; the defaults are GluonNLP's.

    Parameters
    ----------
    max_seq_length : int
        Most tokens of a sample, with [CLS] and two [SEP].
    max_predictions_per_seq : int
        Most masks of a sample.
    dupe_factor : int
        Passes over the text, each with new masks and second segments.
    masked_lm_prob : float
        Share of the tokens to mask.
    short_seq_prob : float
        Share of the documents to cut into shorter samples.
    whole_word_mask : bool
        Mask all pieces of a word, or none.
    next_sentence : bool
        Pairs of segments, the second of which may be a random one. False: full sentences, packed
        up to the longest sample, over the ends of documents; `short_seq_prob` has no meaning then.
    """

    max_seq_length: int = 512
    max_predictions_per_seq: int = 80
    dupe_factor: int = 5
    masked_lm_prob: float = 0.15
    short_seq_prob: float = 0.1
    whole_word_mask: bool = False
    next_sentence: bool = True


_NUMBERS = 2**16  # of a batch of rows that are filled together; they stay in the cache


class SampleMaker:
    """Make the samples of a part of a corpus; equal seeds make equal samples."""

    def __init__(self, corpus, tokenizer, options):
        self.corpus, self.options, self.vocab = corpus, options, tokenizer.vocab
        # what samples depend on, besides the vocabulary and the options
        is_fixed = tokenizer.splits_at_spaces
        self.splitting = [type(tokenizer).__name__, tokenizer.do_lower_case, not is_fixed]
        self._encoder = SentenceEncoder(tokenizer)
        self._cls, self._sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        self._mask, self._pad = tokenizer.mask_token_id, tokenizer.pad_token_id
        if None in (self._cls, self._sep, self._mask, self._pad):
            raise InputError('the vocabulary lacks a cls_token, sep_token, mask_token or pad_token')
        if options.next_sentence and tokenizer.pair_size() != 3:
            problem = f'a {type(tokenizer).__name__} has no pairs as BERT has them'
            raise InputError(f'{problem}: use `masked_lm_only`')
        # what joins the sentences of a document, where words of a text's begin are other tokens
        self._prefix = tokenizer.word_prefix
        self._begins_word = None
        if options.whole_word_mask:
            begins = map(tokenizer.is_first_subword, self.vocab.idx_to_token)
            self._begins_word = np.fromiter(begins, bool, len(self.vocab))

    def make(self, start, stop, *seed):
        """Make the samples of the documents between two places of the corpus, in random order."""
        # the length keeps (seed,) and (seed, 0) apart, which NumPy takes for the same entropy
        seed, options = [len(seed), *(number % 2**32 for number in seed)], self.options
        if 'sentencepiece' in sys.modules:  # whose segmentation may be random
            state = np.random.SeedSequence(seed).generate_state(1)[0]
            sys.modules['sentencepiece'].set_random_generator_seed(int(state) % 2**31)
        tokens, documents = self._tokenize(self.corpus.documents(start, stop))
        if not documents:
            return Samples.empty()
        rng = np.random.default_rng(seed)
        length = options.max_seq_length
        if options.next_sentence:
            tokens, pairs = self._draw_pairs(tokens, documents, start, stop, rng)
        else:  # pairs without the second segment and its separator
            tokens, spans = pack_sentences(tokens, documents, length - 2, self._sep)
            pairs = np.hstack([spans, np.full((len(spans), 3), (0, -1, 0))])
            pairs = np.concatenate([pairs] * options.dupe_factor)
        rng.shuffle(pairs)
        samples = Samples.empty(len(pairs), length, options.max_predictions_per_seq)
        rows = max(1, _NUMBERS // length)
        for first in range(0, len(pairs), rows):
            part = slice(first, first + rows)
            views = Samples(*(array[part] for array in samples))
            self._lay_out(views, tokens, pairs[part], rng)
            self._mask_words(views, rng)
        return samples

    def _tokenize(self, documents):
        """Return the ids of all tokens, and where the sentences of each document begin and end."""
        sentences, sizes = [], []
        for document in documents:
            sentences += document[:1] + [self._prefix + word for word in document[1:]]
            sizes.append(len(document))
        ids, counts = self._encoder.encode(sentences)
        counts, position, all_bounds = iter(counts), 0, []
        for size in sizes:
            counted = filter(None, itertools.islice(counts, size))
            bounds = list(itertools.accumulate(counted, initial=position))
            position = bounds[-1]
            if len(bounds) > 1:
                all_bounds.append(bounds)
        return ids, all_bounds

    def _draw_pairs(self, tokens, documents, start, stop, rng):
        """Return the tokens, and the places of pairs of segments in them."""
        pool = documents
        if len(documents) == 1:  # what doesn't follow has to come from somewhere: another part
            corpus, here = self.corpus, len(tokens)
            for document in itertools.chain(
                corpus.documents(stop, corpus.num_bytes), corpus.documents(0, start)
            ):
                ids, found = self._tokenize([document])
                if found:
                    pool = [*documents, [here + place for place in found[0]]]
                    tokens = np.concatenate([tokens, ids])
                    break
            else:
                corpus.check_pairs()
        drawing = random.Random(int(rng.integers(2**63)))
        rounds = range(self.options.dupe_factor)
        pairs = [draw_pairs(documents, pool, self.options, drawing) for _ in rounds]
        return tokens, np.concatenate(pairs)

    def _lay_out(self, samples, tokens, pairs, rng):
        """Write samples of places in the tokens, with special tokens and without masks."""
        ids, length = samples.input_ids, self.options.max_seq_length
        (start_a, count_a, start_b, count_b), labels = cut_pairs(pairs, length - 3, rng)
        valid = count_a + count_b + 3
        rows, columns = np.arange(len(pairs)), np.arange(length)
        behind_a = columns > count_a[:, None]
        positions = behind_a * (start_b - count_a - 1 - start_a)[:, None]
        positions += columns + (start_a - 1)[:, None]
        tokens.take(positions, mode='clip', out=ids)
        ids[:, 0] = self._cls
        ids[rows, count_a + 1] = ids[rows, valid - 1] = self._sep
        is_text = columns < valid[:, None]
        np.copyto(ids, self._pad, where=~is_text)
        samples.segment_ids[:] = behind_a & is_text
        samples.segment_ids[rows, count_a + 1] = 0
        samples.next_sentence_labels[:], samples.valid_lengths[:] = labels, valid

    def _mask_words(self, samples, rng):
        """Hide the tokens to predict: 80 % become [MASK], 10 % stay, 10 % become any token."""
        options, ids, valid = self.options, samples.input_ids, samples.valid_lengths
        length, most = ids.shape[1], options.max_predictions_per_seq
        is_text = np.arange(length) < valid[:, None]
        candidates = is_text & (ids != self._cls) & (ids != self._sep)
        counts = np.rint(valid * options.masked_lm_prob).astype(int).clip(1, most)
        if self._begins_word is None:
            drawn, allowed = _in_random_order(candidates, rng)
            drawn = drawn[:, :most]
            drawn[np.arange(drawn.shape[1]) >= np.minimum(counts, allowed)[:, None]] = length
        else:
            begins = self._begins_word[ids]
            if not options.next_sentence:  # a document's first word may be written without a space
                begins[:, 1:] |= ~candidates[:, :-1]
            drawn = _draw_words(candidates, counts, begins, rng)
            drawn = np.where(drawn, np.arange(length), length)
        drawn = np.sort(drawn, axis=1)[:, :most]
        positions = np.pad(drawn, ((0, 0), (0, most - drawn.shape[1])), constant_values=length)
        is_mask = positions < length
        positions = np.where(is_mask, positions, 0)
        masked_ids = np.take_along_axis(ids, positions, axis=1)
        chance = rng.random(positions.shape, dtype=np.float32)
        tokens = rng.integers(len(self.vocab), size=positions.shape, dtype=np.int32)
        tokens[chance < 0.9] = masked_ids[chance < 0.9]
        tokens[chance < 0.8] = self._mask
        ids[np.nonzero(is_mask)[0], positions[is_mask]] = tokens[is_mask]
        samples.masked_lm_ids[:] = masked_ids * is_mask
        samples.masked_lm_positions[:] = positions
        samples.masked_lm_weights[:] = is_mask


def _in_random_order(chosen, rng):
    """Put the true places of each row first, in random order; return also their number."""
    columns = np.arange(chosen.shape[1], dtype=np.uint32)
    low_bits = np.uint32((1 << len(columns).bit_length()) - 1)
    # random high bits over the place: sorting numbers is quicker than finding out their order
    keys = rng.integers(2**32, size=chosen.shape, dtype=np.uint32)
    keys = np.where(chosen, keys & ~low_bits | columns, np.uint32(2**32 - 1))
    keys.sort(axis=1)
    return keys & low_bits, chosen.sum(axis=1)


def _draw_words(candidates, counts, begins_word, rng):
    """Return where whole words are drawn; a word of more tokens than are left is passed over."""
    rows, length = np.arange(len(candidates)), candidates.shape[1]
    first = candidates & begins_word
    first[rows, candidates.argmax(axis=1)] |= candidates.any(axis=1)  # always a beginning
    begin = np.maximum.accumulate(np.where(first, np.arange(length), 0), axis=1)
    flat = (begin + rows[:, None] * length)[candidates]
    sizes = np.bincount(flat, minlength=candidates.size).reshape(candidates.shape)
    shuffled, numbers = _in_random_order(first, rng)
    left, taken = np.array(counts), np.zeros(candidates.shape, bool)
    for number, words in enumerate(shuffled.T[: numbers.max(initial=0)]):  # one of each row
        words = np.minimum(words, length - 1)  # rows with fewer words have no place here
        size = sizes[rows, words]
        fits = (number < numbers) & (size <= left)
        taken[rows[fits], words[fits]] = True
        left[fits] -= size[fits]
        if not left.any():
            break
    return candidates & np.take_along_axis(taken, begin, axis=1)


def pack_sentences(tokens, documents, room, separator):
    """Pack the sentences of documents, one behind the other.

    Returns the tokens with the separators, int32, and begin and end of each sample in them,
    (samples, 2); a separator comes neither first nor last.
    """
    begins, ends = [], []
    for number, bounds in enumerate(documents):  # `number` separators are before it
        for begin, end in itertools.pairwise(bounds):
            cuts = [number + cut for cut in (*range(begin, end, room), end)]
            begins += cuts[:-1]
            ends += cuts[1:]
    stream = np.insert(tokens, [bounds[0] for bounds in documents[1:]], separator)
    rows, first = [], 0
    while first < len(begins):
        behind = bisect.bisect_right(ends, begins[first] + room)
        rows.append((begins[first], ends[behind - 1]))
        first = behind
    return stream.astype(np.int32, copy=False), np.array(rows, np.int64)


def draw_pairs(documents, pool, options, drawing):
    """Go through the documents once, and draw pairs of segments; random ones are of the pool."""
    chance, room, pairs = drawing.random, options.max_seq_length - 3, []
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
            least = other[start] + max(1, target - (first[1] - first[0]))
            stop = bisect.bisect_left(other, least, start + 1, len(other) - 1)
            pairs.append((*first, other[start], other[stop], 1))
            begin = middle  # what of the chunk hasn't been used comes again
    return np.array(pairs, np.int64)


def cut_pairs(pairs, room, rng):
    """Cut pairs of segments to `room` tokens, as if by one token after the other."""
    start_a, end_a, start_b, end_b, labels = pairs.T
    count_a, count_b = end_a - start_a, end_b - start_b
    too_long = count_a + count_b > room
    left_a = np.maximum(np.minimum(count_a, (room + 1) // 2), room - count_b)
    left_a = np.where(too_long, left_a, count_a)
    left_b = np.where(too_long, room - left_a, count_b)
    start_a = start_a + rng.binomial(count_a - left_a, 0.5)
    start_b = start_b + rng.binomial(count_b - left_b, 0.5)
    return np.stack([start_a, left_a, start_b, left_b]), labels
