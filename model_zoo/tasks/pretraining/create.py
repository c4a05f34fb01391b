"""From a corpus to files of samples, part by part."""

import dataclasses
import logging
import math
import os
import re
from typing import NamedTuple

from ...environment import available_processors
from ...errors import InputError
from ...util.done import forget_done, mark_done, read_done
from ...util.files import make_output_dir, remove_leftovers
from ...util.ray_cluster import RayTasks
from ...util.remote import exists, file_size, is_url, join, names_in, remove_file
from .files import vocab_checksum, write_shard
from .processes import Processes

logger = logging.getLogger(__name__)

#: bytes of text in a part; with 5 dupes of 128 tokens each process takes some 400 MB for it
PART_BYTES = 2**23


class ShardFacts(NamedTuple):
    """Counts of what has been written to files."""

    samples: int = 0
    tokens: int = 0  # special ones too, padding not
    masks: int = 0
    random_next: int = 0

    def __add__(self, other):
        return ShardFacts(*map(sum, zip(self, other)))


def plan_parts(corpus, num_parts=1, part_bytes=PART_BYTES):
    """Return how many parts to make of a corpus: `num_parts`, or more if they were too large."""
    return max(num_parts, math.ceil(corpus.num_bytes / part_bytes))


class _ShardMaker:
    """A function that makes one file, for a worker process."""

    def __init__(self, maker, output_dir, num_parts, seed):
        self._maker, self._seed = maker, seed
        self._output_dir, self._num_parts = output_dir, num_parts
        self._job = _job_of(maker, seed, num_parts)

    def path(self, number):
        """Return the path of file `number`, with GluonNLP's name."""
        return join(self._output_dir, f'part-{number:03d}.npz')

    def finished(self, number):
        """Return the `ShardFacts` of a file that the same job has finished before, or None."""
        facts = read_done(self.path(number), self._job)
        return None if facts is None else ShardFacts(**facts)

    def __call__(self, number):
        maker, path = self._maker, self.path(number)
        samples = maker.make(*maker.corpus.span(number, self._num_parts), self._seed, number)
        facts = ShardFacts(
            samples.count,
            int(samples.valid_lengths.sum()),
            int(samples.masked_lm_weights.sum()),
            int(samples.next_sentence_labels.sum()),
        )
        if samples.count:
            options = maker.options
            write_shard(
                path,
                samples,
                maker.vocab,
                max_seq_length=options.max_seq_length,
                max_predictions_per_seq=options.max_predictions_per_seq,
                masked_lm_prob=options.masked_lm_prob,
                whole_word_mask=options.whole_word_mask,
                **({} if options.next_sentence else {'next_sentence': False}),
            )
        elif exists(path):  # of an earlier run
            remove_file(path)
        mark_done(path, self._job, **facts._asdict())
        return facts


def _job_of(maker, seed, num_parts):
    """Return what the samples depend on, except the texts' contents."""
    corpus = maker.corpus
    return [
        [os.path.basename(path) for path in corpus.files],
        [file_size(path) for path in corpus.files],
        vocab_checksum(maker.vocab),
        maker.splitting,
        dataclasses.asdict(maker.options),
        seed,
        num_parts,
    ]


def create_shards(
    maker,
    output_dir,
    seed=0,
    num_outputs=1,
    num_workers=1,
    part_bytes=PART_BYTES,
    progress=None,
    resume=False,
    ray=None,
):
    """Write the samples of a corpus as ``part-000.npz``, ``part-001.npz``, ...

    Each file has the samples of a part of the corpus, in random order. They depend on the corpus,
    the tokenizer, the options, the seed and the number of parts, not on the workers. Each worker
    needs memory for one part.

    Parameters
    ----------
    num_outputs : int
        Number of files; more if one would hold more than `part_bytes` of text. A part in which no
        document begins has no file.
    progress : callable, optional
        ``progress(done, parts, facts)`` after each part, with what has been written up to it.
    resume : bool
        Leave out the parts that an earlier run has finished, with the same options and files of the
        same names and sizes.
    """
    output_dir = make_output_dir(output_dir)
    parts = plan_parts(maker.corpus, num_outputs, part_bytes)
    job = _ShardMaker(maker, output_dir, parts, seed)
    planned = {os.path.basename(job.path(number)) for number in range(parts)}
    for name in sorted(names_in(output_dir)):
        if re.fullmatch(r'part-\d+\.npz', name) and name not in planned:
            raise InputError(
                f'{output_dir!r} has {name} of another run: remove it, or use another folder'
            )
    found = [job.finished(number) if resume else None for number in range(parts)]
    missing = [number for number, facts in enumerate(found) if facts is None]
    for number in missing:
        forget_done(job.path(number))
    if len(missing) < parts:
        logger.info('%d of %d parts are already finished', parts - len(missing), parts)
    total = ShardFacts()
    with _executor(job, min(num_workers, len(missing)), ray if missing else None) as executor:
        results = executor.map((number,) for number in missing)
        for done, facts in enumerate(found, 1):
            total += facts or next(results)
            if progress is not None:
                progress(done, parts, total)
    if not is_url(output_dir):
        remove_leftovers(output_dir, planned)  # of workers that were killed
    if not total.samples:
        raise InputError(f'{", ".join(maker.corpus.files)}: the corpus has no text')
    return total


def _executor(job, num_workers, ray):
    if ray is not None:
        return RayTasks(job, ray)
    workers = min(num_workers, available_processors())
    return Processes(job, workers if workers > 1 else 0)
