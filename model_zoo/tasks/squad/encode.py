"""Questions and paragraphs to the ids of pieces: on all processors, and kept on disk."""

import concurrent.futures
import hashlib
import json
import logging
import multiprocessing
import os
import re
import signal
import tempfile
import time
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple

import numpy as np
import tokenizers
from tqdm import tqdm

from ...checkpoint.numpy_files import ArrayArchive
from ...environment import available_processors
from ...errors import CheckpointError
from ...util.files import atomic_write, make_writable_dir

__all__ = ['SquadEncoding', 'encode_squad', 'split_words']

logger = logging.getLogger(__name__)

FORMAT = 1  # of the files and of what is in them: another number for other pieces or places
CHUNK = 64  # paragraphs that are encoded at once
PARALLEL = 4096  # questions from which processes are worth their start of a few seconds
UNCUT = 2**31  # a length that no text has

# The white space at which the originals part words; more kinds separate words for the tokenizer.
_WORD = re.compile('[^ \t\r\n\u202f]+')


def split_words(text):
    """The words of a text between white space, and the characters at which they begin.

    Returns
    -------
    (list of str, numpy.ndarray of int)
    """
    matches = list(_WORD.finditer(text))
    starts = np.array([match.start() for match in matches], dtype=np.int64)
    return [match.group() for match in matches], starts


class SquadEncoding(NamedTuple):
    """The pieces of a `SquadSet`.

    Lists of different lengths stand one after the other in one array: number i is
    ``array[bounds[i] : bounds[i + 1]]``.

    Parameters
    ----------
    paragraph_bounds : numpy.ndarray, shape (number of paragraphs + 1,), int64
    paragraph_ids : numpy.ndarray, int32
    paragraph_words : numpy.ndarray, int32
        The word of the paragraph, see `split_words`, that each piece is from.
    question_bounds : numpy.ndarray, shape (number of questions + 1,), int64
    question_ids : numpy.ndarray, int32
    spans : numpy.ndarray, shape (number of questions, 2), int32
        First and last piece of the answer in the paragraph; -1 where there is none to learn.
    """

    paragraph_bounds: np.ndarray
    paragraph_ids: np.ndarray
    paragraph_words: np.ndarray
    question_bounds: np.ndarray
    question_ids: np.ndarray
    spans: np.ndarray

    def paragraph(self, number):
        """(ids, words) of a paragraph's pieces."""
        part = slice(*self.paragraph_bounds[number : number + 2])
        return self.paragraph_ids[part], self.paragraph_words[part]

    def question(self, number):
        """Ids of a question's pieces."""
        return self.question_ids[slice(*self.question_bounds[number : number + 2])]


