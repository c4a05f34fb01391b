"""What a vocabulary is learned from, prepared by several processes or machines."""

import argparse
import collections

from ..tokenization.learn import count_words, split_words
from ..util.files import atomic_write
from ..util.lines import read_lines
from ..util.remote import join
from .many_files import plan_files, run_over_files

__all__ = ['prepare_text']

#: folder of the prepared parts, below that of the vocabulary
FOLDER = 'parts'


class _Preparation:
    """Writes a part's words and their counts, or its lines in words; for a worker."""

    def __init__(self, counts, lower):
        self._counts, self._lower = counts, lower

    def __call__(self, task):
        lines = (line.strip() for line in task.lines() if line.strip())
        with atomic_write(task.output) as file:
            if self._counts:
                counts = count_words(lines, self._lower)
                rows = [f'{word}\t{counts[word]}' for word in sorted(counts)]
            else:
                rows = split_words(lines, self._lower)
            return sum(file.write(f'{row}\n') > 0 for row in rows)


def prepare_text(args, counts, lower):
    """Prepare a text for the learning of a vocabulary, part by part, and read what came of it.

    The parts are in the folder ``parts`` of ``args.output_dir``; a second run leaves out finished
    ones. With `counts` the words are counted, for word pieces (a Counter); otherwise it is the
    `read` of `learn_sentence_pieces`. There may be no words.
    """
    over = {'files': args.input_file, 'output_format': 'tsv' if counts else 'txt'}
    over['output_dir'] = join(args.output_dir, FOLDER)
    over = argparse.Namespace(**{**vars(args), **over})
    tasks = plan_files(over)
    run_over_files(_Preparation(counts, lower), over, ['vocabulary', counts, lower], tasks)

    def read():
        for task in tasks:
            for _, line in read_lines(task.output):
                yield line.rstrip('\n')

    if not counts:
        return read
    total = collections.Counter()
    for line in read():
        word, count = line.split('\t')
        total[word] += int(count)
    return total
