"""From a corpus to files of samples, part by part."""

import math
import re
from typing import NamedTuple

from ...batches.loaders import check_positive
from ...errors import InputError
from ...util.files import make_output_dir
from ...util.remote import exists, join, names_in, remove_file
from ...util.threads import available_processors
from .processes import Processes
from .shards import write_shard

__all__ = ['PART_BYTES', 'ShardFacts', 'create_shards', 'plan_parts']

#: bytes of text in a part; with 5 dupes of 128 tokens a process takes some 400 MB for it
PART_BYTES = 2**23


class ShardFacts(NamedTuple):
    """What has been written to one file, or to several."""

    samples: int = 0
    tokens: int = 0  # special ones too, padding not
    masks: int = 0
    random_next: int = 0

    def __add__(self, other):
        return ShardFacts(*map(sum, zip(self, other)))


def plan_parts(corpus, num_parts=1, part_bytes=PART_BYTES):
    """How many parts to make of a corpus: as many as wanted, or more if they'd be too large."""
    return max(num_parts, math.ceil(corpus.num_bytes / part_bytes))


class _ShardMaker:
    """Makes one file; for a worker process."""

    def __init__(self, maker, output_dir, num_parts, seed):
        self._maker, self._seed = maker, seed
        self._output_dir, self._num_parts = output_dir, num_parts

    @staticmethod
    def name(number):
        """GluonNLP's name of file `number`."""
        return f'part-{number:03d}.npz'

    def path(self, number):
        """The path of file `number`."""
        return join(self._output_dir, self.name(number))

    def __call__(self, number):
        maker = self._maker
        samples = maker.make(*maker.corpus.span(number, self._num_parts), self._seed, number)
        if not samples.count:
            if exists(self.path(number)):  # of an earlier run
                remove_file(self.path(number))
            return ShardFacts()
        options = maker.options
        kind = {} if options.next_sentence else {'next_sentence': False}
        write_shard(
            self.path(number),
            samples,
            maker.vocab,
            max_seq_length=options.max_seq_length,
            max_predictions_per_seq=options.max_predictions_per_seq,
            masked_lm_prob=options.masked_lm_prob,
            whole_word_mask=options.whole_word_mask,
            **kind,
        )
        return ShardFacts(
            samples.count,
            int(samples.valid_lengths.sum()),
            int(samples.masked_lm_weights.sum()),
            int(samples.next_sentence_labels.sum()),
        )


def create_shards(
    maker, output_dir, seed=0, num_outputs=1, num_workers=1, part_bytes=PART_BYTES, progress=None
):
    """Write the samples of a corpus as ``part-000.npz``, ``part-001.npz``, ...

    Each file holds a part of the corpus, in random order. Which samples it holds depends on the
    corpus, the tokenizer, the options, the seed and the number of parts, not on the workers. Each
    worker needs memory for one part.

    Parameters
    ----------
    maker : SampleMaker
    output_dir : str
        Or a URL. Made where it is missing. Files of the same names are replaced.
    seed : int
    num_outputs : int
        Number of files; more if one would hold more than `part_bytes` of text. A part in which no
        document begins has no file.
    num_workers : int
        Processes; at most one per processor and part.
    part_bytes : int
    progress : callable, optional
        ``progress(done, parts, facts)`` after each part, with what has been written up to it.

    Returns
    -------
    ShardFacts
        Of all files.

    Raises
    ------
    InputError
        If a number isn't positive; if the corpus can't be read or has fewer than two documents; if
        the folder can't be written to, or has files of an earlier run that would not be replaced.
    """
    check_positive(num_outputs=num_outputs, num_workers=num_workers, part_bytes=part_bytes)
    output_dir = make_output_dir(output_dir)
    parts = plan_parts(maker.corpus, num_outputs, part_bytes)
    job = _ShardMaker(maker, output_dir, parts, seed)
    planned = {job.name(number) for number in range(parts)}
    for name in sorted(names_in(output_dir)):
        if re.fullmatch(r'part-\d+\.npz', name) and name not in planned:
            raise InputError(
                f'{output_dir!r} has {name} of an earlier run, which would be mixed with the '
                f'{parts} files of this one: remove it, or choose another folder'
            )
    workers = min(num_workers, parts, available_processors())
    total = ShardFacts()
    with Processes(job, workers if workers > 1 else 0) as processes:
        results = processes.map((number,) for number in range(parts))
        for number, facts in enumerate(results):
            total += facts
            if progress is not None:
                progress(number + 1, parts, total)
    if not total.samples:
        raise InputError(f'{", ".join(maker.corpus.files)}: the corpus has no text')
    return total