def encode_squad(squad, tokenizer, cache_dir=None, processes=None):
    """Encode a set, or read what an earlier call has kept.

    Parameters
    ----------
    squad : SquadSet
    tokenizer : object
        As ``bert.BertTokenizer``: it has ``encode_batch`` and ``save_pretrained`` (which
        identifies the tokenizer), and can be pickled.
    cache_dir : str, optional
        Folder for files ``squad-KEY.npz``, whose key comes from the set's file, the number of its
        questions and the tokenizer. Created if missing. By default nothing is kept.
    processes : int, optional
        By default one per processor, and only one for small sets.

    Returns
    -------
    SquadEncoding
    """
    name = os.path.basename(squad.path)
    path = None
    if cache_dir is not None:
        key = _key(squad, tokenizer)
        path = os.path.join(make_writable_dir(cache_dir), f'squad-{key}.npz')
        found = _load(path, squad)
        if found is not None:
            logger.info('%s: taking its pieces from %s', name, path)
            return found
    if processes is None:
        processes = 1
        if len(squad.questions) >= PARALLEL:
            # Horovod's processes of one machine share its processors
            here = int(os.environ.get('HOROVOD_LOCAL_SIZE', 1))
            processes = max(1, available_processors() // here)
    started = time.perf_counter()
    logger.info(
        '%s: encoding %d questions on %d paragraphs with %d processes',
        name, len(squad.questions), len(squad.paragraphs), processes,
    )  # fmt: skip
    with tqdm(total=len(squad.questions), unit=' questions', desc=name, disable=None) as bar:
        parts = []
        for part in _encode_all(list(_chunks(squad)), tokenizer, processes):
            parts.append(part)
            bar.update(len(part.spans))
    encoding = _join(parts)
    seconds = time.perf_counter() - started
    logger.info('%s: %d pieces in %.1f s', name, len(encoding.paragraph_ids), seconds)
    if path is not None:
        with atomic_write(path, 'wb') as file:
            np.savez(file, **encoding._asdict())
    return encoding


def _key(squad, tokenizer):
    """Checksum of all that the pieces depend on, for the file's name."""
    parts = [FORMAT, tokenizers.__version__, squad.checksum, squad.is_training]
    parts += [len(squad.questions), type(tokenizer).__name__]
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(tokenizer.save_pretrained(folder)):
            with open(path, 'rb') as file:
                parts += [os.path.basename(path), hashlib.sha256(file.read()).hexdigest()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _load(path, squad):
    """The encoding that a file holds, or None if there is no file or a damaged one."""
    if not os.path.exists(path):
        return None
    try:
        with ArrayArchive(path) as file:
            found = SquadEncoding(*(file.read(name) for name in SquadEncoding._fields))
        if found.spans.shape[:1] == (len(squad.questions),):
            return found
    except CheckpointError:
        pass
    logger.warning('%s is damaged and will be made anew', path)
    return None


def _chunks(squad):
    """The set in parts: each a list of paragraphs and a list, for each, of its questions."""
    asked = [[] for _ in squad.paragraphs]
    for question in squad.questions:
        asked[question.paragraph].append(question)
    for start in range(0, len(asked), CHUNK):
        yield squad.paragraphs[start : start + CHUNK], asked[start : start + CHUNK]


def _encode_all(chunks, tokenizer, processes):
    """Encodings of the chunks, in order, each as soon as it is there."""
    done = 0
    if processes > 1:
        # Not forked: MXNet's threads are missing in a copy of this process.
        pool = concurrent.futures.ProcessPoolExecutor(
            processes,
            multiprocessing.get_context('spawn'),
            initializer=_start_process,
            initargs=(tokenizer,),
        )
        try:
            with pool:
                for part in pool.map(_encode_in_process, chunks):
                    done += 1
                    yield part
        except BrokenProcessPool:
            logger.warning('the processes cannot be started or have died; going on without them')
    for chunk in chunks[done:]:
        yield _encode_chunk(chunk, tokenizer)


def _start_process(tokenizer):
    global _tokenizer
    _tokenizer = tokenizer
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'  # the processes are parallel enough
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for us


def _encode_in_process(chunk):
    return _encode_chunk(chunk, _tokenizer)


def _encode_chunk(chunk, tokenizer):
    """SquadEncoding of some paragraphs and their questions."""
    paragraphs, asked = chunk
    questions = [question for group in asked for question in group]

    def encode(texts):
        # a length is given, or those over the model's are warned of: windows cut them to it
        return tokenizer.encode_batch(
            texts, max_length=UNCUT, pad=False, add_special_tokens=False
        )

    docs = encode(paragraphs)
    queries = encode([question.text for question in questions])
    learnt = [question for question in questions if question.start is not None]
    answers = [question.answers[0] for question in learnt]
    forms = [encode(answers).input_ids]
    if tokenizer.word_prefix:
        forms.append(encode([tokenizer.word_prefix + answer for answer in answers]).input_ids)
    answers = zip(*forms)
    words, spans = [], []
    for text, group, row in zip(paragraphs, asked, docs.rows):
        _, starts = split_words(text)
        pieces = np.array([start for start, _ in row.offsets], dtype=np.int64)
        words.append(np.searchsorted(starts, pieces, side='right') - 1)
        for question in group:
            span = -1, -1
            if question.start is not None:
                ends = question.start, question.start + len(question.answers[0]) - 1
                first, last = np.maximum(np.searchsorted(starts, ends, side='right') - 1, 0)
                span = _answer_span(row.input_ids, words[-1], first, last, next(answers))
            spans.append(span)
    return SquadEncoding(
        _bounds(docs.input_ids),
        _flat(docs.input_ids),
        _flat(words),
        _bounds(queries.input_ids),
        _flat(queries.input_ids),
        np.array(spans, dtype=np.int32).reshape(-1, 2),
    )


def _answer_span(ids, words, first_word, last_word, forms):
    """First and last piece of an answer that is in the words from the first to the last.

    These are all pieces of the words, or the first run of pieces that equals the answer, for
    instance without the brackets around a year.
    """
    first = np.searchsorted(words, first_word, side='left')
    last = np.searchsorted(words, last_word, side='right') - 1
    for answer in forms:  # the ids of the answer alone, and behind another word
        size = len(answer)
        for start in range(first, last - size + 2 if size else first):
            if np.array_equal(ids[start : start + size], answer):
                return start, start + size - 1
    return first, last


def _bounds(lists):
    return np.cumsum([0, *map(len, lists)], dtype=np.int64)


def _flat(lists):
    return np.concatenate([np.zeros(0, np.int32), *lists]).astype(np.int32)


def _join(parts):
    """One encoding of several, in order."""
    joined = {}
    for name in SquadEncoding._fields:
        arrays = [getattr(part, name) for part in parts]
        if name.endswith('bounds'):
            joined[name] = np.cumsum([0, *np.concatenate(list(map(np.diff, arrays)))])
        else:
            joined[name] = np.concatenate(arrays)
    return SquadEncoding(**joined)
