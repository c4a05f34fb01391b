"""From a corpus to files of samples, part by part."""

import dataclasses
import functools
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
    corpus, output_dir = maker.corpus, make_output_dir(output_dir)
    parts = plan_parts(corpus, num_outputs, part_bytes)
    job = [  # what the samples depend on, except the texts' contents
        [os.path.basename(path) for path in corpus.files],
        [file_size(path) for path in corpus.files],
        vocab_checksum(maker.vocab),
        maker.splitting,
        dataclasses.asdict(maker.options),
        seed,
        parts,
    ]
    paths = [join(output_dir, f'part-{number:03d}.npz') for number in range(parts)]
    planned = {os.path.basename(path) for path in paths}
    for name in sorted(names_in(output_dir)):
        if re.fullmatch(r'part-\d+\.npz', name) and name not in planned:
            raise InputError(f'{output_dir!r} has {name}, which belongs to another run: remove it')
    found = [read_done(path, job) if resume else None for path in paths]
    missing = [number for number, facts in enumerate(found) if facts is None]
    for number in missing:
        forget_done(paths[number])
    if len(missing) < parts:
        logger.info('%d of %d parts are already finished', parts - len(missing), parts)
    make, total = functools.partial(_make_shard, maker, seed, job, paths), ShardFacts()
    if ray is not None and missing:
        executor = RayTasks(make, ray)
    else:
        workers = min(num_workers, len(missing), available_processors())
        executor = Processes(make, workers if workers > 1 else 0)
    with executor:
        results = executor.map((number,) for number in missing)
        for done, facts in enumerate(found, 1):
            total += next(results) if facts is None else ShardFacts(**facts)
            if progress is not None:
                progress(done, parts, total)
    if not is_url(output_dir):
        remove_leftovers(output_dir, planned)  # of workers that were killed
    if not total.samples:
        raise InputError(f'{", ".join(corpus.files)}: the corpus has no text')
    return total


def _make_shard(maker, seed, job, paths, number):
    """Make file `number`, in a worker process; return its `ShardFacts`."""
    path, options = paths[number], maker.options
    samples = maker.make(*maker.corpus.span(number, len(paths)), seed, number)
    sums = samples.valid_lengths, samples.masked_lm_weights, samples.next_sentence_labels
    facts = ShardFacts(samples.count, *(int(array.sum()) for array in sums))
    if samples.count:
        names = 'max_seq_length', 'max_predictions_per_seq', 'masked_lm_prob', 'whole_word_mask'
        values = dataclasses.asdict(options)
        shown = {name: values[name] for name in names}
        shown.update({} if options.next_sentence else {'next_sentence': False})
        write_shard(path, samples, maker.vocab, **shown)
    elif exists(path):  # of an earlier run
        remove_file(path)
    mark_done(path, job, **facts._asdict())
    return facts
